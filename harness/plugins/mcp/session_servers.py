"""The MCP servers of one session. They start in parallel to it, are offered once they are ready, and end with it."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.gate.approval import Approver
from harness.gate.tool import Tool
from harness.log.action_log import ActionLog
from harness.loop.offered_tools import OutsideTools
from harness.plugins.mcp.elicitation import ElicitForm, asked_fields
from harness.plugins.mcp.mcp_servers import McpServers
from harness.plugins.mcp.pins import pins_folder
from harness.plugins.mcp.server_declaration import KEY, ServerDeclaration, shown_command
from harness.plugins.mcp.server_walls import ServerStarter, server_machine
from harness.plugins.mcp.start_question import MESSAGE, start_answer, start_question
from harness.process.capture import OutputFolder
from harness.session.session_tools import SessionTools
from harness.tools.command_walls import CommandWalls

FIRST_SECONDS = 600.0
"""Maximum seconds that the first model request waits for the servers. Their own time limits are shorter."""

LOOK_SECONDS = 0.1
"""Seconds between checks for a request to stop during that wait."""


class SessionServers:
    """The servers of a session. OfferedTools calls `news` before each model request."""

    def __init__(self, tools: SessionTools, log: ActionLog, approver: Approver) -> None:
        """Prepare the servers without starting them. `approver` answers their questions.

        Raises UsageError as McpServers does.
        """
        place, rules = tools.place, tools.rules
        outputs = place.workspace.outputs
        policy = rules.policy.guarding(log.path, *rules.checks.calls.programs)
        walls = CommandWalls(place.workspace, hide=(*place.state.guarded, log.path), machine=server_machine())
        declarations: tuple[ServerDeclaration, ...] = tuple(place.extensions.in_section(KEY).values())
        self._starter = ServerStarter(place.workspace, walls, policy, place.environment)
        self._unconfirmed = [declaration for declaration in declarations if declaration.asks]
        self._approver = approver
        self._redact = place.redactor.redact
        self._servers = McpServers(
            declarations,
            self._starter,
            place.workspace,
            pins=pins_folder(place.state),
            redact=place.redactor.redact,
            learn=place.redactor.learn,
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
        """Lock that is acquired by the first start, and never released."""

    def begin(self) -> None:
        """Start the servers, unless they are started already. Returns at once.

        Callers draw the prompt first, since a start at the same time would slow both. If the start of a server has to be
        confirmed, all start with the first `news`.
        """
        if not self._unconfirmed and self._start_lock.acquire(blocking=False):
            self._servers.start()

    def news(self) -> OutsideTools | None:
        """Return the present tools and new notes. `None` if neither has changed.

        The first call waits until all servers are ready or have failed. Raises KeyboardInterrupt if the user stops that
        wait.
        """
        if not self._waited:
            self._confirm_starts()
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

    def _confirm_starts(self) -> None:
        """Ask about each server of a client, and leave out those without a yes. Raises KeyboardInterrupt for a stop."""
        while self._unconfirmed:
            declaration = self._unconfirmed[0]
            way, held_by = shown_command(declaration, self._redact), self._starter.held_by(declaration)
            answer = start_answer(self._approver(*start_question(declaration, way, held_by)))
            fields = asked_fields(declaration.name, ElicitForm(message=MESSAGE, fields=()), answer)
            self._log.append("server_asked", fields, sync=True)
            if answer.action == "cancel":
                raise KeyboardInterrupt
            if answer.action != "accept":
                self._servers.leave_out(declaration.name, f"its start was not allowed ({answer.by})")
            del self._unconfirmed[0]

    def _record(self, fields: Mapping[str, JsonValue]) -> None:
        with self._interrupt.hold():
            self._log.append("server_asked", {"call": self._log.running_call, **fields}, sync=True)

    def _wait(self) -> None:
        """Wait at most FIRST_SECONDS for all servers. Raises KeyboardInterrupt on a request to stop, on any thread."""
        end = time.monotonic() + FIRST_SECONDS
        while not self._servers.wait(LOOK_SECONDS) and time.monotonic() < end:
            if self._interrupt.requested:
                raise KeyboardInterrupt

    def close(self) -> None:
        """End the servers and all their processes."""
        self._servers.close()
