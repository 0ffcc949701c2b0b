"""What models share that read whole command lines by themselves: the paths gathered, and the ways out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.model import Found, PathUse, Program, Read, Unknown, Use, gap, handed_over
from harness.programs.options import stricter


class NotCoveredError(Exception):
    """Why the words at hand are not covered, in a few words for a person; only for functions under `or_gap`."""


def or_gap(read: Read) -> Read:
    """Turn a NotCoveredError that `read` raises into a gap."""

    def safe(argv: Sequence[str]) -> Use:
        try:
            return read(argv)
        except NotCoveredError as problem:
            return gap(str(problem))

    return safe


def never(reason: str) -> Program:
    """Return the model of a program that is never covered, with the reason that people are told."""
    return Program(read=lambda _argv: gap(reason))


class Gathered:
    """The paths of one command."""

    def __init__(self) -> None:
        self.paths: list[PathUse] = []

    def add(self, word: str, access: Access, *, tree: bool = False, entry: bool = False, folder: str = "") -> None:
        """Add what `word` names, seen from `folder`. Raises NotCoveredError for a word whose value is not known."""
        if isinstance(word, Unknown):
            raise NotCoveredError(f"the path {word} is not known")
        if isinstance(word, Found):
            self.paths += handed_over(word, access, tree=tree, folder=folder)
        else:
            self.paths.append(PathUse(word=joined(folder, word), access=access, tree=tree, entry=entry))

    def add_with(self, suffixes: Sequence[str], word: str, access: Access) -> None:
        """Add `word`, and the names that the program tries or makes by putting a suffix behind it."""
        self.add(word, access)
        for suffix in () if isinstance(word, Found) else suffixes:
            self.add(word + suffix, access)

    def use(self, act: Act = Act.LOOKS) -> Use:
        """Return the use of a command that does `act`, or writes what was added as written."""
        written = any(path.access is not Access.READ for path in self.paths)
        return Use(act=stricter(act, Act.WRITES) if written else act, paths=tuple(self.paths))


def joined(folder: str, word: str) -> str:
    """Return `word` seen from `folder`; nothing stands for the current one."""
    return word if not folder or word.startswith("/") else f"{folder}/{word}"
