"""The calls of old logs that were not auto, or would not be now, with their answers (`policy suggest`, `policy fatigue`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from harness.app.audit.logs import ChosenLogs
from harness.app.policy.replay import JudgedAgain, LoggedSetting, Replay, recorded_policy
from harness.audit.calls import text
from harness.decisions import Decision
from harness.log.order import LogRecord
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.policy.policy import Policy
from harness.record import replace
from harness.session.state import State


class RecordedPolicies:
    """The policies that sessions ran under, out of the texts that their logs hold."""

    def __init__(self, state: State, unknown: str) -> None:
        """`unknown` is the consequence of an unknown policy, in words."""
        self.notes: list[str] = []
        """Reasons why policies of sessions are unknown."""
        self._state = state
        self._unknown = unknown
        self._known: dict[tuple[str, str, str], Policy | str] = {}

    def of(self, log: str, session: LoggedSetting) -> Policy | str:
        """Return the policy of a session, or the reason why it is unknown."""
        key = (log, session.name, str(session.started.get("policy_sha256")))  # which may change within a session
        if key not in self._known:
            found = recorded_policy(session.started, self._state)
            if isinstance(found, str):
                self.notes.append(f"session {session.name}: {found}; {self._unknown}")
            self._known[key] = found if isinstance(found, str) else found.guarding(os.path.realpath(log))
        return self._known[key]


def seen_calls(chosen: ChosenLogs, replay: Replay) -> list[SeenCall]:
    """Return the calls that were not auto then, or are not now, with their answers and what they were granted."""
    seen: list[SeenCall] = []
    for log in chosen.paths:
        places: dict[tuple[str, str], int] = {}

        def later(session: str, record: LogRecord, places: Mapping[tuple[str, str], int] = places) -> None:
            place = places.get((session, str(record.get("call"))))
            if place is not None:
                seen[place] = _with(seen[place], record)

        for judged in replay.calls(log, chosen.session, later=later):
            is_auto = judged.verdict is not None and judged.verdict.decision is Decision.AUTO
            if not is_auto or text(judged.decision, "decision") != "auto":
                places[judged.session, judged.call] = len(seen)
                seen.append(_as_seen(judged))
    return list(_each_once(seen))


def _each_once(seen: Sequence[SeenCall]) -> Iterator[SeenCall]:
    """Yield every call once, also where a log was given with a copy of it: but a refusal in any of them."""
    known: set[tuple[str, str]] = set()
    for one in seen:
        if one.refused or (one.session, one.call) not in known:
            known.add((one.session, one.call))
            yield one


def _as_seen(judged: JudgedAgain) -> SeenCall:
    decision = judged.decision
    return SeenCall(
        log=judged.log,
        session=judged.session,
        call=judged.call,
        tool=text(decision, "tool"),
        summary=text(decision, "summary"),
        decided=text(decision, "decision"),
        action=judged.action,
        policy=judged.policy,
        verdict=judged.verdict,
        unseen=judged.unseen,
    )


def _with(one: SeenCall, record: LogRecord) -> SeenCall:
    """Return the call with its answer, or with what it was granted when it ran."""
    if record["kind"] == "approval_answered":
        return replace(one, answer=text(record, "answer"), by=text(record, "by"))
    effects = record.get("effects")
    granted = effects.get("granted") if isinstance(effects, dict) else None
    places = tuple(place for place in granted if isinstance(place, str)) if isinstance(granted, list) else ()
    return replace(one, granted=places, network=isinstance(effects, dict) and effects.get("network") is True)
