"""The present state of a path below an open folder, read without following a link."""

from __future__ import annotations

import hashlib
import os
import stat

from harness.files.left_out import MAX_CONTENT_BYTES
from harness.files.tree_changes import ABSENT, PathKind, PathState, kind_of
from harness.system import O_PATH

TOO_LARGE = f"over {MAX_CONTENT_BYTES // 1_000_000} MB"
UNREADABLE = "cannot be read"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_below(root: int, folder: str) -> int:
    """Return a descriptor (O_PATH) of `folder`, relative to the open folder `root`; the caller closes it.

    Raises OSError: NotADirectoryError for a link or a file on the way.
    """
    descriptor = os.open(".", _FOLDER, dir_fd=root)
    for part in filter(None, folder.split("/")):
        try:
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def state_in(folder: int, name: str) -> tuple[PathState, bytes | None]:
    """Return the state of a name in an open folder, and the content of a file that was read. Raises OSError."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT, None
    kind, mode = kind_of(status.st_mode), stat.S_IMODE(status.st_mode)
    match kind:
        case PathKind.FOLDER:
            return PathState(kind=kind, mode=mode), None
        case PathKind.LINK:
            return PathState(kind=kind, target=os.readlink(name, dir_fd=folder)), None
        case PathKind.FILE if status.st_size <= MAX_CONTENT_BYTES:
            return _file_state(folder, name, status)
        case PathKind.FILE:
            return PathState(kind=kind, mode=mode, size=status.st_size, unkept=TOO_LARGE), None
        case _:
            return PathState(kind=kind, mode=mode, unkept="special file"), None


def _file_state(folder: int, name: str, status: os.stat_result) -> tuple[PathState, bytes | None]:
    mode, size = stat.S_IMODE(status.st_mode), status.st_size
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except PermissionError:
        return PathState(kind=PathKind.FILE, mode=mode, size=size, unkept=UNREADABLE), None
    with open(descriptor, "rb", buffering=0) as file:
        opened = os.fstat(descriptor)
        if (opened.st_ino, opened.st_dev) != (status.st_ino, status.st_dev):
            return PathState(kind=PathKind.FILE, mode=mode, size=size, unkept="being written"), None
        data = file.read(MAX_CONTENT_BYTES + 1) or b""
    if len(data) > MAX_CONTENT_BYTES:
        return PathState(kind=PathKind.FILE, mode=mode, size=len(data), unkept=TOO_LARGE), None
    digest = hashlib.sha256(data).hexdigest()
    return PathState(kind=PathKind.FILE, mode=mode, size=len(data), sha256=digest), data


def state_below(root: int, path: str) -> PathState:
    """Return the state of a path relative to the open folder `root`. Absent if a folder on the way is missing or a link.

    Raises OSError.
    """
    above, _, name = path.rpartition("/")
    try:
        folder = open_below(root, above)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    try:
        return state_in(folder, name)[0]
    finally:
        os.close(folder)
