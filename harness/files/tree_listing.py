"""All names below a folder. A folder is listed again only if its time stamps changed since the last look."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from harness.files.place_looks import Stamp, is_sure, stamp_of

_SURE_NS = 1_000_000_000
"""Minimum age of a change, in nanoseconds, after which another change cannot have the same time stamp."""


class _Folder(NamedTuple):
    stamp: Stamp
    is_sure: bool
    files: tuple[str, ...]
    folders: tuple[str, ...]


class ListedTree(NamedTuple):
    """The names below a folder, relative to it."""

    files: tuple[str, ...]
    """Files, and links, which are not followed."""
    folders: tuple[str, ...]
    """All folders, including skipped ones. The first is the empty name."""
    is_whole: bool
    """Whether the lists are complete. False if there are too many names, or a folder cannot be listed."""


class TreeListing:
    """The names below one folder, reused from one look to the next."""

    NOTHING: Final = ListedTree((), (), True)
    """The result without a look."""

    def __init__(self, root: str) -> None:
        """Use the folder `root` (absolute, links followed)."""
        self._root = root
        self._cache: dict[str, _Folder] = {}

    def look(self, skips: Collection[str], max_names: int) -> ListedTree:
        """Return the names of files and folders, without those below folders named in `skips`.

        Stops, incomplete, after more than `max_names`.
        """
        sure_before = time.time_ns() - _SURE_NS
        cache: dict[str, _Folder] = {}
        files, folders = list[str](), [""]
        waiting, is_complete = [""], True
        while waiting:
            name = waiting.pop()
            try:
                folder = self._folder(name, sure_before)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                is_complete = False
                continue
            cache[name] = folder
            files += folder.files
            folders += folder.folders
            if len(files) + len(folders) > max_names:
                is_complete = False
                break
            waiting += [path for path in folder.folders if path.rpartition("/")[2] not in skips]
        self._cache = cache
        return ListedTree(tuple(files), tuple(folders), is_complete)

    def _folder(self, name: str, sure_before: int) -> _Folder:
        """Return the content of one folder. Raises OSError."""
        path = f"{self._root}/{name}".rstrip("/") or "/"
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(path)
        stamp, cached = stamp_of(status), self._cache.get(name)
        if cached is not None and cached.is_sure and cached.stamp == stamp:
            return cached
        files, folders = list[str](), list[str]()
        before = f"{name}/" if name else ""
        with os.scandir(path) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(before + entry.name)
        return _Folder(stamp, is_sure(status, sure_before), tuple(files), tuple(folders))
