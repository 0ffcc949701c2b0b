"""The proxy of a command, spoken to over real sockets: what it understands, what it refuses, how much it carries."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rows import all_rows

from harness.policy.hosts import host_patterns
from harness.process.host_proxy import MOST_KEPT, HostProxy
from harness.process.proxy_request import MAX_HEAD_BYTES, read_request
from harness.tools.host_routes import route_to

END = "\r\n\r\n"


def listening() -> socket.socket:
    door = socket.create_server(("127.0.0.1", 0), backlog=1024)
    door.settimeout(20)
    return door


def port_of(door: socket.socket) -> int:
    return int(door.getsockname()[1])


@contextmanager
def proxy(*hosts: str, names: dict[str, list[str]] | None = None) -> Iterator[tuple[HostProxy, int]]:
    """A proxy to some hosts, and its port; of names it finds just these addresses."""

    def look(name: str, port: int) -> list[str]:
        if name not in (names or {}):
            raise socket.gaierror(-2, "Name or service not known")
        return (names or {})[name]

    door = listening()
    held = HostProxy(door, partial(route_to, patterns=host_patterns(hosts), look=look))
    try:
        yield held, port_of(door)
    finally:
        held.close()


def say(port: int, request: str | bytes) -> bytes:
    """Send a request, and return all of the answer."""
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        wire.sendall(request if isinstance(request, bytes) else request.encode("latin-1"))
        wire.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while block := wire.recv(65536):
                answer += block
        except ConnectionResetError:
            pass
        return answer


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that serves each connection on a thread of its own, and its port."""
    door = listening()

    def answer() -> None:
        while True:
            try:
                wire, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(wire,), daemon=True).start()

    def one(wire: socket.socket) -> None:
        with wire:
            serve(wire)

    threading.Thread(target=answer, daemon=True).start()
    try:
        yield port_of(door)
    finally:
        door.close()


def echo(wire: socket.socket) -> None:
    while block := wire.recv(65536):
        wire.sendall(block)


