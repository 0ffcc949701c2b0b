"""Description of a tool for all other modules: its effect, the subject of a call, the text that the user may edit.

Each tool has a `kind`. Rules, questions, logs, reports and exports use the kind, never the name. Code that has only a
name from a policy or a log calls `tool_kind`. Outside `harness/tools/`, the tools of the core are named only in this
module. harness/shipped.py names the tools of plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from importlib import import_module

from harness.declared_types import CheckedRecord
from harness.shipped import TOOLS


class Does(Enum):
    """The effect of a tool's call."""

    READS = "reads"
    """The tool reads one file or one folder, and changes nothing."""
    WRITES = "writes"
    """The tool reads and changes one file. The intent record has the digests before and after."""
    RUNS = "runs"
    """The tool runs a command line, which may have any effect that its verdict allows."""
    OTHER = "other"
    """Another or unknown effect."""


class ToolKind(CheckedRecord):
    """Description of one tool."""

    name: str
    does: Does = Does.OTHER
    subject: str = ""
    """Name of the argument that is the subject of a call: the command line, or a path. Read it with `subject_of`."""
    unsaid: str = ""
    """Subject of a call without the argument `subject`, such as the folder `.`. Empty if the argument is required."""
    creates: bool = False
    """Whether the tool may create a file."""
    edited: str = ""
    """Name of the argument that the user may edit at the approval prompt."""
    edited_each: str = ""
    """Name of an argument that may replace `edited`: a list of objects, each with such a text."""
    holds: str = ""
    """Marker in the result of a call whose arguments stay valid until the next such call.

    These arguments are kept when the conversation is summarized. Empty if a call has no lasting arguments.
    """

    goes_to_hosts: bool = False
    """Whether each call connects to one host. A rule with `host` but without `tool` applies to such tools."""
    stays_here: bool = False
    """Whether calls without special requests affect only the conversation, and programs that the session started."""

    @property
    def tells_changes(self) -> bool:
        """Whether the log records of a call show all its changes in the workspace. Not so for commands."""
        return self.is_of_files or self.name in OPTIONAL_NAMES

    @property
    def is_of_files(self) -> bool:
        """Whether the tool reads or writes one path. If so, the log records of a call show all its changes."""
        return self.does in (Does.READS, Does.WRITES)

    def subject_of(self, arguments: object) -> str | None:
        """Return the subject of a call with these arguments.

        `None` if it is missing, or if `arguments` is not an object.
        """
        if not self.subject or not isinstance(arguments, Mapping):
            return None
        value = arguments.get(self.subject, self.unsaid or None)
        return value if isinstance(value, str) else None


BASH = ToolKind(name="bash", does=Does.RUNS, subject="command", edited="command")
READ_FILE = ToolKind(name="read_file", does=Does.READS, subject="path")
WRITE_FILE = ToolKind(name="write_file", does=Does.WRITES, subject="path", creates=True, edited="content")
EDIT_FILE = ToolKind(name="edit_file", does=Does.WRITES, subject="path", edited="new_string", edited_each="edits")

SHIPPED_TOOLS: Mapping[str, ToolKind] = {kind.name: kind for kind in (BASH, READ_FILE, WRITE_FILE, EDIT_FILE)}
"""The tools that ship, by name."""

OPTIONAL_TOOLS: Mapping[str, ToolKind] = {
    kind.name: kind
    for kind in (
        ToolKind(name="delegate", subject="task", stays_here=True),
        ToolKind(name="ask_user", subject="question", stays_here=True),
        ToolKind(name="todo", holds="The list is kept: "),
        ToolKind(name="job", subject="name", stays_here=True),
    )
}
"""Tools of the core that are offered only if a policy or the configuration names them."""

OPTIONAL_NAMES = (*OPTIONAL_TOOLS, *TOOLS)
"""The names of all shipped tools that are offered only if they are named, including those of plugins."""


def tool_kind(name: str) -> ToolKind:
    """Return the kind of the tool with this name. For a tool that does not ship, the effects are unknown."""
    if kind := SHIPPED_TOOLS.get(name) or OPTIONAL_TOOLS.get(name):
        return kind
    offers = import_module(TOOLS[name]).PLUGIN.tools if name in TOOLS else ()
    return next((offer.kind for offer in offers if offer.kind.name == name), ToolKind(name=name))


SERVER_NAME = "(?!_)(?:[A-Za-z0-9-]|_(?!_)){1,32}(?<!_)"
"""Pattern of a server name.

With two underscores inside, or one at an end, the names of the server's tools would be ambiguous.
"""
SERVER_TOOL = "[A-Za-z0-9_./-]{1,128}"
"""Pattern of a tool's name on its server."""
SCRIPT_NAME = "[A-Za-z][A-Za-z0-9_]{0,51}"
"""Pattern of the name of a script tool. With the prefix, it stays within the 64 characters that models accept."""
SERVER_TOOLS, SCRIPT_TOOLS, PLUGIN_TOOLS = "mcp__", "script__", "plugin__"
"""Prefixes of the names of tools of servers, scripts and external plugins, in policies, logs and requests."""
_FROM_OUTSIDE = (
    f"{SERVER_TOOLS}(?:{SERVER_NAME}__(?:{SERVER_TOOL})?\\*|{SERVER_NAME}__{SERVER_TOOL}|\\*)"
    f"|(?:{SCRIPT_TOOLS}|{PLUGIN_TOOLS})(?:{SCRIPT_NAME}\\*?|\\*)"
)


def server_tool(server: str, tool: str) -> str:
    """Return the name of a server's tool in policies and logs."""
    return f"{SERVER_TOOLS}{server}__{tool}"


def script_tool(name: str) -> str:
    """Return the name of a script tool for models, policies and logs."""
    return f"{SCRIPT_TOOLS}{name}"


def is_of_server(name: str) -> bool:
    """Return whether a tool name in a policy is that of a server's tool."""
    return name.startswith(SERVER_TOOLS)


def is_from_outside(name: str) -> bool:
    """Return whether a name in a policy means external tools: those of a server, a script or a plugin.

    A star at the end matches all names that begin so.
    """
    return name.startswith((SERVER_TOOLS, SCRIPT_TOOLS, PLUGIN_TOOLS)) and bool(re.fullmatch(_FROM_OUTSIDE, name))


def is_named(tool: str, names: Iterable[str]) -> bool:
    """Return whether one of the names of a policy matches a tool. A star at the end of a name matches any end."""
    return any(name == tool or (name.endswith("*") and tool.startswith(name[:-1])) for name in names)


def shipped_that(*does: Does) -> tuple[str, ...]:
    """Return the names of the shipped tools with one of these effects."""
    return tuple(kind.name for kind in SHIPPED_TOOLS.values() if kind.does in does)
