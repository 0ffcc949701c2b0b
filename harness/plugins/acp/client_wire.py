"""The connection to the client: writes whole lines in order, and matches questions to the client with its answers.

INVARIANT: an answer counts only while its question is open. Unrequested, early and second answers are dropped.
"""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.process.json_rpc import RpcMessage
from harness.record import Record
from harness.safe_files import write_whole

MOST_WAITING_BYTES = 8 * 1024 * 1024
"""Number of unsent bytes at which writers wait for a client that does not read."""
UNKNOWN_METHOD, AUTH_REQUIRED, NO_SUCH_SESSION = -32601, -32000, -32002
"""Error codes of JSON-RPC 2.0 and of the Agent Client Protocol; see also process/json_rpc.py."""


class RefusedRequest(Exception):
    """Raised for a request of the client that gets an error as its answer."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ClientAnswer(Record):
    """Answer to a question to the client."""

    result: JsonValue = None
    problem: str = ""
    """Reason why there is no result. Empty if there is one."""
    withdrawn: bool = False
    """Whether harness withdrew the question."""


class OpenQuestion:
    """One question to the client, open until it is settled."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[ClientAnswer] = queue.SimpleQueue()

    def settle(self, answer: ClientAnswer) -> None:
        """Pass an answer to the waiting thread. Any thread may call this; the first answer counts."""
        self._answers.put(answer)

    def withdraw(self) -> None:
        """Let the waiting thread continue without an answer."""
        self.settle(ClientAnswer(withdrawn=True))

    def answer(self, seconds: float | None = None) -> ClientAnswer | None:
        """Wait for the answer, at most `seconds` (`None`: without a limit). Return `None` after the timeout."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None


class ClientWire:
    """Writes to the client on a separate thread, so that the reading thread never waits for the client."""

    def __init__(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        """`on_gone` is called on the writing thread when the client stops reading."""
        self._descriptor = descriptor
        self._on_gone = on_gone
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._is_over = False
        """Whether the connection is closed. Threads then no longer wait for room or for an answer."""
        self.is_gone = False
        """Whether the client stopped reading."""
        self._is_idle = True
        self._question_count = 0
        self._open: dict[str, OpenQuestion] = {}
        threading.Thread(target=self._write, name="harness-client", daemon=True).start()

    def tell(self, method: str, params: Mapping[str, JsonValue]) -> None:
        """Send a notification. Waits while more than MOST_WAITING_BYTES are unsent, so only session threads may call it."""
        line = _line({"method": method, "params": dict(params)})
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._bytes < MOST_WAITING_BYTES)
            self._put(line)

    def result(self, identity: str, result: Mapping[str, JsonValue]) -> None:
        """Answer a request; `identity` is its ID as JSON text."""
        self._at_once({"id": json.loads(identity), "result": dict(result)})

    def error(self, identity: str, refused: RefusedRequest) -> None:
        """Answer a request with an error. The ID is `null` for a request that could not be parsed."""
        fields: dict[str, JsonValue] = {"code": refused.code, "message": str(refused)}
        if refused.data is not None:
            fields["data"] = refused.data
        self._at_once({"id": json.loads(identity), "error": fields})

    def ask(self, method: str, params: Mapping[str, JsonValue]) -> OpenQuestion:
        """Send a question to the client with a unique ID."""
        question = OpenQuestion()
        with self._changed:
            if self._is_over:
                question.settle(_GONE)
                return question
            self._question_count += 1
            self._open[str(self._question_count)] = question
            self._put(_line({"id": self._question_count, "method": method, "params": dict(params)}))
        return question

    def take_answer(self, message: RpcMessage) -> None:
        """Settle the question that a response of the client answers."""
        if "error" in message.fields:
            error = message.fields["error"]
            error_text = error.get("message") if isinstance(error, dict) else None
            self.settle(message.id, ClientAnswer(problem=f"the client answered with an error: {error_text}"))
        else:
            self.settle(message.id, ClientAnswer(result=message.fields.get("result")))

    def settle(self, identity: str, answer: ClientAnswer) -> None:
        """Settle the question with this ID, if it is open."""
        with self._changed:
            question = self._open.pop(identity, None)
        if question is not None:
            question.settle(answer)

    def close(self) -> None:
        """Settle all questions, and end all waits for the client. May be called more than once."""
        with self._changed:
            questions = [*self._open.values()]
            self._open.clear()
            self._is_over = True
            self._changed.notify_all()
        for question in questions:
            question.settle(_GONE)

    def drain(self, seconds: float) -> None:
        """Wait until all lines are written, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_idle and not self._lines, seconds)

    def _at_once(self, fields: Mapping[str, JsonValue]) -> None:
        with self._changed:
            self._put(_line(fields))

    def _put(self, line: bytes) -> None:
        if self.is_gone:
            return
        self._lines.append(line)
        self._bytes += len(line)
        self._changed.notify_all()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._lines))
                self._is_idle = False
                line = self._lines.popleft()
            try:
                write_whole(self._descriptor, line)
            except OSError:
                with self._changed:
                    self.is_gone = self._is_idle = True
                    self._lines.clear()
                self.close()
                self._on_gone()
                return
            with self._changed:
                self._bytes -= len(line)
                self._changed.notify_all()


_GONE = ClientAnswer(problem="the client is gone")


def _line(fields: Mapping[str, JsonValue]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}, separators=(",", ":")).encode("ascii") + b"\n"
