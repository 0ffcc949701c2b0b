"""The MCP servers of a configuration, from the start of a session to its end, and their tools.

One thread runs an event loop for all servers, and loads the SDK when it starts. A server that fails is left out with a
note; it never ends the session.
"""

from __future__ import annotations

import threading
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import HarnessError, ToolError, UsageError
from harness.files.workspace import Workspace
from harness.gate.approval import Approver, deny_all
from harness.gate.beside import on_gates_thread
from harness.gate.tool import Tool
from harness.interrupt import Interrupted
from harness.limits import Limits
from harness.plugins.mcp.configured_server import ConfiguredServer, ServerReport
from harness.plugins.mcp.connected_tool import ConnectedTool, offer_problem
from harness.plugins.mcp.elicitation import ElicitAnswer, ElicitForm, ask_user, asked_fields
from harness.plugins.mcp.logins import LoginFile
from harness.plugins.mcp.pending_call import AwaitedCall, CallOutcome
from harness.plugins.mcp.pins import PinFile
from harness.plugins.mcp.server_declaration import ServerDeclaration, shown_command
from harness.plugins.mcp.server_walls import ServerStarter
from harness.plugins.mcp.started_server import StartedServer, started
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.plugins.mcp.tool_description import ToolDescription
from harness.process.capture import OutputFolder
from harness.process.temporary import TemporaryFolder
from harness.system import Bell

if TYPE_CHECKING:
    from harness.plugins.mcp.client.servers_at_work import ServersAtWork

INSTALL = "servers of MCP need a package that is not installed: pip install 'permission-harness[mcp]'"
MOST_OFFERED = 120
"""Maximum number of tools of all servers together. Some models accept at most 128 tools."""
CLOSE_SECONDS = 20.0
"""Seconds that the event loop gets to end, before `close` ends the remaining processes."""
STEP_SECONDS = 0.1


def check_installed() -> None:
    """Raise UsageError if the SDK is not installed. Does not import it."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:  # `mcp_types` exists since version 2
        raise UsageError(INSTALL)


def unlearned(secret: str) -> None:
    """Ignore a token. For uses that write nothing."""


def unrecorded(record: Mapping[str, JsonValue]) -> None:
    """Ignore the record of a server's question. For uses without a log."""


