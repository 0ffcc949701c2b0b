"""One request and its answer. The request is sent in another thread, so that the caller can stop at any moment.

A thread that waits inside C for a name lookup or a connection cannot be stopped. A thread that waits for a queue wakes
up at the deadline, and at Ctrl-C. This module knows no SDK and no HTTP, and opens no connection.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import time
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context
from enum import Enum
from typing import Protocol

from harness.interrupt import stops_here
from harness.models.endpoint import Deadlines
from harness.models.failures import FailedTry
from harness.models.reply_body import ReplyBody
from harness.record import Record


class Phase(Enum):
    """Progress of a request before its answer begins."""

    CONNECTED = "connected"
    SENT = "sent"
    REFUSED = "refused"
    """The answer has an error status. Its text follows."""


class Request(Protocol):
    """The part of a request of httpx and httpx2 that is used here."""

    extensions: Mapping[str, object]


class Connections:
    """The sockets that one client has opened. Its requests run one at a time.

    The `trace` extension of httpcore (python-encode/httpcore, docs/extensions.md) reports every step of a request, in
    the sending thread. The sockets are found in these reports.

    INVARIANT: after `hang_up` no socket of the client stays usable, not even one whose connect is in progress.
    """

    def __init__(self) -> None:
        self.report: Callable[[Phase], None] = _nobody
        """Called with each phase that the request reaches, in the thread that sends it."""
        self.reusable = True
        """Whether the next request may use one of the sockets."""
        self._sockets: tuple[weakref.ref[socket.socket], ...] = ()
        self._over = False

    def follow(self, request: Request) -> None:
        """Make a request report its steps. Must be called before the request is sent."""
        request.extensions = {**request.extensions, "trace": self._trace}

    def hang_up(self) -> None:
        """Shut all sockets down for good, which wakes the threads that wait for them. Any thread may call this."""
        self.reusable = False
        self._over = True  # set before `_sockets` is read: `_trace` stores a new socket before it reads `_over`
        for reference in self._sockets:
            _shut_down(reference())

    def _trace(self, step: str, details: Mapping[str, object]) -> None:
        if step.endswith((".send_request_headers.started", ".send_request_body.complete")):
            self.report(Phase.SENT if step.endswith(".complete") else Phase.CONNECTED)
            return
        find = getattr(details.get("return_value"), "get_extra_info", None)
        opened = find("socket") if find is not None else None
        if isinstance(opened, socket.socket):
            alive = tuple(reference for reference in self._sockets if reference() is not None)
            self._sockets = (*alive, weakref.ref(opened))
            if self._over:
                _shut_down(opened)


def _nobody(phase: Phase) -> None:
    """Ignore the progress."""


def _shut_down(opened: socket.socket | None) -> None:
    """Shut a socket down below TLS. The method of SSLSocket would end the TLS session while another thread reads."""
    if opened is not None:
        try:
            socket.socket.shutdown(opened, socket.SHUT_RDWR)
        except OSError:
            pass  # closed already, or not connected


CREDITS = 64
"""Maximum number of pieces in the queue. A piece of more than CREDIT_BYTES takes several places."""
CREDIT_BYTES = 64 * 1024
CLOSE_SECONDS = 0.1
"""Seconds that `close` waits for the sending thread to end. It ends at once, except during a connect."""

LOOK_UP_SECONDS = 0.1
"""Interval in seconds at which a waiting thread checks whether it was asked to stop."""


class _End:
    """Last item of the queue, with the exception that ended the sending or `None`."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Exchange:
    """One request. Call `start`, then `take` until it returns None or raises, or you need no more, then `close`.

    INVARIANT: after `close` the sending thread delivers nothing more. It has ended, or it is still in a connect. That
    connect fails when it returns, because of `hang_up`; until then the thread sends nothing else.
    """

    def __init__(
        self,
        send: Callable[[], Iterator[bytes]],
        *,
        hang_up: Callable[[], None],
        stops: Callable[[], int] = stops_here,
    ) -> None:
        """`send` sends the request and yields the body of its answer; `hang_up` wakes it by closing the connection.

        They run in different threads. The sending can be stopped at each piece, even an empty one. `take` raises the
        exceptions of `send`. `stops` returns how often the thread was asked to stop; it is for threads that no signal
        interrupts.
        """
        self._send = send
        self._hang_up = hang_up
        self._stops = stops
        # Both queues are written in C, so that an interrupt in the middle of a call leaves no lock behind.
        self._arrived: queue.SimpleQueue[bytes | Phase | _End] = queue.SimpleQueue()
        self._credits: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._unwanted = False
        self._sending = False
        """Whether the sending has started and its `_End` has not arrived."""
        self._has_ended = False
        """Whether the `_End` arrived before `close`."""
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start sending on a sender thread."""
        for _ in range(CREDITS):
            self._credits.put(None)
        senders.send(self)
        self._sending = True

    def report(self, phase: Phase) -> None:
        """Report the progress of the request to the waiting thread. The sending thread calls this."""
        self._arrived.put(phase)

    def take(self, seconds: float) -> bytes | Phase | None:
        """Return the next piece of the answer or a phase that the request reached; None after the last piece.

        Raises TimeoutError if nothing arrives for `seconds`, KeyboardInterrupt if `stops` is not 0 meanwhile, and the
        exception that ended the sending.
        """
        item = self._waited_for(max(seconds, 0.0))
        if isinstance(item, bytes):
            for _ in range(_places(item)):
                self._credits.put(None)
            return item
        if isinstance(item, Phase):
            return item
        self._sending, self._has_ended = False, True
        if item.error is not None:
            raise item.error
        return None

    def _waited_for(self, seconds: float) -> bytes | Phase | _End:
        while True:
            try:
                return self._arrived.get(timeout=min(seconds, LOOK_UP_SECONDS))
            except queue.Empty:
                pass
            if self._stops():
                raise KeyboardInterrupt
            seconds -= LOOK_UP_SECONDS
            if seconds <= 0:
                raise TimeoutError

    def close(self) -> bool:
        """End the request, within CLOSE_SECONDS. Return whether it had already ended by itself.

        If it had, its connection can be used again.
        """
        if not self._has_ended:
            self._unwanted = True
            for _ in range(CREDITS):
                self._credits.put(None)
            self._hang_up()
            if self._sending:
                self._wait_for_end()
        return self._has_ended

    def _wait_for_end(self) -> None:
        until = time.monotonic() + CLOSE_SECONDS
        try:
            while not isinstance(self._arrived.get(timeout=max(until - time.monotonic(), 0.0)), _End):
                pass
            self._sending = False
        except queue.Empty:
            pass  # the sending thread is stuck, and abandoned

    def run(self) -> None:
        """Send the request and deliver the pieces of its answer. A sender thread calls this, and then `tell_end`."""
        try:
            self._pass_on()
        except BaseException as raised:  # noqa: BLE001 - passed to the waiting thread
            self._error = raised

    def tell_end(self) -> None:
        """Report the end of the sending to the waiting thread."""
        error, self._error = self._error, None
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
    """Return the number of places that a piece takes in the queue."""
    return min(1 + len(piece) // CREDIT_BYTES, CREDITS)


MOST_IDLE = 4
"""Maximum number of idle threads that are kept. Few requests run at once."""


class Senders:
    """Threads that send requests. A few idle ones are kept, since starting a thread takes a third of a millisecond.

    INVARIANT: an exchange never waits for a busy thread. While one sends or is stuck, another takes the next exchange.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._idle: list[queue.SimpleQueue[Exchange]] = []
        """The queues of idle threads. A list, since its methods are atomic: they are written in C."""

    def send(self, exchange: Exchange) -> None:
        """Start an exchange on an idle thread, or on a new one. Raises RuntimeError if no thread can be started."""
        if self._process != os.getpid():  # forked: the threads stayed in the other process
            self._process, self._idle = os.getpid(), []
        try:
            waiting = self._idle.pop()
        except IndexError:
            waiting = queue.SimpleQueue()
            start_new_thread(self._work, (waiting,))
        waiting.put(exchange)

    def _work(self, waiting: queue.SimpleQueue[Exchange]) -> None:
        # Signals are for the waiting thread: a signal delivered here would not wake it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            exchange = waiting.get()
            Context().run(exchange.run)  # an empty one: context variables do not leak into the next exchange
            self._idle.append(waiting)  # before `tell_end`, after which the caller may start the next exchange
            exchange.tell_end()
            del exchange
            if len(self._idle) > MOST_IDLE and self._let_go(waiting):
                return

    def _let_go(self, waiting: queue.SimpleQueue[Exchange]) -> bool:
        """Remove a thread from the idle ones. Return False if it has already been given another exchange."""
        try:
            self._idle.remove(waiting)
        except ValueError:
            return False
        return True


