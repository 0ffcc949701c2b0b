"""The words of a bash text: their quotes, expansions and patterns; it knows no commands.

Lexing bash depends on where in the grammar it happens, so there is no stream of tokens: the parser asks for what may come
next. Facts: POSIX.1-2024, Shell Command Language, 2.3 and 2.6; bash(1), EXPANSION.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from harness.shell.arithmetic import is_readable
from harness.shell.quoting import END, WORD_ENDS, Pieces, Quoting, Stop
from harness.shell.syntax import (
    Arithmetic,
    Literal,
    Modified,
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


MAX_WORDS = 2_000

_METACHARACTERS = WORD_ENDS | frozenset("<>(")
_AFTER_TILDE = _METACHARACTERS | frozenset("/")
# A dollar in double quotes in front of one of these is a dollar.
_AFTER_QUOTED_DOLLAR = frozenset(" \t\n\"'/.,%^+=:;&|<>)]}~\\")

_PLAIN = re.compile(rf"""[^ \t\n"'$&()*;<>?[\]\\`{{|}}~{END}]+""")
_BACKQUOTED = re.compile(rf"`((?:[^`\\{END}]|\\[^{END}])*+)`")
_CLASS = re.compile(r"\[[!^]?[A-Za-z0-9_.,-][A-Za-z0-9_.,!^-]*\]")
_PARAMETER = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|([0-9@*!-])|\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*!-])\})")
_MODIFIED = re.compile(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(?:(:?[-+])([A-Za-z0-9_./,:=@%+^ -]*)|(%%?|##?)([A-Za-z0-9_./,:=@+^ *?-]*))\}"
)
_COUNT = re.compile(r"\$(?:[?#$]|\{(?:[?#$]|#[A-Za-z_][A-Za-z0-9_]*)\})")
_IN_ARITHMETIC = re.compile(r"[A-Za-z0-9_${} \t+*/%()-]*")
_BRACES_LEFT_ALONE = re.compile(r"\{\}|\{(?:-?[0-9]{1,9}|[a-z]{1,9})\}(?![{<>@])")

_NOT_BESIDE_BRACES = (Substitution, Modified, Number, Arithmetic)

_STAR = Pattern(text="*")
_QUESTION_MARK = Pattern(text="?")


class Lexer(Quoting):
    """Reads words from where the cursor stands."""

    def __init__(self, text: str, depth: int = 0, words: int = 0) -> None:
        super().__init__(text, depth)
        self.words = words

    def whole(self) -> Script:
        """Read the text to its end."""
        raise NotImplementedError

    def enclosed(self) -> Script:
        """Read commands to the closing parenthesis, and past it."""
        raise NotImplementedError

    # -- words

    def word(self) -> Word:
        """Read the word that begins here; there must be one. Brace lists are not read: bash leaves them in some places."""
        (word,) = self._words(takes_braces=False)
        return word

    def braced_words(self) -> list[Word]:
        """Read the word that begins here, and return all that its brace lists make of it."""
        return self._words(takes_braces=True)

    def _words(self, *, takes_braces: bool) -> list[Word]:
        self._count(1)
        start = self.position
        match = _PLAIN.match(self.text, start)
        if match:
            end = match.end()
            if self.text[end] in WORD_ENDS:
                self.position = self.end = end
                return [Word(pieces=(Literal(text=match.group(), quoted=False),), start=start, end=end)]
        found = [self._process_file()] if self._at_process_file() else self._pieces(takes_braces=takes_braces)
        self._count(len(found) - 1)
        self.end = self.position
        return [Word(pieces=pieces, start=start, end=self.position) for pieces in found]

    def _count(self, words: int) -> None:
        self.words += words
        if self.words > MAX_WORDS:
            raise self.stop(f"more than {MAX_WORDS} words")

    def _at_process_file(self) -> bool:
        return self.text[self.position] in "<>" and self.text[self.position + 1] == "("

    def _process_file(self) -> tuple[Piece, ...]:
        if self.text[self.position + 2] == "(":
            raise self.stop("arithmetic, or a subshell that looks like it (()")
        body = self._substituted()
        if self.text[self.position] not in WORD_ENDS:
            raise self.stop("a process substitution inside a word")
        return (ProcessFile(body=body),)

    def _pieces(self, *, takes_braces: bool) -> list[tuple[Piece, ...]]:
        text = self.text
        start = self.position
        pieces = Pieces(start, takes_braces=takes_braces)
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
        if pieces.has_braces and any(isinstance(piece, _NOT_BESIDE_BRACES) for piece in pieces.items):
            raise self.stop("a brace expansion", start)
        done = pieces.finish()
        if not all(done):
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

    # -- expansions

    def _unquoted_dollar(self, pieces: Pieces) -> None:
        following = self.text[self.position + 1]
        if following == "'":
            self.ansi_quoted(pieces)
        elif following == '"':
            raise self.stop('a translated string ($")')
        else:
            self.dollar(pieces, quoted=False)

    def dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read the expansion that a dollar begins, or the dollar itself."""
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
        elif (match := _MODIFIED.match(self.text, self.position)) is not None:
            name, default, word, cut, pattern = match.groups(default="")
            pieces.append(Modified(name=name, operator=default or cut, operand=word or pattern, quoted=quoted))
            self.position = match.end()
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
        """Read `$((...))` where nothing else can be meant."""
        match = _IN_ARITHMETIC.match(self.text, self.position + 3)
        inside = match.group() if match else ""
        depth = 0
        for offset, char in enumerate(inside):
            depth += (char == "(") - (char == ")")
            if depth < 0:
                inside = inside[:offset]
                break
        end = self.position + 3 + len(inside)
        text = self.text[self.position : end + 2]
        if depth >= 0 or not text.endswith("))") or not is_readable(inside):
            raise self.stop("arithmetic that is more than names, numbers and + - * / % ** ( )")
        pieces.append(Arithmetic(text=text, expression=inside))
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

    def backquoted(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read a substitution in backquotes as a text of its own."""
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
        self.backquoted(pieces, quoted=False)

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
            if pieces.has_braces:
                raise self.stop("a brace expansion")
            char = alone.group()  # bash leaves them alone: `{}` for find, `stash@{0}` and `main@{u}` for git
            pieces.takes_braces = False
        elif self.position != pieces.start or following not in _METACHARACTERS:
            self._brace_list(pieces)
            return
        pieces.literal(char, quoted=False)
        self.position += len(char)

    def _brace_list(self, pieces: Pieces) -> None:
        """Read `{a,b}` or `{1..3}` where bash takes it apart; what would join an expansion before it is not read."""
        found = braces_at(self.text, self.position, first=self.position == pieces.start)
        if found is None or not pieces.takes_braces or pieces.parameter_end == self.position:
            raise self.stop("a brace expansion")
        pieces.add_braces(found.texts)
        if pieces.count > MAX_WORDS:
            raise self.stop(f"more than {MAX_WORDS} words")
        self.position = found.end

    def _tilde(self, pieces: Pieces) -> None:
        if pieces.has_braces:
            raise self.stop("a home folder (~) behind a brace list")
        if self.position == pieces.start:
            if self.text[self.position + 1] not in _AFTER_TILDE:
                raise self.stop("another home folder (~)")
            pieces.append(Tilde())
        elif self.text[self.position - 1] in "=:":
            raise self.stop("a home folder (~) behind = or :")
        else:
            pieces.literal("~", quoted=False)
        self.position += 1

    _special: ClassVar[dict[str, Callable[[Lexer, Pieces], None]]] = {
        "'": Quoting.single_quoted,
        '"': Quoting.double_quoted,
        "\\": Quoting.escaped,
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
