"""Calls as a log tells of them: the records about each, joined in one pass; it judges and verifies nothing.

The values of the records are data of unknown make: whoever reads a log may be shown one that was tampered with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from harness.actions import JsonValue
from harness.log_order import LogRecord
from harness.record import Record

_ABOUT_CALLS = frozenset(("call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome"))
CALL_KINDS = _ABOUT_CALLS | {"session_started", "session_ended"}
"""What `logged_calls` needs to be given; other kinds it passes over."""

_NOTHING: LogRecord = {}


class Fate(Enum):
    """What became of a call, as far as the log knows."""

    RAN = "ran"
    """It ran; its outcome says how it ended, a failure included."""
    REFUSED = "refused"
    """A policy, or whoever was asked, said no."""
    INVALID = "invalid"
    """It could not be prepared."""
    NOT_RUN = "not run"
    """Its turn never came."""
    UNKNOWN = "unknown"
    """It was begun and has no end: it may have run, wholly or in part."""
    OPEN = "open"
    """The log ends before it was begun."""


_FATES = {"denied": Fate.REFUSED, "blocked": Fate.REFUSED, "invalid": Fate.INVALID, "not_run": Fate.NOT_RUN}


class LoggedCall(Record):
    """The records about one call. Those that the log does not have are empty."""

    log: str
    """Path of the log."""
    session: str
    number: str
    """As the log writes it; a whole number in every log that verifies."""
    started: LogRecord
    """The record with which its session began."""
    proposed: LogRecord = _NOTHING
    decision: LogRecord = _NOTHING
    asked: LogRecord = _NOTHING
    answered: LogRecord = _NOTHING
    intent: LogRecord = _NOTHING
    outcome: LogRecord = _NOTHING

    @property
    def fate(self) -> Fate:
        """What became of it."""
        if not self.outcome:
            return Fate.UNKNOWN if self.intent else Fate.OPEN
        return _FATES.get(text(self.outcome, "status"), Fate.RAN)

    @property
    def decided(self) -> str:
        """`auto`, `confirm`, `deny`, `block`, or `none` where nothing judged it; empty where the log does not say."""
        return text(self.decision, "decision")

    @property
    def tool(self) -> str:
        """The tool's name."""
        return text(self.proposed, "tool") or text(self.decision, "tool")

    @property
    def summary(self) -> str:
        """What it was, in a line: hostile text."""
        return text(self.decision, "summary") or text(self.proposed, "arguments")

    @property
    def by(self) -> str:
        """What decided: a rule with its place, a default, a built-in."""
        return text(self.decision, "by")

    @property
    def time(self) -> str:
        """When the model asked for it (RFC 3339, UTC)."""
        return text(self.proposed or self.decision or self.intent or self.outcome, "time")

    @property
    def user(self) -> str:
        """The account of the operating system under which the session ran; empty where the log does not say."""
        return text(self.started, "user")

    @property
    def records(self) -> tuple[LogRecord, ...]:
        """What the log has of it, in the order of the gate."""
        every = (self.proposed, self.decision, self.asked, self.answered, self.intent, self.outcome)
        return tuple(record for record in every if record)


class Joiner:
    """Joins records to calls as they come.

    Keeps the calls in flight and the records that sessions began with, and no more: memory does not grow with the log.
    """

    def __init__(self, log: str) -> None:
        """`log` is the path that the calls will name."""
        self._log = log
        self._started: dict[str, LogRecord] = {}
        self._flying: dict[tuple[str, str], dict[str, LogRecord]] = {}

    def take(self, record: LogRecord) -> LoggedCall | None:
        """Take in one record; return the call that it ends, if it is an outcome."""
        kind, session = text(record, "kind"), text(record, "session")
        if kind == "session_started":
            self._started[session] = record
        elif kind in _ABOUT_CALLS:
            key = session, word(record.get("call"))
            self._flying.setdefault(key, {})[kind] = record
            if kind == "outcome":
                return _call(self._log, key, self._started, self._flying.pop(key))
        return None

    def rest(self, session: str | None = None) -> Iterator[LoggedCall]:
        """Yield the calls (of one session, or of all) that have no end, and forget them."""
        for key in [key for key in self._flying if session is None or key[0] == session]:
            yield _call(self._log, key, self._started, self._flying.pop(key))


def logged_calls(log: str, records: Iterable[LogRecord]) -> Iterator[LoggedCall]:
    """Yield the calls in these records of the log at path `log`, each when its end is known, those without one last."""
    joiner = Joiner(log)
    for record in records:
        call = joiner.take(record)
        if call is not None:
            yield call
    yield from joiner.rest()


def _call(log: str, key: tuple[str, str], started: dict[str, LogRecord], found: dict[str, LogRecord]) -> LoggedCall:
    session, number = key
    return LoggedCall(
        log=log,
        session=session,
        number=number,
        started=started.get(session, _NOTHING),
        proposed=found.get("call_proposed", _NOTHING),
        decision=found.get("decision", _NOTHING),
        asked=found.get("approval_asked", _NOTHING),
        answered=found.get("approval_answered", _NOTHING),
        intent=found.get("intent", _NOTHING),
        outcome=found.get("outcome", _NOTHING),
    )


def text(record: LogRecord, name: str) -> str:
    """Return a text of a record; empty where it is none."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def number(record: LogRecord, name: str) -> float | None:
    """Return a number of a record; None where it is none, or one that no clock and no counter comes to."""
    value: JsonValue = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST <= value <= _MOST:
        return None
    return value


def word(value: JsonValue) -> str:
    """Return a value of a record in a word, whatever it is: a text as it is, a number in digits."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return "(not a text)"


_MOST = 1 << 63
