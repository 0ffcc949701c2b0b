"""Landlock rulesets: the kernel's wall around files, TCP ports and signals; puts no thread behind one.

What it cannot do (landlock(7), measured): hide names and sizes (`stat`, and `ls` of a folder above which everything else is
readable), stop modes, owners and times from being changed, close Unix sockets that have a name, or take a file out of a folder
that is allowed. It binds to files and folders, not to names: what is removed and made again is another one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntFlag

from harness.record import Record
from harness.sandbox import kernel
from harness.sandbox.reading import Readable
from harness.sandbox.walls import Unenforceable


class Right(IntFlag):
    """What a rule gives back (LANDLOCK_ACCESS_FS_* of <linux/landlock.h>)."""

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
"""Every right that a version of the interface can take away; later versions add none of this kind that is known here."""
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


class Rules(Record):
    """What a ruleset allows, and of which version it is."""

    version: int
    readable: Readable
    write: tuple[str, ...]
    network: bool
    reader: bool
    """Whether shared memory and terminals are closed."""


def ruleset(rules: Rules) -> int:
    """Return the descriptor of a ruleset that takes everything away but what `rules` say. Raises OSError, Unenforceable.

    Every right that the version knows is taken. Paths that do not exist are skipped; a writable one that is reached over a
    link is refused.
    """
    filesystem = FILESYSTEM_RIGHTS[min(rules.version, max(FILESYSTEM_RIGHTS))]
    descriptor = kernel.create_ruleset(
        filesystem, TCP if rules.version >= 4 and not rules.network else 0, SCOPES if rules.version >= 6 else 0
    )
    grants = [(path, READ) for path in rules.readable.whole]
    grants += [(path, Right.READ_DIR) for path in (*rules.readable.listed, "/dev")]
    grants += [(path, DEVICE) for path in HARMLESS_DEVICES]
    if not rules.reader:
        grants.append((SHARED_MEMORY, WRITE))
        if holds_no_terminal():
            grants += [(path, DEVICE) for path in (*TERMINAL_DEVICES, TERMINALS)]
    try:
        for path, rights in grants:
            _allow(descriptor, path, rights & filesystem)
        for path in rules.write:
            _allow_writing(descriptor, path, filesystem)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def scopes(version: int, *, network: bool) -> int | None:
    """Return a ruleset that knows nothing of files, for what builds its own view of them, or None below version 6."""
    return kernel.create_ruleset(0, 0 if network else TCP, SCOPES) if version >= 6 else None


def holds_no_terminal() -> bool:
    """Tell whether no pseudo terminal of this machine is in use."""
    try:
        return not any(name.isdigit() for name in os.listdir(TERMINALS))
    except OSError:
        return False


def _allow(ruleset_descriptor: int, path: str, rights: int) -> None:
    """Give back `rights` at and below `path`, if it is there and no link."""
    with _opened(path) as descriptor:
        if descriptor is not None and not stat.S_ISLNK(mode := os.fstat(descriptor).st_mode):
            kernel.add_path(ruleset_descriptor, rights if stat.S_ISDIR(mode) else rights & ON_A_FILE, descriptor)


def _allow_writing(ruleset_descriptor: int, path: str, known: int) -> None:
    """Give back writing at and below `path`. INVARIANT: no link is followed to a place that nobody judged."""
    with _opened(path) as descriptor:
        if descriptor is None:
            return
        _check_resolved(path, descriptor)
        mode = os.fstat(descriptor).st_mode
        rights = WRITE if stat.S_ISDIR(mode) else WRITE & ON_A_FILE
        if stat.S_ISCHR(mode):
            rights |= Right.IOCTL_DEV
        kernel.add_path(ruleset_descriptor, rights & known, descriptor)


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
