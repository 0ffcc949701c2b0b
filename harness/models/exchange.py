"""One request and its answer, in a thread of its own, so that whoever waits for it can stop at any moment.

A thread that waits inside C, for a name or for a connection, can be stopped by nothing; who waits for a queue wakes up
at the deadline, and at Ctrl-C. This module knows no SDK and no HTTP, and opens nothing.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator

from harness.models.connections import Phase

CREDITS = 64
"""How many pieces wait in the queue at most; each piece of more than CREDIT_BYTES takes several of their places."""
CREDIT_BYTES = 64 * 1024
JOIN_SECONDS = 0.1
"""How long the end of an abandoned thread is waited for: it is at once, unless it is stuck in a connect."""

_LONGEST_WAIT = 86_400.0


class _End:
    """The last thing in the queue: how the sending ended."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Exchange:
    """One request. `start`, `take` until it returns None, raises or is not wanted any longer, then `close`.

    INVARIANT: after `close` the thread has ended, or hangs in a connect which `hang_up` makes fail when it comes back;
    it puts nothing anywhere any more.
    """

    def __init__(self, send: Callable[[], Iterator[bytes]], *, hang_up: Callable[[], None]) -> None:
        """Take what sends the request and yields the body of its answer, and what wakes it by closing the connection.

        Each piece, an empty one too, is a moment at which the sending may be stopped. Both run in other threads than each
        other. `send` may raise whatever it likes; `take` hands it on.
        """
        self._send = send
        self._hang_up = hang_up
        # Both queues are written in C, so that an interrupt in the middle of a call leaves no lock behind.
        self._arrived: queue.SimpleQueue[bytes | Phase | _End] = queue.SimpleQueue()
        self._credits: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._unwanted = False
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="harness-exchange", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        for _ in range(CREDITS):
            self._credits.put(None)
        self._thread.start()

    def report(self, phase: Phase) -> None:
        """Tell the one who waits how far the request is; for the thread that sends."""
        self._arrived.put(phase)

    def take(self, seconds: float) -> bytes | Phase | None:
        """Return the next piece of the answer or a phase that the request reached; None after the last piece.

        Raises TimeoutError if nothing comes for `seconds`, and what the sending raised.
        """
        try:
            item = self._arrived.get(timeout=min(max(seconds, 0.0), _LONGEST_WAIT))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(item, bytes):
            for _ in range(_places(item)):
                self._credits.put(None)
            return item
        if isinstance(item, Phase):
            return item
        self._ended = True
        if item.error is not None:
            raise item.error
        return None

    def close(self) -> bool:
        """Let go of the request; say whether it had ended by itself, so that its connection may be used again.

        Takes no longer than JOIN_SECONDS.
        """
        if not self._ended:
            self._unwanted = True
            for _ in range(CREDITS):
                self._credits.put(None)
            self._hang_up()
        if self._thread.ident is not None:
            self._thread.join(JOIN_SECONDS)
        return self._ended

    def _run(self) -> None:
        # A signal that this thread took would not wake the one who waits, and only that one obeys it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        error: BaseException | None = None
        try:
            self._pass_on()
        except BaseException as raised:  # noqa: BLE001 - handed on to the one who waits
            error = raised
        self._arrived.put(_End(error))

    def _pass_on(self) -> None:
        for piece in self._send():
            if piece:
                for _ in range(_places(piece)):
                    self._credits.get()
            if self._unwanted:
                return
            if piece:
                self._arrived.put(piece)


def _places(piece: bytes) -> int:
    """Return how many places in the queue a piece takes."""
    return min(1 + len(piece) // CREDIT_BYTES, CREDITS)
