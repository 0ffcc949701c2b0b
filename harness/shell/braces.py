"""Brace lists: the texts that `{a,b}` and `{1..3}` stand for; pure. bash(1), Brace Expansion.

bash takes them apart before it looks at anything else in a word. Those that hold quotes, expansions or further braces are
not read.
"""

from __future__ import annotations

import re

MAX_TEXTS = 500

_PART = r"[A-Za-z0-9_./+%@^*?-]*"
_LIST = re.compile(rf"\{{({_PART}(?:,{_PART})+)\}}")
_NUMBERS = re.compile(r"\{(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.-?([0-9]{1,9}))?\}")
_LETTERS = re.compile(r"\{(?:([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))\}")
_IN_FRONT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+^*?-}")


class Braces:
    """One list in a word, and where it ends."""

    __slots__ = ("end", "texts")

    def __init__(self, texts: tuple[str, ...], end: int) -> None:
        self.texts = texts
        self.end = end


def braces_at(text: str, position: int, *, first: bool) -> Braces | None:
    """Return the list that begins at `position`, or None for what is not read; `first`: a word begins there, too."""
    if not first and text[position - 1] not in _IN_FRONT:
        return None
    match = _LIST.match(text, position) or _NUMBERS.match(text, position) or _LETTERS.match(text, position)
    if match is None:
        return None
    if match.re is _LIST:
        texts: tuple[str, ...] | None = tuple(match[1].split(","))
    elif match.re is _NUMBERS:
        texts = _numbers(match[1], match[2], int(match[3] or 1))
    else:
        begin, end = (ord(letter) for letter in match.groups() if letter)
        texts = tuple(map(chr, _steps(begin, end, 1)))
    return None if texts is None or len(texts) > MAX_TEXTS else Braces(texts, match.end())


def _numbers(begin: str, end: str, step: int) -> tuple[str, ...] | None:
    steps = _steps(int(begin), int(end), step or 1)
    if len(steps) > MAX_TEXTS:
        return None
    padded = any(len(each) > 1 and each.lstrip("-").startswith("0") for each in (begin, end))
    if not padded:
        return tuple(map(str, steps))
    if "-" in begin + end:
        return None
    width = max(len(begin), len(end))
    return tuple(f"{number:0{width}}" for number in steps)


def _steps(begin: int, end: int, step: int) -> range:
    return range(begin, end + 1, step) if begin <= end else range(begin, end - 1, -step)
