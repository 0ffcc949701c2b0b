"""The changes of files by commands, as outcome records list them. Never trust a value of a record."""

from __future__ import annotations

from harness.actions import JsonValue

_SIGNS = (("+", "added"), ("~", "changed"), ("-", "removed"))
"""The sign of each kind of change in short texts, with the field that counts it."""


def change_counts(changes: JsonValue, *, is_listed: bool = False) -> str:
    """Return the numbers of added, changed and removed paths, such as `+2 ~1 -1, git history changed`.

    Empty without changes. `is_listed` leaves out the numbers, because the paths are listed elsewhere.
    """
    if not isinstance(changes, dict):
        return ""
    sums = [(sign, _count(changes.get(name))) for sign, name in _SIGNS]
    counts = " ".join(f"{sign}{count}" for sign, count in sums if count and not is_listed)
    history = "git history changed" if changes.get("history_changed") is True else ""
    return ", ".join(filter(None, (counts, history)))


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
