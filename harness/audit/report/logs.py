"""The logs of a report: what verifying each of them showed, in words, and what that does not prove; verifies nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from harness.audit.report.text import digest, line, number
from harness.log_check import Verification
from harness.record import Record


class LogStanding(Record):
    """What is known of one log before it is read for the page."""

    path: str
    found: Verification
    noted_head: str = ""
    """The last head that was noted of it outside the log; empty: none is known."""
    noted_records: int = 0
    unread_from: int | None = None
    """The first line that is no record at all: it and what follows is on no page."""
    is_closed: bool = False
    """Whether it was noted when the log was closed."""


class Soundness(Enum):
    """How a log stands, the worst first."""

    BROKEN = "BROKEN"
    OPEN = "OPEN"
    NO_HEAD = "NO HEAD TO COMPARE"
    WHOLE = "WHOLE"


def soundness(log: LogStanding) -> tuple[Soundness, str]:
    """Return how a log stands, and why, in words (plain text)."""
    found = log.found
    if found.broken_line is not None:
        why = f"Line {found.broken_line} {found.problem}. What this page tells of that line and all after it proves nothing."
        return Soundness.BROKEN, why + _left_out(log)
    if not found.records:
        return Soundness.OPEN, "There is no whole record in this file: nothing was proved."
    if log.noted_head and (found.missed is not None or not found.passed_head):
        return Soundness.BROKEN, "This is not the log of which a head was noted: it was cut, rewritten or replaced."
    open_parts = [f"the last line is torn ({found.torn_bytes} bytes, left out)"] if found.torn else []
    if found.unknown_calls:
        open_parts.append(f"{len(found.unknown_calls)} calls were begun and have no end")
    if found.open_sessions:
        open_parts.append(f"{len(found.open_sessions)} sessions never said that they ended")
    if open_parts:
        return (
            Soundness.OPEN,
            f"Every record follows from the one before, but {', and '.join(open_parts)}. {_compared(log)}",
        )
    if log.noted_head == found.head and log.is_closed:
        return (
            Soundness.WHOLE,
            "Every record follows from the one before, and the head is the one noted when the log was closed.",
        )
    return Soundness.NO_HEAD, f"Every record follows from the one before. {_compared(log)}"


def _left_out(log: LogStanding) -> str:
    if log.unread_from is None:
        return ""
    return f" Line {log.unread_from} is no record: from there on this log is LEFT OUT of this page."


def _compared(log: LogStanding) -> str:
    if not log.noted_head:
        return (
            "No head was noted outside the log, so a tail that was cut off or a log rewritten whole could not be seen."
        )
    if log.noted_head == log.found.head:
        return "Its head is the one that was noted last."
    return (
        f"The last noted head is that of its record {log.noted_records:,}: what was written after it could have been cut or "
        f"rewritten unseen."
    )


_CLASSES = {Soundness.BROKEN: "alarm", Soundness.OPEN: "alarm", Soundness.NO_HEAD: "note", Soundness.WHOLE: "whole"}


def standing_words(logs: Sequence[LogStanding]) -> Iterator[str]:
    """Yield which logs were looked at, whether each verified, and what that proves and does not; HTML."""
    yield '<h2 id="looked-at">What was looked at</h2>\n'
    for log in logs:
        state, why = soundness(log)
        name = f"<strong>{state.value}</strong> <code>{line(log.path, 2000)}</code>"
        yield f'<div class="{_CLASSES[state]}">{name}<br>{line(why, 2000)}'
        yield f"<br>{number(log.found.records)} verified records, head {digest(log.found.head)}</div>\n"
    yield "<details><summary>What a verified log proves, and what it does not</summary><ul>"
    yield "".join(f"<li>{one}</li>" for one in _PROVES)
    yield "</ul><p>It does not prove:</p><ul>"
    yield "".join(f"<li>{one}</li>" for one in _DOES_NOT)
    yield "</ul></details>\n"


_PROVES = (
    "Every record is followed by one that holds its SHA-256: none was changed, dropped, added or moved before the head.",
    "Each run stands after a decision that allowed it, or a yes; each call has one end, or is listed as unknown.",
    "With a head that was noted elsewhere: up to there these are the records as they stood then; nothing was cut or rewritten.",
)
_DOES_NOT = (
    "that the harness was honest, or unmodified: it wrote both the records and the chain;",
    "anything after the last head that was noted elsewhere; without one, a log that was rewritten whole looks the same;",
    "who sat at the keyboard: only which account was used;",
    "what commands did beyond what they printed: their effects are not listed file by file;",
    "the time of day: it is the machine's clock, which can be set;",
    "that what was masked as a secret was harmless.",
)
