"""Walk through a workspace to find its protected places: protected names, and the parts of them that matter."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from harness.files.folders import open_to_list
from harness.files.place_looks import PlaceLook, Stamp, is_sure, look_at, stamp_of, status_at
from harness.paths import fold, is_within, is_within_any
from harness.policy.built_in import PROTECTED_NAMES, is_entry_name

MOST_FOLDERS = 4_000
"""Maximum number of examined folders, nearest to the root first. Names are protected at any depth."""
MOST_ENTRIES = 200_000
"""Maximum number of entries in all folders that are examined."""
MOST_PLACES = 4_000
"""Maximum number of places, including entry points. A large repository has one of those in each package."""
MOST_KEPT_BYTES = 16_000_000
"""Maximum total size of kept contents, in bytes. They are in memory, and are stored if a file changed."""
NEVER_ENTERED = frozenset(
    ("node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox")
)
"""Folders that belong to programs. A protected name in them has no effect on work in the workspace."""
_SURE_NS = 1_000_000_000
"""Minimum age of a change, in nanoseconds, after which another change cannot have the same time stamp."""

_GIT = (
    "config", "config.worktree", "commondir", "gitdir", "hooks/**", "info/attributes", "objects/info/alternates",
    "rebase-merge/git-rebase-todo", "worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
)  # fmt: skip
INSIDE: Mapping[str, tuple[str, ...]] = {
    ".git": _GIT,
    ".hg": ("hgrc",),
    ".svn": (),
    ".jj": ("repo/config.toml", "repo/workspace-config.toml"),
    ".venv": (
        "pyvenv.cfg", "bin/*", "lib/*/site-packages/*.pth", "lib/*/site-packages/sitecustomize.py",
        "lib/*/site-packages/usercustomize.py",
    ),
    ".yarn": ("releases/**", "plugins/**"),
}  # fmt: skip
"""Parts of a protected folder that other programs run or read, if the rest is only data. Default: the whole folder."""
_NO_MODULES = frozenset(("objects", "refs", "logs", "hooks", "info"))
"""Folders of a repository's data that never contain data of a submodule."""

_TOO_MANY = "folders and what lies below them: too many"
_CLOSED = "folders that cannot be listed"


_Key: TypeAlias = tuple[str, bool]
"""A folder, and whether all names in it count (or only protected ones)."""


class _Names(NamedTuple):
    """Content of a folder: the names that matter, and the folders to examine next."""

    stamp: Stamp
    is_sure: bool
    names: tuple[str, ...]
    folders: tuple[str, ...]
    entries: int


class PlacesLook(NamedTuple):
    """The state of all places at one moment."""

    places: dict[str, PlaceLook]
    gaps: tuple[str, ...]
    """Parts that were not examined, in words."""
    followed: tuple[str, ...]
    """Targets of links, if they are in the workspace."""
    protected: tuple[str, ...]
    """Places with a protected name (without the files inside them), and entry points."""
    folders: Mapping[_Key, _Names]
    """The examined folders."""
    passed: frozenset[str]
    """Files beyond the maximum number of compared places."""
    lost: tuple[str, ...]
    """Folders that could be examined before the command but not after it."""


NOTHING_LOOKED_AT = PlacesLook(places={}, gaps=(), followed=(), protected=(), folders={}, passed=frozenset(), lost=())


