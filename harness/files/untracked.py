"""The untracked files of a work tree: new ones, and those that git ignores (gitignore(5)).

INVARIANT: every file that git treats as new is listed as new here too. Ambiguous ignore patterns are skipped; an
ambiguous pattern with `!` un-ignores all files. The user's own ignore file (core.excludesFile) is not read.
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
    """Matches the path relative to the ignore file's folder if `anchored`, otherwise the name alone."""
    ignores: bool
    """Whether a match ignores the file. False for a pattern with `!`, which un-ignores it."""
    anchored: bool
    """Whether it matches a path and not a name in any folder."""
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
    """Return the untracked files below `top` by their names relative to it, and whether the list is complete.

    Lists only the ignored files with `ignored`, and only the new ones without. `exclude_file` is the path of the
    repository's exclude file; empty if it has none. If `below` is not empty, files elsewhere may be missing. Nested
    repositories are not entered, because git adds none of their files.
    """
    names: list[str] = []
    waiting: list[tuple[str, Sequence[tuple[int, Patterns]], bool]] = [
        ("", [(0, ignore_patterns(exclude_file))], False)
    ]
    is_complete = True
    while waiting and len(names) <= max_names:
        prefix, above, all_ignored = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(top, prefix)))
        except OSError:
            is_complete = False
            continue
        ignore_files = [(len(prefix), ignore_patterns(os.path.join(top, prefix, ".gitignore"))), *above]
        for entry in entries:
            name = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or (is_folder and is_repository(entry.path)):
                continue
            is_ignored = all_ignored or ignored_by(name, is_folder=is_folder, ignore_files=ignore_files)
            if is_folder and below and not any(is_within(name, path) or is_within(path, name) for path in below):
                continue
            if is_folder and (ignored or not is_ignored):
                waiting.append((f"{name}/", ignore_files, is_ignored))
            elif not is_folder and is_ignored is ignored and name not in tracked:
                names.append(name)
    return names[:max_names], is_complete and len(names) <= max_names


def ignored_by(name: str, *, is_folder: bool, ignore_files: Sequence[tuple[int, Patterns]]) -> bool:
    """Return whether git ignores an untracked file or folder.

    The first match decides, in the order of git: the nearest ignore file first, and in each file the last line first.
    """
    last = name.rpartition("/")[2]
    for start, patterns in ignore_files:
        for pattern in reversed(patterns):
            if (is_folder or not pattern.folders_only) and pattern.matches(name[start:] if pattern.anchored else last):
                return pattern.ignores
    return False


def ignore_patterns(path: str) -> Patterns:
    """Return the patterns of an ignore file. An unreadable file, or a link, counts as one that un-ignores all files."""
    if not path or not os.path.lexists(path):
        return ()
    data = None if os.path.islink(path) else read_small(path, MAX_BYTES)
    return _patterns(f"{_EVERYTHING}\n".encode() if data is None else data)


@lru_cache(maxsize=4_096)  # a large repository has an ignore file in a thousand folders
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
    """Return whether an ignore pattern matches quickly: at most one part has two stars, and at most one folder is `**`."""
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
