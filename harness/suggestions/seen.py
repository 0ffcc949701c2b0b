"""Calls as a suggestion looks at them: what was judged, asked and answered; pure, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from harness.actions import Action, PathAccess
from harness.policy import Policy, Verdict
from harness.record import Record
from harness.rules import Decision

REFUSALS = ("no", "stop", "edit")
"""Answers that say: not this call."""


class Seen(Record):
    """A call of a log that was not auto, or would not be now."""

    log: str
    session: str
    call: str
    tool: str
    summary: str
    """Hostile text."""
    decided: str
    """The log's word for what was decided."""
    action: Action | None
    """None where the log does not hold all of it."""
    policy: Policy | None
    """What held then; None where the log does not hold its text."""
    verdict: Verdict | None
    """Of that policy, on the disk as it is now."""
    unseen: tuple[str, ...]
    answer: str = ""
    by: str = ""
    """Who answered."""
    granted: tuple[str, ...] = ()
    """Where it was allowed to write besides what it names, when it ran."""
    network: bool = False
    """Whether it was allowed to reach the network, when it ran."""
    policy_sha256: str = ""

    @property
    def approved(self) -> bool:
        """Whether a person was asked, and said yes."""
        return self.decided == "confirm" and self.answer == "yes" and self.by == "person"

    @property
    def refused(self) -> bool:
        """Whether whoever was asked said no, or wanted another call in its place."""
        return self.answer in REFUSALS


def is_evidence(one: Seen) -> bool:
    """Say whether a person's yes to this call is one that a rule could have spared: only defaults asked, now as then."""
    return one.approved and not why_no_evidence(one)


def why_no_evidence(one: Seen) -> str:
    """Return why a person's yes to this call speaks for no rule; nothing where it does, and of other calls."""
    if not one.approved:
        return ""
    if one.action is None:
        return "the logs hold it only in part, or masked"
    if one.verdict is None:
        return "the policy that asked is not known"
    if one.verdict.decision is not Decision.CONFIRM:
        return f"the policy that asked then says {one.verdict.decision.word} on the disk as it is now"
    if one.unseen:
        return "what builds and tests run had been changed, and nobody had seen it"
    if not one.verdict.from_default:
        return f"it is asked about by {one.verdict.deciding.by}, which no further rule lifts"
    return ""


def touched_files(one: Seen) -> Iterator[PathAccess]:
    """Yield the files that a call would read or write, or may."""
    for facet in () if one.action is None else one.action.all_facets():
        if isinstance(facet, PathAccess):
            yield facet
