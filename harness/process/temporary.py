"""The private folder for a session's temporary files: created on first use, and removed at the end."""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock


class TemporaryFolder:
    """A folder that only its owner may enter. It is removed with this object, or when the program ends."""

    def __init__(self, parent: str = "") -> None:
        """Initialize with the parent folder. Empty for the system's folder for temporary files."""
        self._parent = parent
        self._path = ""
        self._owner = -1
        self._lock = allocate_lock()

    def path(self) -> str:
        """Return the path of the folder, links followed. Create the folder if it is missing or was replaced.

        Raises OSError.
        """
        with self._lock:
            if not self._path or not _is_folder(self._path, self._owner):
                self._make()
            return self._path

    def _make(self) -> None:
        import weakref

        if self._parent:
            path = os.path.join(self._parent, f"harness-{os.urandom(8).hex()}")
            os.mkdir(path, 0o700)
        else:
            import tempfile  # loads a dozen modules

            path = tempfile.mkdtemp(prefix="harness-")
        self._path = os.path.realpath(path)
        self._owner = os.lstat(self._path).st_uid  # not always this user: on NFS, root's files may get another owner
        weakref.finalize(self, _remove, self._path, self._owner, os.getpid())


def _is_folder(path: str, owner: int) -> bool:
    """Return whether `path` is a folder of that user without links, since a command may have replaced it by a link.

    A folder that a command removed and created again counts too, and is removed like the first.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and os.path.realpath(path) == path


def _remove(path: str, owner: int, maker: int) -> None:
    """Remove the folder. Does nothing in a forked copy of the process `maker`, which may still use it."""
    if os.getpid() == maker and _is_folder(path, owner):
        from harness.process.removal import remove_folder

        remove_folder(path)
