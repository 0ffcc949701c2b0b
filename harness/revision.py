"""Which revision a repository has checked out, read from git's own files; runs nothing and follows no configuration."""

from __future__ import annotations

import os
import re

from harness.repository import git_top
from harness.small_files import read_small

_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE = re.compile(r"refs/[^\0-\x20]{1,500}")
_MAX_PACKED_BYTES = 16_000_000


def checked_out(folder: str) -> str | None:
    """Return the id of the commit that HEAD names in the repository around `folder`, or None where that is not plain.

    HEAD, a loose ref, packed-refs, and the two files of a linked worktree are read as gitrepository-layout(5) has them.
    """
    git = os.path.join(git_top(folder), ".git")
    if os.path.isfile(git):
        git = os.path.join(os.path.dirname(git), _line(git).removeprefix("gitdir: "))
    head = _line(os.path.join(git, "HEAD"))
    if _OBJECT.fullmatch(head):
        return head
    name = head.removeprefix("ref: ")
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return None
    common = _line(os.path.join(git, "commondir"))
    folders = (git, os.path.join(git, common)) if common else (git,)
    for place in folders:
        found = _line(os.path.join(place, name))
        if _OBJECT.fullmatch(found):
            return found
    return _packed(folders[-1], name)


def _packed(folder: str, name: str) -> str | None:
    lines = (read_small(os.path.join(folder, "packed-refs"), _MAX_PACKED_BYTES) or b"").decode("utf-8", "replace")
    for line in lines.splitlines():
        found, _, of = line.partition(" ")
        if of == name and _OBJECT.fullmatch(found):
            return found
    return None


def _line(path: str) -> str:
    return (read_small(path, 4096) or b"").decode("utf-8", "replace").rstrip("\r\n")
