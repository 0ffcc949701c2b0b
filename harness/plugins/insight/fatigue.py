"""Number of questions of a session, and the number left if the grants on offer were taken at once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from harness.actions import Decision
from harness.grant_pattern import GrantPattern
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.policy.grant_offers import GrantChoice, WallsHere, offer_for
from harness.policy.session_grants import Grant, session_grant, with_grants
from harness.policy.verdict import evaluate
from harness.record import Record, replace


class Take(Enum):
    """The grant to assume at a question's first offer."""

    EXACT = "exact"
    """The narrowest: these words, this file."""
    PROGRAM = "program"
    """All edits; a program with any words inside walls, with the network only where it is not offered without."""
    WALLS = "walls"
    """The same, and every known command inside walls, where that is offered."""
    WIDEST = "widest"
    """The widest."""

    def of(self, choices: Sequence[GrantChoice]) -> GrantChoice:
        """Return the one of these choices, the narrowest first."""
        if self in (Take.EXACT, Take.WIDEST):
            return choices[0 if self is Take.EXACT else -1]
        if self is Take.PROGRAM:
            choices = [choice for choice in choices if not _is_of_any_command(choice)] or choices
        programs = [choice for choice in choices if any(pattern.program for pattern in choice.patterns)]
        return next((grant for grant in reversed(programs) if not _reaches_out(grant)), (programs or choices)[-1])


def _is_of_any_command(choice: GrantChoice) -> bool:
    return any(pattern.program and not pattern.argv for pattern in choice.patterns)


def _reaches_out(choice: GrantChoice) -> bool:
    return any(pattern.program and pattern.network for pattern in choice.patterns)


class StillAsked(Record):
    """A question that would be asked all the same."""

    call: SeenCall
    by: str
    """The deciding part behind the question."""
    assumed_grants: tuple[str, ...]
    """The assumed grants, in words. Empty without an offer, or after a refusal."""


class SessionFatigue(Record):
    """The questions of one session."""

    question_count: int
    """Number of questions at the time."""
    questions: int
    """Number of questions under the policy alone, without grants."""
    still: tuple[StillAsked, ...]
    """Questions left if each is answered with a grant, if one is on offer."""
    spared: tuple[GrantPattern, ...]
    """For each question that is spared, what spares it: of several grants the last."""
    unjudged: int
    """Calls that are not known well enough to be judged again."""


def fatigue_of(calls: Sequence[SeenCall], walls: WallsHere, take: Take) -> SessionFatigue:
    """Return the questions of one session, of which `calls` are the calls that are not auto, judged with nothing granted.

    At a question that a person said no to, nothing is taken.
    """
    grants: list[Grant] = []
    still: list[StillAsked] = []
    spared: list[GrantPattern] = []
    for call in calls:
        if call.action is None or call.policy is None or call.verdict is None:
            continue
        policy = with_grants(call.policy, grants)
        verdict = evaluate(policy, call.action, call.unseen)
        if verdict.decision is Decision.AUTO and call.verdict.decision is Decision.CONFIRM:
            used = {rule.id for facet in verdict.facets for rule in facet.rules}
            spared.append(next(grant.pattern for grant in reversed(grants) if grant.id in used))
        if verdict.decision is Decision.CONFIRM:
            offer = "it was refused" if call.refused else offer_for(policy, call.action, verdict, walls)
            patterns = () if isinstance(offer, str) else take.of(offer.choices).patterns
            still.append(
                StillAsked(
                    call=call, by=verdict.deciding.by, assumed_grants=tuple(pattern.text for pattern in patterns)
                )
            )
            for pattern in patterns:
                grants.append(session_grant(f"grant-{len(grants) + 1}", pattern))
    return SessionFatigue(
        question_count=sum(call.decided == Decision.CONFIRM.word for call in calls),
        questions=sum(call.verdict is not None and call.verdict.decision is Decision.CONFIRM for call in calls),
        still=tuple(still),
        spared=tuple(spared),
        unjudged=sum(call.verdict is None for call in calls),
    )


class AskingReason(Record):
    """Something that asks and at which nothing is granted."""

    by: str
    """Hostile text."""
    refused: bool
    """Whether the calls were refused then: nothing is taken at those."""
    count: int
    example: str
    """The first call that it asked about; hostile text."""


def asking_most(sessions: Iterable[SessionFatigue]) -> Iterator[AskingReason]:
    """Yield the reasons of questions without a grant, the commonest first; refused ones separately."""
    remaining: dict[tuple[str, bool], list[str]] = {}
    for still in (still for session in sessions for still in session.still if not still.assumed_grants):
        remaining.setdefault((still.by, still.call.refused), []).append(still.call.summary)
    for (by, refused), summaries in sorted(remaining.items(), key=lambda item: -len(item[1])):
        yield AskingReason(by=by, refused=refused, count=len(summaries), example=summaries[0])


def sparing_most(sessions: Iterable[SessionFatigue]) -> list[tuple[str, int]]:
    """Return the grants, in words, and the number of questions that each spared, the most first; all workspaces as
    one.
    """
    spared = (pattern for session in sessions for pattern in session.spared)
    return Counter(replace(grant, folder="").text for grant in spared).most_common()
