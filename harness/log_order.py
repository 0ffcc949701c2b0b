"""The order of an action log: which record may follow which, call by call and session by session; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from harness.actions import JsonValue

LogRecord: TypeAlias = Mapping[str, JsonValue]

MASK = "[masked]"
"""What stands in a record where a secret was."""
SUMMARY = "summary"
"""The `purpose` of a model_request and a model_response that are no part of the conversation."""

_RAN = ("ok", "failed", "timeout", "interrupted", "crashed")
_DID_NOT_RUN = ("invalid", "denied", "blocked", "not_run")
_BEFORE: Mapping[str, tuple[str | None, ...]] = {
    "call_proposed": (None,),
    "decision": ("call_proposed",),
    "approval_asked": ("decision",),
    "approval_answered": ("approval_asked",),
    "intent": ("decision", "approval_answered"),
    "outcome": ("decision", "approval_asked", "approval_answered", "intent"),
}
"""What may stand before a record about a call. An outcome follows a question where the question failed."""


class Ledger:
    """Which calls were proposed, decided, begun and ended: the order that the gate promises."""

    def __init__(self) -> None:
        self.sessions: dict[str, bool] = {}
        self.steps: dict[str, str] = {}
        self.decisions: dict[str, JsonValue] = {}
        self.permitted: dict[str, bool] = {}

    def enter(self, record: LogRecord) -> str:
        """Take in one record; return what is wrong with its place in the order, or nothing."""
        session, kind = str(record["session"]), str(record["kind"])
        if kind == "session_started":
            if session in self.sessions:
                return "starts a session that was started before"
            self.sessions[session] = True
            return ""
        if not self.sessions.get(session):
            return f"is a {kind} of a session that is not open"
        if kind == "session_ended":
            self.sessions[session] = False
            return self._close(session)
        if kind not in _BEFORE:
            return ""
        return self._enter_call(kind, f"{session}:{record.get('call')}", record)

    def _close(self, session: str) -> str:
        """Forget the calls of a session that have an end; return what is wrong with the others, or nothing.

        A call whose intent was the last is no breach: it may have run, and `unknown_calls` says so.
        """
        of_session = [call for call in self.steps if call.startswith(f"{session}:")]
        for call in of_session:
            if self.steps[call] == "outcome":
                del self.steps[call]
            elif self.steps[call] != "intent":
                return f"ends a session in which call {call.partition(':')[2]} has no end"
        return ""

    def _enter_call(self, kind: str, call: str, record: LogRecord) -> str:
        step = self.steps.get(call)
        if step not in _BEFORE[kind]:
            return f"is a {kind} of call {record.get('call')} after {step or 'nothing'}"
        problem = self._breach(kind, call, record, step)
        if kind == "decision":
            self.decisions[call] = record.get("decision")
            self.permitted[call] = record.get("decision") == "auto"
        elif kind == "approval_answered":
            self.permitted[call] = record.get("answer") == "yes"
        elif kind == "outcome":
            # Nothing is asked about them any more; a run of many thousand calls would keep them all.
            self.decisions.pop(call, None)
            self.permitted.pop(call, None)
        self.steps[call] = kind
        return problem

    def _breach(self, kind: str, call: str, record: LogRecord, step: str | None) -> str:
        """Return what the gate would never do although the kinds are in order, or nothing."""
        number, status = record.get("call"), record.get("status")
        if kind == "outcome" and status not in (*_RAN, *_DID_NOT_RUN):
            return f"says that call {number} ended in no known way ({status})"
        if kind == "approval_asked" and self.decisions[call] != "confirm":
            return f"asks about call {number}, whose decision was {self.decisions[call]}"
        if kind == "intent" and not self.permitted[call]:
            return f"is an intent of call {number}, which nothing before it permits"
        if kind == "outcome" and step != "intent" and status in _RAN:
            return f"says that call {number} ran ({status}), and there is no intent"
        if kind == "outcome" and step == "intent" and status in _DID_NOT_RUN:
            return f"says that call {number} did not run ({status}) after its intent"
        return ""

    @property
    def unknown_calls(self) -> tuple[str, ...]:
        """Calls with an intent and no outcome."""
        return tuple(call.partition(":")[2] for call, step in self.steps.items() if step == "intent")

    @property
    def open_sessions(self) -> tuple[str, ...]:
        """Sessions that began and did not end."""
        return tuple(session for session, is_open in self.sessions.items() if is_open)
