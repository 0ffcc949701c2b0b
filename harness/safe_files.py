"""Small files that need safe handling: complete and durable writes, private permissions, limited reads."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of open(2) to create a file. The call fails if the file exists."""
_MOST_OF_NAME = 200
"""Maximum number of bytes kept of a name, so that the name with a suffix fits into NAME_MAX (255)."""


def make_private(folder: str) -> None:
    """Make a folder, and the missing ones above it, that only their owner may enter, whatever the umask. Raises OSError.

    The mode of `os.makedirs` is for the last folder alone. An existing folder is left as it is.
    """
    above = os.path.dirname(folder)
    if above and not os.path.lexists(above):
        make_private(above)
    os.makedirs(folder, mode=0o700, exist_ok=True)


def write_new(path: str, data: bytes) -> None:
    """Create a file with mode 0600 and write `data` to disk. The directory entry is not synced (see `sync_path`).

    Raises FileExistsError if the path exists, and OSError. After an OSError, a part of the file may be left.
    """
    descriptor = os.open(path, NEW_FILE, 0o600)
    try:
        write_whole(descriptor, data)
        check_size(descriptor, len(data), path)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    """Write all of `data`. Raises OSError.

    A disk that fills up accepts a part first and reports the error only at the next write (write(2)).
    """
    while data:
        count = write(descriptor, data)
        if count <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        data = data[count:]


def append_line(descriptor: int, line: bytes, *, alone: bool) -> None:
    """Append a line to a file that is open for reading and appending. After a torn line, it begins a new line.

    `alone` means that the caller holds the lock of the file. If the write then fails midway, the written part is
    removed. Raises OSError.
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
    """Wait at most `seconds` for the lock of a file (flock(2)). Return whether the lock was acquired."""
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
    """Raise OSError unless the file has this size, because some file systems lose written data."""
    if os.fstat(descriptor).st_size != size:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def replace_file(path: str, pieces: Iterable[bytes], folder: int | None = None) -> None:
    """Write or replace the file at `path` atomically, with mode 0600.

    With `folder`, a directory file descriptor, `path` is a name in that folder. The bytes are on disk on return, but
    the directory entry is not (see `sync_path`). A link at `path` is replaced, not followed.

    Raises OSError, and the errors of `pieces`. Then the old file is unchanged, and no temporary file is left.
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
    """Return a new name next to `path`, `NAME.<hex>.tmp`, for its replacement. A long NAME is cut."""
    head, name = os.path.split(path)
    return os.path.join(head, f"{os.fsdecode(os.fsencode(name)[:_MOST_OF_NAME])}.{os.urandom(6).hex()}.tmp")


def sync_path(path: str, folder: int | None = None) -> None:
    """Sync a file's bytes, or the entries of a folder, to disk. Syncing a file does not sync its name (fsync(2)).

    With `folder`, a directory file descriptor, `path` is a name in that folder. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(folder: str | int) -> None:
    """Sync the entries of a folder to disk if possible. `folder` is a path or a file descriptor.

    Errors are ignored, since some folders cannot be opened or synced. For entries that need not be durable.
    """
    try:
        if isinstance(folder, str):
            sync_path(folder or ".")
        else:
            sync_path(".", folder)
    except OSError:
        pass


def remove_if_there(path: str, folder: int | None = None) -> None:
    """Remove a file that is no longer needed. Errors are ignored.

    With `folder`, a directory file descriptor, `path` is a name in that folder.
    """
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        pass


MAY_WRITE, MAY_USE = 0o022, 0o077
"""Bits of a file mode (chmod(2)) that only the owner may have."""
_NO_FILE = "is not a file"


def open_private(path: str, flags: int, *, closed: int = MAY_WRITE) -> int:
    """Open the regular file at `path`, which must belong to this user.

    With O_CREAT in `flags`, the file is created with mode 0600. Raises OSError with the problem in `strerror` for a
    link, a non-regular file, a file of another user, or a file with a bit of `closed` in its mode. Raises
    FileNotFoundError if the file does not exist.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and os.path.islink(path):
            raise OSError(errno.ELOOP, "is a link", path) from None
        if error.errno in (errno.ENXIO, errno.EISDIR):  # a pipe without a reader (fifo(7)), a folder
            raise OSError(error.errno, _NO_FILE, path) from None
        raise
    problem = why_not_private(os.fstat(descriptor), owners=(os.geteuid(),), closed=closed)
    if problem:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, problem, path)
    return descriptor


def why_not_private(status: os.stat_result, *, owners: tuple[int, ...], closed: int = MAY_WRITE) -> str:
    """Return the reason why a file is not private to `owners`, or an empty string. See `closed` in `open_private`."""
    if not stat.S_ISREG(status.st_mode):
        return _NO_FILE
    if status.st_uid not in owners:
        return f"belongs to user {status.st_uid}, not to you"
    if status.st_mode & closed & MAY_WRITE:
        return "others than you may write it: chmod go-w"
    return "others than you may read it: chmod 600" if status.st_mode & closed else ""


def read_small(path: str, max_bytes: int) -> bytes | None:
    """Return the content of a regular file. `None` for a missing file, a folder, a pipe, or more than `max_bytes`."""
    try:
        data = read_regular(path, max_bytes + 1)
    except OSError:
        return None
    return data if len(data) <= max_bytes else None


def read_regular(path: str, max_bytes: int = -1) -> bytes:
    """Return the content of the regular file at `path`, or its first `max_bytes` bytes, without waiting for a pipe.

    Raises OSError with the problem in `strerror`, also for anything but a regular file.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if os.path.isfile(file.fileno()):
                return file.read(max_bytes)
    except ValueError as error:  # NUL or a lone surrogate in the path
        raise OSError(errno.EINVAL, str(error), path) from None
    raise OSError(errno.EINVAL, "Not a regular file", path)
