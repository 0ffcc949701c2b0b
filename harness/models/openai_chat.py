"""The chat completions API: the adapter for any server that speaks it; judges and runs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.models.chat_body import Conversation
from harness.models.chat_reply import ChatReply
from harness.models.dialect import Dialect
from harness.models.endpoint import Endpoint
from harness.models.openai_wire import OpenAIWire
from harness.models.retries import less_echo, no_streams, no_usage

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
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Name the model and where it is (None: as the SDK finds it); see OpenAIWire for the rest."""
        endpoint = endpoint or Endpoint()
        super().__init__(model, endpoint, _Chat(model, endpoint), sleep=sleep, jitter=jitter, monotonic=monotonic)


class _Chat(Dialect):
    """Chat completions."""

    path = "/chat/completions"
    lessons = (no_usage, less_echo, no_streams)

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        super().__init__(endpoint, Conversation(model, endpoint.quirks))

    def assembly(self, secret: str) -> ChatReply:
        return ChatReply(secret, bounds=self.bounds, echo=self.quirks.echo)
