"""The logged calls that were not auto, or would not be now, with their answers.

Used by `policy suggest` and `policy fatigue`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import Decision
from harness.app.audit.logs import ChosenLogs
from harness.app.policy.replay import JudgedAgain, LoggedSetting, Replay, recorded_policy
from harness.audit.calls import text
from harness.log.order import LogRecord
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.policy.policy import Policy
from harness.record import replace
from harness.session.state import State


class RecordedPolicies:
    """The policies of sessions, loaded from the policy texts in their logs."""

    def __init__(self, state: State, unknown: str) -> None:
        """Initialize without policies. `unknown` is the consequence of an unknown policy, in words."""
        self.notes: list[str] = []
        """Reasons why policies of sessions are unknown."""
        self._state = state
        self._unknown = unknown
        self._policies: dict[tuple[str, str, str], Policy | str] = {}

    def of(self, log: str, session: LoggedSetting) -> Policy | str:
        """Return the policy of a session, or the reason why it is unknown."""
        key = (log, session.name, str(session.started.get("policy_sha256")))  # which may change within a session
        if key not in self._policies:
            policy = recorded_policy(session.started, self._state)
            if isinstance(policy, str):
                self.notes.append(f"session {session.name}: {policy}; {self._unknown}")
            self._policies[key] = policy if isinstance(policy, str) else policy.guarding(os.path.realpath(log))
        return self._policies[key]


def seen_calls(chosen: ChosenLogs, replay: Replay) -> list[SeenCall]:
    """Return the calls that were not auto then, or are not now, with their answers and granted effects."""
    calls: list[SeenCall] = []
    for log in chosen.paths:
        places: dict[tuple[str, str], int] = {}

        def later(session: str, record: LogRecord, places: Mapping[tuple[str, str], int] = places) -> None:
            place = places.get((session, str(record.get("call"))))
            if place is not None:
                calls[place] = _with(calls[place], record)

        for judged_call in replay.calls(log, chosen.session, later=later):
            is_auto = judged_call.verdict is not None and judged_call.verdict.decision is Decision.AUTO
            if not is_auto or text(judged_call.decision, "decision") != "auto":
                places[judged_call.session, judged_call.call] = len(calls)
                calls.append(_as_seen(judged_call))
    return list(_each_once(calls))


def _each_once(calls: Sequence[SeenCall]) -> Iterator[SeenCall]:
    """Yield every call once, even if a log and a copy of it were both given. Refused calls are yielded each time."""
    keys: set[tuple[str, str]] = set()
    for call in calls:
        if call.refused or (call.session, call.call) not in keys:
            keys.add((call.session, call.call))
            yield call


def _as_seen(judged_call: JudgedAgain) -> SeenCall:
    decision = judged_call.decision
    return SeenCall(
        log=judged_call.log,
        session=judged_call.session,
        call=judged_call.call,
        tool=text(decision, "tool"),
        summary=text(decision, "summary"),
        decided=text(decision, "decision"),
        action=judged_call.action,
        policy=judged_call.policy,
        verdict=judged_call.verdict,
        unseen=judged_call.unseen,
    )


def _with(call: SeenCall, record: LogRecord) -> SeenCall:
    """Return the call with the answer, or with the granted effects, of `record`."""
    if record["kind"] == "approval_answered":
        return replace(call, answer=text(record, "answer"), by=text(record, "by"))
    effects = record.get("effects")
    granted = effects.get("granted") if isinstance(effects, dict) else None
    places = tuple(place for place in granted if isinstance(place, str)) if isinstance(granted, list) else ()
    return replace(call, granted=places, network=isinstance(effects, dict) and effects.get("network") is True)
