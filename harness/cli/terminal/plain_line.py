"""A line from a terminal that can only write: the terminal's own line editing, no escapes, nothing written over."""

from __future__ import annotations

import os
import sys

from harness.visible import visible

CONTINUED = ". "
_AT_ONCE = 65_536


def read_plain(prompt: str, *, default: str = "") -> str:
    """Return what the person typed; a line that ends in a backslash goes on in the next one.

    A `default` cannot be put into the line: it is shown, and an empty line stands for it. Of one typed line the terminal
    takes 4,095 bytes (termios(3), canonical mode). Raises EOFError at the end of input, KeyboardInterrupt on Ctrl-C.
    """
    if default:
        _write(f"kept: {visible(default)}\n(Enter alone sends it)\n")
    lines: list[str] = []
    while True:
        _write(CONTINUED if lines else prompt)
        line = _read_line()
        if not continues(line):
            lines.append(line)
            break
        lines.append(line if _is_command(lines, line) else line[:-1])
    text = "\n".join(lines)
    return text or default


def continues(line: str) -> bool:
    """Say whether a line goes on behind its end: it ends in a backslash that is not one of a pair."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_command(lines: list[str], line: str) -> bool:
    """Say whether it is a command of the shell, to which the backslash is part of the text."""
    return (lines[0] if lines else line).startswith("!")


def _read_line() -> str:
    """Return a line without its end. Raises EOFError where there is none."""
    data = b""
    while not data.endswith(b"\n"):
        try:
            piece = os.read(sys.stdin.fileno(), _AT_ONCE)
        except OSError:
            piece = b""  # the terminal is gone (EIO)
        if not piece:
            if data:
                break
            _write("\n")
            raise EOFError
        data += piece
    return data.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
