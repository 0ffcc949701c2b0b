"""Small files that must be safe: written whole and durably, private to their owner, or read only if they are small."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of open(2) for a file that did not exist."""
_MOST_OF_NAME = 200
"""Maximum number of bytes kept of a name, so that additions do not make it too long (255, NAME_MAX)."""


def write_new(path: str, data: bytes) -> None:
    """Make a file with this content, mode 0600, on disk when this returns; its name is not (see `sync_path`).

    Raises OSError, FileExistsError where something is there already; then a part of it may be.
    """
    descriptor = os.open(path, NEW_FILE, 0o600)
    try:
        write_whole(descriptor, data)
        check_size(descriptor, len(data), path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    """Write all of `data`. Raises OSError: a disk that fills up takes a part first, and then says why (write(2))."""
    while data:
        count = write(descriptor, data)
        if count <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        data = data[count:]


def append_line(descriptor: int, line: bytes, *, alone: bool) -> None:
    """Add a line to a file that is open to be read and appended to; behind a torn line it begins on a line of its own.

    `alone` says that the caller holds the lock of the file: then a part that was written is taken back where the rest
    cannot be. Raises OSError.
    """
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        write_whole(descriptor, line)
    except OSError:
        if alone:
            os.ftruncate(descriptor, size)
        raise


def is_locked_within(descriptor: int, seconds: float) -> bool:
    """Wait for the lock of a file (flock(2)), at most so long; say whether it is held now."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        else:
            return True


def check_size(descriptor: int, size: int, path: str) -> None:
    """Raise OSError unless the file has this size: some file systems lose what they took."""
    if os.fstat(descriptor).st_size != size:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def replace_file(path: str, pieces: Iterable[bytes], folder: int | None = None) -> None:
    """Write or replace the file at `path` with mode 0600: whole, or not at all.

    With `folder`, the descriptor of one, `path` is a name in it. The bytes are on disk when this returns; the name is
    not (see `sync_path`). A link at `path` is replaced, not followed.

    Raises OSError, and the errors of `pieces`; then the old file is unchanged, and no temporary file is left.
    """
    temporary = name_beside(path)
    descriptor = os.open(temporary, NEW_FILE, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            check_size(descriptor, file.tell(), path)
            os.fsync(descriptor)
        os.rename(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        remove_if_there(temporary, folder)
        raise


def name_beside(path: str) -> str:
    """Return a new name beside `path`, `NAME.<hex>.tmp`, for its replacement; a long name is cut."""
    head, name = os.path.split(path)
    return os.path.join(head, f"{os.fsdecode(os.fsencode(name)[:_MOST_OF_NAME])}.{os.urandom(6).hex()}.tmp")


def sync_path(path: str, folder: int | None = None) -> None:
    """Bring a file's bytes, or the names in a folder, to the disk: syncing a file does not sync its name (fsync(2)).

    With `folder`, the descriptor of one, `path` is a name in it. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
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
            sync_path(".", folder)
    except OSError:
        pass


def remove_if_there(path: str, folder: int | None = None) -> None:
    """Remove a file that nothing relies on, with `folder` one in the folder of this descriptor. Errors are ignored."""
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        pass


MAY_WRITE, MAY_USE = 0o022, 0o077
"""Rights that only the owner of a file may have, in bits of its mode (chmod(2))."""
_NO_FILE = "is not a file"


def open_private(path: str, flags: int, *, closed: int = MAY_WRITE) -> int:
    """Open the regular file at `path`, which must be this user's own; O_CREAT among `flags` creates it, mode 0600.

    Raises OSError, whose `strerror` has the problem in words: for a link, for anything but a regular file, for a file
    of another user, and for one with a bit of `closed` in its mode. FileNotFoundError if it does not exist.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and os.path.islink(path):
            raise OSError(errno.ELOOP, "is a link", path) from None
        if error.errno in (errno.ENXIO, errno.EISDIR):  # a pipe that nobody reads (fifo(7)), a folder
            raise OSError(error.errno, _NO_FILE, path) from None
        raise
    problem = why_not_private(os.fstat(descriptor), owners=(os.geteuid(),), closed=closed)
    if problem:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, problem, path)
    return descriptor


def why_not_private(status: os.stat_result, *, owners: tuple[int, ...], closed: int = MAY_WRITE) -> str:
    """Return the problem of a file that only `owners` should be able to write (or use: see `closed`), or an empty
    string.
    """
    if not stat.S_ISREG(status.st_mode):
        return _NO_FILE
    if status.st_uid not in owners:
        return f"belongs to user {status.st_uid}, not to you"
    if status.st_mode & closed & MAY_WRITE:
        return "others than you may write it: chmod go-w"
    return "others than you may read it: chmod 600" if status.st_mode & closed else ""


def read_small(path: str, max_bytes: int) -> bytes | None:
    """Return the content of the regular file at `path`, or None for all else: missing, a folder, a pipe, above `max_bytes`."""
    try:
        data = read_regular(path, max_bytes + 1)
    except OSError:
        return None
    return data if len(data) <= max_bytes else None


def read_regular(path: str, max_bytes: int = -1) -> bytes:
    """Return the content of the regular file at `path`, or its first `max_bytes` bytes, without waiting for a pipe.

    Raises OSError, whose `strerror` has the problem in words, also for anything but a regular file.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if os.path.isfile(file.fileno()):
                return file.read(max_bytes)
    except ValueError as error:  # NUL or a lone surrogate in the path
        raise OSError(errno.EINVAL, str(error), path) from None
    raise OSError(errno.EINVAL, "Not a regular file", path)
