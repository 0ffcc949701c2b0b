"""The words of a bash text: quoting, expansions, comments, line continuations, here-documents; it knows no commands.

Lexing bash depends on where in the grammar it happens, so there is no stream of tokens: the parser asks for what may come
next. Facts: POSIX.1-2024, Shell Command Language, 2.2, 2.3, 2.6 and 2.7.4; bash(1), QUOTING, EXPANSION and REDIRECTION.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from harness.shell.syntax import (
    Literal,
    Number,
    Parameter,
    Pattern,
    Piece,
    ProcessFile,
    Script,
    Simple,
    Substitution,
    Tilde,
    Word,
)

MAX_WORDS = 2_000
MAX_DEPTH = 20

END = "\0"
"""What stands behind the last character of a text; a text that holds it is never read."""

_WORD_ENDS = frozenset(" \t\n;&|)" + END)
_METACHARACTERS = _WORD_ENDS | frozenset("<>(")
_AFTER_TILDE = _METACHARACTERS | frozenset("/")
_OPERATOR_CHARACTERS = frozenset("&|;<>()")
_ALPHANUMERIC = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
# bash joins a continued line before it looks at anything. Joining in place, as it is done here, gives the same where
# the character behind the join can be no part of an operator, of an expansion or of a pattern that began before it.
_AFTER_JOINED_OPERATOR = _ALPHANUMERIC | frozenset(" \t'\"$/._~")
_AFTER_JOINED_WORD = _ALPHANUMERIC | frozenset(" \t\n_./,:=@%+^-'\"$" + END)
# A dollar in double quotes in front of one of these is a dollar.
_AFTER_QUOTED_DOLLAR = frozenset(" \t\n\"'/.,%^+=:;&|<>)]}~\\")
_ESCAPED_IN_DOUBLE_QUOTES = frozenset('$`"\\')

_PLAIN = re.compile(rf"""[^ \t\n"'$&()*;<>?[\]\\`{{|}}~{END}]+""")
_IN_DOUBLE_QUOTES = re.compile(rf'[^"\\$`{END}]+')
_ANSI_QUOTED = re.compile(rf"\$'((?:[^'\\{END}]|\\[^{END}])*+)'")
_BACKQUOTED = re.compile(rf"`((?:[^`\\{END}]|\\[^{END}])*+)`")
_CLASS = re.compile(r"\[[!^]?[A-Za-z0-9_.,-][A-Za-z0-9_.,!^-]*\]")
_PARAMETER = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|([0-9@*-])|\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*-])\})")
_COUNT = re.compile(r"\$(?:[?#$!]|\{(?:[?#$!]|#[A-Za-z_][A-Za-z0-9_]*)\})")
_DIGITS_ONLY = re.compile(r"[0-9 \t+*/%()]*")
_BRACES_LEFT_ALONE = re.compile(r"\{\}|\{(?:-?[0-9]{1,9}|[a-z]{1,9})\}(?![{<>@])")
_DELIMITER = re.compile(rf"""([A-Za-z0-9_.-]+)|'([^'\n{END}]+)'|"([^"$`\\\n{END}]+)"|\\([A-Za-z0-9_.-]+)""")
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c([A-Za-z])|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))

_STAR = Pattern(text="*")
_QUESTION_MARK = Pattern(text="?")


