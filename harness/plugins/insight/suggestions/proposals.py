"""Rules that would have spared a person's repeated approvals, each checked against every call of the logs.

The evidence is a person's approvals. A rule covers the approved calls and no more: a rule that would have permitted
another call is dropped, with the reason. Only questions of a default can be spared. Questions of a rule, a built-in or
a suspended rule, and those about text that could not be parsed, remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from harness.actions import REACHES_NETWORK, Act, Command, Decision
from harness.errors import PolicyError
from harness.plugins.insight.suggestions.candidates import (
    RuleCandidate,
    SeenCall,
    candidates_of,
    folders_of,
    is_evidence,
    refusal_like,
    touched_files,
    why_no_evidence,
)
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import WORKSPACE
from harness.policy.lint import warnings
from harness.policy.loader import parse_policy
from harness.policy.rules import Rule
from harness.policy.verdict import evaluate
from harness.programs.runners import SUBCOMMAND_PROGRAMS, is_one_of
from harness.record import Record, replace
from harness.session.rule_subjects import Value, is_plain, is_text, quoted_command, rule_id, rule_text
from harness.tool_kinds import Does, tool_kind

MOST_EXAMPLES = 4
_MAY_FAIL = ('say what, as in write = ["."]', "say network = true if it should")
"""Ends of warnings to ignore. They are about a rule that grants less than its commands may need, as intended here."""


class WrittenRule(Record):
    """A rule as text and as loaded object."""

    id: str
    toml: str
    rule: Rule


class Holding(Enum):
    """The limit on the commands of a proposed rule."""

    WORDS = "words"
    """Their exact words. The program's model describes them."""
    WALLS = "walls"
    """Their exact words in the workspace walls, for commands that run code."""
    NETWORK = "network"
    """Their exact words with the network, for commands of a client that only look."""


def written_rule(
    candidate: RuleCandidate, calls: Iterable[SeenCall], used_ids: Iterable[str], holding: Holding
) -> WrittenRule | str:
    """Return the rule, loaded and with its examples checked, or the reason why no rule is possible.

    `used_ids` are the IDs of other rules.
    """
    keys = _about_commands(candidate, calls, holding) if candidate.commands else _about_file(candidate, calls)
    words = "-".join(word for word, *alternatives in candidate.tokens if not alternatives)
    name = rule_id(words or candidate.subject, used_ids)
    reason = f"Approved {len(candidate.evidence)} times, and never refused."
    match, not_match = keys.pop("match"), keys.pop("not_match")
    toml = rule_text({"id": name, "decision": "auto", **keys, "reason": reason, "match": match, "not_match": not_match})
    try:
        policy = parse_policy(b"version = 1\n" + toml.encode("ascii"), "suggestion")
    except PolicyError as error:
        return f"the loader refuses such a rule: {error}"
    problems = [warning.problem for warning in warnings(policy) if not warning.problem.endswith(_MAY_FAIL)]
    return problems[0] if problems else WrittenRule(id=name, toml=toml, rule=policy.rules[0])


def _about_commands(candidate: RuleCandidate, calls: Iterable[SeenCall], holding: Holding) -> dict[str, Value]:
    runs = holding is Holding.WORDS and any(command.act is Act.RUNS for command in candidate.commands)
    lines = [quoted_command(command) for command in candidate.commands]
    first = lines[0]
    tried = [
        f"{first} --another-option",
        f"{first} another-operand",
        f"{first}; touch another-file",
    ]
    if holding is not Holding.WALLS:  # which hold these too
        tried += [f"{first} > another-file", f"PATH=/tmp {first}"]
    return {
        "argv": [word if not alternatives else (word, *alternatives) for word, *alternatives in candidate.tokens],
        # The workspace, if granted at every run. A command that only reads, or writes named files, needs no grant.
        "walls": WORKSPACE if holding is Holding.WALLS else "",
        "network": holding is Holding.NETWORK,
        "write": (".",)
        if holding is Holding.WORDS and runs and all("." in call.granted for call in candidate.evidence)
        else (),
        "match": lines[:MOST_EXAMPLES],
        "not_match": (*tried, *_other_commands(candidate, calls)),
    }


