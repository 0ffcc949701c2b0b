"""Build context: the files of a folder that a container build sends, minus those that ignore files (`.dockerignore`) exclude.

INVARIANT: every file that Docker or Podman sends is listed here too. Ambiguous patterns are skipped; an ambiguous
exception (`!`) brings all files back. A file is left out only if every ignore file excludes it, because programs and
their versions differ in which ignore file they read.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from harness.files.untracked import matches_quickly
from harness.regex import regex
from harness.safe_files import read_small

MAX_BYTES = 100_000
_PLAIN = regex(r"/?[A-Za-z0-9_.@~,=*-]+(?:/[A-Za-z0-9_.@~,=*-]+)*/?")
_ALWAYS_SENT = regex(r"(?is)dockerfile|containerfile|[^/]*\.(?:docker|container)ignore|.*\n.*")

_Matcher: TypeAlias = "tuple[Callable[[str], object], bool]"
"""A function that tests whether a group of patterns matches a path, and whether a match excludes the file."""


def sent_files(names: Sequence[str], context: str, ignore_files: Sequence[str]) -> list[str]:
    """Return the names of the files that a build sends.

    All `names` start with `context`, a prefix that ends with a slash or is empty. `ignore_files` are absolute paths. If
    the first does not exist, all files are sent. The others count if they exist.
    """
    if not os.path.lexists(ignore_files[0]):
        return list(names)
    groups = [_read(path) for path in ignore_files if os.path.lexists(path)]
    return [name for name in names if _is_sent(name.removeprefix(context), groups)]


def _is_sent(name: str, files: Sequence[Sequence[_Matcher]]) -> bool:
    return bool(_ALWAYS_SENT.fullmatch(name)) or not all(_leaves_out(name, groups) for groups in files)


def _leaves_out(name: str, groups: Sequence[_Matcher]) -> bool:
    """Return whether an ignore file excludes a file. The last matching pattern decides."""
    return next((ignores for matches, ignores in reversed(groups) if matches(name)), False)


def _read(path: str) -> Sequence[_Matcher]:
    """Return the patterns of an ignore file. A link or an unreadable file excludes no files."""
    data = None if os.path.islink(path) else read_small(path, MAX_BYTES)
    return () if data is None else _matchers(data)


@lru_cache(maxsize=64)
def _matchers(data: bytes) -> Sequence[_Matcher]:
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    first = next((number for number, line in enumerate(lines) if _is_exception(line)), len(lines))
    groups: list[tuple[list[str], bool]] = []
    for number, line in enumerate(lines):
        ignores = not _is_exception(line)
        text = line.strip(" \t\r").removeprefix("" if ignores else "!").strip(" \t\r")
        whole_folders = not ignores or first == len(lines) or (number < first and "**" not in text)
        expression = _expression(text, whole_folders=whole_folders)
        if not expression and ignores:
            continue
        if not groups or groups[-1][1] is not ignores:
            groups.append(([], ignores))
        groups[-1][0].append(expression or ".*")
    return [(re.compile("|".join(group), re.DOTALL).fullmatch, ignores) for group, ignores in groups]


def _is_exception(line: str) -> bool:
    """Return whether a line may be an exception. Programs differ in the blanks and byte order marks that they strip."""
    return line.strip().lstrip("\ufeff").lstrip().startswith("!")


def _expression(text: str, *, whole_folders: bool) -> str:
    """Return a pattern as a regular expression; empty if it can be read in several ways.

    With `whole_folders`, a pattern that matches a folder matches every file in it. Where exceptions exist, versions
    differ on that for a pattern with `**`, and Docker does not do it for a pattern after an exception.
    """
    parts = posixpath.normpath(text).removeprefix("/").split("/") if _PLAIN.fullmatch(text) else [".."]
    if parts[0] in (".", "..") or not matches_quickly(text) or any("**" in part != "**" for part in parts):
        return ""
    *folders, last = ("(?:.*/)?" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") + "/" for part in parts)
    end = ".+" if parts[-1] == "**" else last.removesuffix("/")
    return "".join((*folders, end)) + ("(?:/.*)?" if whole_folders else "")
