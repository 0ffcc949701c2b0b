"""Files that their owner alone may write: opened without following a link or waiting for a pipe; reads no content."""

from __future__ import annotations

import errno
import os
import stat

MAY_WRITE, MAY_USE = 0o022, 0o077
"""What others than the owner must not be able to do with a file, in bits of its mode (chmod(2))."""
_NO_FILE = "is not a file"


def open_private(path: str, flags: int, *, closed: int = MAY_WRITE) -> int:
    """Return a descriptor of the regular file at `path`, which is this user's own; O_CREAT among `flags` makes it, mode 0600.

    Raises OSError, whose `strerror` says of the file, in words, what is wrong: for a link, for what is no regular file, for
    a file of somebody else, and for one with a bit of `closed` in its mode. FileNotFoundError where there is none.
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
    """Return what is wrong with a file that `owners` alone should be able to write (or use: see `closed`), or nothing."""
    if not stat.S_ISREG(status.st_mode):
        return _NO_FILE
    if status.st_uid not in owners:
        return f"belongs to user {status.st_uid}, not to you"
    if status.st_mode & closed & MAY_WRITE:
        return "others than you may write it: chmod go-w"
    return "others than you may read it: chmod 600" if status.st_mode & closed else ""
