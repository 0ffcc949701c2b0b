"""Parts: the facets of a command line as they are found, and where its words lead; asks the disk, decides nothing. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from harness.actions import Access, Act, Command, Facet, Opaque, PathAccess
from harness.programs.git_pathspecs import Shown
from harness.programs.model import Names, PathUse, Unknown, Use
from harness.programs.python import LIBRARY
from harness.record import replace
from harness.shell.builtins import normal_path
from harness.shell.expand import PIPE_FILE, Disk, Expander
from harness.shell.remembered_disk import Remembered
from harness.shell.state import MAX_FOLDERS, Outcome, State, StopReading
from harness.shell.syntax import Pattern, Redirection, Script, Word

MAX_FACETS = 4_000
"""A line of more parts is opaque. What was read of it is judged to the last part: no bound lowers a verdict."""

_NOWHERE = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", PIPE_FILE))
"""What a redirection or an operand of this very name reads or writes is nobody's file."""
_REDIRECTED = {
    "<": Access.READ,
    ">": Access.WRITE,
    ">>": Access.WRITE,
    ">|": Access.WRITE,
    "&>": Access.WRITE,
    "&>>": Access.WRITE,
    ">&": Access.WRITE,
    "<>": Access.EITHER,
}


class Stdin:
    """What a command reads from its redirections: constant text, and files."""

    __slots__ = ("paths", "text")

    def __init__(self, text: str | None = None, paths: tuple[PathAccess, ...] = ()) -> None:
        self.text = text
        self.paths = paths


