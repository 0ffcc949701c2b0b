"""A call that the gate lets run, and that another agent carries out (`HandedOver`)."""

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
    """A call that another agent carries out, and that may run."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    intent: Mapping[str, JsonValue]
    """Fields of the intent record. Written before hand-over, or after the person's yes if `asks` is set."""
    asks: bool
    """Whether the agent asks the person first."""


def hand_over(
    gate: Gate,
    pending: PendingCall,
    *,
    held_by: Callable[[Action, Verdict], str],
    asks_itself: bool = False,
) -> HandedOver | CallEnd:
    """Judge, ask and write the intent of a call that another agent carries out.

    `held_by` returns a few words for the log: the walls that confine the agent to the effects. It raises ToolError
    for a call that must be confined and cannot be. With `asks_itself` the agent asks the person if the verdict is
    CONFIRM; the question is recorded. The agent's session records the outcome. Raises as `Gate.call` does.
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
