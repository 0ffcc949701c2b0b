"""The proxy that is a command's only way to the network. It checks the target of each connection and passes bytes on.

It does not inspect the bytes. Each connection has one thread. At most MOST_CONNECTIONS run at a time; others wait to be
accepted. A block is read from one side only when the other side has received the previous one, so that a slow reader
costs one block of memory.
"""

from __future__ import annotations

import select
import socket
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.process.proxy_request import END, MAX_HEAD_BYTES, read_request
from harness.record import Record, replace

MOST_CONNECTIONS = 256
MOST_KEPT = 50
"""Maximum number of different targets and results of connections that are listed."""
BLOCK_BYTES = 1 << 16
HEAD_SECONDS = 30.0
"""Seconds for a program to send its request."""
CONNECT_SECONDS = 20.0
"""Seconds for one address to answer."""
CLOSE_SECONDS = 2.0
"""Seconds to wait for the connections of a command that has ended."""
MAX_SHOWN = 255
"""Maximum number of characters shown of an unreadable host."""


class Route(Record):
    """The target of a connection."""

    host: str
    port: int
    addresses: tuple[str, ...] = ()
    """Addresses to try in order. Empty if the connection is refused."""
    problem: str = ""
    """Reason for the refusal. Empty without one."""


class HostConnection(Record):
    """The connections of a command to one target with the same result."""

    host: str
    """Host name in the program's request. Empty if the request was invalid."""
    port: int
    address: str = ""
    """The tried address. Empty if none was tried."""
    why_not: str = ""
    """Reason why the connection failed or was refused. Empty if it was made."""
    times: int = 1
    sent: int = 0
    """Number of bytes from the program."""
    received: int = 0
    """Number of bytes to the program."""

    def fields(self) -> dict[str, JsonValue]:
        """Return the connections as written in a log record."""
        fields: dict[str, JsonValue] = {
            "host": self.host,
            "port": self.port,
            "allowed": not self.why_not,
            "times": self.times,
            "sent": self.sent,
            "received": self.received,
        }
        fields |= {"address": self.address} if self.address else {}
        return fields | ({"why_not": self.why_not} if self.why_not else {})


Finds = Callable[[str], Route]
"""A function that returns the route for `host:port`, as written by a program. Never raises."""


