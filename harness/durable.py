"""What it takes that a new file is on the disk, name and bytes; it decides nothing of what is kept, or where."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of open(2) for a file that nobody else has made."""
_MOST_OF_NAME = 200
"""Bytes: what stands behind it makes no name too long (255, NAME_MAX)."""


def write_new(path: str, data: bytes) -> None:
    """Make a file with this content, mode 0600, on disk when this returns; its name is not (see `sync_path`).

    Raises OSError, FileExistsError where something is there already; then a part of it may be.
    """
    descriptor = os.open(path, NEW_FILE, 0o600)
    try:
        # A disk that fills up gives a short write and no error (write(2)).
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _check_size(descriptor, len(data), path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(path: str, pieces: Iterable[bytes], folder: int | None = None) -> None:
    """Put a file of mode 0600 in the place of what stands at `path`: whole, or not at all.

    With `folder`, the descriptor of one, `path` is a name in it. The bytes are on disk when this returns; the name is not
    (see `sync_path`). A link at `path` is replaced, not followed.

    Raises OSError, and what `pieces` raises; then what stood there stands there still, and nothing is left beside it.
    """
    made = beside(path)
    descriptor = os.open(made, NEW_FILE, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            _check_size(descriptor, file.tell(), path)
            os.fsync(descriptor)
        os.rename(made, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        remove_if_there(made, folder)
        raise


def beside(path: str) -> str:
    """Return a new name beside `path`, `NAME.<hex>.tmp`, for what is to take its place; a long name is cut."""
    head, name = os.path.split(path)
    return os.path.join(head, f"{os.fsdecode(os.fsencode(name)[:_MOST_OF_NAME])}.{os.urandom(6).hex()}.tmp")


def sync_path(path: str) -> None:
    """Bring a file's bytes, or the names in a folder, to the disk: syncing a file does not sync its name (fsync(2)).

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(folder: str | int) -> None:
    """Bring the names in a folder, its path or a descriptor of it, to the disk, where it lets that be done.

    For what is there all the same where it does not: some folders cannot be opened or synced.
    """
    try:
        if isinstance(folder, str):
            sync_path(folder or ".")
        else:
            os.fsync(folder)
    except OSError:
        pass


def remove_if_there(path: str, folder: int | None = None) -> None:
    """Remove a file that nobody relies on, with `folder` one in the folder of this descriptor; what cannot be removed stays."""
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        pass


def _check_size(descriptor: int, size: int, path: str) -> None:
    if os.fstat(descriptor).st_size != size:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)
