"""The scripts that are declared where a call is judged, as tools that prepare it and never run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.actions import Action
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.tool_kinds import script_tool

if TYPE_CHECKING:
    from harness.gate.registry import ToolRegistry


class DeclaredScripts:
    """Those of the user's configuration, and of the files of each workspace that the user trusts."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read nothing yet."""
        self._environment = environment
        self._found: dict[str, ToolRegistry] = {}

    def action(self, tool: str, arguments: str, workspace: Workspace) -> Action | None:
        """Return the action of a call with these arguments; None where no script of that name is declared.

        Raises ToolError for arguments that do not fit, UsageError for a configuration that is not understood.
        """
        if not tool.startswith(script_tool("")):
            return None
        if workspace.root not in self._found:
            self._found[workspace.root] = self._declared_in(workspace)
        scripts = self._found[workspace.root]
        return (
            scripts.prepare(ToolCall(id="explain", name=tool, arguments=arguments)) if tool in scripts.names else None
        )

    def _declared_in(self, workspace: Workspace) -> ToolRegistry:
        from harness.cli.config.settings import settings_from
        from harness.cli.parts import extensions_of
        from harness.cli.state import State
        from harness.gate.registry import ToolRegistry
        from harness.tools.command_runner import CommandRunner
        from harness.tools.script_tool import ScriptTool

        settings = settings_from(Namespace(), self._environment, workspace.root)
        found, _ = extensions_of(settings, State.of(self._environment), workspace.root, self._environment)
        commands = CommandRunner(workspace, environment=self._environment)
        return ToolRegistry([ScriptTool(declared, commands) for declared in found.tools.values()])
