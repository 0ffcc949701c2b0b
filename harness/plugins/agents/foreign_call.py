"""Translate a call of another agent's tool into our terms: a command, a file access, a patch, or an unknown call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.record import Record
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE

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
}
"""Tool name that a policy sees for a call of each kind. Calls of other kinds keep the agent's name of the tool."""


class ForeignCall(Record):
    """One translated call."""

    kind: ForeignKind
    tool: str
    """Tool name that the policy sees."""
    arguments: Mapping[str, JsonValue]
    """Arguments with our names, such as `command`, `path`, `content`, `patch`; unchanged for an unknown call."""
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
    `new_string`, `replace_all`, `edits`, `unconfined`."""
    ignores: Collection[str] = ()
    """Arguments that do not matter to a policy, such as a description or a first line."""
    needs: Sequence[str] = ()
    """Required arguments, by our names. A call without one of them counts as unknown."""

    def read(self, name: str, arguments: Mapping[str, JsonValue]) -> ForeignCall:
        """Translate a call of the tool `name`. A call that is not understood becomes an unknown call."""
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
