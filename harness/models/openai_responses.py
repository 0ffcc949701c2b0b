"""Adapter for any server that speaks the Responses API, and the form of a conversation in its requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.actions import JsonValue
from harness.messages import Message, Role
from harness.model import ToolSpec
from harness.models.dialect import Dialect
from harness.models.endpoint import Endpoint
from harness.models.failures import ProviderRefusal, join_pairs
from harness.models.openai_wire import OpenAIWire
from harness.models.presets import Api
from harness.models.request_body import EncodedMessages, EncodedTools, encoded, sendable_arguments, sendable_name
from harness.models.responses_items import read_echo
from harness.models.responses_reply import ResponsesReply
from harness.models.retries import no_encrypted_reasoning, no_streams
from harness.models.wire_format import IdForm, WireIds
from harness.regex import regex


class ResponsesDialect(Dialect):
    """Dialect of the Responses API. Encodes each message and each list of tools once."""

    path = "/responses"
    api = Api.RESPONSES
    lessons = (no_encrypted_reasoning, no_streams)
    # "The encrypted content ... could not be verified" (openai/codex#9045; also in the middle of an answer), "Item with id
    # 'rs_1' not found", an unknown item type.
    reasoning_refused = regex(r"reasoning|encrypted.?content|\brs_")

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """`endpoint` is the address of the server and its settings."""
        self._tools = EncodedTools(_tool_json)
        self._ids = WireIds(IdForm.RESPONSES)
        self._instructions = ("", b"")
        """The last system message, and its encoded field."""
        super().__init__(model, endpoint)

    def adapt(self) -> None:
        """Apply the current quirks to later requests. Every message is encoded again."""
        quirks = self.quirks
        self._messages = EncodedMessages(self._items)
        self._start = b'{"model":' + encoded(self._model) + b',"stream":' + encoded(quirks.stream) + b',"store":false'
        if quirks.encrypted_reasoning:
            self._start += b',"include":["reasoning.encrypted_content"]'
        self._start += self.settings.encoded()

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. A system message at the start becomes the instructions."""
        system = messages[0].content if messages and messages[0].role is Role.SYSTEM else ""
        if system != self._instructions[0]:
            text = join_pairs(system, errors="replace")
            self._instructions = (system, b',"instructions":' + encoded(text) if text else b"")
        self._take(messages[1:] if system else messages)
        start = (self._start, self._instructions[1], self._tools.field(tools), b',"input":')
        return b"".join((*start, *self._messages.array(), b"}"))

    def assembly(self, secret: str) -> ResponsesReply:
        """Return an assembly for the next reply."""
        return ResponsesReply(secret, bounds=self.bounds)

    def learn(self, refusal: ProviderRefusal, messages: Sequence[Message]) -> bool:
        """Adapt to a refusal of `messages`; return whether the request for them differs now.

        First the reasoning that was sent back is omitted. After another refusal, encrypted reasoning is no longer
        requested.
        """
        return self._forget_reasoning(refusal) or super().learn(refusal, messages)

    def _items(self, message: Message, with_reasoning: bool) -> Iterator[JsonValue]:
        text = join_pairs(message.content, errors="replace")
        match message.role:
            case Role.SYSTEM | Role.USER:
                yield {"type": "message", "role": message.role.value, "content": self._content(message, text)}
            case Role.TOOL:
                call_id = self._ids.of(message.tool_call_id or "")
                yield {"type": "function_call_output", "call_id": call_id, "output": self._content(message, text)}
            case Role.ASSISTANT:
                yield from self._assistant_items(message, text, with_reasoning)

    def _content(self, message: Message, text: str) -> JsonValue:
        """Return the text, or a list of the text and the attachments. Messages and outputs of functions accept both."""
        if not message.attachments:
            return text
        parts: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
        for attachment in message.attachments:
            if address := self.sight.address(attachment):
                parts.append({"type": "input_image", "image_url": address})
            else:
                parts.append({"type": "input_text", "text": self.sight.in_place_of(attachment)})
        return parts

    def _assistant_items(self, message: Message, text: str, with_reasoning: bool) -> Iterator[JsonValue]:
        """Yield the text and the calls, each after its reasoning. The API refuses reasoning without an item after it."""
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
        # Strict mode requires schemas that not all tools have. Harness validates the arguments anyway.
        "strict": False,
    }


class OpenAIResponses(OpenAIWire):
    """A model behind any server that speaks the Responses API. One conversation at a time."""

    dialect = ResponsesDialect
