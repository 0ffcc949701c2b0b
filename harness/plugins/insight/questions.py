"""Queries over logged calls: calls that needed approval (`questions`), refused ones, and those without an end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from harness.actions import JsonValue
from harness.audit.batch_results import task_of
from harness.audit.calls import (
    Fate,
    Joiner,
    LoggedCall,
    Who,
    about_call,
    about_decision,
    call_number,
    edited_from,
    edited_to,
    text,
)
from harness.log.clocks import NANO, nanoseconds, seconds_between
from harness.log.order import LogRecord
from harness.record import Record

BURST_SECONDS, BURST = 10.0, 3
"""A burst is at least BURST approvals within BURST_SECONDS."""
_DETOURS = (
    " Do not retry this call as it is, and do not get at what was refused another way.",
    " Do not get at what was refused another way.",
    " Do not retry this call, and do not seek the same effect another way.",  # in older logs
    " The run stops here.",
)


class LoggedQuestion(Record):
    """A question that the gate asked."""

    call: LoggedCall
    in_burst: bool
    """Whether the answer is one of at least BURST approvals by a person within BURST_SECONDS."""

    def fields(self) -> dict[str, JsonValue]:
        """Return its fields for JSON."""
        answer = self.call.answered
        return {
            "row": "question",
            **about_call(self.call),
            **about_decision(self.call),
            "time": text(self.call.asked or self.call.answered, "time"),
            "shown_sha256": text(self.call.asked, "shown_sha256") or None,
            "answer": self.call.answer or None,
            "answered_at": text(answer, "time") or None,
            "answered_by": text(answer, "by") or None,
            "words": text(answer, "words"),
            "seconds": self.call.waited,
            "quick": self.call.is_quick,
            "in_burst": self.in_burst,
            "edited_to": edited_to(self.call),
            "edited_from": edited_from(self.call),
            "fate": self.call.fate.value,
            "status": text(self.call.outcome, "status") or None,
        }


def questions(calls: Iterable[LoggedCall]) -> Iterator[LoggedQuestion]:
    """Yield the questions among these calls, in their order. Keeps those of the last BURST_SECONDS in memory.

    A burst never spans two logs, since a log has the answers of one person at one terminal.
    """
    waiting: deque[_Waiting] = deque()
    yeses: deque[_Waiting] = deque(maxlen=BURST)
    for call in calls:
        if not (call.asked or call.answered):
            continue
        if waiting and waiting[-1].call.log != call.log:
            yield from _released(waiting)
            yeses.clear()
        question = _Waiting(call)
        waiting.append(question)
        if question.is_yes:
            yeses.append(question)
            if len(yeses) == BURST and _within(yeses[0], question):
                for yes in yeses:
                    yes.in_burst = True
        while waiting and not (waiting[0] in list(yeses)[-BURST + 1 :] and _within(waiting[0], question)):
            yield waiting.popleft().question()
    yield from _released(waiting)


class _Waiting:
    """A question that may still prove to be part of a burst, depending on the next answers."""

    def __init__(self, call: LoggedCall) -> None:
        self.call = call
        self.in_burst = False
        self.is_yes = call.answer == "yes" and call.answered_by is Who.PERSON

    def question(self) -> LoggedQuestion:
        return LoggedQuestion(call=self.call, in_burst=self.in_burst)


def _within(first: _Waiting, last: _Waiting) -> bool:
    earlier, later = first.call.answered, last.call.answered or last.call.asked
    if first.call.session == last.call.session:
        between = seconds_between(earlier, later)
        return between is not None and between <= BURST_SECONDS
    # Monotonic clocks of two sessions cannot be compared: they may be of two boots.
    start, end = nanoseconds(earlier.get("time")), nanoseconds(later.get("time"))
    return start is not None and end is not None and abs(end - start) <= BURST_SECONDS * NANO


def _released(waiting: deque[_Waiting]) -> Iterator[LoggedQuestion]:
    while waiting:
        yield waiting.popleft().question()


class Refuser(Enum):
    """The source of a refusal."""

    POLICY = "policy"
    """A rule, a default or a built-in; `decided_by` names it."""
    PERSON = "person"
    SCRIPT = "script"
    """Prepared answers."""
    OUTSIDE = "outside"
    """A client or an approver outside harness."""
    NOBODY = "nobody"
    """The call needed approval, and no approver was present."""
    EDIT = "edit"
    """A person edited the call, and the gate judged the edited call instead."""
    TOOL = "tool"
    """The call was invalid."""
    UNSAID = "unsaid"
    """The log does not say."""


_REFUSERS = {
    Who.PERSON: Refuser.PERSON,
    Who.SCRIPT: Refuser.SCRIPT,
    Who.OUTSIDE: Refuser.OUTSIDE,
    Who.NOBODY: Refuser.NOBODY,
    Who.UNSAID: Refuser.UNSAID,
}


class LoggedRefusal(Record):
    """A call that was refused, or that was invalid."""

    call: LoggedCall

    @property
    def refuser(self) -> Refuser:
        """The source of the refusal."""
        call = self.call
        if call.fate is Fate.INVALID:
            return Refuser.TOOL
        match call.answer:
            case "edit":
                return Refuser.EDIT
            case "nobody":
                return Refuser.NOBODY
            case "no" | "stop" | "halt":
                return _REFUSERS[call.answered_by]
            case _:
                return Refuser.POLICY if call.decided in ("deny", "block") else Refuser.UNSAID

    @property
    def words(self) -> str:
        """The person's words."""
        return text(self.call.answered, "words")

    @property
    def reason(self) -> str:
        """The policy's reason, or the problem of an invalid call."""
        if self.call.fate is Fate.INVALID:
            return text(self.call.outcome, "content")
        return text(self.call.decision, "reason")

    @property
    def hint(self) -> str:
        """The policy's hint. Cut out of the refusal text by removing its other parts."""
        if self.refuser not in (Refuser.POLICY, Refuser.NOBODY):
            return ""
        rest = _after_part(text(self.call.outcome, "content"), self.call)
        return rest.removeprefix(" Hint: ") if rest.startswith(" Hint: ") else ""

    def fields(self) -> dict[str, JsonValue]:
        """Return its fields for JSON."""
        answer = self.call.answered
        return {
            "row": "refusal",
            **about_call(self.call),
            **about_decision(self.call),
            "status": text(self.call.outcome, "status"),
            "refused_by": self.refuser.value,
            "reason": self.reason,
            "hint": self.hint or None,
            "answered_by": text(answer, "by") or None,
            "words": self.words,
            "edited_to": edited_to(self.call),
            "told": text(self.call.outcome, "content"),
            "ended_at": text(self.call.outcome, "time"),
        }


