"""Landlock rulesets: kernel restrictions on files, TCP ports and signals.

Limits of Landlock (landlock(7), measured):

- It cannot hide names and sizes: `stat`, and `ls` of a folder that has a hidden path in it or below, still show them.
- It cannot prevent changes of modes, owners and times.
- It cannot close Unix sockets with a name.
- It cannot exclude a file from an allowed folder.

Rules apply to files and folders (inodes), not to names. A file that is removed and created again is a new one.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntFlag

from harness.paths import is_within, is_within_any
from harness.record import Record
from harness.sandbox import kernel
from harness.sandbox.walls import Unenforceable, Walls

MOST_ENTRIES = 16_384
"""Maximum number of entries of a folder that get a rule each. A rule costs about 30 microseconds and kernel memory."""
DEVICES = "/dev"


class Right(IntFlag):
    """Rights that a rule can allow (LANDLOCK_ACCESS_FS_* of <linux/landlock.h>)."""

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
"""All rights that a version of the interface can deny. Later versions are treated like the last one."""
TCP = 0b11
"""LANDLOCK_ACCESS_NET_BIND_TCP and _CONNECT_TCP, since version 4."""
SCOPES = 0b11
"""LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and _SIGNAL, since version 6. Both then work only within the domain."""

READ = Right.EXECUTE | Right.READ_FILE | Right.READ_DIR
# Without REFER, files could not be moved or linked from one folder to another. Creating devices is never allowed.
WRITE = READ | (
    Right.WRITE_FILE | Right.TRUNCATE | Right.REFER | Right.REMOVE_DIR | Right.REMOVE_FILE | Right.MAKE_DIR
    | Right.MAKE_REG | Right.MAKE_SOCK | Right.MAKE_FIFO | Right.MAKE_SYM
)  # fmt: skip
DEVICE = Right.READ_FILE | Right.WRITE_FILE | Right.TRUNCATE | Right.IOCTL_DEV
ON_A_FILE = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE | Right.IOCTL_DEV
"""Rights that a rule on a file may have. The kernel refuses rights for folders there (EINVAL)."""

HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices for every command. All others are closed, even for reading: a disk's device contains every hidden file."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - not a temporary file
"""Shared memory, for all commands but readers. It has the semaphores of multiprocessing."""
TERMINAL_DEVICES = ("/dev/tty", "/dev/ptmx")
TERMINALS = "/dev/pts"
"""Folder of pseudo terminals. Allowed to all commands but readers, and only while it is empty: rules cannot distinguish a
terminal that a command opens from the one at which the user answers the prompts of the gate."""


State = tuple[object, ...]


class Rules(Record):
    """The rules of a ruleset for a version of Landlock's interface."""

    version: int
    readable: ReadablePaths
    write: Mapping[str, State | None]
    """Writable paths, each with the state of its file or folder; `None` if the path is missing."""
    network: bool
    reader: bool
    """Whether shared memory and terminals are closed."""


