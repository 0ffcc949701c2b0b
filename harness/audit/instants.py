"""Instants of a log: its timestamps and its monotonic clock as numbers; pure arithmetic, asks no clock."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.log_clocks import LARGEST, NANO, nanoseconds
from harness.log_order import LogRecord


def seconds_between(first: LogRecord, later: LogRecord) -> float | None:
    """Return how long after `first` a record of the same session was written; never under 0.

    The monotonic clock decides where both have it: the other one may have been set in between. None if neither tells.
    """
    start, stop = whole(first.get("mono_ns")), whole(later.get("mono_ns"))
    if start is None or stop is None:
        start, stop = nanoseconds(first.get("time")), nanoseconds(later.get("time"))
    if start is None or stop is None:
        return None
    return max(0, stop - start) / NANO


def whole(value: JsonValue) -> int | None:
    """Return a whole number that fits 63 bits, or None: a forged record may hold one of a thousand digits."""
    if isinstance(value, bool) or not isinstance(value, int) or not -LARGEST <= value <= LARGEST:
        return None
    return value


def finite(value: JsonValue) -> float | None:
    """Return a number that can be reckoned with, or None: JSON as Python reads it may hold NaN and infinities."""
    if isinstance(value, float):
        return value if -1e15 < value < 1e15 else None
    found = whole(value)
    return None if found is None else float(found)


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    count = round(seconds)
    for size, name, rest, of_rest in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if count >= size:
            return f"{count // size} {name} {count % size // rest} {of_rest}"
    return f"{count} s"
