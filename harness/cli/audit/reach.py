"""The lines of `harness audit reads` and `outside`: what calls were let do to the world; writes nothing itself."""

from __future__ import annotations

from collections.abc import Iterator

from harness.audit.calls import text
from harness.audit.reach import FileRead, Reach, reach_words
from harness.cli.audit.answers import count
from harness.cli.audit.words import moment, name, what, why
from harness.cli.trace import Tone
from harness.visible import visible_line


def read_lines(file: FileRead) -> Iterator[tuple[str, Tone]]:
    """Yield the line for a file or folder that was read, and one for each call."""
    outside = "  [outside the workspace]" if file.is_outside else ""
    yield f"{visible_line(file.path, 5_000)}{outside}", Tone.WARNING if outside else Tone.PLAIN
    for one in file.reads:
        yield f"  {_call(one)}", Tone.PLAIN


def unknown_line(reach: Reach) -> tuple[str, Tone]:
    """Return the line for a call of which it is not known what it read."""
    return f"  {_call(reach)}", Tone.WARNING


def outside_line(outside: Reach) -> tuple[str, Tone]:
    """Return the line for a call that went outside the workspace, or could reach the network."""
    return f"{_call(outside)}  {reach_words(outside, outside=True)}", Tone.WARNING


def _call(reach: Reach) -> str:
    call = reach.call
    status = visible_line(text(call.outcome, "status"), 20) or "end unknown"
    return "  ".join((moment(call.intent), name(call), what(call), status, f"[{why(call)}]"))


def reads_line(files: int, sessions: int) -> str:
    """Return the counts of files that were read, in words."""
    return f"{count(files, 'file or folder', 'files and folders')} read in {count(sessions, 'session')}"
