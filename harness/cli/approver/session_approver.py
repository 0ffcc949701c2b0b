"""Who is asked outside about the calls of a session: the approver that is configured, else a person at `harness approve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.actions import Action, Effects
from harness.cli.approver.configured_approver import ConfiguredApprover, writable_roots
from harness.cli.approver.listed_approver import ListedApprover
from harness.hook.waiting import WaitingList
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict

if TYPE_CHECKING:
    from harness.cli.approver.standing_question import AskOutside
    from harness.cli.parts import SessionParts
    from harness.gate.gate import Gate


def approver_outside(
    parts: SessionParts,
    gate: Callable[[], Gate],
    offer: Callable[[Action, Verdict], Offer | str],
    *,
    is_alone: bool,
) -> AskOutside:
    """Return who is asked outside; no call may write what they are reached by. Raises UsageError where they cannot be.

    `gate` returns the gate of the session, once there is one. `is_alone`: there is no terminal at which is asked as well.
    """

    def session() -> str:
        return parts.log.session

    def confinement(tool: str, effects: Effects) -> str:
        return gate().tools.confinement(tool, effects)

    declaration = parts.extensions.approver
    if declaration is None:
        return ListedApprover(
            WaitingList(parts.state.waiting),
            workspace=parts.workspace.root,
            level=parts.level,
            session=session,
            policy=lambda: gate().policy,
            confinement=confinement,
            offer=offer,
            is_alone=is_alone,
        )
    found = ConfiguredApprover(
        declaration,
        parts.environment,
        writable_roots(parts.workspace, parts.policy, parts.environment),
        session=session,
        redact=parts.redactor.redact,
        confinement=confinement,
        offer=offer,
    )
    parts.policy = parts.policy.guarding(*found.paths)
    return found
