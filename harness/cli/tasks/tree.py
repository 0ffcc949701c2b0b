"""What lies in a folder, found without following a link and without recursion: how deep it is, a run decides."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping

from harness.cli.tasks.fresh import Fresh
from harness.cli.tasks.git import GitFailure
from harness.record import Record
from harness.small_files import read_small

MAX_NAMED = 20
MAX_PATH_BYTES = 4_000
"""Of a path from the root of the disk: no file can be opened by a longer one (PATH_MAX)."""
_READ_BY_GIT = (b".gitignore", b".gitattributes", b".gitmodules")


class Tree(Record):
    """What was found in the folder."""

    sizes: Mapping[bytes, int]
    """Of each file and link, by its path from the root."""
    touched: frozenset[bytes]
    """Which of these were made or changed since the moment that was asked about, whatever time they show."""
    odd: tuple[str, ...]
    """What a patch cannot hold."""


def walk(root: str, goes_into: Callable[[bytes], bool]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield all that lies below `root`, as paths from there, with their status; folders before what is in them.

    `goes_into` says of the path of a folder whether it is looked into. What vanishes meanwhile is passed over; raises
    OSError for what cannot be read.
    """
    start, waiting = os.fsencode(root), [b""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(start, below)) as entries:
            for entry in entries:
                path = os.path.join(below, entry.name)
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield path, status
                if stat.S_ISDIR(status.st_mode) and goes_into(path):
                    waiting.append(path)


def fingerprint(root: str, path: bytes) -> str:
    """Return a digest of what lies at a path below a root: names, modes, sizes and times, contents not. Raises OSError."""
    import hashlib

    place = os.path.join(os.fsencode(root), path)
    found = [(b"", os.lstat(place))]
    if stat.S_ISDIR(found[0][1].st_mode):
        found += walk(os.fsdecode(place), lambda _: True)
    lines = sorted((name, one.st_mode, one.st_size, one.st_mtime_ns) for name, one in found)
    return hashlib.sha256(repr(lines).encode()).hexdigest()


def found(fresh: Fresh, since: int) -> Tree:
    """Return every file and link of the folder, but for what git keeps to itself. Raises GitFailure and OSError.

    `since` is a moment in nanoseconds. It is compared with the change time, which no program can set (inode(7)).
    """
    sizes: dict[bytes, int] = {}
    touched: set[bytes] = set()
    odd: list[str] = []
    longest = MAX_PATH_BYTES - len(os.fsencode(fresh.root))

    def goes_into(path: bytes) -> bool:
        return os.path.basename(path) != b".git" and len(path) < longest

    for path, status in walk(fresh.root, goes_into):
        name, shown = os.path.basename(path), os.fsdecode(path)
        is_kept = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
        if name == b".git":
            if not _is_as_made(fresh, path):
                odd.append(f"the data of the repository in {os.path.dirname(shown) or 'its top folder'}")
        elif stat.S_ISDIR(status.st_mode):
            if not goes_into(path):
                odd.append(f"{shown[:100]}..., which is too deep")
        elif is_kept:
            sizes[path] = status.st_size
            if status.st_ctime_ns >= since:
                touched.add(path)
        elif name in _READ_BY_GIT:
            raise GitFailure(f"{shown} is neither file nor folder, and git would wait for it")
        else:
            odd.append(f"{shown}, which is neither file, folder nor link")
    return Tree(sizes=sizes, touched=frozenset(touched), odd=tuple(_some(odd)))


def _some(odd: Collection[str]) -> Iterator[str]:
    yield from [*odd][:MAX_NAMED]
    if len(odd) > MAX_NAMED:
        yield f"and {len(odd) - MAX_NAMED} more"


def _is_as_made(fresh: Fresh, path: bytes) -> bool:
    """Say whether what is called `.git` holds nothing that the run made."""
    if path == b".git" and fresh.kind == "worktree":
        # The file that leads to the worktree's data; it is never followed.
        return read_small(os.path.join(fresh.root, ".git"), 10_000) == b"gitdir: %b\n" % os.fsencode(fresh.git_dir)
    return path in fresh.inner and fresh.inner[path] == fingerprint(fresh.root, path)
