"""The outside approver of a session's calls: the configured one, otherwise a user at `harness approve`."""

from __future__ import annotations

from collections.abc import Callable

from harness.actions import Action, Effects
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.session.approver.configured_approver import ConfiguredApprover
from harness.session.approver.listed_approver import ListedApprover
from harness.session.approver.standing_question import AskOutside
from harness.session.running_session import RunningSession
from harness.session.waiting import WaitingList


def approver_outside(
    session: RunningSession, offer: Callable[[Action, Verdict], Offer | str], *, is_alone: bool
) -> AskOutside:
    """Return the outside approver of a session.

    `is_alone` says that the session has no terminal to ask at the same time.
    """
    place, gate = session.place, session.agent.gate

    def confinement(tool: str, effects: Effects) -> str:
        return gate.tools.confinement(tool, effects)

    if session.rules.outside is not None:
        return ConfiguredApprover(
            session.rules.outside,
            session=lambda: session.log.session,
            redact=place.redactor.redact,
            confinement=confinement,
            offer=offer,
        )
    return ListedApprover(
        WaitingList(place.state.waiting),
        workspace=place.workspace.root,
        level=session.tools.level,
        session=lambda: session.log.session,
        policy=lambda: gate.policy,
        confinement=confinement,
        offer=offer,
        is_alone=is_alone,
    )
