"""What the tests of the chat adapter share: replies, answers in bytes, and one request through the adapter."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from chat_events import DONE, STOP, said, sse
from clocks import Clock
from fault_server import Answer, End, FaultServer, Send, Step

from harness.errors import ModelError
from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry, ToolSpec
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Deadlines, Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.reply_body import ReplyBody

KEY = "sk-secret-0123456789"
USER = (Message(role=Role.USER, content="hello"),)
BASH = ToolSpec(
    name="bash",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "additionalProperties": False},
)


def reply(text: str = "", *tool_calls: ToolCall, **more: Any) -> ModelResponse:
    return ModelResponse(
        **{
            "text": text,
            "tool_calls": tool_calls,
            "finish_reason": FinishReason.DONE,
            "usage": Usage(unreported=1),
            **more,
        }
    )


def bash(arguments: str = '{"a":1}', *, call_id: str = "c1", name: str = "bash") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def read(*pieces: bytes, taken: frozenset[str] = frozenset()) -> tuple[str, ModelResponse]:
    """Return the text that was delivered while the pieces came in, and the reply."""
    reader = ReplyBody(ChatReply())
    texts = [text for piece in pieces for text in reader.feed(piece)] + reader.end()
    return "".join(texts), reader.response(taken)


def outcome(*pieces: bytes) -> object:
    try:
        return read(*pieces)
    except ModelError as error:
        return type(error), str(error)


def http(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = (f"HTTP/1.1 {status} Word", f"content-length: {len(body) if length is None else length}", *headers)
    return "\r\n".join((*lines, "connection: close", "", "")).encode() + body


def failure(status: int, message: str, *headers: str, **fields: object) -> bytes:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return http(status, body, "content-type: application/json", *headers)


def stream(*events: object) -> bytes:
    return http(200, sse(*events), "content-type: text/event-stream")


LEFT_OPEN = b"HTTP/1.1 200 OK\r\nx-wire: left open until the client hangs up\r\n\r\n"


Steps: TypeAlias = Sequence[bytes | Step]
Given: TypeAlias = bytes | Steps | Callable[[str], bytes]


class Wire(FaultServer):
    """A server that sends these very bytes, one answer per connection, which it then closes."""

    def __init__(self, *answers: Given, host: str = "127.0.0.1") -> None:
        """Take the answers: bytes, bytes with other steps between them, or a function of the server's own address."""
        super().__init__([_answer(one) for one in answers], host=host)

    @property
    def heads(self) -> list[str]:
        """The heads of all requests, the empty line left out."""
        return [f"{request.head}\r\n" for request in self.requests]

    @property
    def bodies(self) -> list[Any]:
        """What all requests held."""
        return [request.json for request in self.requests]


def _answer(given: Given) -> Answer | Callable[[str], Answer]:
    if callable(given):
        return lambda url: _played([given(url)])
    return _played([given] if isinstance(given, bytes) else given)


def _played(steps: Steps) -> Answer:
    played: list[Step] = [Send(data=step) if isinstance(step, bytes) else step for step in steps]
    left_open = isinstance(steps[0], bytes) and steps[0].startswith(LEFT_OPEN)
    return Answer(steps=(*played, End.STALL if left_open else End.CLOSE))


def within(**seconds: float) -> Deadlines:
    """Return deadlines of which only those that are named may be met."""
    return Deadlines(**{"connect": 600, "first_event": 600, "idle": 600, "total": 36_000, **seconds})


class Asked:
    """One request through the adapter, with everything that it reported."""

    def __init__(
        self, url: str | None, *, attempts: int = 3, jitter: float = 0.0, clock: Clock | None = None, **more: Any
    ) -> None:
        self.slept: list[float] = []
        self.retries: list[Retry] = []
        self.text: list[str] = []
        self.model = OpenAIChat(
            "m1",
            Endpoint(**{"base_url": url, "api_key": KEY, "attempts": attempts, "deadlines": within(), **more}),
            sleep=self.slept.append,
            jitter=lambda: jitter,
            monotonic=clock or time.monotonic,
        )

    def complete(
        self, messages: Sequence[Message] = USER, tools: Sequence[ToolSpec] = (), *, seconds: float | None = None
    ) -> ModelResponse:
        return self.model.complete(
            messages, tools, on_text=self.text.append, on_retry=self.retries.append, seconds=seconds
        )


GOOD = stream(said("Hi"), STOP, DONE)


def busy(*headers: str) -> bytes:
    return failure(503, "busy", *headers)
