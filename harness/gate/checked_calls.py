"""Hooks for calls: they run before a call that may run, and after it. Each answer is recorded."""

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
    """Asks the hooks about the calls of a gate. The gate adds their objections to the verdict (`tightened`)."""

    def __init__(self, checks: CallChecks, log: ActionLog, records: CallRecords) -> None:
        """Keep the checks, the log (for the session ID), and the records for the answers."""
        self._checks = checks
        self._log = log
        self._records = records

    @property
    def programs(self) -> Sequence[str]:
        """Absolute paths of the hooks' programs, which no call may write."""
        return self._checks.programs

    def asks_about(self, action: Action) -> bool:
        """Return whether any hook checks a call, before it or after."""
        return self._checks.asks_about(action)

    def ask_before(self, pending: PendingCall, action: Action, verdict: Verdict, seconds: float | None) -> bool:
        """Ask the hooks about a call, once per proposal. Return whether any hook ran; it may have changed files.

        Does not ask if the policy refuses the call. Raises LogError, and Interrupted if the user stopped a hook.
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
        """Return a result with the hooks' notes for the model, and the reason of a hook that stops the run.

        The reason is empty if no hook stops the run. Asks the hooks only if the call `ran`. Raises LogError.
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
        """Record the hooks' answers about a call, or about the session if there is no proposal. Raises LogError."""
        for answer in answers:
            self._records.checked(answer, proposal)