class McpServers:
    """All servers of a configuration."""

    def __init__(  # noqa: PLR0913 - the parts of it, each named where it is passed
        self,
        declarations: Sequence[ServerDeclaration],
        starter: ServerStarter,
        workspace: Workspace,
        *,
        pins: str,
        redact: Callable[[str], str],
        approver: Approver = deny_all,
        record: Callable[[Mapping[str, JsonValue]], None] = unrecorded,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        outputs: OutputFolder | None = None,
        stops: Callable[[], int] = lambda: 0,
        learn: Callable[[str], None] = unlearned,
    ) -> None:
        """Create the servers without starting them. `starter` starts each in its walls; `pins` is the folder of pins.

        `redact` masks secrets in servers' texts. `approver` answers the questions of servers, on the thread that
        waits for the call; with `deny_all`, servers cannot ask. `record` is called on that thread with each answered
        question. The complete text of a result that is cut is stored in `outputs`. For `stops` see AwaitedCall. `learn`
        receives the tokens of logins, so that they are masked. Raises UsageError if the SDK is not installed, or if a
        file of pins is invalid.
        """
        if declarations:
            check_installed()
        self._starter = starter
        self._workspace = workspace
        self._approver = approver
        self._record = record
        self._limits = limits
        self._outputs = outputs
        self._stops = stops
        self._learn = learn
        self._pins = pins
        self._servers = {declaration.name: _configured(declaration, pins, redact) for declaration in declarations}
        self._temporary = {name: TemporaryFolder() for name in self._servers}
        self._started: list[StartedServer] = []
        self._hurry = Bell()
        self._work: ServersAtWork | None = None
        self._is_open = threading.Event()
        """Set as soon as the loop can be reached, or has failed."""
        self._has_started = threading.Event()
        """Set as soon as all processes are started."""
        self._is_over = threading.Event()
        self._is_over.set()
        self._is_running = False
        """Whether the loop has begun."""
        self._is_closing = False
        self._lock = allocate_lock()
        self._offered: tuple[ToolDescription, ...] | None = ()
        self._notes: list[str] = []
        self._noted_keys: set[str] = set()

    def start(self) -> None:
        """Start all servers on another thread. Returns at once."""
        if self._servers:
            self._is_over.clear()
            start_new_thread(self._keep, ())
        else:
            self._is_open.set()

    def leave_out(self, name: str, reason: str) -> None:
        """Do not start a server. Call this before `start`."""
        self._servers[name].over(reason)

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` until each server is ready or has failed. Return whether that is so."""
        end = time.monotonic() + seconds
        return all(server.settled.wait(max(end - time.monotonic(), 0)) for server in self._servers.values())

    def tools(self) -> Sequence[Tool] | None:
        """Return all tools that may be used now. `None` if they are the same as at the last call. Does not wait."""
        tools_offered: list[tuple[ConfiguredServer, ToolDescription]] = []
        for server in self._servers.values():
            try:
                descriptions = server.catalog.offered()
            except UsageError as error:
                self._tell(server, str(error))
                continue
            for description in descriptions:
                if problem := server.unfit.get(description.name) or offer_problem(server.name, description):
                    self._tell(server, f"left out: {problem}")
                elif len(tools_offered) == MOST_OFFERED:
                    self._tell(
                        server, f"some of its tools are left out: {MOST_OFFERED} tools of servers are offered already"
                    )
                else:
                    tools_offered.append((server, description))
        offered = tuple(description for _, description in tools_offered)
        if offered == self._offered:
            return None
        self._offered = offered
        return [
            ConnectedTool(server, description, self, self._workspace, limits=self._limits, outputs=self._outputs)
            for server, description in tools_offered
        ]

    def notes(self) -> list[str]:
        """Return the new notes for people since the last call, safe to show."""
        for server in self._servers.values():
            self._notes += server.news()
        news, self._notes = self._notes, []
        return news

    def reports(self) -> tuple[ServerReport, ...]:
        """Return a report on each server. Raises UsageError if a file of pins is invalid."""
        return tuple(server.report() for server in self._servers.values())

    def call(self, server: str, tool: str, arguments: Mapping[str, JsonValue], seconds: float) -> CallOutcome:
        """Send a call, and wait for its end.

        An interrupt cancels it at the server. Raises ToolError if it was not sent.
        """
        self._is_open.wait()
        if self._work is None or self._is_closing:
            raise ToolError("The connections to the servers are closed, so the call was not sent.")
        ask = None if self._approver is deny_all else partial(self._ask, server)
        waiting = AwaitedCall(ask, self._stops)
        future = self._work.call(server, tool, arguments, seconds, waiting)
        try:
            return waiting.wait()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End all servers and all their processes. KeyboardInterrupt only makes this faster."""
        with self._lock:
            self._is_closing = True
        end = time.monotonic() + CLOSE_SECONDS
        while not self._is_through() and time.monotonic() < end:
            try:
                if self._work is not None:
                    self._work.stop()
                self._is_over.wait(STEP_SECONDS)
            except KeyboardInterrupt:
                self._hurry.ring()
        if not self._is_over.is_set():
            self._hurry.ring()
        for started_server in self._started:
            started_server.end()
        self._temporary.clear()  # each object removes its folder

    def _is_through(self) -> bool:
        """Return whether `close` need not wait: the loop has ended, or it has not begun and all processes are started."""
        return self._is_over.is_set() or (not self._is_running and self._has_started.is_set())

    # -- the thread of the loop

    def _keep(self) -> None:
        try:
            self._start_processes()
            if not self._is_closing:
                self._run_loop()
        except Exception as error:  # noqa: BLE001 - a failure ends the servers, not the session
            for server in self._servers.values():
                server.over(str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}")
        finally:
            for started_server in self._started:
                started_server.end()
            self._has_started.set()
            self._is_open.set()
            self._is_over.set()

    def _run_loop(self) -> None:
        from harness.plugins.mcp.client.servers_at_work import ServerLinks, keep_at_work

        with self._lock:
            self._is_running = not self._is_closing
        if self._is_running:
            asks = self._approver is not deny_all
            links = ServerLinks(
                headers=lambda server: self._starter.header_values(server.declaration),
                login=self._login_file,
                credential=lambda server: self._starter.credential(server.declaration),
                learn=self._learn,
                start=self._start,
            )
            keep_at_work(self._started, links, asks=asks, opened=self._opened)

    def _login_file(self, server: ConfiguredServer) -> LoginFile | None:
        declaration = server.declaration
        has_login = declaration.takes_login or bool(declaration.issuer)
        return LoginFile(self._pins, server.name, declaration.url) if has_login else None

    def _start(self, server: ConfiguredServer) -> StartedServer:
        """Start a server, in the loop's thread or another. Raises UsageError, also while all servers end."""
        if self._is_closing:
            raise UsageError("the session ends")
        started_server = started(server, self._starter, self._temporary[server.name], self._hurry.descriptor)
        self._started.append(started_server)
        return started_server

    def _start_processes(self) -> None:
        """Start the processes, before the SDK is loaded, so that both happen at the same time."""
        for server in self._servers.values():
            if self._is_closing:
                break
            if server.reason:
                continue
            for name in server.declaration.env:
                if not self._starter.has(name):
                    server.note(f"the variable {name}, which it is to get, is not set")
            try:
                self._start(server)
            except UsageError as error:
                server.over(str(error))
        self._has_started.set()

    def _opened(self, work: ServersAtWork) -> None:
        self._work = work
        self._is_open.set()
        if self._is_closing:
            work.stop()

    # -- questions and notes

    def _ask(self, server: str, form: ElicitForm) -> ElicitAnswer:
        try:
            answer = on_gates_thread(lambda: ask_user(server, form, self._approver))
        except Interrupted:  # the question was not shown
            raise KeyboardInterrupt from None
        self._record(asked_fields(server, form, answer))
        return answer

    def _tell(self, server: ConfiguredServer, text: str) -> None:
        key = f"{server.name} {text}"
        if key not in self._noted_keys:
            self._noted_keys.add(key)
            server.note(text)


def _configured(declaration: ServerDeclaration, pins: str, redact: Callable[[str], str]) -> ConfiguredServer:
    """Return the server of a declaration. Raises UsageError if its file of pins is invalid."""
    file = PinFile(pins, declaration.name)
    file.read()
    command = shown_command(declaration, redact)
    catalog = ToolCatalog(declaration.words, command, file, declaration.pinned, redact=redact)
    return ConfiguredServer(declaration, catalog, redact)
