"""Folding of a long paste into one character of the line, drawn as `[paste 1: 214 lines]`.

The character is from a private-use range, and no other text in the line may contain one. So typed text that looks like
`[paste 1: ...]` is never confused with it, and every editing key treats the whole paste as one character.
"""

from __future__ import annotations

from harness.regex import regex
from harness.text.amounts import count_of
from harness.text.visible import visible

MOST_LINES = 10
MOST_CHARACTERS = 1_000
"""A text with more lines or characters is folded."""
_FIRST, _LAST = 0x10_0000, 0x10_FFFD
"""Private use plane 16: unassigned and never typed. Its size limits the number of folded texts."""
_LONGEST_BEGINNING = 200
"""Maximum number of characters shown from the beginning of a folded history entry."""
_FOREIGN = regex(f"[{chr(_FIRST)}-{chr(_LAST)}\ud800-\udfff]")
"""Characters that could be confused with a mark, and lone surrogates."""


class Folding:
    """The long texts of one line."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, str]] = {}
        self._numbered = 0

    def clear(self) -> None:
        """Forget every text: a new line begins."""
        self._texts.clear()
        self._numbered = 0

    def folded(self, text: str, noun: str = "paste") -> str:
        """Return `text` for the line: a short text as it is, a long one as a single character (its mark).

        Line ends become newlines. Lone surrogates (from invalid bytes), and characters that could be confused with a
        mark, become U+FFFD. All other text is kept exactly.
        """
        text = plain(text)
        if not is_long(text):
            return text
        self._numbered += 1
        return self._mark(text, f"{noun} {self._numbered}: {_size(text)}")

    def with_folded_end(self, text: str) -> str:
        """Return `text` for the line: a short text as it is, a long one as its first line and a mark for the rest."""
        text = plain(text)
        if not is_long(text):
            return text
        beginning = text[:_LONGEST_BEGINNING].partition("\n")[0]
        rest = text[len(beginning) :]
        return beginning + self._mark(rest, f"and {_size(rest.removeprefix(chr(10)))}")

    def _mark(self, text: str, label: str) -> str:
        code = _FIRST + len(self._texts)
        if code > _LAST:
            return text
        self._texts[chr(code)] = (text, f"[{label}{_hidden_too(text)}]")
        return chr(code)

    def unfolded(self, line: str) -> str:
        """Return the line with every mark replaced by its text."""
        if line.isascii():
            return line
        return "".join(self._texts[char][0] if char in self._texts else char for char in line)

    def label(self, char: str) -> str:
        """Return the label of a character of the line; empty if it is not a mark."""
        mark = self._texts.get(char)
        return mark[1] if mark else ""


def plain(text: str) -> str:
    """Return `text` with newlines as line ends, and with forbidden characters replaced (see `Folding.folded`)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else _FOREIGN.sub("\N{REPLACEMENT CHARACTER}", text)


def is_long(text: str) -> bool:
    """Return whether a text is so long that it is folded."""
    return len(text) > MOST_CHARACTERS or _lines(text) > MOST_LINES


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _size(text: str) -> str:
    lines = _lines(text)
    return f"{lines} lines" if lines > 1 else f"{len(text)} characters"


def _hidden_too(text: str) -> str:
    """Return a note with the number of invisible characters in a text. Empty if there are none."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return ""
    hidden = sum(text.count(char) for char in set(text) if _is_hidden(char))
    return f", {count_of(hidden, 'hidden character')}" if hidden else ""


def _is_hidden(char: str) -> bool:
    return visible(char) != char and visible(f"a{char}") != f"a{char}"  # a combining mark is visible after a base
