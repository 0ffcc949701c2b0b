"""What git would obey in a folder: finds the repository's configuration as git does, and asks what programs it names.

Reads a few small files, runs nothing. The whitelist of harmless keys is programs/git_config.py.
"""

from __future__ import annotations

import os

from harness.programs.git_config import programs_named

MAX_CONFIG_BYTES = 200_000
MAX_INDEX_BYTES = 64_000_000
_SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode 160000 of an index entry, as it is stored (gitformat-index(5))."""


def git_problem(folder: str) -> str | None:
    """Return why a git command that only looks may run a program in `folder` (absolute), or None if nothing says so.

    A submodule has a configuration of its own, for which the harness's overrides do not hold: git drops them from the
    environment of what it starts there.
    """
    if ".git" in folder.split("/"):
        return "it is run inside a .git folder"
    git_folder = _git_folder(folder)
    if git_folder is None:
        return None  # no repository: git says so, and ends
    common = _line_of(os.path.join(git_folder, "commondir"))
    common_folder = os.path.join(git_folder, common) if common else git_folder
    config = _read(os.path.join(common_folder, "config"), MAX_CONFIG_BYTES)
    if config is None and os.path.lexists(os.path.join(common_folder, "config")):
        return "the repository's configuration cannot be read"
    problem = programs_named((config or b"").decode("utf-8", "replace"))
    if problem is not None:
        return problem
    if os.path.lexists(os.path.join(git_folder, "index")):
        index = _read(os.path.join(git_folder, "index"), MAX_INDEX_BYTES)
        if index is None or _SUBMODULE in index:
            return "the repository may have submodules, which have a configuration of their own"
    return None


def _git_folder(folder: str) -> str | None:
    """Return the folder that git takes for its own when it is run in `folder`: the nearest `.git` on the way up."""
    while True:
        candidate = os.path.join(folder, ".git")
        if os.path.isdir(candidate):
            return candidate
        if os.path.lexists(candidate):
            target = _line_of(candidate).removeprefix("gitdir:").strip()
            return os.path.join(folder, target)
        if folder in ("/", ""):
            return None
        folder = os.path.dirname(folder)


def _line_of(path: str) -> str:
    return (_read(path, 4096) or b"").decode("utf-8", "replace").strip()


def _read(path: str, most: int) -> bytes | None:
    """Return the content of a regular file of at most `most` bytes, or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not os.path.isfile(descriptor):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(most + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return data if len(data) <= most else None
