"""Removes a folder whole, however deep, and whatever modes a run gave to what is in it; it follows no link."""

from __future__ import annotations

import os
import stat
import time

TRIES = 5
"""What a killed run left may still be ending, and write meanwhile."""
WAIT_SECONDS = 0.2
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def removed(path: str) -> str:
    """Remove `path`, where it is there; return why it could not be removed, or nothing."""
    for left in reversed(range(TRIES)):
        try:
            if not os.path.lexists(path):
                return ""
            if stat.S_ISDIR(os.lstat(path).st_mode):
                _remove_folder(path)
            else:
                os.unlink(path)
        except OSError as error:
            if not left:
                return f"{path} cannot be removed: {error.strerror}"
            time.sleep(WAIT_SECONDS)
    return ""


def _remove_folder(root: str) -> None:
    """Empty a folder and remove it: each folder in it is first moved to its top, so that no path is too long. Raises OSError.

    INVARIANT: all is done by the descriptors of `root` and of a folder straight in it, so that a link that is put in the
    place of a folder meanwhile leads nowhere.
    """
    _open_to_us(root, None)
    top = os.open(root, _FOLDER)
    try:
        waiting = _emptied(top, top)
        while waiting:
            name = waiting.pop()
            _open_to_us(name, top)
            folder = os.open(name, _FOLDER, dir_fd=top)
            try:
                waiting += _emptied(folder, top)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(root)


def _emptied(folder: int, top: int) -> list[str]:
    """Remove what is in a folder, but for folders: they are moved to the top, under the names that are returned."""
    moved = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
        elif folder == top:
            moved.append(name)
        else:
            _open_to_us(name, folder)
            to = f".{os.urandom(12).hex()}"
            os.rename(name, to, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(to)
    return moved


def _open_to_us(name: str, folder: int | None) -> None:
    """Lift the mode of a folder that closes it: to be emptied, and to be moved, it must be writable."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
        # By its name: a folder that is closed to us has no descriptor for us. Whoever puts a link there meanwhile is this user.
        os.chmod(name, 0o700, dir_fd=folder)
