"""A chat completions server whose answers come from a Player. Only this machine can reach it. It stores nothing.

It uses plain sockets, so that a demo starts quickly: importing http.server takes longer than running this server.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from enum import Enum
from types import TracebackType
from typing import BinaryIO, Self, assert_never

from harness.actions import JsonValue
from harness.messages import ToolCall
from harness.models.scripted import Failure, Player, Raw, Reply, ScriptedAnswer
from harness.record import Record

MAX_LINE_BYTES = 64 * 1024
MAX_BODY_BYTES = 256 * 1024 * 1024

_TEXT_PIECE = 12
"""Characters of text per event."""
_NOT_FOUND = Failure(
    status=404,
    body='{"error": {"message": "only /v1/chat/completions and /v1/models are served here"}}',
)
NO_JSON = Failure(status=400, body='{"error": {"message": "the body must be JSON with a content-length"}}')
_MODELS = b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}'


class HttpRequest(Record):
    """One request; `path` is without its query."""

    method: str
    path: str
    body: bytes


class Then(Enum):
    """The fate of the connection after a response."""

    KEEP = "keep"
    CLOSE = "close"


class ScriptServer:
    """Serves a player under `base_url` for as long as its `with` block lasts."""

    def __init__(self, player: Player, *, fragment: int = 7) -> None:
        """`fragment` is the number of characters of a call's arguments per event.

        Raises ValueError if `fragment` is below 1.
        """
        if fragment < 1:
            raise ValueError(f"fragment must be at least 1, not {fragment}")
        self._player = player
        self.fragment = fragment
        self._lock = threading.Lock()
        self._port = 0
        self._closing = False
        self._acceptor: threading.Thread | None = None
        self._open: dict[socket.socket, threading.Thread] = {}

    @property
    def base_url(self) -> str:
        """The address for a client, including `/v1`. The operating system chooses the port."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        """Listen. Raises OSError if the machine has no loopback."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._port = listener.getsockname()[1]
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._acceptor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection and wait until every thread has ended."""
        self._closing = True
        if self._acceptor is not None:
            # Shutting a socket down does not wake a thread in accept on every system; a connection does.
            socket.create_connection(("127.0.0.1", self._port)).close()
            self._acceptor.join()
        with self._lock:
            still_open = list(self._open.items())
        for connection, thread in still_open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # its client has closed it already
            thread.join()

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                connection, _ = listener.accept()
                if self._closing:
                    connection.close()
                    return
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                with self._lock:
                    self._open[connection] = thread
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as incoming:
                while (request := _read_request(incoming)) is not None:
                    response, then = self.respond(request)
                    connection.sendall(response)
                    if then is Then.CLOSE:
                        return
        except OSError:
            pass  # the client went away, or the server is being closed
        finally:
            with self._lock:
                del self._open[connection]

    def respond(self, request: HttpRequest) -> tuple[bytes, Then]:
        """Return the response to a request. A subclass may serve more paths."""
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                try:
                    fields = json.loads(request.body)
                except (ValueError, RecursionError):
                    return self.sent(NO_JSON, {})
                return self.sent(self.play(fields), fields if isinstance(fields, dict) else {})
            case "GET", "/v1/models":
                return with_length(200, _MODELS), Then.KEEP
            case _:
                return self.sent(_NOT_FOUND, {})

    def play(self, request: object) -> ScriptedAnswer:
        """Return the player's answer to a chat completions request. Requests are answered one at a time."""
        with self._lock:
            return self._player.answer(request)

    def sent(self, answer: ScriptedAnswer, request: dict[str, JsonValue]) -> tuple[bytes, Then]:
        """Return the bytes of a whole HTTP response to a chat completions request, and what to do with the connection."""
        match answer:
            case Failure():
                headers = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
                return with_length(answer.status, answer.body.encode(), headers), Then.KEEP
            case Raw():
                head = f"HTTP/1.1 200 OK\r\ncontent-type: {answer.content_type}\r\nconnection: close\r\n\r\n"
                return head.encode() + answer.body, Then.CLOSE
            case Reply():
                return chat_answer(answer, request, self.fragment), Then.KEEP
            case _:
                assert_never(answer)


def _read_request(incoming: BinaryIO) -> HttpRequest | None:
    """Return the next request, or None at the end of the connection and for an unreadable request."""
    words = incoming.readline(MAX_LINE_BYTES).decode("latin-1").split()
    if len(words) != 3:
        return None
    length = 0
    while (line := incoming.readline(MAX_LINE_BYTES)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "content-length" and value.strip().isdigit():
            length = int(value)
    if length > MAX_BODY_BYTES:
        return None
    body = incoming.read(length)
    return HttpRequest(method=words[0], path=words[1].partition("?")[0], body=body) if len(body) == length else None


def chat_answer(reply: Reply, request: dict[str, JsonValue], fragment: int) -> bytes:
    """Return a reply as a whole HTTP response of chat completions, streamed if the request asks for a stream."""
    if request.get("stream") is True:
        return in_chunks(f"data: {data}\n\n" for data in _events(reply, request, fragment))
    return with_length(200, json.dumps(_completion(reply, request)).encode())


def in_chunks(events: Iterable[str]) -> bytes:
    """Return an event stream with one chunk for each event."""
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in (text.encode() for text in events)]
    return b"".join((head.encode(), *chunks, b"0\r\n\r\n"))


def with_length(status: int, body: bytes, headers: str = "") -> bytes:
    """Return a response with a JSON body."""
    head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Failed'}\r\n{headers}content-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode("latin-1", "replace") + body


def _events(reply: Reply, request: dict[str, JsonValue], fragment: int) -> Iterator[str]:
    """Yield the data of the events in the order of the API: role, text, calls, finish reason, usage, end."""
    options = request.get("stream_options")
    for delta in _deltas(reply, fragment):
        yield _chunk(request, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _chunk(request, [{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}])
    if isinstance(options, dict) and options.get("include_usage") is True:
        yield _chunk(request, [], usage=_usage(reply))
    yield "[DONE]"


def _deltas(reply: Reply, fragment: int) -> Iterator[dict[str, JsonValue]]:
    yield {"role": "assistant", "content": ""}
    for start in range(0, len(reply.text), _TEXT_PIECE):
        yield {"content": reply.text[start : start + _TEXT_PIECE]}
    for index, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": index, **_call_json(call, arguments="")}]}
        for start in range(0, len(call.arguments), fragment):
            piece = call.arguments[start : start + fragment]
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk(request: dict[str, JsonValue], choices: list[JsonValue], usage: JsonValue = None) -> str:
    return json.dumps({**_envelope(request, "chat.completion.chunk"), "choices": choices, "usage": usage})


def _completion(reply: Reply, request: dict[str, JsonValue]) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [_call_json(call, call.arguments) for call in reply.calls]
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return {**_envelope(request, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def _envelope(request: dict[str, JsonValue], kind: str) -> dict[str, JsonValue]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": request.get("model")}


def _call_json(call: ToolCall, arguments: str) -> dict[str, JsonValue]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _finish_reason(reply: Reply) -> str:
    if reply.finish_reason is not None:
        return reply.finish_reason
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> JsonValue:
    input_tokens, output_tokens = reply.usage.input_tokens, reply.usage.output_tokens
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
