"""The files of a work tree that git does not track: new ones, and those that it ignores (gitignore(5)).

INVARIANT: never fewer are new than to git. An ignore pattern counts only if it can be read in one way; one that starts with
`!` and cannot brings everything back. The user's own ignore file (core.excludesFile) is not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import TypeAlias

from harness.files.repository import is_repository
from harness.files.trees import MAX_BELOW
from harness.paths import is_within
from harness.record import Record
from harness.regex import regex
from harness.safe_files import read_small

MAX_BYTES = 1_000_000
_PLAIN = regex(r"(?!#)[A-Za-z0-9_.+@~,=*/-]+")
_EVERYTHING = "!*"

Patterns: TypeAlias = "tuple[_Pattern, ...]"


class _Pattern(Record):
    """One line of an ignore file."""

    matches: Callable[[str], object]
    """Matches the path from the folder of the ignore file on, or the name alone."""
    ignores: bool
    """Whether it starts without `!`."""
    anchored: bool
    """Whether it is about a path."""
    folders_only: bool


def untracked_files(
    top: str,
    tracked: Collection[str],
    exclude_file: str,
    *,
    ignored: bool,
    below: Sequence[str] = (),
    max_names: int = MAX_BELOW,
) -> tuple[list[str], bool]:
    """Return the untracked files below `top` by their names from there on, and whether these are all.

    With `ignored` the ignored ones alone, else the new ones alone. `exclude_file` is that of the repository (an empty path:
    none). Files elsewhere than `below` (empty: anywhere) may be left out. Repositories are not entered: git adds none of
    their files.
    """
    names: list[str] = []
    waiting: list[tuple[str, Sequence[tuple[int, Patterns]], bool]] = [("", [(0, _read(exclude_file))], False)]
    is_complete = True
    while waiting and len(names) <= max_names:
        prefix, above, all_ignored = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(top, prefix)))
        except OSError:
            is_complete = False
            continue
        ignore_files = [(len(prefix), _read(os.path.join(top, prefix, ".gitignore"))), *above]
        for entry in entries:
            name = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or (is_folder and is_repository(entry.path)):
                continue
            is_ignored = all_ignored or _is_ignored(name, is_folder=is_folder, ignore_files=ignore_files)
            if is_folder and below and not any(is_within(name, path) or is_within(path, name) for path in below):
                continue
            if is_folder and (ignored or not is_ignored):
                waiting.append((f"{name}/", ignore_files, is_ignored))
            elif not is_folder and is_ignored is ignored and name not in tracked:
                names.append(name)
    return names[:max_names], is_complete and len(names) <= max_names


def _is_ignored(name: str, *, is_folder: bool, ignore_files: Sequence[tuple[int, Patterns]]) -> bool:
    """Return whether git ignores an untracked file or folder. The nearest ignore file counts first, its last line first."""
    last = name.rpartition("/")[2]
    for start, patterns in ignore_files:
        for pattern in reversed(patterns):
            if (is_folder or not pattern.folders_only) and pattern.matches(name[start:] if pattern.anchored else last):
                return pattern.ignores
    return False


def _read(path: str) -> Patterns:
    """Return the patterns of an ignore file. One that cannot be read, and a link, may bring everything back."""
    if not path or not os.path.lexists(path):
        return ()
    data = None if os.path.islink(path) else read_small(path, MAX_BYTES)
    return _patterns(f"{_EVERYTHING}\n".encode() if data is None else data)


@lru_cache(maxsize=256)
def _patterns(data: bytes) -> Patterns:
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    patterns = []
    for line in lines:
        text = line.removesuffix("\r").rstrip(" ")
        ignores = not text.startswith("!")
        text = text.removeprefix("!")
        if not _PLAIN.fullmatch(text) or not text.strip("/") or "//" in text or not matches_quickly(text):
            if ignores:
                continue
            text = "*"
        patterns.append(_pattern(text, ignores=ignores))
    return tuple(patterns)


def matches_quickly(text: str) -> bool:
    """Return whether an ignore pattern takes no long time to match: one part may hold two stars, and one folder be `**`."""
    *folders, last = text.strip("/").split("/")
    stars = (part.count("*") - 1 for part in (*folders, last) if "*" in part and part != "**")
    return folders.count("**") <= 1 and sum(stars) <= 1


def _pattern(text: str, *, ignores: bool) -> _Pattern:
    body = text.rstrip("/")
    anchored = "/" in body
    expression = ""
    for part in re.split(r"(?<![^/])(\*\*/|\*\*$)", body.removeprefix("/")):
        if part == "**/":
            expression += "(?:.*/)?"
        elif part == "**":
            expression += ".+"
        else:
            expression += re.sub(r"(?:\\\*)+", "[^/]*", re.escape(part))
    matches = re.compile(expression, re.DOTALL).fullmatch
    return _Pattern(matches=matches, ignores=ignores, anchored=anchored, folders_only=text.endswith("/"))
