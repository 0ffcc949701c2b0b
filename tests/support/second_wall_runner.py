"""Runs attempts one after the other as the bash tool runs a command, inside the namespace of second_wall.py only."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from process_scene import PATIENT
from second_wall_attempts import ENDLESS, Attempt, Kind
from second_wall_files import HIDDEN_CONTENT, HOME, WORKSPACE, build
from second_wall_scene import Scene

from harness.actions import Effects, Enforcement, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.tool import ToolOutput
from harness.messages import ToolCall
from harness.process.temporary import TemporaryFolder
from harness.record import replace
from harness.sandbox import probe, why_no_namespaces
from harness.tools.bash import BashTool
from harness.tools.command_runner import CommandRunner
from harness.tools.command_walls import CommandWalls

HIDDEN = ("~/.ssh", "~/.netrc")
HIDDEN_FROM_READERS = (*HIDDEN, ".env", "config/.env.local", "server.pem", "secrets/")

_CONFINED = Effects(read=(), write=(), network=False, unasked=True, enforcement=Enforcement.REQUIRED)
EFFECTS = {
    "control": Effects(read=None, write=None, network=True, unasked=False, enforcement=Enforcement.OFF),
    "reader": replace(_CONFINED, hide=HIDDEN_FROM_READERS),
    "writer": replace(_CONFINED, read=None, write=None, granted=(".",), unasked=False, hide=HIDDEN),
    "workspace": replace(_CONFINED, read=None, write=None, granted=(".",), unasked=False, hide=HIDDEN, sockets=False),
}
WRITERS = ("writer", "workspace")
"""Passes that may write the workspace: by Landlock alone, and in namespaces."""


class Runner:
    """One pass."""

    def __init__(self, name: str, seconds: float, endless_seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._endless_seconds = endless_seconds
        environment = {"PATH": os.environ["PATH"], "HOME": HOME, "USER": "nobody", "LANG": "C.UTF-8"}
        build()
        workspace = Workspace(WORKSPACE, HOME)
        temporary = TemporaryFolder()
        own = (WORKSPACE, temporary.path())  # made before the scene is looked at
        self._own = own if name in WRITERS else ()
        machine = replace(probe(), no_namespaces="off", bubblewrap="") if name == "writer" else probe()
        walls = CommandWalls(workspace, machine=machine)
        commands = CommandRunner(workspace, environment=environment, walls=walls, temporary=temporary, pace=PATIENT)
        self.has_namespaces = not why_no_namespaces(machine)
        self._tool = BashTool(workspace, commands)
        self.scene = Scene()
        for _ in range(2):  # whatever is started once for all
            self._run(Attempt("true"))
        self.scene.restore()

    def run(self, attempts: Sequence[Attempt]) -> dict[str, Any]:
        """Run them all and return the report."""
        report: dict[str, Any] = {"attempts": 0, "effects": [], "known": [], "not_run": []}
        for attempt in attempts:
            self._one(attempt, report)
        return report

    def _one(self, attempt: Attempt, report: dict[str, Any]) -> None:
        told: dict[str, Any] = {"origin": attempt.origin, "command": attempt.command}
        try:
            output = self._run(attempt)
        except ToolError as error:
            report["not_run"].append(told | {"why": str(error)})
            return
        report["attempts"] += 1
        effects = self.scene.effects()
        if effects:
            self.scene.restore()
        if self._name not in WRITERS and HIDDEN_CONTENT in output.content:  # a writer reads its workspace
            effects.append((Kind.SHOWN, "hidden content"))
        counted = [(kind, what) for kind, what in effects if not self._own_ground(kind, what)]
        if not counted:
            return
        told["kinds"] = sorted({kind.name for kind, _ in counted})
        told |= {"effects": [[kind.name, what] for kind, what in counted[:5]], "output": output.content[-300:]}
        open_by_design = self._name == "writer" and all(kind is attempt.open_to_writer for kind, _ in counted)
        report["known" if open_by_design else "effects"].append(told)

    def _run(self, attempt: Attempt) -> ToolOutput:
        names = self.scene.names()
        command = re.sub("@([A-Z0-9]+)@", lambda found: names[found[1]], attempt.command)
        seconds = self._endless_seconds if attempt.command in ENDLESS else self._seconds
        arguments: dict[str, JsonValue] = {"command": command, "timeout_s": seconds}
        action = self._tool.prepare(ToolCall(id="c", name="bash", arguments="{}"), arguments)
        return self._tool.run(action, EFFECTS[self._name])

    def _own_ground(self, kind: Kind, path: str) -> bool:
        """Say whether an effect is one on files that the command may write."""
        return kind in (Kind.FILES, Kind.METADATA) and any(
            path == own or path.startswith(f"{own}/") for own in self._own
        )
