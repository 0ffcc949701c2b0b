"""What it takes that a new file is on the disk, name and bytes; it decides nothing of what is kept, or where."""

from __future__ import annotations

import errno
import os

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new(path: str, data: bytes) -> None:
    """Make a file with this content, mode 0600, on disk when this returns; its name is not (see `sync_path`).

    Raises OSError, FileExistsError where something is there already; then a part of it may be.
    """
    descriptor = os.open(path, _NEW_FILE, 0o600)
    try:
        # A disk that fills up gives a short write and no error (write(2)).
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if os.fstat(descriptor).st_size != len(data):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_path(path: str) -> None:
    """Bring a file's bytes, or the names in a folder, to the disk: syncing a file does not sync its name (fsync(2)).

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_if_there(path: str) -> None:
    """Remove a file that nobody relies on; what cannot be removed stays."""
    try:
        os.unlink(path)
    except OSError:
        pass
