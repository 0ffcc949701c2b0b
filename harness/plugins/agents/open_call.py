"""Calls that an agent may carry out and whose outcome is open (`OpenCall`), and our last answers to it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.gate.records import Proposal
from harness.messages import ToolCall
from harness.record import Record


class OpenCall(Record):
    """A call that the agent may carry out, and that has no known outcome yet."""

    number: int
    id: str
    tool: str
    key: str
    """Key of the call in `AgentSession.answers`."""
    intent: Mapping[str, JsonValue] | None = None
    """Fields of the intent, if the agent asks the user first. Recorded after the user approves."""
    path: str = ""
    """The file that the call changes, if the change can be undone. Empty otherwise."""
    before_sha256: str | None = None
    ticket: str = ""
    """Path of the ticket if the call runs with one. Then harness observes the outcome, and ignores the agent's."""
    asked_ns: int = 0
    """Monotonic time at which the agent was told to ask, in nanoseconds. 0 if it was not."""

    @property
    def proposal(self) -> Proposal:
        """The call in the form that the records of its end need."""
        return Proposal(number=self.number, call=ToolCall(id=self.id, name=self.tool, arguments=""))


class AgentAnswer(Record):
    """Our answer to one call of the agent."""

    number: int
    """Number of the call in the log; of a patch, that of its first part."""
    allowed: str
    """Digest of what may run (`GuardedAgent.substance_of`). Empty if the call was refused."""


def end_of(proposal: Proposal, status: str, content: str) -> Mapping[str, JsonValue]:
    """Return the fields of an outcome that ends a call."""
    return {"call": proposal.number, "tool": proposal.call.name, "status": status, "content": content}


def invalidate(ticket: str) -> bool:
    """Invalidate a ticket. Return whether it was unused; then no process has run with it, and none will."""
    try:
        os.unlink(ticket)
    except OSError:
        return False
    return True