def ruleset(rules: Rules) -> tuple[int, bool]:
    """Return the file descriptor of a ruleset that allows only what `rules` state, and whether they were still current.

    The rules are current if every path still has the recorded state. The ruleset denies every right that the version
    supports. Missing paths are skipped.

    Raises OSError. Raises Unenforceable for a writable path that contains a link.
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
    """Return a ruleset for ports and scopes only, for use with bubblewrap, which confines files itself.

    `None` below version 6.
    """
    return kernel.create_ruleset(0, 0 if network else TCP, SCOPES) if version >= 6 else None


def in_view(version: int, write: Iterable[str], *, abstract: bool, signals: bool) -> int | None:
    """Return a ruleset for use with namespaces, which confine files themselves.

    It forbids making devices, and opening anything but `write` for writing: a read-only mount does not stop writing into
    a pipe with a name. `view.allow_writing` adds the folders that a view covers.

    Its domain also closes the memory and the folders of processes outside of it. `abstract` and `signals` confine
    abstract Unix sockets and signals to the domain too, if the version supports that. `None` for a version that is too old.
    """
    if version < 2:  # links and moves between folders would fail
        return None
    scoped = (SCOPES & 1 if abstract else 0) | (SCOPES & 2 if signals else 0)
    # Every domain without a rule for REFER denies it.
    denied = Right.MAKE_CHAR | Right.MAKE_BLOCK | Right.WRITE_FILE | Right.REFER
    descriptor = kernel.create_ruleset(denied, 0, scoped if version >= 6 else 0)
    try:
        _allow(descriptor, "/", Right.REFER)
        for path in write:
            _allow(descriptor, path, Right.WRITE_FILE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def holds_no_terminal() -> bool:
    """Return whether no pseudo terminal of this machine is in use. False if that is unknown."""
    try:
        return not any(name.isdigit() for name in os.listdir(TERMINALS))
    except OSError:
        return False


def _allow(ruleset_descriptor: int, path: str, rights: int) -> State | None:
    """Allow `rights` at and below `path`, unless it is a link. Return its state, `None` if it is missing."""
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        status = os.fstat(descriptor)
        if not stat.S_ISLNK(status.st_mode):
            allowed = rights if stat.S_ISDIR(status.st_mode) else rights & ON_A_FILE
            kernel.add_path(ruleset_descriptor, allowed, descriptor)
        return _identity(status)


def _allow_writing(ruleset_descriptor: int, path: str, known_rights: int) -> State | None:
    """Allow writing at and below `path`. Return its state, `None` if it is missing. Raises Unenforceable for a link.

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
    """Raise Unenforceable if `path`, which was opened as `descriptor`, is a link or contains one."""
    if stat.S_ISLNK(os.fstat(descriptor).st_mode) or os.readlink(f"/proc/self/fd/{descriptor}") != path:
        raise Unenforceable(f"cannot allow writing to {path}: it is reached over a link")


@contextmanager
def _opened(path: str) -> Iterator[int | None]:
    """Open `path` with O_PATH, without following a link at its end. Yield `None` if it is missing or not accessible."""
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
"""Maximum number of cached rulesets. An agent uses two or three."""
SETTLED_NANOSECONDS = 100_000_000
"""Minimum age of a folder's last change, in nanoseconds. After a newer change, another one may not alter its time, since a
clock tick takes 4 to 10 ms."""


