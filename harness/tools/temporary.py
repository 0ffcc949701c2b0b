"""The private folder for a session's temporary files; nothing is made before it is needed, and nothing is left behind."""

from __future__ import annotations

import os
from _thread import allocate_lock


class TemporaryFolder:
    """A folder that only its owner may enter, removed with this object, or when the program ends."""

    def __init__(self) -> None:
        self._path = ""
        self._lock = allocate_lock()

    def path(self) -> str:
        """Return the folder, links followed; made anew where it is gone. Raises OSError."""
        with self._lock:
            if not self._path or not os.path.isdir(self._path):
                self._path = self._made()
            return self._path

    def _made(self) -> str:
        import tempfile
        import weakref

        path = os.path.realpath(tempfile.mkdtemp(prefix="harness-"))
        weakref.finalize(self, _remove, path, os.getpid())
        return path


def _remove(path: str, maker: int) -> None:
    """Remove the folder; not where this is a copy of the process that made it (fork), which may still use it."""
    import shutil

    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
