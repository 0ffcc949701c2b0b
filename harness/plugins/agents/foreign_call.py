"""A call of another agent's tool in our words: a command, files that are read or written, a patch, or something unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.record import Record
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE

MOST_KEPT_BYTES = 64 * 1024 * 1024
"""Maximum size of a file before its change: a larger one is not copied, and its change cannot be undone."""


class ForeignKind(Enum):
    """The effect of a foreign tool, as far as we know."""

    SHELL = "shell"
    READ = "read"
    LIST = "list"
    """It tells the names in a folder and below it."""
    SEARCH = "search"
    """It reads a folder with all that is below it."""
    WRITE = "write"
    EDIT = "edit"
    PATCH = "patch"
    """It changes several files, as a text says (`apply_patch`)."""
    INWARD = "inward"
    """It touches nothing but the agent itself: a list of tasks, a subagent (whose calls are judged themselves)."""
    UNKNOWN = "unknown"


NAMES: Mapping[ForeignKind, str] = {
    ForeignKind.SHELL: BASH.name,
    ForeignKind.READ: READ_FILE.name,
    ForeignKind.LIST: READ_FILE.name,
    ForeignKind.SEARCH: READ_FILE.name,
    ForeignKind.WRITE: WRITE_FILE.name,
    ForeignKind.EDIT: EDIT_FILE.name,
    ForeignKind.PATCH: EDIT_FILE.name,
}
"""Name of such a call for a policy, by kind; any other has the agent's own name of the tool."""


class ForeignCall(Record):
    """One call in our words."""

    kind: ForeignKind
    tool: str
    """The name that the policy knows it by."""
    arguments: Mapping[str, JsonValue]
    """Ours for what we know: `command`, `path`, `content`, `edits`, `patch`; else as they came."""
    key: str = ""
    """The agent's name of the argument that holds a shell's command, if the agent lets a hook rewrite it."""


class ForeignTool(Record):
    """The reading of one tool of an agent: the meaning of each argument.

    INVARIANT: an argument that is not listed here makes the call an unknown one, which is at least asked about: it
    may change the meaning of all the others.
    """

    kind: ForeignKind
    takes: Mapping[str, str] = {}
    """The agent's name of an argument, and ours: `path`, `content`, `command`, `patch`, `cwd`, `glob`, `old_string`,
    `new_string`, `replace_all`, `unconfined`."""
    ignores: Collection[str] = ()
    """Arguments that change nothing about what a policy judges: a description, a line to begin at."""
    needs: Sequence[str] = ()
    """Our arguments that a call must have to be understood."""

    def read(self, name: str, arguments: Mapping[str, JsonValue]) -> ForeignCall:
        """Return the call of the tool `name` in our words; one that is not understood keeps its name and its arguments."""
        if self.kind is ForeignKind.INWARD:
            return ForeignCall(kind=self.kind, tool=name, arguments=dict(arguments))
        ours: dict[str, JsonValue] = {}
        for key, value in arguments.items():
            if key in self.takes:
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
    """Return a call of an unknown tool: only its name and its arguments are kept."""
    return ForeignCall(kind=ForeignKind.UNKNOWN, tool=name, arguments=dict(arguments))
