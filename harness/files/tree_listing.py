"""All names below a folder; a folder is listed again only where its time stamps are not those of the last look."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection
from typing import NamedTuple

from harness.files.place_looks import Stamp, is_sure, stamp_of

_SURE_NS = 1_000_000_000
"""Age below which a change may be followed by another within the same tick of the clock."""


class _Folder(NamedTuple):
    stamp: Stamp
    is_sure: bool
    files: tuple[str, ...]
    folders: tuple[str, ...]


class ListedTree(NamedTuple):
    """The names below a folder, relative to it."""

    files: tuple[str, ...]
    """Links among them: none is followed."""
    folders: tuple[str, ...]
    """All folders, also those left out; the first is the empty name."""
    is_whole: bool
    """Whether these are all: not where there are too many, or a folder cannot be listed."""


NOTHING_LISTED = ListedTree((), (), True)


class TreeListing:
    """The names below one folder, reused from one look to the next."""

    def __init__(self, root: str) -> None:
        """Take the folder, absolute and with links followed."""
        self._root = root
        self._known: dict[str, _Folder] = {}

    def look(self, skips: Collection[str], most: int) -> ListedTree:
        """Return the names of at most so many files and folders, those below folders of the names in `skips` left out."""
        sure_before = time.time_ns() - _SURE_NS
        known: dict[str, _Folder] = {}
        files, folders = list[str](), [""]
        waiting, whole = [""], True
        while waiting:
            here = waiting.pop()
            try:
                found = self._folder(here, sure_before)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                whole = False
                continue
            known[here] = found
            files += found.files
            folders += found.folders
            if len(files) + len(folders) > most:
                whole = False
                break
            waiting += [path for path in found.folders if path.rpartition("/")[2] not in skips]
        self._known = known
        return ListedTree(tuple(files), tuple(folders), whole)

    def _folder(self, here: str, sure_before: int) -> _Folder:
        """Return the content of one folder. Raises OSError."""
        path = f"{self._root}/{here}".rstrip("/") or "/"
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(path)
        stamp, known = stamp_of(status), self._known.get(here)
        if known is not None and known.is_sure and known.stamp == stamp:
            return known
        files, folders = list[str](), list[str]()
        before = f"{here}/" if here else ""
        with os.scandir(path) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(before + entry.name)
        return _Folder(stamp, is_sure(status, sure_before), tuple(files), tuple(folders))
