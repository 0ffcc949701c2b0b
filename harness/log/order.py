"""The order of records in an action log: the permitted sequences within each call and each session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from harness.actions import JsonValue, Opening
from harness.errors import LogError
from harness.log.vocabulary import (
    DECISIONS,
    DID_NOT_RUN,
    HOOK_ANSWERS,
    MAX_LOGGED_PATHS,
    RAN,
    STATUSES,
)

LogRecord: TypeAlias = Mapping[str, JsonValue]

_BEFORE: Mapping[str, tuple[str, ...]] = {
    "call_proposed": ("",),
    "decision": ("call_proposed",),
    "approval_asked": ("decision",),
    "approval_answered": ("approval_asked",),
    "intent": ("decision", "approval_answered"),
    "outcome": ("decision", "approval_asked", "approval_answered", "intent"),
}
"""Kinds of record that may precede each kind of record about a call.

An outcome may follow an approval question that failed.
"""
_WITH_A_TOOL = frozenset(("decision", "intent", "outcome"))


class _Call:
    """The last step of a call, and its state from the records so far."""

    __slots__ = (
        "arguments", "by_person", "decision", "effects", "grants", "hooks",
        "number", "opens", "parts", "permitted", "scope", "step", "tool", "walls",
    )  # fmt: skip

    def __init__(self, number: str) -> None:
        self.number = number
        self.step = ""
        self.tool: JsonValue = None
        self.arguments: JsonValue = None
        self.decision: JsonValue = None
        self.effects: JsonValue = None
        self.permitted = False
        self.scope: JsonValue = None
        self.by_person = False
        self.parts: JsonValue = None
        self.grants = 0
        """Number of grants that were made with the call's answer."""
        self.walls: list[JsonValue] | None = None
        """Places that programs granted with its answer may write, inside walls. `None` if no program was granted."""
        self.opens: Sequence[str] = ()
        """Values of each `Opening` that the answer gave to this call."""
        self.hooks = 0
        """Index in HOOK_ANSWERS of the strictest hook answer before the decision."""


class _Session:
    """An open session: its policy, grants and calls, and the counts of its calls."""

    __slots__ = ("asleep", "begun", "calls", "counts", "dry_run", "ended", "grants", "halted", "policy", "wanted")

    def __init__(self, policy: JsonValue, *, dry_run: bool) -> None:
        self.policy = policy
        self.dry_run = dry_run
        self.grants: set[str] = set()
        self.asleep: set[str] = set()
        """Suspended grants: they permit no calls until the question about changed places is answered."""
        self.begun = False
        """Whether the session has records other than grants that were kept from earlier sessions."""
        self.halted = False
        """Whether the user halted the current run."""
        self.calls: dict[str, _Call] = {}
        self.ended: set[str] = set()
        self.counts: dict[str, int] = {}
        self.wanted: dict[str, JsonValue] = {}
        """Expected calls that replace others after an edit, each with the call that it replaces."""

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


