"""Files below a folder, and expansion of bash's file name patterns."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence

from harness.paths import is_plain_name, is_within
from harness.safe_files import read_small

MAX_BYTES = 1_000_000
NAMES = frozenset((".gitignore", ".ignore", ".rgignore", ".fdignore"))


def bring_back_from_above(folder: str, home: str) -> bool:
    """Return whether an ignore file above `folder` (absolute), or one of the user's own, un-ignores hidden names."""
    configurations = (f"{home}/.gitconfig", f"{home}/.config/git/config")
    if _brings_back(f"{home}/.config/git/ignore") or any(map(_names_another, configurations)):
        return True
    while True:
        if _in_repository(folder) or (folder != "/" and _beside(os.path.dirname(folder))):
            return True
        if folder in ("/", ""):
            return False
        folder = os.path.dirname(folder)


def _bring_back_here(entries: Sequence[os.DirEntry[str]]) -> bool:
    """Return whether an ignore file in a folder, or of a repository there, un-ignores hidden names."""
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
    # The `.git` of a worktree is a file, and its exclude file is elsewhere.
    return not os.path.isdir(git) or _brings_back(os.path.join(git, "info", "exclude"))


def _brings_back(path: str) -> bool:
    data = read_small(path, MAX_BYTES)
    if data is None:
        return os.path.lexists(path)
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    return any(line.lstrip().startswith(b"!") for line in lines)


def _names_another(git_config: str) -> bool:
    """Return whether the user's git configuration names an ignore file, or includes a file that might."""
    data = read_small(git_config, MAX_BYTES)
    if data is None:
        return os.path.lexists(git_config)
    text = data.lower()
    return b"excludesfile" in text or b"include" in text


MAX_BELOW = 500_000
"""Maximum number of files listed below a folder. Beyond it, a rule might forbid one of the others unnoticed."""
MAX_MATCHES = 1_000
"""Maximum number of words that a pattern expands to; a reviewer could not read more either."""
_MAX_ENTRIES = 50_000
"""Maximum number of folder entries examined to match a part of a pattern."""
_MAX_STARS = 4
"""Maximum number of stars in one part of a pattern; more take too long to match."""


class Narrowing:
    """Selection of the files below a folder that a command reads: all, unless its options exclude some."""

    def __init__(
        self,
        *,
        only: Sequence[str] = (),
        skips: Sequence[str] = (),
        excluded: Sequence[str] = (),
        hidden: bool = True,
    ) -> None:
        """Select files by name.

        `only` names the only files that are read; `skips` names excluded folders, and `excluded` excluded files. Each
        name has at most one `*`; other names exclude no files. `./NAME` is a folder or file directly in the first
        folder. Without `hidden`, hidden files and folders are excluded.
        """
        self._only = only
        self._skips = skips
        self._matches_only = _names_pattern(only) if all(map(_is_plain, only)) else None
        self._skipped = _names_pattern([name for name in skips if _is_plain(name)])
        self._skipped_first = frozenset(name[2:] for name in skips if name.startswith("./"))
        self._excluded = excluded
        self._left_out = _names_pattern([name for name in excluded if _is_plain(name)])
        self._left_out_first = frozenset(name[2:] for name in excluded if name.startswith("./"))
        self.hidden = hidden

    def with_hidden(self) -> Narrowing:
        """Return the same selection, but including hidden files."""
        return Narrowing(only=self._only, skips=self._skips, excluded=self._excluded)

    def enters(self, folder: str, *, first: bool) -> bool:
        """Return whether a folder with this name is examined. `first`: it is directly in the first folder."""
        if (folder[0] == "." and not self.hidden) or (first and folder in self._skipped_first):
            return False
        return self._skipped is None or not self._skipped(folder)

    @property
    def reads_all(self) -> bool:
        """Whether files with any name are read."""
        return self.hidden and self._matches_only is None and not self._excluded

    def reads(self, file: str, *, first: bool) -> bool:
        """Return whether a file with this name is read. `first`: it is directly in the first folder."""
        if (first and file in self._left_out_first) or (self._left_out is not None and self._left_out(file)):
            return False
        return (self.hidden or file[0] != ".") and (self._matches_only is None or bool(self._matches_only(file)))