@all_rows(
    "request_, status, said",
    [
        ("CONNECT evil.org:443 HTTP/1.1", 403, "evil.org:443 is not among the hosts"),
        ("CONNECT good.org:22 HTTP/1.1", 403, "good.org:22 is not among"),
        ("CONNECT good.org HTTP/1.1", 400, "needs a port"),
        ("CONNECT good.org: HTTP/1.1", 403, "no port from 1 to 65535"),
        ("CONNECT good.org:0 HTTP/1.1", 403, "no port from 1 to 65535"),
        ("CONNECT good.org:99999 HTTP/1.1", 403, "no port from 1 to 65535"),
        ("CONNECT good.org:443x HTTP/1.1", 403, "no port from 1 to 65535"),
        ("CONNECT good.org:-443 HTTP/1.1", 403, "no port from 1 to 65535"),
        ("CONNECT evil.org@good.org:443 HTTP/1.1", 403, "has a user"),
        ("CONNECT good.org@evil.org:443 HTTP/1.1", 403, "has a user"),
        ("CONNECT good.org/..:443 HTTP/1.1", 403, "more than a host"),
        ("CONNECT 127.0.0.1:443 HTTP/1.1", 403, "127.0.0.1:443 is not among"),
        ("CONNECT 127.1:443 HTTP/1.1", 403, "ends in a number"),
        ("CONNECT 0x7f000001:443 HTTP/1.1", 403, "ends in a number"),
        ("CONNECT 2130706433:443 HTTP/1.1", 403, "ends in a number"),
        ("CONNECT 0177.0.0.1:443 HTTP/1.1", 403, "ends in a number"),
        ("CONNECT [::1]:443 HTTP/1.1", 403, "[::1]:443 is not among"),
        ("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1", 403, "127.0.0.1:443 is not among"),
        ("CONNECT [fe80::1%25lo]:443 HTTP/1.1", 403, "percent"),
        ("CONNECT rebound.org:443 HTTP/1.1", 403, "rebound.org: 127.0.0.1 is this machine"),
        ("CONNECT mapped.org:443 HTTP/1.1", 403, "127.0.0.1 is this machine"),
        ("CONNECT cloud.org:443 HTTP/1.1", 403, "169.254.169.254 is link-local"),
        ("CONNECT inner.org:443 HTTP/1.1", 403, "fd00::1 is private"),
        ("CONNECT gone.org:443 HTTP/1.1", 403, "gone.org was not found"),
        ("CONNECT nothing.org:443 HTTP/1.1", 403, "it has no address"),
        ("GET http://evil.org/ HTTP/1.1", 403, "evil.org:80 is not among"),
        ("GET http://good.org@evil.org/ HTTP/1.1", 400, "not plain"),
        ("GET http://evil.org\\@good.org/ HTTP/1.1", 400, "not plain"),
        ("GET http://evil.org#good.org/ HTTP/1.1", 400, "not plain"),
        ("GET http:///x HTTP/1.1", 400, "not plain"),
        ("GET https://good.org/ HTTP/1.1", 400, "neither CONNECT"),
        ("GET ftp://good.org/ HTTP/1.1", 400, "neither CONNECT"),
        ("GET / HTTP/1.1\r\nHost: good.org", 400, "neither CONNECT"),
        ("GET  http://good.org/ HTTP/1.1", 400, "is not HTTP"),
        ("CONNECT good.org:443 HTTP/2.0", 400, "is not HTTP"),
        ("CONNECT good.org:443", 400, "is not HTTP"),
        ("CONNECT good.org:443\tHTTP/1.1", 400, "is not HTTP"),
        ("CONNECT evil.org\n:443 HTTP/1.1", 400, "control character"),
        ("CONNECT good.org:443\x00 HTTP/1.1", 400, "control character"),
        ("CONNECT good\xe9.org:443 HTTP/1.1", 400, "not ASCII"),
        ("CONNECT good.org:443 HTTP/1.1\r\n folded: x", 400, "invalid header line"),
        ("CONNECT good.org:443 HTTP/1.1\r\nwithout colon", 400, "invalid header line"),
        ("\r\nCONNECT good.org:443 HTTP/1.1", 400, "is not HTTP"),
        ("\x16\x03\x01\x02\x00\x01", 400, "control character"),
        ("CONNECT good.org:443 HTTP/1.1\r\nx: " + "a" * MAX_HEAD_BYTES, 400, "longer than"),
    ],
)
def test_connection_without_a_target_is_answered_with_the_reason(request_: str, status: int, said: str) -> None:
    names = {
        "rebound.org": ["127.0.0.1"],
        "mapped.org": ["::ffff:127.0.0.1"],
        "cloud.org": ["169.254.169.254"],
        "inner.org": ["fd00::1"],
        "nothing.org": [],
    }
    with proxy("good.org", "gone.org", *names, names=names) as (held, port):
        answer = say(port, request_ + END)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert said.encode() in answer.partition(b"\r\n\r\n")[2]
    assert answer.count(b"\n") == answer.partition(b"\r\n\r\n")[0].count(b"\n") + 3  # one line of reason
    (one,) = held.connections
    assert said in one.why_not
    assert (one.sent, one.received, held.total) == (0, 0, 1)


def test_only_addresses_that_were_judged_are_tried() -> None:
    asked: list[str] = []

    def rebinding(name: str, port: int) -> list[str]:
        asked.append(name)
        return ["1.1.1.1", "10.0.0.1", "::1", "2606:4700::1"] if len(asked) == 1 else ["127.0.0.1"]

    route = route_to("Good.ORG.:443", host_patterns(("good.org",)), rebinding)
    assert route.addresses == ("1.1.1.1", "2606:4700::1")
    assert asked == ["good.org"]
    named = route_to("good.org:443", host_patterns(("good.org", "127.0.0.1")), rebinding)
    assert named.addresses == ("127.0.0.1",)