class Ledger:
    """The state of every call (proposed, decided, begun, ended), to check that the gate kept its order.

    Of an ended call, only the number is kept, until its session ends.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, _Session | None] = {}
        """Sessions by name. `None` if the session has ended."""
        self._unknown: list[str] = []
        """Calls of ended sessions that have an intent and no outcome."""

    def enter(self, record: LogRecord) -> str:
        """Enter one record. Return a description of the problem with its position, or an empty string."""
        name, kind = str(record["session"]), str(record["kind"])
        if kind == "session_started":
            if name in self._sessions:
                return "starts a session that was started before"
            self._sessions[name] = _Session(record.get("policy_sha256"), dry_run=record.get("dry_run") is True)
            return self._wrong_parent(record) if "parent" in record else ""
        session = self._sessions.get(name)
        if session is None:
            return f"is a {kind} of a session that is not open"
        if kind == "session_ended":
            self._sessions[name] = None
            return self._close(name, session, record)
        if kind == "policy_changed":
            session.policy = record.get("policy_sha256")
        if kind == "grant":
            return _enter_grant(session, record)
        session.begun = True
        if kind == "user_message":
            session.halted = False
        return _enter_work(session, kind, record)

    def _wrong_parent(self, record: LogRecord) -> str:
        """Return the problem with the beginning of a helper, or an empty string. A helper belongs to a running call."""
        parent, number = self._sessions.get(str(record.get("parent"))), str(record.get("parent_call"))
        call = None if parent is None else parent.calls.get(number)
        if call is None or call.step != "intent":
            return f"starts a helper of call {number[:20]}, which is not running"
        return ""

    def _close(self, name: str, session: _Session, record: LogRecord) -> str:
        """Return the problem with the end of a session, or an empty string.

        A call whose last record is its intent is not a breach: it may have run, and `unknown_calls` lists it.
        """
        for number, call in session.calls.items():
            if call.step != "intent":
                return f"ends a session in which call {number} has no end"
            self._unknown.append(f"{name}:{number}")
        counts = record.get("counts", session.counts)
        return (
            "" if counts == session.counts else f"counts {counts}, and the session's records are {session.counts}"[:500]
        )

    def is_open(self, session: str) -> bool:
        """Return whether a session has begun and not ended."""
        return self._sessions.get(session) is not None

    def grants(self, session: str) -> frozenset[str]:
        """Return the names of the grants that are in force in an open session."""
        state = self._sessions.get(session)
        return frozenset() if state is None else frozenset(state.grants)

    def saved(self, session: str) -> dict[str, JsonValue]:
        """Return the state of an open session as JSON, for `restored` in another process. Raises KeyError."""
        state = self._sessions[session]
        if state is None:
            raise KeyError(session)
        fields = {name: _as_json(getattr(state, name)) for name in _Session.__slots__ if name != "calls"}
        calls = [{name: _as_json(getattr(call, name)) for name in _Call.__slots__} for call in state.calls.values()]
        return {**fields, "calls": list[JsonValue](calls)}

    @classmethod
    def restored(cls, session: str, saved: Mapping[str, JsonValue]) -> Ledger:
        """Return a ledger with one open session, from the result of `saved`.

        Raises KeyError, TypeError or ValueError for invalid data.
        """
        state = _Session(None, dry_run=False)
        for name in _Session.__slots__:
            initial = getattr(state, name)
            value = saved[name]
            setattr(state, name, set(map(str, _as_list(value))) if isinstance(initial, set) else value)
        state.calls = {}
        for fields in _as_list(saved["calls"]):
            if not isinstance(fields, dict):
                raise TypeError(f"expected an object, not {type(fields).__name__}")
            call = _Call(str(fields["number"]))
            for name in _Call.__slots__:
                setattr(call, name, fields[name])
            state.calls[call.number] = call
        ledger = cls()
        ledger._sessions[session] = state
        return ledger

    def last_step(self, session: str, call: int) -> str | None:
        """Return the kind of the last record about a call that has not ended. `None` for other calls."""
        state = self._sessions.get(session)
        step = None if state is None else state.calls.get(str(call))
        return None if step is None else step.step

    def running_call(self, session: str) -> int:
        """Return the number of the running call in an open session. Raises LogError if none is running."""
        state = self._sessions.get(session)
        running = () if state is None else [call.number for call in state.calls.values() if call.step == "intent"]
        if not running:
            raise LogError("no call is running")
        return int(running[-1])

    def counts(self, session: str) -> dict[str, int]:
        """Return the counts of an open session's calls: total, and by decision, answer and status."""
        state = self._sessions.get(session)
        return {} if state is None else dict(state.counts)

    @property
    def unknown_calls(self) -> tuple[str, ...]:
        """Calls with an intent and no outcome, as `session:call`."""
        started_calls = (
            f"{name}:{number}"
            for name, session in self._sessions.items()
            if session is not None
            for number, call in session.calls.items()
            if call.step == "intent"
        )
        return (*self._unknown, *started_calls)

    @property
    def open_sessions(self) -> tuple[str, ...]:
        """Sessions that began and did not end."""
        return tuple(name for name, session in self._sessions.items() if session is not None)


def _as_json(value: object) -> JsonValue:
    """Return the value of a slot as JSON: sets as sorted lists."""
    json_value: JsonValue = sorted(value) if isinstance(value, set) else value  # type: ignore[assignment]  # JSON already
    return json_value


def _as_list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, not {type(value).__name__}")
    return value


def _enter_work(session: _Session, kind: str, record: LogRecord) -> str:
    match kind:
        case "hook_answered":
            return _enter_check(session, record)
        case "places_changed" | "places_answered":
            return _enter_places(session, kind, record)
        case "server_asked" if "call" not in record:  # asked before a server starts
            return ""
        case "server_asked":
            call = session.calls.get(str(record.get("call")))
            is_running = call is not None and call.step == "intent"
            return "" if is_running else f"was asked in call {str(record.get('call'))[:20]}, which is not running"
        case "ran_unjudged":
            session.count("ran_unjudged")
            return ""
        case _ if kind in _BEFORE:
            return _enter_call(session, kind, str(record.get("call")), record)
        case _:
            return ""


