"""Who is asked outside about the calls of a session: the approver that is configured, else a person at `harness approve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.actions import Action
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.session.approver.approver_declaration import ApproverDeclaration
from harness.session.approver.configured_approver import ConfiguredApprover, writable_roots
from harness.session.approver.listed_approver import ListedApprover
from harness.session.waiting import WaitingList

if TYPE_CHECKING:
    from harness.gate.gate import Gate
    from harness.session.approver.standing_question import AskOutside
    from harness.session.parts import GatedParts


def approver_outside(
    parts: GatedParts,
    gate: Callable[[], Gate],
    offer: Callable[[Action, Verdict], Offer | str],
    *,
    is_alone: bool,
) -> AskOutside:
    """Return who is asked outside; no call may write what they are reached by. Raises UsageError where they cannot be.

    `gate` returns the gate of the session, once there is one. `is_alone`: there is no terminal at which is asked as well.
    """
    if parts.extensions.approver is not None:
        return configured_approver(parts, parts.extensions.approver, gate, offer)
    return ListedApprover(
        WaitingList(parts.state.waiting),
        workspace=parts.workspace.root,
        level=parts.level,
        session=lambda: parts.log.session,
        policy=lambda: gate().policy,
        confinement=lambda tool, effects: gate().tools.confinement(tool, effects),  # noqa: PLW0108 - it is made later
        offer=offer,
        is_alone=is_alone,
    )


def configured_approver(
    parts: GatedParts,
    declaration: ApproverDeclaration,
    gate: Callable[[], Gate],
    offer: Callable[[Action, Verdict], Offer | str],
) -> AskOutside:
    """Do so where one is configured."""
    found = ConfiguredApprover(
        declaration,
        parts.environment,
        writable_roots(parts.workspace, parts.policy, parts.environment),
        session=lambda: parts.log.session,
        redact=parts.redactor.redact,
        confinement=lambda tool, effects: gate().tools.confinement(tool, effects),  # noqa: PLW0108 - it is made later
        offer=offer,
    )
    parts.policy = parts.policy.guarding(*found.paths)
    return found
