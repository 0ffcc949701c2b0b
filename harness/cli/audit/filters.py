"""The flags of `harness audit show` that choose calls, read strictly; the clock enters here, for `3d` ago."""

from __future__ import annotations

import re
from argparse import Namespace

from harness.audit.filters import CallFilter
from harness.errors import UsageError
from harness.visible import visible_line

_AGO = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LEAP_SECOND = re.compile(r"([0-9-]{10}[Tt][0-9]{2}:[0-9]{2}:)60(?:\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_CALL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def call_filter(arguments: Namespace, now: float) -> CallFilter:
    """Return the conditions that the flags set; `now` is in seconds since 1970.

    Raises UsageError for what is no time, or no number of a call.
    """
    if arguments.call and not _CALL.fullmatch(arguments.call):
        raise UsageError(f"--call: {visible_line(arguments.call)!r} is no number of a call: 1, 2, 3 ...")
    since = _moment("--since", arguments.since, now, "T00:00:00.000000Z") if arguments.since else ""
    until = _moment("--until", arguments.until, now, "T23:59:59.999999Z") if arguments.until else ""
    if since and until and since > until:
        raise UsageError(f"--since {since} is after --until {until}")
    return CallFilter(
        tool=arguments.tool or "",
        decision=arguments.decision or "",
        answer=arguments.answer or "",
        rule=arguments.rule or "",
        path=arguments.path or "",
        since=since,
        until=until,
        call=arguments.call or "",
    )


def _moment(flag: str, word: str, now: float, of_a_day: str) -> str:
    """Return a time in the log's form: of RFC 3339, of a date (`of_a_day` completes it, in UTC), or of how long ago."""
    import datetime as dt

    ago = _AGO.fullmatch(word)
    try:
        if ago:
            moment = dt.datetime.fromtimestamp(now - int(ago[1]) * _SECONDS[ago[2]], dt.UTC)
        elif _DATE.fullmatch(word):
            dt.date.fromisoformat(word)
            return word + of_a_day
        else:
            # RFC 3339 has the second 60, which datetime does not: it lies behind all others of its minute.
            moment = dt.datetime.fromisoformat(_LEAP_SECOND.sub(r"\g<1>59.999999\g<2>", word))
        if moment.tzinfo is not None:  # RFC 3339 wants an offset: without one, nobody knows whose clock is meant
            # As the log writes times, so that they can be compared as texts; strftime would not fill up a year.
            return moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(
        f"{flag}: {visible_line(word)!r} is no time: 2026-01-31, 2026-01-31T10:00:00Z, or how long ago: 90m, 2h, 3d"
    )
