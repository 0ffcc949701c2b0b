"""The action of a hypothetical call, from words that a user typed or from arguments as a model sends them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, assert_never

from harness.actions import Access, Action, Facet, JsonValue, Place, ToolUse
from harness.app.policy.declared_tools import DeclaredTools, outside_call
from harness.errors import ToolError, UsageError, nearest
from harness.files.own_temporary import OwnTemporary, named_in
from harness.files.workspace import Workspace
from harness.limits import Limits
from harness.messages import ToolCall
from harness.plugin import ToolPlace
from harness.record import replace
from harness.session.shipped_plugins import tool_offers
from harness.shell.facets import read_call, syntax_complaint
from harness.shipped import TOOLS_OF_OTHERS
from harness.text.fields import kind_of
from harness.text.strict_json import NotJsonError, read_one
from harness.text.visible import visible_line
from harness.tool_kinds import OPTIONAL_NAMES, PLUGIN_TOOLS, READ_FILE, SHIPPED_TOOLS, Does, is_from_outside, tool_kind

if TYPE_CHECKING:
    from harness.model import ToolSpec

_ARGUMENTS = 'its arguments as a JSON object, such as {"path": "src/a.py"}'
_ANY_SECONDS = 1e9
"""Maximum time limit that is accepted here, in seconds.

Rules do not depend on time limits, and logged calls may have any.
"""


def action_for(
    tool: str,
    text: str,
    workspace: Workspace,
    *,
    cwd: str = "",
    changes: bool = True,
    temporary: OwnTemporary | None = None,
) -> Action:
    """Return the action that would be judged if the model called `tool` with this command or path.

    `cwd` is the folder of a relative path, and the working directory of a command, inside the workspace. A call that
    changes nothing (`changes` is false) is judged as a read if its file is in the workspace, as the tools do. `temporary`
    is the session's own `/tmp`, if there is one. Raises UsageError for an unknown tool, ToolError for an invalid path or a
    working directory outside the workspace.
    """
    call = ToolCall(id="explain", name=tool, arguments="{}")
    facets: tuple[Facet, ...]
    default_of = reads_as = raw = ""
    folder = os.path.join(workspace.root, cwd)
    kind, disk, files = tool_kind(tool), workspace.seen_with(temporary), workspace.for_files(lambda: temporary)
    match kind.does:
        case Does.RUNS:
            facets, raw = _commands(text, disk, cwd), text
        case Does.READS:
            facets = (files.resolve(text, Access.READ, folder),)
        case Does.WRITES:
            written, read = (files.resolve(text, access, folder) for access in (Access.WRITE, Access.READ))
            new = kind.creates and not os.path.lexists(written.real)
            facets, reads_as = (written, replace(read, new=new)), READ_FILE.name
            if not changes and written.place is Place.INSIDE:
                default_of = reads_as
        case Does.OTHER if is_from_outside(tool):
            use = call_from_outside(ToolUse(tool=tool), text, workspace)
            return replace(use, summary=visible_line(text), preview=text)
        case Does.OTHER if tool in OPTIONAL_NAMES:
            is_json = not kind.subject or text.lstrip().startswith("{")
            return optional_call(tool, text if is_json else json.dumps({kind.subject: text}), workspace)
        case Does.OTHER:
            raise UsageError(f"unknown tool {tool!r}{nearest(tool, SHIPPED_TOOLS)}")
        case _:
            assert_never(kind.does)
    return Action(
        call=call,
        tool=tool,
        arguments={},
        facets=facets,
        summary=visible_line(text),
        preview=text,
        request=None,
        default_of=default_of,
        reads_as=reads_as,
        text=raw,
        own_tmp=disk.needs_temporary,
    )


def typed_action(
    tool: str,
    text: str,
    workspace: Workspace,
    environment: Mapping[str, str],
    temporary: Callable[[], OwnTemporary | None] = lambda: None,
    *,
    cwd: str = "",
) -> tuple[Action, str]:
    """Return the action of a call that a user typed, and a note on unknown facts about its tool.

    `text` is a command, a path, or the arguments of the call as a JSON object. `cwd` is the current folder of the user,
    in the workspace. The tool may be another agent's. `temporary` returns the session's own
    `/tmp`, if there is one. Raises UsageError and ToolError as `action_for` does, and ToolError for invalid
    arguments and for a command with a bash syntax error.
    """
    if is_from_outside(tool):
        declared = DeclaredTools(environment).action(tool, text, workspace)
        outside_action, note = (
            (None, "") if declared else outside_call(tool, arguments_of(tool, text), workspace, environment)
        )
        if tool.startswith(PLUGIN_TOOLS) and declared is None:
            note = f"no plugin that the configuration names offers {tool}: rules about files are not tried"
        return declared or outside_action or action_for(tool, text, workspace), note
    if tool in SHIPPED_TOOLS and _is_arguments(tool, text):
        return CallReader(environment).action(tool, text, workspace), ""
    if tool not in SHIPPED_TOOLS and tool not in OPTIONAL_NAMES:
        module = import_module(TOOLS_OF_OTHERS)
        explanation: tuple[Action, str] | None = module.explained_call(
            tool, arguments_of(tool, text), workspace, cwd or workspace.root, environment
        )
        if explanation is not None:
            return explanation
    action = action_for(tool, text, workspace, cwd=cwd, temporary=named_in(text, temporary))
    if tool_kind(tool).does is Does.RUNS and not text.strip():
        raise ToolError(f"{tool}: the command is blank")
    if tool_kind(tool).does is Does.RUNS and (complaint := syntax_complaint(text)):
        raise ToolError(f"bash: {complaint}. A model that sends this reads the error, and nothing runs")
    return action, ""


def _is_arguments(tool: str, text: str) -> bool:
    """Return whether a text is the arguments of a call.

    For a command, only a complete JSON object counts, because `{ ls; }` is bash.
    """
    if not text.lstrip().startswith("{"):
        return False
    if tool_kind(tool).does is not Does.RUNS:
        return True
    try:
        return isinstance(read_one(text), dict)
    except NotJsonError:
        return False


def _commands(text: str, workspace: Workspace, cwd: str) -> tuple[Facet, ...]:
    """Return the facets that the tool would judge for a command line in `cwd`. Raises ToolError if `cwd` is outside."""
    start = workspace.resolve(cwd or ".", Access.READ)
    if start.place not in (Place.INSIDE, Place.ROOT):
        raise ToolError(f"cwd is outside the workspace: {visible_line(cwd)}")
    facets, _ = read_call(text, workspace, start)
    return facets


UNSEEN_TOOL = "built-in unseen-tool"
"""Log text of the built-in decision on the first use of a server's tool."""


