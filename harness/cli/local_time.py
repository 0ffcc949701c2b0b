"""The time of a record as it was on the person's own clock: for terminals alone, since what programs read stays UTC."""

from __future__ import annotations

import time


def local_time(stamp: str, *, seconds: bool = False) -> str:
    """Return `2026-01-31 11:00` for `2026-01-31T10:00:00.000Z` an hour east; a text that is no such time, as it is."""
    try:
        parts = [int(stamp[start:end]) for start, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
        local = time.localtime(_since_1970(*parts))
    except (ValueError, OverflowError, OSError):
        return stamp
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M", local)


def zone() -> str:
    """Return what the person's time is called: `CET`, `UTC`, `+0530`."""
    return time.strftime("%Z") or time.strftime("%z")


def _since_1970(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    from datetime import UTC, datetime

    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())
