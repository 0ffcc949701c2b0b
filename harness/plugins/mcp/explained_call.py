"""The action of a call to a server's tool for `policy explain`, from configuration and pins. Starts no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.actions import Action, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.plugins.mcp.pins import PinFile, ToolPin, pins_folder
from harness.plugins.mcp.server_declaration import ServerDeclaration
from harness.plugins.mcp.tool_action import JudgedTool
from harness.plugins.mcp.tool_description import ToolDescription, described
from harness.policy.tool_arguments import tool_arguments
from harness.session.state import State
from harness.tool_kinds import is_of_server
from harness.tools.command_walls import CommandWalls


def explained_call(
    tool: str,
    arguments: Mapping[str, JsonValue],
    workspace: Workspace,
    environment: Mapping[str, str],
    servers: Callable[[], Mapping[str, ServerDeclaration]],
) -> tuple[Action | None, str] | None:
    """Return the action of a call, and a note; see DeclaredCall. Uses the declared servers and the last list (pins)."""
    if not is_of_server(tool):
        return None
    server, _, name = tool.removeprefix("mcp__").partition("__")
    declaration = servers().get(server)
    pin = PinFile(pins_folder(State.of(environment)), server).read().get(name)
    if declaration is None and pin is None:
        return None, f"the server {server} is not configured here, and no run has listed its tools: only rules decide"
    description, is_seen = _listed_tool(server, name, pin, declaration)
    judged_tool = JudgedTool(
        server=server,
        description=description,
        is_first=not is_seen,
        way_to_pin=f"a person looks at it with `harness mcp pin {server} {name}`, at a terminal",
    )
    bounds = declaration.bounds if declaration is not None and CommandWalls(workspace).confines else None
    call = ToolCall(id="explain", name=tool, arguments="")
    action = judged_tool.action(call, arguments, None, texts=tool_arguments(arguments, workspace), bounds=bounds)
    note = f"no run has listed {tool} yet: what its server says of it is not known" if pin is None else ""
    return action, note


def _listed_tool(
    server: str, name: str, pin: ToolPin | None, declaration: ServerDeclaration | None
) -> tuple[ToolDescription, bool]:
    """Return the last listed description of a tool, and whether the user has seen it.

    Raises ToolError if it has changed.

    With `pinned` in the declaration, the tool counts as seen, since only a run can compare that digest with the list.
    """
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
        return last, False  # the user saw it with another command line
    if pin.listed is not None and (words is None or _digest(pin.listed, words) == pin.listed.sha256):
        raise ToolError(
            f"The tool {name} cannot be used: the server changed this tool after a person saw it; "
            f"a person looks at it with `harness mcp pin {server} {name}`, at a terminal"
        )
    return pin.pinned, True


def _digest(description: ToolDescription, words: Sequence[str]) -> str:
    """Return the digest that a tool would have with the command line `words`. Empty if its definition is invalid."""
    again = described(dict(description.definition), words, description.command)
    return again.sha256 if isinstance(again, ToolDescription) else ""
