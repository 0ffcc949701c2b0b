"""The chat completions API: messages to request bodies, replies to ModelResponse; judges and runs nothing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from harness.actions import JsonValue
from harness.messages import Message, ModelResponse, Role
from harness.model import Retry
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Endpoint
from harness.models.openai_wire import OpenAIWire
from harness.models.provider_text import join_pairs
from harness.tool import ToolSpec

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), default=dict).encode


class OpenAIChat:
    """A model behind any server that speaks chat completions. One conversation at a time."""

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
        self._wire = OpenAIWire(model, endpoint or Endpoint(), sleep=sleep, jitter=jitter)
        self._conversation = Conversation(model)

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
        """Return the whole reply to `messages`; see Model.complete and OpenAIWire.ask."""
        body = self._conversation.request(messages, tools)
        return self._wire.ask(
            "/chat/completions",
            body,
            ChatReply,
            taken_ids=self._conversation.call_ids,
            on_text=on_text,
            on_retry=on_retry,
            seconds=seconds,
        )


class Conversation:
    """Request bodies, with every message and every list of tools encoded once: a turn costs what it adds."""

    def __init__(self, model: str) -> None:
        """Take the model's name."""
        self._start = (
            b'{"model":' + _bytes(model) + b',"stream":true,"stream_options":{"include_usage":true},"messages":['
        )
        self._messages: list[Message] = []
        self._encoded: list[bytes] = []
        """Each with the comma before it, so that a body is put together in one go."""
        self._call_ids: set[str] = set()
        self._tools: tuple[ToolSpec, ...] = ()
        self._encoded_tools = b""

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._call_ids

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. Only what differs from the messages of the request before is encoded."""
        kept = self._common(messages)
        if kept < len(self._messages):
            del self._messages[kept:], self._encoded[kept:]
            self._call_ids = {call.id for message in self._messages for call in message.tool_calls}
        for message in messages[kept:]:
            encoded = _bytes(_message_json(message))
            self._encoded.append(b"," + encoded if self._encoded else encoded)
            self._messages.append(message)
            self._call_ids.update(call.id for call in message.tool_calls)
        if self._tools != (offered := tuple(tools)):
            self._tools = offered
            listed: list[JsonValue] = [_tool_json(tool) for tool in offered]
            self._encoded_tools = b',"tools":' + _bytes(listed) if listed else b""
        return b"".join((self._start, *self._encoded, b"]", self._encoded_tools, b"}"))

    def _common(self, messages: Sequence[Message]) -> int:
        """Return how many messages at the start are those of the request before."""
        count = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and old != new:
                break
            count += 1
        return count


def _message_json(message: Message) -> JsonValue:
    content = join_pairs(message.content, errors="replace")
    value: dict[str, JsonValue] = {"role": message.role.value, "content": content}
    if message.tool_calls:
        # Servers that turn "" away and servers that want the field to be there both take null.
        value["content"] = content or None
        value["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _call_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role is Role.TOOL:
        value["tool_call_id"] = message.tool_call_id
    return value


def _call_name(name: str) -> str:
    """Return a name that the API takes back: an invented one such as `functions.bash` would make every later request fail."""
    return _NOT_IN_NAMES.sub("_", name)[:64] or "unknown"


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