def _enter_grant(session: _Session, record: LogRecord) -> str:
    """Enter a grant or its revocation. Return a description of the problem with it, or an empty string."""
    name, change = str(record.get("grant")), record.get("change")
    if change == "revoked":
        if name not in session.grants:
            return f"revokes {name}, which is not in force"
        session.grants.discard(name)
        session.asleep.discard(name)
        return ""
    if name in session.grants:
        return f"grants {name}, which is in force already"
    session.grants.add(name)
    if record.get("asleep"):
        session.asleep.add(name)
    if change == "narrowed":
        of = str(record.get("of"))
        if of not in session.grants or of == name:
            return f"narrows {of}, which is not in force"
        session.grants.discard(of)
        return ""
    if change == "mode":  # set by the user at the prompt, without a question
        return "" if record.get("scope") == "session" and record.get("path") else f"adds {name}, which is no mode"
    if change == "kept":
        early = not session.begun and record.get("scope") == "workspace"
        return "" if early else f"takes up {name}, which a session does as it begins, of what was kept"
    return _wrong_grant(session, name, record)


def _enter_places(session: _Session, kind: str, record: LogRecord) -> str:
    """Enter a record of changed places, which suspends grants, or of the answer about them.

    Return the problem, or an empty string.
    """
    grant_values = record.get("grants")
    grants = set(map(str, grant_values)) if isinstance(grant_values, list) else set()
    if kind == "places_answered":
        if not grants <= session.asleep:
            return f"answers for {min(grants - session.asleep)}, which does not sleep"
        if record.get("answer") != "nobody":
            session.asleep -= grants
        return ""
    call = session.calls.get(str(record.get("call")))
    session.asleep |= grants
    if call is None or call.step != "intent":
        return f"tells what call {str(record.get('call'))[:20]} changed, which is not running"
    return "" if grants <= session.grants else f"lets {min(grants - session.grants)} sleep, which is not in force"


def _enter_check(session: _Session, record: LogRecord) -> str:
    """Enter the answer of a hook. Return a description of the problem with it, or an empty string."""
    event, number = record.get("event"), record.get("call")
    if event not in ("before-call", "after-call"):
        return "" if number is None else f"has a hook answer about call {number} at {event}"
    call = session.calls.get(str(number))
    if call is None or call.step != ("call_proposed" if event == "before-call" else "intent"):
        return f"has a hook answer about call {str(number)[:20]}, which is not where hooks are asked ({event})"
    answer = record.get("answer")
    if event == "before-call" and answer in HOOK_ANSWERS:
        call.hooks = max(call.hooks, HOOK_ANSWERS.index(str(answer)))
    return ""


def _wrong_grant(session: _Session, name: str, record: LogRecord) -> str:
    """Return the problem with a grant that an approval must have made, or an empty string."""
    call = session.calls.get(str(record.get("call")))
    if call is None or call.step != "approval_answered" or not call.permitted or call.scope is None or call.by_person:
        return f"adds {name}, and no yes before it says so"
    call.grants += 1
    tools, scope = record.get("tools"), record.get("scope")
    if scope not in (call.scope, "session") or not isinstance(tools, list) or call.tool not in tools:
        return f"adds {name}, which is more than was answered to call {call.number}"
    if isinstance(call.parts, int) and call.grants > call.parts:
        return f"adds {name}, and call {call.number} has not so many parts"
    if record.get("program"):
        call.walls = [*(call.walls or ()), *_as_list(record["write"])]
    return ""


def _enter_call(session: _Session, kind: str, number: str, record: LogRecord) -> str:
    call = session.calls.get(number) or _Call(number)
    step = "outcome" if number in session.ended else call.step
    if step not in _BEFORE[kind]:
        return f"is a {kind} of call {number} after {step or 'nothing'}"
    problem = _breach(session, kind, call, record)
    session.calls[number] = call
    call.step = kind
    match kind:
        case "call_proposed":
            call.tool, call.arguments = record.get("tool"), record.get("arguments_sha256")
            call.by_person = record.get("by") == "person"
            session.count("calls")
        case "decision":
            call.decision, call.effects = record.get("decision"), record.get("effects")
            call.permitted, call.parts = call.decision == "auto", record.get("facet_count")
            session.count(f"decision_{call.decision}")
        case "approval_answered":
            answer = record.get("answer")
            call.permitted, call.scope = answer == "yes", record.get("scope")
            call.opens = _texts(record, "opens")
            session.count(f"answer_{answer}")
            session.halted = session.halted or answer == "halt"
            if answer == "edit":
                session.wanted[str(record.get("edited_to"))] = record.get("call")
        case "outcome":
            session.count(f"status_{record.get('status')}")
            del session.calls[number]
            session.ended.add(number)
        case _:
            pass
    return problem