def tool_use(tool: str, unseen: str = "") -> Action:
    """Return the action of a tool call with unknown arguments. See `ToolUse.unseen`."""
    call = ToolCall(id="explain", name=tool, arguments="{}")
    use = ToolUse(tool=tool, unseen=unseen, stays_here=tool_kind(tool).stays_here)
    return Action(call=call, tool=tool, arguments={}, facets=(use,), summary=tool, preview=tool, request=None)


def call_from_outside(use: ToolUse, arguments: str, workspace: Workspace) -> Action:
    """Return the action of an external tool's call with these arguments as JSON. Empty text means no arguments.

    Raises ToolError for text that is not a JSON object.
    """
    from harness.policy.tool_arguments import tool_arguments

    call_arguments = arguments_of(use.tool, arguments)
    facet = replace(use, arguments=tool_arguments(call_arguments, workspace))
    return replace(tool_use(use.tool), arguments=call_arguments, facets=(facet,), reads_as=READ_FILE.name)


def arguments_of(tool: str, text: str) -> dict[str, JsonValue]:
    """Parse the arguments of a call from JSON text. Empty text means no arguments. Raises ToolError for other text."""
    try:
        arguments = read_one(text) if text.strip() else {}
    except NotJsonError as error:
        raise ToolError(f"{tool} takes {_ARGUMENTS}: {error}") from None
    if not isinstance(arguments, dict):
        raise ToolError(f"{tool} takes {_ARGUMENTS}, not {kind_of(arguments)}")
    return arguments


def optional_call(tool: str, arguments: str, workspace: Workspace) -> Action:
    """Return the action of an optional tool's call, as prepared by the tool itself. Raises ToolError."""
    from harness.gate.registry import ToolRegistry
    from harness.tools import optional_tools

    place = ToolPlace(workspace=workspace, environment={}, stops=lambda: 0)
    tools = (*optional_tools((tool,)), *(offer.make(place) for offer in tool_offers((tool,))))
    return ToolRegistry(tools).prepare(ToolCall(id="explain", name=tool, arguments=arguments))


class CallReader:
    """Turns raw arguments, as a model sends them, into actions, by the schemas of the real tools.

    Only the judged argument is required: the command or the path. A case about writing a file needs no content.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Create it. `environment` leads to the configuration with the declared tools."""
        from harness.tools import builtin_tools

        self._declared = DeclaredTools(environment)
        limits = Limits(command_seconds=_ANY_SECONDS)
        tools = builtin_tools(Workspace("/", "/"), limits=limits, environment={})
        self._specs = {tool.spec.name: _relaxed(tool.spec) for tool in tools}

    def declares(self, tool: str, workspace: Workspace) -> bool:
        """Return whether the configuration declares the tool. Raises UsageError for an invalid configuration."""
        return self._declared.has(tool, workspace)

    def action(self, tool: str, arguments: str, workspace: Workspace, *, changes: bool = True) -> Action:
        """Return the action that would be judged. Raises ToolError for an unknown tool and for invalid arguments."""
        from harness.gate.arguments import parse_arguments

        if is_from_outside(tool):
            return self._declared.action(tool, arguments, workspace) or call_from_outside(
                ToolUse(tool=tool), arguments, workspace
            )
        if tool in OPTIONAL_NAMES:
            return optional_call(tool, arguments, workspace)
        if tool not in self._specs:
            raise ToolError(f"unknown tool {tool!r}{nearest(tool, SHIPPED_TOOLS)}")
        parsed = parse_arguments(arguments, self._specs[tool])
        text = tool_kind(tool).subject_of(parsed) or ""
        return action_for(tool, text, workspace, cwd=str(parsed.get("cwd", "")), changes=changes)


def _relaxed(spec: ToolSpec) -> ToolSpec:
    kind = tool_kind(spec.name)
    required: list[JsonValue] = [] if kind.unsaid else [kind.subject]
    return replace(spec, parameters={**spec.parameters, "required": required})
