"""Times in a log: conversion, and jumps of the wall clock relative to the monotonic clock."""

from __future__ import annotations

import re
import time

from harness.actions import JsonValue
from harness.log.order import LogRecord
from harness.log.reader import LARGEST, whole_number
from harness.record import Record
from harness.regex import regex

NANO = 1_000_000_000
_APART = 2 * NANO
"""Largest accepted difference between the two clocks, in nanoseconds.

They differ a little because a process may wait between reading them, and because of leap seconds.
"""
_RFC3339 = regex(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


class Jump(Record):
    """A jump of the wall clock relative to the monotonic clock."""

    line: int
    """Number of the first line after the jump, counted from 1."""
    session: str
    seconds: int
    """Seconds that the wall clock jumped ahead; negative if it jumped back."""

    @property
    def words(self) -> str:
        """Description of the jump. The monotonic clock stops while the machine sleeps (clock_gettime(2))."""
        if self.seconds < 0:
            return f"the wall clock jumped back by {-self.seconds:,} s: it was set"
        return f"the wall clock jumped ahead by {self.seconds:,} s: it was set, or the machine slept"


class Clocks:
    """Detects clock jumps in the sessions of a log. The caller passes the records in order."""

    def __init__(self) -> None:
        self._count = 0
        self._apart: dict[str, int] = {}

    def jump(self, record: LogRecord) -> Jump | None:
        """Return the jump of the wall clock since the previous record of the same session, or `None`."""
        self._count += 1
        session, time, mono = str(record["session"]), nanoseconds(record["time"]), record["mono_ns"]
        if time is None or type(mono) is not int or not 0 <= mono <= LARGEST:
            return None
        apart = time - mono
        jumped = apart - self._apart.get(session, apart)
        self._apart[session] = apart
        if abs(jumped) < _APART:
            return None
        return Jump(line=self._count, session=session, seconds=(jumped + NANO // 2) // NANO)


def timestamp(seconds: float, *, digits: int = 0) -> str:
    """Return seconds since 1970 as RFC 3339 in UTC: with microseconds if `digits` is not 0, else with whole seconds."""
    whole_seconds, rest = divmod(round(seconds * 1_000_000), 1_000_000)
    fraction = f".{rest:06d}" if digits else ""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole_seconds))}{fraction}Z"


def nanoseconds(text: JsonValue) -> int | None:
    """Return the nanoseconds from 1970 to an RFC 3339 timestamp. `None` for an invalid timestamp, or a time before
    1970.
    """
    match = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    from datetime import datetime

    minutes, seconds, fraction, zone = match.groups()
    is_leap = seconds == "60"  # a leap second: valid in RFC 3339, but not in datetime
    try:
        moment = datetime.fromisoformat(f"{minutes}:{'59' if is_leap else seconds}{zone}".upper())
    except ValueError:
        return None
    total = (int(moment.timestamp()) + is_leap) * NANO + int((fraction or "").ljust(9, "0"))
    return total if 0 <= total <= LARGEST else None


def seconds_between(first: LogRecord, later: LogRecord) -> float | None:
    """Return the seconds from `first` to a later record of the same session; never negative.

    Uses the monotonic clock if both records have it, because the wall clock may have been set in between. `None` if
    neither clock is in both records.
    """
    start, stop = whole_number(first.get("mono_ns")), whole_number(later.get("mono_ns"))
    if start is None or stop is None:
        start, stop = nanoseconds(first.get("time")), nanoseconds(later.get("time"))
    if start is None or stop is None:
        return None
    return max(0, stop - start) / NANO
