"""Session: what lasts from prompt to prompt, the conversation above all; the only mutable state that outlives a run."""

from __future__ import annotations

from harness.history import History
from harness.messages import Message, Usage


class Session:
    """One conversation, under the name by which the log knows it; `Agent.start` makes it."""

    def __init__(self, system: str, identity: str) -> None:
        self.identity = identity
        self.history = History(system)
        self.usage = Usage()
        self.last_usage = Usage()
        """Of the last reply: how long the conversation was, as the provider counts."""
        self.ended = False

    @property
    def messages(self) -> list[Message]:
        """The conversation, the system message first. Changed by History only."""
        return self.history.messages
