"""Folders that are not watched: build folders that git does not track, and huge untracked folders."""

from __future__ import annotations

import os

from harness.files.git_index import GitIndex

MAX_DEPTH = 200
"""Maximum depth of a folder. Each level needs a descriptor during a look."""
MAX_CONTENT_BYTES = 10_000_000
"""Maximum size of a file whose content is kept, in bytes."""
MAX_UNTRACKED_FILES = 10_000
MAX_UNTRACKED_BYTES = 200_000_000
_ALWAYS_BUILT = frozenset(("node_modules", "__pycache__", ".tox", ".nox"))
_NEVER_COUNTED = _ALWAYS_BUILT | {".git"}
_BUILT_IF_IGNORED = frozenset(("target", "dist", "build", "out", "vendor", ".next"))
_BUILD_FOLDER = "build folder"
_CACHE_MARK = b"Signature: 8a477f597d28d172789f06886806bc55"
"""First bytes of CACHEDIR.TAG in a folder that a program can make again (bford.info/cachedir)."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def why_left_out(folder: int, path: str, index: GitIndex | None, *, is_measured: bool) -> str:
    """Return the reason to leave out an open untracked folder, or an empty string.

    `path` is relative to the folder of `index`, the index of the repository around it. `is_measured`: a folder above
    was measured, and is not huge. Outside of repositories, no folder is measured: nothing else holds its files.
    """
    name = path.rpartition("/")[2]
    if name in _ALWAYS_BUILT or _is_there(folder, "pyvenv.cfg") or _is_cache(folder):
        return _BUILD_FOLDER
    if index is None:
        return ""
    if name in _BUILT_IF_IGNORED and index.is_ignored(path):
        return _BUILD_FOLDER
    if not is_measured:
        files, size = _measure(folder)
        if files > MAX_UNTRACKED_FILES:
            return f"untracked, more than {MAX_UNTRACKED_FILES:,} files"
        if size > MAX_UNTRACKED_BYTES:
            return f"untracked, more than {MAX_UNTRACKED_BYTES // 1_000_000} MB"
    return ""


def has_more_names(root: str, max_names: int) -> bool:
    """Return whether there are more files and folders below `root` than `max_names`, except in folders always left out."""
    waiting, count = [root], 0
    while waiting and count <= max_names:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False) and entry.name not in _NEVER_COUNTED:
                        waiting.append(entry.path)
        except OSError:
            continue  # closed, or removed just now
    return count > max_names


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_cache(folder: int) -> bool:
    try:
        descriptor = os.open("CACHEDIR.TAG", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.read(descriptor, len(_CACHE_MARK)) == _CACHE_MARK
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _measure(folder: int, depth: int = 0) -> tuple[int, int]:
    """Return the number of files below an open folder, and the size of those that are kept. Stops above the maximum."""
    files = size = 0
    inner_names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner_names.append(entry.name)
                else:
                    length = entry.stat(follow_symlinks=False).st_size
                    files, size = files + 1, size + (length if length <= MAX_CONTENT_BYTES else 0)
    except OSError:
        return files, size
    for name in inner_names:
        if files > MAX_UNTRACKED_FILES or size > MAX_UNTRACKED_BYTES or depth == MAX_DEPTH:
            break
        if name in _ALWAYS_BUILT:
            continue
        try:
            descriptor = os.open(name, _OPEN, dir_fd=folder)
        except OSError:
            continue
        try:
            inner_files, inner_size = _measure(descriptor, depth + 1)
        finally:
            os.close(descriptor)
        files, size = files + inner_files, size + inner_size
    return files, size
