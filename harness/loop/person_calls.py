"""Person's calls: what the person runs at the prompt, through the same gate and the same log; no part of the conversation."""

from __future__ import annotations

from harness.actions import Action
from harness.errors import ToolError
from harness.gate.approval import Answer, Approval
from harness.gate.gate import Gate, Permit, Refusal, Withheld
from harness.gate.registry import ToolRegistry
from harness.interrupt import Interrupt
from harness.loop.running import run_permitted
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.policy import Verdict
from harness.redaction.redactor import Redactor

TYPED = "typed at the prompt"
"""What the log has for a person's words where nobody had to be asked."""


def run_by_person(
    call: ToolCall, *, gate: Gate, registry: ToolRegistry, interrupt: Interrupt, redactor: Redactor
) -> ToolResult:
    """Put the person's own call through the gate, and return its result; nothing of it enters the conversation.

    What a policy denies or blocks is refused here as well. Where it would ask, that the person typed it is the answer.
    Raises GateError, LogError, WorkspaceError.
    """
    registry.check_place()
    proposal = gate.propose(call, by_person=True)
    try:
        action = registry.prepare(call)
    except ToolError as error:
        return gate.refuse_invalid(proposal, f"Error: {error}", error.code.value if error.code else "")
    ruling = gate.authorize(proposal, action, approver=_typed)
    match ruling:
        case Permit():
            result = run_permitted(ruling, registry, interrupt, redactor)
            gate.settle(ruling, result)
            return result
        case Withheld():
            return ToolResult(call_id=call.id, status=ResultStatus.NOT_RUN, content=ruling.text)
        case Refusal():
            blocked = ruling.decision.word == "block"
            status = ResultStatus.BLOCKED if blocked else ResultStatus.DENIED
            return ToolResult(call_id=call.id, status=status, content=ruling.text)


def _typed(action: Action, verdict: Verdict) -> Approval:  # noqa: ARG001 - the signature of an Approver
    return Approval(answer=Answer.YES, by="person", words=TYPED)
