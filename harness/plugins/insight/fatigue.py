"""Number of questions of a session, and the number left if each offered grant is taken at its first offer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from harness.actions import Decision
from harness.grant_pattern import GrantPattern
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.policy.grant_offers import GrantChoice, offer_for
from harness.policy.session_grants import Grant, session_grant, with_grants
from harness.policy.verdict import evaluate
from harness.policy.walls_here import WallsHere
from harness.record import Record, replace


class Take(Enum):
    """The grant to assume at a question's first offer."""

    EXACT = "exact"
    """The narrowest grant: this command with these arguments, or this file."""
    PROGRAM = "program"
    """All edits, or a program with any arguments inside walls. With the network only if no offer is without it."""
    WALLS = "walls"
    """Like `PROGRAM`, but also every known command inside walls, if offered."""
    WIDEST = "widest"
    """The widest grant."""

    def of(self, choices: Sequence[GrantChoice]) -> GrantChoice:
        """Return the choice to assume. `choices` has the narrowest first."""
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
    """A question that the assumed grants do not spare."""

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
    """Questions left if each question with an offer is answered with a grant."""
    spared: tuple[GrantPattern, ...]
    """For each spared question, the grant that spares it; the latest if several do."""
    unjudged: int
    """Number of calls that cannot be judged again, since the log lacks details."""


def fatigue_of(calls: Sequence[SeenCall], walls: WallsHere, take: Take) -> SessionFatigue:
    """Return the questions of one session.

    `calls` are its calls that are not auto, judged without grants. No grant is assumed at a question that a person
    answered with no.
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
    """A deciding part whose questions lead to no grant."""

    by: str
    """Name of the deciding part. Untrusted text."""
    refused: bool
    """Whether the calls were refused in the session. No grant is assumed for those."""
    count: int
    example: str
    """Summary of the first call that it asked about. Untrusted text."""


def asking_most(sessions: Iterable[SessionFatigue]) -> Iterator[AskingReason]:
    """Yield the reasons for questions without a grant, the commonest first. Refused calls are counted separately."""
    remaining: dict[tuple[str, bool], list[str]] = {}
    for still in (still for session in sessions for still in session.still if not still.assumed_grants):
        remaining.setdefault((still.by, still.call.refused), []).append(still.call.summary)
    for (by, refused), summaries in sorted(remaining.items(), key=lambda item: -len(item[1])):
        yield AskingReason(by=by, refused=refused, count=len(summaries), example=summaries[0])


def sparing_most(sessions: Iterable[SessionFatigue]) -> list[tuple[str, int]]:
    """Return each grant as text and the number of questions that it spared, largest number first.

    Grants that differ only in their workspace are counted as one.
    """
    spared = (pattern for session in sessions for pattern in session.spared)
    return Counter(replace(grant, folder="").text for grant in spared).most_common()