def _breach(session: _Session, kind: str, call: _Call, record: LogRecord) -> str:
    """Return a description of the gate violation in a record whose kind is in order, or an empty string."""
    if kind in _WITH_A_TOOL and record.get("tool") != call.tool:
        return f"is about another tool than call {call.number} was proposed for"
    match kind:
        case "call_proposed" if session.wanted.pop(call.number, None) != record.get("edited_from"):
            return f"proposes call {call.number} in the place of a call in whose place nobody wanted it"
        case "decision":
            return _wrong_decision(session, call, record)
        case "approval_asked" if call.decision != "confirm":
            return f"asks about call {call.number}, whose decision was {call.decision}"
        case "approval_answered" if record.get("answer") == "yes" and record.get("by") == "nobody":
            return f"has nobody say yes to call {call.number}"
        case "intent":
            return _wrong_intent(session, call, record)
        case "outcome":
            return _wrong_end(call, record.get("status"))
        case _:
            return ""


def _wrong_intent(session: _Session, call: _Call, record: LogRecord) -> str:
    if session.halted and not call.by_person:
        return f"lets call {call.number} run after the person halted the run"
    if session.dry_run:
        return f"lets call {call.number} run in a dry run"
    if not call.permitted:
        return f"is an intent of call {call.number}, which nothing before it permits"
    effects = record.get("effects")
    if effects != call.effects and not _is_permitted(effects, call.effects, call):
        return f"lets call {call.number} do something else than was decided"
    return _other_digest(session, call, record, is_judged=True)


def _is_permitted(effects: JsonValue, decided: JsonValue, call: _Call) -> bool:
    """Return whether effects stay within the decided ones, apart from what the answer granted or opened.

    False if the answer did neither: the effects must be the decided ones then.
    """
    if (call.walls is None and not call.opens) or not isinstance(effects, Mapping) or not isinstance(decided, Mapping):
        return False
    lists = {name: (_texts(effects, name), _texts(decided, name)) for name in ("hosts", "granted", "named")}
    same = all(effects.get(name) == decided.get(name) for name in ("read", "read_count", "write", "write_count"))
    reaches = Opening.NETWORK.value in call.opens
    hosts, granted, named_paths = (set(after).difference(before) for after, before in lists.values())
    return (
        same
        and bool(effects.get("network")) <= (bool(decided.get("network")) or reaches)
        and (not hosts or decided.get("network") is True or reaches)
        and granted <= {str(place) for place in call.walls or ()}
        and (not named_paths or len(lists["named"][1]) == MAX_LOGGED_PATHS)
        and (effects.get("enforcement") != "off" or decided.get("enforcement") == "off")
        and bool(effects.get("sockets", True))
        <= (bool(decided.get("sockets", True)) or Opening.SOCKETS.value in call.opens)
    )


def _texts(effects: Mapping[str, JsonValue], name: str) -> Sequence[str]:
    values = effects.get(name)
    return [str(item) for item in values] if isinstance(values, list) else []


def _wrong_decision(session: _Session, call: _Call, record: LogRecord) -> str:
    is_judged = record.get("decision") != "none"
    if is_judged and not record.get("facet_count"):
        return f"decides on call {call.number}, and on no part of it"
    if is_judged and record.get("decision") in DECISIONS[: call.hooks]:
        return f"decides on call {call.number} more mildly than a hook that was asked about it"
    by_grant = record.get("layer") == "session" and record.get("decision") == "auto"
    if by_grant and str(record.get("rule")) in session.asleep:
        return f"lets call {call.number} run by {str(record.get('rule'))[:100]}, which sleeps"
    if by_grant and str(record.get("rule")) not in session.grants:
        return f"lets call {call.number} run by {str(record.get('rule'))[:100]}, which nobody granted"
    return _other_digest(session, call, record, is_judged=is_judged)


def _other_digest(session: _Session, call: _Call, record: LogRecord, *, is_judged: bool) -> str:
    """Return the problem if a record has other arguments than the proposal, or another policy than the session.

    Otherwise return an empty string.
    """
    if record.get("arguments_sha256") != call.arguments:
        return f"is about other arguments than call {call.number} was proposed with"
    if is_judged and record.get("policy_sha256") != session.policy:
        return f"judges call {call.number} by another policy than its session began with"
    return ""


def _wrong_end(call: _Call, status: JsonValue) -> str:
    is_started = call.step == "intent"
    if status not in STATUSES:
        return f"says that call {call.number} ended in no known way ({status})"
    if not is_started and status in RAN:
        return f"says that call {call.number} ran ({status}), and there is no intent"
    if is_started and status in DID_NOT_RUN:
        return f"says that call {call.number} did not run ({status}) after its intent"
    return ""
