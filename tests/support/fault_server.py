"""A server on the loopback that plays faults byte for byte: what a connection can do, in steps; it judges nothing.

It speaks no HTTP of its own accord: an answer is a list of steps, and what is not in it is not sent. Every request is
kept. Leaving the `with` block ends every step at once and waits for every thread.
"""

from __future__ import annotations

import gzip
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeAlias

from harness.record import Record

ENDLESS = 1000.0
"""Seconds: no test waits so long. What stalls does so up to the end of the block, and a client that would wait hangs."""
_JOIN_SECONDS = 60.0


class Send(Record):
    """Send bytes: at once, or `slice_bytes` at a time with `pause` seconds in between."""

    data: bytes
    slice_bytes: int = 0
    pause: float = 0.0


class Wait(Record):
    """Do nothing for so many seconds, or until the client hangs up."""

    seconds: float


class Repeat(Record):
    """Send the same bytes for ever, every `pause` seconds."""

    data: bytes
    pause: float


class End(Enum):
    """How a connection ends; an answer without an end leaves it open for the next request."""

    CLOSE = "close"
    """In good order: everything sent arrives, then end of file."""
    RESET = "reset"
    """By a reset: what is on its way may be lost."""
    HALF = "half"
    """Only this side is closed; the other may go on talking."""
    STALL = "stall"
    """Not at all: nothing more is sent, and the connection stays."""


class Take(Enum):
    """How much of a request is read before the answer."""

    WHOLE = "whole"
    HEAD = "head"
    """The head alone: an end by CLOSE then cuts the connection, as data is left unread."""
    NOTHING = "nothing"


Step: TypeAlias = Send | Wait | Repeat | End


class Answer(Record):
    """What is done about one request."""

    steps: tuple[Step, ...]
    take: Take = Take.WHOLE


class Request(Record):
    """A request as it came."""

    head: str
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body's value."""
        return json.loads(self.body)


class _Stopped(Exception):
    """The server is leaving, or the client has hung up: the answer ends here."""


