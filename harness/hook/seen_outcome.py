"""The outcome of a command that ran by a ticket, as we saw it ourselves: how it ended, and not what it printed."""

from __future__ import annotations

from harness.gate.records import CallRecords, Proposal
from harness.hook.agent_session import AgentSession
from harness.hook.confined_run import CommandEnd
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.redaction.redactor import Redactor

SEEN_BY = "harness exec"
NOT_KEPT = "What it printed went straight to the agent, and was not kept."


def record_outcome(folder: str, redactor: Redactor, number: int, end: CommandEnd, *, wait_seconds: float) -> None:
    """Record how the command of a call ended, in the session of that folder. Raises LogError."""
    with AgentSession(folder, redactor, wait_seconds=wait_seconds) as session:
        call = session.take_number(number) if session.begun else None
        if call is None:
            return
        how = f"exit code {end.code}" if end.code >= 0 else f"killed by signal {-end.code}"
        gaps = "".join(f"\n[not enforced: {gap}]" for gap in end.gaps)
        result = ToolResult(
            call_id=call.id,
            status=ResultStatus.OK if end.code == 0 else ResultStatus.FAILED,
            content=f"[{how}, {end.seconds:.1f} s] {NOT_KEPT}{gaps}",
            exit_code=end.code if end.code >= 0 else 128 - end.code,
            duration_ms=round(end.seconds * 1000),
        )
        proposal = Proposal(number=call.number, call=ToolCall(id=call.id, name=call.tool, arguments=""))
        CallRecords(session.log).ended(proposal, result, ran=True, seen_by=SEEN_BY)
