"""The Responses API: messages to request bodies, replies to ModelResponse; judges and runs nothing.

The server stores nothing (`store` is false): the whole conversation goes there with every request, reasoning included,
so that this API and chat completions are the same to everyone else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, ModelResponse, Role
from harness.model import Retry
from harness.models.endpoint import Endpoint
from harness.models.failures import Refusal
from harness.models.openai_wire import OpenAIWire
from harness.models.provider_text import join_pairs
from harness.models.request_body import (
    EncodedMessages,
    EncodedTools,
    encoded,
    sendable_arguments,
    sendable_id,
    sendable_name,
)
from harness.models.response_items import read_echo
from harness.models.responses_reply import ResponsesReply
from harness.record import replace
from harness.tool import ToolSpec

# OpenAI says "Encrypted content is not supported with this model" (pydantic/pydantic-ai#2865), others name the field.
_INCLUDE_REFUSED = re.compile(r"\binclude\b|encrypted.?content")

# "The encrypted content ... could not be verified" (openai/codex#9045; also in the middle of an answer), "Item with id
# 'rs_1' not found", an item type that is not known.
_REASONING_REFUSED = re.compile(r"reasoning|encrypted.?content|\brs_")


class OpenAIResponses:
    """A model behind any server that speaks the Responses API. One conversation at a time."""

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
        endpoint = endpoint or Endpoint()
        self._bounds = endpoint.bounds
        self._wire = OpenAIWire(model, endpoint, sleep=sleep, jitter=jitter)
        self._conversation = Conversation(model, stream=endpoint.quirks.stream)
        self._includes_reasoning = True
        """Whether encrypted reasoning is asked for; false once the server has refused that."""

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
        """Return the whole reply to `messages`; see Model.complete and OpenAIWire.ask.

        A server that refuses to send encrypted reasoning is asked again without it, at once, and never for it again. One
        that refuses the reasoning of earlier replies (of another model or account, in a resumed session) gets the same
        conversation without.
        """
        offered = frozenset(tool.name for tool in tools)

        def body() -> bytes:
            return self._conversation.request(messages, tools, includes_reasoning=self._includes_reasoning)

        def amended(refusal: Refusal) -> bytes | None:
            if refusal.status not in {0, 400, 404, 422}:
                return None
            if _REASONING_REFUSED.search(refusal.words) and self._conversation.forget_reasoning(messages):
                return body()
            if self._includes_reasoning and _INCLUDE_REFUSED.search(refusal.words):
                self._includes_reasoning = False
                return body()
            return None

        return self._wire.ask(
            "/responses",
            body(),
            lambda secret: ResponsesReply(secret, bounds=self._bounds, offered=offered),
            taken_ids=self._conversation.call_ids,
            on_text=on_text,
            on_retry=on_retry,
            seconds=seconds,
            amended=amended,
        )


class Conversation:
    """Request bodies, with every message and every list of tools encoded once."""

    def __init__(self, model: str, *, stream: bool = True) -> None:
        """Take the model's name, and whether replies are asked for as event streams."""
        self._start = b'{"model":' + encoded(model) + b',"stream":' + encoded(stream) + b',"store":false'
        self._messages = EncodedMessages(_items)
        self._tools = EncodedTools(_tool_json)
        self._instructions = ("", b"")
        """The last system message, and the field that it became."""
        self._forgotten = 0
        """How many messages at the start go without their reasoning."""

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._messages.call_ids

    def forget_reasoning(self, messages: Sequence[Message]) -> bool:
        """Leave out the reasoning of these messages from now on; say whether that changes anything."""
        changes = any(message.echo for message in messages[self._forgotten :])
        self._forgotten = len(messages)
        return changes

    def request(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, includes_reasoning: bool = True
    ) -> bytes:
        """Return the body of a request. A system message at the start becomes the instructions."""
        system = messages[0].content if messages and messages[0].role is Role.SYSTEM else ""
        if system != self._instructions[0]:
            text = join_pairs(system, errors="replace")
            self._instructions = (system, b',"instructions":' + encoded(text) if text else b"")
        if self._forgotten:
            known = messages[: self._forgotten]
            plain = [replace(message, echo="") if message.echo else message for message in known]
            messages = [*plain, *messages[self._forgotten :]]
        self._messages.update(messages[1:] if system else messages)
        include = b',"include":["reasoning.encrypted_content"]' if includes_reasoning else b""
        start = (self._start, include, self._instructions[1], self._tools.field(tools), b',"input":')
        return b"".join((*start, *self._messages.array(), b"}"))


def _items(message: Message) -> Iterator[JsonValue]:
    text = join_pairs(message.content, errors="replace")
    match message.role:
        case Role.SYSTEM | Role.USER:
            yield {"type": "message", "role": message.role.value, "content": text}
        case Role.TOOL:
            call_id = sendable_id(message.tool_call_id or "")
            yield {"type": "function_call_output", "call_id": call_id, "output": text}
        case Role.ASSISTANT:
            yield from _assistant_items(message, text)


def _assistant_items(message: Message, text: str) -> Iterator[JsonValue]:
    """Yield text and calls, each after the reasoning that led to it; the API refuses reasoning that nothing follows."""
    reasoning = read_echo(message.echo)
    if text:
        yield from (item.value for item in reasoning if item.before == 0)
        yield {"type": "message", "role": "assistant", "content": text}
    for number, call in enumerate(message.tool_calls, 1):
        first = 0 if number == 1 and not text else number
        yield from (item.value for item in reasoning if first <= item.before <= number)
        yield {
            "type": "function_call",
            "call_id": sendable_id(call.id),
            "name": sendable_name(call.name),
            "arguments": sendable_arguments(call.arguments),
        }


def _tool_json(tool: ToolSpec) -> JsonValue:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        # With true the API wants schemas of a kind that not all tools have; arguments are checked here anyway.
        "strict": False,
    }
