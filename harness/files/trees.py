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
    """Say whether an ignore file above `folder` (absolute), or one of the person's own, brings hidden names back."""
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
    """Say whether an ignore file among the entries of a folder, or of a repository there, brings hidden names back."""
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
    # Of a worktree (a file) the exclude file lies elsewhere.
    return not os.path.isdir(git) or _brings_back(os.path.join(git, "info", "exclude"))


def _brings_back(path: str) -> bool:
    data = read_small(path, MAX_BYTES)
    if data is None:
        return os.path.lexists(path)
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    return any(line.lstrip().startswith(b"!") for line in lines)


def _names_another(git_config: str) -> bool:
    """Say whether the person's git configuration names an ignore file of its own, or includes what might."""
    data = read_small(git_config, MAX_BYTES)
    if data is None:
        return os.path.lexists(git_config)
    text = data.lower()
    return b"excludesfile" in text or b"include" in text


MAX_BELOW = 500_000
"""Files below a folder that are named; of more it is not known whether a rule forbids one of them."""
MAX_MATCHES = 1_000
"""Maximum number of words of a pattern; a person could not read more either."""
_MAX_ENTRIES = 50_000
"""Entries that are looked at on the way to the matches of a pattern."""
_MAX_STARS = 4
"""Maximum number of stars in one part of a pattern; more take too long to match."""


class Narrowing:
    """Files below a folder that a command reads: all of them, unless its options leave some out."""

    def __init__(
        self,
        *,
        only: Sequence[str] = (),
        skips: Sequence[str] = (),
        excluded: Sequence[str] = (),
        hidden: bool = True,
    ) -> None:
        """Take the names of the only files that are read, and of excluded folders and files, with at most one `*`
        each.

        Other names narrow nothing. `./NAME` is a folder or a file directly in the first folder.
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
        """Return the same, but that hidden files are read too."""
        return Narrowing(only=self._only, skips=self._skips, excluded=self._excluded)

    def enters(self, folder: str, *, first: bool) -> bool:
        """Return whether a folder of this name is examined; `first`: it is directly in the first one."""
        if (folder[0] == "." and not self.hidden) or (first and folder in self._skipped_first):
            return False
        return self._skipped is None or not self._skipped(folder)

    @property
    def reads_all(self) -> bool:
        """Whether a file of any name is read."""
        return self.hidden and self._matches_only is None and not self._excluded

    def reads(self, file: str, *, first: bool) -> bool:
        """Return whether a file of this name is read; `first`: it is directly in the first folder."""
        if (first and file in self._left_out_first) or (self._left_out is not None and self._left_out(file)):
            return False
        return (self.hidden or file[0] != ".") and (self._matches_only is None or bool(self._matches_only(file)))


def names_below(
    folder: str, root: str, narrowing: Narrowing, *, home: str, follows: bool, max_names: int = MAX_BELOW
) -> tuple[Sequence[str], bool]:
    """Return the files below `folder` by their names relative to `root`, and whether these are all that may be met.

    Links are named and not followed; with `follows`, one that leads out of `root` or to a folder makes the answer not
    whole. All paths are absolute and resolved. Hidden files are left out only as long as no ignore file in the tree,
    above it or in the person's `home` brings names back.
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
    """Return the entries of a folder; empty if it is not a folder, `None` if unknown."""
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
    """Add the files of one folder to `names` and its folders to `waiting`; say whether no link leads elsewhere."""
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

    `split`: the characters at which the list is split. `bare`: a name in `folder` itself must not look like an
    option, nor like `NAME=VALUE`. False if unknown.
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
    """Return whether a path, seen from `prefix`, is unambiguous in a list of bare names (see `plain_below`).

    False for a name that git quotes: other letters than ASCII's, quotes, backslashes. With a NUL after
    each name it quotes none.
    """
    first = path.removeprefix(prefix).partition("/")[0] if path.startswith(prefix) else ".."
    quoted = not nul and (not path.isascii() or '"' in path or "\\" in path)
    return not quoted and is_plain_name(path, split=split) and not _odd_first(first)


def followed(top: str, names: Sequence[str], root: str) -> tuple[list[str], bool]:
    """Return the targets of those of many files below `top` that are links or behind one, and whether all are in
    `root`.

    Names are relative to `top` if they are below it; a missing one counts as not a file.
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


def expand(pattern: str, cwd: str) -> tuple[str, ...] | None:
    """Return the expansion of `pattern` in `cwd` by bash 5; see `Workspace.expand`.

    `None` if it is uncertain: too many matches, a part that could match `.` or `..` (which bash before 5.2 gives).
    """
    if "//" in pattern:
        return None  # which of the slashes bash keeps depends on where they stand
    parts = _parts(pattern)
    words = ["/"] if pattern.startswith("/") else [""]
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        longer = _matches(part, words, cwd) if _has_pattern(part) else [f"{start}{_unescaped(part)}" for start in words]
        if longer is None or len(longer) > MAX_MATCHES:
            return None
        if last:
            words = [word for word in longer if os.path.lexists(os.path.join(cwd, word))]
        else:
            words = [f"{word}/" for word in longer if os.path.isdir(os.path.join(cwd, word))]
    return tuple(sorted(words)) if all(word.isprintable() for word in words) else None


def _matches(part: str, starts: Sequence[str], cwd: str) -> list[str] | None:
    """Return the names in the folders `starts` that one part of a pattern matches, or `None` if it is uncertain."""
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
    counts = "?" in part or "[" in part  # bytes or characters: where a locale is missing, bash counts bytes
    for start in starts:
        try:
            names = os.listdir(os.path.join(cwd, start) or ".")
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
    """Return a class of bash for a regular expression. Raises re.error for a reversed range."""
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
