"""Translate a call of another agent's tool into our terms: a command, a file access, a patch, or an unknown call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.plugins.agents.event import HookEvent
from harness.record import Record, replace
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE, server_tool

MOST_KEPT_BYTES = 64 * 1024 * 1024
"""Maximum size of a file that is copied before its change. The change of a larger file cannot be undone."""


class ForeignKind(Enum):
    """The known effect of a foreign tool."""

    SHELL = "shell"
    READ = "read"
    LIST = "list"
    """It lists the names in and below a folder."""
    SEARCH = "search"
    """It reads all files in and below a folder."""
    WRITE = "write"
    EDIT = "edit"
    PATCH = "patch"
    """It changes several files according to a patch text (`apply_patch`)."""
    FETCH = "fetch"
    """It fetches pages of the web: that of an address, or those of all addresses in a text."""
    INWARD = "inward"
    """It affects only the agent itself, for example a todo list or a subagent, whose own calls are judged."""
    UNKNOWN = "unknown"


NAMES: Mapping[ForeignKind, str] = {
    ForeignKind.SHELL: BASH.name,
    ForeignKind.READ: READ_FILE.name,
    ForeignKind.LIST: READ_FILE.name,
    ForeignKind.SEARCH: READ_FILE.name,
    ForeignKind.WRITE: WRITE_FILE.name,
    ForeignKind.EDIT: EDIT_FILE.name,
    ForeignKind.PATCH: EDIT_FILE.name,
    ForeignKind.FETCH: "web_fetch",
}
"""Tool name that a policy sees for a call of each kind. Calls of other kinds keep the agent's name of the tool."""


class ForeignCall(Record):
    """One translated call."""

    kind: ForeignKind
    tool: str
    """Tool name that the policy sees."""
    arguments: Mapping[str, JsonValue]
    """Arguments with our names, such as `command`, `path`, `content`, `patch`; unchanged for an unknown call."""
    or_tools: Sequence[str] = ()
    """Further names that the tool may have for the policy. The strictest verdict decides."""
    key: str = ""
    """The agent's name of the argument that holds a shell command. Empty if there is none."""


class ForeignTool(Record):
    """The description of one tool of an agent: the meaning of each argument.

    INVARIANT: a call with an argument that is not listed here counts as unknown, and an unknown call is never allowed
    without a question. Such an argument may change the meaning of all others.
    """

    kind: ForeignKind
    takes: Mapping[str, str] = {}
    """Our name for each of the agent's arguments: `path`, `content`, `command`, `patch`, `cwd`, `glob`, `old_string`,
    `new_string`, `replace_all`, `edits`, `unconfined`, `url`, `text`."""
    ignores: Collection[str] = ()
    """Arguments that do not matter to a policy, such as a description or a first line."""
    needs: Sequence[str] = ()
    """Required arguments, by our names. A call without one of them counts as unknown."""
    does_more: Callable[[HookEvent], bool] = lambda event: False  # noqa: ARG005
    """Returns whether the call of an event may do more than its kind says. Then it counts as unknown."""

    def read(self, event: HookEvent) -> ForeignCall:
        """Translate the call of an event. A call that is not understood becomes an unknown call."""
        name, arguments = event.tool, event.arguments
        if self.does_more(event):
            return unknown(name, arguments)
        if self.kind is ForeignKind.INWARD:
            return ForeignCall(kind=self.kind, tool=name, arguments=dict(arguments))
        ours: dict[str, JsonValue] = {}
        for key, value in arguments.items():
            if key in self.takes and self.takes[key] not in ours:
                ours[self.takes[key]] = value
            elif key not in self.ignores:
                return unknown(name, arguments)
        if any(not isinstance(ours.get(key), str) for key in self.needs):
            return unknown(name, arguments)
        return ForeignCall(
            kind=self.kind,
            tool=NAMES.get(self.kind, name),
            arguments=ours,
            key=next((key for key, our in self.takes.items() if our == "command"), ""),
        )


def unknown(name: str, arguments: Mapping[str, JsonValue]) -> ForeignCall:
    """Return an unknown call, with the agent's names of the tool and the arguments."""
    return ForeignCall(kind=ForeignKind.UNKNOWN, tool=name, arguments=dict(arguments))


def edits_named(arguments: Mapping[str, JsonValue], *, old: str, new: str) -> Mapping[str, JsonValue]:
    """Return the arguments of a call that changes a file at several places, with our names in its list `edits`.

    `old` and `new` are the agent's names. A list of another form stays as it is, and its call is refused.
    """
    edits = arguments.get("edits")
    if not isinstance(edits, list):
        return arguments
    names = {old: "old_string", new: "new_string"}
    return {
        **arguments,
        "edits": [
            {names.get(name, name): value for name, value in edit.items()} if isinstance(edit, dict) else edit
            for edit in edits
        ],
    }


def named_as_in_policies(call: ForeignCall, mark: str, servers: Collection[str], *, are_all: bool) -> ForeignCall:
    """Return an unknown call with the policy's name of a server's tool that its agent calls SERVER, `mark`, TOOL.

    `servers` are names of MCP servers, as they begin the agent's names of tools. If none of them fits, and they may not be
    all (`are_all`), each way to cut the name counts: the strictest verdict decides.
    """
    if call.kind is not ForeignKind.UNKNOWN:
        return call
    parts = call.tool.split(mark)
    cuts = [(mark.join(parts[:end]), mark.join(parts[end:])) for end in range(1, len(parts))]
    cuts = [(server, tool) for server, tool in cuts if server and tool]
    own_cuts = [cut for cut in cuts if cut[0] in servers]
    names = [server_tool(*cut) for cut in own_cuts or (() if are_all else cuts)]
    if not own_cuts:
        names.append(call.tool)
    return ForeignCall(kind=call.kind, tool=names[0], arguments=call.arguments, or_tools=tuple(names[1:]))


def parts_of(call: ForeignCall) -> tuple[ForeignCall, ...]:
    """Return the parts of a call that are judged and logged separately: one for each file of a patch, or of a list."""
    paths = call.arguments.get("path")
    if call.kind is ForeignKind.READ and isinstance(paths, list) and paths:
        return tuple(replace(call, arguments={**call.arguments, "path": path}) for path in paths)
    if call.kind is not ForeignKind.PATCH:
        return (call,)
    from harness.plugins.agents.patches import PatchKind, read_patch, split_patch

    patch = str(call.arguments["patch"])
    try:
        kinds, parts = [section.kind for section in read_patch(patch)], split_patch(patch)
    except ToolError:
        return (call,)  # the gate will refuse it with a reason
    names = (NAMES[ForeignKind.WRITE if kind is PatchKind.ADD else ForeignKind.PATCH] for kind in kinds)
    return tuple(
        replace(call, tool=name, arguments={**call.arguments, "patch": part})
        for name, part in zip(names, parts, strict=True)
    )
