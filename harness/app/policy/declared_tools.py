"""Tools that a configuration declares, for judging hypothetical calls. No script runs, and no server starts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.actions import Action, JsonValue
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.plugin import ToolPlace
from harness.session.shipped_plugins import section_of
from harness.session.state import State
from harness.shipped import SECTIONS
from harness.tool_kinds import PLUGIN_TOOLS, SCRIPT_TOOLS

if TYPE_CHECKING:
    from harness.gate.registry import ToolRegistry
    from harness.session.config.settings import Settings
    from harness.session.extensions.extensions import Extensions


class DeclaredTools:
    """Script and plugin tools declared in the user's configuration or in trusted files of a workspace."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Create it without reading any file."""
        self._environment = environment
        self._registries: dict[tuple[str, str], ToolRegistry] = {}
        self._makers = {SCRIPT_TOOLS: self._scripts, PLUGIN_TOOLS: self._plugin_tools}

    def action(self, tool: str, arguments: str, workspace: Workspace) -> Action | None:
        """Return the action of a call with these arguments. `None` for a tool that is not declared.

        Raises ToolError for invalid arguments, UsageError for an invalid configuration.
        """
        registry = self._registry_with(tool, workspace)
        return None if registry is None else registry.prepare(ToolCall(id="explain", name=tool, arguments=arguments))

    def has(self, tool: str, workspace: Workspace) -> bool:
        """Return whether the tool is declared. Raises UsageError for an invalid configuration."""
        return self._registry_with(tool, workspace) is not None

    def _registry_with(self, tool: str, workspace: Workspace) -> ToolRegistry | None:
        """Return the registry that has the tool, or `None`. Each kind of tools is loaded once, when it is asked for."""
        prefix = next((prefix for prefix in self._makers if tool.startswith(prefix)), None)
        if prefix is None:
            return None
        key = (workspace.root, prefix)
        if key not in self._registries:
            self._registries[key] = self._makers[prefix](workspace)
        return self._registries[key] if tool in self._registries[key].names else None

    def _plugin_tools(self, workspace: Workspace) -> ToolRegistry:
        from harness.gate.registry import ToolRegistry
        from harness.session.named_plugins import named_plugins

        settings, _ = _settings_in(workspace, self._environment)
        place = ToolPlace(workspace=workspace, environment=self._environment, stops=lambda: 0)
        return ToolRegistry([offer.make(place) for plugin in named_plugins(settings.file) for offer in plugin.tools])

    def _scripts(self, workspace: Workspace) -> ToolRegistry:
        from harness.gate.registry import ToolRegistry
        from harness.tools.command_runner import CommandRunner
        from harness.tools.script_tool import ScriptTool

        _, extensions = _settings_in(workspace, self._environment)
        commands = CommandRunner(workspace, environment=self._environment)
        return ToolRegistry([ScriptTool(script, commands) for script in extensions.tools.values()])


def outside_call(
    tool: str, arguments: Mapping[str, JsonValue], workspace: Workspace, environment: Mapping[str, str]
) -> tuple[Action | None, str]:
    """Return the action of a call of a tool in a plugin's section, and a note on unknown facts about the tool.

    The action is `None` for other tools, and if only rules can decide. Raises ToolError for a tool that a run would not
    use, and UsageError for an invalid configuration.
    """
    for key in SECTIONS:
        judge = section_of(key).judged_call

        def entries(key: str = key) -> Mapping[str, object]:
            return _settings_in(workspace, environment)[1].in_section(key)

        call = judge(tool, arguments, workspace, environment, entries) if judge is not None else None
        if call is not None:
            return call
    return None, ""


def _settings_in(workspace: Workspace, environment: Mapping[str, str]) -> tuple[Settings, Extensions]:
    """Return the user's settings, and the declarations in these and in a workspace's trusted files.

    Raises UsageError.
    """
    from harness.session.config.settings import settings_from
    from harness.session.session_place import extensions_of

    settings = settings_from(Namespace(), environment, workspace.root)
    return settings, extensions_of(settings, State.of(environment), workspace.root, environment)[0]
