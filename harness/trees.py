"""What lies in a folder: the files below it, and the names that a pattern of bash stands for. Only looks, never changes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

MAX_BELOW = 50_000
"""Files below a folder that are named; of more it is not known whether a rule forbids one of them."""
MAX_MATCHES = 1_000
"""Words that a pattern may stand for; a person could not look through more either."""
MAX_ENTRIES = 50_000
"""Entries that are looked at on the way to the matches of a pattern."""
_IGNORE_FILES = frozenset((".gitignore", ".ignore", ".rgignore"))
MAX_STARS = 4
"""In one part of a pattern: with more of them, matching a name takes too long."""


class Narrowing:
    """Which files below a folder a command reads: all of them, unless its options leave some out."""

    def __init__(self, *, only: Sequence[str] = (), skips: Sequence[str] = (), hidden: bool = True) -> None:
        """Take names of files and of folders, with at most one `*` each: others narrow nothing."""
        self._wanted = _names_pattern(only) if all(map(_is_plain, only)) else None
        self._skipped = _names_pattern([name for name in skips if _is_plain(name)])
        self.hidden = hidden

    def enters(self, folder: str) -> bool:
        """Say whether a folder of this name is looked into."""
        return (self.hidden or folder[0] != ".") and not (self._skipped is not None and self._skipped(folder))

    def reads(self, file: str) -> bool:
        """Say whether a file of this name is read."""
        return (self.hidden or file[0] != ".") and (self._wanted is None or bool(self._wanted(file)))


def names_below(folder: str, root: str, narrowing: Narrowing, *, follows: bool) -> tuple[tuple[str, ...], bool]:
    """Return the files below `folder` by their names relative to `root`, and whether these are all that may be met.

    Links are named and not followed; with `follows`, one that leads out of `root` or to a folder makes the answer not
    whole. Both paths are absolute and resolved. Hidden files are left out only as long as no ignore file in the tree
    or above it brings names back.
    """
    if not narrowing.hidden and _ignore_file_says_otherwise(folder, root):
        narrowing.hidden = True
    names: list[str] = []
    waiting = [folder]
    cut = len(root.rstrip("/")) + 1
    whole = True
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except NotADirectoryError:
            continue
        except OSError as error:
            whole = whole and isinstance(error, FileNotFoundError)
            continue
        if not narrowing.hidden and any(e.name in _IGNORE_FILES and _brings_back(e.path) for e in entries):
            narrowing.hidden = True
            names, waiting = [], [folder]
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if narrowing.enters(entry.name):
                    waiting.append(entry.path)
            elif narrowing.reads(entry.name):
                names.append(entry.path[cut:])
                whole = whole and not (follows and entry.is_symlink() and not _stays_inside(entry.path, root, names))
        if len(names) > MAX_BELOW:
            return tuple(names[:MAX_BELOW]), False
    return tuple(names), whole


def _ignore_file_says_otherwise(folder: str, root: str) -> bool:
    """Say whether an ignore file above `folder`, up to `root`, brings names back."""
    while folder.startswith(root) and folder != root:
        folder = os.path.dirname(folder)
        if any(_brings_back(os.path.join(folder, name)) for name in _IGNORE_FILES):
            return True
    return _brings_back(os.path.join(root, ".git", "info", "exclude"))


def _brings_back(ignore_file: str) -> bool:
    """Say whether an ignore file has a line with `!`; one that cannot be read may have."""
    try:
        with open(ignore_file, "rb") as file:
            return any(line.lstrip().startswith(b"!") for line in file.read(1_000_000).splitlines())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_plain(name: str) -> bool:
    return name.count("*") <= 1 and not set("?[\\{/").intersection(name)


def _names_pattern(names: Sequence[str]) -> Callable[[str], object] | None:
    """Return what says whether a name is one of these, or None if there are none."""
    if not names:
        return None
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names), re.DOTALL).fullmatch


def _stays_inside(link: str, root: str, names: list[str]) -> bool:
    """Say whether a link leads to a file inside `root`, whose name is then known too."""
    inside = root.rstrip("/") + "/"
    real = os.path.realpath(link)
    names.append(real.removeprefix(inside))
    return real.startswith(inside) and not os.path.isdir(real)


def expand(pattern: str, cwd: str) -> tuple[str, ...] | None:
    """Return what bash 5 makes of `pattern` in `cwd`; see `Workspace.expand`.

    None where it is not sure: too many matches, a part that could match `.` or `..` (which bash before 5.2 gives).
    """
    parts = _parts(pattern)
    found = ["/"] if pattern.startswith("/") else [""]
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        longer = _matches(part, found, cwd) if _has_pattern(part) else [f"{start}{_unescaped(part)}" for start in found]
        if longer is None or len(longer) > MAX_MATCHES:
            return None
        if last:
            found = [word for word in longer if os.path.lexists(os.path.join(cwd, word))]
        else:
            found = [f"{word}/" for word in longer if os.path.isdir(os.path.join(cwd, word))]
    return tuple(sorted(found)) if all(word.isprintable() for word in found) else None


def _matches(part: str, starts: Sequence[str], cwd: str) -> list[str] | None:
    """Return the names in the folders `starts` that one part of a pattern stands for, or None where it is not sure."""
    if part.count("*") > MAX_STARS:
        return None
    regex = re.compile(_regex(part), re.DOTALL)
    if part[0] == "." and (regex.fullmatch(".") or regex.fullmatch("..")):
        return None
    found: list[str] = []
    looked_at = 0
    for start in starts:
        try:
            names = os.listdir(os.path.join(cwd, start) or ".")
        except OSError:
            continue
        looked_at += len(names)
        if looked_at > MAX_ENTRIES:
            return None
        found += [f"{start}{name}" for name in names if (name[0] != "." or part[0] == ".") and regex.fullmatch(name)]
    return found


def _parts(pattern: str) -> list[str]:
    """Split at slashes; the empty first part of an absolute pattern is dropped, repeated slashes count once."""
    parts = re.sub("/+", "/", pattern).split("/")
    return parts[1:] if pattern.startswith("/") else parts


def _has_pattern(part: str) -> bool:
    return any(char in "*?[" for char in re.sub(r"\\.", "", part, flags=re.DOTALL))


def _unescaped(part: str) -> str:
    return re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)


def _regex(part: str) -> str:
    """Return a regular expression for one part of a pattern: `*`, `?`, and classes of plain characters."""
    pieces: list[str] = []
    position = 0
    while position < len(part):
        char = part[position]
        if char == "\\" and position + 1 < len(part):
            pieces.append(re.escape(part[position + 1]))
            position += 2
            continue
        if char == "[" and (end := part.find("]", position + 2)) > 0:
            inside = part[position + 1 : end]
            negated = inside[0] in "!^"
            pieces.append(f"[{'^' if negated else ''}{_class(inside[1:] if negated else inside)}]")
            position = end + 1
            continue
        pieces.append({"*": ".*", "?": "."}.get(char) or re.escape(char))
        position += 1
    return "".join(pieces)


def _class(inside: str) -> str:
    """Escape what a class of bash holds; a dash between two characters stays a range."""
    return "".join(char if char == "-" else re.escape(char) for char in inside)
