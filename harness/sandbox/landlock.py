"""Landlock rulesets: the kernel's wall around files, TCP ports and signals.

What it cannot do (landlock(7), measured): hide names and sizes (`stat`, and `ls` of a folder above which everything else is
readable), stop modes, owners and times from being changed, close Unix sockets that have a name, or take a file out of a folder
that is allowed. It binds to files and folders, not to names: what is removed and made again is another one.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntFlag

from harness.paths import is_within
from harness.record import Record
from harness.sandbox import kernel
from harness.sandbox.walls import Unenforceable, Walls

MOST_ENTRIES = 16_384
"""Maximum number of entries of a folder that get a rule each, at some 30 microseconds and kernel memory."""
DEVICES = "/dev"


class Right(IntFlag):
    """Rights that a rule gives back (LANDLOCK_ACCESS_FS_* of <linux/landlock.h>)."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


def _first(count: int) -> int:
    return (1 << count) - 1


FILESYSTEM_RIGHTS = {1: _first(13), 2: _first(14), 3: _first(15), 4: _first(15), 5: _first(16)}
"""Every right that a version of the interface can take away. Later versions add none of this kind that this program knows.
"""
TCP = 0b11
"""LANDLOCK_ACCESS_NET_BIND_TCP and _CONNECT_TCP, since version 4."""
SCOPES = 0b11
"""LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and _SIGNAL, since version 6: only within this domain."""

READ = Right.EXECUTE | Right.READ_FILE | Right.READ_DIR
# Without REFER nothing could be moved or linked from one folder to another. Devices are never made.
WRITE = READ | (
    Right.WRITE_FILE | Right.TRUNCATE | Right.REFER | Right.REMOVE_DIR | Right.REMOVE_FILE | Right.MAKE_DIR
    | Right.MAKE_REG | Right.MAKE_SOCK | Right.MAKE_FIFO | Right.MAKE_SYM
)  # fmt: skip
DEVICE = Right.READ_FILE | Right.WRITE_FILE | Right.TRUNCATE | Right.IOCTL_DEV
ON_A_FILE = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE | Right.IOCTL_DEV
"""The kernel refuses a rule on a file that speaks of folders (EINVAL)."""

HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""For every command. All other devices are closed, to reading too: a disk's holds every hidden file."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - not a temporary file
"""For all but readers: semaphores of multiprocessing lie there."""
TERMINAL_DEVICES = ("/dev/tty", "/dev/ptmx")
TERMINALS = "/dev/pts"
"""For all but readers, as long as no terminal is in there: rules cannot tell the terminal that a command opens for itself
from the one at which a person reads and answers the prompts of the gate."""


State = tuple[object, ...]


class Rules(Record):
    """The rules of a ruleset, and the version that they are for."""

    version: int
    readable: ReadablePaths
    write: Mapping[str, State | None]
    """With what was found there, None where nothing was."""
    network: bool
    reader: bool
    """Whether shared memory and terminals are closed."""


def ruleset(rules: Rules) -> tuple[int, bool]:
    """Return the descriptor of a ruleset that takes everything away but what `rules` say, and whether each path still led
    to what was found there. Raises OSError, Unenforceable.

    Every right that the version knows is taken. Paths that do not exist are skipped; a writable one that is reached over a
    link is refused.
    """
    filesystem = FILESYSTEM_RIGHTS[min(rules.version, max(FILESYSTEM_RIGHTS))]
    descriptor = kernel.create_ruleset(
        filesystem, TCP if rules.version >= 4 and not rules.network else 0, SCOPES if rules.version >= 6 else 0
    )
    grants = [(path, Right.READ_DIR) for path in (*rules.readable.listed_folders, "/dev")]
    grants += [(path, DEVICE) for path in HARMLESS_DEVICES]
    if not rules.reader:
        grants.append((SHARED_MEMORY, WRITE))
        if holds_no_terminal():
            grants += [(path, DEVICE) for path in (*TERMINAL_DEVICES, TERMINALS)]
    try:
        for path, rights in grants:
            _allow(descriptor, path, rights & filesystem)
        same = [
            _allow(descriptor, path, READ & filesystem) == state for path, state in rules.readable.whole_paths.items()
        ]
        same += [_allow_writing(descriptor, path, filesystem) == state for path, state in rules.write.items()]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, all(same)


def scopes(version: int, *, network: bool) -> int | None:
    """Return a ruleset without rules for files, for a program that builds its own view of them. `None` below version
    6.
    """
    return kernel.create_ruleset(0, 0 if network else TCP, SCOPES) if version >= 6 else None


def holds_no_terminal() -> bool:
    """Tell whether no pseudo terminal of this machine is in use."""
    try:
        return not any(name.isdigit() for name in os.listdir(TERMINALS))
    except OSError:
        return False


