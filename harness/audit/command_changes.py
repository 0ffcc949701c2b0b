"""The changes of files by commands, as outcome records list them. Never trust a value of a record."""

from __future__ import annotations

from harness.actions import JsonValue

_SIGNS = (("+", ("added",)), ("~", ("changed",)), ("-", ("removed",)))
"""The sign of each kind of change in short texts, with the fields that count it."""


def change_counts(changes: JsonValue) -> str:
    """Return the numbers of added, changed and removed paths, such as `+2 ~1 -1`. Empty if there are none."""
    if not isinstance(changes, dict):
        return ""
    sums = [(sign, sum(_count(changes.get(name)) for name in names)) for sign, names in _SIGNS]
    return " ".join(f"{sign}{count}" for sign, count in sums if count)


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
