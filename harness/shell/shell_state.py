"""The known state of the shell between two commands: its folder, its variables, its exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.programs.program import FileNames, Temporary
from harness.programs.variables import PASSED, SET, changes_the_shell, steers
from harness.record import Record, replace
from harness.shell.arithmetic import is_integer
from harness.shell.loops import Lines
from harness.shell.syntax import Redirection

MAX_FOLDERS = 4
"""Maximum number of folders that the shell may be in at one place of a line; beyond it, the folder is unknown."""


class StopReading(Exception):
    """Raised if a part changes how the rest of the line runs: no later part can be trusted."""

    def __init__(self, reason: str, part: str) -> None:
        """Take the reason, for a person, and the piece of the line that it is about."""
        super().__init__(reason)
        self.reason = reason
        self.part = part


def check_variable(name: str, part: str) -> None:
    """Raise StopReading if setting this variable changes the shell itself."""
    if changes_the_shell(name):
        raise StopReading(f"{name} is set, which changes how the rest is run", part)


class ShellState(Record):
    """The known state of the shell at one place of a line. Unknown facts are absent."""

    folders: tuple[str, ...]
    """Every folder, absolute, that it may be in; empty where that is not known."""
    values: Mapping[str, str | None]
    """Variables set in the line, with their value, or `None` if it is unknown. Others have the values of the
    environment.

    A `Temporary` represents a path in a known folder, with an unknown name.
    """
    exported: frozenset[str] = frozenset()
    """Variables that the line hands on to the commands that follow."""
    integers: frozenset[str] = frozenset()
    """Variables that hold an integer of unknown value."""
    before: tuple[str, ...] = ()
    """Every folder that `cd -` may go to; empty where that is not known."""
    stack: tuple[tuple[str, ...], ...] | None = ()
    """For each `popd`, every folder that it may go to, empty where that is not known; None where their number is not."""
    elsewhere: bool = False
    """Whether what runs here does so in another folder, which is not known, while its paths are told as seen from here."""
    fed: bool = False
    """Whether what runs here reads something that is not in its words (see actions.Command)."""
    lines: Lines | None = None
    """The variable that holds one of `names` in each round, within the body of a loop over names."""
    names: FileNames | None = None
    """Names of files that a command in a pipeline gets as input. `None` if they are unknown."""

    @property
    def has_own_tmpdir(self) -> bool:
        """Whether TMPDIR names the private folder that the call was given, if it is set at all."""
        return "TMPDIR" not in self.values and "TMPDIR" not in self.exported

    def with_value(self, name: str, value: str | None, *, integer: bool = False) -> ShellState:
        """Return the state after `name` was set to `value`; `integer`: to some integer, where the value is None."""
        integers = self.integers | {name} if integer and value is None else self.integers - {name}
        return replace(self, values={**self.values, name: value}, integers=integers)

    def holds_integer(self, name: str) -> bool:
        """Say whether a variable holds an integer for sure."""
        value = self.values.get(name)
        return name in self.integers or (value is not None and is_integer(value))

    def handing_on(self, name: str) -> ShellState:
        """Return the state after `name` was exported."""
        return replace(self, exported=self.exported | {name})

    def touching(self, name: str) -> ShellState:
        """Return the state after `name` was set or unset: one that commands are given anyway is handed on changed."""
        return self.handing_on(name) if name in PASSED or name in SET or steers(name) else self

    def reading(self, redirections: Sequence[Redirection]) -> ShellState:
        """Return the state within a command with these redirections: whether one of them feeds it."""
        fed = any("<" in each.operator and each.descriptor in (None, 0) for each in redirections)
        return replace(self, fed=True) if fed else self

    def forgetting(self, names: frozenset[str]) -> ShellState:
        """Return the state in which the values of `names` are not known."""
        if not names:
            return self
        return replace(self, values={**self.values, **dict.fromkeys(names)}, integers=self.integers - names)

    def in_folders(self, folders: tuple[str, ...], stack: tuple[tuple[str, ...], ...] | None) -> ShellState:
        """Return the state after the shell went to one of `folders`."""
        return replace(self, folders=folders, before=self.folders, stack=stack)

    def counting(self, names: frozenset[str]) -> ShellState:
        """Return the state in which `names`, whose values are not known, hold integers."""
        return replace(self, integers=self.integers | names) if names else self

    def in_a_new_shell(self) -> ShellState:
        """Return the state of a shell that a command starts: it has only those variables that are handed on to it."""
        handed = self.exported | {"TMPDIR"}  # which may have been taken away, as by `env -i`
        values = {name: value for name, value in self.values.items() if name in handed}
        return replace(self, values=values, integers=self.integers & self.exported, before=(), stack=())


class Outcome(Record):
    """The state after a command, by whether it succeeded; None where the shell does not go on."""

    ok: ShellState | None
    failed: ShellState | None

    def either(self) -> ShellState | None:
        """Return the state after it, whether it succeeded or not."""
        return merged(self.ok, self.failed)


def merged(first: ShellState | None, second: ShellState | None) -> ShellState | None:
    """Return the facts that hold in both states. `None` is the absence of a state."""
    if first is None or second is None or first is second:
        return first or second
    stack = None
    if first.stack is not None and second.stack is not None and len(first.stack) == len(second.stack):
        stack = tuple(map(either_folder, first.stack, second.stack))
    names = first.values.keys() | second.values.keys()
    values = {name: _either_value(first.values.get(name), second.values.get(name)) for name in names}
    return ShellState(
        folders=either_folder(first.folders, second.folders),
        values=values,
        exported=first.exported | second.exported,
        integers=frozenset(
            n for n in names if values[n] is None and first.holds_integer(n) and second.holds_integer(n)
        ),
        before=either_folder(first.before, second.before),
        stack=stack,
        elsewhere=first.elsewhere or second.elsewhere,
        fed=first.fed or second.fed,
    )


def _either_value(first: str | None, second: str | None) -> str | None:
    """Return the value that holds in both cases, or None."""
    if first != second:
        return None
    return second if isinstance(second, Temporary) and not second.certain else first


def either_folder(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of both. Empty if those of either are unknown, or if there are more than `MAX_FOLDERS`."""
    folders = tuple(dict.fromkeys((*first, *second))) if first and second else ()
    return folders if len(folders) <= MAX_FOLDERS else ()
