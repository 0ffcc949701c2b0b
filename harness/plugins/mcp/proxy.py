"""The proxy between an MCP client and one server, over their standard streams. The gate judges each call of a tool.

Four kinds of threads run, so that a slow client or server does not block the others:
  - one reads the client, and one reads the server (traffic.py decides the path of each line);
  - several judge the calls (judging.py);
  - the main thread waits for the end: of the client or the server, by a signal, or after a fault.

The two eras of the protocol are passed on unchanged. The proxy's own messages differ in two ways: in the later era, a
refusal is marked as complete, and the proxy's request for the list of tools contains the client's identification.
"""

from __future__ import annotations

import os
import platform
import select
import threading
from _thread import start_new_thread
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from harness import __version__
from harness.actions import JsonValue
from harness.files.workspace import Workspace
from harness.gate.approval import Approver
from harness.gate.call_checks import CallChecks
from harness.gate.records import policy_fields
from harness.log.action_log import ActionLog
from harness.messages import StopReason
from harness.plugins.mcp.judging import CallJudge, fault_words
from harness.plugins.mcp.server_calls import GateTurn, ServerCall
from harness.plugins.mcp.server_tools import UNCONFINED
from harness.plugins.mcp.sides import Sides
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.plugins.mcp.traffic import Traffic
from harness.policy.policy import Policy
from harness.process.json_rpc import LineSplitter, RpcCode, error_line
from harness.process.piped_process import PipedProcess
from harness.process.start import Launch
from harness.record import Record
from harness.system import Bell
from harness.text.visible import visible_line

BLOCK_BYTES = 1 << 16
MOST_NOTES = 200
"""Maximum number of log records about dropped lines, so that a faulty peer cannot fill the log."""
REAP_MILLISECONDS = 5_000
"""Milliseconds between reapings of ended processes, including orphans of the server."""
SETTLE_SECONDS = 2.0
"""Seconds that each step of the shutdown waits for the client, the server or calls."""


class ProxyStop(Enum):
    """The cause of the proxy's end."""

    CLIENT = "the client closed its side"
    SERVER = "the server ended"
    SIGNAL = "a signal"
    FAULT = "a fault"


class ProxyEnd(Record):
    """The end of a proxy."""

    stop: ProxyStop
    server_code: int | None = None
    """Exit code of a server that ended by itself."""
    fault: Exception | None = None


def begin_session(log: ActionLog, policy: Policy, fields: Mapping[str, JsonValue]) -> None:
    """Record the start of a session. Called before the server is started. Raises LogError."""
    log.begin_session()
    log.append(
        "session_started",
        {
            **fields,
            "harness": __version__,
            "python": platform.python_version(),
            **policy_fields(policy),
            "confinement": UNCONFINED,
        },
        sync=True,
    )


def end_session(log: ActionLog, stop: StopReason, detail: str, exit_code: int) -> None:
    """Record the end of a session. Raises LogError."""
    counts: JsonValue = dict(log.counts)
    fields = {"stop": stop.value, "detail": detail, "counts": counts, "exit_code": exit_code}
    log.append("session_ended", fields, sync=True)


def as_its_client_would(words: Sequence[str], environment: Mapping[str, str]) -> Launch:
    """Return the launch of a server in the way of a client: same environment, current folder, no walls."""
    return Launch(argv=words, executable=words[0], cwd=".", environment=environment)