def _allow(ruleset_descriptor: int, path: str, rights: int) -> State | None:
    """Give back `rights` at and below `path`, if it is there and no link. Return what is there."""
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        status = os.fstat(descriptor)
        if not stat.S_ISLNK(status.st_mode):
            allowed = rights if stat.S_ISDIR(status.st_mode) else rights & ON_A_FILE
            kernel.add_path(ruleset_descriptor, allowed, descriptor)
        return _identity(status)


def _allow_writing(ruleset_descriptor: int, path: str, known_rights: int) -> State | None:
    """Give back writing at and below `path`. Return the state of the path.

    INVARIANT: no link is followed to a path that was not judged.
    """
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        _check_resolved(path, descriptor)
        status = os.fstat(descriptor)
        rights = WRITE if stat.S_ISDIR(status.st_mode) else WRITE & ON_A_FILE
        if stat.S_ISCHR(status.st_mode):
            rights |= Right.IOCTL_DEV
        kernel.add_path(ruleset_descriptor, rights & known_rights, descriptor)
        return _identity(status)


def _check_resolved(path: str, descriptor: int) -> None:
    """Check that `path`, opened without following it, is where it says it is. Raises Unenforceable."""
    if stat.S_ISLNK(os.fstat(descriptor).st_mode) or os.readlink(f"/proc/self/fd/{descriptor}") != path:
        raise Unenforceable(f"cannot allow writing to {path}: it is reached over a link")


