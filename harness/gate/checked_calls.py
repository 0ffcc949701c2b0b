"""Hooks about calls: asked before a call that may run, and after it; each answer is recorded."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Action, Decision
from harness.gate.call_checks import CallChecks, CheckAnswer, strictest_answer, with_notes
from harness.gate.pending_call import PendingCall
from harness.gate.records import CallRecords, Proposal
from harness.gate.ruling import Permit
from harness.log.action_log import ActionLog
from harness.messages import ToolResult
from harness.policy.verdict import Verdict
from harness.record import replace


class CheckedCalls:
    """Asks the hooks about the calls of a gate; what they have against one, the gate adds to its verdict (`tightened`)."""

    def __init__(self, checks: CallChecks, log: ActionLog, records: CallRecords) -> None:
        """Take the checks, the log that names the session, and the records for their answers."""
        self._checks = checks
        self._log = log
        self._records = records

    @property
    def programs(self) -> Sequence[str]:
        """Absolute paths of their programs, which no call may write."""
        return self._checks.programs

    def asks_about(self, action: Action) -> bool:
        """Return whether any hook checks a call, before it or after."""
        return self._checks.asks_about(action)

    def ask_before(self, pending: PendingCall, action: Action, verdict: Verdict, seconds: float | None) -> bool:
        """Ask once about a call that the policy lets run, or asks about; say whether any hook ran, and may have changed things.

        Raises LogError, and Interrupted where the person stopped it.
        """
        number = pending.proposal.number
        if pending.checked == number:
            return False
        answers: Sequence[CheckAnswer] = ()
        if verdict.decision <= Decision.CONFIRM:
            answers = self._checks.before(self._log.session, action, verdict, seconds)
        self.note(answers, pending.proposal)
        pending.checked, pending.hook_answers = number, answers
        return bool(answers)

    def look_at(self, pending: PendingCall, permit: Permit, result: ToolResult, *, ran: bool) -> tuple[ToolResult, str]:
        """Return a result with the hooks' words for the model, and the reason why nothing may run after it, or an
        empty string.

        Raises LogError.
        """
        answers: Sequence[CheckAnswer] = ()
        if ran:
            answers = self._checks.after(self._log.session, permit.action, permit.verdict, result)
            self.note(answers, permit.proposal)
        content = with_notes(result.content, (*pending.hook_answers, *answers))
        halting = strictest_answer(answers)
        halts = f"{halting.by}: {halting.reason}" if halting and halting.decision is Decision.BLOCK else ""
        return (result if content == result.content else replace(result, content=content)), halts

    def note(self, answers: Sequence[CheckAnswer], proposal: Proposal | None = None) -> None:
        """Record what they said of a call, or of none. Raises LogError."""
        for answer in answers:
            self._records.checked(answer, proposal)