senders = Senders()
"""The sending threads of this process."""


CONNECT_SLACK = 1.1
"""Factor on our connect deadline, which includes name lookup. The SDK applies its own to each address and to TLS."""
ERROR_SECONDS = 10.0
"""Maximum time from an error status to the end of its text."""
TAIL_SECONDS = 10.0
"""Maximum time from the finish reason to the end of the answer. Only the usage can follow."""
END_SECONDS = 0.25
"""Maximum time from `[DONE]` to the end of the answer. A connection that reaches its end can be used again."""


class Limit(Enum):
    """The deadline that a request exceeded."""

    CONNECT = "connect"
    FIRST_EVENT = "first_event"
    IDLE = "idle"
    TAIL = "tail"
    TOTAL = "total"
    RUN = "run"


class Timing(Record):
    """Times of the steps of one try, in seconds from its start; `None` for a step that it did not reach."""

    connected: float | None = None
    first_event: float | None = None
    """Time of the first event with data; `None` for an answer that is not a stream."""


class TryClock:
    """The deadlines of one try. All times are seconds of one monotonic clock."""

    def __init__(self, deadlines: Deadlines, *, started: float, run_ends: float | None = None) -> None:
        """`started` is the start time of the try, `run_ends` the deadline of the whole run (`None`: no deadline)."""
        self._deadlines = deadlines
        self._run_ends = run_ends
        self._started = started
        self._connected: float | None = None
        self._sent = False
        self._first_event: float | None = None
        self._total_ends = started + deadlines.total
        self._next = Limit.CONNECT
        self._next_ends = started + deadlines.connect * CONNECT_SLACK

    @property
    def timing(self) -> Timing:
        """Times of the steps so far."""
        return Timing(connected=self._connected, first_event=self._first_event)

    def reached(self, phase: Phase, now: float) -> None:
        """Record that the request reached a phase.

        Once the request is sent, the wait for the first event starts again. A redirect sends the request a second time,
        but does not prolong the wait.
        """
        match phase:
            case Phase.CONNECTED if self._connected is None:
                self._connected = now - self._started
                self._set(Limit.FIRST_EVENT, now + self._deadlines.first_event)
            case Phase.SENT if not self._sent and self._first_event is None:
                self._sent = True
                self._set(Limit.FIRST_EVENT, now + self._deadlines.first_event)
            case Phase.REFUSED:
                ends = now + min(ERROR_SECONDS, self._deadlines.first_event)
                self._set(Limit.FIRST_EVENT, min(ends, self._next_ends))
            case _:
                pass

    def event(self, now: float) -> None:
        """Record that an event with data arrived."""
        if self._first_event is None:
            self._first_event = now - self._started
        self._set(Limit.IDLE, now + self._deadlines.idle)

    def finished(self, now: float) -> None:
        """Record that the reply is finished. The answer may continue with its usage."""
        self._set(Limit.TAIL, now + min(TAIL_SECONDS, self._deadlines.idle))

    def over(self, now: float) -> None:
        """Record that only the end of the answer can follow."""
        self._set(Limit.TAIL, now + END_SECONDS)

    def next(self) -> tuple[float, Limit]:
        """Return the time and the kind of the next deadline."""
        nearest = min((self._next_ends, 2, self._next), (self._total_ends, 1, Limit.TOTAL), key=lambda end: end[:2])
        if self._run_ends is not None and self._run_ends <= nearest[0]:
            return self._run_ends, Limit.RUN
        return nearest[0], nearest[2]

    def _set(self, limit: Limit, ends: float) -> None:
        self._next, self._next_ends = limit, ends