def _other_commands(candidate: RuleCandidate, calls: Iterable[SeenCall]) -> list[str]:
    """Return other commands of the same program in the logs, which the rule must not cover."""
    pattern = ArgvPattern(tokens=candidate.tokens, rest=False)
    facets = (facet for call in calls if call.action is not None for facet in call.action.facets)
    commands = (f for f in facets if isinstance(f, Command) and f.argv[:1] == candidate.tokens[0])
    lines = (quoted_command(command) for command in commands if not pattern.covers(command.argv))
    return list(dict.fromkeys(line for line in lines if is_text(line)))[:MOST_EXAMPLES]


def _about_file(candidate: RuleCandidate, seen_calls: Iterable[SeenCall]) -> dict[str, Value]:
    (name,) = candidate.files
    calls = (call for call in seen_calls if tool_kind(call.tool).does is Does.WRITES)
    names = (other for call in calls for path in touched_files(call) for other in path.names)
    other_names = (other for other in names if is_plain(other) and other[:1] != "/" and other != name)
    return {
        "tool": sorted({call.tool for call in candidate.evidence}),
        "access": [access.value for access in candidate.access],
        "path": (f"/{name}",),
        "except": (f"/{name}/*",),  # in case a folder replaces the file
        "match": (name,),
        "not_match": [f"another/{name}", f"{name}/another", *list(dict.fromkeys(other_names))[:MOST_EXAMPLES]],
    }


class RuleProposal(Record):
    """A proposed rule, and the questions in the logs that it would have spared."""

    id: str
    toml: str
    """The rule as policy text (TOML), in ASCII."""
    rule: Rule
    spares: tuple[SeenCall, ...]
    """The questions that the rule alone would have spared. A person approved each."""


class DroppedCandidate(Record):
    """A repeated approval that leads to no proposal."""

    subject: str
    """The command, file or folder. Untrusted text from the log."""
    reason: str
    calls: tuple[SeenCall, ...] = ()
    """The calls behind `reason`: refused or unapproved calls, or the approved calls themselves."""


class Suggestions(Record):
    """The proposals, and the repeated approvals without one."""

    proposals: tuple[RuleProposal, ...]
    dropped: tuple[DroppedCandidate, ...]
    questions: int
    """Number of questions that a person approved."""
    spared: int
    """Number of those questions that all proposals together would have spared."""
    unjudged: tuple[SeenCall, ...]
    """Calls that cannot be judged under the proposals, since the logs have only a part of them."""


def suggestions(seen_calls: Sequence[SeenCall], minimum: int) -> Suggestions:
    """Return the rules that would have spared at least `minimum` questions each.

    `seen_calls` are the logged calls that were not auto, or would not be now, judged again by the policy of their time.
    """
    dropped: list[DroppedCandidate] = []
    proposals: list[RuleProposal] = []
    used_ids = {rule.id for call in seen_calls if call.policy is not None for rule in call.policy.rules}
    evidence = [call for call in seen_calls if is_evidence(call)]
    for candidate in candidates_of(evidence, minimum):
        if any(set(map(id, candidate.evidence)) <= set(map(id, proposal.spares)) for proposal in proposals):
            continue  # an earlier proposal for several commands spares all its questions
        outcome = _tried(candidate, seen_calls, minimum, used_ids)
        if isinstance(outcome, RuleProposal):
            proposals.append(outcome)
            used_ids.add(outcome.id)
        elif not candidate.is_choice:  # the single commands of a choice are candidates too
            dropped.append(outcome)
    dropped += _not_lifted(seen_calls, minimum)
    dropped += [
        DroppedCandidate(
            subject=folder,
            reason=f"{count} files in it were approved; a rule for the folder is yours to write",
            calls=calls,
        )
        for folder, count, calls in folders_of(evidence)
    ]
    proposals, fallen = _together(proposals, seen_calls)
    rules = [proposal.rule for proposal in proposals]
    approved = [call for call in seen_calls if call.approved]
    return Suggestions(
        proposals=tuple(proposals),
        dropped=(*dropped, *fallen),
        questions=len(approved),
        spared=sum(_becomes_auto(call, rules) for call in approved),
        unjudged=tuple(call for call in seen_calls if call.action is None),
    )


