"""The sockets of one HTTP client, so that a request can be ended from outside of it; opens none, speaks no HTTP."""

from __future__ import annotations

import socket
import weakref
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol


class Phase(Enum):
    """How far a request has come, before anything of its answer is there."""

    CONNECTED = "connected"
    SENT = "sent"
    REFUSED = "refused"
    """The answer is an error, whose words are still to come."""


class Request(Protocol):
    """What is used of a request of httpx and httpx2."""

    extensions: Mapping[str, object]


class Connections:
    """The sockets that one client has opened. Its requests run one at a time.

    Told by the `trace` extension of httpcore (python-encode/httpcore, docs/extensions.md), which names every step of a
    request, in the thread that sends it.

    INVARIANT: after `hang_up` no socket of the client stays usable, also none that is only being connected meanwhile.
    """

    def __init__(self) -> None:
        self.report: Callable[[Phase], None] = _nobody
        """Whom the phases of the request are told; called in the thread that sends it."""
        self.reusable = True
        """Whether the next request may go over one of them."""
        self._sockets: tuple[weakref.ref[socket.socket], ...] = ()
        self._over = False

    def follow(self, request: Request) -> None:
        """Have a request, before it is sent, tell its steps."""
        request.extensions = {**request.extensions, "trace": self._trace}

    def hang_up(self) -> None:
        """Shut all sockets down, for good: whoever waits on one of them is woken. May be called in any thread."""
        self.reusable = False
        self._over = True  # before the sockets are looked at; a new one is kept before this is looked at
        for kept in self._sockets:
            _shut_down(kept())

    def _trace(self, step: str, told: Mapping[str, object]) -> None:
        if step.endswith((".send_request_headers.started", ".send_request_body.complete")):
            self.report(Phase.SENT if step.endswith(".complete") else Phase.CONNECTED)
            return
        find = getattr(told.get("return_value"), "get_extra_info", None)
        opened = find("socket") if find is not None else None
        if isinstance(opened, socket.socket):
            alive = tuple(kept for kept in self._sockets if kept() is not None)
            self._sockets = (*alive, weakref.ref(opened))
            if self._over:
                _shut_down(opened)


def _nobody(phase: Phase) -> None:
    """Tell nobody."""


def _shut_down(opened: socket.socket | None) -> None:
    """Shut a socket down below TLS: the method of SSLSocket would take the session away from who reads just now."""
    if opened is not None:
        try:
            socket.socket.shutdown(opened, socket.SHUT_RDWR)
        except OSError:
            pass  # closed already, or not connected