class Walk:
    """One look at the places of a workspace."""

    def __init__(self, root: str, last: PlacesLook, before: PlacesLook | None) -> None:
        """Use the last look as a cache: its unchanged files and folders are not read again.

        `before` is the look before a command, for a walk after it; its places are examined first. `None` otherwise.
        """
        self._root = root
        self._last = last
        self._before = before
        self._followed = list(before.followed if before else ())
        self._folders: dict[_Key, _Names] = {}
        self._sure_before = time.time_ns() - _SURE_NS
        self._places: dict[str, PlaceLook] = {}
        times = 2 if before else 1  # so that new places leave enough room for the old ones
        self._remaining = {
            "folders": MOST_FOLDERS * times,
            "entries": MOST_ENTRIES * times,
            "places": MOST_PLACES * times,
            "bytes": MOST_KEPT_BYTES,
        }
        self._protected: dict[str, None] = {}
        self._passed: set[str] = set()
        self._lost: list[str] = []
        self._gaps: dict[str, int] = {}

    def look(self, also: Sequence[str]) -> PlacesLook:
        """Return the state of all places, and of the further files `also`.

        INVARIANT: places of the earlier look come first, so that no number of new files can crowd them out.
        """
        for path in also:
            self._add_file(path)
        if self._before is not None:
            for path in self._before.places:
                self._add_file(path)
            for path in self._before.protected:
                self._add_protected(path)
        for path in tuple(self._followed):
            self._add_target(path)
        self._look_into_folders()
        return PlacesLook(
            places=self._places,
            gaps=tuple(f"{count:,} {reason}" for reason, count in self._gaps.items()),
            followed=tuple(self._followed),
            protected=tuple(self._protected),
            folders=self._folders,
            passed=frozenset(self._passed),
            lost=tuple(self._lost),
        )

    def _look_into_folders(self) -> None:
        """Find protected names, nearest to the root first; folders of the last look come before new ones."""
        old, new = deque([""]), deque[str]()
        while old or new:
            folder = old.popleft() if old else new.popleft()
            names = self._names(folder, everything=False)
            if names is None and self._is_enough:
                self._miss(_TOO_MANY, len(old) + len(new))  # this one is counted
                return
            for name in () if names is None else names.names:
                self._add_protected(folder + name)
            for name in () if names is None else names.folders:
                inner = f"{folder}{name}/"
                (old if (inner, False) in self._last.folders else new).append(inner)

    def _miss(self, reason: str, count: int = 1) -> None:
        self._gaps[reason] = self._gaps.get(reason, 0) + count

    # Folders

    def _names(self, folder: str, *, everything: bool) -> _Names | None:
        """Return the protected names in a folder, and its other folders. With `everything`, return all names in it.

        `None` if it is not a folder, cannot be listed, or exceeds the limits.
        """
        key = (folder, everything)
        if self._was_passed_over(folder):
            self._miss(_TOO_MANY)
            return None
        status = status_at(self._root, folder)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return None
        names = None
        if self._is_enough:
            self._miss(_TOO_MANY)
        else:
            names = self._read(key, status)
        if names is None:
            if self._before is not None and key in self._before.folders:
                self._lost.append(folder)
            return None
        self._remaining["folders"] -= 1
        self._remaining["entries"] = max(self._remaining["entries"] - names.entries, 0)
        self._folders[key] = names
        return names

    def _was_passed_over(self, folder: str) -> bool:
        """Return whether a folder may have existed before the command without being examined.

        INVARIANT: a place is reported as created only if it certainly is new, because restoring removes it.
        """
        before = self._before
        if before is None or (folder, False) in before.folders or (folder, True) in before.folders:
            return False
        above, _, name = folder.rstrip("/").rpartition("/")
        keys = [(f"{above}/" if above else "", everything) for everything in (False, True)]
        lists = [before.folders[key] for key in keys if key in before.folders]
        if lists:
            return any(name in names.folders for names in lists)
        if is_within_any(above, before.protected):
            return folder.rstrip("/") in before.places
        return bool(before.gaps) and not any(key in self._folders for key in keys)

    def _read(self, key: _Key, status: os.stat_result) -> _Names | None:
        """Return the names in a folder; an unchanged folder is not read again. `None` if it cannot be listed completely."""
        folder, everything = key
        stamp, names = stamp_of(status), self._last.folders.get(key)
        if names is not None and names.is_sure and names.stamp == stamp:
            return names
        entries = self._entries_of(folder)
        if entries is None:
            return None
        kept_names, folders = (_all if everything else _sorted_out)(entries)
        sure = is_sure(status, self._sure_before)
        return _Names(stamp, sure, tuple(sorted(kept_names)), tuple(sorted(folders)), len(entries))

    @property
    def _is_enough(self) -> bool:
        return not self._remaining["folders"] or not self._remaining["entries"]

    def _entries_of(self, folder: str) -> list[tuple[str, bool]] | None:
        """Return the names in a folder, each with whether it is a folder. `None` if there are too many, or on errors."""
        try:
            descriptor = open_to_list(f"{self._root}/{folder}".rstrip("/"))
        except OSError:
            self._miss(_CLOSED)
            return None
        try:
            with os.scandir(descriptor) as entries:
                max_entries = self._remaining["entries"]
                pairs = [
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry, _ in zip(entries, range(max_entries + 1), strict=False)
                ]
        except OSError:
            self._miss(_CLOSED)
            return None
        finally:
            os.close(descriptor)
        if len(pairs) > max_entries:
            self._remaining["entries"] = 0
            self._miss(_TOO_MANY)
            return None
        return pairs

    # Places

    def _add_protected(self, path: str) -> None:
        """Add a place with a protected name, and the files inside it that matter."""
        status = status_at(self._root, path)
        if status is None:
            return
        if path in self._protected:
            return
        self._protected[path] = None
        self._add(path, status)
        if stat.S_ISDIR(status.st_mode):
            name = fold(path).rpartition("/")[2]
            inside = INSIDE.get(name)
            if inside is None:
                self._add_below(f"{path}/")
            elif name == ".git":
                self._add_repository(f"{path}/")
            else:
                self._add_inside(f"{path}/", inside)

    def _add_below(self, folder: str) -> None:
        """Add everything below a folder."""
        waiting = [folder]
        while waiting:
            inner = waiting.pop()
            names = self._names(inner, everything=True)
            if names is None:
                continue
            for name in names.names:
                self._add_file(inner + name)
            for name in names.folders:
                self._add_file(inner + name)
                waiting.append(f"{inner}{name}/")

    def _add_repository(self, folder: str) -> None:
        """Add the files that control git in the data of a repository and of its submodules."""
        self._add_inside(folder, _GIT)
        waiting = [f"{folder}modules/"]
        while waiting:
            inner = waiting.pop()
            names = self._names(inner, everything=True)
            if names is None:
                continue
            if "HEAD" in names.names:
                self._add_inside(inner, _GIT)
            waiting += [f"{inner}{name}/" for name in names.folders if name not in _NO_MODULES]

    def _add_inside(self, folder: str, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            self._add_matching(folder, pattern.split("/"))

    def _add_matching(self, folder: str, parts: Sequence[str]) -> None:
        """Add the files below a folder that match a pattern: `*` matches within a name, `**` everything."""
        first, *rest = parts
        if first == "**":
            self._add_below(folder)
            return
        if "*" in first:
            content = self._names(folder, everything=True)
            names: Sequence[str] = () if content is None else (*content.names, *content.folders)
            names = [name for name in names if fnmatchcase(name, first)]
        else:
            names = (first,)
        for name in names:
            path = folder + name
            status = status_at(self._root, path)
            if status is None:
                continue
            if stat.S_ISDIR(status.st_mode) and rest:
                if rest == ["**"]:
                    self._add(path, status)
                self._add_matching(f"{path}/", rest)
            elif not rest or not stat.S_ISREG(status.st_mode):  # a link or a pipe in the place of a folder
                self._add(path, status)

    def _add_file(self, path: str) -> None:
        status = status_at(self._root, path)
        if status is not None:
            self._add(path, status)

    def _add(self, path: str, status: os.stat_result) -> None:
        """Add one place and, before a command, the target of a link if it is in the workspace."""
        if path in self._places or (path.endswith(".sample") and "/hooks/" in path):  # git never runs those
            return
        if not self._remaining["places"] or (self._before is not None and path in self._before.passed):
            self._passed.add(path)
            self._miss("files more than can be compared")
            return
        self._remaining["places"] -= 1
        stamp, earlier = stamp_of(status), self._last.places.get(path)
        place = earlier if earlier is not None and earlier.is_sure and earlier.stamp == stamp else None
        if place is None:
            place = look_at(self._root, path, status, self._sure_before)
        size = len(place.content or b"")
        if size > self._remaining["bytes"]:
            place, size = place._replace(content=None), 0
        self._remaining["bytes"] -= size
        self._places[path] = place
        if stat.S_ISLNK(status.st_mode) and self._before is None:
            self._follow(path)

    def _follow(self, path: str) -> None:
        """Record the target of a link if it is in the workspace, even if it does not exist yet.

        INVARIANT: called before a command only. After it, a new or changed link may point to a file that existed
        before, which would count as created and be removed.
        """
        real = os.path.realpath(f"{self._root}/{path}")
        inside = real.removeprefix(f"{self._root}/")
        if real != self._root and is_within(real, self._root) and not is_within(path, inside):
            self._followed.append(inside)
            self._add_target(inside)

    def _add_target(self, path: str) -> None:
        status = status_at(self._root, path)
        if status is not None:
            self._add(path, status)
            if stat.S_ISDIR(status.st_mode):
                self._add_below(f"{path}/")


def _sorted_out(entries: Sequence[tuple[str, bool]]) -> tuple[list[str], list[str]]:
    """Split entries into the protected names, and the folders to examine next."""
    protected = [
        name
        for name, is_folder in entries
        if fold(name) in PROTECTED_NAMES or (not is_folder and is_entry_name(fold(name)))
    ]
    excluded = frozenset((*protected, *NEVER_ENTERED))
    return protected, [name for name, is_folder in entries if is_folder and name not in excluded]


def _all(entries: Sequence[tuple[str, bool]]) -> tuple[list[str], list[str]]:
    return [name for name, is_folder in entries if not is_folder], [name for name, is_folder in entries if is_folder]