class RefusalCounts:
    """Counts of calls that did not run, by reason."""

    def __init__(self) -> None:
        self.refused: dict[Refuser, int] = {}
        self.invalid = 0
        self.never_came = 0
        """Number of calls that were never reached, because the run ended before."""

    def fields(self) -> dict[str, JsonValue]:
        """Return the counts as fields for JSON: refusals by source, and the others."""
        by: dict[str, JsonValue] = {
            refuser.value: self.refused.get(refuser, 0) for refuser in Refuser if refuser is not Refuser.TOOL
        }
        return {"refused": sum(self.refused.values()), "by": by, "invalid": self.invalid, "not_run": self.never_came}


def refusals(calls: Iterable[LoggedCall], counts: RefusalCounts, *, invalid: bool) -> Iterator[LoggedRefusal]:
    """Yield the refused calls, with `invalid` also the invalid ones. Add each call that did not run to `counts`."""
    for call in calls:
        refusal = LoggedRefusal(call=call)
        match call.fate:
            case Fate.REFUSED:
                counts.refused[refusal.refuser] = counts.refused.get(refusal.refuser, 0) + 1
                yield refusal
            case Fate.INVALID:
                counts.invalid += 1
                if invalid:
                    yield refusal
            case Fate.NOT_RUN:
                counts.never_came += 1
            case _:
                pass


def _after_part(reason_text: str, call: LoggedCall) -> str:
    """Return the text after `Part: ...` in a refusal (see ruling.refusal_text), without its last sentence.

    Only a part that the decision names is accepted. So `Hint:` inside a command does not count as the policy's hint.
    """
    for end in _DETOURS:
        reason_text = reason_text.removesuffix(end)
    reason = f"{text(call.decision, 'reason').rstrip('.')}."
    place = reason_text.find(reason)
    if place < 0:
        return ""
    rest = reason_text[place + len(reason) :]
    facets = call.decision.get("facets")
    parts = [text(facet, "facet") for facet in facets if isinstance(facet, dict)] if isinstance(facets, list) else []
    for part in sorted({part for part in parts if part}, key=len, reverse=True):
        for part_text in (f" Part: `{part}`.", f" Part: {part}."):  # logs before 2026-11-23 have no quotes around it
            if rest.startswith(part_text):
                return rest.removeprefix(part_text)
    return rest