@contextmanager
def _opened(path: str) -> Iterator[int | None]:
    """Hold `path` open for its name only, without following it; None if it is gone, or not ours to see."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


MOST_KEPT = 8
"""Number of sets of walls that are cached; an agent uses two or three."""
SETTLED_NANOSECONDS = 100_000_000
"""A folder that was changed less than this before may change again without its time showing it (a clock tick is 4 to 10 ms)."""


class Built:
    """A ruleset, and what the disk looked like when it was made."""

    def __init__(self, walls: Walls, version: int) -> None:
        # INVARIANT: looked at before it is used, so that what changes meanwhile makes this ruleset out of date.
        began = time.time_ns()
        self._walls = walls
        self._usable = _usable(walls)
        self._closed = _closed(walls)
        hidden = frozenset(os.path.realpath(path) for path in walls.hide if os.path.exists(path))
        readable_paths = readable(hidden, {path: self._usable[path] for path in walls.show})
        self._listed_folders = readable_paths.listed_folders
        self._settled_times = _settled_times(readable_paths.listed_folders, began)
        """None where the folders must be listed to see whether they hold what they held."""
        self.gaps = _gaps(walls, hidden, readable_paths)
        """Paths that were to be hidden and are not, a sentence each."""
        write = {path: self._usable[path] for path in walls.writable}
        rules = Rules(
            version=version, readable=readable_paths, write=write, network=walls.internet, reader=walls.reader
        )
        self.ruleset, self._is_as_found = ruleset(rules)
        """Descriptor of the ruleset; a command gets a copy."""
        self._descriptors = _path_descriptors((*walls.writable, *walls.show))

    def is_current(self) -> bool:
        """Return whether the disk still looks as it did.

        A changed folder may hold the same entries: others create and remove files all the time. An allowed path keeps
        its inode number as long as it has a rule, since the kernel holds the inode. That does not cover a rule that
        was made for another file than the one found there.
        """
        if not self._is_as_found or _usable(self._walls) != self._usable or _closed(self._walls) != self._closed:
            return False
        times = _settled_times(self._listed_folders, time.time_ns())
        if times is None or times != self._settled_times:
            if any(_entries(folder) != entries for folder, entries in self._listed_folders.items()):
                return False
            self._settled_times = times
        return True

    def close(self) -> None:
        """Close the descriptors; copies stay."""
        for descriptor in (self.ruleset, *self._descriptors):
            os.close(descriptor)


class Rulesets:
    """The rulesets that are kept, of one process. INVARIANT: no copy is made of one that is not current."""

    def __init__(self) -> None:
        self._cache: dict[tuple[Walls, int, int], Built] = {}
        self._lock = allocate_lock()

    def copy(self, walls: Walls, version: int) -> tuple[int, tuple[str, ...]]:
        """Return a ruleset for one command, which the caller closes, and the gaps. Raises OSError, Unenforceable."""
        key = (walls, version, os.geteuid())
        with self._lock:
            built = self._cache.pop(key, None)
            if built is not None and not built.is_current():
                built.close()
                built = None
            self._cache[key] = built = built or Built(walls, version)  # the one used last stands last
            while len(self._cache) > MOST_KEPT:
                self._cache.pop(next(iter(self._cache))).close()
            return os.dup(built.ruleset), built.gaps


def _gaps(walls: Walls, hidden: frozenset[str], readable_paths: ReadablePaths) -> tuple[str, ...]:
    """Return a sentence for each path that Landlock cannot hide."""
    gaps = []
    for path in sorted(hidden):
        folder = next((folder for folder in walls.writable if is_within(path, folder)), None)
        if folder is not None:
            gaps.append(f"{path} cannot be hidden by Landlock: it lies in {folder}, which may be written")
        elif walls.sockets and stat.S_ISSOCK(os.lstat(path).st_mode):
            gaps.append(f"{path} cannot be closed by Landlock: it is a Unix socket, and those may be connected to")
    gaps += [
        f"{path} cannot be kept as it is by Landlock: it lies in a folder that may be written"
        for path in walls.keep
        if any(is_within(path, folder) for folder in walls.writable)
    ]
    gaps += [
        f"{path} has more than {MOST_ENTRIES} entries, too many to hide one of them: nothing in it can be read"
        for path in readable_paths.too_large
    ]
    return tuple(gaps)


def _usable(walls: Walls) -> dict[str, State | None]:
    """Return the state of each path that may be written or is shown."""
    return {path: _found_at(path, follow=False) for path in (*walls.writable, *walls.show)}


def _closed(walls: Walls) -> State:
    """Return the state of the hidden paths, and whether terminals may be opened."""
    return (*(_found_at(path, follow=True) for path in walls.hide), not walls.reader and holds_no_terminal())


def _found_at(path: str, *, follow: bool) -> State | None:
    try:
        return _identity(os.stat(path, follow_symlinks=follow))
    except OSError:
        return None


def _identity(status: os.stat_result) -> State:
    return stat.S_IFMT(status.st_mode), status.st_dev, status.st_ino


def _settled_times(folders: Iterable[str], now: int) -> list[int] | None:
    """Return the time of the last change of each folder, in nanoseconds, 0 for a missing one.

    `None` if a folder was changed so shortly before `now` that it may change again and keep its time.
    """
    times = []
    for path in folders:
        try:
            times.append(os.stat(path).st_mtime_ns)
        except OSError:
            times.append(0)
    return times if max(times, default=0) < now - SETTLED_NANOSECONDS else None


def _path_descriptors(paths: tuple[str, ...]) -> list[int]:
    """Open the paths that have rules, so that a replacement cannot get the same inode number."""
    descriptors = []
    for path in paths:
        try:
            descriptors.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:  # it is not there, and the ruleset knows
            pass
    return descriptors


# Reading everything but what is hidden. Landlock only allows, so a hidden path is one that no allowed folder holds: the folders
# above it are gone through, and each of their other entries is allowed by itself. What is made in such a folder later is not in
# the list, and so unreadable.


class ReadablePaths(Record):
    """The readable paths."""

    whole_paths: Mapping[str, State | None]
    """Files and folders, these with everything below. With what was found there, None where nothing was."""
    listed_folders: Mapping[str, Mapping[str, State] | None]
    """Folders above something hidden: their names may be listed, nothing more. With their entries, see `_entries`."""
    too_large: tuple[str, ...]
    """Folders above something hidden that have too many entries to go through: of these nothing may be read."""


def readable(hidden: frozenset[str], show: Mapping[str, State | None]) -> ReadablePaths:
    """Return the readable paths: all but `hidden`, and `show` below those. Devices are never included.

    All paths are absolute and resolved; `show` maps them to their state. Links in the listed folders are left out,
    since their targets are allowed at their own place. A folder that cannot be listed allows nothing.
    """
    closed = hidden | {DEVICES}
    above = {parent for path in closed for parent in parents(path)}
    collected = _Found()
    collected.go({"/": None}, closed, above)
    collected.go(show, closed, above)
    return ReadablePaths(
        whole_paths=collected.whole_paths, listed_folders=collected.listed_folders, too_large=tuple(collected.too_large)
    )


class _Found:
    """The list while it grows."""

    def __init__(self) -> None:
        self.whole_paths: dict[str, State | None] = {}
        self.listed_folders: dict[str, dict[str, State] | None] = {}
        self.too_large: list[str] = []

    def go(self, paths: Mapping[str, State | None], closed: frozenset[str], above: set[str]) -> None:
        """Allow each of `paths`, or what is not closed below it."""
        for path, state in paths.items():
            if path in closed:
                continue
            if path not in above:
                self.whole_paths[path] = state
                continue
            entries = self.listed_folders[path] = _entries(path)
            if entries is None:
                self.too_large.append(path)
                continue
            self.go({os.path.join(path, name): entry for name, entry in entries.items()}, closed, above)


def _entries(folder: str) -> dict[str, State] | None:
    """Return the names in a folder that are not links, with their state; `None` if there are too many.

    The kernel is queried for each: in the list of a folder, some file systems (FUSE) have one number for all.
    """
    states: dict[str, State] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(states) >= MOST_ENTRIES:
                    return None
                if not entry.is_symlink() and (identity := _found_at(entry.path, follow=False)) is not None:
                    states[entry.name] = identity
    except OSError:  # not a folder, gone, or not ours to list
        return {}
    return states


def parents(path: str) -> list[str]:
    """Return every folder above an absolute path, the nearest first; none for the root."""
    folders = []
    while path != "/":
        path = os.path.dirname(path)
        folders.append(path)
    return folders
