"""Hard links: the other names that files have in a workspace. A hidden file must be hidden by each of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.files.place_looks import Stamp, stamp_of
from harness.files.tree_listing import ListedTree, TreeListing
from harness.paths import is_within

_SHARED = "/.git/objects/"
"""Part of the paths of git's objects, which a clone of a folder shares with its repository."""


class OtherNames(NamedTuple):
    """The other names of some files."""

    paths: tuple[str, ...]
    is_whole: bool
    """Whether these are all in the workspace. False if it is too large, or a folder cannot be listed."""


NO_OTHERS = OtherNames((), True)


class HardLinks:
    """The hard links of one workspace. It is only searched if a file of interest has another name somewhere."""

    def __init__(self, root: str, max_names: int) -> None:
        """Use the folder `root` (absolute, links followed), and search at most `max_names` files and folders."""
        self._root = root
        self._max_names = max_names
        self._listing = TreeListing(root)
        self._cache: tuple[frozenset[Stamp], ListedTree, tuple[str, ...]] | None = None

    def other_names(self, paths: Sequence[str]) -> OtherNames:
        """Return the other paths in the workspace of the files at `paths`, or below folders of the workspace there.

        `paths` are absolute, with links followed.
        """
        linked_files = {path: status for path in self._files(paths) if (status := _linked(path))}
        names_left = {(status.st_dev, status.st_ino): status.st_nlink for status in linked_files.values()}
        for status in linked_files.values():
            names_left[status.st_dev, status.st_ino] -= 1
        if not any(names_left.values()):
            return NO_OTHERS
        tree = self._listing.look((), self._max_names)
        stamps = frozenset(map(stamp_of, linked_files.values()))  # another link changes the stamp of its file
        if self._cache is None or self._cache[:2] != (stamps, tree):
            names = (f"{self._root}/{name}" for name in tree.files)
            all_names = tuple(
                name for name in names if (status := _linked(name)) and (status.st_dev, status.st_ino) in names_left
            )
            self._cache = (stamps, tree, all_names)
        return OtherNames(tuple(name for name in self._cache[2] if name not in linked_files), tree.is_whole)

    def _files(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield those of `paths` that are no folders, and the files below folders of the workspace, without git's objects."""
        for path in dict.fromkeys(paths):
            if os.path.isdir(path):
                if is_within(path, self._root):
                    below = (f"{folder}/{name}" for folder, _, names in os.walk(path) for name in names)
                    yield from (name for name in below if _SHARED not in name)
            else:
                yield path


def _linked(path: str) -> os.stat_result | None:
    """Return the status of a regular file with more than one name. `None` for anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 else None
