"""The protected places of a workspace and its entry points, recorded before a command and compared after it.

A protected place is a file that other programs run or read later; policy/built_in.py lists the names. They must be
compared, because the kernel cannot protect a single file in a writable folder. A look costs one stat for each folder
and each place. Their content is read again only if their time stamps differ from the last look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.digest import digest_of
from harness.files.before_images import BeforeImages
from harness.files.diffs import compare
from harness.files.encoding import read_text
from harness.files.place_looks import PlaceLook, content_at
from harness.files.place_walk import INSIDE, NOTHING_LOOKED_AT, PlacesLook, Walk
from harness.files.places_put_back import put_back
from harness.paths import fold, is_within
from harness.place_changes import PlaceChange, PlaceKind, PlaceReturn, PlacesFound, PlaceState
from harness.policy.built_in import PROTECTED_NAMES, is_entry_name
from harness.record import replace
from harness.text.amounts import count_of

MOST_HELD = 200
"""Maximum number of places that the walls keep read-only; each needs a mount."""
MOST_DIFF_LINES = 60
_MOST_DIFFS = 10


class ProtectedPlaces:
    """The protected places of one workspace. Contents that were read are cached from one look to the next."""

    def __init__(self, root: str, images: BeforeImages | None) -> None:
        """Use the workspace `root` (links followed). `images` stores copies; without it, no place can be restored."""
        self.root = root
        self.images = images
        self._last = NOTHING_LOOKED_AT

    def note(self, also: Sequence[str] = (), forbidden: Sequence[str] | None = ()) -> NotedPlaces:
        """Record the state of all places before a command, and of the further files `also`.

        `also` are absolute paths; those outside the workspace are ignored. `forbidden` are the names of all files that
        a rule forbids to write, or `None` if they cannot be determined.
        """
        relative_paths = [path.removeprefix(f"{self.root}/") for path in also if is_within(path, self.root)]
        return NotedPlaces(self, self.look(relative_paths), relative_paths, forbidden)

    def look(self, also: Sequence[str], before: PlacesLook | None = None) -> PlacesLook:
        """Return the present state of all places. After a command, the places of the look `before` it come first."""
        self._last = Walk(self.root, self._last, before).look(also)
        return self._last

    def put_back(self, changes: Sequence[PlaceChange]) -> tuple[PlaceReturn, ...]:
        """Restore places, each only if it still is in the reported state."""
        if self.images is None:
            return tuple(PlaceReturn(change=change, problem="no copies are kept here") for change in changes)
        return put_back(self.root, changes, self.images)

    def with_differences(self, changes: Sequence[PlaceChange]) -> tuple[PlaceChange, ...]:
        """Return changes of an earlier session with their diffs, if the copies and the files for them still exist."""
        return tuple(
            replace(change, diff=self._diff_of(change)) if n < _MOST_DIFFS else change
            for n, change in enumerate(changes)
        )

    def _diff_of(self, change: PlaceChange) -> tuple[str, ...]:
        before, after = change.before, change.after
        image = self.images.get(before.sha256) if before and before.sha256 and self.images else None
        now = content_at(self.root, change.path, after.kind) if after else None
        if after is not None and (now is None or digest_of(now) != after.sha256):
            return ()
        return _lines(_text(before, image) if before else b"", _text(after, now) if after else b"")

    @property
    def holdable_paths(self) -> tuple[str, ...]:
        """The absolute paths of the places that the walls can keep read-only: files and whole folders, but no links."""
        paths: set[str] = set()
        for path, place in sorted(self._last.places.items()):
            if fold(path).rpartition("/")[2] in INSIDE or _is_entry_point(path) or len(paths) == MOST_HELD:
                continue
            if place.state.kind in (PlaceKind.FILE, PlaceKind.FOLDER) and paths.isdisjoint(_above(path)):
                paths.add(path)
        return tuple(f"{self.root}/{path}" for path in sorted(paths))


class NotedPlaces:
    """The protected places as they were before a command."""

    def __init__(
        self, places: ProtectedPlaces, before: PlacesLook, also: Sequence[str], forbidden: Sequence[str] | None
    ) -> None:
        self._places = places
        self._before = before
        self._also = also
        self._forbidden = forbidden

    @property
    def words(self) -> str:
        """Description for the user: the number of places, and the parts that were not examined."""
        gaps = f" (not looked at: {', '.join(self._before.gaps)})" if self._before.gaps else ""
        protected = [path for path in self._before.places if not _is_entry_point(path)]
        return f"{count_of(len(protected), 'protected place')} compared when it ends{gaps}"

    def compared(self, forbidden: Sequence[str] | None = ()) -> PlacesFound:
        """Return the changes since `note`. Earlier contents that were kept are on disk when this returns.

        INVARIANT: a file that rules forbid to write is reported as created only if it certainly did not exist before.
        """
        before = self._before.places
        new = () if self._forbidden is None else frozenset(forbidden or ()).difference(self._forbidden)
        also = (*self._also, *sorted(new))
        after = self._places.look(also, self._before)
        lost = ("", *after.lost) if forbidden is None and self._forbidden is not None else after.lost
        changes, entry_points = [_lost(path) for path in lost], list[PlaceChange]()
        for path in sorted({*before, *after.places}, key=lambda name: (name not in before, name)):
            was, now = before.get(path), after.places.get(path)
            if not _is_same(was, now):
                group = entry_points if _is_entry_point(path) and path not in also else changes
                group.append(self._change(path, was, now, shows=len(group) < _MOST_DIFFS))
        gaps = tuple(dict.fromkeys((*self._before.gaps, *after.gaps)))
        return PlacesFound(changes=tuple(changes), entry_points=tuple(entry_points), gaps=gaps)

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


def _is_entry_point(path: str) -> bool:
    """Return whether a place is an entry point: builds and tests read it, and granted programs may change it."""
    *folders, name = fold(path).split("/")
    return is_entry_name(name) and PROTECTED_NAMES.isdisjoint(folders)


def _lost(path: str) -> PlaceChange:
    """Return the change for a folder that can no longer be examined."""
    before, after = (
        PlaceState(kind=kind, mode=0, size=0, sha256=None) for kind in (PlaceKind.FOLDER, PlaceKind.UNSEEN)
    )
    return PlaceChange(path=path.rstrip("/") or ".", before=before, after=after, is_kept=False)


def _above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the nearest first."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_same(was: PlaceLook | None, now: PlaceLook | None) -> bool:
    """Return whether a place is unchanged. A created or removed folder counts as unchanged: its files are reported."""
    if was is None or now is None:
        return all(look is None or look.state.kind is PlaceKind.FOLDER for look in (was, now))
    if was.state.kind is not now.state.kind:
        return False
    if was.state.kind is PlaceKind.FOLDER:
        return was.state.mode == now.state.mode
    if was.state.sha256 is None or now.state.sha256 is None:
        return was.stamp == now.stamp
    return (was.state.sha256, was.state.mode) == (now.state.sha256, now.state.mode)


def _diff(was: PlaceLook | None, now: PlaceLook | None) -> tuple[str, ...]:
    """Return the differing lines of two contents; empty if one of them is binary."""
    texts = [b"" if look is None else _text(look.state, look.content) for look in (was, now)]
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
