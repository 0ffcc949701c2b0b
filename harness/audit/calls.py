"""Calls in a log: one pass over its records joins all records about a call into one `LoggedCall`.

Never trust a value of a record: the log may have been tampered with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Protocol, assert_never

from harness.actions import JsonValue
from harness.audit.batch_results import task_of
from harness.log.order import LogRecord
from harness.log.reader import whole_number
from harness.log.vocabulary import RAN
from harness.messages import Usage
from harness.record import Record, field_names
from harness.text.visible import visible_line

_FIELDS = {
    "call_proposed": "proposed",
    "decision": "decision",
    "approval_asked": "asked",
    "approval_answered": "answered",
    "intent": "intent",
    "outcome": "outcome",
}
ABOUT_CALLS = frozenset(_FIELDS)
"""The kinds of record that are about a call."""
UNJUDGED_KIND = "ran_unjudged"
"""The kind of the only record of a call that another agent ran and that was not allowed."""
CALL_KINDS = ABOUT_CALLS | {"session_started", "session_ended", UNJUDGED_KIND}
"""The kinds that `logged_calls` needs, also for finding calls without an end."""

_NOTHING: LogRecord = {}


class Fate(Enum):
    """The fate of a call, as far as the log knows."""

    RAN = "ran"
    """It ran. Its outcome says how it ended; it may have failed."""
    REFUSED = "refused"
    """The policy or an approver refused it."""
    INVALID = "invalid"
    """It could not be prepared."""
    NOT_RUN = "not run"
    """The run ended before its turn."""
    UNKNOWN = "unknown"
    """It has an intent and no outcome: it may have run, wholly or in part."""
    OPEN = "open"
    """The log ends before its intent."""


def sign_of(status: str) -> str:
    """Return the sign that `run`, `audit show` and reports put before a call that ended with this status."""
    return {"ok": "+", "denied": "x", "blocked": "#", "not_run": "-"}.get(status, "!")


_FATES = {"denied": Fate.REFUSED, "blocked": Fate.REFUSED, "invalid": Fate.INVALID, "not_run": Fate.NOT_RUN}


class Who(Enum):
    """The source of an answer. Only `who_answered` decides who counts as a person."""

    PERSON = "person"
    """A person, or a source with any unknown name."""
    SCRIPT = "script"
    """Prepared answers. Their duration tells nothing about reading."""
    OUTSIDE = "outside"
    """A client or an approver outside harness. Harness cannot tell whether a person reads the questions."""
    NOBODY = "nobody"
    UNSAID = "unsaid"
    """There is no answer, or the log does not name its source."""


QUICK_SECONDS = 1.0
"""An answer in fewer seconds counts as quick: the question was hardly read."""


def who_answered(answer: str, by: str) -> Who:
    """Return the source of an answer, from the answer itself and the log's name beside it."""
    if by == "script":
        return Who.SCRIPT
    if "nobody" in (answer, by):
        return Who.NOBODY
    if by in ("client", "approver"):
        return Who.OUTSIDE
    return Who.PERSON if by else Who.UNSAID


def answerer(record: LogRecord) -> str:
    """Return the source of an answer in the log's words, safe to show. It includes the name of a client or approver."""
    by, name = visible_line(word(record.get("by")), 60), visible_line(word(record.get("who")), 100)
    return f"{by} ({name})" if name else by


def is_typed(proposed: LogRecord) -> bool:
    """Return whether the user typed the call at the prompt (`!command`)."""
    return proposed.get("by") == "person"


def is_of_person(record: LogRecord) -> bool:
    """Return whether a record is a message of the user, not one that the harness sent to request a correction."""
    return record["kind"] == "user_message" and record.get("by") != "harness"


