"""Kernel settings for the harness itself and for a command that was just started: prctl(2) and limits."""

from __future__ import annotations

import os
import signal

from harness.process.procfs import RLIMIT_LOCKS

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

MAX_FILE_BYTES = 2 << 30
MAX_OPEN_FILES = 4096
MAX_DATA_BYTES = 4 << 30
OOM_SCORE = 500
"""Out-of-memory score, of a thousand (proc(5), oom_score_adj): the command is killed before the harness."""

_set_for: list[int] = []


def undumpable() -> bool:
    """Keep other processes of the same person out of this one's memory and out of /proc/PID/environ; say whether it took.

    PR_SET_DUMPABLE(2const). A holder of CAP_SYS_PTRACE, as root is, still sees both. Undone by execve(2).
    """
    return _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends (PR_SET_CHILD_SUBREAPER(2const)); say whether it took.

    Descendants that a library's user started and abandoned become children of this process as well, instead of init's.
    """
    if _set_for != [os.getpid()]:  # a fork does not inherit it
        if not _prctl(_PR_SET_CHILD_SUBREAPER, 1):
            return False
        _set_for[:] = [os.getpid()]
    return True


def end_with_parent() -> bool:
    """Be killed when the thread that started this process ends (PR_SET_PDEATHSIG(2const)); say whether it took."""
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    import ctypes

    try:
        return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def new_mark() -> int:
    """Return a limit of file locks that no other process has: 2**62 at least, no bound on anything."""
    import resource  # noqa: F401 - loaded before a command starts, so that `bound` comes no later than it must

    return (1 << 62) | (int.from_bytes(os.urandom(8), "big") >> 2)


def bound(pid: int, mark: int) -> bool:
    """Set the limits of a command just started, and its mark; say whether the mark took. Limits are only ever lowered.

    No core file, files of 2 GiB, 4,096 descriptors, 4 GiB of data (not of addresses: runtimes reserve those by the
    terabyte). What fails is left out: these bounds are a courtesy to the machine, and no wall.

    A mark is only set where there was none: inside a command of another harness, that one's is kept.
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
