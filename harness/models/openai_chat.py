"""The chat completions API: the adapter for any server that speaks it; judges and runs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from harness.messages import Message
from harness.models.chat_body import Conversation
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Endpoint
from harness.models.failures import Refusal
from harness.models.lessons import learned, less_echo, no_streams, no_usage
from harness.models.openai_wire import OpenAIWire
from harness.tool import ToolSpec

__all__ = ["Conversation", "OpenAIChat"]


class OpenAIChat(OpenAIWire):
    """A model behind any server that speaks chat completions. One conversation at a time."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """Name the model and where it is (None: as the SDK finds it); see OpenAIWire for the rest."""
        endpoint = endpoint or Endpoint()
        super().__init__(model, endpoint, _Chat(model, endpoint), sleep=sleep, jitter=jitter)


class _Chat:
    """The Dialect of chat completions."""

    path = "/chat/completions"

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.quirks = endpoint.quirks
        self._bounds = endpoint.bounds
        self._conversation = Conversation(model, endpoint.quirks)

    @property
    def call_ids(self) -> AbstractSet[str]:
        return self._conversation.call_ids

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        return self._conversation.request(messages, tools)

    def assembly(self, secret: str) -> ChatReply:
        return ChatReply(secret, bounds=self._bounds, echo=self.quirks.echo)

    def learn(self, refusal: Refusal, messages: Sequence[Message]) -> bool:  # noqa: ARG002 - for dialects that look
        quirks = learned(self.quirks, refusal, (no_usage, less_echo, no_streams))
        if quirks == self.quirks:
            return False
        self.quirks = quirks
        self._conversation.adapt(quirks)
        return True
