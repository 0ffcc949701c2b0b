"""The private folder for a session's temporary files: made when it is first needed, and removed at the end."""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock


class TemporaryFolder:
    """A folder that only its owner may enter, removed with this object, or when the program ends."""

    def __init__(self, parent: str = "") -> None:
        """Take the folder that it is made in: where temporary files go, if none is named."""
        self._parent = parent
        self._path = ""
        self._owner = -1
        self._lock = allocate_lock()

    def path(self) -> str:
        """Return the folder, links followed. It is created again if it is missing or was replaced. Raises OSError."""
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
        self._owner = os.lstat(self._path).st_uid  # not always this user: NFS makes what root does somebody else's
        weakref.finalize(self, _remove, self._path, self._owner, os.getpid())


def _is_folder(path: str, owner: int) -> bool:
    """Return whether a folder of that user is there, with no link on the way: a command may have put one in its
    place.

    A folder that a command removed and created again is as good as the first, and is removed like it.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and os.path.realpath(path) == path


def _remove(path: str, owner: int, maker: int) -> None:
    """Remove the folder; not where this is a copy of the process that made it (fork), which may still use it."""
    if os.getpid() == maker and _is_folder(path, owner):
        from harness.process.removal import remove_folder

        remove_folder(path)
