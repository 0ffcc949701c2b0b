"""The MCP servers of one session: started beside it, offered when they are there, ended with it."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.gate.approval import Approver
from harness.gate.tool import Tool
from harness.log.action_log import ActionLog
from harness.loop.offered_tools import OutsideTools
from harness.plugins.mcp.mcp_servers import McpServers
from harness.plugins.mcp.pins import pins_folder
from harness.plugins.mcp.server_declaration import KEY
from harness.plugins.mcp.server_walls import ServerStarter
from harness.process.capture import OutputFolder
from harness.session.session_tools import SessionTools
from harness.tools.command_walls import CommandWalls

FIRST_SECONDS = 600.0
"""Seconds that the first request waits for the servers; starting and listing have shorter bounds of their own."""

LOOK_SECONDS = 0.1
"""Seconds between that wait's checks for a request to stop."""


class SessionServers:
    """See OfferedTools, which asks for `news` before each request."""

    def __init__(self, tools: SessionTools, log: ActionLog, approver: Approver) -> None:
        """Prepare the servers without starting them. `approver` answers their questions. Raises UsageError as
        McpServers does.
        """
        place, rules = tools.place, tools.rules
        outputs = place.workspace.outputs
        policy = rules.policy.guarding(log.path, *rules.checks.calls.programs)
        walls = CommandWalls(place.workspace, hide=(*place.state.guarded, log.path))
        self._servers = McpServers(
            tuple(place.extensions.in_section(KEY).values()),
            ServerStarter(place.workspace, walls, policy, place.environment),
            place.workspace,
            pins=pins_folder(place.state),
            redact=place.redactor.redact,
            approver=approver,
            record=self._record,
            outputs=None if outputs is None else OutputFolder(outputs),
            stops=lambda: place.interrupt.stops,
        )
        self._log = log
        self._tools: Sequence[Tool] = ()
        self._interrupt = place.interrupt
        self._tell = tools.front.tell
        self._waited = False
        self._start_lock = allocate_lock()
        """Held since they were started."""

    def begin(self) -> None:
        """Start the servers, unless they are started already, and return at once. Starting them at the same time as
        the prompt would slow both, so the prompt is drawn first.
        """
        if self._start_lock.acquire(blocking=False):
            self._servers.start()

    def news(self) -> OutsideTools | None:
        """Return the tools that are there now, where any has come or gone; the first time when all servers are there.

        Raises KeyboardInterrupt where the person stops that wait.
        """
        if not self._waited:
            self.begin()
            with self._interrupt:
                if not self._servers.wait(0):
                    self._tell("waiting for MCP servers to start")
                    self._wait()
            self._waited = True
        tools, notes = self._servers.tools(), self._servers.notes()
        if tools is None and not notes:
            return None
        self._tools = self._tools if tools is None else tools
        return OutsideTools(tools=self._tools, notes=notes)

    def _record(self, fields: Mapping[str, JsonValue]) -> None:
        with self._interrupt.hold():
            self._log.append("server_asked", {"call": self._log.running_call, **fields}, sync=True)

    def _wait(self) -> None:
        """Wait for all of them, at most FIRST_SECONDS. Raises KeyboardInterrupt, also in a thread that no signal interrupts."""
        end = time.monotonic() + FIRST_SECONDS
        while not self._servers.wait(LOOK_SECONDS) and time.monotonic() < end:
            if self._interrupt.requested:
                raise KeyboardInterrupt

    def close(self) -> None:
        """End them, with all that they have started."""
        self._servers.close()
