"""The chat completions API: the adapter for any server that speaks it, and what a conversation is in its requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.chat_echo import EXTRA, given_back
from harness.models.chat_reply import ChatReply
from harness.models.dialect import Dialect
from harness.models.endpoint import Endpoint
from harness.models.failures import join_pairs
from harness.models.openai_wire import OpenAIWire
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.retries import less_echo, no_streams, no_usage
from harness.models.wire_format import IdForm, WireIds


class ChatDialect(Dialect):
    """Chat completions, with every message and every list of tools encoded once."""

    path = "/chat/completions"
    lessons = (no_usage, less_echo, no_streams)

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """Take the model's name, and where its server is."""
        self._tools = EncodedTools(_tool_json)
        super().__init__(model, endpoint)

    def adapt(self) -> None:
        """Write the next requests as the quirks want them; all messages are encoded anew."""
        quirks = self.quirks
        self._ids = WireIds(IdForm.NINE if quirks.nine_character_ids else IdForm.CHAT)
        self._messages = EncodedMessages(self._items)
        self._start = b'{"model":' + encoded(self._model) + b',"stream":' + encoded(quirks.stream)
        if quirks.stream and quirks.usage:
            self._start += b',"stream_options":{"include_usage":true}'

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. Reasoning goes back within the turn that it belongs to."""
        self._messages.update(messages)
        return b"".join((self._start, b',"messages":', *self._messages.array(), self._tools.field(tools), b"}"))

    def assembly(self, secret: str) -> ChatReply:
        """Return what puts the next reply together."""
        return ChatReply(secret, bounds=self.bounds, echo=self.quirks.echo)

    def _items(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        content = join_pairs(message.content, errors="replace")
        value: dict[str, JsonValue] = {"role": message.role.value, "content": content}
        fields, extras = given_back(message.echo, self.quirks.echo, same_turn=with_reasoning)
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


class OpenAIChat(OpenAIWire):
    """A model behind any server that speaks chat completions. One conversation at a time."""

    dialect = ChatDialect
