"""Restore protected places from their copies, each only if it is still in the reported state."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from harness.files import atomic
from harness.files.before_images import BeforeImages
from harness.files.folders import open_folder
from harness.files.place_looks import content_at, state_of
from harness.paths import fold
from harness.place_changes import PlaceChange, PlaceKind, PlaceReturn, PlaceState
from harness.policy.built_in import PROTECTED_NAMES
from harness.system import O_PATH, set_mode

_CHANGED = "the file was changed since; not touched"
_NO_COPY = "no copy of the earlier content exists"
_NO_WORKSPACE = "the workspace is gone"
_TOO_LARGE = "the file is too large to copy, and is not removed without a copy"


def put_back(root: str, changes: Sequence[PlaceChange], images: BeforeImages) -> tuple[PlaceReturn, ...]:
    """Restore places of a workspace (`root`, links followed). Return the result for each.

    Their present content is first stored in `images`. Set-id bits are not restored. Nothing is restored if the workspace
    itself is gone: it was moved or removed, and another may be made in its place.
    """
    if not os.path.isdir(root):
        return tuple(PlaceReturn(change=change, problem=_NO_WORKSPACE) for change in changes)
    created = [change for change in changes if change.before is None]
    rest = [change for change in changes if change.before is not None]
    ordered = (
        *sorted(created, key=lambda change: change.path, reverse=True),
        *sorted(rest, key=lambda change: change.path),
    )
    done = {change.path: _tried(root, change, images) for change in ordered}
    return tuple(PlaceReturn(change=change, problem=done[change.path]) for change in changes)


def _tried(root: str, change: PlaceChange, images: BeforeImages) -> str:
    """Restore one place; return the reason for a failure, or an empty string."""
    if change.after is not None and change.after.kind is PlaceKind.UNSEEN:
        return "the path cannot be inspected; remove the obstacle first"
    now = state_of(root, change.path)
    if _is_alike(now, change.before):
        return ""
    emptied = now is None and change.after is not None and change.after.kind is PlaceKind.FOLDER
    if not _is_alike(now, change.after) and not emptied:
        return _CHANGED
    content = b""
    if change.before is not None and change.before.kind is not PlaceKind.FOLDER:
        image = images.get(change.before.sha256) if change.before.sha256 else None
        if image is None:
            return _NO_COPY
        content = image
    try:
        if not _has_copy(root, change, now, images):
            return _TOO_LARGE
        _put(root, change, now, content)
    except atomic.NotKeptError as error:
        return f"its owner or its permissions cannot be given to a new file ({error})"
    except OSError as error:
        return error.strerror or str(error)
    return "" if _is_alike(state_of(root, change.path), change.before) else "it could not be made what it was"


def _is_alike(state: PlaceState | None, other: PlaceState | None) -> bool:
    """Return whether two states are equal. If no content was read, the sizes are compared."""
    if state is None or other is None:
        return state is other
    if state.kind is not other.kind or (state.mode ^ other.mode) & 0o777:
        return False
    return state.kind is PlaceKind.FOLDER or (state.sha256, state.size) == (other.sha256, other.size)


def _has_copy(root: str, change: PlaceChange, now: PlaceState | None, images: BeforeImages) -> bool:
    """Store a copy of the present content if possible. Return whether the place may be removed. Raises OSError."""
    if now is None or now.kind not in (PlaceKind.FILE, PlaceKind.LINK):
        return True
    content = content_at(root, change.path, now.kind)
    if content is None:
        return False
    images.keep(content)
    return True


def _put(root: str, change: PlaceChange, now: PlaceState | None, content: bytes) -> None:
    """Restore a place to its state before: remove, create or replace it. Raises OSError and NotKeptError."""
    before = change.before
    folder_path, name = os.path.split(f"{root}/{change.path}")
    folder = open_folder(folder_path, None if before is None else [])
    try:
        present = atomic.status_of(folder, name)
        if present is not None and (before is None or _kind_differs(before, present)):
            (os.rmdir if stat.S_ISDIR(present.st_mode) else os.unlink)(name, dir_fd=folder)
            present = None
        if before is None:
            _remove_empty(root, change.path)
            return
        match before.kind:
            case PlaceKind.FOLDER if present is None:
                os.mkdir(name, dir_fd=folder)
            case PlaceKind.LINK:
                if present is not None:
                    os.unlink(name, dir_fd=folder)
                os.symlink(content, os.fsencode(name), dir_fd=folder)
                return
            case PlaceKind.FILE if now is None or change.after is None or now.sha256 != before.sha256:
                atomic.replace(folder, name, content, present=present)
            case _:
                pass
        _give_mode(folder, name, before.mode & 0o777)
    finally:
        os.close(folder)


def _kind_differs(before: PlaceState, present: os.stat_result) -> bool:
    kinds = {PlaceKind.FILE: stat.S_ISREG, PlaceKind.FOLDER: stat.S_ISDIR, PlaceKind.LINK: stat.S_ISLNK}
    return before.kind in kinds and not kinds[before.kind](present.st_mode)


def _give_mode(folder: int, name: str, mode: int) -> None:
    """Set the permission bits of a file or folder, even if it cannot be opened for reading (open(2), O_PATH)."""
    descriptor = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        set_mode(descriptor, mode)
    finally:
        os.close(descriptor)


def _remove_empty(root: str, path: str) -> None:
    """Remove the empty folders around a removed file, up to the outermost folder with a protected name."""
    for above in _protected_above(path):
        folder, name = os.path.split(f"{root}/{above}")
        try:
            opened = open_folder(folder)
            try:
                os.rmdir(name, dir_fd=opened)
            finally:
                os.close(opened)
        except OSError:
            return


def _protected_above(path: str) -> Iterator[str]:
    """Yield the parent folders that have a protected name, or are inside one that has; the nearest first."""
    parts = path.split("/")[:-1]
    while not PROTECTED_NAMES.isdisjoint(map(fold, parts)):
        yield "/".join(parts)
        parts.pop()
