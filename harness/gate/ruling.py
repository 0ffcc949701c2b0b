"""Rulings: a permit or a refusal, from a verdict and an answer. Pure and total.

INVARIANT: a Permit can be redeemed once, only for the action that it was made for, and only after its intent is on
disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never, final

from harness.actions import Action, Decision, Facet, describe_facet
from harness.errors import GateError
from harness.gate.approval import Approval
from harness.gate.records import Proposal
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.policy.rules import Layer
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record, replace

NO_DETOUR = "Do not retry this call as it is, and do not get at what was refused another way."
NO_OTHER_WAY = "Do not get at what was refused another way."


class _Seal:
    """Validity of a Permit: valid for one Permit object, for one use, and only after the intent is on disk."""

    __slots__ = ("armed", "permit")

    def __init__(self) -> None:
        self.permit: Permit | None = None
        self.armed = False


@final
class Permit(Record):
    """Permission to run one action once. Only the gate makes permits: a copied or changed permit cannot be redeemed."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    approval: Approval | None
    seal: _Seal

    def redeem(self) -> Action:
        """Return the action to run, and make the permit invalid.

        Raises GateError if the gate did not make this permit, if its intent is not logged yet, or if it was redeemed
        before.
        """
        if type(self.seal) is not _Seal or self.seal.permit is not self or not self.seal.armed:
            raise GateError("a call was about to run without a valid permit")
        self.seal.armed = False
        self.seal.permit = None  # breaks a reference cycle: the action may hold a whole file
        return self.action


class Refusal(Record):
    """A call that is not allowed to run, and the reason."""

    proposal: Proposal
    action: Action
    verdict: Verdict
    approval: Approval | None
    decision: Decision
    """DENY or BLOCK."""
    text: str
    """Refusal message for the model; see `refusal_text`."""

    @property
    def replacement_call(self) -> ToolCall | None:
        """The call that replaces this one, if there is one."""
        if self.approval is None or self.approval.answer is not Answer.EDIT:
            return None
        return replace(self.proposal.call, arguments=self.approval.arguments)

    @property
    def ends_turn(self) -> bool:
        """Whether the user stopped the turn, and did not only refuse this call."""
        return self.approval is not None and self.approval.answer is Answer.STOP


Ruling: TypeAlias = Permit | Refusal


def rule_on(
    proposal: Proposal,
    action: Action,
    verdict: Verdict,
    approval: Approval | None,
    unattended: Decision,
    describe: Callable[[Facet], str] = describe_facet,
) -> Ruling:
    """Return the ruling for a verdict and, if the verdict is CONFIRM, for the answer. Pure and total.

    `describe` returns a short description of the part of the call that a refusal is about.
    """
    match verdict.decision:
        case Decision.AUTO:
            permitted = True
            decision = Decision.AUTO
        case Decision.CONFIRM:
            permitted = approval is not None and approval.answer is Answer.YES
            nobody = approval is None or approval.answer is Answer.NOBODY
            halted = approval is not None and approval.answer is Answer.HALT
            decision = Decision.BLOCK if halted or (nobody and unattended is Decision.BLOCK) else Decision.DENY
        case Decision.DENY | Decision.BLOCK:
            permitted = False
            decision = verdict.decision
        case _:
            assert_never(verdict.decision)
    if permitted:
        seal = _Seal()
        seal.permit = Permit(proposal=proposal, action=action, verdict=verdict, approval=approval, seal=seal)
        return seal.permit
    return Refusal(
        proposal=proposal,
        action=action,
        verdict=verdict,
        approval=approval,
        decision=decision,
        text=refusal_text(verdict, approval, decision, describe),
    )


def refusal_text(
    verdict: Verdict,
    approval: Approval | None,
    decision: Decision,
    describe: Callable[[Facet], str] = describe_facet,
) -> str:
    """Return the refusal message: who refused, the part, the reason, the hint, and a warning against workarounds."""
    facet = verdict.deciding
    part = describe(facet.facet)
    by, reason = _without_packaged_folder(facet)
    is_whole = not part or facet.source is Source.HOOK
    sentence = f"{reason.rstrip('.')}." if is_whole else f"{reason.rstrip('.')}. Part: `{part}`."
    hint = f" Hint: {facet.hint}" if facet.hint else ""
    word = "Blocked" if decision is Decision.BLOCK else "Denied"
    if approval is None:
        text = f"{word} by {by}: {sentence}{hint}"
    elif approval.answer is Answer.NOBODY:
        nobody = approval.words or "nobody is there to ask"
        text = f"{word}: this needs a person's yes ({by}) and {nobody}. {sentence}{hint}"
    elif approval.answer is Answer.EDIT:
        return f"Not run: {approval.whose} put another call in its place."
    else:
        words = f': "{approval.words}".' if approval.words else ", without a reason."
        if approval.answer is Answer.STOP and not approval.words:
            words = ", who stopped the turn at the question."
        text = f"{word} by {approval.whose}{words} Part: `{part}`."
    if decision is Decision.BLOCK:
        return f"{text} The run stops here."
    return f"{text} {NO_OTHER_WAY if approval is not None and approval.may_retry else NO_DETOUR}"


def _without_packaged_folder(facet: FacetVerdict) -> tuple[str, str]:
    """Return the deciding rule and the reason. For a shipped policy, the folder of its file is removed from both."""
    if facet.layer is not Layer.SHIPPED or facet.origin is None:
        return facet.by, facet.reason
    folder = "".join(facet.origin.file.rpartition("/")[:2])
    return facet.by.replace(folder, ""), facet.reason.replace(folder, "")
