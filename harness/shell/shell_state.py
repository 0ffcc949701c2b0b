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
    """Raised if a part of the line makes the meaning of the rest unknown."""

    def __init__(self, reason: str, part: str) -> None:
        """Keep the reason, for the user, and the part of the line that it refers to."""
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
    """Absolute folders that the shell may be in. Empty if unknown."""
    values: Mapping[str, str | None]
    """Variables set in the line, with their value, or `None` if it is unknown. Others have the values of the
    environment.

    A `Temporary` represents a path in a known folder, with an unknown name.
    """
    exported: frozenset[str] = frozenset()
    """Variables that the line exports to later commands."""
    integers: frozenset[str] = frozenset()
    """Variables that hold an integer of unknown value."""
    before: tuple[str, ...] = ()
    """Folders that `cd -` may go to. Empty if unknown."""
    stack: tuple[tuple[str, ...], ...] | None = ()
    """Stack for `popd`: for each entry, the folders that it may be, empty if unknown. `None` if the depth is unknown."""
    elsewhere: bool = False
    """Whether commands run in another, unknown folder, although their paths are relative to `folders`."""
    fed: bool = False
    """Whether commands get input from a pipe or a redirection (see actions.Command)."""
    lines: Lines | None = None
    """The variable that holds one of `names` in each round, within the body of a loop over names."""
    names: FileNames | None = None
    """Names of files that a command in a pipeline gets as input. `None` if they are unknown."""

    @property
    def has_own_tmpdir(self) -> bool:
        """Whether TMPDIR, if set, is still the private folder of the call."""
        return "TMPDIR" not in self.values and "TMPDIR" not in self.exported

    def with_value(self, name: str, value: str | None, *, integer: bool = False) -> ShellState:
        """Return the state after `name` was set to `value`. With `integer` and `None`, the value is an unknown integer."""
        integers = self.integers | {name} if integer and value is None else self.integers - {name}
        return replace(self, values={**self.values, name: value}, integers=integers)

    def holds_integer(self, name: str) -> bool:
        """Return whether the value of a variable is certainly an integer."""
        value = self.values.get(name)
        return name in self.integers or (value is not None and is_integer(value))

    def handing_on(self, name: str) -> ShellState:
        """Return the state after `name` was exported."""
        return replace(self, exported=self.exported | {name})

    def touching(self, name: str) -> ShellState:
        """Return the state after `name` was set or unset. Variables that commands always get count as exported."""
        return self.handing_on(name) if name in PASSED or name in SET or steers(name) else self

    def reading(self, redirections: Sequence[Redirection]) -> ShellState:
        """Return the state inside a command with these redirections, where `fed` is set if one replaces stdin."""
        fed = any("<" in each.operator and each.descriptor in (None, 0) for each in redirections)
        return replace(self, fed=True) if fed else self

    def forgetting(self, names: frozenset[str]) -> ShellState:
        """Return the state with the values of `names` unknown."""
        if not names:
            return self
        return replace(self, values={**self.values, **dict.fromkeys(names)}, integers=self.integers - names)

    def in_folders(self, folders: tuple[str, ...], stack: tuple[tuple[str, ...], ...] | None) -> ShellState:
        """Return the state after the shell went to one of `folders`."""
        return replace(self, folders=folders, before=self.folders, stack=stack)

    def counting(self, names: frozenset[str]) -> ShellState:
        """Return the state in which the unknown values of `names` are integers."""
        return replace(self, integers=self.integers | names) if names else self

    def in_a_new_shell(self) -> ShellState:
        """Return the state of a shell that a command starts, which has only the exported variables."""
        handed = self.exported | {"TMPDIR"}  # TMPDIR may be unset, as by `env -i`
        values = {name: value for name, value in self.values.items() if name in handed}
        return replace(self, values=values, integers=self.integers & self.exported, before=(), stack=())


class Outcome(Record):
    """The states after a command that succeeded or failed. `None` if the shell does not continue in that case."""

    ok: ShellState | None
    failed: ShellState | None

    def either(self) -> ShellState | None:
        """Return the state after the command if it is unknown whether it succeeded."""
        return merged(self.ok, self.failed)


def merged(first: ShellState | None, second: ShellState | None) -> ShellState | None:
    """Return the facts that are true in both states. If one is `None`, return the other."""
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
    """Return the value if it is the same in both cases, otherwise `None` (unknown)."""
    if first != second:
        return None
    return second if isinstance(second, Temporary) and not second.certain else first


def either_folder(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of both. Empty if those of either are unknown, or if there are more than `MAX_FOLDERS`."""
    folders = tuple(dict.fromkeys((*first, *second))) if first and second else ()
    return folders if len(folders) <= MAX_FOLDERS else ()
