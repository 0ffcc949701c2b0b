"""Kernel settings for the harness itself and for a newly started command: prctl(2) and limits."""

from __future__ import annotations

import os
import signal

from harness.process.procfs import RLIMIT_LOCKS
from harness.system import c_call

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

MAX_FILE_BYTES = 2 << 30
MAX_OPEN_FILES = 4096
MAX_DATA_BYTES = 4 << 30
OOM_SCORE = 500
"""Out-of-memory score, of at most 1000 (proc(5), oom_score_adj). The kernel kills the command before the harness."""

_set_for: list[int] = []


def undumpable() -> bool:
    """Hide this process's memory and /proc/PID/environ from other processes of the same user. Return whether it worked.

    See PR_SET_DUMPABLE(2const). A process with CAP_SYS_PTRACE, such as root's, still sees both. execve(2) undoes it.
    """
    return _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parent ends. Return whether it worked.

    See PR_SET_CHILD_SUBREAPER(2const). If this process is a program that uses harness as a library, its own abandoned
    descendants become its children too, instead of init's.
    """
    if _set_for != [os.getpid()]:  # a fork does not inherit it
        if not _prctl(_PR_SET_CHILD_SUBREAPER, 1):
            return False
        _set_for[:] = [os.getpid()]
    return True


def set_name(name: bytes) -> bool:
    """Set the name of this process, at most 15 bytes, without writing to `/proc`. Return whether it worked."""
    return _prctl(_PR_SET_NAME, name)


def end_with_parent() -> bool:
    """Have this process killed when the thread that started it ends (PR_SET_PDEATHSIG(2const)).

    Return whether it worked.
    """
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int | bytes) -> bool:
    return c_call("prctl", option, value, 0, 0, 0) == 0


def new_mark() -> int:
    """Return a mark: a limit of file locks that no other process has. It is at least 2**62, so it limits nothing."""
    import resource  # noqa: F401 - loaded before a command starts, so that `bound` is not delayed

    return (1 << 62) | (int.from_bytes(os.urandom(8), "big") >> 2)


def bound(pid: int, mark: int) -> bool:
    """Set the limits and the mark of a newly started command. Return whether the mark was set.

    The limits: no core file, files of 2 GiB, 4,096 descriptors, 4 GiB of data (not of addresses, since runtimes reserve
    those by the terabyte). Limits are only lowered, never raised. A limit that cannot be set is skipped: they protect
    the machine, and are not part of the walls.

    An existing mark is kept: that of another harness, if this one runs inside its command.
    """
    import resource

    for kind, maximum in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_DATA, MAX_DATA_BYTES),
    ):
        _lower(pid, kind, maximum)
    try:
        descriptor = os.open(f"/proc/{pid}/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(descriptor, 16)) < OOM_SCORE:
                os.write(descriptor, b"%d" % OOM_SCORE)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        pass
    try:
        if resource.prlimit(pid, RLIMIT_LOCKS)[1] != resource.RLIM_INFINITY:
            return False
        resource.prlimit(pid, RLIMIT_LOCKS, (mark, mark))
    except (OSError, ValueError):
        return False
    return True


def _lower(pid: int, kind: int, maximum: int) -> None:
    """Lower a soft and a hard limit of a process to `maximum`."""
    import resource

    try:
        soft, hard = resource.prlimit(pid, kind)
        lower = tuple(maximum if limit == resource.RLIM_INFINITY else min(limit, maximum) for limit in (soft, hard))
        if lower != (soft, hard):
            resource.prlimit(pid, kind, (lower[0], lower[1]))
    except (OSError, ValueError):
        pass