def names_below(
    folder: str, root: str, narrowing: Narrowing, *, home: str, follows: bool, max_names: int = MAX_BELOW
) -> tuple[Sequence[str], bool]:
    """Return the files below `folder` by their names relative to `root`, and whether the list is complete.

    Links are listed and not followed. With `follows`, their targets are listed too, and a link to a folder or out of
    `root` makes the list incomplete. All paths are absolute and resolved. Hidden files are excluded only if no ignore
    file in the tree, above it or in the user's `home` un-ignores names.
    """
    if not narrowing.hidden and bring_back_from_above(folder, home):
        narrowing = narrowing.with_hidden()
    names: list[str] = []
    waiting = [folder]
    is_complete = True
    while waiting and len(names) <= max_names:
        inner = waiting.pop()
        entries = _entries(inner)
        if entries is None:
            is_complete = False
            continue
        if not narrowing.hidden and _bring_back_here(entries):
            narrowing = narrowing.with_hidden()
            names, waiting = [], [folder]
            continue
        has_all = _look_at(inner, entries, root, narrowing, names, waiting, follows=follows, first=inner == folder)
        is_complete = has_all and is_complete
    return names[:max_names], is_complete and len(names) <= max_names


def _entries(folder: str) -> list[os.DirEntry[str]] | None:
    """Return the entries of a folder: empty if it is not a folder, `None` if it cannot be listed."""
    try:
        return list(os.scandir(folder))
    except (NotADirectoryError, FileNotFoundError):
        return []
    except OSError:
        return None


def _look_at(
    folder: str,
    entries: Sequence[os.DirEntry[str]],
    root: str,
    narrowing: Narrowing,
    names: list[str],
    waiting: list[str],
    *,
    follows: bool,
    first: bool,
) -> bool:
    """Add the files of one folder to `names`, and its folders to `waiting`. Return whether the list is complete.

    It is incomplete only with `follows`, if a link leads to a folder or out of `root`.
    """
    inside = root.rstrip("/") + "/"
    prefix = f"{folder.rstrip('/')}/".removeprefix(inside)
    reads_all, is_complete = narrowing.reads_all, True
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if narrowing.enters(entry.name, first=first):
                waiting.append(entry.path)
        elif reads_all or narrowing.reads(entry.name, first=first):
            names.append(prefix + entry.name)
            if follows and entry.is_symlink():
                real = os.path.realpath(entry.path)
                names.append(real.removeprefix(inside))
                is_complete = is_complete and real.startswith(inside) and not os.path.isdir(real)
    return is_complete


def plain_below(folder: str, narrowing: Narrowing, *, split: str, bare: bool, max_names: int = MAX_BELOW) -> bool:
    """Return whether the names of all files and folders below `folder` are unambiguous in a list of names.

    `split` are the characters at which the list is split. With `bare`, a name in `folder` itself must not look like an
    option or like `NAME=VALUE`. False if a folder cannot be listed, or there are more than `max_names`.
    """
    waiting, count = [folder], 0
    while waiting:
        inner = waiting.pop()
        entries = _entries(inner)
        count += len(entries or ())
        if entries is None or count > max_names:
            return False
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if narrowing.enters(entry.name, first=inner == folder):
                    waiting.append(entry.path)
            elif not narrowing.reads(entry.name, first=inner == folder):
                continue
            if not is_plain_name(entry.name, split=split) or (bare and inner == folder and _odd_first(entry.name)):
                return False
    return True


def plain_in_list(path: str, prefix: str, *, split: str, nul: bool) -> bool:
    """Return whether a path, relative to `prefix`, is unambiguous in a list of bare names (see `plain_below`).

    False for a name that git quotes: one with non-ASCII letters, quotes or backslashes. With `nul` (a NUL after each
    name), git quotes no names.
    """
    first = path.removeprefix(prefix).partition("/")[0] if path.startswith(prefix) else ".."
    quoted = not nul and (not path.isascii() or '"' in path or "\\" in path)
    return not quoted and is_plain_name(path, split=split) and not _odd_first(first)