def _holding(candidate: RuleCandidate) -> Holding | None:
    """Return the limit that suits the commands of a candidate. `None` if none does."""
    if not candidate.problem:
        return Holding.WORDS
    if not candidate.commands or any(command.variables for command in candidate.commands):
        return None
    words = [word for command in candidate.commands for word in command.argv]
    if not all(map(is_text, words)) or any(not {"$", "`", "*"}.isdisjoint(word) for word in words):
        return None
    if candidate.problem == REACHES_NETWORK:
        looks = all(command.act is Act.LOOKS for command in candidate.commands)
        return Holding.NETWORK if looks and is_one_of(words[0], SUBCOMMAND_PROGRAMS) else None
    runs = all(command.act in (Act.RUNS, Act.WRAPS) for command in candidate.commands)
    return Holding.WALLS if runs and not any(call.network for call in candidate.evidence) else None


def _tried(
    candidate: RuleCandidate, calls: Sequence[SeenCall], minimum: int, used_ids: set[str]
) -> RuleProposal | DroppedCandidate:
    """Return the proposal for a candidate, or the reason why it is dropped."""
    like = tuple(call for call in calls if refusal_like(candidate, call))
    if like:
        return DroppedCandidate(subject=candidate.subject, reason="something like it was refused", calls=like)
    holding = _holding(candidate)
    if holding is None:
        return DroppedCandidate(subject=candidate.subject, reason=candidate.problem)
    written = written_rule(candidate, calls, used_ids, holding)
    if isinstance(written, str):
        return DroppedCandidate(subject=candidate.subject, reason=candidate.problem or written)
    changed = [call for call in calls if _becomes_auto(call, [written.rule])]
    against = tuple(call for call in changed if not call.approved)
    if against:
        return DroppedCandidate(
            subject=candidate.subject, reason="it would have let through what no person said yes to", calls=against
        )
    if len(changed) < minimum:
        return DroppedCandidate(
            subject=candidate.subject, reason=f"by itself it would have spared {len(changed)} questions"
        )
    return RuleProposal(id=written.id, toml=written.toml, rule=written.rule, spares=tuple(changed))


def _not_lifted(seen_calls: Sequence[SeenCall], minimum: int) -> Iterator[DroppedCandidate]:
    """Yield the repeated approvals whose questions no rule can spare."""
    by_reason: dict[tuple[str, str], list[SeenCall]] = {}
    for call in seen_calls:
        reason = why_no_evidence(call)
        if reason:
            by_reason.setdefault((call.summary, reason), []).append(call)
    for (summary, reason), calls in by_reason.items():
        if len(calls) >= minimum:
            yield DroppedCandidate(subject=summary, reason=reason, calls=tuple(calls))


def _together(
    proposals: list[RuleProposal], calls: Sequence[SeenCall]
) -> tuple[list[RuleProposal], list[DroppedCandidate]]:
    """Return the proposals that together permit only approved calls, and those dropped to ensure this."""
    fallen: list[DroppedCandidate] = []
    while True:
        rules = [proposal.rule for proposal in proposals]
        against = next((call for call in calls if not call.approved and _becomes_auto(call, rules)), None)
        if against is None:
            return proposals, fallen
        guilty = [proposal for proposal in proposals if _covers(proposal.rule, against)]
        reason = "together with other proposals it would have let through what no person said yes to"
        fallen += [DroppedCandidate(subject=proposal.id, reason=reason, calls=(against,)) for proposal in guilty]
        proposals = [proposal for proposal in proposals if proposal not in guilty]


def _covers(rule: Rule, call: SeenCall) -> bool:
    action = call.action
    return action is not None and any(rule.covers(action, facet) for facet in action.all_facets())


def _becomes_auto(call: SeenCall, rules: Sequence[Rule]) -> bool:
    """Return whether a call would run without a question if its policy had these additional rules.

    If its policy is unknown, return whether one of the rules covers a part of it.
    """
    covering = tuple(rule for rule in rules if _covers(rule, call))
    if not covering or call.action is None:
        return False
    if call.policy is None:
        return True
    policy = replace(call.policy, rules=(*call.policy.rules, *covering))
    return evaluate(policy, call.action, call.unseen).decision is Decision.AUTO
