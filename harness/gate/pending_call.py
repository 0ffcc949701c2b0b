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
    """One call on its way through the gate: what is known of it so far."""

    def __init__(self, proposal: Proposal, *, by_person: bool = False) -> None:
        self.proposal = proposal
        """The call as it is wanted now: an edit at the question puts another in its place."""
        self.by_person = by_person
        self.edits: list[str] = []
        """The arguments that it was changed into at the question, redacted, one change after the other."""
        self.begun = False
        """Whether its intent was written: then only an outcome says what was done."""
        self.action: Action | None = None
        self.prepared_at = -1
        """When `action` was prepared: the count of changes then; see Judge."""
        self.verdict: Verdict | None = None
        self.judged_by: object = None
        """What `verdict` follows from besides the action."""
        self.checked = -1
        """The number of the proposal that hooks were asked about."""
        self.said: Sequence[CheckAnswer] = ()
        """What they said of it."""


class CallEnd(Record):
    """What became of a call."""

    result: ToolResult
    about: str
    """The call in a few words, for people."""
    ends_turn: bool = False
    """Whether the person asked to stop, not only to refuse this call."""
    halts: str = ""
    """Why nothing runs after it, where a hook that looked at it says so."""
