"""A request in a thread of its own: pieces, deadlines, backpressure, and what is left when nobody wants it any longer."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest
from in_flight import all_over, exchanges
from process_scene import wait_until

from harness.models.exchange import CREDIT_BYTES, CREDITS, MOST_IDLE, Connections, Exchange, Phase, Senders

IMPOSSIBLE_BYTES = 1 << 47
"""A stack of a thread that no machine has room for."""


def nothing() -> None:
    """There is no connection to close."""


def started(
    send: Callable[[], Iterator[bytes]], hang_up: Callable[[], None] = nothing, stops: Callable[[], int] = lambda: 0
) -> Exchange:
    exchange = Exchange(send, hang_up=hang_up, stops=stops)
    exchange.start()
    return exchange


def test_pieces_arrive_in_order_and_then_the_end() -> None:
    exchange = started(lambda: iter([b"a", b"", b"b" * 3 * CREDIT_BYTES]))
    assert [exchange.take(60) for _ in range(3)] == [b"a", b"b" * 3 * CREDIT_BYTES, None]
    assert exchange.close() is True
    assert all_over()


def test_an_empty_piece_is_a_moment_to_stop() -> None:
    begun = threading.Event()

    def send() -> Iterator[bytes]:
        while True:
            begun.set()
            yield b""

    exchange = started(send)
    assert begun.wait(60)
    assert (exchange.close(), all_over()) == (False, True)


def test_error_of_the_sender_is_raised_in_the_waiting_thread() -> None:
    def send() -> Iterator[bytes]:
        yield b"a"
        raise BrokenPipeError("gone")

    exchange = started(send)
    assert exchange.take(60) == b"a"
    with pytest.raises(BrokenPipeError, match=r"^gone$"):
        exchange.take(60)
    assert (exchange.close(), all_over()) == (True, True)


def test_waiting_thread_can_be_interrupted_by_another() -> None:
    hung_up = threading.Event()

    def send() -> Iterator[bytes]:
        hung_up.wait()
        yield b"late"

    asked = iter((0, 0, 1))
    exchange = started(send, hang_up=hung_up.set, stops=lambda: next(asked))
    with pytest.raises(KeyboardInterrupt):
        exchange.take(60)
    assert (exchange.close(), all_over()) == (False, True)


def test_phases_arrive_before_the_pieces_that_follow_them() -> None:
    def send() -> Iterator[bytes]:
        exchange.report(Phase.CONNECTED)
        yield b"a"

    exchange = Exchange(send, hang_up=nothing)
    exchange.start()
    assert [exchange.take(60) for _ in range(3)] == [Phase.CONNECTED, b"a", None]
    exchange.close()


def test_wait_ends_at_the_deadline_and_the_thread_with_its_connection() -> None:
    hung_up, closed = threading.Event(), threading.Event()

    def send() -> Iterator[bytes]:
        try:
            hung_up.wait()
            yield b"late"
        finally:
            closed.set()

    exchange = started(send, hung_up.set)
    with pytest.raises(TimeoutError):
        exchange.take(0.2)
    assert (closed.is_set(), exchange.close()) == (False, False)
    assert (all_over(), closed.is_set()) == (True, True)


def test_slow_receiver_holds_up_the_sender() -> None:
    sent = 0

    def send() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(10 * CREDITS):
            sent += 1
            yield b"x"

    exchange = started(send)
    for taken in range(3):
        assert wait_until(lambda taken=taken: sent >= CREDITS + 1 + taken)  # type: ignore[misc]  # bound at once
        assert sent == CREDITS + 1 + taken
        assert exchange.take(60) == b"x"
    assert (exchange.close(), all_over()) == (False, True)
    assert sent <= CREDITS + 4


def test_big_pieces_take_many_places() -> None:
    sent = 0

    def send() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(20):
            sent += 1
            yield bytes(CREDITS * CREDIT_BYTES * 3)

    exchange = started(send)
    assert wait_until(lambda: sent >= 2)
    assert sent == 2  # one in the queue, one that waits for a place
    assert [len(exchange.take(60) or b"") for _ in range(20)] == [CREDITS * CREDIT_BYTES * 3] * 20  # type: ignore[arg-type]
    assert exchange.take(60) is None
    exchange.close()


def test_stuck_thread_is_not_waited_for() -> None:
    """It waits for ever, and so would this test."""
    stuck = threading.Event()

    def send() -> Iterator[bytes]:
        stuck.wait()
        yield b""

    exchange = started(send)
    assert wait_until(lambda: exchanges() == 1)
    assert exchange.close() is False
    assert exchanges() == 1
    stuck.set()
    assert all_over()


def test_interrupt_reaches_the_waiting_thread_immediately() -> None:
    """Nothing else would come. A busy machine may strike before it waits, and passes then."""
    hung_up, waits = threading.Event(), threading.Event()

    def strike() -> None:
        waits.wait()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    def wait() -> None:
        waits.set()
        exchange.take(1000)

    exchange = started(lambda: iter([b"x"] if hung_up.wait() else []), hung_up.set)
    striking = threading.Thread(target=strike)
    striking.start()
    with pytest.raises(KeyboardInterrupt):
        wait()
    striking.join()
    assert (exchange.close(), all_over()) == (False, True)


def test_an_exchange_that_never_began_can_be_closed() -> None:
    assert Exchange(lambda: iter([b"x"]), hang_up=nothing).close() is False


def test_closing_again_waits_for_no_second_end() -> None:
    let_go = threading.Event()
    exchange = started(lambda: iter([b"x"] if let_go.wait() else []), let_go.set)
    assert wait_until(lambda: exchange.close() is False and not exchange._sending)  # a busy machine may need longer
    assert exchange.close() is False


def test_failed_thread_start_needs_no_waiting() -> None:
    stuck = threading.Event()
    held: list[Exchange] = []
    before = threading.stack_size(IMPOSSIBLE_BYTES)
    try:
        for _ in range(100):  # until no thread is left that has nothing to send
            held.append(Exchange(lambda: iter([b""] if stuck.wait() else []), hang_up=nothing))
            held[-1].start()
    except RuntimeError as raised:
        assert "can't start new thread" in str(raised)  # noqa: PT017 - any number of them start before
    finally:
        threading.stack_size(before)
    assert (held[-1]._sending, held[-1].close()) == (False, False)
    stuck.set()
    assert all_over()


# ----------------------------------------------------------------------------------------------------- the threads that send


def begun(senders: Senders, send: Callable[[], Iterator[bytes]]) -> Exchange:
    """Begin to send on one of these threads."""
    exchange = Exchange(send, hang_up=nothing)
    for _ in range(CREDITS):
        exchange._credits.put(None)
    senders.send(exchange)
    return exchange


def sent_by(senders: Senders) -> int:
    """Send something; return the number of the thread that did."""
    exchange = begun(senders, lambda: iter([b"%d" % threading.get_native_id()]))
    number = exchange.take(60)
    assert isinstance(number, bytes)
    assert exchange.take(60) is None
    return int(number)


def test_one_thread_sends_one_request_after_the_other() -> None:
    senders = Senders()
    assert len({sent_by(senders) for _ in range(100)}) == 1


def test_stuck_thread_is_abandoned_and_reused_when_it_recovers() -> None:
    senders, stuck = Senders(), threading.Event()
    first = sent_by(senders)
    held = begun(senders, lambda: iter([b""] if stuck.wait() else []))
    others = {sent_by(senders) for _ in range(10)}
    assert (len(others), first in others) == (1, False)
    stuck.set()
    assert held.take(60) is None
    assert sent_by(senders) in {first, *others}


def test_few_of_many_sending_threads_are_kept() -> None:
    senders, stuck = Senders(), threading.Event()
    before = set(os.listdir("/proc/self/task"))
    many = [begun(senders, lambda: iter([b""] if stuck.wait() else [])) for _ in range(20)]
    assert len(set(os.listdir("/proc/self/task")) - before) == 20
    stuck.set()
    assert [exchange.take(60) for exchange in many] == [None] * 20
    assert wait_until(lambda: len(set(os.listdir("/proc/self/task")) - before) <= MOST_IDLE)
    assert sent_by(senders) > 0


def test_context_of_a_request_is_not_seen_by_the_next() -> None:
    senders, mark = Senders(), ContextVar("mark", default="none")
    mark.set("of who asks")

    def send() -> Iterator[bytes]:
        found = f"{mark.get()} {threading.get_native_id()}"
        mark.set("of an earlier request")
        yield found.encode()

    def told() -> bytes:
        exchange = begun(senders, send)
        found = exchange.take(60)
        assert isinstance(found, bytes)
        assert exchange.take(60) is None
        return found

    first = told()
    assert (first.split()[0], told()) == (b"none", first)


def test_a_thread_that_sends_obeys_no_signal() -> None:
    def send() -> Iterator[bytes]:
        yield repr(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))).encode()

    exchange = started(send)
    told = exchange.take(60)
    assert isinstance(told, bytes)
    assert (b"SIGINT" in told, b"SIGTERM" in told, exchange.take(60), exchange.close()) == (True, True, None, True)


def test_forked_process_has_its_own_threads() -> None:
    senders = Senders()
    sent_by(senders)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(sent_by(senders) == 0)
        finally:
            os._exit(status)
    ended: list[tuple[int, int]] = []

    def has_ended() -> bool:
        ended.append(os.waitpid(child, os.WNOHANG))
        return ended[-1][0] == child

    assert wait_until(has_ended)
    assert ended[-1] == (child, 0)


# -------------------------------------------------------------------------------------------------- the sockets of a client


class Stream:
    """What httpcore hands to a trace: something that knows its socket."""

    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def get_extra_info(self, name: str) -> object:
        return {"socket": self._opened}.get(name)


class Request:
    """What is used of a request."""

    def __init__(self) -> None:
        self.extensions: dict[str, object] = {"timeout": 1}


def traced(connections: Connections) -> Callable[[str, dict[str, object]], None]:
    request = Request()
    connections.follow(request)  # type: ignore[arg-type]
    trace = request.extensions["trace"]
    assert request.extensions["timeout"] == 1
    assert callable(trace)
    return trace


def is_shut_down(near: socket.socket) -> bool:
    near.settimeout(60)
    return near.recv(1) == b""


def test_hang_up_wakes_readers_and_closes_later_connections() -> None:
    connections = Connections()
    trace = traced(connections)
    first, far = socket.socketpair()
    late, late_far = socket.socketpair()
    with first, far, late, late_far:
        trace("connection.connect_tcp.complete", {"return_value": Stream(first)})
        connections.hang_up()
        trace("connection.start_tls.complete", {"return_value": Stream(late)})
        assert (is_shut_down(far), is_shut_down(late_far)) == (True, True)
    connections.hang_up()


def test_closed_sockets_are_forgotten() -> None:
    connections = Connections()
    trace = traced(connections)
    for _ in range(50):
        near, far = socket.socketpair()
        trace("connection.connect_tcp.complete", {"return_value": Stream(near)})
        near.close()
        far.close()
        del near, far
    assert len(connections._sockets) < 5


def test_phases_of_a_request_are_reported() -> None:
    told: list[Phase] = []
    connections = Connections()
    connections.report = told.append
    trace = traced(connections)
    for step in ("connection.connect_tcp.started", "http11.send_request_headers.started"):
        trace(step, {"request": None})
    trace("http11.send_request_headers.complete", {"return_value": None})
    trace("http11.send_request_body.complete", {"return_value": None})
    trace("http11.receive_response_headers.complete", {"return_value": (b"HTTP/1.1", 200)})
    assert told == [Phase.CONNECTED, Phase.SENT]
