"""A model for tests that want calls made, and have nothing to say themselves."""

from __future__ import annotations

from collections.abc import Sequence

from harness.messages import FinishReason, Message, ModelResponse, ToolCall, Usage
from harness.model import ToolSpec
from harness.record import replace


class Playing:
    """A model that makes the calls of a list, each in a turn of its own, and is done."""

    name = "playing"

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._left = [replace(one, id=f"c{number}") for number, one in enumerate(calls)]

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: object,
        on_retry: object,
        seconds: float | None = None,
    ) -> ModelResponse:
        calls = (self._left.pop(0),) if self._left else ()
        return ModelResponse(
            text="" if calls else "Done.", tool_calls=calls, finish_reason=FinishReason.DONE, usage=Usage()
        )
