"""Reading everything but what is hidden, as a list of paths that may be read; looks at folders, grants nothing.

Landlock only allows, so a hidden path is one that no allowed folder holds: the folders above it are gone through, and
each of their other entries is allowed by itself. What is made in such a folder later is not in the list, and so unreadable.
"""

from __future__ import annotations

import os

from harness.record import Record

MOST_ENTRIES = 16_384
"""How many entries of one folder are gone through; a rule each costs some 30 microseconds and memory of the kernel."""
DEVICES = "/dev"


class Readable(Record):
    """What may be read."""

    whole: tuple[str, ...]
    """Files and folders, these with everything below."""
    listed: tuple[str, ...]
    """Folders above something hidden: their names may be listed, nothing more."""
    too_large: tuple[str, ...]
    """Folders above something hidden that have too many entries to go through: of these nothing may be read."""


def readable(hidden: frozenset[str], show: tuple[str, ...]) -> Readable:
    """Return what may be read where `hidden` may not, but `show` below it may. Devices are never in it.

    All paths are absolute and resolved. Links in the folders that are gone through are left out: what they
    lead to is allowed where it lies. A folder that cannot be listed allows nothing.
    """
    closed = hidden | {DEVICES}
    above = {parent for path in closed for parent in parents(path)}
    found = _Found()
    found.go("/", closed, above)
    for path in show:
        if path not in closed:
            found.go(path, closed, above)
    return Readable(whole=tuple(found.whole), listed=tuple(found.listed), too_large=tuple(found.too_large))


class _Found:
    """The list while it grows."""

    def __init__(self) -> None:
        self.whole: list[str] = []
        self.listed: list[str] = []
        self.too_large: list[str] = []

    def go(self, path: str, closed: frozenset[str], above: set[str]) -> None:
        """Allow `path`, or what is not closed below it."""
        if path in closed:
            return
        if path not in above:
            self.whole.append(path)
            return
        self.listed.append(path)
        names = _names(path)
        if names is None:
            self.too_large.append(path)
            return
        for name in names:
            self.go(os.path.join(path, name), closed, above)


def _names(folder: str) -> list[str] | None:
    """Return the entries of a folder that are no links, or None where there are too many."""
    names: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(names) >= MOST_ENTRIES:
                    return None
                if not entry.is_symlink():
                    names.append(entry.name)
    except OSError:  # not a folder, gone, or not ours to list
        return []
    return names


def parents(path: str) -> list[str]:
    """Return every folder above an absolute path, the nearest first; none for the root."""
    found = []
    while path != "/":
        path = os.path.dirname(path)
        found.append(path)
    return found