class LoggedCall(Record):
    """The records about one call. A record that the log does not have is empty."""

    log: str
    """Path of the log."""
    session: str
    number: str
    """The call's number in the log; a whole number in every log that verifies, but for unjudged calls."""
    started: LogRecord
    """The `session_started` record of its session."""
    proposed: LogRecord = _NOTHING
    decision: LogRecord = _NOTHING
    asked: LogRecord = _NOTHING
    answered: LogRecord = _NOTHING
    intent: LogRecord = _NOTHING
    outcome: LogRecord = _NOTHING

    @property
    def fate(self) -> Fate:
        """The fate of the call."""
        if not self.outcome:
            return Fate.UNKNOWN if self.intent else Fate.OPEN
        return _FATES.get(text(self.outcome, "status"), Fate.RAN)

    @property
    def is_unjudged(self) -> bool:
        """Whether another agent ran the call and it was not allowed. Its one record is `proposed` and `outcome`."""
        return text(self.outcome, "kind") == UNJUDGED_KIND

    @property
    def decided(self) -> str:
        """`auto`, `confirm`, `deny`, `block`, or `none` for a call that was not judged. Empty if the log lacks it."""
        return text(self.decision, "decision")

    @property
    def tool(self) -> str:
        """The tool's name."""
        return text(self.proposed, "tool") or text(self.decision, "tool") or text(self.outcome, "tool")

    @property
    def summary(self) -> str:
        """The call in one line. Untrusted text."""
        return text(self.decision, "summary") or text(self.proposed, "arguments")

    @property
    def by(self) -> str:
        """The deciding part: a rule with its place, a default, a built-in."""
        return text(self.decision, "by")

    @property
    def time(self) -> str:
        """Time of the model's request (RFC 3339, UTC)."""
        return text(self.proposed or self.decision or self.intent or self.outcome, "time")

    @property
    def user(self) -> str:
        """The operating system account that ran the session. Empty if the log lacks it."""
        return text(self.started, "user")

    @property
    def answer(self) -> str:
        """`yes`, `no`, `stop`, `nobody` or `edit`. Empty if the log has no answer."""
        return text(self.answered, "answer")

    @property
    def answered_by(self) -> Who:
        """The source of the answer."""
        return who_answered(self.answer, word(self.answered.get("by")))

    @property
    def waited(self) -> float | None:
        """Seconds until the answer. `None` if the log lacks them."""
        return number(self.answered, "seconds")

    @property
    def is_quick(self) -> bool:
        """Whether a person gave any answer in under QUICK_SECONDS. False for a call that the person typed."""
        by_person = self.answered_by is Who.PERSON and not is_typed(self.proposed)
        return by_person and self.waited is not None and self.waited < QUICK_SECONDS

    @property
    def task(self) -> str:
        """The batch task that wrote the log. Empty for any other log."""
        return task_of(self.log)

    @property
    def records(self) -> tuple[LogRecord, ...]:
        """All records that the log has about the call, in the order in which the gate writes them."""
        if self.is_unjudged:
            return (self.outcome,)
        every = (self.proposed, self.decision, self.asked, self.answered, self.intent, self.outcome)
        return tuple(record for record in every if record)


MOST_IN_FLIGHT = 10_000
"""Maximum number of calls without an outcome. Only a forged log has more."""


