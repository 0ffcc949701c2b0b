"""The line at the prompt for screen readers and TERM=dumb: the terminal itself edits it, and no text is repainted."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harness.record import Record
from harness.terminal.escape_sequences import typed_text
from harness.terminal.keys import kept_mode
from harness.text.visible import visible, visible_line

CONTINUED = ". "
_AT_ONCE = 65_536
_PASTE_SECONDS = 0.02
"""Seconds of waiting after a Tab. If more input follows within this time, the Tab was pasted, and is text."""
_LONGEST_ROW = 200


class Candidate(Record):
    """A replacement of the last typed characters."""

    text: str
    replaces: int
    """Number of characters before the cursor that `text` replaces."""
    label: str


Completing = Callable[[str], Sequence[Candidate]]


def read_line(prompt: str, *, default: str = "", complete: Completing | None = None) -> str:
    """Return the typed text. A line that ends in a backslash continues in the next one.

    A Tab lists the completions of the text before it, adds their common beginning, and writes the line again. After
    that, the text before the Tab can no longer be edited. A `default` is shown above the line, because it cannot be put
    into it; an empty line selects it. The terminal accepts 4,095 bytes per line (termios(3), canonical mode).

    Raises EOFError at the end of input, and KeyboardInterrupt on Ctrl-C.
    """
    if default:
        _write(f"kept: {visible(default)}\n(Enter alone sends it)\n")
    with _tab_is_told(complete is not None):
        return "\n".join(_lines(prompt, complete)) or default


def _lines(prompt: str, complete: Completing | None) -> Sequence[str]:
    lines: list[str] = []
    while True:
        line = _read_line(CONTINUED if lines else prompt, "".join(f"{line}\n" for line in lines), complete)
        if not continues(line):
            return [*lines, line]
        lines.append(line if _is_command(lines, line) else line[:-1])


def continues(line: str) -> bool:
    """Return whether a line continues in the next one: it ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_command(lines: list[str], line: str) -> bool:
    """Return whether the text is a shell command (`!`), in which the backslash is kept."""
    return (lines[0] if lines else line).startswith("!")


def _read_line(prompt: str, before: str, complete: Completing | None) -> str:
    """Return a line without its newline. `before` are the earlier lines of the text. Raises EOFError at the end of input."""
    _write(prompt)
    data = b""
    while not data.endswith(b"\n"):
        piece = _piece()
        if not piece:
            if data:
                break
            _write("\n")
            raise EOFError
        data += piece
        if complete is not None and data.endswith(b"\t") and not _more_comes():
            data = _completed(data[:-1].decode("utf-8", "replace"), before, prompt, complete).encode()
    return typed_text(data.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r"))


def _piece() -> bytes:
    try:
        return os.read(sys.stdin.fileno(), _AT_ONCE)
    except OSError:
        return b""  # the terminal is gone (EIO)


@contextmanager
def _tab_is_told(is_needed: bool) -> Iterator[None]:
    """Let the terminal deliver the line at a Tab too, during the block. Uses VEOL: an additional end of line (termios(3))."""
    descriptor = sys.stdin.fileno()
    with kept_mode(descriptor):
        try:
            if is_needed:
                mode = termios.tcgetattr(descriptor)
                mode[6][termios.VEOL] = b"\t"
                termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        except termios.error:
            pass  # the terminal is gone, which the next read detects
        yield


def _more_comes() -> bool:
    """Return whether more input follows the Tab. Switches to single-key mode, in which unfinished lines are readable."""
    descriptor = sys.stdin.fileno()
    try:
        mode = termios.tcgetattr(descriptor)
        canonical = mode[3]
        mode[3] = canonical & ~termios.ICANON
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        try:
            return bool(select.select([descriptor], [], [], _PASTE_SECONDS)[0])
        finally:
            mode[3] = canonical
            termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    except termios.error:
        return False


def _completed(line: str, before: str, prompt: str, complete: Completing) -> str:
    """Write the completions of a line, and the line extended by their common beginning. Return that line."""
    candidates = complete(before + line)
    common = _common_beginning([line[: len(line) - candidate.replaces] + candidate.text for candidate in candidates])
    line = common if len(common) > len(line) or len(candidates) == 1 else line
    rows = [visible_line(candidate.label, _LONGEST_ROW) for candidate in candidates] if len(candidates) > 1 else []
    rows = rows if candidates else ["(nothing completes this)"]
    _write("".join(f"\n{row}" for row in rows) + f"\n{prompt}{visible_line(line, len(line))}")
    return line


def _common_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")  # all other texts sort between these two
    at = next(
        (at for at, (char, last_char) in enumerate(zip(first, last, strict=False)) if char != last_char), len(first)
    )
    return first[:at]


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
