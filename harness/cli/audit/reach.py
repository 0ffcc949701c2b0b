"""The lines of `harness audit reads` and `outside`: what calls were let do to the world; writes nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.audit.calls import text
from harness.audit.reach import FileRead, Reach
from harness.cli.audit.answers import count
from harness.cli.audit.words import moment, name, what, why
from harness.cli.trace import Tone
from harness.visible import visible_line

MOST_PATHS = 5
"""Of more paths of one kind the number of the others is told; the JSON form has them."""


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


def reach_words(reach: Reach, *, outside: bool = False) -> str:
    """Return in words what a call could write and reach; with `outside` also what it read."""
    told = [f"read {_listed(reach.reads)}"] if outside and reach.reads else []
    places = [*reach.writes, *("the workspace" if place == "." else place for place in reach.may_write)]
    if places:
        told.append(f"could write {_listed(places)}")
    elif not outside and not reach.writes_known and not reach.is_unheld:
        told.append("could write what its walls let it")
    if reach.network:
        told.append("could reach the network")
    if reach.is_unheld:
        told.append("nothing held it: it could do whatever its user may")
    return "; ".join(told)


def _call(reach: Reach) -> str:
    call = reach.call
    status = visible_line(text(call.outcome, "status"), 20) or "end unknown"
    return "  ".join((moment(call.intent), name(call), what(call), status, f"[{why(call)}]"))


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return f"{', '.join(visible_line(path, 300) for path in paths[:MOST_PATHS])}{more}"


def reads_line(files: int, sessions: int) -> str:
    """Return the counts of files that were read, in words."""
    return f"{count(files, 'file or folder', 'files and folders')} read in {count(sessions, 'session')}"
