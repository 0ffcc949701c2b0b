"""System calls that Python does not have: renames that overwrite nothing (renameat2(2)), and syncing a file system."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any

_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


@cache
def _function(name: str) -> Any:
    """Return a function of the C library. `None` if it has none."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _rename(folder: int, old: str, new: str, flag: int) -> bool:
    """Rename in one step. Return False if that is not supported here. Raises OSError."""
    function = _function("renameat2")
    if function is None:
        return False
    if function(folder, os.fsencode(old), folder, os.fsencode(new), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), new)


def exchange(folder: int, name: str, other: str) -> bool:
    """Exchange two files in the open `folder`. Return False if the file system cannot. Raises OSError."""
    return _rename(folder, name, other, _EXCHANGE)


def rename_to_free(folder: int, old: str, new: str) -> None:
    """Rename a file in the open `folder`. Raises FileExistsError if `new` exists, and OSError.

    Where the file system cannot do that in one step, `new` is looked at right before.
    """
    if _rename(folder, old, new, _NO_REPLACE):
        return
    try:
        os.stat(new, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def sync_file_system(descriptor: int) -> None:
    """Write everything of the file system with this open file or folder to disk (syncfs(2))."""
    function = _function("syncfs")
    if function is None or function(descriptor) != 0:
        os.sync()
