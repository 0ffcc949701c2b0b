"""A call on its way through the gate (`PendingCall`), and its end."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Action
from harness.gate.call_checks import CheckAnswer
from harness.gate.records import Proposal
from harness.messages import ToolResult
from harness.policy.verdict import Verdict
from harness.record import Record


class PendingCall:
    """State of a tool call in the gate."""

    def __init__(self, proposal: Proposal, *, by_person: bool = False) -> None:
        self.proposal = proposal
        """The present call. An edit at the approval prompt replaces it."""
        self.by_person = by_person
        self.edits: list[str] = []
        """Redacted arguments of each edit at the approval prompt, oldest first."""
        self.intent_logged = False
        """Whether the intent record is in the log. If so, an outcome record must follow."""
        self.action: Action | None = None
        self.prepared_at = -1
        """Count of changes at which `action` was prepared; see Judge."""
        self.verdict: Verdict | None = None
        self.judged_by: object = None
        """The policy and the number of unseen changes that `verdict` is based on. A difference makes it stale."""
        self.checked = -1
        """Number of the proposal that the hooks were last asked about."""
        self.hook_answers: Sequence[CheckAnswer] = ()
        """Answers of the hooks about that proposal."""


class CallEnd(Record):
    """The end of a call."""

    result: ToolResult
    summary: str
    """Short description of the call, for people."""
    ends_turn: bool = False
    """Whether the user stopped the turn, and did not only refuse this call."""
    halts: str = ""
    """Reason of the hook that stopped the run. Empty if none did."""
