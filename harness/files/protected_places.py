"""The protected places of a workspace, and its entry points, noted before a command and compared when it has ended.

They are files that other programs run or obey later, by the names of policy/built_in.py: no wall of the kernel takes a file
out of a folder that may be written. Looking costs a stat for each folder and each place; what a folder or a file holds is
read again only where its time stamps are not those of the last look.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from harness.files.before_images import BeforeImages
from harness.files.diffs import compare
from harness.files.encoding import read_text
from harness.files.folders import open_to_list
from harness.files.place_looks import PlaceLook, Stamp, content_at, is_sure, look_at, stamp_of, status_at
from harness.files.places_put_back import put_back
from harness.paths import fold, is_within
from harness.place_changes import PlaceChange, PlaceKind, PlaceReturn, PlacesFound, PlaceState
from harness.policy.built_in import ENTRY_POINTS, PROTECTED_NAMES
from harness.record import replace
from harness.text.amounts import counted

MOST_FOLDERS = 4_000
"""That are looked into, those near the root first: names are protected at any depth."""
MOST_ENTRIES = 200_000
"""Of all folders that are looked into."""
MOST_PLACES = 2_000
MOST_KEPT_BYTES = 16_000_000
"""Of all files together: they are held in memory, and stored where one of them has changed."""
MOST_HELD = 500
"""Places that a wall is put around; each takes it a mount."""
MOST_DIFF_LINES = 200
_MOST_DIFFS = 20
NEVER_ENTERED = frozenset(
    ("node_modules", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox")
)
"""Folders of programs' own: a file of a protected name in there is obeyed by nobody who works in the workspace."""
_SURE_NS = 1_000_000_000
"""What was changed so shortly before it was looked at may be changed again within the same tick of the clock."""

