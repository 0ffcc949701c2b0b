"""`git http-backend` on loopback (git-http-backend(1)), which counts fetches, asks for a password, or stops in the middle."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class GitServer(ThreadingHTTPServer):
    """Serves the repositories below one folder."""

    daemon_threads = True

    def __init__(self, root: Path, *, login: str = "", old: bool = False) -> None:
        """Take the folder, the `NAME:PASSWORD` that is asked for, and whether only what branches and tags name is given."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.login = login
        self.old = old
        self.fetches = 0
        """How often objects were asked for."""
        self.halts = False
        """Whether what is sent stops in the middle, until `go_on` is set."""
        self.halted = threading.Event()
        self.go_on = threading.Event()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _answer(self, body: bytes) -> None:
        wanted = f"Basic {base64.b64encode(self.server.login.encode()).decode()}"
        if self.server.login and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        sends = self.command == "POST" and b"want " in _plain(body, self.headers.get("Content-Encoding", ""))
        self.server.fetches += sends
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": "" if self.server.old else self.headers.get("Git-Protocol", ""),
            },
        ).stdout
        head, _, content = done.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().splitlines()]
        self.send_response(next((int(value.split()[0]) for key, value in lines if key == "Status"), 200))
        for key, value in lines:
            if key != "Status":
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if sends and self.server.halts:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.server.halted.set()
            self.server.go_on.wait()
            return
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            pass  # whoever asked was killed


def _plain(body: bytes, encoding: str) -> bytes:
    import gzip

    return gzip.decompress(body) if encoding == "gzip" else body


@contextmanager
def git_server(root: Path, *, login: str = "", old: bool = False) -> Iterator[GitServer]:
    """Serve until the block ends."""
    with GitServer(root, login=login, old=old) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()
