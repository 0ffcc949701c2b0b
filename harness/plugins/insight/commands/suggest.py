"""`harness policy suggest`: write proposals of rules that would have spared repeated approvals. Changes no policy."""

from __future__ import annotations

import itertools
import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.app.audit.logs import BROKEN, chosen_logs
from harness.app.policy.replay import Replay
from harness.plugins.insight.commands.seen_calls import RecordedPolicies, seen_calls
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.plugins.insight.suggestions.proposals import DroppedCandidate, RuleProposal, Suggestions, suggestions
from harness.session.state import State
from harness.terminal.console import complain
from harness.text.visible import visible_line

CUT_OFF = "no head was noted when it was closed; a refusal at its end could have been cut off"
UNKNOWN_POLICY = "what was approved in it counts for nothing, what was refused does"
MOST_CALLS = 5
"""Maximum number of calls named in one line; the rest are counted."""


def suggest_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the proposals as policy text or as JSON objects, and return the exit code. Raises HarnessError."""
    chosen = chosen_logs(arguments, environment)
    policies = RecordedPolicies(State.of(environment), UNKNOWN_POLICY)
    chosen.verify_all()
    replay = Replay(policies.of, environment, whole_only=True, findings=chosen.findings)
    calls = seen_calls(chosen, replay)
    for note in (*replay.notes, *policies.notes, *(f"{log}: {CUT_OFF}" for log in replay.without_head)):
        complain(note)
    result = suggestions(calls, arguments.least)
    if arguments.json:
        lines: Iterator[str] = map(json.dumps, _objects(result, replay))
    else:
        lines = itertools.chain(_lines(result, State.of(environment), arguments.least), _standing_lines(replay))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return BROKEN if replay.broken else chosen.code


def _lines(result: Suggestions, state: State, minimum: int) -> Iterator[str]:
    """Yield policy text: the rules, and everything else as comments."""
    yield (
        f"# Rules suggested: {len(result.proposals)}; together they would have spared {result.spared} of the "
        f"{result.questions} questions that a person"
    )
    yield "# said yes to in these logs. Nothing was changed by this command: read each rule before it allows anything."
    for proposal in result.proposals:
        yield ""
        yield from _proposal_lines(proposal)
    if result.dropped:
        yield from ("", f"# Not suggested, though it was approved {minimum} times or more:")
    for dropped in result.dropped:
        calls = f" ({_call_names(dropped.calls)})" if dropped.calls else ""
        yield f"#   {visible_line(dropped.subject, 120)}: {visible_line(dropped.reason, 300)}{calls}"
    if result.unjudged:
        yield ""
        yield f"# Not known is what they would do to {len(result.unjudged)} calls that the logs hold only in part, or masked:"
        yield f"#   {_call_names(result.unjudged)}"
    if result.proposals:
        yield ""
        yield f"# To use them: append what you want to a policy of yours ({visible_line(state.user_policy, 500)}, which takes"
        yield '# the place of the shipped one: begin it with extends = ["default"]; or a file for --policy).'
        yield "# A rule about files holds in every workspace that the policy holds in. Then: harness policy check FILE, and"
        yield "# harness policy replay --policy FILE, which lists every logged call that it would decide otherwise."


def _proposal_lines(proposal: RuleProposal) -> Iterator[str]:
    yield f"# It would have spared {len(proposal.spares)} questions, to all of which a person said yes:"
    yield f"#   {_call_names(proposal.spares)}"
    yield "# It would have let through nothing else in these logs."
    if proposal.rule.walled:
        yield "# It runs inside the workspace walls: it may write the workspace, and has no network."
    elif proposal.rule.opens.network:
        yield "# It only looks, over the network."
    elif proposal.rule.argv is not None:
        yield "# What it lets run has no network; what it may write is said below, if anything."
    yield from proposal.toml.splitlines()


def _call_names(calls: Sequence[SeenCall]) -> str:
    names = [visible_line(f"{call.session} #{call.call}", 60) for call in calls[:MOST_CALLS]]
    more = f", and {len(calls) - MOST_CALLS} more" if len(calls) > MOST_CALLS else ""
    return f"{', '.join(names)}{more}"


def _standing_lines(replay: Replay) -> Iterator[str]:
    """Yield comments on logs that are broken, or whose end could not be checked."""
    if replay.broken or replay.without_head:
        yield ""
    for log in replay.broken:
        yield f"# Left out wholly: it is broken, or was added to (harness audit verify says how): {visible_line(log, 500)}"
    for log in replay.without_head:
        yield f"# {visible_line(log, 500)}: {CUT_OFF}"


def _objects(result: Suggestions, replay: Replay) -> Iterator[dict[str, JsonValue]]:
    for proposal in result.proposals:
        spares: list[JsonValue] = [_call(call) for call in proposal.spares]
        yield {"type": "proposal", "id": proposal.id, "toml": proposal.toml, "spares": spares, "lets_through": []}
    for dropped in result.dropped:
        yield {"type": "dropped", **_dropped(dropped)}
    yield {
        "type": "summary",
        "proposals": len(result.proposals),
        "dropped": len(result.dropped),
        "questions": result.questions,
        "spared": result.spared,
        "unjudged": [_call(call) for call in result.unjudged],
        "broken": list(replay.broken),
        "without_head": list(replay.without_head),
    }


def _dropped(dropped: DroppedCandidate) -> dict[str, JsonValue]:
    return {"what": dropped.subject, "why": dropped.reason, "calls": [_call(call) for call in dropped.calls]}


def _call(call: SeenCall) -> dict[str, JsonValue]:
    number: JsonValue = int(call.call) if call.call.isdecimal() and len(call.call) < 20 else call.call
    return {"log": call.log, "session": call.session, "call": number, "tool": call.tool, "summary": call.summary}
