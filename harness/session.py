"""Session: what lasts from prompt to prompt, the conversation above all; the only mutable state that outlives a run."""

from __future__ import annotations

from collections.abc import Sequence

from harness.action_log import ActionLog
from harness.actions import JsonValue
from harness.history import History
from harness.message_records import message_json
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

    def change(self, log: ActionLog, why: str, start: int, stop: int, messages: Sequence[Message] = ()) -> None:
        """Record that a range of the conversation (counted without the system message) is replaced, and replace it.

        Raises LogError, and ValueError for a range that would part a call from its result; then nothing is changed.
        """
        changed: list[JsonValue] = [message_json(message) for message in messages]
        fields: dict[str, JsonValue] = {"why": why, "start": start, "stop": stop, "messages": changed}
        self.history.splice(start, stop, messages, before=lambda: log.append("history_changed", fields, sync=True))
        self.last_usage = Usage()  # how long it is now, the next reply will tell