def followed(top: str, names: Sequence[str], root: str) -> tuple[list[str], bool]:
    """Return the targets of the given names that are links or are reached through one, and whether the list is complete.

    It is complete if all targets are in `root`, and neither a name nor a target is a folder. Names are relative to
    `top`; missing files are skipped.
    """
    inside, ends, is_complete = os.path.join(top, ""), [], True
    folders: dict[str, str] = {}
    for name in names:
        folder, _, last = os.path.join(top, name).rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or "/")
        path = f"{folders[folder]}/{last}"
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            is_complete = False
            continue
        if stat.S_ISLNK(mode) or folders[folder] != folder:
            path = os.path.realpath(path)
            ends.append(path.removeprefix(inside))
            is_complete = is_complete and is_within(path, root) and not os.path.isdir(path)
        elif stat.S_ISDIR(mode):
            is_complete = False
    return ends, is_complete


def _odd_first(name: str) -> bool:
    return not (name[0].isalnum() or name[0] in "._") or "=" in name


def _is_plain(name: str) -> bool:
    return name.count("*") <= 1 and not set("?[\\{/").intersection(name)


def _names_pattern(names: Sequence[str]) -> Callable[[str], object] | None:
    """Return a function that matches these names, or `None` if there are none."""
    if not names:
        return None
    return re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names), re.DOTALL).fullmatch


def expand(pattern: str, cwd: str, disk_path: Callable[[str], str] = str) -> tuple[str, ...] | None:
    """Return the expansion of `pattern` in `cwd` by bash 5; see `Workspace.expand`.

    `disk_path` returns where a command finds an absolute path on the disk. A folder's path ends with a slash. `None` if the
    expansion is uncertain: too many matches, or a part that matches `.` or `..` (as it does in bash before 5.2).
    """
    if "//" in pattern:
        return None  # whether bash keeps both slashes depends on their position
    parts = _parts(pattern)
    words = ["/"] if pattern.startswith("/") else [""]
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        longer = (
            _matches(part, words, cwd, disk_path)
            if _has_pattern(part)
            else [f"{start}{_unescaped(part)}" for start in words]
        )
        if longer is None or len(longer) > MAX_MATCHES:
            return None
        if last:
            words = [word for word in longer if os.path.lexists(disk_path(os.path.join(cwd, word)))]
        else:
            words = [f"{word}/" for word in longer if os.path.isdir(disk_path(os.path.join(cwd, word, "")))]
    return tuple(sorted(words)) if all(word.isprintable() for word in words) else None


def _matches(part: str, starts: Sequence[str], cwd: str, disk_path: Callable[[str], str]) -> list[str] | None:
    """Return the names in the folders `starts` that match one part of a pattern. `None` if it is uncertain."""
    if part.count("*") > _MAX_STARS:
        return None
    try:
        regex = re.compile(_regex(part), re.DOTALL)
    except re.error:
        return None
    if part[0] == "." and (regex.fullmatch(".") or regex.fullmatch("..")):
        return None
    matches: list[str] = []
    looked_at = 0
    counts = "?" in part or "[" in part  # bash counts characters, or bytes if the locale is missing
    for start in starts:
        try:
            names = os.listdir(disk_path(os.path.join(cwd, start, "")) or ".")
        except OSError:
            continue
        looked_at += len(names)
        if looked_at > _MAX_ENTRIES or (counts and not all(map(str.isascii, names))):
            return None
        matches += [f"{start}{name}" for name in names if (name[0] != "." or part[0] == ".") and regex.fullmatch(name)]
    return matches


def _parts(pattern: str) -> list[str]:
    """Split at slashes; the empty first part of an absolute pattern is dropped."""
    parts = pattern.split("/")
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
    """Convert the inside of a bash character class for a regular expression. Raises re.error for a reversed range."""
    pieces: list[str] = []
    position = 0
    while position < len(inside):
        low, dash, high = inside[position], inside[position + 1 : position + 2], inside[position + 2 : position + 3]
        if dash == "-" and high:
            if high < low:
                raise re.error(f"{low}-{high} runs backwards")
            pieces.append(f"{re.escape(low)}-{re.escape(high)}")
            position += 3
        else:
            pieces.append("\\-" if low == "-" else re.escape(low))
            position += 1
    return "".join(pieces)
