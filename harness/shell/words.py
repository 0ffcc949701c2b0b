"""The words of a bash text: their quotes, expansions, patterns and brace lists.

In bash, the position in the grammar decides how words are split. So there is no separate tokenizer: the parser requests
each word. See POSIX.1-2024, Shell Command Language, 2.3 and 2.6; bash(1), EXPANSION.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Protocol

from harness.regex import regex
from harness.shell.arithmetic import UNREADABLE, is_readable
from harness.shell.cursor import END, MAX_WORDS, WORD_ENDS, Cursor
from harness.shell.syntax import (
    Arithmetic,
    Glob,
    Literal,
    Modified,
    Number,
    Parameter,
    Piece,
    ProcessFile,
    Script,
    Simple,
    Substitution,
    Tilde,
    Word,
)
from harness.shell.word_pieces import IN_FRONT_OF_BRACES, Pieces, ansi_quoted, brace_list_at, escaped, single_quoted

_METACHARACTERS = WORD_ENDS | frozenset("<>(")
_AFTER_TILDE = _METACHARACTERS | frozenset("/")
# Before one of these, a dollar in double quotes is literal.
_AFTER_QUOTED_DOLLAR = frozenset(" \t\n\"'/.,%^+=:;&|<>)]}~\\")

_ESCAPED_IN_DOUBLE_QUOTES = frozenset('$`"\\')
_IN_DOUBLE_QUOTES = regex(rf'[^"\\$`{END}]+')
_PLAIN = regex(rf"""[^ \t\n"'$&()*;<>?[\]\\`{{|}}~{END}]+""")
_BACKQUOTED = regex(rf"`((?:[^`\\{END}]|\\[^{END}])*+)`")
_CLASS = regex(r"\[[!^]?[A-Za-z0-9_.,-][A-Za-z0-9_.,!^-]*\]")
_PARAMETER = regex(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|([0-9@*!-])|\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*!-])\})")
_MODIFIED = regex(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(?:(:?[-+])([A-Za-z0-9_./,:=@%+^ -]*)|(%%?|##?)([A-Za-z0-9_./,:=@+^ *?-]*))\}"
)
_COUNT = regex(r"\$(?:[?#$]|\{(?:[?#$]|#[A-Za-z_][A-Za-z0-9_]*)\})")
_IN_ARITHMETIC = regex(r"[A-Za-z0-9_${} \t+*/%()-]*")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES_LEFT_ALONE = regex(r"\{\}|\{(?:-?[0-9]{1,9}|[a-z]{1,9})\}(?![{<>@])|\{[A-Za-z0-9_./:=+%^-]*(?=[ \t\n;&|)\0])")

_NOT_BESIDE_BRACES = (Substitution, Modified, Number, Arithmetic)

_STAR = Glob(text="*")
_QUESTION_MARK = Glob(text="?")


class Commands(Protocol):
    """Reads the commands inside a word. Implemented by the parser."""

    def in_parentheses(self) -> Script:
        """Read commands up to and including the closing parenthesis."""

    def in_backquotes(self, text: str) -> Script:
        """Read the commands in backquotes, given as a separate text."""


class WordReader:
    """Reads words from the position of the cursor."""

    def __init__(self, cursor: Cursor, commands: Commands) -> None:
        self.cursor = cursor
        self._commands = commands

    # -- words

    def word(self) -> Word:
        """Read the word that begins here. For places where bash does not expand brace lists: a brace list raises Stop."""
        (word,) = self.words(takes_braces=False)
        return word

    def words(self, *, takes_braces: bool = True) -> list[Word]:
        """Read the word that begins here. Return all words to which its brace lists expand."""
        cursor = self.cursor
        cursor.count_words(1)
        start = cursor.position
        match = _PLAIN.match(cursor.text, start)
        if match:
            end = match.end()
            if cursor.text[end] in WORD_ENDS:
                cursor.position = cursor.end = end
                return [Word(pieces=(Literal(text=match.group(), quoted=False),), start=start, end=end)]
        piece_lists = [self._process_file()] if self._at_process_file() else self._pieces(takes_braces=takes_braces)
        cursor.count_words(len(piece_lists) - 1)
        cursor.end = cursor.position
        return [Word(pieces=pieces, start=start, end=cursor.position) for pieces in piece_lists]

    def _at_process_file(self) -> bool:
        cursor = self.cursor
        return cursor.text[cursor.position] in "<>" and cursor.text[cursor.position + 1] == "("

    def _process_file(self) -> tuple[Piece, ...]:
        cursor = self.cursor
        if cursor.text[cursor.position + 2] == "(":
            raise cursor.stop("arithmetic, or a subshell that looks like it (()")
        body = self._substituted()
        if cursor.text[cursor.position] not in WORD_ENDS:
            raise cursor.stop("a process substitution inside a word")
        return (ProcessFile(body=body),)

    def _pieces(self, *, takes_braces: bool) -> list[tuple[Piece, ...]]:
        cursor = self.cursor
        text = cursor.text
        start = cursor.position
        pieces = Pieces(start, takes_braces=takes_braces)
        while (char := text[cursor.position]) not in _METACHARACTERS:
            match = _PLAIN.match(text, cursor.position)
            if match:
                pieces.literal(match.group(), quoted=False)
                cursor.position = match.end()
            elif char in self._special:
                self._special[char](self, pieces)
            else:
                raise cursor.unexpected()
        if char in "<>(" and cursor.position > start:
            self._check_operator_behind(start)
        if pieces.has_braces and any(isinstance(piece, _NOT_BESIDE_BRACES) for piece in pieces.items):
            raise cursor.stop("a brace expansion", start)
        done = pieces.finish()
        if not all(done):
            raise cursor.unexpected()
        return done

    def _check_operator_behind(self, start: int) -> None:
        """Raise Stop if `(`, `<` or `>` right after a word may belong to it."""
        cursor = self.cursor
        text = cursor.text
        raw = text[start : cursor.position]
        if text[cursor.position] == "(":
            if text[cursor.position - 1] in "?*+@!":
                raise cursor.stop("an extended pattern", cursor.position - 1)
            if text[cursor.position - 1] == "=":
                raise cursor.stop("an array")
            raise cursor.stop(
                "a function definition" if text.startswith("()", cursor.position) else "a ( inside a word"
            )
        if text[cursor.position + 1] == "(":
            raise cursor.stop("a process substitution inside a word")
        if raw.isdecimal() or "\\\n" in raw:
            raise cursor.stop("a redirection with an ambiguous number", start)

    # -- expansions

    def _unquoted_dollar(self, pieces: Pieces) -> None:
        cursor = self.cursor
        following = cursor.text[cursor.position + 1]
        if following == "'":
            ansi_quoted(cursor, pieces)
        elif following == '"':
            raise cursor.stop('a translated string ($")')
        else:
            self._dollar(pieces, quoted=False)

    def _dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read an expansion, or a literal dollar."""
        cursor = self.cursor
        match = _PARAMETER.match(cursor.text, cursor.position)
        if match:
            pieces.append(Parameter(name=match.group(match.lastindex or 0), quoted=quoted))
            cursor.position = match.end()
            if match.lastindex != 3:
                pieces.parameter_end = cursor.position
            return
        match = _COUNT.match(cursor.text, cursor.position)
        if match:
            pieces.append(Number(text=match.group()))
            cursor.position = pieces.parameter_end = match.end()
            if cursor.text[cursor.position] in "({[":
                raise cursor.stop("a dollar that may begin an expansion")  # after `"$${`, bash looks for `}`
        elif (match := _MODIFIED.match(cursor.text, cursor.position)) is not None:
            name, default, word, cut, pattern = match.groups(default="")
            pieces.append(Modified(name=name, operator=default or cut, operand=word or pattern, quoted=quoted))
            cursor.position = match.end()
        elif cursor.text.startswith("((", cursor.position + 1):
            self._arithmetic(pieces)
        elif cursor.text[cursor.position + 1] == "(":
            pieces.append(Substitution(body=self._substituted(), quoted=quoted))
        else:
            self._literal_dollar(pieces, quoted=quoted)

    def _literal_dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        cursor = self.cursor
        following = cursor.text[cursor.position + 1]
        if following == "{":
            raise cursor.stop("an expansion that is more than a name (${)")
        if following == "[":
            raise cursor.stop("arithmetic ($[)")
        if following == "\\" and cursor.text[cursor.position + 2] == "\n":
            raise cursor.stop("a line continued inside an expansion")
        if following not in (_AFTER_QUOTED_DOLLAR if quoted else " \t\n" + END):
            raise cursor.stop("a dollar that may begin an expansion")
        pieces.literal("$", quoted=quoted)
        cursor.position += 1

    def _arithmetic(self, pieces: Pieces) -> None:
        """Read `$((...))` if it cannot mean anything else."""
        cursor = self.cursor
        match = _IN_ARITHMETIC.match(cursor.text, cursor.position + 3)
        inside = match.group() if match else ""
        depth = 0
        for offset, char in enumerate(inside):
            depth += (char == "(") - (char == ")")
            if depth < 0:
                inside = inside[:offset]
                break
        end = cursor.position + 3 + len(inside)
        text = cursor.text[cursor.position : end + 2]
        if depth >= 0 or not text.endswith("))") or not is_readable(inside):
            raise cursor.stop(f"arithmetic that is {UNREADABLE}")
        pieces.append(Arithmetic(text=text, expression=inside))
        cursor.position = end + 2

    def _substituted(self) -> Script:
        """Read `$(...)`, `<(...)` or `>(...)`."""
        cursor = self.cursor
        cursor.no_pending_here_document()
        opening = cursor.position
        outside = cursor.here_documents
        cursor.here_documents = 0
        cursor.enter()
        cursor.substitutions += 1
        cursor.position += 2
        body = self._commands.in_parentheses()
        cursor.no_pending_here_document()
        # bash 5.2 prints the parsed commands and parses them again, which loses the `;` in `$(cat <<E | wc; id`.
        if cursor.here_documents and not _is_simple(body):
            raise cursor.stop("a here-document among other commands in a substitution", opening)
        cursor.here_documents = outside
        cursor.substitutions -= 1
        cursor.depth -= 1
        return body

    def _backquoted(self, pieces: Pieces, *, quoted: bool) -> None:
        """Read a substitution in backquotes, whose commands are parsed as a separate text."""
        cursor = self.cursor
        match = _BACKQUOTED.match(cursor.text, cursor.position)
        if match is None:
            raise cursor.stop("a quote that is not closed (`)")
        inside = match.group(1)
        if "\\\n" in inside or "\\`" in inside or (quoted and ("\\" in inside or '"' in inside)):
            raise cursor.stop("quoting inside backquotes")
        cursor.enter()
        body = self._commands.in_backquotes(re.sub(r"\\([$\\])", r"\1", inside))
        cursor.depth -= 1
        pieces.append(Substitution(body=body, quoted=quoted))
        cursor.position = match.end()

    def _double_quoted(self, pieces: Pieces) -> None:
        """Read "...", in which `$`, backquotes and some backslashes keep their special meaning."""
        cursor = self.cursor
        text = cursor.text
        opening = cursor.position
        cursor.position += 1
        while (char := text[cursor.position]) != '"':
            match = _IN_DOUBLE_QUOTES.match(text, cursor.position)
            if match:
                pieces.literal(match.group(), quoted=True)
                cursor.position = match.end()
            elif char == "$":
                self._dollar(pieces, quoted=True)
            elif char == "`":
                self._backquoted(pieces, quoted=True)
            elif char == "\\":
                self._escaped_in_double_quotes(pieces)
            else:
                raise cursor.unclosed('"', opening)
        if cursor.behind_continuations(opening + 1) == cursor.position:
            pieces.literal("", quoted=True)  # "" alone is a word
        cursor.position += 1

    def _escaped_in_double_quotes(self, pieces: Pieces) -> None:
        cursor = self.cursor
        following = cursor.text[cursor.position + 1]
        if following == "\n":
            if pieces.parameter_end == cursor.position:
                raise cursor.stop("a line continued inside an expansion")
            cursor.position += 2
        elif following in _ESCAPED_IN_DOUBLE_QUOTES:
            pieces.literal(following, quoted=True)
            cursor.position += 2
        else:
            pieces.literal("\\", quoted=True)
            cursor.position += 1

    def _unquoted_backquote(self, pieces: Pieces) -> None:
        self._backquoted(pieces, quoted=False)

    # -- patterns, braces, home folders

    def _wildcard(self, pieces: Pieces) -> None:
        cursor = self.cursor
        pieces.append(_STAR if cursor.text[cursor.position] == "*" else _QUESTION_MARK)
        cursor.position += 1

    def _opening_bracket(self, pieces: Pieces) -> None:
        cursor = self.cursor
        match = _CLASS.match(cursor.text, cursor.position)
        if match is None:
            pieces.open_bracket = True
            pieces.literal("[", quoted=False)
            cursor.position += 1
        elif pieces.open_bracket:
            raise cursor.stop("a pattern with an odd class ([)")
        else:
            pieces.append(Glob(text=match.group()))
            cursor.position = match.end()

    def _closing_bracket(self, pieces: Pieces) -> None:
        cursor = self.cursor
        if pieces.open_bracket:
            raise cursor.stop("a pattern with an odd class ([)")
        pieces.literal("]", quoted=False)
        cursor.position += 1

    def _brace(self, pieces: Pieces) -> None:
        cursor = self.cursor
        char = cursor.text[cursor.position]
        following = cursor.text[cursor.position + 1]
        alone = _BRACES_LEFT_ALONE.match(cursor.text, cursor.position)
        behind_text = cursor.position > pieces.start and cursor.text[cursor.position - 1] in IN_FRONT_OF_BRACES
        if alone is not None and (alone.group() == "{}" or (behind_text and pieces.parameter_end != cursor.position)):
            if pieces.has_braces:
                raise cursor.stop("a brace expansion")
            # Braces that bash does not expand: `{}` for find, `stash@{0}` for git, `/{/p` and `1{p}` for sed.
            char = alone.group()
            pieces.takes_braces = False
        elif cursor.position != pieces.start or following not in _METACHARACTERS:
            self._brace_list(pieces)
            return
        pieces.literal(char, quoted=False)
        cursor.position += len(char)

    def _brace_list(self, pieces: Pieces) -> None:
        """Read `{a,b}` or `{1..3}`. Raises Stop if bash does not expand it here, or right after an expansion."""
        cursor = self.cursor
        brace_list = brace_list_at(cursor.text, cursor.position, first=cursor.position == pieces.start)
        if brace_list is None or not pieces.takes_braces or pieces.parameter_end == cursor.position:
            raise cursor.stop("a brace expansion")
        pieces.add_braces(brace_list.texts)
        if pieces.count > MAX_WORDS:
            raise cursor.stop(f"more than {MAX_WORDS} words")
        cursor.position = brace_list.end

    def _tilde(self, pieces: Pieces) -> None:
        cursor = self.cursor
        if pieces.has_braces:
            raise cursor.stop("a home folder (~) behind a brace list")
        if cursor.position == pieces.start:
            if cursor.text[cursor.position + 1] not in _AFTER_TILDE:
                raise cursor.stop("another home folder (~)")
            pieces.append(Tilde())
        elif cursor.text[cursor.position - 1] in "=:":
            raise cursor.stop("a home folder (~) behind = or :")
        else:
            pieces.literal("~", quoted=False)
        cursor.position += 1

    def _single_quoted(self, pieces: Pieces) -> None:
        single_quoted(self.cursor, pieces)

    def _escaped(self, pieces: Pieces) -> None:
        escaped(self.cursor, pieces)

    _special: ClassVar[dict[str, Callable[[WordReader, Pieces], None]]] = {
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
    """Return whether a script is exactly one simple command."""
    item = script.items[0]
    alone = len(script.items) == 1 and not item.rest and not item.background and len(item.first.commands) == 1
    return alone and isinstance(item.first.commands[0], Simple)


def check_no_array_element(cursor: Cursor, word: Word) -> None:
    """Raise Stop for a word with `NAME[`. Where an assignment is possible, bash reads on to the `]`, past blanks.

    It also does so for some targets of redirections in front of a command.
    """
    first = word.pieces[0]
    if not isinstance(first, Literal) or first.quoted:
        return
    name, bracket, _ = first.text.partition("[")
    if not bracket and len(word.pieces) > 1 and isinstance(word.pieces[1], Glob):
        bracket = word.pieces[1].text[0]
    if bracket == "[" and _NAME.fullmatch(name):
        raise cursor.stop("an element of an array, or a pattern behind a name", word.start)
