"""Calls of a gate without an outcome: records their proposals, and the ends of calls that did not run."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.gate.records import CallRecords, Proposal, sha256_of
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult


class ProposedCalls:
    """The numbered calls of a session. Each is open until its end is recorded."""

    def __init__(self, log: ActionLog, records: CallRecords, proposed: int) -> None:
        """Create the list. `proposed` is the number of calls that the session has had so far."""
        self._log = log
        self._records = records
        self.proposed = proposed
        self._open: dict[int, Proposal] = {}

    def propose(
        self,
        call: ToolCall,
        turn: int,
        step: int,
        edited_from: Proposal | None = None,
        *,
        by_person: bool = False,
        agent: Mapping[str, JsonValue] | None = None,
    ) -> Proposal:
        """Record a proposed call, and return its proposal.

        `edited_from` is the call that it replaces. Raises LogError.
        """
        self.proposed += 1
        digest = sha256_of(call.arguments)
        proposal = Proposal(number=self.proposed, call=call, arguments_sha256=digest, turn=turn, step=step)
        self._open[proposal.number] = proposal
        self._records.proposed(proposal, edited_from=edited_from, by_person=by_person, agent=agent)
        return proposal

    def close(self, proposal: Proposal) -> None:
        """Remove a call from the open calls: it has ended, or another program carries it out."""
        self._open.pop(proposal.number, None)

    def end(self, proposal: Proposal, status: ResultStatus, content: str, error_code: str = "") -> ToolResult:
        """Record the end of a call that did not run, and return its result. Raises LogError."""
        result = ToolResult(call_id=proposal.call.id, status=status, content=content, error_code=error_code)
        self._records.record_end(proposal, result, ran=False)
        self.close(proposal)
        return result

    def end_unjudged(
        self, proposal: Proposal, status: ResultStatus, content: str, reason: str, error_code: str = ""
    ) -> ToolResult:
        """Record that a call was not judged, and its end. Return its result. Raises LogError."""
        self._records.undecided(proposal, reason)
        return self.end(proposal, status, content, error_code)

    def skip(self, proposal: Proposal, reason: str) -> ToolResult:
        """Record the end of a call that was not reached, and return its result. Raises LogError."""
        return self.end_unjudged(proposal, ResultStatus.NOT_RUN, f"Not run: {reason}", reason)

    def end_all(self, reason: str) -> None:
        """Record an end for every open call that did not begin. Raises LogError.

        A call whose last record is its intent gets no end: it may have run, and an audit must see that.
        """
        for proposal in tuple(self._open.values()):
            step = self._log.last_step(proposal.number)
            if step == "call_proposed":
                self.skip(proposal, reason)
            elif step in ("decision", "approval_asked", "approval_answered"):
                self.end(proposal, ResultStatus.NOT_RUN, f"Not run: {reason}")
