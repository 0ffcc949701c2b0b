"""The files that a policy file extends, and those that these extend: `extends = ["ci", "../company.toml"]`. Pure.

The caller's `find` reads them, from the disk or from a log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from harness.errors import PolicyError
from harness.record import Record
from harness.text.toml_places import key_lines, read_toml

MAX_DEPTH = 8
"""Maximum length of a chain of files, each of which extends the next."""
MAX_FILES = 50
"""Maximum number of files of one policy."""


class PolicyText(Record):
    """A policy file that was found."""

    path: str
    content: bytes


class PolicyFile(PolicyText):
    """A policy file, with the paths of the files that it extends."""

    extends: tuple[str, ...]


Find: TypeAlias = Callable[[str, str], PolicyText]
"""Returns the file of a name in the `extends` of the file at a path. Raises ValueError with the problem."""


def with_extended(path: str, content: bytes, find: Find) -> tuple[PolicyFile, ...]:
    """Return the file at `path` and all files that it extends, each once, and after every file that extends it.

    Raises PolicyError for a file that is missing, not TOML, or extends itself, and for too many files.
    """
    files: dict[str, PolicyFile] = {}

    def add(file: PolicyText, road: tuple[str, ...]) -> None:
        paths = []
        for name in _names(file):
            other = _file_of(file, name, find)
            paths.append(other.path)
            if other.path in (*road, file.path):
                raise _problem(file, f"{name!r} extends this file itself: {other.path}")
            if other.path in files:
                continue
            if len(road) + 2 > MAX_DEPTH:
                raise _problem(file, f"{name!r} is too deep: at most {MAX_DEPTH} files may extend one another in a row")
            if len(files) + len(road) + 2 > MAX_FILES:
                raise _problem(file, f"{name!r} is one too many: a policy has at most {MAX_FILES} files")
            add(other, (*road, file.path))
        files[file.path] = PolicyFile(path=file.path, content=file.content, extends=tuple(paths))

    add(PolicyText(path=path, content=content), ())
    return tuple(reversed(files.values()))


@lru_cache(maxsize=6 * MAX_FILES)  # a policy has up to six layers
def text_and_table(file: PolicyText) -> tuple[str, Mapping[str, object]]:
    """Return the text and the table of a policy file. Raises PolicyError if it is not TOML."""
    try:
        return read_toml(file.content)
    except ValueError as error:
        raise PolicyError(f"{file.path}: {error}") from None


def _file_of(file: PolicyText, name: str, find: Find) -> PolicyText:
    try:
        return find(name, file.path)
    except ValueError as error:
        raise _problem(file, f"{name!r} {error}") from None


def _names(file: PolicyText) -> list[str]:
    """Return the names in the key `extends` of a file."""
    _, table = text_and_table(file)
    names = table.get("extends", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise _problem(file, 'must be a list of names and files, such as ["ci", "../company.toml"]')
    if "extends" in table and not names:
        raise _problem(file, "must not be empty")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _problem(file, f"names {twice!r} twice")
    return names


def _problem(file: PolicyText, problem: str) -> PolicyError:
    """Return the error about the key `extends` of a file."""
    text, _ = text_and_table(file)
    return PolicyError(f"{file.path}:{key_lines(text).get(('', 0, 'extends'), 1)}: extends: {problem}")
