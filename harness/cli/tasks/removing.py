"""Removes a folder whole, whatever modes a run gave to what is in it; it follows no link."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable

TRIES = 5
"""What a killed run left may still be ending, and write meanwhile."""
WAIT_SECONDS = 0.2


def removed(path: str) -> str:
    """Remove `path`, where it is there; return why it could not be removed, or nothing."""
    import shutil

    for left in reversed(range(TRIES)):
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, onerror=_once_more)
            elif os.path.lexists(path):
                os.unlink(path)
        except OSError as error:
            if not left:
                return f"{path} cannot be removed: {error.strerror}"
            time.sleep(WAIT_SECONDS)
        else:
            return ""
    return ""


def _once_more(_function: Callable[..., object], path: str, problem: tuple[type, BaseException, object]) -> None:
    """Open a folder that its own mode closes, and try once more. Raises OSError."""
    error = problem[1]
    if isinstance(error, FileNotFoundError):
        return
    if not isinstance(error, PermissionError):
        raise error
    for folder in (os.path.dirname(path), path):
        try:
            if stat.S_ISDIR(os.lstat(folder).st_mode):
                os.chmod(folder, 0o700)
        except OSError:
            pass  # the next try says what is wrong
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path)
    else:
        os.unlink(path)
