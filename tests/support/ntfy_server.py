"""The endpoints of ntfy that the example needs, as documented: publish as JSON or text, and poll a topic as JSON lines."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Message = dict[str, Any]


class NtfyServer:
    """One server. Each token may do some of `read` and `write`, at topics with an ending."""

    def __init__(self, access: dict[str, tuple[str, str]], *, asked: Callable[[Message, NtfyServer], None]) -> None:
        """`access` is by token: `read`, `write` or both, and the ending of the topics' names.

        `asked` is the person with the phone: it is called with each message that has buttons.
        """
        self._access = access
        self._asked = asked
        self.topics: dict[str, list[Message]] = {}
        self.refused: list[str] = []
        server = self

        class Visit(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                topic = urlsplit(self.path).path.strip("/")
                message = {"message": text, "topic": topic} if topic else json.loads(text)
                if server.may(self.headers.get("Authorization", ""), "write", message["topic"]):
                    server.publish(message)
                    self._answer(200, [message])
                else:
                    self._answer(403, [])

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                topic, _, form = parts.path.strip("/").partition("/")
                query = parse_qs(parts.query)
                if form != "json" or query.get("poll") != ["1"]:
                    self._answer(404, [])
                elif not server.may(self.headers.get("Authorization", ""), "read", topic):
                    self._answer(403, [])
                else:
                    since = float(query["since"][0])
                    self._answer(200, [one for one in server.topics.get(topic, []) if one["time"] >= since])

            def _answer(self, status: int, messages: list[Message]) -> None:
                data = "".join(f"{json.dumps(message)}\n" for message in messages).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Visit)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def may(self, authorization: str, verb: str, topic: str) -> bool:
        """Return whether a token may read or write a topic; note it if not."""
        verbs, ending = self._access.get(authorization.removeprefix("Bearer "), ("", ""))
        if verb not in verbs or not topic.endswith(ending):
            self.refused.append(f"{verb} {topic}")
            return False
        return True

    def publish(self, message: Message) -> None:
        """Keep a message, and show it on the phone if it has buttons."""
        entry = {"id": str(time.monotonic_ns()), "time": int(time.time()), "event": "message", **message}
        self.topics.setdefault(message["topic"], []).append(entry)
        if message.get("actions"):
            self._asked(entry, self)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def press(message: Message, label: str) -> None:
    """Press a button, as the app does."""
    (action,) = [action for action in message["actions"] if action["label"] == label]
    assert action["action"] == "http"
    request = urllib.request.Request(action["url"], action["body"].encode(), action.get("headers", {}), method="POST")
    urllib.request.urlopen(request, timeout=60).close()
