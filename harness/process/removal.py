"""Removal of a folder with all its content: at any depth, with any file modes, and without following links."""

from __future__ import annotations

import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(root: str) -> OSError | None:
    """Remove as much of the folder as possible. Return the first error, or `None`.

    Each nested folder is first moved directly into `root`, so that no path is too long and no recursion too deep
    (shutil.rmtree recurses for each level, and stops at a read-only folder).

    INVARIANT: all operations use descriptors of `root` and of a folder directly in it. So a link that replaces a folder
    during the removal has no effect.
    """
    problems: list[OSError] = []
    try:
        _open_to_us(root, None)
        top = os.open(root, _FOLDER)
        try:
            waiting = _emptied(top, top, problems)
            while waiting:
                try:
                    waiting += _removed(waiting.pop(), top, problems)
                except OSError as error:
                    problems.append(error)
        finally:
            os.close(top)
        os.rmdir(root)
    except OSError as error:
        problems.append(error)
    return problems[0] if problems else None


def _removed(name: str, top: int, problems: list[OSError]) -> list[str]:
    """Remove a folder in `top`. Move the folders in it to `top`, and return their new names."""
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        moved = _emptied(folder, top, problems)
    finally:
        os.close(folder)
    try:
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        problems.append(error)
    return moved


def _emptied(folder: int, top: int, problems: list[OSError]) -> list[str]:
    """Remove the files in a folder. Move its folders to `top`, and return their new names."""
    moved = []
    with os.scandir(folder) as entries:
        children = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in children:
        try:
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            _open_to_us(name, folder)
            to = name
            if folder != top:
                to = f".{os.urandom(12).hex()}"
                os.rename(name, to, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(to)
        except OSError as error:
            problems.append(error)
    return moved


def _open_to_us(name: str, folder: int | None) -> None:
    """Make a folder accessible and writable for this user, as needed to empty and to move it."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
        # By its name, since an inaccessible folder cannot be opened. Only this user could replace it by a link now.
        os.chmod(name, 0o700, dir_fd=folder)