class Joiner:
    """Joins records to calls, one record at a time.

    It keeps only the calls in flight and the first record of each session, so its memory does not grow with the log.
    """

    def __init__(self, log: str) -> None:
        """Initialize with the path of the log, which every call will name."""
        self._log = log
        self._started: dict[str, LogRecord] = {}
        self._flying: dict[str, dict[str, dict[str, LogRecord]]] = {}
        """The calls in flight, by session, in the order of the log. The end of a session ends only its own calls."""
        self._count = 0

    def take(self, record: LogRecord) -> LoggedCall | None:
        """Add one record. Return the finished call if the record is an outcome, otherwise `None`."""
        kind, session = text(record, "kind"), text(record, "session")
        if kind == "session_started":
            self._started[session] = record
        elif kind in ABOUT_CALLS:
            name, flying = word(record.get("call")), self._flying.setdefault(session, {})
            self._count += name not in flying
            flying.setdefault(name, {})[_FIELDS[kind]] = record
            if kind == "outcome":
                self._count -= 1
                return self._call(session, name, flying.pop(name))
        return None

    def unjudged(self, record: LogRecord) -> LoggedCall:
        """Return the call of a record of UNJUDGED_KIND."""
        number = f"unjudged {word(record.get('seq'))}"
        return self._call(text(record, "session"), number, {"proposed": record, "outcome": record})

    def is_full_for(self, record: LogRecord) -> bool:
        """Return whether `record` would begin more than MOST_IN_FLIGHT calls in flight, as only a forged log does."""
        if self._count < MOST_IN_FLIGHT:
            return False
        return word(record.get("call")) not in self._flying.get(text(record, "session"), {})

    def rest(self, session: str | None = None) -> Iterator[LoggedCall]:
        """Yield and drop the calls without an outcome: those of `session`, or of every session in turn if `None`."""
        for session_name in [*self._flying] if session is None else [session]:
            calls = self.open(session_name)
            self._count -= len(self._flying.pop(session_name, ()))
            yield from calls

    def open(self, session: str) -> list[LoggedCall]:
        """Return the calls of a session that have no outcome so far."""
        return [self._call(session, name, records) for name, records in self._flying.get(session, {}).items()]

    def _call(self, session: str, name: str, records: Mapping[str, LogRecord]) -> LoggedCall:
        started = self._started.get(session, _NOTHING)
        return LoggedCall(log=self._log, session=session, number=name, started=started, **records)


def logged_calls(log: str, records: Iterable[LogRecord]) -> Iterator[LoggedCall]:
    """Yield the calls in these records of the log at path `log`.

    A call is yielded once its outcome is read. Calls without an outcome are yielded last.
    """
    joiner = Joiner(log)
    for record in records:
        call = joiner.unjudged(record) if record["kind"] == UNJUDGED_KIND else joiner.take(record)
        if call is not None:
            yield call
    yield from joiner.rest()


class AuditedLogs(Protocol):
    """The logs of a report or an export. They can be read any number of times. Reading raises LogError."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""

    def records(self, kinds: Iterable[str] | None = None) -> Iterator[tuple[str, LogRecord]]:
        """Yield the path of the log and the record, in order, for each record of these kinds (all kinds if `None`)."""

    def calls(self) -> Iterator[LoggedCall]:
        """Yield every call once its outcome has been read."""


def text(record: LogRecord, name: str) -> str:
    """Return a text field of a record. Empty if the field is missing or not a text."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def number(record: LogRecord, name: str) -> float | None:
    """Return a number field of a record. `None` if it is missing, not a number, or too large for a clock or counter."""
    value: JsonValue = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST <= value <= _MOST:
        return None
    return value


def count_in(record: LogRecord, name: str) -> int:
    """Return a count field of a record. 0 if it is missing, not a whole number, negative, or longer than 63 bits."""
    return max(0, whole_number(record.get(name)) or 0)


def usage_in(record: LogRecord) -> Usage:
    """Return the token usage in a record. Missing counts are 0."""
    return Usage(**{name: count_in(record, name) for name in field_names(Usage)})


