"""What git would obey in a folder: finds the repository's configuration as git does, and asks what programs it names.

Reads a few small files, runs nothing. The whitelist of harmless keys is programs/git_config.py.
"""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from harness.git_index import read_index
from harness.programs.git_config import programs_named
from harness.small_files import read_small

MAX_CONFIG_BYTES = 200_000
MAX_INDEX_BYTES = 64_000_000
_FOLDERS_OF_LINES = ("", "info", "objects/info", "rebase-merge", "rebase-apply", "sequencer")
_SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode 160000 of an index entry, as it is stored (gitformat-index(5))."""


def git_problem(folder: str) -> str | None:
    """Return why a git command that only looks may run a program or show a file in `folder` (absolute), or None.

    Every repository on the way up is looked at: git passes over a `.git` that is none, and takes the next.
    """
    if ".git" in folder.split("/"):
        return "it is run inside a .git folder"
    here = folder
    while True:
        problem = _problem_at(here)
        if problem is not None:
            return problem
        if here in ("/", ""):
            return None
        here = os.path.dirname(here)


def git_top(folder: str) -> str:
    """Return the nearest folder on the way up that holds a `.git`; `folder` (absolute) itself where none does."""
    here = folder
    while not os.path.lexists(os.path.join(here, ".git")):
        if here in ("/", ""):
            return folder
        here = os.path.dirname(here)
    return here


Tracked: TypeAlias = "tuple[str, tuple[tuple[str, bytes], ...]]"
"""The top of a repository, or nothing outside of one; name and object id of each file that git tracks."""


def tracked_from(folder: str) -> Tracked | None:
    """Return what git tracks in the repository that `folder` (absolute) lies in; None where that is not plain.

    A `.git` that git might pass over, for one further up, is passed over where it has no index, and else not plain.
    """
    top = git_top(folder)
    found = _data_of(top)
    if not isinstance(found, tuple):
        return None if found else ("", ())
    index = os.path.join(found[0], "index")
    sure = _is_surely_one(*found)
    if not os.path.lexists(index):
        return (top, ()) if sure or top == "/" else tracked_from(os.path.dirname(top))
    if not sure:
        return None
    tracked = read_index(read_small(index, MAX_INDEX_BYTES) or b"")
    return None if tracked is None else (top, tracked)


def _is_surely_one(git: str, common: str) -> bool:
    """Say whether git takes this for the data of a repository (setup.c, is_git_directory)."""
    head = os.path.join(git, "HEAD")
    if os.path.islink(head) or not re.fullmatch(r"ref: refs/\S+|[0-9a-f]{40}(?:[0-9a-f]{24})?", _line_of(head)):
        return False
    return all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs"))


def _problem_at(folder: str) -> str | None:
    found = _data_of(folder)
    if not isinstance(found, tuple):
        return found
    git, common = found
    own = _configured(git, "config.worktree")  # obeyed where extensions.worktreeConfig is set
    problems = (_laid_out(each) for each in dict.fromkeys(found))
    return own or _configured(common) or next(filter(None, problems), None)


def _data_of(folder: str) -> tuple[str, str] | str | None:
    """Return the folders of a repository's data, its own and that of all its worktrees; why they are not plain; or None."""
    git = os.path.join(folder, ".git")
    if not os.path.isdir(git):
        bare = [os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs", "commondir")]
        if bare[0] and (all(bare[1:3]) or bare[3]):
            return f"{folder} looks like a repository without a work tree"
        if not os.path.lexists(git):
            return None
        target = _line_of(git)
        if not target.startswith("gitdir: ") or not _is_plain(target[8:]):
            return f"{git} does not say plainly where the repository lies"
        git = os.path.join(folder, target[8:])
    common = os.path.join(git, "commondir")
    if not os.path.lexists(common):
        return git, git
    target = _line_of(common)
    if not _is_plain(target):
        return f"{common} does not say plainly where the repository lies"
    return git, os.path.join(git, target)


def _is_plain(target: str) -> bool:
    """Say whether a path in a file of git's can be read in one way only."""
    return bool(target) and target == target.strip() and target.isprintable()


def _configured(git: str, name: str = "config") -> str | None:
    path = os.path.join(git, name)
    config = read_small(path, MAX_CONFIG_BYTES)
    if config is None and os.path.lexists(path):
        return "the repository's configuration cannot be read"
    return programs_named((config or b"").decode("utf-8", "replace"))


def _laid_out(git: str) -> str | None:
    """Return what is unusual in the folder of a repository: git shows the lines of files that links lead it to.

    A submodule has a configuration of its own, whose filters the harness cannot switch off.
    """
    for below in _FOLDERS_OF_LINES:
        try:
            entries = list(os.scandir(os.path.join(git, below)))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() and entry.name != "hooks":
                return f"{os.path.join('.git', below, entry.name)} is a link"
            if entry.name.startswith("sharedindex."):
                return "the repository has a split index, which may hold submodules"
    for name in ("objects/info/alternates", "info/grafts"):
        if os.path.lexists(os.path.join(git, name)):
            return f"the repository has {name}, which leads elsewhere"
    if os.path.lexists(os.path.join(git, "index")):
        index = read_small(os.path.join(git, "index"), MAX_INDEX_BYTES)
        if index is None or _SUBMODULE in index:
            return "the repository may have submodules, which have a configuration of their own"
    return None


def _line_of(path: str) -> str:
    """Return the content of a file as git takes it, without line ends behind it; nothing if it cannot be read."""
    return (read_small(path, 4096) or b"").decode("utf-8", "surrogateescape").rstrip("\r\n")
