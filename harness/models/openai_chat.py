"""The chat completions API: messages to request bodies, replies to ModelResponse; judges and runs nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from harness.messages import Message, ModelResponse
from harness.model import Retry
from harness.models.chat_body import Conversation
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Endpoint, Quirks
from harness.models.failures import Refusal
from harness.models.openai_wire import OpenAIWire
from harness.record import replace
from harness.tool import ToolSpec

__all__ = ["Conversation", "OpenAIChat"]

# llama-server: "Cannot use tools with stream"; others say that streaming is not supported, with or without tools.
_NO_STREAM = re.compile(
    r"tools? with stream|stream\w*[^.]{0,40}(not|n't) (supported|support|allowed|available)|"
    r"(not|n't) support[^.]{0,40}stream|stream\w*[^.]{0,40}(unsupported|tool|function)"
)


class OpenAIChat:
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
        self.name = model
        self._endpoint = endpoint or Endpoint()
        self._quirks = self._endpoint.quirks
        """Those of the endpoint, and what its server taught since."""
        self._wire = OpenAIWire(model, self._endpoint, sleep=sleep, jitter=jitter)
        self._conversation = Conversation(model, self._quirks)

    def warm_up(self) -> None:
        """Import the SDK and build the client; see OpenAIWire."""
        self._wire.warm_up()

    def close(self) -> None:
        """Close the connections; the next `complete` opens new ones."""
        self._wire.close()

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the whole reply to `messages`; see Model.complete and OpenAIWire.ask."""
        offered = frozenset(tool.name for tool in tools)

        def assembly(secret: str) -> ChatReply:
            return ChatReply(secret, bounds=self._endpoint.bounds, echo=self._quirks.echo, offered=offered)

        def amended(refusal: Refusal) -> bytes | None:
            quirks = learned(self._quirks, refusal)
            if quirks == self._quirks:
                return None
            self._quirks = quirks
            self._conversation.adapt(quirks)
            return self._conversation.request(messages, tools)

        return self._wire.ask(
            "/chat/completions",
            self._conversation.request(messages, tools),
            assembly,
            taken_ids=self._conversation.call_ids,
            on_text=on_text,
            on_retry=on_retry,
            seconds=seconds,
            amended=amended,
        )


def learned(quirks: Quirks, refusal: Refusal) -> Quirks:
    """Return `quirks` with what a refusal teaches: one field that the server does not take, or no streams."""
    words = refusal.words
    if refusal.status not in {0, 400, 422, 500, 501}:
        return quirks
    if quirks.stream and quirks.usage and ("stream_options" in words or "include_usage" in words):
        return replace(quirks, usage=False)
    if refusal.status != 500 and (named := [name for name in quirks.echo if name in words]):
        return replace(quirks, echo=tuple(name for name in quirks.echo if name not in named))
    if quirks.stream and _NO_STREAM.search(words):
        return replace(quirks, stream=False)
    return quirks
