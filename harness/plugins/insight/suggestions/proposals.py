"""Rules that would have spared a person's repeated approvals, each checked against every call of the logs.

The evidence is a person's approvals: a rule covers the approved calls and no more. One that would have let another
call through is dropped, with the reason. Only questions of a default count: those of a rule, a built-in or a
suspended rule, and those about text that was not understood, are asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.actions import Act, Command
from harness.decisions import Decision
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
from harness.policy.lint import warnings
from harness.policy.loader import parse_policy
from harness.policy.patterns import ArgvPattern
from harness.policy.rules import Rule
from harness.policy.verdict import evaluate
from harness.record import Record, replace
from harness.session.rule_subjects import Value, is_plain, is_text, rule_id, rule_text, shown
from harness.tool_kinds import Does, tool_kind

MOST_EXAMPLES = 4
_MAY_FAIL = ('say what, as in write = ["."]', "say network = true if it should")
"""Ends of warnings about a rule that grants less than its commands may need: here, that is intended."""


class WrittenRule(Record):
    """A rule in both forms."""

    id: str
    toml: str
    rule: Rule


def written_rule(candidate: RuleCandidate, seen: Iterable[SeenCall], taken: Iterable[str]) -> WrittenRule | str:
    """Return the rule, loaded and its examples run; or why there can be none. `taken` are the ids of other rules."""
    keys = _about_commands(candidate, seen) if candidate.commands else _about_file(candidate, seen)
    words = "-".join(word for word, *others in candidate.tokens if not others)
    name = rule_id(words or candidate.what, taken)
    reason = f"Approved {len(candidate.evidence)} times, and never refused."
    match, not_match = keys.pop("match"), keys.pop("not_match")
    toml = rule_text({"id": name, "decision": "auto", **keys, "reason": reason, "match": match, "not_match": not_match})
    try:
        policy = parse_policy(b"version = 1\n" + toml.encode("ascii"), "suggestion")
    except PolicyError as error:
        return f"the loader refuses such a rule: {error}"
    problems = [found.problem for found in warnings(policy) if not found.problem.endswith(_MAY_FAIL)]
    return problems[0] if problems else WrittenRule(id=name, toml=toml, rule=policy.rules[0])


def _about_commands(candidate: RuleCandidate, seen: Iterable[SeenCall]) -> dict[str, Value]:
    runs = any(command.act is Act.RUNS for command in candidate.commands)
    lines = [shown(command) for command in candidate.commands]
    first = lines[0]
    tried = [
        f"{first} --another-option",
        f"{first} another-operand",
        f"{first}; touch another-file",
        f"{first} > another-file",
        f"PATH=/tmp {first}",
    ]
    return {
        "argv": [word if not others else (word, *others) for word, *others in candidate.tokens],
        # What it was granted every time when it ran; what only looks, or writes what it names, is granted nothing.
        "write": (".",) if runs and all("." in one.granted for one in candidate.evidence) else (),
        "match": lines[:MOST_EXAMPLES],
        "not_match": (*tried, *_others(candidate, seen)),
    }


def _others(candidate: RuleCandidate, seen: Iterable[SeenCall]) -> list[str]:
    """Return other commands of the same program in the logs, which the rule must not be about."""
    pattern = ArgvPattern(tokens=candidate.tokens, rest=False)
    facets = (facet for one in seen if one.action is not None for facet in one.action.facets)
    commands = (f for f in facets if isinstance(f, Command) and f.argv[:1] == candidate.tokens[0])
    lines = (shown(command) for command in commands if not pattern.covers(command.argv))
    return list(dict.fromkeys(line for line in lines if is_text(line)))[:MOST_EXAMPLES]


def _about_file(candidate: RuleCandidate, seen: Iterable[SeenCall]) -> dict[str, Value]:
    (name,) = candidate.files
    calls = (one for one in seen if tool_kind(one.tool).does is Does.WRITES)
    names = (other for one in calls for path in touched_files(one) for other in path.names)
    others = (other for other in names if is_plain(other) and other[:1] != "/" and other != name)
    return {
        "tool": sorted({one.tool for one in candidate.evidence}),
        "access": [access.value for access in candidate.access],
        "path": (f"/{name}",),
        "except": (f"/{name}/*",),  # should a folder of that name take its place
        "match": (name,),
        "not_match": [f"another/{name}", f"{name}/another", *list(dict.fromkeys(others))[:MOST_EXAMPLES]],
    }


class RuleProposal(Record):
    """A rule, and what it would have done in the logs."""

    id: str
    toml: str
    """The rule as policies write it, in ASCII."""
    rule: Rule
    spares: tuple[SeenCall, ...]
    """The questions that it alone would have spared; a person said yes to each."""


class DroppedCandidate(Record):
    """A repeated approval that is not suggested."""

    what: str
    """Hostile text: of the log."""
    why: str
    calls: tuple[SeenCall, ...] = ()
    """The calls that speak against it, or that it is about."""


class Suggestions(Record):
    """The result."""

    proposals: tuple[RuleProposal, ...]
    dropped: tuple[DroppedCandidate, ...]
    questions: int
    """Questions that a person said yes to."""
    spared: int
    """Number of them that all proposals together would have spared."""
    unjudged: tuple[SeenCall, ...]
    """Calls of which it is not known what the proposals would do to them."""


def suggestions(seen: Sequence[SeenCall], least: int) -> Suggestions:
    """Return the rules that would have spared at least `least` questions each.

    `seen` are all calls of the logs that are not auto anyway, judged again by the policy that held then.
    """
    dropped: list[DroppedCandidate] = []
    proposals: list[RuleProposal] = []
    taken = {rule.id for one in seen if one.policy is not None for rule in one.policy.rules}
    evidence = [one for one in seen if is_evidence(one)]
    for candidate in candidates_of(evidence, least):
        if any(set(map(id, candidate.evidence)) <= set(map(id, proposal.spares)) for proposal in proposals):
            continue  # one about several commands spares all of it
        found = _tried(candidate, seen, least, taken)
        if isinstance(found, RuleProposal):
            proposals.append(found)
            taken.add(found.id)
        elif not candidate.is_choice:  # what a choice is made of is tried by itself
            dropped.append(found)
    dropped += _not_lifted(seen, least)
    dropped += [
        DroppedCandidate(
            what=folder, why=f"{count} files in it were approved; a rule for the folder is yours to write", calls=calls
        )
        for folder, count, calls in folders_of(evidence)
    ]
    proposals, fallen = _together(proposals, seen)
    rules = [proposal.rule for proposal in proposals]
    approved = [one for one in seen if one.approved]
    return Suggestions(
        proposals=tuple(proposals),
        dropped=(*dropped, *fallen),
        questions=len(approved),
        spared=sum(_becomes_auto(one, rules) for one in approved),
        unjudged=tuple(one for one in seen if one.action is None),
    )


def _tried(
    candidate: RuleCandidate, seen: Sequence[SeenCall], least: int, taken: set[str]
) -> RuleProposal | DroppedCandidate:
    """Return the proposal that a candidate makes, or why it makes none."""
    like = tuple(one for one in seen if refusal_like(candidate, one))
    if like:
        return DroppedCandidate(what=candidate.what, why="something like it was refused", calls=like)
    if candidate.problem:
        return DroppedCandidate(what=candidate.what, why=candidate.problem)
    made = written_rule(candidate, seen, taken)
    if isinstance(made, str):
        return DroppedCandidate(what=candidate.what, why=made)
    changed = [one for one in seen if _becomes_auto(one, [made.rule])]
    against = tuple(one for one in changed if not one.approved)
    if against:
        return DroppedCandidate(
            what=candidate.what, why="it would have let through what no person said yes to", calls=against
        )
    if len(changed) < least:
        return DroppedCandidate(what=candidate.what, why=f"by itself it would have spared {len(changed)} questions")
    return RuleProposal(id=made.id, toml=made.toml, rule=made.rule, spares=tuple(changed))


def _not_lifted(seen: Sequence[SeenCall], least: int) -> Iterator[DroppedCandidate]:
    """Yield the repeated approvals whose question no rule lifts."""
    found: dict[tuple[str, str], list[SeenCall]] = {}
    for one in seen:
        why = why_no_evidence(one)
        if why:
            found.setdefault((one.summary, why), []).append(one)
    for (what, why), calls in found.items():
        if len(calls) >= least:
            yield DroppedCandidate(what=what, why=why, calls=tuple(calls))


def _together(
    proposals: list[RuleProposal], seen: Sequence[SeenCall]
) -> tuple[list[RuleProposal], list[DroppedCandidate]]:
    """Return the proposals that let nothing else through together either, and those that had to go for that."""
    fallen: list[DroppedCandidate] = []
    while True:
        rules = [proposal.rule for proposal in proposals]
        against = next((one for one in seen if not one.approved and _becomes_auto(one, rules)), None)
        if against is None:
            return proposals, fallen
        guilty = [proposal for proposal in proposals if _covers(proposal.rule, against)]
        why = "together with other proposals it would have let through what no person said yes to"
        fallen += [DroppedCandidate(what=proposal.id, why=why, calls=(against,)) for proposal in guilty]
        proposals = [proposal for proposal in proposals if proposal not in guilty]


def _covers(rule: Rule, one: SeenCall) -> bool:
    action = one.action
    return action is not None and any(rule.covers(action, facet) for facet in action.all_facets())


def _becomes_auto(one: SeenCall, rules: Sequence[Rule]) -> bool:
    """Return whether a call would run unasked with these additional rules; if its policy is unknown, whether it
    could.
    """
    covering = tuple(rule for rule in rules if _covers(rule, one))
    if not covering or one.action is None:
        return False
    if one.policy is None:
        return True
    policy = replace(one.policy, rules=(*one.policy.rules, *covering))
    return evaluate(policy, one.action, one.unseen).decision is Decision.AUTO
