"""Pieces of a word, brace lists, and quoting without expansions ('...', $'...', the backslash).

words.py reads double quotes, since they may contain expansions. See bash(1), QUOTING.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from harness.regex import regex
from harness.shell.cursor import ALPHANUMERIC, END, Cursor
from harness.shell.syntax import Glob, Literal, Piece

# Characters allowed after a continued line inside a word (cursor.py). None can belong to an expansion or pattern before it.
_AFTER_JOINED_WORD = ALPHANUMERIC | frozenset(" \t\n_./,:=@%+^-'\"$" + END)

_ANSI_QUOTED = regex(rf"\$'((?:[^'\\{END}]|\\[^{END}])*+)'")
_ANSI_ESCAPE = regex(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c([A-Za-z])|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))

_MAX_TEXTS = 500

_PART = r"[A-Za-z0-9_./+%@^*?-]*"
_LIST = regex(rf"\{{({_PART}(?:,{_PART})+)\}}")
_NUMBERS = regex(r"\{(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.-?([0-9]{1,9}))?\}")
_LETTERS = regex(r"\{(?:([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))\}")
IN_FRONT_OF_BRACES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+^*?-}")
"""Characters after which a brace has its usual meaning in bash."""


class Pieces:
    """The pieces of one word while it is read."""

    __slots__ = ("_braces", "_quoted", "_texts", "items", "open_bracket", "parameter_end", "start", "takes_braces")

    def __init__(self, start: int, *, takes_braces: bool = False) -> None:
        self.items: list[Piece] = []
        self.start = start
        self.open_bracket = False
        """Whether an unquoted `[` was read as a literal. If so, no unquoted `]` may follow in the same word."""
        self.parameter_end = -1
        """End of the last expansion without braces. Characters joined to it could belong to it."""
        self.takes_braces = takes_braces
        """Whether bash expands brace lists here."""
        self._braces: list[tuple[int, tuple[str, ...]]] = []
        self._texts: list[str] = []
        self._quoted = False

    def literal(self, text: str, *, quoted: bool) -> None:
        """Add characters. Adjacent characters with the same quoting become one piece."""
        if self._texts and self._quoted is not quoted:
            self._flush()
        self._quoted = quoted
        self._texts.append(text)

    def append(self, piece: Piece) -> None:
        """Add any other piece."""
        self._flush()
        self.items.append(piece)

    @property
    def has_braces(self) -> bool:
        """Whether a brace list was added."""
        return bool(self._braces)

    @property
    def count(self) -> int:
        """Number of words to which the brace lists expand this one."""
        return prod(len(texts) for _, texts in self._braces)

    def add_braces(self, texts: tuple[str, ...]) -> None:
        """Add a brace list: each resulting word has one of `texts` here."""
        self._flush()
        self._braces.append((len(self.items), texts))

    def finish(self) -> list[tuple[Piece, ...]]:
        """Return the pieces of each resulting word. With brace lists there are several."""
        self._flush()
        places = [place for place, _ in self._braces]
        return [self._with(places, chosen) for chosen in product(*(texts for _, texts in self._braces))]

    def _with(self, places: list[int], chosen: Sequence[str]) -> tuple[Piece, ...]:
        if not places:
            return tuple(self.items)
        new_pieces = Pieces(self.start)
        begin = 0
        for place, text in zip(places, chosen, strict=True):
            new_pieces._take(self.items[begin:place])
            new_pieces._take(_plain_pieces(text))
            begin = place
        new_pieces._take(self.items[begin:])
        new_pieces._flush()
        return tuple(new_pieces.items)

    def _take(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Literal):
                self.literal(piece.text, quoted=piece.quoted)
            else:
                self.append(piece)

    def _flush(self) -> None:
        if self._texts:
            self.items.append(Literal(text="".join(self._texts), quoted=self._quoted))
            self._texts.clear()


def _plain_pieces(text: str) -> list[Piece]:
    """Return the pieces of a text without quotes and expansions."""
    parts = (part for part in re.split("([*?])", text) if part)
    return [Glob(text=part) if part in "*?" else Literal(text=part, quoted=False) for part in parts]


def single_quoted(cursor: Cursor, pieces: Pieces) -> None:
    """Read '...': everything is literal."""
    end = cursor.text.find("'", cursor.position + 1)
    if end < 0:
        raise cursor.unclosed("'", cursor.position)
    pieces.literal(cursor.text[cursor.position + 1 : end], quoted=True)
    cursor.position = end + 1


def escaped(cursor: Cursor, pieces: Pieces) -> None:
    """Read a backslash and the character after it, or skip a continued line."""
    following = cursor.text[cursor.position + 1]
    if following == END:
        raise cursor.stop("a backslash at the end")
    if following == "\n":
        after = cursor.behind_continuations(cursor.position)
        if pieces.parameter_end == cursor.position or cursor.text[after] not in _AFTER_JOINED_WORD:
            raise cursor.stop("a line continued inside a word")
        cursor.position = after
        return
    pieces.literal(following, quoted=True)
    cursor.position += 2


def ansi_quoted(cursor: Cursor, pieces: Pieces) -> None:
    """Read $'...' with its escape sequences."""
    match = _ANSI_QUOTED.match(cursor.text, cursor.position)
    if match is None:
        raise cursor.stop("a quote that is not closed ($')")
    try:
        text = _ANSI_ESCAPE.sub(_ansi_character, match.group(1))
    except ValueError as error:
        raise cursor.stop(str(error)) from None
    pieces.literal(text, quoted=True)
    cursor.position = match.end()


def _ansi_character(match: re.Match[str]) -> str:
    """Return the character of an escape sequence in $'...'.

    Raises ValueError for a sequence that is odd, depends on the locale, or is a control character other than newline
    and tab.
    """
    letter, octal, byte, short, long, control, other = match.groups()
    if other is not None:
        if other in "xuUc\n":
            raise ValueError("an odd escape sequence in $'...'")
        return match.group()
    if letter is not None:
        char = _ANSI_LETTERS[letter]
    elif octal is not None:
        char = chr(int(octal, 8) & 0xFF)
    elif control is not None:
        char = chr(ord(control.upper()) ^ 0x40)
    else:
        char = chr(min(int(byte or short or long, 16), 0x80))
    if char >= "\x80":
        raise ValueError("a character in $'...' that depends on the locale")
    if not char.isprintable() and char not in "\n\t":
        raise ValueError("a control character in $'...'")
    return char


class BraceList:
    """One brace list in a word, with the offset of its end."""

    __slots__ = ("end", "texts")

    def __init__(self, texts: tuple[str, ...], end: int) -> None:
        self.texts = texts
        self.end = end


def brace_list_at(text: str, position: int, *, first: bool) -> BraceList | None:
    """Return the brace list at `position`, or `None` if it is not supported. `first`: the word begins there too."""
    if not first and text[position - 1] not in IN_FRONT_OF_BRACES:
        return None
    texts: tuple[str, ...] | None
    if match := _LIST.match(text, position):
        texts = tuple(match[1].split(","))
    elif match := _NUMBERS.match(text, position):
        texts = _numbers(match[1], match[2], int(match[3] or 1))
    elif match := _LETTERS.match(text, position):
        begin, end = (ord(letter) for letter in match.groups() if letter)
        texts = tuple(map(chr, _steps(begin, end, 1)))
    else:
        return None
    return None if texts is None or len(texts) > _MAX_TEXTS else BraceList(texts, match.end())


def _numbers(begin: str, end: str, step: int) -> tuple[str, ...] | None:
    steps = _steps(int(begin), int(end), step or 1)
    if len(steps) > _MAX_TEXTS:
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
