"""Leases: who runs a task holds the lock of its folder, and the kernel gives it back however that process ends."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType

from harness.errors import UsageError
from harness.small_files import read_small

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import Self

LOCK = "lock"
MAX_HOLDER_BYTES = 100


class Held(UsageError):
    """The task is being run by another process."""


class Lease:
    """The lock of a task's folder, held for as long as the `with` block lasts.

    INVARIANT: the file is never removed. Who removed it would let two processes hold two files of one name.
    """

    def __init__(self, folder: str) -> None:
        """Take the lease of the task in `folder`. Raises Held, which names the process that holds it, and OSError."""
        self._path = os.path.join(folder, LOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = (read_small(self._path, MAX_HOLDER_BYTES) or b"").decode("ascii", "replace").strip()
            os.close(self._descriptor)
            process = holder if holder.isdigit() else "that is not known"
            raise Held(f"the task in {folder} is being run by process {process}") from None
        except BaseException:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lease back."""
        os.close(self._descriptor)


def is_held(folder: str) -> bool:
    """Say whether another process holds the lease of the task in `folder`; not where there is none to hold."""
    try:
        descriptor = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