class FaultServer:
    """Plays one answer per request, in order, over however many connections, and then always the same one."""

    def __init__(
        self,
        answers: Sequence[Answer | Callable[[str], Answer]],
        *,
        afterwards: Answer | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        """Take the answers; one that has to know the server's own address is a function of its base URL.

        `afterwards` is what every later request gets: status 500 where it is None.
        """
        self.requests: list[Request] = []
        self.connections = 0
        self.hung_up = threading.Event()
        """Set when a client hung up on an answer that had not ended."""
        self._answers = list(answers)
        self._afterwards = afterwards or status(500, {"error": {"message": "the server has no more answers"}})
        self._next = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((host, 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}/v1"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        with self._lock:
            endings = [self._listener, *self._open]
        for opened in endings:
            _shut(opened, socket.SHUT_RDWR)  # wakes its thread, whatever that waits for
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._listener.close()
        left = [thread.name for thread in self._threads if thread.is_alive()]
        if left and error is None:
            raise RuntimeError(f"threads of the fault server are left: {left}")

    @property
    def unplayed(self) -> int:
        """How many answers nobody asked for."""
        return len(self._answers) - self._next

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name=f"fault server {self.port}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(connection)
                self.connections += 1
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(ENDLESS)
            while self._answer(connection):
                pass
        except (_Stopped, OSError):
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, connection: socket.socket) -> bool:
        """Answer one request; say whether the connection takes another."""
        with self._lock:
            early = self._next < len(self._answers) and self._taking() is Take.NOTHING
            answer = self._take_answer() if early else None
        if answer is None:
            head, rest = _read_head(connection)
            if not head:
                return False
            with self._lock:
                answer = self._take_answer()
            body = b"" if answer.take is Take.HEAD else _read_body(connection, head, rest)
            self.requests.append(Request(head=head, body=body))
        return self._play(connection, answer)

    def _taking(self) -> Take:
        answer = self._answers[self._next]
        return answer.take if isinstance(answer, Answer) else Take.WHOLE

    def _take_answer(self) -> Answer:
        if self._next >= len(self._answers):
            return self._afterwards
        answer = self._answers[self._next]
        self._next += 1
        return answer if isinstance(answer, Answer) else answer(self.url)

    def _play(self, connection: socket.socket, answer: Answer) -> bool:
        for step in answer.steps:
            match step:
                case Send():
                    self._send(connection, step)
                case Wait():
                    self._wait(connection, step.seconds)
                case Repeat():
                    while True:
                        connection.sendall(step.data)
                        self._wait(connection, step.pause)
                case End.CLOSE:
                    if answer.take is not Take.WHOLE:
                        return False  # what was not read makes a cut of the close
                    _shut(connection, socket.SHUT_WR)
                    self._wait(connection, ENDLESS)
                    return False
                case End.RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                case End.HALF:
                    _shut(connection, socket.SHUT_WR)
                    self._wait(connection, ENDLESS)
                    return False
                case End.STALL:
                    self._wait(connection, ENDLESS)
                    return False
        return True

    def _send(self, connection: socket.socket, step: Send) -> None:
        size = step.slice_bytes or len(step.data) or 1
        for start in range(0, len(step.data), size):
            connection.sendall(step.data[start : start + size])
            if step.slice_bytes and step.pause:
                self._wait(connection, step.pause)

    def _wait(self, connection: socket.socket, seconds: float) -> None:
        """Wait. Raises _Stopped when the client hangs up or the server leaves meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            readable = select.select([connection], [], [], left)[0]
            if self._stopping.is_set():
                raise _Stopped
            if readable:
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    self.hung_up.set()
                    raise _Stopped
                return  # the next request is here already


def _shut(opened: socket.socket, how: int) -> None:
    try:
        opened.shutdown(how)
    except OSError:
        pass  # closed already


def _read_head(connection: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return "", b""
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _read_body(connection: socket.socket, head: str, rest: bytes) -> bytes:
    length = re.search(r"^content-length: (\d+)", head, re.IGNORECASE | re.MULTILINE)
    pieces, missing = [rest], (int(length[1]) if length else 0) - len(rest)
    while missing > 0:
        piece = connection.recv(1 << 20)
        if not piece:
            raise _Stopped
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


# --- answers -------------------------------------------------------------------------------------------------------


def head(code: int = 200, *headers: str, kind: str = "text/event-stream", version: str = "1.1") -> bytes:
    """Return a status line and headers, up to the empty line."""
    lines = (f"HTTP/{version} {code} Word", *([f"content-type: {kind}"] if kind else []), *headers)
    return "\r\n".join((*lines, "", "")).encode()


def status(code: int, body: object = b"", *headers: str) -> Answer:
    """Return an answer with a status, and a body that is encoded as JSON where it is not bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/html" if isinstance(body, bytes) else "application/json"
    return Answer(steps=(Send(data=head(code, f"content-length: {len(data)}", *headers, kind=kind) + data),))


def whole(data: bytes, *headers: str, kind: str = "text/event-stream") -> Answer:
    """Return a body with its right length, and leave the connection open."""
    return Answer(steps=(Send(data=head(200, f"content-length: {len(data)}", *headers, kind=kind) + data),))


def until_close(*steps: Step, kind: str = "text/event-stream", version: str = "1.1") -> Answer:
    """Return a body without a length: `steps` are played after the head, and the end of the connection is its end."""
    return Answer(steps=(Send(data=head(200, "connection: close", kind=kind, version=version)), *steps))


def chunks(*pieces: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    """Return pieces in the chunked coding (RFC 9112, section 7.1)."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + last


def chunked(*steps: Step) -> Answer:
    """Return an answer in the chunked coding, whose chunks the steps send."""
    return Answer(steps=(Send(data=head(200, "transfer-encoding: chunked")), *steps))


def zipped(data: bytes, *, sent: int | None = None) -> Answer:
    """Return a gzip body of which `sent` bytes arrive: all, or so many and then a clean end."""
    packed = gzip.compress(data)
    start = head(200, "content-encoding: gzip", "connection: close")
    return Answer(steps=(Send(data=start + packed[:sent]), End.CLOSE))


class FullListener:
    """A port of the loopback whose queue of connections is full: whoever connects waits for ever.

    With a backlog of 0 Linux queues one connection that nobody accepts (listen(2)); the packets of further ones are dropped.
    """

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        address = self._listener.getsockname()
        self.url = f"http://127.0.0.1:{address[1]}/v1"
        self._fillers: list[socket.socket] = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            self._fillers.append(filler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (*self._fillers, self._listener):
            opened.close()
