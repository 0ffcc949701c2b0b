"""Adapter for any server that speaks the chat completions API, and the form of a conversation in its requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.chat_echo import EXTRA, given_back
from harness.models.chat_reply import ChatReply
from harness.models.dialect import Dialect
from harness.models.endpoint import CacheMarks, Endpoint
from harness.models.failures import join_pairs
from harness.models.openai_wire import OpenAIWire
from harness.models.presets import Api
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.retries import less_echo, no_cache_marks, no_streams, no_usage, other_output_field, wanted_echo
from harness.models.sight import Sight
from harness.models.wire_format import IdForm, WireIds
from harness.record import replace
from harness.regex import regex

_CLAUDE = regex("claude|anthropic", re.IGNORECASE)
_IN_CHAT = (CacheMarks.PARTS, CacheMarks.RESULTS)
_MARK = b'"cache_control":{"type":"ephemeral"}'


class ChatDialect(Dialect):
    """Dialect of chat completions. Encodes each message and each list of tools once."""

    path = "/chat/completions"
    api = Api.CHAT
    lessons = (no_usage, wanted_echo, less_echo, no_cache_marks, other_output_field, no_streams)
    # From Claude behind a proxy: "Invalid `signature` in `thinking` block".
    reasoning_refused = regex(r"invalid\W+signature|thinking\W+block")

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """`endpoint` is the address of the server and its settings."""
        self._tools = EncodedTools(_tool_json)
        super().__init__(model, endpoint)

    def adapt(self) -> None:
        """Apply the current quirks to later requests. Every message is encoded again."""
        quirks = self.quirks
        self._ids = WireIds(IdForm.NINE if quirks.nine_character_ids else IdForm.CHAT)
        self._messages = EncodedMessages(self._items)
        self._marks = quirks.cache_marks if _CLAUDE.search(self._model) else CacheMarks.NOWHERE
        self._start = b'{"model":' + encoded(self._model) + b',"stream":' + encoded(quirks.stream)
        if quirks.stream and quirks.usage:
            self._start += b',"stream_options":{"include_usage":true}'
        self._start += self.settings.encoded(self.other_names)

    @property
    def other_names(self) -> Mapping[str, str]:
        """This server's name of the field for the maximum output."""
        return {"max_tokens": self.quirks.output_field}

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request."""
        if any(message.attachments for message in messages):
            messages = beside_results(messages, self.sight)
        self._take(messages)
        array = self._messages.array(self._marked if self._marks in _IN_CHAT else None)
        return b"".join((self._start, b',"messages":', *array, self._tools.field(tools), b"}"))

    def assembly(self, secret: str) -> ChatReply:
        """Return an assembly for the next reply."""
        return ChatReply(secret, bounds=self.bounds, echo=self.quirks.echo)

    def _items(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        content = join_pairs(message.content, errors="replace")
        match message.role:
            case Role.SYSTEM | Role.USER:
                yield {"role": message.role.value, "content": self._content(message, content)}
            case Role.TOOL:
                parts = content if self._marks is CacheMarks.RESULTS else self._parts(content)
                yield {"role": "tool", "tool_call_id": self._ids.of(message.tool_call_id or ""), "content": parts}
            case Role.ASSISTANT:
                yield self._reply_json(message, content, with_reasoning)

    def _reply_json(self, message: Message, text: str, with_reasoning: bool) -> JsonValue:
        fields, extras = given_back(message.echo, self.quirks.echo if with_reasoning else ())
        if echo_names := self.quirks.wanted_echo:
            fields.setdefault(echo_names, " ")  # DeepSeek refuses an empty one: NousResearch/hermes-agent#17341
        value: dict[str, JsonValue] = {"role": "assistant", "content": text}
        if message.tool_calls:
            # Some servers refuse "" and others require the field; both accept null.
            value["content"] = text or None
            value["tool_calls"] = [
                self._call_json(call, extras[place] if place < len(extras) else None)
                for place, call in enumerate(message.tool_calls)
            ]
        return value | fields

    def _content(self, message: Message, text: str) -> JsonValue:
        """Return the content of a message with its attachments. If none can be sent, only its text."""
        addresses = [self.sight.address(attachment) for attachment in message.attachments]
        notes = [
            self.sight.in_place_of(attachment)
            for attachment, address in zip(message.attachments, addresses, strict=True)
            if not address
        ]
        text = "\n\n".join(part for part in (text, *notes) if part)
        image_parts: list[JsonValue] = [{"type": "image_url", "image_url": {"url": url}} for url in addresses if url]
        if not image_parts:
            return self._parts(text)
        text_part: JsonValue = {"type": "text", "text": text}
        return (
            [*image_parts, text_part] if self._marks in _IN_CHAT else [text_part, *image_parts]
        )  # only a text may be marked

    def _parts(self, text: str) -> JsonValue:
        """Return the content of a text message: a list of one part if it may get a cache mark, else the text."""
        return [{"type": "text", "text": text}] if self._marks in _IN_CHAT and text.strip() else text

    def _marked(self, piece: bytes) -> bytes:
        """Return a message with a cache mark in the last part of its content, or next to a tool result without parts."""
        if piece.endswith(b'"}]}'):
            return piece[:-3] + b"," + _MARK + piece[-3:]
        is_result = self._marks is CacheMarks.RESULTS and piece.startswith(b',{"role":"tool"')
        return piece[:-1] + b"," + _MARK + b"}" if is_result else piece

    def _call_json(self, call: ToolCall, extra: JsonValue) -> JsonValue:
        function: JsonValue = {"name": sendable_name(call.name), "arguments": sendable_arguments(call.arguments)}
        value: dict[str, JsonValue] = {"id": self._ids.of(call.id), "type": "function", "function": function}
        return value | {EXTRA: extra} if extra else value


def beside_results(messages: Sequence[Message], sight: Sight) -> list[Message]:
    """Return the messages with the attachments of tool results moved to a user message after the last result.

    The API accepts attachments only from the user, and no message may separate the results. An attachment that is not
    sent is mentioned in the result.
    """
    moved: list[Message] = []
    results: list[Message] = []
    for message in messages:
        if message.role is not Role.TOOL and results:
            moved.append(_attachments_message(results))
            results = []
        if message.role is Role.TOOL and message.attachments:
            sent = tuple(attachment for attachment in message.attachments if sight.sends(attachment))
            notes = (sight.in_place_of(attachment) for attachment in message.attachments if attachment not in sent)
            if len(sent) < len(message.attachments):
                message = replace(message, content="\n".join((message.content, *notes)), attachments=sent)  # noqa: PLW2901
            results += [message] if sent else []
        moved.append(message)
    if results:
        moved.append(_attachments_message(results))
    return moved


def _attachments_message(results: Sequence[Message]) -> Message:
    attachments = tuple(attachment for result in results for attachment in result.attachments)
    calls = ", ".join(f"{result.tool_call_id} ({len(result.attachments)})" for result in results)
    words = "Not from the person: what the tool calls above returned to be looked at, in their order. By call: "
    return Message(role=Role.USER, content=f"[{words}{calls}]", attachments=attachments)


def _tool_json(tool: ToolSpec) -> JsonValue:
    parameters = dict(tool.parameters)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


class OpenAIChat(OpenAIWire):
    """A model behind any server that speaks chat completions. One conversation at a time."""

    dialect = ChatDialect