class Stop(Exception):
    """Reading cannot go on; `position` is an offset into the text."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Pieces:
    """The pieces of one word while it is read."""

    __slots__ = ("_quoted", "_texts", "items", "open_bracket", "parameter_end", "start")

    def __init__(self, start: int) -> None:
        self.items: list[Piece] = []
        self.start = start
        self.open_bracket = False
        """Whether an unquoted `[` was taken as a literal: no unquoted `]` may follow in the same word."""
        self.parameter_end = -1
        """Where the last expansion without braces ended: what is joined to it could be part of it."""
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

    def finish(self) -> tuple[Piece, ...]:
        """Return the pieces."""
        self._flush()
        return tuple(self.items)

    def _flush(self) -> None:
        if self._texts:
            self.items.append(Literal(text="".join(self._texts), quoted=self._quoted))
            self._texts.clear()


class Lexer:
    """A cursor over one text. Its methods raise Stop where the text leaves the subset."""

    def __init__(self, text: str, depth: int = 0, words: int = 0) -> None:
        self.text = text + END
        self.position = 0
        self.end = 0
        """Where the last token ended."""
        self.depth = depth
        self.words = words
        self._substitutions = 0
        self._here_documents = 0  # of the innermost substitution
        # INVARIANT: a here-document is begun and not yet passed exactly while _line_end >= 0. Its body stands behind the
        # line break at _line_end and ends at _body_end; if the next line break token is another one, bash reads another body.
        self._line_end = -1
        self._body_end = 0

    def whole(self) -> Script:
        """Read the text to its end."""
        raise NotImplementedError

    def enclosed(self) -> Script:
        """Read commands to the closing parenthesis, and past it."""
        raise NotImplementedError

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
        after = self._behind_continuations(position)
        if (
            position
            and self.text[position - 1] in _OPERATOR_CHARACTERS
            and self.text[after] not in _AFTER_JOINED_OPERATOR
        ):
            raise self.stop("a line continued inside an operator", position)
        return after

    def _behind_continuations(self, position: int) -> int:
        while self.text.startswith("\\\n", position):
            position += 2
        return position

    # -- words

    def word(self) -> Word:
        """Read the word that begins here; there must be one."""
        self.words += 1
        if self.words > MAX_WORDS:
            raise self.stop(f"more than {MAX_WORDS} words")
        start = self.position
        match = _PLAIN.match(self.text, start)
        if match:
            end = match.end()
            if self.text[end] in _WORD_ENDS:
                self.position = self.end = end
                return Word(pieces=(Literal(text=match.group(), quoted=False),), start=start, end=end)
        pieces = self._process_file() if self._at_process_file() else self._pieces()
        self.end = self.position
        return Word(pieces=pieces, start=start, end=self.position)

    def _at_process_file(self) -> bool:
        return self.text[self.position] in "<>" and self.text[self.position + 1] == "("

    def _process_file(self) -> tuple[Piece, ...]:
        if self.text[self.position + 2] == "(":
            raise self.stop("arithmetic, or a subshell that looks like it (()")
        body = self._substituted()
        if self.text[self.position] not in _WORD_ENDS:
            raise self.stop("a process substitution inside a word")
        return (ProcessFile(body=body),)

    def _pieces(self) -> tuple[Piece, ...]:
        text = self.text
        start = self.position
        pieces = Pieces(start)
        while (char := text[self.position]) not in _METACHARACTERS:
            match = _PLAIN.match(text, self.position)
            if match:
                pieces.literal(match.group(), quoted=False)
                self.position = match.end()
            elif char in self._special:
                self._special[char](self, pieces)
            else:
                raise self.unexpected()
        if char in "<>(" and self.position > start:
            self._check_operator_behind(start)
        done = pieces.finish()
        if not done:
            raise self.unexpected()
        return done

    def _check_operator_behind(self, start: int) -> None:
        """Stop where `(`, `<` or `>` directly behind a word may belong to it."""
        text = self.text
        raw = text[start : self.position]
        if text[self.position] == "(":
            if text[self.position - 1] in "?*+@!":
                raise self.stop("an extended pattern", self.position - 1)
            if text[self.position - 1] == "=":
                raise self.stop("an array")
            raise self.stop("a function definition" if text.startswith("()", self.position) else "a ( inside a word")
        if text[self.position + 1] == "(":
            raise self.stop("a process substitution inside a word")
        if raw.isdecimal() or "\\\n" in raw:
            raise self.stop("a redirection of which the number cannot be told", start)

    # -- quoting

    def _single_quoted(self, pieces: Pieces) -> None:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.stop("a quote that is not closed (')")
        pieces.literal(self.text[self.position + 1 : end], quoted=True)
        self.position = end + 1

    def _double_quoted(self, pieces: Pieces) -> None:
        text = self.text
        opening = self.position
        self.position += 1
        while (char := text[self.position]) != '"':
            match = _IN_DOUBLE_QUOTES.match(text, self.position)
            if match:
                pieces.literal(match.group(), quoted=True)
                self.position = match.end()
            elif char == "$":
                self._dollar(pieces, quoted=True)
            elif char == "`":
                self._backquoted(pieces, quoted=True)
            elif char == "\\":
                self._escaped_in_double_quotes(pieces)
            else:
                raise self.stop('a quote that is not closed (")', opening)
        if self._behind_continuations(opening + 1) == self.position:
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

    def _escaped(self, pieces: Pieces) -> None:
        following = self.text[self.position + 1]
        if following == END:
            raise self.stop("a backslash at the end")
        if following == "\n":
            after = self._behind_continuations(self.position)
            if pieces.parameter_end == self.position or self.text[after] not in _AFTER_JOINED_WORD:
                raise self.stop("a line continued inside a word")
            self.position = after
            return
        pieces.literal(following, quoted=True)
        self.position += 2

    def _ansi_quoted(self, pieces: Pieces) -> None:
        match = _ANSI_QUOTED.match(self.text, self.position)
        if match is None:
            raise self.stop("a quote that is not closed ($')")
        try:
            text = _ANSI_ESCAPE.sub(_ansi_character, match.group(1))
        except ValueError as error:
            raise self.stop(str(error)) from None
        pieces.literal(text, quoted=True)
        self.position = match.end()

    # -- expansions

    def _unquoted_dollar(self, pieces: Pieces) -> None:
        following = self.text[self.position + 1]
        if following == "'":
            self._ansi_quoted(pieces)
        elif following == '"':
            raise self.stop('a translated string ($")')
        else:
            self._dollar(pieces, quoted=False)

    def _dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        match = _PARAMETER.match(self.text, self.position)
        if match:
            pieces.append(Parameter(name=match.group(match.lastindex or 0), quoted=quoted))
            self.position = match.end()
            if match.lastindex != 3:
                pieces.parameter_end = self.position
            return
        match = _COUNT.match(self.text, self.position)
        if match:
            pieces.append(Number(text=match.group()))
            self.position = pieces.parameter_end = match.end()
            if self.text[self.position] in "({[":
                raise self.stop("a dollar that may begin an expansion")  # bash looks for `}` behind `"$${`
        elif self.text.startswith("((", self.position + 1):
            self._arithmetic(pieces)
        elif self.text[self.position + 1] == "(":
            pieces.append(Substitution(body=self._substituted(), quoted=quoted))
        else:
            self._literal_dollar(pieces, quoted=quoted)

    def _literal_dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        following = self.text[self.position + 1]
        if following == "{":
            raise self.stop("an expansion that is more than a name (${)")
        if following == "[":
            raise self.stop("arithmetic ($[)")
        if following == "\\" and self.text[self.position + 2] == "\n":
            raise self.stop("a line continued inside an expansion")
        if following not in (_AFTER_QUOTED_DOLLAR if quoted else " \t\n" + END):
            raise self.stop("a dollar that may begin an expansion")
        pieces.literal("$", quoted=quoted)
        self.position += 1

    def _arithmetic(self, pieces: Pieces) -> None:
        """Read `$((...))` of digits and operators of which the result has no sign, and nothing else can be meant."""
        match = _DIGITS_ONLY.match(self.text, self.position + 3)
        inside = match.group() if match else ""
        depth = 0
        for offset, char in enumerate(inside):
            depth += (char == "(") - (char == ")")
            if depth < 0:
                inside = inside[:offset]
                break
        end = self.position + 3 + len(inside)
        digits = sum(char.isdecimal() for char in inside)
        # 15 digits: no product of them overflows into a negative number; `**` could.
        if depth >= 0 or not self.text.startswith("))", end) or "**" in inside or not 0 < digits <= 15:
            raise self.stop("arithmetic that is more than a few digits and + * / % ( )")
        pieces.append(Number(text=self.text[self.position : end + 2]))
        self.position = end + 2

    def _substituted(self) -> Script:
        """Read `$(...)`, `<(...)` or `>(...)`."""
        self.no_pending_here_document()
        opening = self.position
        outside = self._here_documents
        self._here_documents = 0
        self.enter()
        self._substitutions += 1
        self.position += 2
        body = self.enclosed()
        self.no_pending_here_document()
        # bash 5.2 prints what is inside and reads that again; it loses the `;` of `$(cat <<E | wc; id` and its like.
        if self._here_documents and not _is_simple(body):
            raise self.stop("a here-document among other commands in a substitution", opening)
        self._here_documents = outside
        self._substitutions -= 1
        self.depth -= 1
        return body

    def _backquoted(self, pieces: Pieces, *, quoted: bool) -> None:
        match = _BACKQUOTED.match(self.text, self.position)
        if match is None:
            raise self.stop("a quote that is not closed (`)")
        inside = match.group(1)
        if "\\\n" in inside or "\\`" in inside or (quoted and ("\\" in inside or '"' in inside)):
            raise self.stop("quoting inside backquotes")
        self.enter()
        inner = type(self)(re.sub(r"\\([$\\])", r"\1", inside), self.depth, self.words)
        try:
            body = inner.whole()
        except Stop as stopped:
            raise self.stop(stopped.reason) from None
        self.depth -= 1
        self.words = inner.words
        pieces.append(Substitution(body=body, quoted=quoted))
        self.position = match.end()

    def _unquoted_backquote(self, pieces: Pieces) -> None:
        self._backquoted(pieces, quoted=False)

    # -- patterns, braces, home folders

    def _wildcard(self, pieces: Pieces) -> None:
        pieces.append(_STAR if self.text[self.position] == "*" else _QUESTION_MARK)
        self.position += 1

    def _opening_bracket(self, pieces: Pieces) -> None:
        match = _CLASS.match(self.text, self.position)
        if match is None:
            pieces.open_bracket = True
            pieces.literal("[", quoted=False)
            self.position += 1
        elif pieces.open_bracket:
            raise self.stop("a pattern with an odd class ([)")
        else:
            pieces.append(Pattern(text=match.group()))
            self.position = match.end()

    def _closing_bracket(self, pieces: Pieces) -> None:
        if pieces.open_bracket:
            raise self.stop("a pattern with an odd class ([)")
        pieces.literal("]", quoted=False)
        self.position += 1

    def _brace(self, pieces: Pieces) -> None:
        char = self.text[self.position]
        following = self.text[self.position + 1]
        alone = _BRACES_LEFT_ALONE.match(self.text, self.position)
        if alone is not None and (alone.group() == "{}" or self.text[self.position - 1] == "@"):
            char = alone.group()  # bash leaves them alone: `{}` for find, `stash@{0}` and `main@{u}` for git
        elif self.position != pieces.start or following not in _METACHARACTERS:
            raise self.stop("a brace expansion")
        pieces.literal(char, quoted=False)
        self.position += len(char)

    def _tilde(self, pieces: Pieces) -> None:
        if self.position == pieces.start:
            if self.text[self.position + 1] not in _AFTER_TILDE:
                raise self.stop("another home folder (~)")
            pieces.append(Tilde())
        elif self.text[self.position - 1] in "=:":
            raise self.stop("a home folder (~) behind = or :")
        else:
            pieces.literal("~", quoted=False)
        self.position += 1

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
        return self.text[end] in _WORD_ENDS

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

    _special: ClassVar[dict[str, Callable[[Lexer, Pieces], None]]] = {
        "'": _single_quoted,
        '"': _double_quoted,
        "\\": _escaped,
        "$": _unquoted_dollar,
        "`": _unquoted_backquote,
        "*": _wildcard,
        "?": _wildcard,
        "[": _opening_bracket,
        "]": _closing_bracket,
        "{": _brace,
        "}": _brace,
        "~": _tilde,
    }


def _is_simple(script: Script) -> bool:
    """Say whether this is one simple command and nothing else."""
    item = script.items[0]
    alone = len(script.items) == 1 and not item.rest and not item.background and len(item.first.commands) == 1
    return alone and isinstance(item.first.commands[0], Simple)


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
