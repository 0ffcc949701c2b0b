"""The person's editor on a text: a private file, the program that VISUAL or EDITOR names, and the text that came of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from harness.durable import write_new
from harness.record import Record
from harness.small_files import read_small
from harness.visible import visible_line

MOST_BYTES = 4_000_000
"""Of what is taken back from an editor: more than a model takes in, and shown at once all the same."""
_FALLBACKS = ("vi", "nano")
_LAID_DOWN = "\x1b[?1047l\x1b[r\x1b[m\x1b[?25h\x1b[999;1H\n"
"""What an editor that was killed could not do: leave its own screen, scroll all rows again, plain text, the cursor seen, and
below what stands there (xterm, "Control Sequences"). Not 1049: where no other screen was taken it would move the cursor."""


class Edited(Record):
    """What came of it: the text, or why there is none."""

    text: str = ""
    problem: str = ""


def edited(text: str, environment: Mapping[str, str], *, name: str = "prompt.md", repaints: bool = False) -> Edited:
    """Let the person change `text` in their editor, on the terminal of this process; wait until they are done.

    The editor is $VISUAL, else $EDITOR (with options, as a shell would split them), else vi or nano. It gets a file
    `name`, mode 0600, in a folder of its own that is removed afterwards. A line end that editors add is taken off again.
    What was typed for the editor and is still unread when it ends is dropped: it was not meant for what is asked next.
    `repaints` says whether a killed editor's screen may be put right by escapes.
    """
    import shutil
    import tempfile

    words = _editor(environment)
    if isinstance(words, str):
        return Edited(problem=words)
    try:
        folder = tempfile.mkdtemp(prefix="harness-", dir=environment.get("TMPDIR") or None)
    except OSError as error:
        return Edited(problem=f"no private folder can be made: {error.strerror}")
    try:
        path = os.path.join(folder, name)
        write_new(path, text.encode("utf-8", "replace"))
        problem = _run([*words, path], repaints=repaints)
        return Edited(problem=problem) if problem else _read(path, text)
    except OSError as error:
        return Edited(problem=f"the file for the editor cannot be written: {error.strerror}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _editor(environment: Mapping[str, str]) -> Sequence[str] | str:
    """Return the words of the editor's command line, or why there are none."""
    import shlex
    import shutil

    path = environment.get("PATH", os.defpath)
    for variable in ("VISUAL", "EDITOR"):
        named = environment.get(variable, "").strip()
        if not named:
            continue
        try:
            words = shlex.split(named)
        except ValueError as error:
            return f"{variable} cannot be read: {error}"
        if shutil.which(words[0], path=path) is None:
            return f"{variable} names {visible_line(words[0])}, and there is no such program"
        return words
    for fallback in _FALLBACKS:
        if shutil.which(fallback, path=path):
            return (fallback,)
    return "there is no editor: set VISUAL or EDITOR"


def _run(words: Sequence[str], *, repaints: bool) -> str:
    """Run an editor to its end; return what went wrong. The terminal is left as it was, whatever the editor does to it."""
    import subprocess
    import termios

    from harness.cli.terminal.modes import kept

    with kept(sys.stdin.fileno()), _interrupts_left_to_it():
        try:
            code = subprocess.call(words)
        except OSError as error:
            return f"{visible_line(words[0])} cannot be run: {error.strerror}"
        try:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        except termios.error:
            pass  # it is gone
    if code < 0:
        if repaints:
            sys.stdout.write(_LAID_DOWN)
            sys.stdout.flush()
        return f"{visible_line(words[0])} was ended by signal {-code}"
    return f"{visible_line(words[0])} ended with exit code {code}" if code else ""


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Ctrl-C goes to every program of the terminal: while an editor runs it is meant for the editor alone.

    A function, not SIG_IGN: what is ignored would be ignored by the editor too (execve(2)).
    """
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _read(path: str, before: str) -> Edited:
    data = read_small(path, MOST_BYTES)
    if data is None:
        return Edited(problem=f"the edited text cannot be read: a regular file of at most {MOST_BYTES} bytes is wanted")
    text = data.decode("utf-8", "replace")
    return Edited(text=text if before.endswith("\n") else text.removesuffix("\n"))
