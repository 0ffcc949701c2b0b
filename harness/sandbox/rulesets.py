"""Rulesets kept from one command to the next as long as the disk looks the same; knows no system call filter.

Listing folders and making some fifty rules costs as much as half a start of a command; comparing what they came from, a
fiftieth. A ruleset can be entered any number of times. What is compared errs on one side only: where a change is missed,
something new is unreadable or unwritable, and nothing more is allowed than was.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import allocate_lock

from harness.paths import is_within
from harness.sandbox import landlock
from harness.sandbox.reading import MOST_ENTRIES, Readable, readable
from harness.sandbox.walls import Walls

MOST_KEPT = 8
"""How many sets of walls are kept; an agent uses two or three."""
SETTLED_NANOSECONDS = 100_000_000
"""A folder that was changed less than this before may change again without its time showing it (a clock tick is 4 to 10 ms)."""

State = tuple[object, ...]


class Built:
    """A ruleset, and what the disk looked like when it was made."""

    def __init__(self, walls: Walls, version: int) -> None:
        # INVARIANT: looked at before it is used, so that what changes meanwhile makes this ruleset out of date.
        began = time.time_ns()
        self._walls = walls
        self._paths = _paths(walls)
        hidden = frozenset(os.path.realpath(path) for path in walls.hide if os.path.exists(path))
        found = readable(hidden, walls.show)
        self._listed = found.listed
        self._changes = _changes(found.listed)
        self.settled = all(changed < began - SETTLED_NANOSECONDS for changed in self._changes)
        self.gaps = _gaps(walls, hidden, found)
        """What was to be hidden and is not, a sentence each."""
        rules = landlock.Rules(
            version=version, readable=found, write=walls.writable, network=walls.network, reader=walls.reader
        )
        self._ruleset = landlock.ruleset(rules)
        self._held = _held((*walls.writable, *walls.show))

    def is_current(self) -> bool:
        """Tell whether the disk still looks as it did."""
        return _paths(self._walls) == self._paths and _changes(self._listed) == self._changes

    def copy(self) -> int:
        """Return a descriptor of the ruleset for one command."""
        return os.dup(self._ruleset)

    def close(self) -> None:
        """Close the descriptors; copies stay."""
        for descriptor in (self._ruleset, *self._held):
            os.close(descriptor)


class Rulesets:
    """The rulesets that are kept, of one process. INVARIANT: no copy is made of one that is not current."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Walls, int, int], Built] = {}
        self._lock = allocate_lock()

    def copy(self, walls: Walls, version: int) -> tuple[int, tuple[str, ...]]:
        """Return a ruleset for one command, which the caller closes, and the gaps. Raises OSError, Unenforceable."""
        key = (walls, version, os.geteuid())
        with self._lock:
            built = self._kept.pop(key, None)
            if built is not None and not built.is_current():
                built.close()
                built = None
            if built is None:
                built = Built(walls, version)
            try:
                return built.copy(), built.gaps
            finally:
                if built.settled:
                    self._kept[key] = built  # the one used last stands last
                else:
                    built.close()
                while len(self._kept) > MOST_KEPT:
                    self._kept.pop(next(iter(self._kept))).close()


def _gaps(walls: Walls, hidden: frozenset[str], found: Readable) -> tuple[str, ...]:
    """Say what Landlock cannot hide."""
    gaps = []
    for path in sorted(hidden):
        folder = next((folder for folder in walls.writable if is_within(path, folder)), None)
        if folder is not None:
            gaps.append(f"{path} cannot be hidden by Landlock: it lies in {folder}, which may be written")
        elif walls.sockets and stat.S_ISSOCK(os.lstat(path).st_mode):
            gaps.append(f"{path} cannot be closed by Landlock: it is a Unix socket, and those may be connected to")
    gaps += [
        f"{path} has more than {MOST_ENTRIES} entries, too many to hide one of them: nothing in it can be read"
        for path in found.too_large
    ]
    return tuple(gaps)


def _paths(walls: Walls) -> State:
    """Return what lies at the paths of `walls`, and whether terminals may be opened."""
    return (
        *(_identity(path, follow=False) for path in (*walls.writable, *walls.show)),
        *(_identity(path, follow=True) for path in walls.hide),
        not walls.reader and landlock.holds_no_terminal(),
    )


def _identity(path: str, *, follow: bool) -> State | None:
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
    return stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino


def _changes(folders: tuple[str, ...]) -> list[int]:
    """Return when each folder was changed last, in nanoseconds; 0 for one that is gone."""
    changed = []
    for path in folders:
        try:
            changed.append(os.stat(path).st_mtime_ns)
        except OSError:
            changed.append(0)
    return changed


def _held(paths: tuple[str, ...]) -> list[int]:
    """Hold what rules were made for, so that nothing that takes its place can have the same inode number."""
    held = []
    for path in paths:
        try:
            held.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:  # it is not there, and the ruleset knows
            pass
    return held
