"""The changes of a command in the form of its outcome record, and back."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.files.tree_changes import LeftOut, PathChange, TreeChanges
from harness.record import field_names

MOST_LEFT_OUT = 20
"""Maximum number of unwatched paths in a record. The changed ones are first."""


def recorded(changes: TreeChanges, *, history_changed: bool = False) -> dict[str, JsonValue]:
    """Return the field `changes` of an outcome.

    `history_changed` tells whether HEAD, a branch, a tag or the stash of the repository changed. Undo never touches
    these.
    """
    counts = changes.counts()
    field: dict[str, JsonValue] = {name: getattr(counts, name) for name in field_names(type(counts))}
    field |= {"began_ns": changes.began_ns, "ended_ns": changes.ended_ns}
    if changes.problem:
        field["problem"] = changes.problem
    else:
        field["paths"] = [change.fields() for change in changes.changes]
    if changes.left_out:
        field["left_out"] = [place.fields() for place in changes.left_out[:MOST_LEFT_OUT]]
    if history_changed:
        field["history_changed"] = True
    return field


def changes_from(field: Mapping[str, JsonValue]) -> TreeChanges:
    """Return the changes of a field that `recorded` returned. Raises ValueError for any other field."""
    problem, paths, left_out = field.get("problem", ""), field.get("paths"), field.get("left_out", [])
    began_ns, ended_ns = field.get("began_ns"), field.get("ended_ns")
    if not isinstance(problem, str) or not isinstance(left_out, list):
        raise ValueError("the changes of a command have an invalid problem, or invalid places that were left out")  # noqa: TRY004
    if not isinstance(began_ns, int) or not isinstance(ended_ns, int):
        raise ValueError("the changes of a command have no times")  # noqa: TRY004 - of what was read, not an argument
    beside = field.get("beside", [])
    if not isinstance(beside, list):
        raise ValueError("the names of the commands in the background are invalid")  # noqa: TRY004 - likewise
    if problem:
        return TreeChanges(problem=problem, began_ns=began_ns, ended_ns=ended_ns, beside=tuple(map(str, beside)))
    if not isinstance(paths, list):
        raise ValueError("the list of changes is missing")  # noqa: TRY004
    return TreeChanges(
        changes=tuple(map(PathChange.from_fields, paths)),
        left_out=tuple(map(LeftOut.from_fields, left_out)),
        began_ns=began_ns,
        ended_ns=ended_ns,
        beside=tuple(map(str, beside)),
    )
