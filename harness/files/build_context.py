"""Build context: the files of a folder that a container build sends, as its ignore files leave some out (`.dockerignore`).

INVARIANT: never fewer are sent than by Docker or Podman. A pattern leaves files out only if it can be read in one way; an
exception (`!`) that cannot brings everything back. Every ignore file must leave a file out, since programs and their versions
differ in the one that they read.
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
"""Whether a pattern of a group matches a path or a folder above it, and whether it is left out then."""


def sent_files(names: Sequence[str], context: str, ignore_files: Sequence[str]) -> list[str]:
    """Return the names of the files that a build sends.

    `names` lie below `context`, a beginning that ends with a slash or is empty. `ignore_files` are absolute paths. All files
    are sent if the first does not exist; each of the others counts if it does.
    """
    if not os.path.lexists(ignore_files[0]):
        return list(names)
    groups = [_read(path) for path in ignore_files if os.path.lexists(path)]
    return [name for name in names if _is_sent(name.removeprefix(context), groups)]


def _is_sent(name: str, files: Sequence[Sequence[_Matcher]]) -> bool:
    return bool(_ALWAYS_SENT.fullmatch(name)) or not all(_leaves_out(name, groups) for groups in files)


def _leaves_out(name: str, groups: Sequence[_Matcher]) -> bool:
    """Return whether an ignore file leaves a file out. Its last pattern that matches decides."""
    return next((ignores for matches, ignores in reversed(groups) if matches(name)), False)


def _read(path: str) -> Sequence[_Matcher]:
    """Return the patterns of an ignore file. A link, and a file that cannot be read, leave nothing out."""
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
    """Return whether a line may be an exception: programs strip different blanks, and a byte order mark or not."""
    return line.strip().lstrip("\ufeff").lstrip().startswith("!")


def _expression(text: str, *, whole_folders: bool) -> str:
    """Return a pattern as a regular expression; empty if it can be read in several ways.

    `whole_folders`: it matches every file in a folder that it matches. Beside exceptions, versions differ on that for a pattern
    with `**`, and Docker forgets it for a pattern behind an exception.
    """
    parts = posixpath.normpath(text).removeprefix("/").split("/") if _PLAIN.fullmatch(text) else [".."]
    if parts[0] in (".", "..") or not matches_quickly(text) or any("**" in part != "**" for part in parts):
        return ""
    *folders, last = ("(?:.*/)?" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") + "/" for part in parts)
    end = ".+" if parts[-1] == "**" else last.removesuffix("/")
    return "".join((*folders, end)) + ("(?:/.*)?" if whole_folders else "")
