"""Rules that would have spared a person's repeated approvals, each held against every call of the logs; pure, allows nothing.

What a person approved is the evidence: a rule covers what was seen and no more, and one that would have let through anything
else is dropped, with the reason. Only questions that came from a default count: what a rule, a built-in or a suspended rule
asked about, and what was not understood, is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.policy import evaluate
from harness.record import Record, replace
from harness.rules import Decision, Rule
from harness.suggestions.candidates import Candidate, candidates_of, folders_of, refusal_like
from harness.suggestions.seen import Seen, is_evidence, why_no_evidence
from harness.suggestions.written_rules import written_rule


class Proposal(Record):
    """A rule, and what it would have done in the logs."""

    id: str
    toml: str
    """The rule as policies write it, in ASCII."""
    rule: Rule
    spares: tuple[Seen, ...]
    """The questions that it alone would have spared; a person said yes to each."""


class Dropped(Record):
    """What was approved repeatedly, and is not suggested all the same."""

    what: str
    """Hostile text: of the log."""
    why: str
    calls: tuple[Seen, ...] = ()
    """Those that speak against it, or that it is about."""


class Suggestions(Record):
    """What came of it."""

    proposals: tuple[Proposal, ...]
    dropped: tuple[Dropped, ...]
    questions: int
    """Questions that a person said yes to."""
    spared: int
    """Those of them that all proposals together would have spared."""
    unjudged: tuple[Seen, ...]
    """Calls of which it is not known what the proposals would do to them."""


def suggestions(seen: Sequence[Seen], least: int) -> Suggestions:
    """Return the rules that would have spared at least `least` questions each.

    `seen` are all calls of the logs that are not auto anyway, judged again by the policy that held then.
    """
    dropped: list[Dropped] = []
    proposals: list[Proposal] = []
    taken = {rule.id for one in seen if one.policy is not None for rule in one.policy.rules}
    evidence = [one for one in seen if is_evidence(one)]
    for candidate in candidates_of(evidence, least):
        if any(set(map(id, candidate.evidence)) <= set(map(id, proposal.spares)) for proposal in proposals):
            continue  # one about several commands spares all of it
        found = _tried(candidate, seen, least, taken)
        if isinstance(found, Proposal):
            proposals.append(found)
            taken.add(found.id)
        elif not candidate.is_choice:  # what a choice is made of is tried by itself
            dropped.append(found)
    dropped += _not_lifted(seen, least)
    dropped += [
        Dropped(
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


def _tried(candidate: Candidate, seen: Sequence[Seen], least: int, taken: set[str]) -> Proposal | Dropped:
    """Return the proposal that a candidate makes, or why it makes none."""
    like = tuple(one for one in seen if refusal_like(candidate, one))
    if like:
        return Dropped(what=candidate.what, why="something like it was refused", calls=like)
    if candidate.problem:
        return Dropped(what=candidate.what, why=candidate.problem)
    made = written_rule(candidate, seen, taken)
    if isinstance(made, str):
        return Dropped(what=candidate.what, why=made)
    changed = [one for one in seen if _becomes_auto(one, [made.rule])]
    against = tuple(one for one in changed if not one.approved)
    if against:
        return Dropped(what=candidate.what, why="it would have let through what no person said yes to", calls=against)
    if len(changed) < least:
        return Dropped(what=candidate.what, why=f"by itself it would have spared {len(changed)} questions")
    return Proposal(id=made.id, toml=made.toml, rule=made.rule, spares=tuple(changed))


def _not_lifted(seen: Sequence[Seen], least: int) -> Iterator[Dropped]:
    """Yield what was approved repeatedly, and is asked about by something that no rule lifts."""
    found: dict[tuple[str, str], list[Seen]] = {}
    for one in seen:
        why = why_no_evidence(one)
        if why:
            found.setdefault((one.summary, why), []).append(one)
    for (what, why), calls in found.items():
        if len(calls) >= least:
            yield Dropped(what=what, why=why, calls=tuple(calls))


def _together(proposals: list[Proposal], seen: Sequence[Seen]) -> tuple[list[Proposal], list[Dropped]]:
    """Return the proposals that let nothing else through together either, and those that had to go for that."""
    fallen: list[Dropped] = []
    while True:
        rules = [proposal.rule for proposal in proposals]
        against = next((one for one in seen if not one.approved and _becomes_auto(one, rules)), None)
        if against is None:
            return proposals, fallen
        guilty = [proposal for proposal in proposals if _covers(proposal.rule, against)]
        why = "together with other proposals it would have let through what no person said yes to"
        fallen += [Dropped(what=proposal.id, why=why, calls=(against,)) for proposal in guilty]
        proposals = [proposal for proposal in proposals if proposal not in guilty]


def _covers(rule: Rule, one: Seen) -> bool:
    action = one.action
    return action is not None and any(rule.covers(action, facet) for facet in action.all_facets())


def _becomes_auto(one: Seen, rules: Sequence[Rule]) -> bool:
    """Say whether a call would run unasked with these rules besides; of one whose policy is not known, whether it could."""
    covering = tuple(rule for rule in rules if _covers(rule, one))
    if not covering or one.action is None:
        return False
    if one.policy is None:
        return True
    policy = replace(one.policy, rules=(*one.policy.rules, *covering))
    return evaluate(policy, one.action, one.unseen).decision is Decision.AUTO
