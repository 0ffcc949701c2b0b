"""Bodies of chat completions requests out of a conversation, each message encoded once; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.models.chat_echo import EXTRA, given_back, has_reasoning
from harness.models.endpoint import Quirks
from harness.models.provider_text import join_pairs
from harness.models.wire_ids import WireIds
from harness.tool import ToolSpec

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), default=dict).encode


class Conversation:
    """Request bodies, with every message and every list of tools encoded once: a turn costs what it adds.

    On the wire, user messages in a row are one, and assistant messages that say nothing are left out: strict servers
    want roles to alternate. INVARIANT: a body depends on its own messages only, not on what was asked before.
    """

    def __init__(self, model: str, quirks: Quirks | None = None) -> None:
        """Take the model's name, and what its server wants otherwise."""
        self._model = model
        self._messages: list[Message] = []
        self._encoded: list[bytes] = []
        """One for each message; empty for those that are not sent by themselves."""
        self._reasoning: list[int] = []
        """The places of the messages that were encoded with their reasoning."""
        self._call_ids: set[str] = set()
        self._tools: tuple[ToolSpec, ...] = ()
        self._encoded_tools = b""
        self.adapt(quirks or Quirks())

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._call_ids

    def adapt(self, quirks: Quirks) -> None:
        """Write the next bodies as these quirks want them."""
        self._quirks = quirks
        self._ids = WireIds(nine_characters=quirks.nine_character_ids)
        self._start = b'{"model":' + _bytes(self._model) + (b',"stream":true' if quirks.stream else b',"stream":false')
        if quirks.stream and quirks.usage:
            self._start += b',"stream_options":{"include_usage":true}'
        self._start += b',"messages":['
        self._keep(0)

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. Only what differs from the messages of the request before is encoded."""
        self._keep(self._common(messages))
        for message in messages[len(self._messages) :]:
            self._add(message)
        self._show_reasoning()
        if self._tools != (offered := tuple(tools)):
            self._tools = offered
            listed: list[JsonValue] = [_tool_json(tool) for tool in offered]
            self._encoded_tools = b',"tools":' + _bytes(listed) if listed else b""
        sent = b",".join([encoded for encoded in self._encoded if encoded])
        return b"".join((self._start, sent, b"]", self._encoded_tools, b"}"))

    def _common(self, messages: Sequence[Message]) -> int:
        """Return how many messages at the start are those of the request before, and need no other encoding.

        User messages at the end of them are encoded anew: another one may follow that belongs to them.
        """
        count = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and old != new:
                break
            count += 1
        while count and (self._messages[count - 1].role is Role.USER or _says_nothing(self._messages[count - 1])):
            count -= 1
        return count

    def _keep(self, count: int) -> None:
        if any(message.tool_calls for message in self._messages[count:]):
            self._call_ids = {call.id for message in self._messages[:count] for call in message.tool_calls}
        del self._messages[count:], self._encoded[count:]
        while self._reasoning and self._reasoning[-1] >= count:
            self._reasoning.pop()

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._encoded.append(b"")
        self._call_ids.update(call.id for call in message.tool_calls)
        place = len(self._messages) - 1
        if message.role is Role.USER:
            while place and (self._messages[place - 1].role is Role.USER or _says_nothing(self._messages[place - 1])):
                place -= 1
            run = [each for each in self._messages[place:] if each.role is Role.USER]
            message = Message(role=Role.USER, content="\n\n".join(each.content for each in run))
        if not _says_nothing(message):
            self._encode(place, message, same_turn=False)

    def _show_reasoning(self) -> None:
        """Have exactly the messages after the last user message hold their reasoning."""
        start = len(self._messages)
        while start and self._messages[start - 1].role is not Role.USER:
            start -= 1
        for place in self._reasoning:
            if place < start:
                self._encode(place, self._messages[place], same_turn=False)
        kept = {place for place in self._reasoning if place >= start}
        self._reasoning = [
            place
            for place in range(start, len(self._messages))
            if self._messages[place].echo and has_reasoning(self._messages[place].echo) and self._encoded[place]
        ]
        for place in self._reasoning:
            if place not in kept:
                self._encode(place, self._messages[place], same_turn=True)

    def _encode(self, place: int, message: Message, *, same_turn: bool) -> None:
        self._encoded[place] = _bytes(self._message_json(message, same_turn=same_turn))

    def _message_json(self, message: Message, *, same_turn: bool) -> JsonValue:
        content = join_pairs(message.content, errors="replace")
        value: dict[str, JsonValue] = {"role": message.role.value, "content": content}
        fields, extras = given_back(message.echo, self._quirks.echo, same_turn=same_turn)
        if message.tool_calls:
            # Servers that turn "" away and servers that want the field to be there both take null.
            value["content"] = content or None
            value["tool_calls"] = [
                self._call_json(call, extras[place] if place < len(extras) else None)
                for place, call in enumerate(message.tool_calls)
            ]
        if message.role is Role.TOOL:
            value["tool_call_id"] = self._ids.of(message.tool_call_id or "")
        return value | fields

    def _call_json(self, call: ToolCall, extra: JsonValue) -> JsonValue:
        function: JsonValue = {"name": _call_name(call.name), "arguments": _sent_arguments(call.arguments)}
        value: dict[str, JsonValue] = {"id": self._ids.of(call.id), "type": "function", "function": function}
        return value | {EXTRA: extra} if extra else value


def _says_nothing(message: Message) -> bool:
    return message.role is Role.ASSISTANT and not message.tool_calls and not message.content


def _call_name(name: str) -> str:
    """Return a name that the API takes back: an invented one such as `functions.bash` would make every later request fail."""
    return _NOT_IN_NAMES.sub("_", name)[:64] or "unknown"


def _sent_arguments(arguments: str) -> str:
    """Return arguments that every server can read: vLLM and Ollama parse them, and fail for what is no JSON object.

    Text that is one is sent as it came.
    """
    try:
        value = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return arguments
    return _encode({"invalid_arguments": arguments}) if arguments.strip() else "{}"


def _no_constant(constant: str) -> JsonValue:
    raise ValueError(constant)


def _tool_json(tool: ToolSpec) -> JsonValue:
    parameters = dict(tool.parameters)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _bytes(value: JsonValue) -> bytes:
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # a lone surrogate in a call's arguments, which are sent back as they came
        return _encode_ascii(value).encode()
