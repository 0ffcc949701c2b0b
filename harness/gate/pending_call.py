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
        """The present call; an edit at the question replaces it."""
        self.by_person = by_person
        self.edits: list[str] = []
        """The arguments that it was changed into at the question, redacted, one change after the other."""
        self.intent_logged = False
        """Whether its intent was written: then only an outcome says what was done."""
        self.action: Action | None = None
        self.prepared_at = -1
        """Count of changes at which `action` was prepared; see Judge."""
        self.verdict: Verdict | None = None
        self.judged_by: object = None
        """The facts besides the action that `verdict` is based on. A difference makes it stale."""
        self.checked = -1
        """The number of the proposal that hooks were asked about."""
        self.hook_answers: Sequence[CheckAnswer] = ()
        """Answers of the hooks about it."""


class CallEnd(Record):
    """The end of a call."""

    result: ToolResult
    summary: str
    """The call in a few words, for people."""
    ends_turn: bool = False
    """Whether the person asked to stop, not only to refuse this call."""
    halts: str = ""
    """Reason of the hook that stopped the run. Empty if none did."""