class McpProxy:
    """One client, one server, and the gate between them."""

    def __init__(
        self,
        process: PipedProcess,
        catalog: ToolCatalog,
        *,
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        workspace: Workspace,
        checks: CallChecks,
        client: tuple[int, int] = (0, 1),
    ) -> None:
        """Create the proxy for a started server.

        `client` has the file descriptors to read from and write to the client.

        Arguments that may be paths are resolved in `workspace`.
        """
        self._process = process
        self._server_name = catalog.server
        self._log = log
        self._turn = GateTurn()
        self._source = client[0]
        self._sides = Sides(client[1], process.input)
        self._judge = CallJudge(
            self._sides,
            catalog,
            policy=policy,
            approver=approver,
            log=log,
            workspace=workspace,
            turn=self._turn,
            note=self._note,
            fail=self._fail,
            checks=checks,
        )
        self._traffic = Traffic(self._sides, catalog, self._judge, self._note)
        self._notes = 0
        self._wake, self._hurry = Bell(), Bell()
        self._stop: ProxyStop | None = None
        self._fault: Exception | None = None
        self._server_read = threading.Event()
        """Set as soon as the server's output was read to its end."""

    def run(self) -> ProxyEnd:
        """Pass lines on and judge calls until one side ends or `stop` is called. Call it on the main thread."""
        start_new_thread(self._guarded, (self._read_client,))
        start_new_thread(self._guarded, (self._read_server,))
        waiting = select.poll()
        waiting.register(self._wake.descriptor, select.POLLIN)
        waiting.register(self._process.exit, select.POLLIN)
        while self._stop is None:
            if self._process.exit in {descriptor for descriptor, _ in waiting.poll(REAP_MILLISECONDS)}:
                self.stop(ProxyStop.SERVER)
            self._process.reap()
        stop, server = self._stop, self._sides.server
        self._judge.close(stop.value)
        if is_free := server.lock.acquire(timeout=SETTLE_SECONDS):
            server.is_gone = True
            self._process.close_input()
            server.lock.release()
        at_once = not is_free or stop in (ProxyStop.SIGNAL, ProxyStop.FAULT)
        code = self._process.end(at_once=at_once, hurry=self._hurry.descriptor)
        if self._server_read.wait(SETTLE_SECONDS):
            self._process.close()
        _within(SETTLE_SECONDS, self._end_requests)
        self._judge.await_ends(SETTLE_SECONDS)
        return ProxyEnd(stop=stop, server_code=code, fault=self._fault)

    def end(self, proxy_end: ProxyEnd, exit_code: int) -> None:
        """Stop judging, answer the remaining calls with errors, and record the end. Raises LogError."""
        self._judge.end()
        _within(SETTLE_SECONDS, self._judge.answer_rest)
        if proxy_end.fault is not None:
            self._log.append("error", {"where": "gate", "message": fault_words(proxy_end.fault)})
        reasons = {ProxyStop.SIGNAL: StopReason.INTERRUPTED, ProxyStop.FAULT: StopReason.GATE_ERROR}
        stop = StopReason.BLOCKED if self._judge.latch else reasons.get(proxy_end.stop, StopReason.COMPLETED)
        end_session(self._log, stop, proxy_end.stop.value, exit_code)

    def stop(self, reason: ProxyStop = ProxyStop.SIGNAL) -> None:
        """Make `run` end. The first reason is kept. May be called by a signal handler, and on any thread."""
        if self._stop is None:
            self._stop = reason
        self._wake.ring()
        if reason is ProxyStop.SIGNAL:
            self._hurry.ring()

    def _fail(self, fault: Exception) -> None:
        if self._fault is None:
            self._fault = fault
        self.stop(ProxyStop.FAULT)

    def _note(self, text: str) -> None:
        """Record a dropped line. Does not wait for the turn, so that it never blocks the reading of a side."""
        self._notes += 1
        if self._notes > MOST_NOTES:
            return
        last = "; what follows of this kind is not recorded" if self._notes == MOST_NOTES else ""
        fields: dict[str, JsonValue] = {"where": "mcp", "message": f"{visible_line(text, 2_000)}{last}"}
        self._turn.soon(lambda: self._record(fields))

    def _record(self, fields: Mapping[str, JsonValue]) -> None:
        self._guarded(lambda: self._log.append("error", fields))

    def _end_requests(self) -> None:
        """Answer the requests that still wait for the server with an error."""
        reason = f"The server {self._server_name} ended before it answered"
        for identity, call in self._sides.of_client.pop_all():
            if isinstance(call, ServerCall):
                call.fail(reason)
            else:
                self._sides.client.write(error_line(identity, RpcCode.INTERNAL, f"{reason}."))

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the proxy must end if one of its threads fails
            self._fail(error)

    def _read_client(self) -> None:
        self._read(self._source, "client", self._traffic.from_client)
        self.stop(ProxyStop.CLIENT)

    def _read_server(self) -> None:
        self._read(self._process.output, "server", self._traffic.from_server)
        self._server_read.set()
        self.stop(ProxyStop.SERVER)

    def _read(self, descriptor: int, whose: str, take: Callable[[bytes], None]) -> None:
        """Call `take` with each line until the end of the input. Raises LogError."""
        lines = LineSplitter()
        while block := _block_from(descriptor):
            for line in lines.add(block):
                take(line)
            if self._sides.client.is_gone:
                self.stop(ProxyStop.CLIENT)
            elif self._sides.server.is_gone:
                self.stop(ProxyStop.SERVER)
        if lines.rest.strip():
            self._note(f"the last line of the {whose}'s has no end: dropped")


def _within(seconds: float, work: Callable[[], None]) -> None:
    """Run `work` on a thread, and wait at most `seconds` for it: it may block on a client that no longer reads."""
    done = threading.Event()

    def do() -> None:
        work()
        done.set()

    start_new_thread(do, ())
    done.wait(seconds)


def _block_from(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, BLOCK_BYTES)
    except OSError:
        return b""
