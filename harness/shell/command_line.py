"""State while one command line is read: its facets so far, expansion of its words, and resolution of their paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.actions import Access, Act, Command, Facet, Opaque, PathAccess, Place
from harness.programs.program import TEMPORARY_FOLDER, FileNames
from harness.record import replace
from harness.shell.disk import Disk
from harness.shell.expansion import PIPE_FILE, Expander
from harness.shell.loose_words import loose_opaque
from harness.shell.shell_state import ShellState, StopReading
from harness.shell.syntax import Script, Word

MAX_FACETS = 4_000
"""Maximum facets of a line. A line with more is opaque, and all facets read so far count: the limit never loosens a verdict.
"""

_NOWHERE = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", PIPE_FILE))
"""Names that do not count as files, if a redirection or an operand is exactly this name."""

_PUBLIC = "HOME, PATH and the like may be used, and variables that the line itself sets."
"""Advice on a line that uses other variables."""


class CommandLine:
    """The state that the readers of one command line share."""

    def __init__(
        self,
        disk: Disk,
        text: str,
        substituted: Callable[[Script, ShellState], FileNames | None],
        *,
        own_environment: bool = True,
    ) -> None:
        """Keep the line, and the function that reads the commands inside a word (see `Expander`).

        With `own_environment`, the line has the few variables of our commands, among which is no secret.
        """
        self.disk = disk
        self.text = text
        self.facets: list[Facet] = []
        self.disk_changed = False
        """Whether an earlier part of the line may have changed the disk. If so, the matches of patterns are unknown."""
        self.layers = 0
        """Nesting level: number of enclosing commands that run other commands."""
        self._substituted = substituted
        self._own_environment = own_environment
        self._opaque: dict[tuple[str, str, str], Opaque] = {}

    def expander(self, state: ShellState) -> Expander:
        """Return the expander for the words of a command in `state`.

        File names in the pipe are not passed on to commands in `$( )` or `<( )`: they may find only a part of the data,
        with incomplete names.
        """
        return Expander(
            self.disk,
            replace(state, names=None),
            self._substituted,
            sure_of_disk=lambda: not self.disk_changed,
            on_foreign=lambda name: self.uses_environment(f"${name}", state),
        )

    def uses_environment(self, part: str, state: ShellState) -> None:
        """Note a part that uses or prints variables of the environment. In an environment of others, it is opaque."""
        if not self._own_environment:
            self.add_opaque("variables that may hold keys", part, state, hint=_PUBLIC)

    def expanded_words(self, words: Sequence[Word], expander: Expander) -> list[str]:
        """Return bash's expansion of several words. bash runs every `$( )` in them before it matches patterns."""
        before = self.disk_changed
        values = [value for word in words for value in expander.words(word)]
        if self.disk_changed and not before:
            values = [value for word in words for value in expander.words(word)]
        return values

    def add(self, facet: Facet) -> None:
        """Add a facet. Raises StopReading if there are too many."""
        if len(self.facets) >= MAX_FACETS:
            raise StopReading(f"more than {MAX_FACETS} parts", "")
        self.facets.append(facet)
        match facet:
            case Command():
                changes = facet.act not in (Act.LOOKS, Act.WRAPS) or any(
                    p.access is not Access.READ for p in facet.paths
                )
            case PathAccess():
                changes = facet.access is not Access.READ
            case _:
                changes = True
        self.disk_changed = self.disk_changed or changes

    def add_opaque(
        self, reason: str, part: str, state: ShellState, *, given_to: Command | None = None, hint: str = ""
    ) -> None:
        """Add a part of the line that could not be parsed, with the loose words in it for strict rules."""
        key = (reason, part, (state.folders or (self.disk.root,))[0])
        if key not in self._opaque:  # a loop has the same part in every round
            column = max(self.text.find(part.partition("\n")[0]), 0) + 1
            self._opaque[key] = replace(
                loose_opaque(part, reason, column, self.disk, key[2]), given_to=given_to, hint=hint
            )
        self.add(self._opaque[key])

    def resolved(self, word: str, access: Access, state: ShellState, *, entry: bool = False) -> list[PathAccess]:
        """Return the paths that a word of a command resolves to, from each folder that the shell may be in.

        With `entry`, a link is not followed: the path is that of the name itself.
        """
        if word in _NOWHERE or word.startswith("/dev/null/"):
            return []
        if word.startswith(TEMPORARY_FOLDER):
            below = word.removeprefix(TEMPORARY_FOLDER)
            if state.has_own_tmpdir:
                name, place = f"$TMPDIR{below}", Place.TEMPORARY
                return [PathAccess(written=name, real=name, names=(name,), access=access, place=place, entry=entry)]
            word = f"/tmp{below}"  # noqa: S108 - a name, for people
        name = f"./{word}" if word.startswith("~") else word  # a `~` for a home folder is already expanded
        folders = state.folders or (self.disk.root,)
        accesses = []
        for folder in folders:
            path = self.disk.resolve_word(name, access, folder, entry=entry)
            if path is not None:
                accesses.append(path if name is word else replace(path, written=word))
        return accesses
