"""What a tool is, as far as anybody but itself must know: what it does, what a call is about, what a person may edit.

A tool says it with its `kind`. Rules, questions, logs, reports and exports ask the kind and never the name. Those who have
no tool at hand, but only its name in a policy or a log, look it up here: `tool_kind`. This table is the only place outside
of `harness/tools/` where the tools of the core are named; harness/shipped.py names those that plugins offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from importlib import import_module

from harness.record import Record
from harness.shipped import TOOLS


class Does(Enum):
    """The effect of a tool's call."""

    READS = "reads"
    """It reads one file or one folder, and changes nothing."""
    WRITES = "writes"
    """It changes one file, which it reads for that; its intent says from what to what."""
    RUNS = "runs"
    """It runs a command line, which may do anything that its verdict allows."""
    OTHER = "other"
    """Another or unknown effect."""


class ToolKind(Record):
    """Description of one tool."""

    name: str
    does: Does = Does.OTHER
    subject: str = ""
    """The argument that says what a call is about: the command line, or a path. Read it with `subject_of`."""
    unsaid: str = ""
    """Subject of a call without `subject`: the folder `.`, say. Empty if the argument is required."""
    creates: bool = False
    """Whether it may make a file that is not there yet."""
    edited: str = ""
    """The argument whose text a person may change at the question."""
    edited_each: str = ""
    """A list of objects that may replace `edited`: each of them holds such a text."""
    holds: str = ""
    """Words in the result of a call whose arguments hold until the next such call: they outlast a summary of the
    conversation. Empty where a call is over with its result."""

    goes_to_hosts: bool = False
    """Whether each call goes to one host of the network. A rule with `host` and no `tool` speaks of such tools."""
    stays_here: bool = False
    """Whether its calls, where they ask for nothing special, touch nothing outside of the conversation."""

    @property
    def tells_changes(self) -> bool:
        """Whether the records of a call tell all that it changed in the workspace; those of a command do not."""
        return self.is_of_files or self.name in OPTIONAL_NAMES

    @property
    def is_of_files(self) -> bool:
        """Whether it reads or writes one path: then its records tell all that a call changed."""
        return self.does in (Does.READS, Does.WRITES)

    def subject_of(self, arguments: object) -> str | None:
        """Return the subject of a call with these arguments; `None` if they lack it, or are not an object."""
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
    )
}
"""Tools of the core that are offered only where they are named."""

OPTIONAL_NAMES = (*OPTIONAL_TOOLS, *TOOLS)
"""The names of all tools that ship and are offered only where they are named: those of plugins too."""


def tool_kind(name: str) -> ToolKind:
    """Return the kind of the tool of that name, with unknown effects unless it ships."""
    if kind := SHIPPED_TOOLS.get(name) or OPTIONAL_TOOLS.get(name):
        return kind
    offers = import_module(TOOLS[name]).PLUGIN.tools if name in TOOLS else ()
    return next((offer.kind for offer in offers if offer.kind.name == name), ToolKind(name=name))


SERVER_NAME = "(?!_)(?:[A-Za-z0-9-]|_(?!_)){1,32}(?<!_)"
"""Name of a server. With two underscores in it, or one at an end, names of its tools could be read in two ways."""
SERVER_TOOL = "[A-Za-z0-9_./-]{1,128}"
"""Name of a tool, as its server calls it."""
SCRIPT_NAME = "[A-Za-z][A-Za-z0-9_]{0,51}"
"""Name of a script that is declared as a tool; with the prefix, models take no more than 64 characters."""
SERVER_TOOLS, SCRIPT_TOOLS, PLUGIN_TOOLS = "mcp__", "script__", "plugin__"
"""How the names of tools of servers, of scripts, and of plugins of others begin in policies, logs and requests."""
_FROM_OUTSIDE = (
    f"{SERVER_TOOLS}(?:{SERVER_NAME}__(?:{SERVER_TOOL})?\\*|{SERVER_NAME}__{SERVER_TOOL}|\\*)"
    f"|(?:{SCRIPT_TOOLS}|{PLUGIN_TOOLS})(?:{SCRIPT_NAME}\\*?|\\*)"
)


def server_tool(server: str, tool: str) -> str:
    """Return the name by which policies and logs know a tool of a server."""
    return f"{SERVER_TOOLS}{server}__{tool}"


def script_tool(name: str) -> str:
    """Return the name by which models, policies and logs know a script that is declared as a tool."""
    return f"{SCRIPT_TOOLS}{name}"


def is_of_server(name: str) -> bool:
    """Say whether a tool, by its name in a policy, is one of a server."""
    return name.startswith(SERVER_TOOLS)


def is_from_outside(name: str) -> bool:
    """Return whether a name in a policy means tools that do not ship: one of a server, a script or a plugin. With a star at
    its end it means all that begin so.
    """
    return name.startswith((SERVER_TOOLS, SCRIPT_TOOLS, PLUGIN_TOOLS)) and bool(re.fullmatch(_FROM_OUTSIDE, name))


def is_named(tool: str, names: Iterable[str]) -> bool:
    """Return whether a tool is among those that a policy names; a star at the end of a name matches any end."""
    return any(name == tool or (name.endswith("*") and tool.startswith(name[:-1])) for name in names)


def shipped_that(*does: Does) -> tuple[str, ...]:
    """Return the names of the tools that ship and do one of these things."""
    return tuple(kind.name for kind in SHIPPED_TOOLS.values() if kind.does in does)
