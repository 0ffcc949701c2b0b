"""Conditions: the text between `[[` and `]]`. Only tests that at most read the state of a file are accepted.

See bash(1), CONDITIONAL EXPRESSIONS. Arithmetic tests evaluate their operands as code (`[[ 'a[$(id)]' -eq 1 ]]`).
Their operands must be numbers, or variables; facets.py checks that those hold numbers.
"""

from __future__ import annotations

import re

from harness.regex import regex
from harness.shell.arithmetic import is_integer
from harness.shell.cursor import Cursor
from harness.shell.syntax import Arithmetic, Literal, Number, Parameter, Word
from harness.shell.words import WordReader

_UNARY_TESTS = frozenset("-n -z -e -f -d -r -w -x -s -L -h".split())
NUMBER_TESTS = frozenset("-eq -ne -lt -le -gt -ge".split())
_BINARY_TEST = regex(r"(?:==|=~|=|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge)(?=[ \t])")
_EXPRESSION = regex(r"(?:[A-Za-z0-9_.^*+?()|\[\]{},:/=@%-]|\\[^\sA-Za-z0-9\0]|\$(?=[ \t)|]))+(?=[ \t])")
_NEGATION = regex(r"!(?=[ \t])")
_TEST_END = regex(r"\]\](?=[ \t\n;&|<>)\0])")
_TEST_ENDS = frozenset(("]]",))
_NO_OPERANDS = frozenset("]] == = != =~ ! -o".split()) | NUMBER_TESTS


def read_condition(cursor: Cursor, words: WordReader) -> tuple[Word, ...]:
    """Read the condition after `[[`, up to and including `]]`."""
    return _ConditionReader(cursor, words).condition()


class _ConditionReader:
    """Reads conditional expressions into lists of words, operators included."""

    def __init__(self, cursor: Cursor, words: WordReader) -> None:
        self.cursor = cursor
        self._words = words

    def condition(self) -> tuple[Word, ...]:
        """Read the condition after `[[`, up to and including `]]`."""
        cursor = self.cursor
        words: list[Word] = []
        cursor.skip()
        self._terms(words)
        if _TEST_END.match(cursor.text, cursor.position) is None:
            raise cursor.unexpected()
        cursor.position += 2
        return tuple(words)

    def _terms(self, words: list[Word]) -> None:
        """Read terms joined by `&&` and `||`."""
        cursor = self.cursor
        while True:
            self._term(words)
            cursor.skip()
            if not cursor.text.startswith(("&&", "||"), cursor.position):
                return
            words.append(self._operator(2))

    def _term(self, words: list[Word]) -> None:
        cursor = self.cursor
        while _NEGATION.match(cursor.text, cursor.position):
            words.append(self._operator(1))
        if cursor.text[cursor.position] == "(":
            cursor.enter()
            words.append(self._operator(1))
            self._terms(words)
            if cursor.text[cursor.position] != ")":
                raise cursor.unexpected()
            words.append(self._operator(1))
            cursor.depth -= 1
            return
        first = self._operand(_NO_OPERANDS)
        words.append(first)
        if first.plain and (first.constant or "").startswith("-"):
            if first.constant not in _UNARY_TESTS:
                raise cursor.stop("a test that is not known to be harmless", first.start)
            cursor.skip()
            words.append(self._operand(_NO_OPERANDS | _UNARY_TESTS))
            return
        cursor.skip()
        match = _BINARY_TEST.match(cursor.text, cursor.position)
        if match is not None and match.group() == "=~":
            words.append(self._operator(2))
            words.append(self._expression())
        elif match is not None:
            words.append(self._operator(len(match.group())))
            second = self._operand(_TEST_ENDS)
            words.append(second)
            if match.group() in NUMBER_TESTS and not (_is_number(first) and _is_number(second)):
                raise cursor.stop("a test that evaluates arithmetic", first.start)

    def _expression(self) -> Word:
        """Read a regular expression: plain characters with paired parentheses, or an ordinary word.

        bash ends it at a blank outside of parentheses. `|` and `(` are parts of it.
        """
        cursor = self.cursor
        match = _EXPRESSION.match(cursor.text, cursor.position)
        if match is not None and match.group() != "]]" and _parentheses_pair(match.group()):
            return self._operator(len(match.group()))
        word = self._operand(_TEST_ENDS)
        if cursor.text[cursor.position] not in " \t":
            raise cursor.stop("a regular expression that is more than plain characters", word.start)
        return word

    def _operand(self, operators: frozenset[str]) -> Word:
        cursor = self.cursor
        word = self._words.word()
        if word.plain and word.constant in operators:
            raise cursor.stop("an operator of [[ where a word is expected", word.start)
        return word

    def _operator(self, length: int) -> Word:
        """Read an operator as a word, and skip the blanks after it."""
        cursor = self.cursor
        start = cursor.position
        cursor.position = cursor.end = end = start + length
        pieces = (Literal(text=cursor.text[start:end], quoted=False),)
        cursor.skip()
        return Word(pieces=pieces, start=start, end=end)


def _parentheses_pair(expression: str) -> bool:
    depth = 0
    for char in re.sub(r"\\.", "", expression):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _is_number(word: Word) -> bool:
    """Return whether a word is a number, or an expansion whose value must be checked later."""
    constant = word.constant
    if constant is not None:
        return is_integer(constant)
    return len(word.pieces) == 1 and isinstance(word.pieces[0], Number | Arithmetic | Parameter)
