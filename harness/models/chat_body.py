"""What a conversation is in requests of the chat completions API; pure, encodes nothing itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.endpoint import Quirks
from harness.models.failures import join_pairs
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.wire_format import IdForm, WireIds

ECHO_CHARACTERS = 4_000_000
"""More of it is not kept: a part of a reasoning is of no use."""
MAX_DEPTH = 50
"""Of nested lists and objects; what is deeper is not kept, for it could not be encoded into every request."""
EXTRA = "extra_content"
"""Where Gemini's compatible end puts its thought signatures, in a message and in its calls; without the one of a call it
refuses the next request (ai.google.dev, "Thought signatures")."""

_API = "chat"
_TEXTS = frozenset(("text", "summary", "thinking"))
"""Fields of a part that grow; every other one is replaced."""


class _Part:
    """One part of a list of reasoning, while its pieces come in."""

    def __init__(self, piece: dict[str, JsonValue]) -> None:
        self.kind = piece.get("type")
        self._fields: dict[str, JsonValue] = {}
        self._texts: dict[str, list[str]] = {}
        self.add(piece)

    def add(self, piece: dict[str, JsonValue]) -> None:
        for name, value in piece.items():
            if name in _TEXTS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
                self._fields.setdefault(name, "")
            elif value is not None or name not in self._fields:
                self._fields[name] = value

    def json(self) -> JsonValue:
        return self._fields | {name: "".join(texts) for name, texts in self._texts.items()}


class Echo:
    """What is to be given back with one reply, put together from its deltas."""

    def __init__(self, names: Sequence[str]) -> None:
        """Take which fields of a message are to be given back; what calls have in `extra_content` always is."""
        self._names = tuple(names)
        self._texts: dict[str, list[str]] = {}
        self._parts: dict[str, list[_Part | JsonValue]] = {}
        self._by_index: dict[tuple[str, int], _Part] = {}
        self._extra: JsonValue = None
        self._size = 0

    def add(self, delta: dict[str, JsonValue]) -> None:
        """Take a delta, or a whole message."""
        for name in self._names:
            value = delta.get(name)
            if value and self._size <= ECHO_CHARACTERS:
                self._add(name, value)
        self._extra = delta.get(EXTRA) or self._extra

    def text(self, extras: list[JsonValue]) -> str:
        """Return the JSON for Message.echo, with what each call brought along; empty if there is nothing."""
        message: dict[str, JsonValue] = {name: "".join(texts) for name, texts in self._texts.items()}
        for name, parts in self._parts.items():
            message[name] = [part.json() if isinstance(part, _Part) else part for part in parts]
        value: dict[str, JsonValue] = {"api": _API}
        if message:
            value["reasoning"] = message
        if self._extra:
            value[EXTRA] = self._extra
        if any(extras):
            value["calls"] = extras
        if len(value) == 1 or self._size > ECHO_CHARACTERS or _deeper(value, MAX_DEPTH):
            return ""
        text = json.dumps(value, separators=(",", ":"))
        return text if len(text) <= ECHO_CHARACTERS else ""

    def _add(self, name: str, value: JsonValue) -> None:
        if isinstance(value, str):
            self._size += len(value)
            self._texts.setdefault(name, []).append(value)
        for piece in value if isinstance(value, list) else ():
            self._size += len(json.dumps(piece))
            index = piece.get("index") if isinstance(piece, dict) else None
            known = self._by_index.get((name, index)) if isinstance(index, int) else None
            if not isinstance(piece, dict):
                self._parts.setdefault(name, []).append(piece)
            elif known is not None and piece.get("type") in {None, known.kind}:
                known.add(piece)
            else:
                part = _Part(piece)
                self._parts.setdefault(name, []).append(part)
                if isinstance(index, int):
                    self._by_index[name, index] = part


def _deeper(value: JsonValue, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(each, levels - 1) for each in inner if isinstance(each, dict | list))


def given_back(echo: str, names: Sequence[str], *, same_turn: bool) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """Return the fields to add to a message, and what to add to each of its calls as `extra_content`.

    Reasoning goes back only within the turn that it belongs to, and only the fields of these names: DeepSeek asks for
    it there, and some servers refuse it anywhere else (api-docs.deepseek.com, "Thinking mode").
    """
    try:
        value = json.loads(echo) if echo else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("api") != _API:
        return {}, []
    reasoning, calls = value.get("reasoning"), value.get("calls")
    fields: dict[str, JsonValue] = {}
    if same_turn and isinstance(reasoning, dict):
        fields = {name: reasoning[name] for name in names if name in reasoning}
    if value.get(EXTRA):
        fields[EXTRA] = value[EXTRA]
    return fields, calls if isinstance(calls, list) else []


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
