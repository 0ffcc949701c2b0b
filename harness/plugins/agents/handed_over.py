"""Calls that the gate allows and that another agent carries out (`HandedOver`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import Action, JsonValue
from harness.errors import ToolError
from harness.gate.gate import Gate
from harness.gate.pending_call import CallEnd, PendingCall
from harness.gate.records import Proposal
from harness.policy.verdict import Verdict
from harness.record import Record


class HandedOver(Record):
    """An allowed call that another agent carries out."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    intent: Mapping[str, JsonValue]
    """Fields of the intent record. Written before hand-over, or after the user's approval if `asks` is set."""
    asks: bool
    """Whether the agent asks the user first."""


def hand_over(
    gate: Gate,
    pending: PendingCall,
    *,
    held_by: Callable[[Action, Verdict], str],
    asks_itself: bool = False,
) -> HandedOver | CallEnd:
    """Judge a call that another agent carries out, ask about it if necessary, and write its intent.

    `held_by` returns a short description of the walls for the log. It raises ToolError for a call that must be confined
    and cannot be. With `asks_itself`, the agent asks the user if the verdict is CONFIRM, and the question is recorded.
    The agent's session records the outcome. Raises as `Gate.call` does.
    """
    question = gate.question(pending) if asks_itself else None
    if question is not None:
        action, verdict = question
        try:
            holder = held_by(action, verdict)
        except ToolError as error:
            return gate.deny(pending.proposal, action, str(error))
        intent = gate.leave_question(pending, action, verdict, holder)
    else:
        permit = gate.permit(pending)
        if isinstance(permit, CallEnd):
            return permit
        action, verdict = permit.action, permit.verdict
        try:
            holder = held_by(action, verdict)
        except ToolError as error:
            return gate.deny(permit.proposal, action, str(error))
        intent = gate.release(permit, holder)
    return HandedOver(
        proposal=pending.proposal, action=action, verdict=verdict, intent=intent, asks=question is not None
    )
