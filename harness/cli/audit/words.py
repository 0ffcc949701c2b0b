"""How the answers about logs name a call, a time and who decided, in words for people; safe to show."""

from __future__ import annotations

from harness.audit.calls import LoggedCall, Who, text, word
from harness.log_order import LogRecord
from harness.paths import short_place
from harness.visible import visible_line


def moment(record: LogRecord) -> str:
    """Return when a record was written: `2026-01-31 10:00:00Z`."""
    return visible_line(f"{text(record, 'time')[:19].replace('T', ' '):19}Z", 20)


def name(call: LoggedCall) -> str:
    """Return `session#call`, of a batch with the task in front."""
    task = f"{visible_line(call.task, 64)} " if call.task else ""
    return f"{task}{visible_line(call.session, 40)}#{visible_line(call.number, 20)}"


def what(call: LoggedCall, width: int = 100) -> str:
    """Return the tool and what it was to do."""
    return f"{visible_line(call.tool, 60)}  {visible_line(call.summary, width)}"


def why(call: LoggedCall) -> str:
    """Return what decided a call, with the place where that is written."""
    return visible_line(short_place(call.by), 300) or "the log does not say"


def who(call: LoggedCall) -> str:
    """Return who answered the question before a call, a person with the account of the operating system."""
    by = text(call.answered, "by")
    account = f" ({call.user})" if call.user and call.answered_by is Who.PERSON else ""
    return visible_line(f"{by or 'who is not said'}{account}", 100)


def seconds(call: LoggedCall) -> str:
    """Return how long the answer took."""
    value = call.answered.get("seconds")
    return f"{visible_line(word(value), 20)} s" if value is not None else "in a time that is not said"


def quoted(words: str, width: int = 300) -> str:
    """Return what somebody said, in quotation marks; empty where they said nothing."""
    return f'"{visible_line(words, width)}"' if words else ""
