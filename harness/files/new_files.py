"""Empty files that are created before a program runs: the walls can permit a single file only if it exists."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.files.folders import open_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFiles:
    """Context manager that creates missing files. At its end, files that are still unwritten are removed."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Use absolute, resolved `paths`. Existing files are skipped."""
        self._paths = [path for path in paths if not os.path.lexists(path)]
        self._stamps: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        """Create the files. Raises OSError, also for a missing folder."""
        try:
            for path in self._paths:
                self._make(path)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the created files that are still empty and unchanged."""
        self._remove()

    def _make(self, path: str) -> None:
        folder = open_folder(os.path.dirname(path))
        try:
            descriptor = os.open(os.path.basename(path), _NEW, 0o666, dir_fd=folder)
        finally:
            os.close(folder)
        status = os.fstat(descriptor)
        self._stamps[path] = (status.st_ino, status.st_mtime_ns)
        os.close(descriptor)

    def _remove(self) -> None:
        for path, stamp in self._stamps.items():
            try:
                status = os.lstat(path)
                if (status.st_ino, status.st_mtime_ns) == stamp and not status.st_size:
                    os.unlink(path)
            except OSError:
                pass  # the file no longer exists, or its folder is inaccessible now
