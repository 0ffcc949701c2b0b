"""What a conversation is in requests of the Responses API; pure, encodes nothing itself.

The server stores nothing (`store` is false): the whole conversation goes there with every request, reasoning included,
so that this API and chat completions are the same to everyone else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, Role
from harness.models.endpoint import Quirks
from harness.models.provider_text import join_pairs
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.responses_echo import read_echo
from harness.models.wire_ids import IdForm, WireIds
from harness.tool import ToolSpec


class Conversation:
    """Request bodies, with every message and every list of tools encoded once."""

    def __init__(self, model: str, quirks: Quirks | None = None) -> None:
        """Take the model's name, and what its server wants otherwise."""
        self._model = model
        self._messages = EncodedMessages(self._items)
        self._tools = EncodedTools(_tool_json)
        self._ids = WireIds(IdForm.RESPONSES)
        self._instructions = ("", b"")
        """The last system message, and the field that it became."""
        self._forgotten = 0
        """How many messages at the start go without their reasoning."""
        self.adapt(quirks or Quirks())

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._messages.call_ids

    def adapt(self, quirks: Quirks) -> None:
        """Write the next bodies as these quirks want them."""
        self._start = b'{"model":' + encoded(self._model) + b',"stream":' + encoded(quirks.stream) + b',"store":false'
        if quirks.encrypted_reasoning:
            self._start += b',"include":["reasoning.encrypted_content"]'

    def forget_reasoning(self, messages: Sequence[Message]) -> bool:
        """Leave out the reasoning of these messages from now on; say whether that changes anything."""
        changes = any(message.echo for message in messages[self._forgotten :])
        self._forgotten = len(messages)
        return changes

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. A system message at the start becomes the instructions."""
        system = messages[0].content if messages and messages[0].role is Role.SYSTEM else ""
        if system != self._instructions[0]:
            text = join_pairs(system, errors="replace")
            self._instructions = (system, b',"instructions":' + encoded(text) if text else b"")
        apart = 1 if system else 0
        self._messages.update(messages[apart:], reasoning_from=max(self._forgotten - apart, 0))
        start = (self._start, self._instructions[1], self._tools.field(tools), b',"input":')
        return b"".join((*start, *self._messages.array(), b"}"))

    def _items(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        text = join_pairs(message.content, errors="replace")
        match message.role:
            case Role.SYSTEM | Role.USER:
                yield {"type": "message", "role": message.role.value, "content": text}
            case Role.TOOL:
                call_id = self._ids.of(message.tool_call_id or "")
                yield {"type": "function_call_output", "call_id": call_id, "output": text}
            case Role.ASSISTANT:
                yield from self._assistant_items(message, text, with_reasoning)

    def _assistant_items(self, message: Message, text: str, with_reasoning: bool) -> Iterator[JsonValue]:
        """Yield text and calls, each after the reasoning that led to it; what nothing follows would be refused."""
        reasoning = read_echo(message.echo) if with_reasoning else []
        if text:
            yield from (item.value for item in reasoning if item.before == 0)
            yield {"type": "message", "role": "assistant", "content": text}
        for number, call in enumerate(message.tool_calls, 1):
            first = 0 if number == 1 and not text else number
            yield from (item.value for item in reasoning if first <= item.before <= number)
            yield {
                "type": "function_call",
                "call_id": self._ids.of(call.id),
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
