"""A command that may reach some hosts only, run for real: through the proxy to a server of ours, and past it to nothing."""

from __future__ import annotations

import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from places import ROOT, SUPPORT, shell_word
from process_scene import wait_until
from rows import all_rows

from harness.actions import Effects, Enforcement
from harness.files.workspace import Workspace
from harness.gate.tool import ToolOutput
from harness.messages import ResultStatus
from harness.sandbox import probe
from harness.sandbox.machine import enforces, hides_where_it_may_write
from harness.tools.command_network import why_no_hosts
from harness.tools.command_runner import CommandRunner, CommandStart
from harness.tools.command_walls import CommandWalls

pytestmark = pytest.mark.skipif(
    not enforces(probe()) or bool(why_no_hosts()), reason="this machine gives commands no network of their own"
)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = f"hello {self.path} for {self.headers['Host']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on this machine's loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        serving.shutdown()


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while block := self.request.recv(65536):
            self.request.sendall(block)
        self.request.sendall(b"the end")


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets, and says so when that ends."""
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        serving.shutdown()


def run(
    base: Path, command: str, *hosts: str, seconds: float = 30.0, hide: tuple[str, ...] = (), unasked: bool = False
) -> ToolOutput:
    """Run a command that may write its workspace, and reach these hosts."""
    (base / "work").mkdir(exist_ok=True)
    workspace = Workspace(str(base / "work"), str(base))
    effects = Effects(
        read=None,
        write=None,
        granted=(".",),
        network=False,
        hosts=hosts,
        hide=hide,
        unasked=unasked,
        enforcement=Enforcement.REQUIRED,
    )
    start = CommandStart(
        noun="the command",
        argv=("bash", "--noprofile", "--norc", "-c", "--", command),
        cwd=workspace.root,
        seconds=seconds,
    )
    return CommandRunner(workspace).run(start, effects)


def connections(output: ToolOutput) -> list[Any]:
    """Return the connections that a result tells of."""
    listed = output.extra["connections"]
    assert isinstance(listed, list)
    return listed


MODULES = os.pathsep.join((ROOT, SUPPORT, os.path.dirname(os.path.abspath(__file__))))
"""Where a program of ours finds the harness and this module."""
PYTHON = f"{shell_word(sys.executable)} -I -c"


def python(code: str) -> str:
    return f"{PYTHON} {code!r}" if "'" not in code else f'{PYTHON} "{code}"'


def test_python_and_curl_reach_a_listed_host_through_the_proxy(tmp_path: Path, server: int) -> None:
    url = f"http://127.0.0.1:{server}/x?y=1"
    done = run(tmp_path, python(f"import urllib.request as u; print(u.urlopen('{url}').read())"), f"127.0.0.1:{server}")
    assert f"hello /x?y=1 for 127.0.0.1:{server}" in done.content
    assert done.status is ResultStatus.OK
    (one,) = connections(done)
    assert (one["host"], one["port"], one["address"], one["allowed"]) == ("127.0.0.1", server, "127.0.0.1", True)
    assert (one["times"], "why_not" in one) == (1, False)
    assert one["sent"] > 0
    assert one["received"] > 0
    if os.path.exists("/usr/bin/curl"):
        done = run(tmp_path, f"curl -sS {url}; curl -sSp {url}", f"localhost:{server}")
        assert done.content.count("hello /x?y=1") == 2
        assert [each["times"] for each in connections(done)] == [2]


def test_unlisted_host_is_refused_with_a_report(tmp_path: Path, server: int) -> None:
    url = f"http://127.0.0.1:{server}/moved"
    done = run(
        tmp_path,
        python(f"import urllib.request as u; print(u.urlopen('{url}').read())"),
        f"127.0.0.1:{server}",
        "example.org",
    )
    assert done.status is ResultStatus.FAILED
    assert "169.254.169.254:80 is not among the hosts it may reach" in done.content
    refused, allowed = sorted(connections(done), key=lambda each: int(each["port"]))
    assert [(each["allowed"], "why_not" in each) for each in (refused, allowed)] == [(False, True), (True, False)]
    assert "is not among the hosts" in refused["why_not"]
    assert done.extra["connection_count"] == 2


@all_rows(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', {port}), 3)",
        "import socket; socket.create_connection(('192.0.2.7', 80), 3)",
        "import socket; socket.create_connection(('2001:db8::7', 80), 3)",
        "import socket; socket.getaddrinfo('example.org', 80)",
        "import socket; socket.socket(2, 2).sendto(b'x', ('192.0.2.7', 53))",
    ],
)
def test_network_is_reachable_only_through_the_proxy(tmp_path: Path, server: int, code: str) -> None:
    done = run(tmp_path, python(code.format(port=server)), f"127.0.0.1:{server}")
    assert done.status is ResultStatus.FAILED
    assert "network only through the proxy to" in done.content
    assert "a program that does not know http_proxy has no network" in done.content
    assert done.extra == {}


def test_the_network_of_a_command_is_its_own(tmp_path: Path) -> None:
    look = "import os; print(os.readlink('/proc/self/ns/net'))"
    done = run(tmp_path, python(look) + "; cat /proc/net/dev | wc -l", "example.org")
    assert os.readlink("/proc/self/ns/net") not in done.content
    assert "\n3\n" in done.content  # two lines of heads, and loopback
    done = run(tmp_path, "nsenter -n -t 1 true", "example.org")
    assert done.status is ResultStatus.FAILED


def test_half_closed_connection_continues_in_the_other_direction(tmp_path: Path, echo: int) -> None:
    code = f"""
