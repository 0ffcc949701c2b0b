"""The disk as the reader of a command sees it: its interface (`Disk`), and a wrapper that records answers (`Witness`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from harness.actions import Access, PathAccess
from harness.programs.git_pathspecs import ShownFiles
from harness.record import replace

_Answer = TypeVar("_Answer")

MAX_NAMES = 2_000_000
"""Maximum number of file names below folders per line. Listings beyond it count as incomplete, which leads to a question."""
MAX_PATTERNS = 200
"""Maximum number of different file name patterns to look up per line; the matches of others are unknown."""


MAX_LISTS = 20
"""Maximum number of different folders per line whose names are tested for use in a list (see `plain_below`)."""


class Disk(Protocol):
    """The disk, for reading a command. `Workspace` implements it; a simpler one serves the examples in policies."""

    root: str
    home: str

    def resolve_word(
        self, word: str, access: Access, cwd: str | None = None, *, entry: bool = False
    ) -> PathAccess | None:
        """Return the path that a word leads to, or with `entry` the place of the name itself.

        `None` for a word that cannot name a file.
        """

    def look_below(
        self,
        path: PathAccess,
        *,
        follows: bool,
        only: Sequence[str] = (),
        skips: Sequence[str] = (),
        excluded: Sequence[str] = (),
        hidden: bool = True,
        ignore_files: Sequence[str] = (),
    ) -> PathAccess:
        """Return the path with the names of the files below it."""

    def look_tracked(self, path: PathAccess, selection: ShownFiles, *, sure: bool, follows: bool = False) -> PathAccess:
        """Return git's folder `path` with the names of the tracked files that git would show.

        If the state of the disk is not `sure`, a word that may be a revision does not restrict the names. With
        `follows`, the targets of links are included.
        """

    def plain_tracked(self, folder: str, selection: ShownFiles, *, split: str, nul: bool) -> bool:
        """Return whether the names that git lists in an absolute folder can form a list. With `nul`, they end with NUL."""

    def exists(self, path: str) -> bool:
        """Return whether an absolute path exists."""

    def plain_below(
        self,
        folder: str,
        *,
        only: Sequence[str],
        skips: Sequence[str],
        excluded: Sequence[str] = (),
        split: str,
        bare: bool,
    ) -> bool:
        """Return whether the names below an absolute folder can form a list of names."""

    def is_folder(self, path: str) -> bool:
        """Return whether an absolute path is a folder that `cd` can enter."""

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """Return the matches of a file name pattern, or `None` if they are not certain."""

    def git_problem(self, folder: str, cwd: str) -> str | None:
        """Return the reason why git in that folder may run programs that the repository names, or `None`."""

    def git_top(self, folder: str, cwd: str) -> str:
        """Return the top of the git repository that contains a folder, or the folder itself."""

    def git_places(self, folder: str, cwd: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:
        """Return the places outside the workspace that git writes and the repository itself names, and the place that
        only a file in that folder names. Either is empty if there are none.
        """

    def git_remotes(self, folder: str, cwd: str) -> tuple[str, ...]:
        """Return the addresses of all remotes of the repository around a folder. Empty if one may be missing."""


class Witness:
    """A wrapper of a disk for one command line. It caches answers, limits their number, and can check them again.

    While the answers stay the same, the line has the same meaning, which depends only on the line and these answers.
    The names of files below a folder are not checked again, since no command depends on them.

    INVARIANT: `still_holds` checks again whether names can form a list. From a name added in between, xargs could make a
    word that leads anywhere.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.root = disk.root
        self.home = disk.home
        self._answers: list[tuple[Callable[[], object], object]] = []
        self._below: dict[tuple[object, ...], PathAccess] = {}
        self._words: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self._plain: dict[tuple[object, ...], bool] = {}
        self._git: dict[tuple[str, str], str | None] = {}
        self._names = 0

    def still_holds(self) -> bool:
        """Ask the disk everything again. Return whether all answers are the same."""
        return all(_same(ask(), answer) for ask, answer in self._answers)

    def _noted(self, ask: Callable[[], _Answer]) -> _Answer:
        answer = ask()
        self._answers.append((ask, answer))
        return answer

    def resolve_word(
        self, word: str, access: Access, cwd: str | None = None, *, entry: bool = False
    ) -> PathAccess | None:
        """Return the path that a word leads to, or with `entry` the place of the name itself."""
        return self._noted(partial(self._disk.resolve_word, word, access, cwd, entry=entry))

    def look_below(
        self,
        path: PathAccess,
        *,
        follows: bool,
        only: Sequence[str] = (),
        skips: Sequence[str] = (),
        excluded: Sequence[str] = (),
        hidden: bool = True,
        ignore_files: Sequence[str] = (),
    ) -> PathAccess:
        """Return the path with the names of the files below it. Incomplete if the line has too many names."""
        return self._bounded(
            path,
            (path.real, follows, tuple(only), tuple(skips), tuple(excluded), hidden, tuple(ignore_files)),
            partial(
                self._disk.look_below,
                path,
                follows=follows,
                only=only,
                skips=skips,
                excluded=excluded,
                hidden=hidden,
                ignore_files=ignore_files,
            ),
        )

    def look_tracked(self, path: PathAccess, selection: ShownFiles, *, sure: bool, follows: bool = False) -> PathAccess:
        """Return git's folder with the names of the tracked files that git would show. Incomplete after too many names."""
        return self._bounded(
            path,
            (path.real, selection, sure, follows),
            partial(self._disk.look_tracked, path, selection, sure=sure, follows=follows),
        )

    def plain_tracked(self, folder: str, selection: ShownFiles, *, split: str, nul: bool) -> bool:
        """Return whether the names that git lists in a folder can form a list of names. False after too many lists."""
        return self._cached_list(
            (folder, selection, split, nul), partial(self._disk.plain_tracked, folder, selection, split=split, nul=nul)
        )

    def _cached_list(self, key: tuple[object, ...], look: Callable[[], bool]) -> bool:
        if key not in self._plain:
            self._plain[key] = len(self._plain) < MAX_LISTS and self._noted(look)
        return self._plain[key]

    def _bounded(self, path: PathAccess, key: tuple[object, ...], look: Callable[[], PathAccess]) -> PathAccess:
        listing = self._below.get(key)
        if listing is None:
            if self._names > MAX_NAMES:
                return replace(path, tree=True, is_whole=False)
            listing = self._below[key] = look()
        self._names += len(listing.below)
        if self._names > MAX_NAMES:
            return replace(path, tree=True, is_whole=False)
        return replace(path, tree=True, below=listing.below, is_whole=listing.is_whole)

    def exists(self, path: str) -> bool:
        """Return whether an absolute path exists."""
        return self._noted(partial(self._disk.exists, path))

    def plain_below(
        self,
        folder: str,
        *,
        only: Sequence[str],
        skips: Sequence[str],
        excluded: Sequence[str] = (),
        split: str,
        bare: bool,
    ) -> bool:
        """Return whether the names below a folder can form a list of names. False after too many folders."""
        return self._cached_list(
            (folder, tuple(only), tuple(skips), tuple(excluded), split, bare),
            partial(self._disk.plain_below, folder, only=only, skips=skips, excluded=excluded, split=split, bare=bare),
        )

    def is_folder(self, path: str) -> bool:
        """Return whether an absolute path is a folder that `cd` can enter."""
        return self._noted(partial(self._disk.is_folder, path))

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """Return the matches of a file name pattern, or `None` if they are not certain."""
        if (pattern, cwd) not in self._words:
            sure = len(self._words) < MAX_PATTERNS
            self._words[pattern, cwd] = self._noted(partial(self._disk.expand, pattern, cwd)) if sure else None
        return self._words[pattern, cwd]

    def git_problem(self, folder: str, cwd: str) -> str | None:
        """Return the reason why git in that folder may run programs that the repository names, or `None`."""
        if (folder, cwd) not in self._git:
            self._git[folder, cwd] = self._noted(partial(self._disk.git_problem, folder, cwd))
        return self._git[folder, cwd]

    def git_top(self, folder: str, cwd: str) -> str:
        """Return the top of the git repository that contains a folder, or the folder itself."""
        return self._noted(partial(self._disk.git_top, folder, cwd))

    def git_places(self, folder: str, cwd: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:
        """Return the places outside the workspace that git writes and the repository itself names, and the place that
        only a file in that folder names. Either is empty if there are none.
        """
        return self._noted(partial(self._disk.git_places, folder, cwd, worktrees=worktrees))

    def git_remotes(self, folder: str, cwd: str) -> tuple[str, ...]:
        """Return the addresses of all remotes of the repository around a folder. Empty if one may be missing."""
        return self._noted(partial(self._disk.git_remotes, folder, cwd))


def _same(new: object, old: object) -> bool:
    """Return whether two answers are the same. A difference in `shared` (further hard links) is ignored."""
    if isinstance(new, PathAccess) and isinstance(old, PathAccess):
        return replace(new, shared=False) == replace(old, shared=False)
    return new == old
