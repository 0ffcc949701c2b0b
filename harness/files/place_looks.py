"""State of a place in the workspace: its kind, its content, and a stamp that shows whether it changed later."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple, TypeAlias

from harness.digest import digest_of
from harness.files.folders import open_folder
from harness.place_changes import PlaceKind, PlaceState

MOST_BYTES = 1_000_000
"""Maximum size of a file whose content is kept, in bytes. Of a larger one, only size and times are compared."""

Stamp: TypeAlias = tuple[int, ...]


class PlaceLook(NamedTuple):
    """State of one place at one moment."""

    stamp: Stamp
    is_sure: bool
    """Whether an equal stamp later means equal content."""
    state: PlaceState
    content: bytes | None
    """Bytes of a file or target of a link. `None` if it was not read, or is too large to keep."""


def state_of(root: str, path: str) -> PlaceState | None:
    """Return the present state of a place, including its digest. `None` if the place does not exist."""
    status = status_at(root, path)
    return None if status is None else look_at(root, path, status, 0).state


def status_at(root: str, path: str) -> os.stat_result | None:
    """Return the status of a place, without following a link; `None` if it cannot be seen."""
    try:
        return os.lstat(f"{root}/{path}".rstrip("/") or "/")
    except OSError:
        return None


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the metadata of a file or folder that differ after a change."""
    return (
        status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip


def look_at(root: str, path: str, status: os.stat_result, sure_before: int) -> PlaceLook:
    """Return the state of a place. Its content is read unless it is too large. No link on the way is followed.

    `sure_before` is a time as for `is_sure`, in nanoseconds since 1970.
    """
    mode, kind = status.st_mode, PlaceKind.OTHER
    if stat.S_ISDIR(mode):
        kind = PlaceKind.FOLDER
    elif stat.S_ISLNK(mode):
        kind = PlaceKind.LINK
    elif stat.S_ISREG(mode):
        kind = PlaceKind.FILE
    content = content_at(root, path, kind)
    state = PlaceState(
        kind=kind,
        mode=stat.S_IMODE(mode),
        size=0 if kind is PlaceKind.FOLDER else status.st_size,
        sha256=None if content is None else digest_of(content),
    )
    return PlaceLook(stamp_of(status), is_sure(status, sure_before), state, content)


def is_sure(status: os.stat_result, before: int) -> bool:
    """Return whether the last change was earlier than `before` (nanoseconds since 1970).

    Then every later change gives another stamp.
    """
    return status.st_mtime_ns < before and status.st_ctime_ns < before


def content_at(root: str, path: str, kind: PlaceKind) -> bytes | None:
    """Return the bytes of a file, or the target of a link. No link on the way is followed.

    `None` for other kinds, for a file larger than MOST_BYTES, and if reading fails.
    """
    folder, _, name = f"{root}/{path}".rpartition("/")
    if kind not in (PlaceKind.FILE, PlaceKind.LINK):
        return None
    try:
        opened = open_folder(folder)
        try:
            if kind is PlaceKind.LINK:
                return os.fsencode(os.readlink(name, dir_fd=opened))
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened)
        finally:
            os.close(opened)
        with open(descriptor, "rb") as file:
            data: bytes = file.read(MOST_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return None
    return data if len(data) <= MOST_BYTES else None
