"""The quotes inside a word: '...', "...", $'...' and the backslash; what expands between double quotes is left to others.

Facts: POSIX.1-2024, Shell Command Language, 2.2; bash(1), QUOTING.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from harness.shell.syntax import Literal, Pattern, Piece, Word

MAX_DEPTH = 20

END = "\0"
"""What stands behind the last character of a text; a text that holds it is never read."""

WORD_ENDS = frozenset(" \t\n;&|)" + END)
_OPERATOR_CHARACTERS = frozenset("&|;<>()")
ALPHANUMERIC = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
# bash joins a continued line before it looks at anything. Joining in place, as it is done here and within words, gives the
# same where the character behind the join can be no part of what began before it, here of an operator.
_AFTER_JOINED_OPERATOR = ALPHANUMERIC | frozenset(" \t'\"$/._~")

_DELIMITER = re.compile(rf"""([A-Za-z0-9_.-]+)|'([^'\n{END}]+)'|"([^"$`\\\n{END}]+)"|\\([A-Za-z0-9_.-]+)""")


class Stop(Exception):
    """Reading cannot go on; `position` is an offset into the text."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Cursor:
    """A place in one text. Its methods raise Stop where the text leaves the subset."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text + END
        self.position = 0
        self.end = 0
        """Where the last token ended."""
        self.depth = depth
        self._substitutions = 0
        self._here_documents = 0  # of the innermost substitution
        # INVARIANT: a here-document is begun and not yet passed exactly while _line_end >= 0. Its body stands behind the
        # line break at _line_end and ends at _body_end; if the next line break token is another one, bash reads another body.
        self._line_end = -1
        self._body_end = 0

    def stop(self, reason: str, position: int | None = None) -> Stop:
        """Return the exception for something at `position`, by default here."""
        return Stop(reason, self.position if position is None else position)

    def unexpected(self) -> Stop:
        """Return the exception for the character here."""
        char = self.text[self.position]
        names = {END: "the end of the text", "\n": "a line break"}
        return self.stop(f"{names.get(char, char)} where it is not expected")

    @property
    def inside_substitution(self) -> bool:
        """Whether `$(`, `<(` or `>(` is open here."""
        return self._substitutions > 0

    def enter(self) -> None:
        """Go one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.stop(f"more than {MAX_DEPTH} levels of nesting")

    # -- between words

    def skip(self) -> str:
        """Move past blanks, continued lines and a comment; return the character there."""
        text = self.text
        position = self.position
        while True:
            char = text[position]
            if char in " \t":
                position += 1
            elif char == "\\" and text[position + 1] == "\n":
                position = self._joined_between_words(position)
            else:
                break
        if char == "#":
            position = text.find("\n", position)
            if position < 0:
                position = len(text) - 1
            char = text[position]
        self.position = position
        return char

    def gap(self) -> str:
        """Move past line breaks too; return the character there."""
        while (char := self.skip()) == "\n":
            self.newline()
        return char

    def newline(self) -> None:
        """Move past the line break here, and past the bodies of here-documents behind it."""
        if self._line_end < 0:
            self.position += 1
            return
        self.no_pending_here_document(except_at=self.position)
        self.position = self._body_end
        self._line_end = -1

    def no_pending_here_document(self, except_at: int = -1) -> None:
        """Stop if a here-document was begun whose body would have to be elsewhere than directly behind its line."""
        if self._line_end >= 0 and self._line_end != except_at:
            raise self.stop("a here-document that does not begin right behind its line")

    def _joined_between_words(self, position: int) -> int:
        after = self.behind_continuations(position)
        if (
            position
            and self.text[position - 1] in _OPERATOR_CHARACTERS
            and self.text[after] not in _AFTER_JOINED_OPERATOR
        ):
            raise self.stop("a line continued inside an operator", position)
        return after

    def behind_continuations(self, position: int) -> int:
        """Return where the text goes on behind the continued lines at `position`."""
        while self.text.startswith("\\\n", position):
            position += 2
        return position

    # -- here-documents

    def here_document(self, *, strip: bool) -> Word:
        """Read the delimiter here and the body behind this line; return the body. `strip`: without leading tabs."""
        self.skip()
        match = _DELIMITER.match(self.text, self.position)
        if match is None or not self._ends_delimiter(match.group(), match.end()):
            raise self.stop("a here-document with an odd delimiter")
        if self._line_end < 0:
            self._line_end = self.text.find("\n", self.position)
            self._body_end = self._line_end + 1
        start = self._body_end
        if self._line_end < 0:
            raise self.stop("a here-document without a body")
        delimiter = match.group(match.lastindex or 0)
        body, end = self._lines_before(delimiter, strip=strip)
        if match.lastindex == 1:
            if "$" in body or "`" in body or "\\\n" in body:
                raise self.stop("an expansion inside a here-document")
            body = body.replace("\\\\", "\\")
        self._here_documents += 1
        self.position = self.end = match.end()
        return Word(pieces=(Literal(text=body, quoted=True),), start=start, end=end)

    def _ends_delimiter(self, delimiter: str, end: int) -> bool:
        """Say whether the word ends here, and is no number of a redirection behind it."""
        if self.text[end] in "<>":
            return self.text[end + 1] != "(" and not delimiter.isdecimal()
        return self.text[end] in WORD_ENDS

    def _lines_before(self, delimiter: str, *, strip: bool) -> tuple[str, int]:
        """Return the lines up to the one that is the delimiter, and where that begins; put _body_end behind it."""
        lines: list[str] = []
        while True:
            start = self._body_end
            end = self.text.find("\n", start)
            at_end = end < 0
            line = self.text[start:end]  # at the end this cuts END off
            if strip:
                line = line.lstrip("\t")
            self._body_end = len(self.text) - 1 if at_end else end + 1
            if line == delimiter:
                return "".join(lines), start
            # Inside a substitution bash 5.2 also takes `EOF)` for the end of the body.
            if at_end or (self._substitutions and line.startswith(delimiter)):
                raise self.stop("a here-document that is not ended by a line of its own")
            lines.append(line + "\n")


# What may stand behind a continued line inside a word (cursor.py): no part of an expansion or of a pattern before it.
_AFTER_JOINED_WORD = ALPHANUMERIC | frozenset(" \t\n_./,:=@%+^-'\"$" + END)
_ESCAPED_IN_DOUBLE_QUOTES = frozenset('$`"\\')

_IN_DOUBLE_QUOTES = re.compile(rf'[^"\\$`{END}]+')
_ANSI_QUOTED = re.compile(rf"\$'((?:[^'\\{END}]|\\[^{END}])*+)'")
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c([A-Za-z])|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


class Pieces:
    """The pieces of one word while it is read."""

    __slots__ = ("_braces", "_quoted", "_texts", "items", "open_bracket", "parameter_end", "start", "takes_braces")

    def __init__(self, start: int, *, takes_braces: bool = False) -> None:
        self.items: list[Piece] = []
        self.start = start
        self.open_bracket = False
        """Whether an unquoted `[` was taken as a literal: no unquoted `]` may follow in the same word."""
        self.parameter_end = -1
        """Where the last expansion without braces ended: what is joined to it could be part of it."""
        self.takes_braces = takes_braces
        """Whether bash takes brace lists apart here."""
        self._braces: list[tuple[int, tuple[str, ...]]] = []
        self._texts: list[str] = []
        self._quoted = False

    def literal(self, text: str, *, quoted: bool) -> None:
        """Add characters; neighbours of the same kind become one piece."""
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
        """How many words the brace lists make of this one."""
        return prod(len(texts) for _, texts in self._braces)

    def add_braces(self, texts: tuple[str, ...]) -> None:
        """Add a brace list: one of the texts stands here, in each word another one."""
        self._flush()
        self._braces.append((len(self.items), texts))

    def finish(self) -> list[tuple[Piece, ...]]:
        """Return the pieces of each word; there are several where a brace list was added."""
        self._flush()
        places = [place for place, _ in self._braces]
        return [self._with(places, chosen) for chosen in product(*(texts for _, texts in self._braces))]

    def _with(self, places: list[int], chosen: Sequence[str]) -> tuple[Piece, ...]:
        if not places:
            return tuple(self.items)
        made = Pieces(self.start)
        begin = 0
        for place, text in zip(places, chosen, strict=True):
            made._take(self.items[begin:place])
            made._take(_plain_pieces(text))
            begin = place
        made._take(self.items[begin:])
        made._flush()
        return tuple(made.items)

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
    """Return what a text without quotes and expansions is made of."""
    parts = (part for part in re.split("([*?])", text) if part)
    return [Pattern(text=part) if part in "*?" else Literal(text=part, quoted=False) for part in parts]


class Quoting(Cursor):
    """Reads quotes, each from its first character on, and adds what they hold to the pieces of a word."""

    def dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read the expansion that a dollar begins."""
        raise NotImplementedError

    def backquoted(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read a substitution in backquotes."""
        raise NotImplementedError

    def single_quoted(self, pieces: Pieces) -> None:
        """Read '...': everything is literal."""
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.stop("a quote that is not closed (')")
        pieces.literal(self.text[self.position + 1 : end], quoted=True)
        self.position = end + 1

    def double_quoted(self, pieces: Pieces) -> None:
        """Read "...", in which `$`, backquotes and some backslashes mean something."""
        text = self.text
        opening = self.position
        self.position += 1
        while (char := text[self.position]) != '"':
            match = _IN_DOUBLE_QUOTES.match(text, self.position)
            if match:
                pieces.literal(match.group(), quoted=True)
                self.position = match.end()
            elif char == "$":
                self.dollar(pieces, quoted=True)
            elif char == "`":
                self.backquoted(pieces, quoted=True)
            elif char == "\\":
                self._escaped_in_double_quotes(pieces)
            else:
                raise self.stop('a quote that is not closed (")', opening)
        if self.behind_continuations(opening + 1) == self.position:
            pieces.literal("", quoted=True)  # "" alone is a word
        self.position += 1

    def _escaped_in_double_quotes(self, pieces: Pieces) -> None:
        following = self.text[self.position + 1]
        if following == "\n":
            if pieces.parameter_end == self.position:
                raise self.stop("a line continued inside an expansion")
            self.position += 2
        elif following in _ESCAPED_IN_DOUBLE_QUOTES:
            pieces.literal(following, quoted=True)
            self.position += 2
        else:
            pieces.literal("\\", quoted=True)
            self.position += 1

    def escaped(self, pieces: Pieces) -> None:
        """Read a backslash and the character behind it; none where a line is continued."""
        following = self.text[self.position + 1]
        if following == END:
            raise self.stop("a backslash at the end")
        if following == "\n":
            after = self.behind_continuations(self.position)
            if pieces.parameter_end == self.position or self.text[after] not in _AFTER_JOINED_WORD:
                raise self.stop("a line continued inside a word")
            self.position = after
            return
        pieces.literal(following, quoted=True)
        self.position += 2

    def ansi_quoted(self, pieces: Pieces) -> None:
        """Read $'...' with its escape sequences."""
        match = _ANSI_QUOTED.match(self.text, self.position)
        if match is None:
            raise self.stop("a quote that is not closed ($')")
        try:
            text = _ANSI_ESCAPE.sub(_ansi_character, match.group(1))
        except ValueError as error:
            raise self.stop(str(error)) from None
        pieces.literal(text, quoted=True)
        self.position = match.end()


def _ansi_character(match: re.Match[str]) -> str:
    """Return what an escape sequence in $'...' stands for; ValueError for what depends on the locale or is a control."""
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
