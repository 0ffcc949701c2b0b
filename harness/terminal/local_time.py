"""The time of a record in the user's time zone. Only for terminals: output for programs stays in UTC."""

from __future__ import annotations

import time

from harness.log.clocks import NANO, nanoseconds


def local_time(stamp: str, *, seconds: bool = False) -> str:
    """Return the local time of an RFC 3339 timestamp; other texts are returned unchanged.

    Example: `2026-01-31 11:00` for `2026-01-31T10:00:00.000Z` in UTC+1.
    """
    since_1970 = nanoseconds(stamp)
    if since_1970 is None:
        return stamp
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M", time.localtime(since_1970 // NANO))


def zone() -> str:
    """Return the name of the user's time zone, such as `CET`, `UTC` or `+0530`."""
    return time.strftime("%Z") or time.strftime("%z")