import socket
wire = socket.create_connection(('127.0.0.1', 3128))
wire.sendall(b'CONNECT 127.0.0.1:{echo} HTTP/1.1' + bytes([13, 10, 13, 10]))
head = wire.recv(1000)
assert b' 200 ' in head, head
wire.sendall(b'x' * 100000)
wire.shutdown(socket.SHUT_WR)
got = b''
while block := wire.recv(65536): got += block
print(len(got), got[-7:])
"""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/it.py").write_text(code)
    done = run(tmp_path, f"{shell_word(sys.executable)} it.py", f"127.0.0.1:{echo}")
    assert "100007 b'the end'" in done.content, done.content
    (one,) = connections(done)
    assert (one["sent"], one["received"]) == (100_000, 100_007)


def test_command_with_hosts_reaches_no_unix_socket(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "work/s"))
        listening.listen()
        done = run(tmp_path, python("import socket; socket.socket(socket.AF_UNIX).connect('s')"), "example.org")
    is_refused = "PermissionError" in done.content or "ConnectionRefusedError" in done.content
    assert (done.status, is_refused) == (ResultStatus.FAILED, True)


INNER = """
import sys
from pathlib import Path
from typing import Any
from test_command_network import python, run

done = run(Path.cwd(), python("import socket; socket.create_connection(('127.0.0.1', 1), 3)"), "example.org")
print(done.content, done.extra.get("connection_count", 0))
print(run(Path.cwd(), "env", "example.org").content)
"""


def test_missing_namespace_disables_the_network_with_a_notice(tmp_path: Path) -> None:
    """Inside the walls of another command, which lets nobody make namespaces."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/inner.py").write_text(INNER)
    done = run(
        tmp_path, f"PYTHONPATH={shell_word(MODULES)} {shell_word(sys.executable)} inner.py", "example.org", seconds=60
    )
    assert "[no network: it may be reached by host only, and this machine gives commands no network" in done.content
    assert "EPERM at unshare" in done.content
    assert "3128" not in done.content  # nothing speaks of a proxy that is not there
    assert done.status is ResultStatus.OK


KILLED = """
from pathlib import Path
from typing import Any
from test_command_network import run

run(Path.cwd(), "readlink /proc/self/ns/net > begun; sleep 1000 & sleep 1000", "example.org", seconds=600)
"""


def test_killed_harness_leaves_no_processes(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": MODULES})
    begun = tmp_path / "work/begun"
    try:
        while not (begun.exists() and begun.read_text().strip()):
            assert process.poll() is None
            time.sleep(0.01)
        namespace = begun.read_text().strip()
        assert namespace != os.readlink("/proc/self/ns/net")
    finally:
        process.kill()
        process.wait()
    assert wait_until(lambda: namespace not in set(_namespaces()))


def _namespaces() -> Iterator[str]:
    """Yield the network of every process."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield os.readlink(f"/proc/{name}/ns/net")
        except OSError:
            pass


def test_it_holds_where_something_is_hidden_by_bubblewrap_too(tmp_path: Path, server: int) -> None:
    if not hides_where_it_may_write(probe()):
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.env").write_text("KEY=1")
    url = f"http://127.0.0.1:{server}/x"
    fetch = python(f"import urllib.request as u; print(u.urlopen('{url}').read())")
    past = python(f"import socket; socket.create_connection(('127.0.0.1', {server}), 3)")
    done = run(tmp_path, f"cat .env; {fetch}; {past}", f"127.0.0.1:{server}", hide=(".env",))
    assert "hello /x" in done.content
    assert "KEY" not in done.content
    assert "refused" in done.content
    assert done.extra["connection_count"] == 1


def test_unasked_command_gets_the_proxy_and_keeps_its_git_settings(tmp_path: Path) -> None:
    done = run(tmp_path, "env", "example.org", "localhost:8080", unasked=True)
    assert "https_proxy=http://127.0.0.1:3128" in done.content
    assert "no_proxy=" in done.content.splitlines()
    assert "GIT_ALLOW_PROTOCOL" not in done.content
    assert "no_proxy=localhost,127.0.0.1,::1" in run(tmp_path, "env", "example.org").content.splitlines()


def test_walls_that_leave_the_network_open_are_for_its_own_network_alone(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path), str(tmp_path))
    effects = Effects(read=None, write=None, granted=(".",), network=False, hosts=("example.org",), unasked=False)
    walls = CommandWalls(workspace)
    for by_host in (False, True):
        confinement = walls.confinement(effects, lambda: str(tmp_path), by_host=by_host)
        assert confinement is not None
        with confinement:
            assert confinement.walls.own_network is by_host
            if by_host:
                with pytest.raises(RuntimeError, match="keeper"):
                    confinement.enter()
