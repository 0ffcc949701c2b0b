"""What the tests of the chat adapter share: events as servers write them, and a server that sends given bytes."""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

from harness.errors import ModelError
from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.chat_reply import ChatReply
from harness.models.endpoint import Deadlines, Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.reply_body import ReplyBody
from harness.tool import ToolSpec

KEY = "sk-secret-0123456789"
USER = (Message(role=Role.USER, content="hello"),)
BASH = ToolSpec(
    name="bash",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "additionalProperties": False},
)
DONE = "[DONE]"


def chunk(delta: object = None, finish: object = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}], **more}


def said(content: object, finish: object = None, **more: object) -> dict[str, object]:
    return chunk({"content": content}, finish, **more)


def fragment(
    arguments: object = None, *, index: object = 0, call_id: object = None, name: object = None
) -> dict[str, object]:
    """One tool-call delta; what is None is absent, what is `...` is null."""
    function = {"name": name, "arguments": arguments}
    function = {key: None if value is ... else value for key, value in function.items() if value is not None}
    fields = {"index": index, "id": call_id, "function": function or None}
    return {key: None if value is ... else value for key, value in fields.items() if value is not None}


def calls(*fragments: object) -> dict[str, object]:
    return chunk({"tool_calls": list(fragments)})


def sse(*events: object) -> bytes:
    return b"".join(
        b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n" for event in events
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


STOP = chunk(finish="stop")


def http(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = (f"HTTP/1.1 {status} Word", f"content-length: {len(body) if length is None else length}", *headers)
    return "\r\n".join((*lines, "connection: close", "", "")).encode() + body


def failure(status: int, message: str, *headers: str, **fields: object) -> bytes:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return http(status, body, "content-type: application/json", *headers)


def stream(*events: object) -> bytes:
    return http(200, sse(*events), "content-type: text/event-stream")


LEFT_OPEN = b"HTTP/1.1 200 OK\r\nx-wire: left open until the client hangs up\r\n\r\n"


class Wire:
    """A server that sends these very bytes, one answer per connection, and keeps what it was sent."""

    def __init__(self, *answers: bytes | Sequence[bytes | float], host: str = "127.0.0.1") -> None:
        """Take the answers: bytes, or bytes with pauses in seconds between them."""
        self.heads: list[str] = []
        self.bodies: list[Any] = []
        self.hung_up = threading.Event()
        self._answers = answers
        self._listener = socket.create_server((host, 0))
        self.url = f"http://{host}:{self._listener.getsockname()[1]}/v1"
        self._connection = self._listener
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (self._listener, self._connection):
            try:
                opened.shutdown(socket.SHUT_RDWR)  # wakes the thread, whatever it waits for
            except OSError:
                pass  # closed already
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        for answer in (*self._answers, *[failure(500, "the wire has no more answers")] * 9):
            try:
                self._connection, _ = self._listener.accept()
            except OSError:
                return
            self._connection.settimeout(20)
            with self._connection as connection, connection.makefile("rb") as incoming, suppress(OSError):
                if self._take(incoming):
                    self._play(connection, [answer] if isinstance(answer, bytes) else answer)

    def _play(self, connection: socket.socket, answer: Sequence[bytes | float]) -> None:
        for step in answer:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif select.select([connection], [], [], step)[0]:
                break  # a client that has sent its request can only hang up
        first = answer[0]
        if isinstance(first, bytes) and first.startswith(LEFT_OPEN) and connection.recv(1) == b"":
            self.hung_up.set()

    def _take(self, incoming: BinaryIO) -> bool:
        """Keep one request; say whether there was one."""
        head = ""
        while (line := incoming.readline().decode()) not in ("", "\r\n"):
            head += line
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        if length is None:
            return False
        self.heads.append(head)
        self.bodies.append(json.loads(incoming.read(int(length[1]))))
        return True


SHORT = Deadlines(connect=5, first_event=20, idle=20, total=60)


class Asked:
    """One request through the adapter, with everything that it reported."""

    def __init__(self, url: str | None, *, attempts: int = 3, jitter: float = 0.0, **more: Any) -> None:
        self.slept: list[float] = []
        self.retries: list[Retry] = []
        self.text: list[str] = []
        self.model = OpenAIChat(
            "m1",
            Endpoint(**{"base_url": url, "api_key": KEY, "attempts": attempts, "deadlines": SHORT, **more}),
            sleep=self.slept.append,
            jitter=lambda: jitter,
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
