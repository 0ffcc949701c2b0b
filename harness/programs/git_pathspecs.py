"""The files that a git command shows or adds, by its pathspecs (gitglossary(7)). May list more files than git, never
fewer.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from harness.record import Record
from harness.regex import regex

_SPECIAL = regex(r"[*?\[\\]")
_BEYOND_STARS = regex(r"[?\[\\]")
_OBJECT_ID = regex(r"\^?([0-9a-fA-F]{4,64})(?:\^\{\w*\})*")


class GitFiles(Enum):
    """Kinds of files in a work tree."""

    TRACKED = "tracked"
    CHANGED = "changed"
    """Tracked, and different from the version that git has stored."""
    NEW = "new"
    """Not tracked and not ignored."""
    IGNORED = "ignored"
    """Not tracked and ignored."""


class ShownFiles(Record):
    """A selection of the files of a work tree that a git command shows or adds."""

    kind: GitFiles = GitFiles.TRACKED

    words: tuple[str, ...] = ()
    """Pathspecs, and revisions if `behind_dashes` is false. If empty, all files are selected."""
    behind_dashes: bool = False
    """Whether the words follow a `--`. If so, none of them is a revision."""
    patches: bool = True
    """Whether the words select files. If not, only `objects` does."""
    objects: tuple[str, ...] = ()
    """Prefixes of object IDs. Files with such an ID are selected, whatever the words."""


def is_exclusion(word: str) -> bool:
    """Return whether a pathspec excludes paths: `:!x`, `:^x`, `:(exclude)x`, `:(top,exclude)x`."""
    long = re.match(r":\(([^)]*)\)", word)
    return word.startswith((":!", ":^")) or (long is not None and "exclude" in long[1].split(","))


def object_ids(words: Iterable[str]) -> tuple[str, ...]:
    """Return the object IDs, which may be abbreviated, among the revisions of a command."""
    matches = (_OBJECT_ID.fullmatch(end) for word in words for end in re.split(r"\.\.\.?", word))
    return tuple(match[1].lower() for match in matches if match is not None)


def shown_names(
    files: Sequence[tuple[str, bytes, bytes]], selection: ShownFiles, folder: str, exists: Callable[[str], bool] | None
) -> tuple[str, ...]:
    """Return the names of `files` that a command may show or add.

    Each file is a name, an object ID and a state, which is not used here. `folder` is the folder in which git runs,
    relative to the top of the repository: empty, or with a slash at the end. `exists` returns whether a file of a name
    exists, relative to `folder`. It is `None` if that is unknown.
    """
    names = [name for name, *_ in files]
    by_id = (
        [name for name, object_id, _ in files if object_id.hex().startswith(selection.objects)]
        if selection.objects
        else []
    )
    if not selection.patches:
        return tuple(by_id)
    words = selection.words if selection.behind_dashes else _pathspecs(selection.words, frozenset(names), exists)
    if words:
        names = _narrowed(names, words, folder)
    return tuple(dict.fromkeys((*by_id, *names)))


def places(selection: ShownFiles, folder: str) -> tuple[str, ...]:
    """Return the files and folders that contain every file that may be shown, relative to the top of the repository.

    Empty if the files may be anywhere. `folder` is as in `shown_names`.
    """
    words = [word for word in selection.words if not is_exclusion(word)]
    starts = [_at_top(word, folder) for word in words]
    if not selection.behind_dashes or any(
        not start or _SPECIAL.search(start) or start.startswith(":") for start in starts
    ):
        return ()
    return tuple(start.rstrip("/") for start in starts if start)


def _pathspecs(words: Sequence[str], names: frozenset[str], exists: Callable[[str], bool] | None) -> tuple[str, ...]:
    """Return the words that git reads as pathspecs for sure. Git rejects a word that is both a file and a revision."""
    if exists is None:
        return ()
    return tuple(word for word in words if _is_pathspec(word, names) or exists(word))


def _is_pathspec(word: str, names: frozenset[str]) -> bool:
    if is_exclusion(word):
        return word[1:] not in names  # then `:!x` may also be a revision: the tracked file `!x`
    return _SPECIAL.search(word) is not None and not set("^@:~").intersection(word)


def _narrowed(names: Sequence[str], words: Sequence[str], folder: str) -> list[str]:
    conditions = [_includes(word, folder) for word in words if not is_exclusion(word)]
    unwanted = [_unwanted(word, folder) for word in words if is_exclusion(word)]
    if conditions:
        names = [name for name in names if any(wants(name) for wants in conditions)]
    return [name for name in names if not any(refuses(name) for refuses in unwanted)]


def _includes(word: str, folder: str) -> Callable[[str], bool]:
    """Return a predicate for names that the pathspec may include. It is true in doubt."""
    pattern = _at_top(word, folder)
    if pattern is None or _BEYOND_STARS.search(pattern) or "*" in folder:
        return lambda _name: True
    below = f"{pattern.rstrip('/')}/".lstrip("/")
    return lambda name: name == pattern or name.startswith(below) or ("*" in pattern and _matches(pattern, name))


def _unwanted(word: str, folder: str) -> Callable[[str], bool]:
    """Return a predicate for names that the pathspec certainly excludes."""
    magic = re.match(r":\((?:(?:exclude|top)(?:,|(?=\))))*\)|:[!^/]+:?", word)
    rest = word[magic.end() :] if magic is not None else ""
    top = magic is not None and ("top" in magic[0] or "/" in magic[0])  # then git does not normalize the path
    pattern = rest if top else _at_top(rest, folder)
    if not rest or not pattern or _BEYOND_STARS.search(pattern) or "*" in folder:
        return lambda _name: False
    if "*" in pattern:
        return lambda name: _matches(pattern, name)
    below = f"{pattern.rstrip('/')}/"
    return lambda name: name == pattern or name.startswith(below)


def _at_top(word: str, folder: str) -> str | None:
    """Return a path relative to the top of the repository, normalized as by git. Empty for the top itself.

    `None` for an absolute path or one above the top.
    """
    path = posixpath.normpath(folder + word)
    if word.startswith("/") or path.startswith(".."):
        return None
    slash = "/" if word.endswith("/") else ""
    return "" if path == "." else path + slash


def _matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern in which a star matches any text, including slashes."""
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    place, end = len(first), len(name) - len(last)
    for piece in middle:
        place = name.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True
