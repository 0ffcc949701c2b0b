"""The kernel's facts about processes, mostly from /proc (proc(5)). This code only reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from harness.record import Record

RLIMIT_LOCKS = 10
"""Number of the limit in asm-generic/resource.h. Ignored since Linux 2.4.25 (getrlimit(2)), inherited by every child.
"""
_LOCKS = b"\nMax file locks"
_cache: list[bool] = []


class Process(Record):
    """One process, described by its `stat` file (proc(5), /proc/pid/stat)."""

    pid: int
    name: str
    """Name of at most 15 bytes. A process may change its own."""
    state: str
    """State of its first thread, one letter. `Z` if that has ended, even if others run."""
    parent: int
    group: int
    session: int
    terminal: int
    """Device number of its controlling terminal. 0 if it has none."""
    threads: int
    started: int
    """Start time in clock ticks since boot. Together with the number it identifies a process uniquely."""

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended entirely and only waits for its parent to reap it."""
        return self.state in "ZX" and self.threads <= 1


def process(pid: int) -> Process | None:
    """Return the facts about a process. `None` if it does not exist or cannot be inspected."""
    stat = _read(f"/proc/{pid}/stat")
    name, mark, rest = stat.partition(b" (")[2].rpartition(b") ")  # the name itself may hold blanks and brackets
    if not mark:
        return None
    fields = rest.split(b" ", 20)
    return Process(
        pid=pid,
        name=name.decode("utf-8", "replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        terminal=int(fields[4]),
        threads=int(fields[17]),
        started=int(fields[19]),
    )


def numbers() -> Iterator[int]:
    """Yield the number of every visible process."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def first_children(pid: int) -> set[int]:
    """Return the children of a process's main thread, including ended ones. On some kernels those of all its threads.

    The main thread gets the orphans that a process adopts. Reading only its `children` file saves a tenth of a
    command's time: the files of the threads that start commands are new with each command.
    """
    if not _has_children_files():
        return children(pid)
    return set(map(int, _read(f"/proc/{pid}/task/{pid}/children").split()))


def children(pid: int) -> set[int]:
    """Return the numbers of a process's children, including ended ones.

    They are read from the `children` files of its threads if the kernel has them (CONFIG_PROC_CHILDREN), otherwise from
    the `stat` file of every process. A child that starts or ends during the call may be missing: call again if it
    matters.
    """
    if not _has_children_files():
        return {number for number in numbers() if (other := process(number)) is not None and other.parent == pid}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return set()
    return {int(word) for thread in threads for word in _read(f"/proc/{pid}/task/{thread}/children").split()}


def _has_children_files() -> bool:
    if not _cache:
        _cache.append(os.path.exists("/proc/thread-self/children"))
    return _cache[0]


def family(roots: Iterable[Process]) -> list[Process]:
    """Return the processes and all their descendants, each once, parents first."""
    processes = {root.pid: root for root in roots}
    waiting = list(processes)
    while waiting:
        for number in children(waiting.pop()):
            child = process(number)
            if child is not None and number not in processes:
                processes[number] = child
                waiting.append(number)
    return list(processes.values())


def lock_limit(pid: int) -> int | None:
    """Return a process's hard limit of file locks (RLIMIT_LOCKS). -1 without a limit, `None` if it cannot be read.

    prlimit(2) works for a process that hides its /proc files, the `limits` file for a process of another user.
    """
    import resource

    try:
        return resource.prlimit(pid, RLIMIT_LOCKS)[1]
    except (OSError, ValueError):
        pass
    words = _read(f"/proc/{pid}/limits").partition(_LOCKS)[2].split(None, 2)
    if len(words) < 2:
        return None
    return int(words[1]) if words[1].isdigit() else resource.RLIM_INFINITY


def carries(pid: int, variable: bytes) -> bool:
    """Return whether a process was started with `variable` (`NAME=value`) in its environment."""
    return b"\0" + variable + b"\0" in b"\0" + _read(f"/proc/{pid}/environ")


def walls(pid: int) -> tuple[int, int]:
    """Return the NoNewPrivs flag of a process (0 or 1), and the number of its seccomp filters."""
    status = _read(f"/proc/{pid}/status")
    return _number(status, b"NoNewPrivs"), _number(status, b"Seccomp_filters")


def _number(status: bytes, name: bytes) -> int:
    """Return the number after a name in a `status` file. 0 if it is missing."""
    words = status.partition(b"\n%b:" % name)[2].split(None, 1)
    return int(words[0]) if words else 0


def _read(path: str) -> bytes:
    """Return a file's content. Empty if the process no longer exists or may not be inspected."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    content = b""
    try:
        while block := os.read(descriptor, 65_536):
            content += block
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return content
