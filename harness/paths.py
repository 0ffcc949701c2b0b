"""Functions on paths as text: containment, case folding, and searching many names at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

XARGS_SPLITS = " \"'\\"
"""Visible characters at which xargs splits words, or which have a meaning for xargs."""
SHELL_SPLITS = XARGS_SPLITS + "*?["
"""Characters that change an unquoted word in a shell."""


def is_within(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` or below it. Both must be absolute and normalised.

    /repo-evil is not within /repo.
    """
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def is_within_any(path: str, folders: Iterable[str]) -> bool:
    """Return whether an absolute path is one of the folders or below one."""
    return any(is_within(path, folder) for folder in folders)


def fold(text: str) -> str:
    """Return `text` case-folded and in normal form C. `.ENV` becomes `.env`, as on a case-insensitive disk."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def name_from_top(name: str, top: str, below: str) -> str:
    """Return a name relative to the workspace as one relative to `top`, an absolute folder above the workspace.

    `below` is the name of the workspace relative to `top`. Absolute names of other places stay.
    """
    return name.removeprefix(f"{top}/") if name.startswith("/") else f"{below}/{name.removeprefix('./')}"


def is_plain_name(name: str, *, split: str) -> bool:
    """Return whether a name or path is one printable line without any of the characters of `split`."""
    return name.isprintable() and set(split).isdisjoint(name)


def short_place(by: str) -> str:
    """Shorten `rule look (/long/way/default.toml:58)` to `rule look (default.toml:58)`. The log has the whole path."""
    before, bracket, place = by.rpartition("(")
    return f"{before}{bracket}{place.rpartition('/')[2]}" if bracket else by


class TreeNames:
    """An immutable list of file names in the form of `PathAccess.names`.

    Compared by identity, because the list may be long.
    """

    __slots__ = ("_folded", "_from_tops", "_lines", "_names")

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = tuple(names)
        self._lines = ""
        self._folded = ""
        self._from_tops: dict[tuple[str, str], TreeNames] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def lines(self) -> str:
        """An empty line, then one line per name with a slash before and after the name."""
        if not self._lines:
            lines = "\0".join(self._names).replace("\n", "\ufffd").replace("\0", "/\n/")
            self._lines = f"\n/{lines}/\n" if self._names else "\n"
        return self._lines

    @property
    def folded(self) -> str:
        """`lines`, case-folded."""
        self._folded = self._folded or fold(self.lines)
        return self._folded

    def seen_from(self, top: str, below: str) -> TreeNames:
        """Return the same names, with `lines` and `folded` relative to the folder `top` (`name_from_top`)."""
        if (top, below) not in self._from_tops:
            same = TreeNames(self._names)
            same._lines = TreeNames([name_from_top(name, top, below) for name in self._names]).lines
            self._from_tops[top, below] = same
        return self._from_tops[top, below]

    def find(self, expression: re.Pattern[str], text: str) -> Iterator[str]:
        """Yield the names on whose lines in `text` (`lines` or `folded`) the expression matches all or a part."""
        start = lines = 0
        while start >= 0 and (match := expression.search(text, start)) is not None:
            first = lines + text.count("\n", start, match.start() + 1) - 1
            last = lines + text.count("\n", start, match.end()) - 1
            yield from self._names[first : last + 1]
            end = text.find("\n", match.end())
            lines += text.count("\n", start, end)
            start = end


NO_NAMES = TreeNames()
