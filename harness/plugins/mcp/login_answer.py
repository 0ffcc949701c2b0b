"""The answer to a login, which the browser brings to a port of this machine (RFC 8252, section 7.3)."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit

PATH = "/callback"
MOST_CHARACTERS = 20_000
"""Maximum length of the answer's address."""
IDLE_SECONDS = 10.0
"""Seconds that a connection to the port may be silent."""
_DONE = b"<!doctype html><title>harness</title><p>harness has the answer. You can close this page."
_OTHER = b"<!doctype html><title>harness</title><p>This is no answer to the login that harness waits for."


class LoginAnswer:
    """One answer. Others than that with the state of the login are ignored, since any page may call the port."""

    def __init__(self) -> None:
        """Open a port of the loopback interface. Raises OSError."""
        self._state = ""
        self._fields: dict[str, str] = {}
        self._has_come = threading.Event()
        answer = self

        class Visit(BaseHTTPRequestHandler):
            timeout = IDLE_SECONDS

            def do_GET(self) -> None:
                is_answer = len(self.path) <= MOST_CHARACTERS and answer.take(self.path)
                self.send_response(200 if is_answer else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(_DONE if is_answer else _OTHER)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Write nothing: the address has the code."""

        self._server = HTTPServer(("127.0.0.1", 0), Visit)
        self._thread = threading.Thread(target=self._server.serve_forever, name="harness-login", daemon=True)

    @property
    def address(self) -> str:
        """The address to which the authorization server sends the browser."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"

    def expect(self, state: str) -> None:
        """Accept one answer with this state from now on."""
        self._has_come.clear()
        self._state = state

    def take(self, target: str) -> bool:
        """Take the target of a request, if it is the first answer. Return whether it is."""
        parts = urlsplit(target)
        fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != PATH or not self._state or fields.get("state") != self._state or self._has_come.is_set():
            return False
        self._fields = fields
        self._has_come.set()
        return True

    def wait(self, seconds: float) -> dict[str, str] | None:
        """Wait for the answer, and return its fields. `None` if none comes in time."""
        return self._fields if self._has_come.wait(seconds) else None

    def __enter__(self) -> Self:
        """Serve the port."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the port."""
        self._has_come.set()  # so that no thread waits on
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
