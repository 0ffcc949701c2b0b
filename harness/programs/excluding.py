"""Words by which a command leaves files out of a folder that it reads, for refusals."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Action, Command, PathAccess
from harness.programs.runners import name_of
from harness.regex import regex

_FORMS = {
    "grep": "--exclude={}",
    "egrep": "--exclude={}",
    "fgrep": "--exclude={}",
    "rg": "-g '!{}'",
    "ag": "--ignore={}",
    "find": "-not -name {}",
}
"""The words for one name, by program."""
_MOST_NAMED = 5
"""Maximum number of names for which words are given."""
_PLAIN_PATH = regex(r"[A-Za-z0-9_.+/-]+")
_SENT = regex(r"(?i)\+|dockerfile|containerfile|ignore")
"""Part of a name that a build may send though an ignore file names it."""


def excluding_words(names: Sequence[str], path: PathAccess, action: Action) -> str:
    """Return the words with which a command leaves files out of the folder `path`; empty without such words."""
    if path.tracked or path.untracked:
        return _git_words(names) if path.names == (".",) else ""
    last = tuple(dict.fromkeys(name.rpartition("/")[2] for name in names))
    command = next((f for f in action.facets if isinstance(f, Command) and any(p is path for p in f.paths)), None)
    if command is None or not _are_plain(last):
        return ""
    readers = _readers(command, action)
    if not readers:
        return ""
    program = name_of(readers[0][0])
    if program in ("docker", "podman") and path.access is Access.READ and not any(map(_SENT.search, last)):
        lines = " and ".join(f"**/{name}" for name in last)
        return f"{lines} added beforehand at the end of .dockerignore (and of Dockerfile.dockerignore, if any)"
    words = " ".join(map(_FORMS.get(program, "").format, last))
    # A command that has them already still reads a file that a link leads to.
    is_there = set(words.replace("'", "").split()) <= set(readers[0])
    return "" if is_there else words


def _git_words(names: Sequence[str]) -> str:
    return " ".join(("--", *(f"':!{name}'" for name in names))) if _are_plain(names) else ""


def _are_plain(names: Sequence[str]) -> bool:
    """Return whether the names are few, and need no quotes."""
    return len(names) <= _MOST_NAMED and all(map(_PLAIN_PATH.fullmatch, names))


def _readers(command: Command, action: Action) -> list[tuple[str, ...]]:
    """Return the words of the commands that may read the folder: its own, or of `find` if another command runs it."""
    if not command.run_by:
        return [command.argv]
    return [f.argv for f in action.facets if isinstance(f, Command) and name_of(f.argv[0]) == "find"]
