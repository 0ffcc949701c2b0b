"""The two clocks of a log: its timestamps as numbers, and where they disagree with the monotonic clock; pure, asks no clock."""

from __future__ import annotations

import re

from harness.actions import JsonValue
from harness.log.order import LogRecord
from harness.record import Record

NANO = 1_000_000_000
LARGEST = 2**63 - 1
APART = 2 * NANO
"""What two clocks that were read one after the other may differ by: a process waits in between, and a second leaps."""
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


class Jump(Record):
    """A wall clock that went on otherwise than the monotonic one."""

    line: int
    """The first line written after it, from 1."""
    session: str
    seconds: int
    """How far ahead; below 0: back."""

    @property
    def words(self) -> str:
        """What is said of it. A machine that sleeps stops the monotonic clock (clock_gettime(2))."""
        if self.seconds < 0:
            return f"the wall clock jumped back by {-self.seconds:,} s: it was set"
        return f"the wall clock jumped ahead by {self.seconds:,} s: it was set, or the machine slept"


class Clocks:
    """The clocks of the sessions of a log, whose records are given in order."""

    def __init__(self) -> None:
        self._count = 0
        self._apart: dict[str, int] = {}

    def jump(self, record: LogRecord) -> Jump | None:
        """Return by how much the wall clock jumped since the record before of the same session; None where it did not."""
        self._count += 1
        session, time, mono = str(record["session"]), nanoseconds(record["time"]), record["mono_ns"]
        if time is None or type(mono) is not int or not 0 <= mono <= LARGEST:
            return None
        apart = time - mono
        jumped = apart - self._apart.get(session, apart)
        self._apart[session] = apart
        if abs(jumped) < APART:
            return None
        return Jump(line=self._count, session=session, seconds=(jumped + NANO // 2) // NANO)


def nanoseconds(text: JsonValue) -> int | None:
    """Return the nanoseconds from 1970 to an RFC 3339 timestamp; None for what is none, or lies before 1970."""
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[n]) for n in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        return None
    seconds = (_days(year, month, day) * 24 + hour) * 3600 + minute * 60 + second
    if found[8]:
        offset = int(found[9]) * 3600 + int(found[10]) * 60
        seconds += -offset if found[8] == "+" else offset
    if seconds < 0:
        return None
    total = seconds * NANO + int((found[7] or "").ljust(9, "0"))
    return total if total <= LARGEST else None


def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 in the Gregorian calendar, counted from the first of March of the year 0."""
    year -= month <= 2
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468


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
