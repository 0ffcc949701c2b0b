"""A model that returns prepared replies, without a server. For tests of programs that use an agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from harness.actions import JsonValue
from harness.declared_types import check_value
from harness.errors import ModelError
from harness.messages import FinishReason, Message, ModelResponse, ToolCall, Usage
from harness.model import Retry, ToolSpec

ScriptedReply: TypeAlias = str | tuple[str, Mapping[str, JsonValue]] | ModelResponse
"""An answer as text, a call as a tool's name and its arguments, or a complete reply."""


class ScriptedModel:
    """A `Model` that returns prepared replies in order.

    ```python
    model = ScriptedModel(("bash", {"command": "ls"}), "There is one file.")
    ```
    """

    def __init__(self, *replies: ScriptedReply, name: str = "scripted") -> None:
        """Take the replies. `name` is the model's name in the log."""
        for place, reply in enumerate(replies):
            check_value(f"replies[{place}]", reply, ScriptedReply)
        check_value("name", name, str)
        self.name = name
        self.requests: list[tuple[Message, ...]] = []
        """The conversation of each request, oldest first."""
        self._replies = replies

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],  # noqa: ARG002 - the signature of a Model
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],  # noqa: ARG002 - likewise
        seconds: float | None = None,  # noqa: ARG002 - likewise
    ) -> ModelResponse:
        """Return the next reply, and pass its text to `on_text`. Raises ModelError after the last reply."""
        number = len(self.requests)
        self.requests.append(tuple(messages))
        if number >= len(self._replies):
            raise ModelError(f"the script of {len(self._replies)} replies is over")
        response = _response(self._replies[number], f"call_{number + 1}")
        if response.text:
            on_text(response.text)
        return response


def _response(reply: ScriptedReply, call_id: str) -> ModelResponse:
    if isinstance(reply, ModelResponse):
        return reply
    if isinstance(reply, str):
        return ModelResponse(text=reply, tool_calls=(), finish_reason=FinishReason.DONE, usage=Usage())
    name, arguments = reply
    call = ToolCall(id=call_id, name=name, arguments=json.dumps(dict(arguments)))
    return ModelResponse(text="", tool_calls=(call,), finish_reason=FinishReason.DONE, usage=Usage())