class HostProxy:
    """A proxy that serves one listening socket until it is closed."""

    def __init__(self, door: socket.socket, find: Finds) -> None:
        """Start to serve. `door` is a listening socket, which `close` closes too."""
        self._door = door
        self._find = find
        self._lock = allocate_lock()
        self._connections: dict[tuple[str, int, str, str], HostConnection] = {}
        self._open: set[socket.socket] = set()
        self._running = 0
        self._is_over = False
        self._door.setblocking(False)  # a waiting client may disconnect before it is accepted
        self._wake, self._woken = socket.socketpair()
        self.total = 0
        """Number of requested connections."""
        start_new_thread(self._answer, ())

    @property
    def connections(self) -> tuple[HostConnection, ...]:
        """The connections by target and result, at most MOST_KEPT."""
        with self._lock:
            return tuple(self._connections.values())

    def close(self) -> None:
        """Close every connection, and wait until all are counted. May be called several times."""
        with self._lock:
            self._is_over = True
            for each in self._open:
                _shut(each)
        self._nudge()
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._running and time.monotonic() < deadline:
            time.sleep(0.001)
        self._wake.close()

    def _answer(self) -> None:
        """Accept connections while fewer than MOST_CONNECTIONS are served."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        at_door = False
        while not self._is_over:
            if (self._running < MOST_CONNECTIONS) is not at_door:
                at_door = not at_door
                if at_door:
                    waiting.register(self._door, select.POLLIN)
                else:
                    waiting.unregister(self._door)
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._woken.fileno() in ready:
                self._woken.recv(BLOCK_BYTES)
            if self._door.fileno() in ready:
                self._take_one()
        self._door.close()
        self._woken.close()

    def _take_one(self) -> None:
        try:
            client, _ = self._door.accept()
        except OSError:
            return
        with self._lock:
            self._running += 1
        try:
            start_new_thread(self._serve, (client,))
        except RuntimeError:  # no thread can be started
            client.close()
            self._done()

    def _done(self) -> None:
        with self._lock:
            self._running -= 1
        self._nudge()

    def _nudge(self) -> None:
        try:
            self._wake.send(b".", socket.MSG_DONTWAIT)
        except OSError:
            pass  # it is awake

    def _hold(self, end: socket.socket) -> bool:
        """Register a socket to be shut down by `close`. Return False if `close` was already called."""
        with self._lock:
            if not self._is_over:
                self._open.add(end)
            return not self._is_over

    def _drop(self, end: socket.socket) -> None:
        with self._lock:
            self._open.discard(end)
        end.close()

    def _note(self, route: Route, *, address: str = "", why_not: str = "", sent: int = 0, received: int = 0) -> None:
        """Count a connection, together with others to the same target with the same result."""
        host = route.host[:MAX_SHOWN]
        key = (host, route.port, address, why_not)
        with self._lock:
            self.total += 1
            before = self._connections.get(key)
            if before is not None:
                self._connections[key] = replace(
                    before, times=before.times + 1, sent=before.sent + sent, received=before.received + received
                )
            elif len(self._connections) < MOST_KEPT:
                self._connections[key] = HostConnection(
                    host=host, port=route.port, address=address, why_not=why_not, sent=sent, received=received
                )

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection to its end."""
        try:
            if self._hold(client):
                self._carry(client)
        except OSError:
            pass  # one side disconnected
        finally:
            self._drop(client)
            self._done()

    def _carry(self, client: socket.socket) -> None:
        try:
            head, rest = _head(client)
            request = read_request(head)
        except ValueError as error:
            self._note(Route(host="", port=0), why_not=str(error))
            _refuse(client, 400, "Bad Request", str(error))
            return
        route = self._find(request.target)
        if not route.addresses:
            self._note(route, why_not=route.problem)
            _refuse(client, 403, "Forbidden", route.problem)
            return
        server, address, problem = self._reach(route)
        if server is None:
            self._note(route, address=address, why_not=problem)
            _refuse(client, 502, "Bad Gateway", problem)
            return
        counts = [0, 0]
        try:
            if request.is_tunnel:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            first = rest if request.is_tunnel else request.head + rest
            _pass_both_ways(client, server, first, counts)
        finally:
            self._drop(server)
            self._note(route, address=address, sent=counts[0], received=counts[1])

    def _reach(self, route: Route) -> tuple[socket.socket | None, str, str]:
        """Return the socket to the server (`None` if it was not reached), the last tried address, and the problem."""
        address = problem = ""
        for address in route.addresses:
            server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
            if not self._hold(server):
                server.close()
                return None, address, "the command is over"
            try:
                server.settimeout(CONNECT_SECONDS)
                server.connect((address, route.port))
            except OSError as error:
                self._drop(server)
                problem = f"{route.host} could not be reached at {address}: {error.strerror or error}"
                continue
            return server, address, ""
        return None, address, problem


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the received bytes before the empty line, and those after it. Raises ValueError, OSError."""
    deadline = time.monotonic() + HEAD_SECONDS
    data = b""
    while END not in data:
        if len(data) > MAX_HEAD_BYTES:
            raise ValueError(f"the head of the request is longer than {MAX_HEAD_BYTES:,} bytes")
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        block = client.recv(BLOCK_BYTES)
        if not block:
            raise OSError("the connection was closed within the request")
        data += block
    head, _, rest = data.partition(END)
    if len(head) > MAX_HEAD_BYTES:
        raise ValueError(f"the head of the request is longer than {MAX_HEAD_BYTES:,} bytes")
    return head, rest


def _refuse(client: socket.socket, status: int, words: str, reason: str) -> None:
    """Answer with an error and a line with the reason, and end the connection."""
    line = f"harness: {reason}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {status} {words}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    client.settimeout(CLOSE_SECONDS)
    client.sendall(f"{head}Content-Length: {len(line)}\r\nConnection: close\r\n\r\n".encode() + line)
    client.shutdown(socket.SHUT_WR)
    while client.recv(BLOCK_BYTES):  # closing with unread input would discard the answer (tcp(7))
        pass


def _pass_both_ways(client: socket.socket, server: socket.socket, first: bytes, counts: list[int]) -> None:
    """Pass bytes until both sides have closed. Count sent and received bytes in `counts`. Raises OSError."""
    client.setblocking(False)
    server.setblocking(False)
    ways = (_Way(client, server, first), _Way(server, client, b""))
    counts[0] += len(first)
    while not all(way.is_done for way in ways):
        poll = select.poll()
        for end in (client, server):
            if events := sum(way.wants(end) for way in ways):  # the two ways wait for different events of a socket
                poll.register(end, events)  # otherwise poll would report the closing of an unused socket forever
        ready = dict(poll.poll())
        for which, way in enumerate(ways):
            counts[which] += way.step(ready)


class _Way:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, sink: socket.socket, waiting: bytes) -> None:
        self._source = source
        self._sink = sink
        self._waiting = memoryview(waiting)
        self._has_ended = False
        self.is_done = False

    def wants(self, end: socket.socket) -> int:
        """Return the poll event of `end` that this direction waits for. 0 for none."""
        if self._waiting:
            return select.POLLOUT if end is self._sink else 0
        return select.POLLIN if end is self._source and not self._has_ended else 0

    def step(self, ready: Mapping[int, int]) -> int:
        """Read and write as much as possible without blocking. Return the number of bytes read. Raises OSError."""
        count = 0
        broken = select.POLLERR | select.POLLHUP | select.POLLNVAL
        if not self._waiting and not self._has_ended and ready.get(self._source.fileno(), 0) & (select.POLLIN | broken):
            try:
                block = self._source.recv(BLOCK_BYTES)
            except BlockingIOError:
                return 0
            self._waiting, self._has_ended, count = memoryview(block), not block, len(block)
        if self._waiting and ready.get(self._sink.fileno(), select.POLLOUT) & (select.POLLOUT | broken):
            try:
                self._waiting = self._waiting[self._sink.send(self._waiting) :]
            except BlockingIOError:
                return count
        if self._has_ended and not self._waiting and not self.is_done:
            self.is_done = True
            _shut_writing(self._sink)
        return count


def _shut_writing(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # already disconnected


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # not connected