def objects_in(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects in a list from a record. Other items are skipped. Empty if `value` is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def hosts_of(outcome: LogRecord, *, allowed: bool) -> list[str]:
    """Return the hosts that a command with network access by host reached or was refused.

    Each is `HOST:PORT` and is listed once. Untrusted text, not safe to show.
    """
    alike = (
        connection
        for connection in objects_in(outcome.get("connections"))
        if (connection.get("allowed") is True) is allowed
    )
    return [
        *dict.fromkeys(f"{word(connection.get('host')) or '?'}:{word(connection.get('port'))}" for connection in alike)
    ]


def word(value: object) -> str:
    """Return a value of a record as text: texts unchanged, numbers in digits, a placeholder for lists and objects."""
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


_DECISION = ("decision", "source", "rule", "file", "layer", "reason")


def about_call(call: LoggedCall) -> dict[str, JsonValue]:
    """Return the identity of a call: its log and number, its time, its tool and summary, and its account."""
    return {
        "log": call.log,
        "session": call.session,
        "call": call_number(call),
        "time": call.time,
        "tool": call.tool,
        "summary": call.summary,
        "user": call.user or None,
        "host": text(call.started, "host") or None,
        "task": call.task or None,
    }


def about_decision(call: LoggedCall) -> dict[str, JsonValue]:
    """Return the deciding part of a call. A field that the log lacks is null."""
    fields: dict[str, JsonValue] = {name: text(call.decision, name) or None for name in _DECISION}
    line = call.decision.get("line")
    return {
        **fields,
        "line": line if type(line) is int else None,
        "decided_by": call.by or None,
        "policy_sha256": text(call.decision, "policy_sha256") or None,
    }


def call_number(call: LoggedCall) -> JsonValue:
    """Return the call's number. A text if the log's value is not a whole number of at most 63 bits."""
    number = whole_number(next((record.get("call") for record in call.records), None))
    return call.number if number is None else number


def edited_from(call: LoggedCall) -> JsonValue:
    """Return the number of the call that a person edited into this one; `None` without an edit."""
    return _scalar(call.proposed.get("edited_from"))


def edited_to(call: LoggedCall) -> JsonValue:
    """Return the number of the call that a person edited this one into; `None` without an edit."""
    return _scalar(call.answered.get("edited_to"))


def _scalar(value: JsonValue) -> JsonValue:
    return value if value is None or type(value) is int else word(value)


FAILED_STATUSES = frozenset(RAN) - {"ok"}
"""The statuses of a call that ran and failed."""


class CallStanding(Enum):
    """The source of a call's permission, or its fate without one. The order is that of the list on a report page."""

    UNASKED = "unasked"
    APPROVED = "approved"
    REFUSED = "refused"
    BLOCKED = "blocked"
    NEVER = "never"
    UNKNOWN = "unknown"
    UNACCOUNTED = "unaccounted"


STANDING_NAMES = {
    CallStanding.UNASKED: "ran without a human",
    CallStanding.APPROVED: "ran after a yes",
    CallStanding.REFUSED: "refused",
    CallStanding.BLOCKED: "blocked (the run halted)",
    CallStanding.NEVER: "not run (invalid, or its turn never came)",
    CallStanding.UNKNOWN: "unknown: may have run",
    CallStanding.UNACCOUNTED: "ran, and nothing in the log allows it",
}


def standing_of(call: LoggedCall) -> CallStanding:
    """Return the source of a call's permission, or its fate without one."""
    fate = call.fate
    match fate:
        case Fate.RAN if text(call.answered, "answer") == "yes":
            return CallStanding.APPROVED
        case Fate.RAN:
            return CallStanding.UNASKED if call.decided == "auto" else CallStanding.UNACCOUNTED
        case Fate.REFUSED:
            return CallStanding.BLOCKED if text(call.outcome, "status") == "blocked" else CallStanding.REFUSED
        case Fate.INVALID | Fate.NOT_RUN | Fate.OPEN:
            return CallStanding.NEVER
        case Fate.UNKNOWN:
            return CallStanding.UNKNOWN
        case _:
            assert_never(fate)


def did_fail(call: LoggedCall) -> bool:
    """Return whether a call ran and failed."""
    return call.fate is Fate.RAN and text(call.outcome, "status") in FAILED_STATUSES


def rule_of(call: LoggedCall) -> str:
    """Return the deciding part of a call, with file and line if the log has them. Untrusted text."""
    by = call.by
    file, line = text(call.decision, "file"), call.decision.get("line")
    if not file or file in by:
        return by
    return f"{by} ({file}:{line})" if line is not None else f"{by} ({file})"


def sign_of_call(call: LoggedCall) -> str:
    """Return the sign of a call in a time line. `??` for a call that ran without a permission in the log."""
    standing = standing_of(call)
    if standing is CallStanding.UNACCOUNTED:
        return "??"
    if call.outcome:
        return sign_of(text(call.outcome, "status"))
    return "?" if standing is CallStanding.UNKNOWN else "."
