"""The time of a record as it was on the person's own clock: for terminals alone, since what programs read stays UTC."""

from __future__ import annotations

import time

from harness.log.clocks import NANO, nanoseconds


def local_time(stamp: str, *, seconds: bool = False) -> str:
    """Return `2026-01-31 11:00` for `2026-01-31T10:00:00.000Z` an hour east; any other text unchanged."""
    since_1970 = nanoseconds(stamp)
    if since_1970 is None:
        return stamp
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M", time.localtime(since_1970 // NANO))


def zone() -> str:
    """Return the name of the person's time zone: `CET`, `UTC`, `+0530`."""
    return time.strftime("%Z") or time.strftime("%z")