class OutOfTime(Exception):
    """Raised when a deadline has passed."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit.value)
        self.limit = limit


def read_reply(
    exchange: Exchange,
    clock: TryClock,
    reply: ReplyBody,
    on_text: Callable[[str], None],
    monotonic: Callable[[], float],
) -> None:
    """Feed `reply` with the answer until it ends. Call `on_text` with the new text of each piece.

    Raises OutOfTime at the deadline, and the exceptions of the sending, of `reply` and of `on_text`.
    """
    events = 0
    while True:
        ends, limit = clock.next()
        now = monotonic()
        if now >= ends:
            raise OutOfTime(limit)
        try:
            piece = exchange.take(ends - now)
        except TimeoutError:
            raise OutOfTime(limit) from None
        if piece is None:
            return
        if isinstance(piece, Phase):
            clock.reached(piece, monotonic())
            continue
        for text in reply.feed(piece):
            on_text(text)
        if reply.events > events:
            clock.event(monotonic())
            if reply.finished:
                clock.finished(monotonic())
        events = reply.events
        if reply.over:
            clock.over(monotonic())
            _drain(exchange, clock, monotonic)
            return


def _drain(exchange: Exchange, clock: TryClock, monotonic: Callable[[], float]) -> None:
    """Wait briefly for the end of a complete answer, so that its connection can be used again."""
    try:
        while (now := monotonic()) < clock.next()[0] and exchange.take(clock.next()[0] - now) is not None:
            pass
    except (FailedTry, TimeoutError):
        pass  # then its connection is not used again
