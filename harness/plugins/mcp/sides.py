"""The two sides of a proxy, client and server: the output to each, and the open requests of each."""

from __future__ import annotations

from _thread import allocate_lock

from harness.plugins.mcp.server_calls import ServerCall
from harness.safe_files import write_whole

MOST_OPEN = 10_000
"""Maximum number of requests of one side that wait for an answer."""
MOST_CANCELLED = 1_000


class Peer:
    """The output to one side. Lines are written completely, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self.lock = allocate_lock()
        self.is_gone = False
        self._descriptor = descriptor

    def write(self, line: bytes) -> None:
        """Write a line. It is dropped if the side has closed its input."""
        with self.lock:
            self.write_alone(line)

    def write_alone(self, line: bytes) -> None:
        """Do as `write`. The caller holds the lock."""
        if self.is_gone:
            return
        try:
            write_whole(self._descriptor, line)
        except OSError:
            self.is_gone = True


class OpenRequests:
    """The requests of one side without an answer, by ID. Each has a value that the proxy stores with it."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._open: dict[str, ServerCall | str] = {}
        self._cancelled: dict[str, ServerCall | str] = {}
        """Cancelled requests, which may still be answered. Only the last MOST_CANCELLED are kept."""

    def add(self, identity: str, call: ServerCall | str) -> str:
        """Add a request. Return the reason why it cannot be added, or an empty string."""
        with self._lock:
            if identity in self._open or identity in self._cancelled:
                return "its id is that of a request that is still open"
            if len(self._open) >= MOST_OPEN:
                return f"{MOST_OPEN} requests are open already"
            self._open[identity] = call
            return ""

    def cancel(self, identity: str) -> ServerCall | str | None:
        """Mark a request as cancelled. Return its value, or `None` if it was not open."""
        with self._lock:
            call = self._open.pop(identity, None)
            if call is not None:
                self._cancelled[identity] = call
                if len(self._cancelled) > MOST_CANCELLED:
                    del self._cancelled[next(iter(self._cancelled))]
            return call

    def get(self, identity: str) -> ServerCall | str | None:
        """Return the value of an open or cancelled request, or `None`."""
        return self._open.get(identity) or self._cancelled.get(identity)

    def pop(self, identity: str) -> ServerCall | str | None:
        """Remove a request. Return its value, or `None`."""
        with self._lock:
            return self._open.pop(identity, None) or self._cancelled.pop(identity, None)

    def pop_all(self) -> list[tuple[str, ServerCall | str]]:
        """Remove all open requests. Return their IDs and values."""
        with self._lock:
            calls = list(self._open.items())
            self._open.clear()
            return calls


class Sides:
    """The outputs to client and server, and the open requests of both."""

    def __init__(self, client: int, server: int) -> None:
        """Write to the client and the server through these file descriptors."""
        self.client, self.server = Peer(client), Peer(server)
        self.of_client, self.of_server = OpenRequests(), OpenRequests()
