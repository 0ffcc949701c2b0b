"""System: parts of Linux that this program needs and other POSIX systems lack, each with its substitute.

macOS lacks `O_PATH`, `O_TMPFILE`, files in memory, process descriptors, `waitid` (before Python 3.13), `/proc`, the limits
and the marks of another process, and a parent for orphans. Each name here is decided by what is there, not by the name of the
system, so that all of it is tried on Linux too (tests/support/darwin). Walls have none: see `sandbox.machine`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import sys
import time
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any

O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
"""Flags of open(2) for a file or folder that is only to be named. Without O_PATH it must be readable."""
O_TMPFILE: int | None = getattr(os, "O_TMPFILE", None)
"""Flag of open(2) for a file without a name. `None` where every file has one."""
IS_LINUX = sys.platform == "linux"
HAS_PROC = IS_LINUX and os.path.exists("/proc/self/stat")
"""Whether processes are files below `/proc`."""
CLOCK_WITH_SLEEP: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Monotonic clock that goes on while the machine sleeps; that of macOS always does."""
ATTRIBUTES = hasattr(os, "listxattr")
"""Whether Python reads the extended attributes of files here."""

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_INFORMATION_BYTES = 128
"""Size of `siginfo_t`. That of macOS is smaller."""


def sync_data(descriptor: int) -> None:
    """Write the data of a file to disk (fdatasync(2)).

    fsync(2) of macOS leaves data in the cache of the disk, F_FULLFSYNC does not; some file systems lack it. Raises OSError.
    """
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
        else:
            return
    getattr(os, "fdatasync", os.fsync)(descriptor)


def memory_file(name: str) -> int:
    """Return a descriptor of a new empty file in memory, or of one without a name on the disk. Raises OSError."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    path = f"/tmp/harness-{name}-{os.urandom(8).hex()}"  # noqa: S108 - no other user can guess it, and it must be new
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return descriptor


def seal(descriptor: int) -> None:
    """Make the content of a `memory_file` final, and go to its start. A file on the disk stays writable. Raises OSError."""
    if hasattr(fcntl, "F_ADD_SEALS"):
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    os.lseek(descriptor, 0, os.SEEK_SET)


def inherited_path(descriptor: int) -> str:
    """Return the path of a descriptor in a program that inherits it."""
    return f"/proc/self/fd/{descriptor}" if HAS_PROC else f"/dev/fd/{descriptor}"


def set_mode(descriptor: int, mode: int) -> None:
    """Set the permission bits of a file or folder that was opened with `O_PATH`. Raises OSError."""
    _on_opened(descriptor, lambda file: os.chmod(file, mode))


def set_owner(descriptor: int, user: int) -> None:
    """Set the owner of a file or folder that was opened with `O_PATH`. Raises OSError."""
    _on_opened(descriptor, lambda file: os.chown(file, user, -1))


def _on_opened(descriptor: int, change: Callable[[Any], None]) -> None:
    """Change an opened file. Calls for descriptors (fchmod(2)) refuse one of O_PATH, its path in `/proc` does not."""
    change(f"/proc/self/fd/{descriptor}" if HAS_PROC else descriptor)


def processors() -> int:
    """Return the number of processors that this process may use, or that the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def c_call(name: str, *arguments: int | bytes | bytearray) -> int:
    """Call a function of the C library with integers and bytes. Return 0, or the number of the error.

    It is ENOSYS for a function that this system does not have. A bytearray is changed in place.
    """
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return errno.ENOSYS
    values = [
        (ctypes.c_char * len(each)).from_buffer(each) if isinstance(each, bytearray) else each for each in arguments
    ]
    return 0 if function(*values) == 0 else ctypes.get_errno()


def ended_child(pid: int, *, wait: bool = False) -> tuple[bool, int] | None:
    """Return whether an ended child exited by itself, and its exit code or signal. It is not reaped, so its number stays its.

    `None` if the child still runs, which never happens with `wait`. Raises ChildProcessError if there is no such child.
    """
    options = os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)
    if hasattr(os, "waitid"):
        status = os.waitid(os.P_PID, pid, options)
        return None if status is None else (status.si_code == os.CLD_EXITED, status.si_status)
    information = bytearray(_INFORMATION_BYTES)
    while (number := c_call("waitid", 1, pid, information, options)) != 0:  # P_PID
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
    _, _, code, third, fourth, fifth, sixth = struct.unpack_from("7i", information)
    # The number comes fourth or, where a union is aligned, fifth. A user and the status follow.
    if pid not in (third, fourth):
        return None
    return code == os.CLD_EXITED, fifth if third == pid else sixth


def exit_descriptor(pid: int) -> int:
    """Return a descriptor that poll(2) finds readable or hung up once a child has ended. Raises OSError.

    Without process descriptors it is a pipe, and a thread that waits for the child closes the other end.
    """
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    reading, writing = os.pipe()

    def wait() -> None:
        try:
            ended_child(pid, wait=True)
        except OSError:
            pass  # other code has reaped it
        finally:
            os.close(writing)

    start_new_thread(wait, ())
    return reading


class TerminalPoll:
    """Replaces `select.poll` on a system whose poll(2) does not take terminals (macOS), by select(2)."""

    def __init__(self) -> None:
        """Create it without descriptors."""
        self._events: dict[int, int] = {}

    def register(self, descriptor: int, events: int) -> None:
        """Wait for these events of a descriptor. The end of one without events is not seen."""
        self._events[descriptor] = events

    def unregister(self, descriptor: int) -> None:
        """Stop to wait for a descriptor."""
        del self._events[descriptor]

    def poll(self, milliseconds: float | None = None) -> list[tuple[int, int]]:
        """Wait at most that long, and return the ready descriptors with their events. Raises OSError."""
        reads = [descriptor for descriptor, events in self._events.items() if events & select.POLLIN]
        writes = [descriptor for descriptor, events in self._events.items() if events & select.POLLOUT]
        seconds = None if milliseconds is None or milliseconds < 0 else milliseconds / 1000
        readable, writable, _ = select.select(reads, writes, [], seconds)
        return [(each, select.POLLIN) for each in readable] + [(each, select.POLLOUT) for each in writable]


def poll_for(*descriptors: int) -> select.poll | TerminalPoll:
    """Return a poll for these and other descriptors. Any that may be a terminal must be among them."""
    if IS_LINUX or not any(map(os.isatty, descriptors)):
        return select.poll()
    return TerminalPoll()


def quiet_pipe() -> tuple[int, int]:
    """Return both ends of a pipe that never blocks. Raises OSError."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


class Bell:
    """Wakes a poll(2), from a signal handler or another thread. Ringing it twice is the same as once."""

    def __init__(self) -> None:
        """Create it. Raises OSError."""
        self.descriptor, self._ringing = quiet_pipe()
        """Descriptor that is readable once the bell has rung."""

    def ring(self) -> None:
        """Make the descriptor readable."""
        try:
            os.write(self._ringing, b"\0")
        except BlockingIOError:
            pass

    def quiet(self) -> None:
        """Make the descriptor unreadable again."""
        try:
            while os.read(self.descriptor, 4096):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close both ends. Nothing may ring it any more."""
        os.close(self.descriptor)
        os.close(self._ringing)
