"""Open a folder by its resolved path, with no link followed anywhere on the way.

On Linux the kernel walks the path in one call (openat2(2), since 5.6); where it cannot, the path is walked part by part.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import TypeAlias

OPEN_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# include/uapi/asm-generic/unistd.h: the same number on every architecture that Linux still runs Python on but alpha,
# where it fails as unknown. include/uapi/linux/openat2.h.
_OPENAT2 = 437
_NO_MAGIC_LINKS = 0x02
_NO_LINKS = 0x04
_AT_FDCWD = -100
# What a kernel or a filter of system calls says that does not want it (or not with these flags), and what a rename
# somewhere on the way may cause: then the slower road is taken, which is as safe.
_NOT_THIS_WAY = frozenset((errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN))

OpenAtOnce: TypeAlias = "Callable[[str], int]"
_cache: list[OpenAtOnce] = []


def open_folder(folder: str, made: list[str] | None = None) -> int:
    """Return a descriptor (O_PATH) of the absolute, resolved `folder`; the caller closes it.

    Where `made` is a list, folders that are missing are made (0777 less the umask) and their paths appended to it.

    Raises OSError: FileNotFoundError for a missing folder, NotADirectoryError for a file on the way, ELOOP for a link.
    """
    try:
        return open_at_once(folder)
    except FileNotFoundError:
        if made is None:
            raise
    except OSError as error:
        if error.errno not in _NOT_THIS_WAY:
            raise
    return walk_to(folder, made)


def open_at_once(folder: str) -> int:
    """Do it with one call of openat2(2). Raises OSError: ENOSYS where there is none."""
    if not _cache:
        _cache.append(_openat2())
    return _cache[0](folder)


def _openat2() -> OpenAtOnce:
    """Return a function that opens a folder with openat2. It costs 4 ms to make, so that it is made when needed."""
    import ctypes

    class How(ctypes.Structure):
        """`struct open_how`."""

        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    # Without O_NOFOLLOW a link at the end is ELOOP as well, as one on the way is.
    how = How(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_LINKS | _NO_MAGIC_LINKS)
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        call = None
    size, reference = ctypes.c_size_t(ctypes.sizeof(how)), ctypes.byref(how)
    number, nowhere = ctypes.c_long(_OPENAT2), ctypes.c_int(_AT_FDCWD)

    def open_at_once(folder: str) -> int:
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        descriptor = int(call(number, nowhere, os.fsencode(folder), reference, size))
        if descriptor < 0:
            number_of_error = ctypes.get_errno()
            raise OSError(number_of_error, os.strerror(number_of_error), folder)
        return descriptor

    return open_at_once


def walk_to(folder: str, made: list[str] | None = None) -> int:
    """Do it part by part, as `open_folder` describes."""
    descriptor = os.open("/", OPEN_FOLDER)
    path = ""
    for part in folder.split("/"):
        if not part:
            continue
        path = f"{path}/{part}"
        try:
            following = _open_part(descriptor, part, path, made)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def _open_part(parent: int, part: str, path: str, made: list[str] | None) -> int:
    try:
        return _open_folder_in(parent, part)
    except FileNotFoundError:
        if made is None:
            raise
    try:
        os.mkdir(part, dir_fd=parent)
        made.append(path)
    except FileExistsError:
        pass  # someone else was faster
    return _open_folder_in(parent, part)


def _open_folder_in(parent: int, part: str) -> int:
    try:
        return os.open(part, OPEN_FOLDER, dir_fd=parent)
    except NotADirectoryError:
        # open(2) says so of a link as well, where it is not to be followed.
        if stat.S_ISLNK(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from None
        raise


def open_to_list(folder: str) -> int:
    """Return a descriptor of the absolute, resolved `folder` that can be listed and synced. Raises OSError as `open_folder`."""
    descriptor = open_folder(folder)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def names_in(folder: str, most: int) -> list[str] | None:
    """Return at most `most` names in the absolute, resolved `folder`, sorted, or None if it cannot be listed."""
    try:
        readable = open_to_list(folder)
        try:
            with os.scandir(readable) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(most), strict=False))
        finally:
            os.close(readable)
    except OSError:
        return None
