"""Whether ignore files bring hidden files back: programs that leave them out (rg, fd) read them then. Only looks.

An ignore file with a line that begins with `!` may bring any name back, and so may one that cannot be read whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness.small_files import read_small

MAX_BYTES = 1_000_000
NAMES = frozenset((".gitignore", ".ignore", ".rgignore", ".fdignore"))


def bring_back_from_above(folder: str, home: str) -> bool:
    """Say whether an ignore file above `folder` (absolute), or one of the person's own, brings hidden names back."""
    configurations = (f"{home}/.gitconfig", f"{home}/.config/git/config")
    if _brings_back(f"{home}/.config/git/ignore") or any(map(_names_another, configurations)):
        return True
    while True:
        if _in_repository(folder) or (folder != "/" and _beside(os.path.dirname(folder))):
            return True
        if folder in ("/", ""):
            return False
        folder = os.path.dirname(folder)


def bring_back_here(entries: Sequence[os.DirEntry[str]]) -> bool:
    """Say whether an ignore file among the entries of a folder, or of a repository there, brings hidden names back."""
    for entry in entries:
        if entry.name in NAMES and _brings_back(entry.path):
            return True
        if entry.name == ".git" and _in_repository(os.path.dirname(entry.path)):
            return True
    return False


def _beside(folder: str) -> bool:
    return any(_brings_back(os.path.join(folder, name)) for name in NAMES)


def _in_repository(folder: str) -> bool:
    git = os.path.join(folder, ".git")
    if not os.path.lexists(git):
        return False
    # Of a worktree (a file) the exclude file lies elsewhere.
    return not os.path.isdir(git) or _brings_back(os.path.join(git, "info", "exclude"))


def _brings_back(path: str) -> bool:
    data = read_small(path, MAX_BYTES)
    if data is None:
        return os.path.lexists(path)
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    return any(line.lstrip().startswith(b"!") for line in lines)


def _names_another(git_config: str) -> bool:
    """Say whether the person's git configuration names an ignore file of its own, or includes what might."""
    data = read_small(git_config, MAX_BYTES)
    if data is None:
        return os.path.lexists(git_config)
    text = data.lower()
    return b"excludesfile" in text or b"include" in text
