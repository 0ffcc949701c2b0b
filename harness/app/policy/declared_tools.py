"""Tools that a configuration declares, as far as a call of theirs can be judged: no script runs, and no server starts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import Action, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.tool_kinds import is_of_server, script_tool

if TYPE_CHECKING:
    from harness.gate.registry import ToolRegistry
    from harness.plugins.mcp.pins import ToolPin
    from harness.plugins.mcp.server_declaration import ServerDeclaration
    from harness.plugins.mcp.tool_description import ToolDescription
    from harness.session.extensions.extensions import Extensions


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
        from harness.gate.registry import ToolRegistry
        from harness.tools.command_runner import CommandRunner
        from harness.tools.script_tool import ScriptTool

        declared = _extensions_in(workspace, self._environment).tools
        commands = CommandRunner(workspace, environment=self._environment)
        return ToolRegistry([ScriptTool(script, commands) for script in declared.values()])


def server_call(
    tool: str, arguments: Mapping[str, JsonValue], workspace: Workspace, environment: Mapping[str, str]
) -> tuple[Action | None, str]:
    """Return the action of a call of an MCP server's tool, and a sentence about what is not known of the tool.

    The action comes from the configuration and from what the server listed last (pins). It is `None` for other tools, and
    if neither knows the tool. Raises ToolError for a tool that a run would not use, and UsageError for a configuration or
    pins that are not understood.
    """
    if not is_of_server(tool):
        return None, ""
    from harness.plugins.mcp.pins import PinFile
    from harness.plugins.mcp.tool_action import JudgedTool
    from harness.policy.tool_arguments import tool_arguments
    from harness.session.state import State
    from harness.tools.command_walls import CommandWalls

    server, _, name = tool.removeprefix("mcp__").partition("__")
    declaration = _extensions_in(workspace, environment).servers.get(server)
    pin = PinFile(State.of(environment).mcp, server).read().get(name)
    if declaration is None and pin is None:
        return None, f"the server {server} is not configured here, and no run has listed its tools: only rules decide"
    description, is_seen = _listed(server, name, pin, declaration)
    judged = JudgedTool(
        server=server,
        description=description,
        is_first=not is_seen,
        way_to_pin=f"a person looks at it with `harness mcp pin {server} {name}`, at a terminal",
    )
    bounds = declaration.bounds if declaration is not None and CommandWalls(workspace).confines else None
    call = ToolCall(id="explain", name=tool, arguments="")
    action = judged.action(call, arguments, None, texts=tool_arguments(arguments, workspace), bounds=bounds)
    note = f"no run has listed {tool} yet: what its server says of it is not known" if pin is None else ""
    return action, note


def _listed(
    server: str, name: str, pin: ToolPin | None, declaration: ServerDeclaration | None
) -> tuple[ToolDescription, bool]:
    """Return a tool as its server listed it last, and whether a person has seen that. Raises ToolError if it has changed.

    The digest `pinned` of a declaration counts as seen: only a run can compare it with what the server lists.
    """
    from harness.plugins.mcp.tool_description import ToolDescription

    last = None if pin is None else pin.listed or pin.pinned
    is_declared = declaration is not None and bool(declaration.pinned)
    if pin is None or last is None:
        return ToolDescription(name=name, definition={}, command="", sha256=""), is_declared
    if is_declared:
        return last, True
    if pin.pinned is None:
        return last, False
    words = None if declaration is None else declaration.words
    if words is not None and _digest(pin.pinned, words) != pin.pinned.sha256:
        return last, False  # seen under another command line
    if pin.listed is not None and (words is None or _digest(pin.listed, words) == pin.listed.sha256):
        raise ToolError(
            f"This tool cannot be used: {name}: the server changed what it says of it since a person has seen it; "
            f"a person looks at it with `harness mcp pin {server} {name}`, at a terminal"
        )
    return pin.pinned, True


def _digest(description: ToolDescription, words: Sequence[str]) -> str:
    """Return the digest of a tool as a server with the command line `words` would list it."""
    from harness.plugins.mcp.tool_description import ToolDescription, described

    again = described(dict(description.definition), words, description.command)
    return again.sha256 if isinstance(again, ToolDescription) else ""


def _extensions_in(workspace: Workspace, environment: Mapping[str, str]) -> Extensions:
    """Return what the user's configuration and the trusted files of a workspace declare. Raises UsageError."""
    from harness.session.config.settings import settings_from
    from harness.session.session_place import extensions_of
    from harness.session.state import State

    settings = settings_from(Namespace(), environment, workspace.root)
    return extensions_of(settings, State.of(environment), workspace.root, environment)[0]
