"""Open a folder by its resolved path without following any link on the way.

The path is walked part by part from the root: each folder is opened relative to its parent.
"""

from __future__ import annotations

import errno
import os
import stat

from harness.system import O_PATH

_OPEN_FOLDER = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(folder: str, new_folders: list[str] | None = None) -> int:
    """Return a descriptor (O_PATH) of the absolute, resolved `folder`; the caller closes it.

    If `new_folders` is a list, missing folders are created (0777 less the umask) and their paths are appended to it.

    Raises OSError: FileNotFoundError for a missing folder, NotADirectoryError for a file on the way, ELOOP for a link.
    """
    descriptor = os.open("/", _OPEN_FOLDER)
    path = ""
    for part in filter(None, folder.split("/")):
        path = f"{path}/{part}"
        try:
            following = _open_part(descriptor, part, path, new_folders)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def _open_part(parent: int, part: str, path: str, new_folders: list[str] | None) -> int:
    try:
        return _open_folder_in(parent, part)
    except FileNotFoundError:
        if new_folders is None:
            raise
    try:
        os.mkdir(part, dir_fd=parent)
        new_folders.append(path)
    except FileExistsError:
        pass  # another process created it first
    return _open_folder_in(parent, part)


def _open_folder_in(parent: int, part: str) -> int:
    try:
        return os.open(part, _OPEN_FOLDER, dir_fd=parent)
    except NotADirectoryError:
        # With O_NOFOLLOW, open(2) returns this error for a link too.
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


def names_in(folder: str, max_names: int) -> list[str] | None:
    """Return at most `max_names` names in the absolute, resolved `folder`, sorted. `None` if it cannot be listed."""
    try:
        readable = open_to_list(folder)
        try:
            with os.scandir(readable) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(max_names), strict=False))
        finally:
            os.close(readable)
    except OSError:
        return None