class OpenSession(Record):
    """A session whose end is not in the log."""

    log: str
    started: LogRecord
    not_begun: tuple[LoggedCall, ...]
    """Calls of the session without an intent record. They did not run."""

    def fields(self, *, in_use: bool, torn: bool) -> dict[str, JsonValue]:
        """Return its fields for JSON."""
        return {
            "row": "open_session",
            "log": self.log,
            "session": text(self.started, "session"),
            "time": text(self.started, "time"),
            "mode": text(self.started, "mode") or None,
            "model": text(self.started, "model") or None,
            "workspace": text(self.started, "workspace") or None,
            "user": text(self.started, "user") or None,
            "host": text(self.started, "host") or None,
            "calls_not_begun": [call_number(call) for call in self.not_begun],
            "in_use": in_use,
            "torn": torn,
            "task": task_of(self.log) or None,
        }


class UnknownCall(Record):
    """A call with an intent and without an outcome: it may have run, wholly or in part."""

    call: LoggedCall

    @property
    def path(self) -> str:
        """The file that the call was to change. Empty if unknown."""
        return text(self._change, "path")

    @property
    def before_sha256(self) -> str | None:
        """Digest of the file before. `None` if it did not exist, or if unknown."""
        return text(self._change, "before_sha256") or None

    @property
    def after_sha256(self) -> str | None:
        """Intended digest of the file. `None` if unknown."""
        return text(self._change, "after_sha256") or None

    @property
    def could_write(self) -> list[str] | None:
        """The paths that the call was permitted to write, as far as the log names them. `None` if unknown."""
        effects = self.call.intent.get("effects")
        effects = effects if isinstance(effects, dict) else {}
        write, granted = effects.get("write"), effects.get("granted")
        if not isinstance(write, list):
            return None
        return [path for path in (*write, *(granted if isinstance(granted, list) else ())) if isinstance(path, str)]

    @property
    def _change(self) -> LogRecord:
        change = self.call.intent.get("change")
        return change if isinstance(change, dict) else {}

    def fields(self, *, in_use: bool, file_now: str) -> dict[str, JsonValue]:
        """Return its fields for JSON."""
        return {
            "row": "unknown_call",
            **about_call(self.call),
            **about_decision(self.call),
            "begun_at": text(self.call.intent, "time"),
            "confinement": text(self.call.intent, "confinement") or None,
            "cwd": text(self.call.intent, "cwd") or None,
            "answer": text(self.call.answered, "answer") or None,
            "answered_by": text(self.call.answered, "by") or None,
            "path": self.path or None,
            "before_sha256": self.before_sha256,
            "after_sha256": self.after_sha256,
            "file_now": file_now or None,
            "could_write": None if self.could_write is None else list[JsonValue](self.could_write),
            "in_use": in_use,
        }


def open_ends(log: str, records: Iterable[LogRecord]) -> Iterator[UnknownCall | OpenSession]:
    """Yield the unknown calls in these records (of CALL_KINDS) of the log at path `log`, then its open sessions."""
    joiner = Joiner(log)
    started: dict[str, LogRecord] = {}
    for record in records:
        joiner.take(record)
        if record["kind"] == "session_started":
            started[text(record, "session")] = record
        elif record["kind"] == "session_ended":
            started.pop(text(record, "session"), None)
            yield from _unknown(joiner.rest(text(record, "session")))
    not_begun: dict[str, list[LoggedCall]] = {}
    for call in joiner.rest():
        if call.fate is Fate.UNKNOWN:
            yield UnknownCall(call=call)
        else:
            not_begun.setdefault(call.session, []).append(call)
    for session, record in started.items():
        yield OpenSession(log=log, started=record, not_begun=tuple(not_begun.get(session, ())))


def _unknown(calls: Iterable[LoggedCall]) -> Iterator[UnknownCall]:
    return (UnknownCall(call=call) for call in calls if call.fate is Fate.UNKNOWN)
