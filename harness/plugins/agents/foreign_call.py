"""A call of another agent's tool in our words: a command, files that are read or written, a patch, or something unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.record import Record
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE

MOST_KEPT_BYTES = 64 * 1024 * 1024
"""Of a file before it is changed: of a larger one no copy is kept, and its change cannot be undone."""


class ForeignKind(Enum):
    """What a foreign tool does, as far as we know."""

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
"""By which name a policy knows such a call; any other is known by the agent's own name of the tool."""


class ForeignCall(Record):
    """One call in our words."""

    kind: ForeignKind
    tool: str
    """The name that the policy knows it by."""
    arguments: Mapping[str, JsonValue]
    """Ours for what we know: `command`, `path`, `content`, `edits`, `patch`; else as they came."""
    key: str = ""
    """Of a shell: the agent's name of the argument that holds the command, where the agent lets a hook rewrite it."""


class ForeignTool(Record):
    """How one tool of an agent is read: which argument means what.

    INVARIANT: an argument that stands nowhere here makes the call an unknown one, which is at least asked about: it may
    change what all the others mean.
    """

    kind: ForeignKind
    takes: Mapping[str, str] = {}
    """The agent's name of an argument, and ours: `path`, `content`, `command`, `patch`, `cwd`, `glob`, `old_string`,
    `new_string`, `replace_all`, `unconfined`."""
    ignores: Collection[str] = ()
    """Arguments that change nothing about what a policy judges: a description, a line to begin at."""
    needs: Sequence[str] = ()
    """Of ours, those without which the call is not understood."""

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
    """Return a call of which nothing is known but its name."""
    return ForeignCall(kind=ForeignKind.UNKNOWN, tool=name, arguments=dict(arguments))
