"""What a conversation is in requests of the chat completions API; pure, encodes nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.models.chat_echo import EXTRA, given_back
from harness.models.endpoint import Quirks
from harness.models.provider_text import join_pairs
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.wire_ids import IdForm, WireIds
from harness.tool import ToolSpec


class Conversation:
    """Request bodies, with every message and every list of tools encoded once."""

    def __init__(self, model: str, quirks: Quirks | None = None) -> None:
        """Take the model's name, and what its server wants otherwise."""
        self._model = model
        self._tools = EncodedTools(_tool_json)
        self.adapt(quirks or Quirks())

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._messages.call_ids

    def adapt(self, quirks: Quirks) -> None:
        """Write the next bodies as these quirks want them."""
        self._echo = quirks.echo
        self._ids = WireIds(IdForm.NINE if quirks.nine_character_ids else IdForm.CHAT)
        self._messages = EncodedMessages(self._items)
        self._start = b'{"model":' + encoded(self._model) + b',"stream":' + encoded(quirks.stream)
        if quirks.stream and quirks.usage:
            self._start += b',"stream_options":{"include_usage":true}'

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. Reasoning goes back within the turn that it belongs to."""
        self._messages.update(messages)
        return b"".join((self._start, b',"messages":', *self._messages.array(), self._tools.field(tools), b"}"))

    def _items(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        content = join_pairs(message.content, errors="replace")
        value: dict[str, JsonValue] = {"role": message.role.value, "content": content}
        fields, extras = given_back(message.echo, self._echo, same_turn=with_reasoning)
        if message.tool_calls:
            # Servers that turn "" away and servers that want the field to be there both take null.
            value["content"] = content or None
            value["tool_calls"] = [
                self._call_json(call, extras[place] if place < len(extras) else None)
                for place, call in enumerate(message.tool_calls)
            ]
        if message.role is Role.TOOL:
            value["tool_call_id"] = self._ids.of(message.tool_call_id or "")
        yield value | fields

    def _call_json(self, call: ToolCall, extra: JsonValue) -> JsonValue:
        function: JsonValue = {"name": sendable_name(call.name), "arguments": sendable_arguments(call.arguments)}
        value: dict[str, JsonValue] = {"id": self._ids.of(call.id), "type": "function", "function": function}
        return value | {EXTRA: extra} if extra else value


def _tool_json(tool: ToolSpec) -> JsonValue:
    parameters = dict(tool.parameters)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }
