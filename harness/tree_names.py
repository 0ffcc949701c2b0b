"""TreeNames: the names of the files below a folder, as one text in which an expression finds some of many; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.paths import fold

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    import re


class TreeNames:
    """Names of files, as `PathAccess.names` has them. It never changes, and is equal to itself alone: names may be many."""

    __slots__ = ("_folded", "_lines", "_names")

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = tuple(names)
        self._lines = ""
        self._folded = ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def lines(self) -> str:
        """A line for each name, with a slash before and behind it, and an empty one in front of all."""
        if not self._lines:
            lines = "\0".join(self._names).replace("\n", "\ufffd").replace("\0", "/\n/")
            self._lines = f"\n/{lines}/\n" if self._names else "\n"
        return self._lines

    @property
    def folded(self) -> str:
        """The same, folded."""
        self._folded = self._folded or fold(self.lines)
        return self._folded

    def found(self, expression: re.Pattern[str], text: str) -> Iterator[str]:
        """Yield the names on whose lines in `text` (`lines` or `folded`) the expression matches, wholly or in part."""
        start = lines = 0
        while start >= 0 and (match := expression.search(text, start)) is not None:
            first = lines + text.count("\n", start, match.start() + 1) - 1
            last = lines + text.count("\n", start, match.end()) - 1
            yield from self._names[first : last + 1]
            end = text.find("\n", match.end())
            lines += text.count("\n", start, end)
            start = end


NO_NAMES = TreeNames()