class Parts(ABC):
    """The facets of one line."""

    def __init__(self, disk: Disk, text: str) -> None:
        self.disk: Disk = Remembered(disk)
        self.text = text
        self.facets: list[Facet] = []
        self._opaque: dict[tuple[str, str, str], Opaque] = {}
        self.disk_changed = False
        """Whether something before may have changed the disk, so that it says nothing of what patterns stand for."""

    def expander(self, state: State) -> Expander:
        """Return what expands the words of a command in `state`.

        What is in `$( )` or `<( )` may find only the rest of what is in the pipe: of names, not even whole ones.
        """
        return Expander(
            self.disk, replace(state, names=None), self.names_in, sure_of_disk=lambda: not self.disk_changed
        )

    def words(self, words: Sequence[Word], expander: Expander) -> list[str]:
        """Return what bash makes of several words: it runs what is in `$( )` in all of them before it looks up patterns."""
        before = self.disk_changed
        values = [value for word in words for value in expander.words(word)]
        if self.disk_changed and not before:
            values = [value for word in words for value in expander.words(word)]
        return values

    @abstractmethod
    def script(self, script: Script, state: State) -> Outcome:
        """Read a whole script, as the text of a `bash -c` or of a `$( )` is one."""

    @abstractmethod
    def names_in(self, script: Script, state: State) -> Names | None:
        """Read the script of a `$( )`; return what is known of the names of files that it prints, and nothing else."""

    def add(self, facet: Facet) -> None:
        """Keep one more facet. Raises StopReading where there are too many."""
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

    def add_opaque(self, reason: str, part: str, state: State) -> None:
        """Keep a piece of the line that was not understood; what may be in it is judged by strict rules."""
        from harness.shell.loose_reading import loose_opaque

        key = (reason, part, (state.folders or (self.disk.root,))[0])
        if key not in self._opaque:  # a loop has the same part in every round
            column = max(self.text.find(part), 0) + 1
            self._opaque[key] = loose_opaque(part, reason, column, self.disk, key[2])
        self.add(self._opaque[key])

    def resolved(self, word: str, access: Access, state: State, *, entry: bool = False) -> list[PathAccess]:
        """Return where a word of a command leads, from every folder that the shell may be in.

        With `entry` it is where the name itself lies, also of a link.
        """
        if word in _NOWHERE or word.startswith("/dev/null/"):
            return []
        name = f"./{word}" if word.startswith("~") else word  # bash has replaced the ~ that it means
        folders = state.folders or (self.disk.root,)
        found = [self.disk.resolve_word(name, access, folder, entry=entry) for folder in folders]
        return [replace(path, written=word) if name is not word else path for path in found if path is not None]

    def used(self, path: PathUse, use: Use, state: State) -> list[PathAccess]:
        """Return where a path of a model's `Use` leads, with the files below it where these are meant too.

        A name that may be moved or removed is meant itself: where it is a link, besides what that leads to.
        """
        found = self.led_to(path, use, state)
        if not path.entry and path.access is not Access.EITHER:
            return found
        entries = {each.real: each for each in self.resolved(path.word, path.access, state, entry=True)}
        found = [replace(each, entry=entries.pop(each.real, None) is not None) for each in found]
        return [*found, *entries.values()]

    def led_to(self, path: PathUse, use: Use, state: State) -> list[PathAccess]:
        """Return where a path of a model's `Use` leads, links followed, with the files below it."""
        found = self.resolved(path.word, path.access, state)
        if path.tracked is not None:
            steered = any(name.startswith("GIT_") for name in state.exported)  # GIT_LITERAL_PATHSPECS: `:!x` is a name
            what = Shown() if steered else path.tracked
            looked = (self.disk.look_tracked(each, what, sure=not self.disk_changed) for each in found)
            return [replace(each, tracked=True) for each in looked]
        if path.exclusion and not self.disk_changed:
            found = [each for each in found if self.disk.exists(each.real)]
        if path.at_top and use.git_folder is not None:
            tops = tuple(self.disk.git_top(use.git_folder, folder) for folder in state.folders)
            # Behind the folder of a -C the word is longer than git reads it; its name at the top is what follows.
            word = path.word.removeprefix(f"{use.git_folder}/")
            found += self.resolved(word, path.access, replace(state, folders=tops))
        if not path.tree or (path.compared and not self.compares(use, state)):
            return found
        if path.handed is not None:  # named one by one: only what the finder left out is left out
            names = path.handed
            if names.tracked is not None:
                return [self.disk.look_tracked(f, names.tracked, sure=True, follows=True) for f in found]
            only = names.only if path.only == names.only or not names.folders else ()
            return [
                self.disk.look_below(f, follows=True, only=only, skips=names.skips, hidden=names.hidden) for f in found
            ]
        skips = () if path.compared and self.compares_folders(use, state) else path.skips
        return [
            self.disk.look_below(f, follows=path.follows, only=path.only, skips=skips, hidden=path.hidden)
            for f in found
        ]

    def compares(self, use: Use, state: State) -> bool:
        """Say whether `git diff` may compare its operands with all that is in them, instead of taking pathspecs.

        It does outside a repository, and in one that git does not trust; there it complains of a name that does not exist.
        """
        return self.disk_changed or all(any(map(self.disk.exists, reals)) for reals in self._compared(use, state))

    def compares_folders(self, use: Use, state: State) -> bool:
        """Say whether these may be folders."""
        return self.disk_changed or all(any(map(self.disk.is_folder, reals)) for reals in self._compared(use, state))

    def _compared(self, use: Use, state: State) -> list[list[str]]:
        """Return where the operands that `git diff` may compare lie.

        Stdin (`-`, behind the folder of a -C) counts as a folder: beside it, all of the other folder is listed.
        """
        words = [path for path in use.paths if path.compared and path.word.rpartition("/")[2] != "-"]
        return [[found.real for found in self.resolved(path.word, path.access, state)] for path in words]

    def may_import(self, state: State) -> bool:
        """Say whether something in the folder at hand may take the place of a module of Python's library."""
        if self.disk_changed or state.elsewhere or not state.folders:
            return True
        return any(self._holds_a_module(folder) for folder in state.folders)

    def _holds_a_module(self, folder: str) -> bool:
        names = self.disk.expand("*", folder)
        if names is None:
            return True
        likely = [name for name in names if _is_module(name)]
        # A folder without an __init__ comes behind the library.
        return any("." in name or self.disk.expand(f"{name}/__init__*", folder) != () for name in likely)

    def git_problem(self, use: Use, state: State) -> str:
        """Return why a git command may run what the repository names, wherever the shell may be; or nothing."""
        if use.git_folder is None:
            return ""
        if state.elsewhere or not state.folders:
            return "the folder that it runs in is not known"
        problems = (self.disk.git_problem(use.git_folder, folder) for folder in state.folders)
        return next((problem for problem in problems if problem is not None), "")

    def folders_after_cd(
        self, target: str, state: State, *, physical: bool
    ) -> tuple[list[PathAccess], tuple[str, ...]]:
        """Return the paths that `cd TARGET` may go to, and the folders that the shell may be in behind it.

        bash goes to the folder that the path names as it is written, or where that is none, as the kernel reads it.
        """
        paths: list[PathAccess] = []
        folders: dict[str, None] = {}
        for folder in state.folders or (self.disk.root,):
            here = replace(state, folders=(folder,))
            written = normal_path(folder, target)
            ends = self.resolved(target, Access.READ, here)
            first = self.resolved(written, Access.READ, here)
            if [path.real for path in first] == [path.real for path in ends] and not physical:
                folders[written] = None  # both readings agree: a later `cd ..` goes back as it was written
            else:
                ends += first
                folders.update(dict.fromkeys(path.real for path in ends))
            paths += ends
        return list(dict.fromkeys(paths)), tuple(folders) if len(folders) <= MAX_FOLDERS else ()

    def redirected(
        self,
        redirections: Sequence[Redirection],
        state: State,
        *,
        commandless: bool = True,
    ) -> Stdin:
        """Add the targets of redirections as facets; what a command reads by them is returned, as an operand of it."""
        stdin = Stdin()
        for each in redirections:
            value = self.expander(state).value(each.target)
            if each.descriptor in (None, 0) and "<" in each.operator:  # the last of these is what is read
                text = each.operator in ("<<", "<<<") and not isinstance(value, Unknown)
                stdin = Stdin(value if text else None, stdin.paths)
            elif each.descriptor == 0:
                stdin = Stdin(None, stdin.paths)
            if each.operator in ("<<", "<<<"):
                continue
            if each.operator in (">&", "<&") and (value == "-" or value.removesuffix("-").isdigit()):
                continue
            self._check_target(each, value, state)
            access = _REDIRECTED[each.operator]
            for path in self.resolved(value, access, state):
                if access is Access.READ and not commandless:
                    stdin = Stdin(stdin.text, (*stdin.paths, path))
                else:
                    self.add(path)
        return stdin

    def _check_target(self, redirection: Redirection, value: str, state: State) -> None:
        part = self.text[redirection.start : redirection.end]
        if isinstance(value, Unknown) or redirection.operator == "<&" or is_pattern(redirection.target):
            raise StopReading("a redirection whose target is not plain", part)
        if value.startswith(("/dev/tcp/", "/dev/udp/")):
            raise StopReading("a redirection to the network", part)
        if not state.folders and not value.startswith("/"):
            raise StopReading("a redirection in a folder that is not known", part)


def _is_module(name: str) -> bool:
    module = name.partition(".")[0]
    return module in LIBRARY or (module.startswith("_") and module != "__pycache__")


def is_pattern(word: Word) -> bool:
    """Say whether a word has a file name pattern in it."""
    return any(isinstance(piece, Pattern) for piece in word.pieces)
