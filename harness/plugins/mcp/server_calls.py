"""A call in progress to a server's tool, and the turn in which calls are judged."""

from __future__ import annotations

import json
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.gate.arguments import texts_in
from harness.plugins.mcp.tool_description import ToolDescription
from harness.process.json_rpc import RpcMessage, double_key
from harness.text.visible import visible_line

JUDGED = ("name", "arguments")
"""The params of a call that determine its effect."""


class GateTurn:
    """The turn: a lock for the gate and the log. Its holder releases it while it waits."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._due: deque[Callable[[], None]] = deque()

    def take(self) -> None:
        """Wait for the turn, and acquire it."""
        self._lock.acquire()

    def give(self) -> None:
        """Release the turn, then do the queued work."""
        self._lock.release()
        self._do_what_is_due()

    def keep(self) -> None:
        """Acquire the turn, do the queued work, and never release the turn."""
        self._lock.acquire()
        while self._due:
            self._due.popleft()()

    def soon(self, work: Callable[[], None]) -> None:
        """Do `work` in the turn without waiting: now, or when the holder releases the turn. `work` must not raise."""
        self._due.append(work)
        self._do_what_is_due()

    def _do_what_is_due(self) -> None:
        """Do the queued work if the turn is free.

        INVARIANT: work queued during another holder's turn is not lost, since each holder checks the queue after its
        turn.
        """
        while self._due and self._lock.acquire(blocking=False):
            try:
                if self._due:
                    self._due.popleft()()
            finally:
                self._lock.release()

    @contextmanager
    def stepped_out(self) -> Iterator[None]:
        """Release the turn during the block, then acquire it again."""
        self.give()
        try:
            yield
        finally:
            self.take()


class ServerCall:
    """One call of a tool: from the client through the gate to the server, and back with the answer."""

    def __init__(self, message: RpcMessage, tool: str, arguments: str) -> None:
        """See `server_call`."""
        self.message = message
        self.id = message.id
        self.tool = tool
        self.arguments = arguments
        """Arguments as JSON text."""
        self.is_sent = False
        self.is_cancelled = False
        self.answer: RpcMessage | None = None
        self.lost = ""
        """Reason for the missing answer. Empty otherwise."""
        self._lock = allocate_lock()
        self._over = threading.Event()

    def take_answer(self, answer: RpcMessage) -> None:
        """Store the server's answer, unless the call has ended."""
        with self._lock:
            if not self._over.is_set():
                self.answer = answer
        self._over.set()

    def fail(self, reason: str) -> None:
        """End the call without an answer, for `reason`."""
        with self._lock:
            if not self._over.is_set():
                self.lost = reason
        self._over.set()

    def cancel(self) -> None:
        """Mark the call as cancelled by the client."""
        with self._lock:
            if not self._over.is_set():
                self.is_cancelled = True
        self._over.set()

    def wait(self) -> None:
        """Wait until the call is answered, failed or cancelled."""
        self._over.wait()


def server_call(message: RpcMessage) -> ServerCall | str:
    """Return the call in a `tools/call` message, or a description of its error."""
    params = message.params
    if key := double_key(params, JUDGED):
        return f"a reader who minds no case would take {json.dumps(key[:50])} in its params for another key"
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return "it names no tool"
    if not ToolDescription.is_name(name):
        return f"no tool can be named {visible_line(json.dumps(name), 100)}"
    if not isinstance(arguments, dict | None):
        return "its arguments are no object"
    if any("\0" in text for text in texts_in(arguments)):
        return "its arguments hold a NUL character"
    text = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return "its arguments hold a lone surrogate"
    return ServerCall(message, name, text)