@all_rows(
    "sent, target, head",
    [
        ("GET http://a.org/x?y HTTP/1.1", "a.org:80", "GET /x?y HTTP/1.1|Host: a.org|Connection: close"),
        ("GET http://a.org HTTP/1.0", "a.org:80", "GET / HTTP/1.1|Host: a.org|Connection: close"),
        ("GET http://a.org?q=1 HTTP/1.1", "a.org:80", "GET /?q=1 HTTP/1.1|Host: a.org|Connection: close"),
        ("POST HTTP://a.org:81/ HTTP/1.1", "a.org:81", "POST / HTTP/1.1|Host: a.org:81|Connection: close"),
        ("GET http://[::1]/ HTTP/1.1", "[::1]:80", "GET / HTTP/1.1|Host: [::1]|Connection: close"),
        (
            "GET http://a.org/ HTTP/1.1|Host: evil.org|Connection: X-Hop|X-Hop: 1|Proxy-Authorization: s|Accept: */*",
            "a.org:80",
            "GET / HTTP/1.1|Host: a.org|Connection: close|Accept: */*",
        ),
    ],
)
def test_a_plain_request_is_sent_for_its_own_host_alone(sent: str, target: str, head: str) -> None:
    found = read_request((sent.replace("|", "\r\n") + END).encode())
    assert found.target == target
    assert not found.is_tunnel
    assert found.head.decode() == head.replace("|", "\r\n") + END


@contextmanager
def many_descriptors() -> Iterator[None]:
    """As many as three ends of each connection need, for an ordinary user too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_connections_are_all_carried() -> None:
    with many_descriptors(), server(echo) as served, proxy(f"127.0.0.1:{served}") as (held, port):
        wires = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(1000)]
        ask = f"CONNECT 127.0.0.1:{served} HTTP/1.1{END}".encode()
        for number, wire in enumerate(wires):
            wire.sendall(ask + f"number {number}".encode())
            wire.shutdown(socket.SHUT_WR)
        for number, wire in enumerate(wires):
            got = b""
            with wire:
                while block := wire.recv(65536):
                    got += block
            assert got.endswith(f"\r\n\r\nnumber {number}".encode())
    (one,) = held.connections
    assert (one.times, held.total, one.why_not) == (1000, 1000, "")
    assert one.sent == one.received == sum(len(f"number {number}") for number in range(1000))


def test_slow_reader_loses_no_data_and_blocks_no_one() -> None:
    size = 20_000_000

    def pour(wire: socket.socket) -> None:
        wire.sendall(b"x" * size)

    with server(pour) as served, proxy(f"127.0.0.1:{served}") as (held, port):
        ask = f"CONNECT 127.0.0.1:{served} HTTP/1.1{END}".encode()
        slow = socket.create_connection(("127.0.0.1", port), 60)
        slow.sendall(ask)
        assert len(say(port, ask)) > size  # another one is served meanwhile
        got = 0
        with slow:
            while block := slow.recv(1 << 20):
                got += len(block)
        assert got == size + len(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert held.total == 2


def test_a_connection_that_is_open_ends_with_the_proxy() -> None:
    with server(echo) as served, proxy(f"127.0.0.1:{served}") as (held, port):
        wire = socket.create_connection(("127.0.0.1", port), 20)
        wire.sendall(f"CONNECT 127.0.0.1:{served} HTTP/1.1{END}ping".encode())
        got = b""
        while b"ping" not in got:
            got += wire.recv(1000)
        silent = socket.create_connection(("127.0.0.1", port), 20)
        held.close()
        for each in (wire, silent):
            with each:
                try:
                    assert each.recv(1000) == b""
                except ConnectionResetError:
                    pass
    (one,) = held.connections
    assert (one.sent, one.received) == (4, 4)


def test_many_different_ends_are_counted_and_not_all_kept() -> None:
    with proxy("good.org") as (held, port):
        for number in range(MOST_KEPT + 5):
            say(port, f"CONNECT evil{number}.org:443 HTTP/1.1{END}")
    assert len(held.connections) == MOST_KEPT
    assert held.total == MOST_KEPT + 5


def test_unreachable_host_is_reported() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = port_of(closed)
        with proxy(f"localhost:{nobody}") as (held, port):
            answer = say(port, f"CONNECT localhost:{nobody} HTTP/1.1{END}")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"localhost could not be reached" in answer
    assert len(held.connections) == 1