class Built:
    """A ruleset, with the state of the disk when it was made."""

    def __init__(self, walls: Walls, version: int) -> None:
        # INVARIANT: the state is read before it is used, so that a later change makes this ruleset out of date.
        began = time.time_ns()
        self._walls = walls
        self._usable = _usable(walls)
        self._closed = _closed(walls)
        hidden = frozenset(os.path.realpath(path) for path in walls.hide if os.path.exists(path))
        readable_paths = readable(hidden, {path: self._usable[path] for path in walls.show})
        self._listed_folders = readable_paths.listed_folders
        self._settled_times = _settled_times(readable_paths.listed_folders, began)
        """Modification times of the listed folders. `None` if changes can only be detected by listing the folders again."""
        self.gaps = _gaps(walls, hidden, readable_paths)
        """Paths that cannot be hidden or protected as requested, a sentence each."""
        write = {path: self._usable[path] for path in walls.writable}
        rules = Rules(
            version=version, readable=readable_paths, write=write, network=walls.internet, reader=walls.reader
        )
        self.ruleset, self._is_as_found = ruleset(rules)
        """File descriptor of the ruleset. Each command gets a copy."""
        self._descriptors = _path_descriptors((*walls.writable, *walls.show))

    def is_current(self) -> bool:
        """Return whether the disk still has the state for which the ruleset was made.

        A changed folder may have the same entries again, since other programs create and remove files all the time. A
        path with a rule keeps its inode number, since the kernel holds the inode. But if the path was replaced while the
        ruleset was made, the rule is for another file; `_is_as_found` is False then.
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
        """Close the file descriptors. Copies of the ruleset stay valid."""
        for descriptor in (self.ruleset, *self._descriptors):
            os.close(descriptor)


class Rulesets:
    """Cache of the rulesets of this process. INVARIANT: only a current ruleset is copied."""

    def __init__(self) -> None:
        self._cache: dict[tuple[Walls, int, int], Built] = {}
        self._lock = allocate_lock()

    def copy(self, walls: Walls, version: int) -> tuple[int, tuple[str, ...]]:
        """Return a copy of the ruleset for one command, and its gaps. The caller must close the copy.

        Raises OSError, Unenforceable.
        """
        key = (walls, version, os.geteuid())
        with self._lock:
            built = self._cache.pop(key, None)
            if built is not None and not built.is_current():
                built.close()
                built = None
            self._cache[key] = built = built or Built(walls, version)  # the most recently used is last
            while len(self._cache) > MOST_KEPT:
                self._cache.pop(next(iter(self._cache))).close()
            return os.dup(built.ruleset), built.gaps


def _gaps(walls: Walls, hidden: frozenset[str], readable_paths: ReadablePaths) -> tuple[str, ...]:
    """Return a sentence for each path that Landlock cannot hide or protect as requested."""
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
        if is_within_any(path, walls.writable)
    ]
    gaps += [
        f"{path} has more than {MOST_ENTRIES} entries, too many to hide one of them: nothing in it can be read"
        for path in readable_paths.too_large
    ]
    return tuple(gaps)


def _usable(walls: Walls) -> dict[str, State | None]:
    """Return the state of each writable or shown path."""
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
    """Return the modification time of each folder in nanoseconds, 0 for a missing one.

    `None` if a folder changed so shortly before `now` that another change may not alter its time.
    """
    times = []
    for path in folders:
        try:
            times.append(os.stat(path).st_mtime_ns)
        except OSError:
            times.append(0)
    return times if max(times, default=0) < now - SETTLED_NANOSECONDS else None


def _path_descriptors(paths: tuple[str, ...]) -> list[int]:
    """Return open file descriptors of the paths with rules. They prevent a replacement from getting the same inode number."""
    descriptors = []
    for path in paths:
        try:
            descriptors.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:  # missing: the ruleset has no rule for it
            pass
    return descriptors


# Allow reading everything except hidden paths. Landlock has only rules that allow. So the folders above a hidden path are
# not allowed as a whole; each of their other entries gets its own rule instead. A file that is created in such a folder
# later has no rule, and so is unreadable.


class ReadablePaths(Record):
    """The paths that a ruleset lets a command read."""

    whole_paths: Mapping[str, State | None]
    """Readable files, and folders with everything below, each with its state; `None` if it is missing."""
    listed_folders: Mapping[str, Mapping[str, State] | None]
    """Folders above a hidden path, with their entries (see `_entries`). A command may list their names only."""
    too_large: tuple[str, ...]
    """Folders above a hidden path with too many entries. Their content is not readable."""


def readable(hidden: frozenset[str], show: Mapping[str, State | None]) -> ReadablePaths:
    """Return the readable paths: all paths except `hidden`, plus `show` below these. Devices are never included.

    All paths are absolute and resolved; `show` maps them to their state. Links in the listed folders are left out, since
    their targets have their own rules. No entry of a folder that cannot be listed is readable.
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
    """The readable paths while they are being collected."""

    def __init__(self) -> None:
        self.whole_paths: dict[str, State | None] = {}
        self.listed_folders: dict[str, dict[str, State] | None] = {}
        self.too_large: list[str] = []

    def go(self, paths: Mapping[str, State | None], closed: frozenset[str], above: set[str]) -> None:
        """Add each of `paths`. For a folder above a closed path, add its other entries instead."""
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
    """Return the names and states of a folder's entries that are not links; `None` if there are too many.

    Each entry is queried with stat, since some file systems (FUSE) give all listed entries the same inode number.
    """
    states: dict[str, State] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(states) >= MOST_ENTRIES:
                    return None
                if not entry.is_symlink() and (identity := _found_at(entry.path, follow=False)) is not None:
                    states[entry.name] = identity
    except OSError:  # not a folder, missing, or not permitted
        return {}
    return states


def parents(path: str) -> list[str]:
    """Return every folder above an absolute path, nearest first. Empty for the root."""
    folders = []
    while path != "/":
        path = os.path.dirname(path)
        folders.append(path)
    return folders
