"""`harness policy suggest`: rules that would have spared a person's repeated approvals, to be read. No policy is written."""

from __future__ import annotations

import itertools
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.audit.calls import text
from harness.audit.suggestions.candidates import SeenCall
from harness.audit.suggestions.proposals import DroppedCandidate, RuleProposal, Suggestions, suggestions
from harness.cli.audit.logs import BROKEN, ChosenLogs, chosen_logs
from harness.cli.console import complain
from harness.cli.policy.replay import JudgedAgain, LoggedSetting, Replay, recorded_policy
from harness.cli.state import State
from harness.log.order import LogRecord
from harness.policy.policy import Policy
from harness.policy.rules import Decision
from harness.record import replace
from harness.text.visible import visible_line

CUT_OFF = "no head was noted when it was closed; a refusal at its end could have been cut off"
MOST_CALLS = 5
"""Calls that are named in one line; of more, the number is said."""


def suggest_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the proposals as a piece of a policy, or as objects, and return the exit code. Raises HarnessError."""
    chosen = chosen_logs(arguments, environment)
    policies = _Policies(State.of(environment))
    chosen.verify_all()
    replay = Replay(policies.of, environment, whole_only=True, findings=chosen.findings)
    seen = _seen(chosen, replay)
    for note in (*replay.notes, *policies.notes, *(f"{log}: {CUT_OFF}" for log in replay.without_head)):
        complain(note)
    found = suggestions(seen, arguments.least)
    if arguments.json:
        lines: Iterator[str] = map(json.dumps, _objects(found, replay))
    else:
        lines = itertools.chain(_lines(found, State.of(environment), arguments.least), _standing_lines(replay))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return BROKEN if replay.broken else chosen.code


class _Policies:
    """The policies that sessions ran under, out of the texts that their logs hold."""

    def __init__(self, state: State) -> None:
        self.notes: list[str] = []
        """Why that of a session is not known."""
        self._state = state
        self._known: dict[tuple[str, str], Policy | str] = {}

    def of(self, log: str, session: LoggedSetting) -> Policy | str:
        """Return what held in a session, or why that is not known."""
        key = log, session.name
        if key not in self._known:
            found = recorded_policy(session.started, self._state)
            if isinstance(found, str):
                counts = "what was approved in it counts for nothing, what was refused does"
                self.notes.append(f"session {session.name}: {found}; {counts}")
            self._known[key] = found if isinstance(found, str) else found.guarding(os.path.realpath(log))
        return self._known[key]


def _seen(chosen: ChosenLogs, replay: Replay) -> list[SeenCall]:
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


def _lines(found: Suggestions, state: State, least: int) -> Iterator[str]:
    """Yield a piece of a policy: rules, and all else in comments."""
    yield (
        f"# {len(found.proposals)} rules are suggested; together they would have spared {found.spared} of the "
        f"{found.questions} questions that a person"
    )
    yield "# said yes to in these logs. Nothing was changed by this command: read each rule before it allows anything."
    for proposal in found.proposals:
        yield ""
        yield from _proposal_lines(proposal)
    if found.dropped:
        yield from ("", f"# Not suggested, though it was approved {least} times or more:")
    for dropped in found.dropped:
        calls = f" ({_named(dropped.calls)})" if dropped.calls else ""
        yield f"#   {visible_line(dropped.what, 120)}: {visible_line(dropped.why, 300)}{calls}"
    if found.unjudged:
        yield ""
        yield f"# Not known is what they would do to {len(found.unjudged)} calls that the logs hold only in part, or masked:"
        yield f"#   {_named(found.unjudged)}"
    if found.proposals:
        yield ""
        yield f"# To use them: append what you want to a policy of yours ({visible_line(state.user_policy, 500)}, which takes"
        yield "# the place of the shipped one: begin with a copy of that; or a file for --policy). A rule about files holds in"
        yield "# every workspace that the policy holds in. Then: harness policy check FILE, and"
        yield "# harness audit redecide --policy FILE, which lists every logged call that it would decide otherwise."


def _proposal_lines(proposal: RuleProposal) -> Iterator[str]:
    yield f"# It would have spared {len(proposal.spares)} questions, to all of which a person said yes:"
    yield f"#   {_named(proposal.spares)}"
    yield "# It would have let through nothing else in these logs."
    if proposal.rule.argv is not None:
        yield "# What it lets run has no network; what it may write is said below, if anything."
    yield from proposal.toml.splitlines()


def _named(calls: Sequence[SeenCall]) -> str:
    shown = [visible_line(f"{one.session} #{one.call}", 60) for one in calls[:MOST_CALLS]]
    more = f", and {len(calls) - MOST_CALLS} more" if len(calls) > MOST_CALLS else ""
    return f"{', '.join(shown)}{more}"


def _standing_lines(replay: Replay) -> Iterator[str]:
    """Yield, as comments, what the logs are worth that the suggestions rest on."""
    if replay.broken or replay.without_head:
        yield ""
    for log in replay.broken:
        yield f"# Left out wholly: it is broken, or was added to (harness audit verify says how): {visible_line(log, 500)}"
    for log in replay.without_head:
        yield f"# {visible_line(log, 500)}: {CUT_OFF}"


def _objects(found: Suggestions, replay: Replay) -> Iterator[dict[str, JsonValue]]:
    for proposal in found.proposals:
        spares: list[JsonValue] = [_call(one) for one in proposal.spares]
        yield {"type": "proposal", "id": proposal.id, "toml": proposal.toml, "spares": spares, "lets_through": []}
    for dropped in found.dropped:
        yield {"type": "dropped", **_dropped(dropped)}
    yield {
        "type": "summary",
        "proposals": len(found.proposals),
        "dropped": len(found.dropped),
        "questions": found.questions,
        "spared": found.spared,
        "unjudged": [_call(one) for one in found.unjudged],
        "broken": list(replay.broken),
        "without_head": list(replay.without_head),
    }


def _dropped(dropped: DroppedCandidate) -> dict[str, JsonValue]:
    return {"what": dropped.what, "why": dropped.why, "calls": [_call(one) for one in dropped.calls]}


def _call(one: SeenCall) -> dict[str, JsonValue]:
    number: JsonValue = int(one.call) if one.call.isdecimal() and len(one.call) < 20 else one.call
    return {"log": one.log, "session": one.session, "call": number, "tool": one.tool, "summary": one.summary}
