"""The two sides of a proxy: whole lines to write to each, and the requests of each that have no answer yet."""

from __future__ import annotations

from _thread import allocate_lock

from harness.plugins.mcp.server_calls import ServerCall
from harness.safe_files import write_whole

MOST_OPEN = 10_000
"""Requests of one side that wait for an answer."""
MOST_CANCELLED = 1_000


class Peer:
    """One side to write to: whole lines, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self.lock = allocate_lock()
        self.is_gone = False
        self._descriptor = descriptor

    def write(self, line: bytes) -> None:
        """Write a line; to one that is gone nothing."""
        with self.lock:
            self.write_alone(line)

    def write_alone(self, line: bytes) -> None:
        """Do so where the lock is held already."""
        if self.is_gone:
            return
        try:
            write_whole(self._descriptor, line)
        except OSError:
            self.is_gone = True


class OpenRequests:
    """The requests of one side that have no answer yet, by id, each with a value of the requester's own."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._open: dict[str, ServerCall | str] = {}
        self._cancelled: dict[str, ServerCall | str] = {}
        """Cancelled requests, which may be answered still: the oldest are forgotten."""

    def add(self, identity: str, call: ServerCall | str) -> str:
        """Note a request. Return the reason why it cannot be added, or an empty string."""
        with self._lock:
            if identity in self._open or identity in self._cancelled:
                return "its id is that of a request that is still open"
            if len(self._open) >= MOST_OPEN:
                return f"{MOST_OPEN} requests are open already"
            self._open[identity] = call
            return ""

    def cancel(self, identity: str) -> ServerCall | str | None:
        """Note that one is wanted no more; return what was noted of it."""
        with self._lock:
            call = self._open.pop(identity, None)
            if call is not None:
                self._cancelled[identity] = call
                if len(self._cancelled) > MOST_CANCELLED:
                    del self._cancelled[next(iter(self._cancelled))]
            return call

    def get(self, identity: str) -> ServerCall | str | None:
        """Return the value noted for an open request, or `None`."""
        return self._open.get(identity) or self._cancelled.get(identity)

    def pop(self, identity: str) -> ServerCall | str | None:
        """Return the value noted for a request, and close the request."""
        with self._lock:
            return self._open.pop(identity, None) or self._cancelled.pop(identity, None)

    def pop_all(self) -> list[tuple[str, ServerCall | str]]:
        """Return all that are waited for, and let them be open no more."""
        with self._lock:
            calls = list(self._open.items())
            self._open.clear()
            return calls


class Sides:
    """Client and server: where to write, and what is open."""

    def __init__(self, client: int, server: int) -> None:
        """Take the descriptors that each is written to."""
        self.client, self.server = Peer(client), Peer(server)
        self.of_client, self.of_server = OpenRequests(), OpenRequests()
