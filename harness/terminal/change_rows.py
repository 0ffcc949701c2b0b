"""The rows below the line of a call: the diff of an edit, or the names of the files that a command changed.

INVARIANT: every row begins with a blank, so that no name and no line of a file looks like a line of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.audit.calls import objects_in, word
from harness.log.order import LogRecord
from harness.terminal.row_text import Row, fitted
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

MOST_ROWS = 12
"""Maximum number of rows of a diff in the short form. The rest is counted, unless it is at most MOST_MORE rows."""
MOST_MORE = 2
MOST_NOTES = 3
"""Maximum number of paths named of those that undo leaves out. The others are counted."""


class Diffs(Enum):
    """The extent of the diffs below the lines of calls."""

    FULL = "full"
    SHORT = "short"
    NONE = "none"


def edit_rows(rows: Sequence[Row], width: int, extent: Diffs, way: str) -> Sequence[Row]:
    """Return the rows to show of the diff of an edit.

    A short form names `way`, the command that shows the rest, unless it is empty.
    """
    if extent is Diffs.FULL or len(rows) <= MOST_ROWS + MOST_MORE:
        return rows
    more = f"  ... {count_of(len(rows) - MOST_ROWS, 'more row')}{way and f': {way}'}"
    return (*rows[:MOST_ROWS], Row(text=fitted(more, width), tone=Tone.QUIET))


def command_row(outcome: LogRecord, width: int, way: str) -> Row | None:
    """Return the row with the names of the files that a command changed, and `way`, the command for their diffs."""
    files = changed_files(outcome)
    if not files:
        return None
    groups: dict[str, list[str]] = {}
    for path in files:
        groups.setdefault(_verb(path), []).append(visible_line(word(path.get("path")), 200))
    names = "; ".join(f"{verb} {', '.join(groups[verb])}" for verb in ("new", "changed", "removed") if verb in groups)
    end = f"  {way}" if way else ""
    return Row(text=fitted(f"  {fitted(names, width - 2 - len(end))}{end}", width), tone=Tone.QUIET)


def changed_files(outcome: LogRecord) -> Sequence[Mapping[str, JsonValue]]:
    """Return the recorded changes of files by a command, without those of folders."""
    changes = outcome.get("changes")
    paths = objects_in(changes.get("paths")) if isinstance(changes, dict) else []
    return [path for path in paths if "folder" not in (_kind(path, "before"), _kind(path, "after"))]


def _kind(path: Mapping[str, JsonValue], side: str) -> str:
    state = path.get(side)
    return word(state.get("kind")) if isinstance(state, dict) else ""


def _verb(path: Mapping[str, JsonValue]) -> str:
    return "new" if path.get("before") is None else "removed" if path.get("after") is None else "changed"


class UndoNotes:
    """The notes about changes of commands that undo leaves out. Each path is named once."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def rows(self, outcome: LogRecord, width: int) -> Iterator[Row]:
        """Yield the rows for the paths of an outcome that were not named before."""
        changes = outcome.get("changes")
        places = objects_in(changes.get("left_out")) if isinstance(changes, dict) else []
        changed = [place for place in places if place.get("is_changed") is True]
        new = [place for place in changed if word(place.get("path")) not in self._paths]
        self._paths.update(word(place.get("path")) for place in new)
        for place in new[:MOST_NOTES]:
            path, reason = word(place.get("path")), word(place.get("reason"))
            did = "removed" if place.get("is_removed") is True else "changed"
            note = visible_line(f"{did} {path}, which undo cannot put back: {reason}", 500)
            yield Row(text=fitted(f"  {note}", width), tone=Tone.WARNING)
        if len(new) > MOST_NOTES:
            yield Row(
                text=fitted(f"  and {len(new) - MOST_NOTES} more paths that undo cannot put back", width),
                tone=Tone.WARNING,
            )
