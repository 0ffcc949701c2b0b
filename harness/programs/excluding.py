"""Words that make a command skip files of a folder that it reads. Refusal messages suggest them."""

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
"""Format of the words that exclude one name, by program."""
_MOST_NAMED = 5
"""Maximum number of names to suggest words for."""
_PLAIN_PATH = regex(r"[A-Za-z0-9_.+/-]+")
_SENT = regex(r"(?i)\+|dockerfile|containerfile|ignore")
"""Pattern of names that a build may send although an ignore file lists them."""


def excluding_words(names: Sequence[str], path: PathAccess, action: Action) -> str:
    """Return the words that make the command skip the files `names` of the folder `path`, or an empty string."""
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
    # Do not suggest words that the command already has. It then reads the file through a link.
    is_there = set(words.replace("'", "").split()) <= set(readers[0])
    return "" if is_there else words


def _git_words(names: Sequence[str]) -> str:
    return " ".join(("--", *(f"':!{name}'" for name in names))) if _are_plain(names) else ""


def _are_plain(names: Sequence[str]) -> bool:
    """Return whether the names are few and need no quotes."""
    return len(names) <= _MOST_NAMED and all(map(_PLAIN_PATH.fullmatch, names))


def _readers(command: Command, action: Action) -> list[tuple[str, ...]]:
    """Return the words of `command`, or of each `find` of the action if another command runs `command`."""
    if not command.run_by:
        return [command.argv]
    return [f.argv for f in action.facets if isinstance(f, Command) and name_of(f.argv[0]) == "find"]
