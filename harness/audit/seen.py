"""Calls as a suggestion looks at them: what was judged, asked and answered; pure, decides nothing."""

from __future__ import annotations

from harness.actions import Action
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
    if not one.approved or one.action is None or one.verdict is None or one.unseen:
        return False
    return one.verdict.decision is Decision.CONFIRM and one.verdict.from_default