_GIT = (
    "config", "config.worktree", "commondir", "gitdir", "hooks/**", "info/attributes", "objects/info/alternates",
    "rebase-merge/git-rebase-todo", "worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
)  # fmt: skip
_INSIDE: Mapping[str, tuple[str, ...]] = {
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
"""What of a protected folder is run or obeyed, where most of it is a program's store; of any other folder it is everything."""
_NO_MODULES = frozenset(("objects", "refs", "logs", "hooks", "info"))
"""Folders of a repository's data in which no data of a submodule lie."""

_TOO_MANY = "folders and what lies below them: too many"
_CLOSED = "folders that cannot be listed"


class _Names(NamedTuple):
    """What lies in a folder: the names that matter, and the folders to go on with."""

    stamp: Stamp
    is_sure: bool
    names: tuple[str, ...]
    folders: tuple[str, ...]
    entries: int


class _Look(NamedTuple):
    """All places at one moment."""

    places: dict[str, PlaceLook]
    gaps: tuple[str, ...]
    followed: tuple[str, ...]
    """Where links lead, in the workspace."""


class ProtectedPlaces:
    """The protected places of one workspace. What was read is remembered from one look to the next."""

    def __init__(self, root: str, images: BeforeImages | None) -> None:
        """Take the workspace (links followed), and where copies are kept: without, nothing can be put back."""
        self.root = root
        self.images = images
        self._folders: dict[tuple[str, bool], _Names] = {}
        self._last: dict[str, PlaceLook] = {}

    def note(self, also: Sequence[str] = ()) -> NotedPlaces:
        """Look at all of them; `also` are absolute paths of further files, of which those in the workspace count."""
        further = [path.removeprefix(f"{self.root}/") for path in also if is_within(path, self.root)]
        return NotedPlaces(self, self.look(further), further)

    def look(self, also: Sequence[str], followed: Sequence[str] | None = None) -> _Look:
        """Return all of them as they are now; `followed` is where links led as they were noted."""
        walk = _Walk(self.root, self._folders, self._last, followed)
        look = walk.look(also)
        self._folders, self._last = walk.folders, look.places
        return look

    def put_back(self, changes: Sequence[PlaceChange]) -> tuple[PlaceReturn, ...]:
        """Make places what they were, each only if it still is what was told of it."""
        if self.images is None:
            return tuple(PlaceReturn(change=one, problem="no copies are kept here") for one in changes)
        return put_back(self.root, changes, self.images)

    def shown(self, changes: Sequence[PlaceChange]) -> tuple[PlaceChange, ...]:
        """Return changes of an earlier session with their differences, as far as copies and files still tell them."""
        return tuple(replace(one, diff=self._diff_of(one)) if n < _MOST_DIFFS else one for n, one in enumerate(changes))

    def _diff_of(self, change: PlaceChange) -> tuple[str, ...]:
        before, after = change.before, change.after
        kept = self.images.get(before.sha256) if before and before.sha256 and self.images else None
        now = content_at(self.root, change.path, after.kind) if after else None
        if after is not None and (now is None or hashlib.sha256(now).hexdigest() != after.sha256):
            return ()
        return _lines(_text(before, kept) if before else b"", _text(after, now) if after else b"")

    @property
    def held(self) -> tuple[str, ...]:
        """The absolute paths of the last look that a wall can hold as they are: files, and folders as a whole; no links."""
        held: set[str] = set()
        for path, place in sorted(self._last.items()):
            if fold(path).rpartition("/")[2] in _INSIDE or _is_entry_point(path) or len(held) == MOST_HELD:
                continue
            if place.state.kind in (PlaceKind.FILE, PlaceKind.FOLDER) and held.isdisjoint(_above(path)):
                held.add(path)
        return tuple(f"{self.root}/{path}" for path in sorted(held))


class NotedPlaces:
    """The protected places as they were before a command."""

    def __init__(self, places: ProtectedPlaces, before: _Look, also: Sequence[str]) -> None:
        self._places = places
        self._before = before
        self._also = also

    @property
    def words(self) -> str:
        """How many there are, and what was not looked at."""
        gaps = f" (not looked at: {', '.join(self._before.gaps)})" if self._before.gaps else ""
        protected = [path for path in self._before.places if not _is_entry_point(path)]
        return f"{counted(len(protected), 'protected place')} compared when it ends{gaps}"

    def compared(self) -> PlacesFound:
        """Return what has changed since; a copy of what stood there is stored before this returns, where there is one."""
        before = self._before.places
        after = self._places.look(self._also, self._before.followed)
        changes: list[PlaceChange] = []
        for path in sorted({*before, *after.places}):
            was, now = before.get(path), after.places.get(path)
            if not _is_same(was, now):
                changes.append(self._change(path, was, now, shows=len(changes) < _MOST_DIFFS))
        entry_points = tuple(one for one in changes if _is_entry_point(one.path) and one.path not in self._also)
        return PlacesFound(
            changes=tuple(one for one in changes if one not in entry_points),
            entry_points=entry_points,
            gaps=tuple(dict.fromkeys((*self._before.gaps, *after.gaps))),
        )

    def _change(self, path: str, was: PlaceLook | None, now: PlaceLook | None, *, shows: bool) -> PlaceChange:
        return PlaceChange(
            path=path,
            before=None if was is None else was.state,
            after=None if now is None else now.state,
            is_kept=was is None or self._keep(was),
            diff=_diff(was, now) if shows else (),
        )

    def _keep(self, was: PlaceLook) -> bool:
        if was.state.kind is PlaceKind.FOLDER:
            return True
        if was.content is None or self._places.images is None:
            return False
        try:
            self._places.images.keep(was.content)
        except OSError:
            return False
        return True


def _above(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the nearest first."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_same(was: PlaceLook | None, now: PlaceLook | None) -> bool:
    """Say whether a place is what it was; a folder that came or went is told by what lies in it."""
    if was is None or now is None:
        return all(one is None or one.state.kind is PlaceKind.FOLDER for one in (was, now))
    if was.state.kind is not now.state.kind:
        return False
    if was.state.kind is PlaceKind.FOLDER:
        return was.state.mode == now.state.mode
    if was.state.sha256 is None or now.state.sha256 is None:
        return was.stamp == now.stamp
    return (was.state.sha256, was.state.mode) == (now.state.sha256, now.state.mode)


def _diff(was: PlaceLook | None, now: PlaceLook | None) -> tuple[str, ...]:
    """Return the lines that tell two contents apart; none where one of them is no text."""
    texts = [b"" if one is None else _text(one.state, one.content) for one in (was, now)]
    return _lines(*texts)


def _lines(old: bytes | None, new: bytes | None) -> tuple[str, ...]:
    if old is None or new is None or old == new:
        return ()
    return tuple(compare(old, new).text(MOST_DIFF_LINES).split("\n"))


def _text(state: PlaceState, content: bytes | None) -> bytes | None:
    if content is None:
        return None
    if state.kind is PlaceKind.LINK:
        return b"link to " + content
    text = read_text(content)
    return None if text is None else text.body


class _Walk:
    """One look at the places of a workspace."""

    def __init__(
        self,
        root: str,
        folders: Mapping[tuple[str, bool], _Names],
        last: Mapping[str, PlaceLook],
        followed: Sequence[str] | None,
    ) -> None:
        self._root = root
        self._known = folders
        self._last = last
        self._given = followed
        self._followed = list(followed or ())
        self.folders: dict[tuple[str, bool], _Names] = {}
        """What was found in folders, all of it or what is protected: for the next look."""
        self._sure_before = time.time_ns() - _SURE_NS
        self._places: dict[str, PlaceLook] = {}
        self._left = {"folders": MOST_FOLDERS, "entries": MOST_ENTRIES, "places": MOST_PLACES, "bytes": MOST_KEPT_BYTES}
        self._gaps: dict[str, int] = {}

    def look(self, also: Sequence[str]) -> _Look:
        """Return all of them."""
        for path in also:
            self._add_file(path)
        for path in tuple(self._followed):
            self._add_target(path)
        level = [""]
        while level:
            following: list[str] = []
            for place, folder in enumerate(level):
                names = self._names(folder, everything=False)
                if names is None:
                    if self._is_enough:
                        self._miss(_TOO_MANY, len(level) - place + len(following))
                        return self._done()
                    continue
                for name in names.names:
                    self._add_protected(folder + name)
                following += [f"{folder}{name}/" for name in names.folders]
            level = following
        return self._done()

    def _done(self) -> _Look:
        return _Look(
            self._places, tuple(f"{count:,} {why}" for why, count in self._gaps.items()), tuple(self._followed)
        )

    def _miss(self, why: str, count: int = 1) -> None:
        self._gaps[why] = self._gaps.get(why, 0) + count

    # Folders

    def _names(self, folder: str, *, everything: bool) -> _Names | None:
        """Return the protected names in a folder and its other folders, or all that lies in it; None for what is no folder,
        and past the bounds."""
        if self._is_enough:
            return None
        status = status_at(self._root, folder)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return None
        self._left["folders"] -= 1
        stamp, key = stamp_of(status), (folder, everything)
        names = self._known.get(key)
        if names is None or not names.is_sure or names.stamp != stamp:
            found = self._listed(folder)
            if found is None:
                return None
            taken, folders = (_all if everything else _sorted_out)(found)
            sure = is_sure(status, self._sure_before)
            names = _Names(stamp, sure, tuple(sorted(taken)), tuple(sorted(folders)), len(found))
        self._left["entries"] = max(self._left["entries"] - names.entries, 0)
        self.folders[key] = names
        return names

    @property
    def _is_enough(self) -> bool:
        return not self._left["folders"] or not self._left["entries"]

    def _listed(self, folder: str) -> list[tuple[str, bool]] | None:
        """Return the names in a folder, each with whether it is a folder itself."""
        try:
            descriptor = open_to_list(f"{self._root}/{folder}".rstrip("/"))
        except OSError:
            self._miss(_CLOSED)
            return None
        try:
            with os.scandir(descriptor) as entries:
                most = self._left["entries"]
                return [
                    (one.name, one.is_dir(follow_symlinks=False)) for one, _ in zip(entries, range(most), strict=False)
                ]
        except OSError:
            self._miss(_CLOSED)
            return None
        finally:
            os.close(descriptor)

    # Places

    def _add_protected(self, path: str) -> None:
        """Take in what has a protected name."""
        status = status_at(self._root, path)
        if status is None:
            return
        self._add(path, status)
        if stat.S_ISDIR(status.st_mode):
            name = fold(path).rpartition("/")[2]
            inside = _INSIDE.get(name)
            if inside is None:
                self._add_below(f"{path}/")
            elif name == ".git":
                self._add_repository(f"{path}/")
            else:
                self._add_inside(f"{path}/", inside)

    def _add_below(self, folder: str) -> None:
        """Take in everything below a folder."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            names = self._names(here, everything=True)
            if names is None:
                if self._is_enough:
                    self._miss(_TOO_MANY, 1 + len(waiting))
                    return
                continue
            for name in names.names:
                self._add_file(here + name)
            for name in names.folders:
                self._add_file(here + name)
                waiting.append(f"{here}{name}/")

    def _add_repository(self, folder: str) -> None:
        """Take in what git obeys in the data of a repository, and in those of its submodules."""
        self._add_inside(folder, _GIT)
        waiting = [f"{folder}modules/"]
        while waiting:
            here = waiting.pop()
            names = self._names(here, everything=True)
            if names is None:
                continue
            if "HEAD" in names.names:
                self._add_inside(here, _GIT)
            waiting += [f"{here}{name}/" for name in names.folders if name not in _NO_MODULES]

    def _add_inside(self, folder: str, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            self._add_matching(folder, pattern.split("/"))

    def _add_matching(self, folder: str, parts: Sequence[str]) -> None:
        """Take in what a pattern names below a folder: `*` within a name, and `**` for everything."""
        first, *rest = parts
        if first == "**":
            self._add_below(folder)
            return
        if "*" in first:
            listed = self._names(folder, everything=True)
            names: Sequence[str] = () if listed is None else (*listed.names, *listed.folders)
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
        """Take in one place; and where a link leads, in the workspace."""
        if path in self._places or (path.endswith(".sample") and "/hooks/" in path):  # git runs none of that name
            return
        if not self._left["places"]:
            self._miss("files more than can be compared")
            return
        self._left["places"] -= 1
        stamp, known = stamp_of(status), self._last.get(path)
        place = known if known is not None and known.is_sure and known.stamp == stamp else None
        if place is None:
            place = look_at(self._root, path, status, self._sure_before)
        size = len(place.content or b"")
        if size > self._left["bytes"]:
            place, size = place._replace(content=None), 0
        self._left["bytes"] -= size
        self._places[path] = place
        if stat.S_ISLNK(status.st_mode) and self._given is None:
            self._follow(path)

    def _follow(self, path: str) -> None:
        """Take in where a link leads in the workspace, where nothing may be yet.

        INVARIANT: only as the places are noted. What a link leads to that came or changed since stood there before, and
        would be taken for new, and removed.
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


def _is_entry_point(path: str) -> bool:
    """Say whether a place that was looked at is what builds and tests obey, and a granted program may change."""
    *folders, name = fold(path).split("/")
    return name in ENTRY_POINTS and PROTECTED_NAMES.isdisjoint(folders)


def _sorted_out(found: Sequence[tuple[str, bool]]) -> tuple[list[str], list[str]]:
    """Return the protected ones among names, and the folders that are looked into besides."""
    protected = [
        name
        for name, is_folder in found
        if fold(name) in PROTECTED_NAMES or (not is_folder and fold(name) in ENTRY_POINTS)
    ]
    taken = frozenset((*protected, *NEVER_ENTERED))
    return protected, [name for name, is_folder in found if is_folder and name not in taken]


def _all(found: Sequence[tuple[str, bool]]) -> tuple[list[str], list[str]]:
    return [name for name, is_folder in found if not is_folder], [name for name, is_folder in found if is_folder]
