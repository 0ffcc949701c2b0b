"""A conversation in the form of Anthropic's Messages API: turns of content blocks, with cache marks."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.failures import join_pairs
from harness.models.messages_echo import layout_of
from harness.models.request_body import EncodedMessages, encoded, is_reply, sendable_arguments, sendable_name
from harness.models.sight import Sight
from harness.models.wire_format import IdForm, WireIds

MARK: JsonValue = {"type": "ephemeral"}
"""Cache mark. The server keeps the request up to it for five minutes after its last use.

Source: platform.claude.com/docs/en/build-with-claude/prompt-caching.
"""
_MARKED = b',"cache_control":{"type":"ephemeral"}}'


class EncodedTurns(EncodedMessages):
    """The messages of a conversation as the turns of a request. The roles alternate; each block is encoded once.

    Results of calls and the user's next message are one turn of the user. The results are first, since the API requires
    them directly after the calls.
    """

    def __init__(self, sight: Sight) -> None:
        """Start with an empty conversation; `sight` decides which attachments are sent."""
        self._sight = sight
        self._ids = WireIds(IdForm.RESPONSES)
        super().__init__(self._blocks)

    def turns(self, *, marked: bool) -> bytes:
        """Return the array of turns; `marked` adds the cache marks."""
        pieces = self.marked(_mark) if marked else self._encoded
        grouped: list[tuple[bytes, list[bytes]]] = []
        for message, piece in zip(self._messages, pieces, strict=True):
            if not piece:
                continue
            role = b"assistant" if is_reply(message) else b"user"
            if not grouped or grouped[-1][0] != role:
                grouped.append((role, []))
            grouped[-1][1].append(piece)
        turns = (b'{"role":"%b","content":[%b]}' % (role, b"".join(pieces)[1:]) for role, pieces in grouped)
        return b"[" + b",".join(turns) + b"]"

    def _blocks(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        text = join_pairs(message.content, errors="replace")
        match message.role:
            case Role.SYSTEM | Role.USER:
                yield from self._attachment_blocks(message)
                yield from _text_blocks(text)
            case Role.TOOL:
                result: dict[str, JsonValue] = {
                    "type": "tool_result",
                    "tool_use_id": self._ids.of(message.tool_call_id or ""),
                }
                if message.attachments:
                    yield {**result, "content": [*_text_blocks(text), *self._attachment_blocks(message)]}
                else:
                    yield {**result, "content": text} if text.strip() else result
            case Role.ASSISTANT:
                yield from self._assistant_blocks(message, text, with_reasoning)

    def _attachment_blocks(self, message: Message) -> Iterator[JsonValue]:
        """Yield the attachments of a message as blocks (platform.claude.com/docs/en/build-with-claude/vision)."""
        for attachment in message.attachments:
            if data := self._sight.encoded(attachment):
                source: JsonValue = {"type": "base64", "media_type": attachment.media_type, "data": data}
                yield {"type": "image", "source": source}
            else:
                yield from _text_blocks(self._sight.in_place_of(attachment))

    def _assistant_blocks(self, message: Message, text: str, with_reasoning: bool) -> Iterator[JsonValue]:
        """Yield the blocks of a reply in their original order; if that is unknown, the text before the calls."""
        layout = layout_of(message.echo, text, len(message.tool_calls)) if with_reasoning else ()
        if not layout:
            yield from _text_blocks(text)
            yield from (self._call_block(call) for call in message.tool_calls)
        for part in layout:
            match part:
                case dict():
                    yield part
                case str():
                    yield from _text_blocks(part)
                case int():
                    yield self._call_block(message.tool_calls[part])

    def _call_block(self, call: ToolCall) -> JsonValue:
        name = sendable_name(call.name)
        return {"type": "tool_use", "id": self._ids.of(call.id), "name": name, "input": _input(call.arguments)}


def _mark(piece: bytes) -> bytes:
    return piece[:-1] + _MARKED


def tool_json(tool: ToolSpec) -> dict[str, JsonValue]:
    """Return a tool in the form of a request."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def system_field(text: str, *, marked: bool) -> bytes:
    """Return the field of the system message, empty if it has no text. A mark here also caches the tools."""
    blocks = [
        block | ({"cache_control": MARK} if marked else {})
        for block in _text_blocks(join_pairs(text, errors="replace"))
    ]
    return b',"system":' + encoded(list[JsonValue](blocks)) if blocks else b""


def _text_blocks(text: str) -> Iterator[dict[str, JsonValue]]:
    """Yield a text as a block. A blank text is skipped ("text content blocks must contain non-whitespace text")."""
    if text.strip():
        yield {"type": "text", "text": text}


def _input(arguments: str) -> JsonValue:
    """Return the arguments of a call as an object. Invalid arguments become the value of `invalid_arguments`."""
    try:
        value = json.loads(sendable_arguments(arguments))
        json.dumps(value, allow_nan=False)  # 1e999 is parsed as infinity, which is not valid JSON
    except (ValueError, RecursionError):
        return {"invalid_arguments": arguments}
    return dict(value)
