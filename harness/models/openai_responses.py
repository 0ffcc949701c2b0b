"""The Responses API: the adapter for any server that speaks it; judges and runs nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from harness.messages import Message
from harness.models.dialect import Dialect
from harness.models.endpoint import Endpoint
from harness.models.failures import Refusal
from harness.models.lessons import no_encrypted_reasoning, no_streams
from harness.models.openai_wire import OpenAIWire
from harness.models.responses_body import Conversation
from harness.models.responses_reply import ResponsesReply

# "The encrypted content ... could not be verified" (openai/codex#9045; also in the middle of an answer), "Item with id
# 'rs_1' not found", an item type that is not known.
_REASONING_REFUSED = re.compile(r"reasoning|encrypted.?content|\brs_")


class OpenAIResponses(OpenAIWire):
    """A model behind any server that speaks the Responses API. One conversation at a time."""

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
        super().__init__(model, endpoint, _Responses(model, endpoint), sleep=sleep, jitter=jitter, monotonic=monotonic)


class _Responses(Dialect):
    """The Responses API."""

    path = "/responses"
    lessons = (no_encrypted_reasoning, no_streams)

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._conversation = Conversation(model, endpoint.quirks)
        super().__init__(endpoint, self._conversation)

    def assembly(self, secret: str) -> ResponsesReply:
        return ResponsesReply(secret, bounds=self.bounds)

    def learn(self, refusal: Refusal, messages: Sequence[Message]) -> bool:
        """A server that refuses the reasoning of earlier replies (of another model or account, in a resumed session) gets
        the same conversation without; one that has no encrypted reasoning is never asked for it again.
        """
        about_reasoning = refusal.status in {0, 400, 404, 422} and _REASONING_REFUSED.search(refusal.words)
        if about_reasoning and self._conversation.forget_reasoning(messages):
            return True
        return super().learn(refusal, messages)
