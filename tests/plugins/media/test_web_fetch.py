"""Pages of the web, from servers on the loopback that a rule names: what is fetched and refused, and what hostile ones do."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fault_server import Answer, End, FaultServer, Repeat, Send
from playing import Playing
from rows import all_rows

from harness import ActionLog, Agent, ToolRegistry, Workspace, builtin_tools
from harness.errors import ToolError
from harness.gate.approval import deny_all
from harness.messages import ToolCall
from harness.models.scripted import call
from harness.plugins.media.web_address import web_address
from harness.plugins.media.web_fetch import WebFetchTool
from harness.plugins.media.web_page import is_text
from harness.plugins.media.web_request import MOST_BYTES, Deadline, looked_up
from harness.plugins.media.web_request import fetched as fetched_from
from harness.policy.hosts import host_patterns
from harness.policy.loader import parse_policy

HTML = b"""<!doctype html><title>Docs</title><script>evil()</script><h1>Head</h1><p>Some <a href="/x">words</a>.</p>"""


def answered(body: bytes, media_type: str = "text/plain", status: str = "200 OK", headers: str = "") -> Answer:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return Answer(steps=(Send(data=head.encode() + body), End.CLOSE))


def moved(to: str, status: str = "302 Found") -> Answer:
    return answered(b"", status=status, headers=f"Location: {to}\r\n")


def rule(*hosts: str) -> str:
    return f'version = 1\ntools.default = "deny"\n[[rule]]\nid = "docs"\ndecision = "auto"\nhost = {list(hosts)}\n'


def outcomes(
    tmp_path: Path, policy: str, *calls: Mapping[str, Any], seconds: float = 20.0, characters: int = 30_000
) -> Sequence[dict[str, Any]]:
    path = tmp_path / f"{len(os.listdir(tmp_path))}.jsonl"
    tool = WebFetchTool(environment={"PATH": os.defpath}, seconds=seconds, characters=characters)
    agent = Agent(
        model=Playing([call("web_fetch", **arguments) for arguments in calls]),
        tools=[*builtin_tools(Workspace(str(tmp_path)), environment={}), tool],
        policy=parse_policy(policy.encode(), "p.toml"),
        approver=deny_all,
        log=ActionLog.open(str(path)),
    )
    agent.run("go")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in records if record["kind"] == "outcome"]


def fetched(
    tmp_path: Path, *answers: Answer, path: str = "/a", seconds: float = 20.0, **arguments: Any
) -> tuple[dict[str, Any], FaultServer]:
    with FaultServer(answers) as server:
        named = rule(f"127.0.0.1:{server.port}")
        url = f"http://127.0.0.1:{server.port}{path}"
        (outcome,) = outcomes(tmp_path, named, {"url": url, **arguments}, seconds=seconds)
    return outcome, server


def body_of(outcome: Mapping[str, Any]) -> str:
    first, *_ = (line for line in outcome["content"].split("\n") if line.startswith("-- page "))
    return str(outcome["content"].split(first)[1].removeprefix("\n").removesuffix("\n"))


def test_a_page_is_framed_as_from_outside(tmp_path: Path) -> None:
    outcome, server = fetched(tmp_path, answered(HTML, "text/html; charset=utf-8"), path="/a?b=c#d")
    assert outcome["status"] == "ok"
    assert body_of(outcome) == "Docs\n\n# Head\n\nSome words (/x)."
    assert f"http://127.0.0.1:{server.port}/a?b=c: HTTP 200, text/html, {len(HTML)} bytes." in outcome["content"]
    assert "comes from outside" in outcome["content"]
    (request,) = server.requests
    assert request.head.startswith("GET /a?b=c HTTP/1.1\r\n")
    sent = {line.partition(":")[0].lower() for line in request.head.split("\r\n")[1:] if line}
    assert sent == {"host", "user-agent", "accept", "accept-encoding", "connection"}


@all_rows(
    ("answer", "status", "said"),
    [
        (answered(b'{"a": 1}', "application/json"), "ok", '{"a": 1}'),
        (answered("gr\u00fc\u00dfe".encode("latin-1"), "text/plain; charset=iso-8859-1"), "ok", "gr\u00fc\u00dfe"),
        (answered(b"\xff\xfe x", "text/plain; charset=nonsense"), "ok", "\ufffd\ufffd x"),
        (answered(b"x", "text/plain; charset=base64"), "ok", "x"),
        (answered(b"a\x1b[31mb\x07\r\nc\x9bd", "text/plain; charset=latin-1"), "ok", "a[31mb\ncd"),
        (answered(gzip.compress(b"packed"), headers="Content-Encoding: gzip\r\n"), "ok", "packed"),
        (answered(b"", "text/plain"), "ok", ""),
        (answered(b"gone", status="404 Not Found"), "failed", "HTTP 404"),
        (answered(b"x", "image/png"), "failed", "is not text (image/png)"),
        (answered(b"x", "application/octet-stream"), "failed", "is not text"),
        (answered(b"a\0b"), "failed", "NUL bytes"),
        (answered(b"x", headers="Content-Encoding: br\r\n"), "failed", "packed as br"),
        (answered(b"not gzip", headers="Content-Encoding: gzip\r\n"), "failed", "could not be asked"),
        (
            answered(gzip.compress(b"packed")[:-9], headers="Content-Encoding: gzip\r\n"),
            "failed",
            "ended before its end",
        ),
        (Answer(steps=(Send(data=b"nonsense\r\n\r\n"), End.CLOSE)), "failed", "could not be asked"),
        (Answer(steps=(Send(data=b""), End.RESET)), "failed", "could not be asked"),
        (
            Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200), End.STALL)),
            "failed",
            "could not be asked",
        ),
        (
            Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999), End.STALL)),
            "failed",
            "could not be asked",
        ),
    ],
)
def test_answer_gives_status_and_content(tmp_path: Path, answer: Answer, status: str, said: str) -> None:
    outcome, _ = fetched(tmp_path, answer)
    assert outcome["status"] == status
    assert said in outcome["content"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(steps=(End.STALL,)),
        Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na"), End.STALL)),
        Answer(steps=(Repeat(data=b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.05),)),
        Answer(
            steps=(Send(data=b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), Repeat(data=b"a", pause=0.05))
        ),
        Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\nX: "), Repeat(data=b"a", pause=0.05))),
    ],
)
def test_a_slow_answer_is_ended(tmp_path: Path, answer: Answer) -> None:
    outcome, _ = fetched(tmp_path, answer, seconds=0.5)
    assert outcome["status"] == "failed"
    assert "took longer than 0.5 s" in outcome["content"]


def test_a_large_answer_is_cut_however_it_is_packed(tmp_path: Path) -> None:
    bomb = gzip.compress(b"0" * 200_000_000, 1)
    outcome, _ = fetched(tmp_path, answered(bomb, headers="Content-Encoding: gzip\r\n"))
    assert (outcome["status"], outcome["output_bytes"], outcome["truncated"]) == ("ok", MOST_BYTES, True)
    endless = Answer(
        steps=(
            Send(data=b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
            Repeat(data=b"a" * 100_000, pause=0.0),
        )
    )
    outcome, _ = fetched(tmp_path, endless)
    assert (outcome["status"], outcome["output_bytes"]) == ("ok", MOST_BYTES)
    assert "the end is missing" in outcome["content"]


def test_a_long_page_is_read_in_parts(tmp_path: Path) -> None:
    text = "".join(f"{number:07} " for number in range(1_000))
    with FaultServer([answered(text.encode())] * 3) as server:
        url = f"http://127.0.0.1:{server.port}/"
        calls: list[dict[str, Any]] = [{"url": url}, {"url": url, "offset": 5_000}, {"url": url, "offset": 9_000}]
        first, second, third = outcomes(tmp_path, rule(f"localhost:{server.port}"), *calls, characters=5_000)
    assert body_of(first) + body_of(second) == text
    assert "the next part begins at offset 5000" in first["content"]
    assert (third["status"], "there is none at 9000" in third["content"]) == ("failed", True)


def test_redirect_is_followed_within_the_host_and_reported_beyond(tmp_path: Path) -> None:
    outcome, server = fetched(tmp_path, moved("/b"), moved("c?d", "301 Moved"), answered(b"there"))
    assert body_of(outcome) == "there"
    assert [request.head.split(" ")[1] for request in server.requests] == ["/a", "/b", "/c?d"]
    outcome, server = fetched(tmp_path, *[moved("/a")] * 9)
    assert (outcome["status"], len(server.requests)) == ("failed", 6)
    assert "redirects more than 5 times" in outcome["content"]


@all_rows(
    ("to", "said"),
    [
        ("https://other.example/x", "redirects (302) to https://other.example/x, which was not asked"),
        ("//other.example/x", "to http://other.example/x, which was not asked"),
        ("http://169.254.169.254/latest", "to http://169.254.169.254/latest, which was not asked"),
        ("http://127.0.0.1:1/", "to http://127.0.0.1:1/, which was not asked"),
        ("file:///etc/passwd", "redirects to an invalid address"),
        ("http://a@b/", "redirects to an invalid address"),
        ("http://2130706433/", "redirects to an invalid address"),
        ("http://[::ffff:7f00:1]:1/", "to http://127.0.0.1:1/, which was not asked"),
    ],
)
def test_redirect_to_another_host_is_not_followed(tmp_path: Path, to: str, said: str) -> None:
    outcome, server = fetched(tmp_path, moved(to), answered(b"secret"))
    assert said in outcome["content"]
    assert len(server.requests) == 1


def test_a_name_that_leads_to_this_machine_is_not_followed(tmp_path: Path) -> None:
    named = host_patterns(("docs.example.org",))
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 is this machine.*Nothing was sent"):
        looked_up(web_address("http://localhost/"), named, Deadline(20.0, lambda: 0.0))
    assert looked_up(web_address("http://localhost/"), host_patterns(("localhost",)), Deadline(20.0, lambda: 0.0))


@all_rows(
    ("url", "host", "port", "target"),
    [
        ("https://Docs.Example.org", "docs.example.org", 443, "/"),
        ("HTTP://docs.example.org./a b".replace(" ", "%20"), "docs.example.org", 80, "/a%20b"),
        ("http://docs.example.org:8080?x=1#y", "docs.example.org", 8080, "/?x=1"),
        ("https://b\u00fccher.example/\u00fc?\u00e9", "xn--bcher-kva.example", 443, "/%C3%BC?%C3%A9"),
        ("http://[2001:DB8::7]:8080/", "2001:db8::7", 8080, "/"),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1", 80, "/"),
        ("http://10.0.0.1./", "10.0.0.1", 80, "/"),
        ("http://a.example/x@y", "a.example", 80, "/x@y"),
    ],
)
def test_addresses_are_read_in_one_way(url: str, host: str, port: int, target: str) -> None:
    found = web_address(url)
    assert (found.host, found.port, found.target) == (host, port, target)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/", "file:///etc/passwd", "//a.example/", "a.example", "", "http://", "http:///x",
        "http://0x7f.1/", "http://2130706433/", "http://017700000001/", "http://127.1/", "http://0177.0.0.1/",
        "http://1.2.3.4.5/", "http://256.1.1.1/", "http://0x7f000001/", "http://\uff11\uff12\uff17.1/",
        "http://user@a.example/", "http://user:pw@a.example/", "http://a.example@b.example/", "http://a.example\\@b/",
        "http://a.example:0/", "http://a.example:65536/", "http://a.example:080/", "http://a.example:/", "http://a:b:c/",
        "http://::1/", "http://[::1", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[127.0.0.1]/",
        "http://a b/", "http://a\tb/", "http://a.example/\r\nX: y", "http://a.example/\x00", "http://a..b/", "http://.a/",
        "http://a%2eb/", "http://-a.example/", "http://stra\u00dfe.example/", "http://a\u200d.example/",
        "http://" + "a" * 64 + ".example/", "http://a.example/" + "x" * 4_000,
    ],
)  # fmt: skip
def test_addresses_that_programs_read_in_different_ways_are_refused(url: str) -> None:
    arguments = json.dumps({"url": url})
    with pytest.raises(ToolError):
        ToolRegistry([WebFetchTool(environment={})]).prepare(ToolCall(id="", name="web_fetch", arguments=arguments))


def test_address_without_a_rule_receives_no_request(tmp_path: Path) -> None:
    with FaultServer([answered(b"x")]) as server:
        silent = 'version = 1\ntools.web_fetch = "auto"\n'
        urls = [
            f"http://{host}:{server.port}/"
            for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")
        ]
        found = outcomes(tmp_path, silent, *({"url": url} for url in urls))
        assert server.connections == 0
    assert [(one["status"], "private-address" in one["content"]) for one in found] == [("denied", True)] * len(urls)


def test_user_can_stop_a_request(tmp_path: Path) -> None:
    """As Ctrl-C does it: whatever the request waits for, it ends at once, and its connection with it."""
    main = threading.main_thread().ident
    assert main is not None
    with FaultServer([Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\n"), End.STALL))]) as server:

        def stop() -> None:
            while not server.requests:
                time.sleep(0.01)
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=stop, daemon=True).start()
        url = f"http://127.0.0.1:{server.port}/"
        (outcome,) = outcomes(tmp_path, rule(f"127.0.0.1:{server.port}"), {"url": url})
        assert server.hung_up.wait(20.0)
    assert outcome["status"] == "interrupted"


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl makes a certificate here")
def test_a_certificate_counts_by_the_name(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    words = [*made.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    trusted = ssl.create_default_context(cafile=str(certificate))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                        connection.recv(65_536)
                        connection.sendall(
                            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
                        )
                except ssl.SSLError:
                    continue  # a client that does not trust it
                except OSError:
                    return  # the test is over

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        named = host_patterns((f"127.0.0.1:{port}", f"localhost:{port}"))

        def get(host: str, trusted: ssl.SSLContext | None) -> bytes:
            address = web_address(f"https://{host}:{port}/")
            return fetched_from(address, named, Deadline(20.0, time.monotonic), wants=is_text, trusted=trusted).body

        assert get("127.0.0.1", trusted) == b"ok"
        with pytest.raises(ToolError, match="no valid certificate"):
            get("127.0.0.1", None)
        with pytest.raises(ToolError, match="no valid certificate"):
            get("localhost", trusted)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(20.0)
