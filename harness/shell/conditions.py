"""What stands between `[[` and `]]`: tests that read at most the state of a file; whatever may run something is refused.

Facts: bash(1), CONDITIONAL EXPRESSIONS. Arithmetic tests evaluate their operands as code (`[[ 'a[$(id)]' -eq 1 ]]`), hence
only numbers are taken there, and variables, of which facets.py wants to know that they hold some.
"""

from __future__ import annotations

import re

from harness.shell.arithmetic import is_integer
from harness.shell.lexer import Lexer
from harness.shell.syntax import Arithmetic, Literal, Number, Parameter, Word

_UNARY_TESTS = frozenset("-n -z -e -f -d -r -w -x -s -L -h".split())
NUMBER_TESTS = frozenset("-eq -ne -lt -le -gt -ge".split())
_BINARY_TEST = re.compile(r"(?:==|=~|=|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge)(?=[ \t])")
_EXPRESSION = re.compile(r"(?:[A-Za-z0-9_.^*+?()|\[\]{},:/=@%-]|\\[^\sA-Za-z0-9\0]|\$(?=[ \t)|]))+(?=[ \t])")
_NEGATION = re.compile(r"!(?=[ \t])")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|<>)\0])")
_TEST_ENDS = frozenset(("]]",))
_NO_OPERANDS = frozenset("]] == = != =~ ! -o".split()) | NUMBER_TESTS


class Conditions(Lexer):
    """Reads conditional expressions into the words that they are made of, operators among them."""

    def condition(self) -> tuple[Word, ...]:
        """Read the condition behind `[[`, and past its `]]`."""
        words: list[Word] = []
        self.skip()
        self._terms(words)
        if _TEST_END.match(self.text, self.position) is None:
            raise self.unexpected()
        self.position += 2
        return tuple(words)

    def _terms(self, words: list[Word]) -> None:
        """Read terms joined by `&&` and `||`, to what ends them."""
        while True:
            self._term(words)
            self.skip()
            if not self.text.startswith(("&&", "||"), self.position):
                return
            words.append(self._operator(2))

    def _term(self, words: list[Word]) -> None:
        while _NEGATION.match(self.text, self.position):
            words.append(self._operator(1))
        if self.text[self.position] == "(":
            self.enter()
            words.append(self._operator(1))
            self._terms(words)
            if self.text[self.position] != ")":
                raise self.unexpected()
            words.append(self._operator(1))
            self.depth -= 1
            return
        first = self._operand(_NO_OPERANDS)
        words.append(first)
        if first.plain and (first.constant or "").startswith("-"):
            if first.constant not in _UNARY_TESTS:
                raise self.stop("a test that is not known to be harmless", first.start)
            self.skip()
            words.append(self._operand(_NO_OPERANDS | _UNARY_TESTS))
            return
        self.skip()
        match = _BINARY_TEST.match(self.text, self.position)
        if match is not None and match.group() == "=~":
            words.append(self._operator(2))
            words.append(self._expression())
        elif match is not None:
            words.append(self._operator(len(match.group())))
            second = self._operand(_TEST_ENDS)
            words.append(second)
            if match.group() in NUMBER_TESTS and not (_is_number(first) and _is_number(second)):
                raise self.stop("a test that evaluates arithmetic", first.start)

    def _expression(self) -> Word:
        """Read a regular expression: plain characters, in which parentheses pair, or a word that is read as any other.

        bash ends it at a blank outside of parentheses, and takes `|` and `(` for a part of it.
        """
        match = _EXPRESSION.match(self.text, self.position)
        if match is not None and match.group() != "]]" and _parentheses_pair(match.group()):
            return self._operator(len(match.group()))
        word = self._operand(_TEST_ENDS)
        if self.text[self.position] not in " \t":
            raise self.stop("a regular expression that is more than plain characters", word.start)
        return word

    def _operand(self, operators: frozenset[str]) -> Word:
        word = self.word()
        if word.plain and word.constant in operators:
            raise self.stop("an operator of [[ where a word is expected", word.start)
        return word

    def _operator(self, length: int) -> Word:
        """Read an operator as a word, and the blanks behind it."""
        start = self.position
        self.position = self.end = end = start + length
        pieces = (Literal(text=self.text[start:end], quoted=False),)
        self.skip()
        return Word(pieces=pieces, start=start, end=end)


def _parentheses_pair(expression: str) -> bool:
    depth = 0
    for char in re.sub(r"\\.", "", expression):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _is_number(word: Word) -> bool:
    """Say whether a word is a number, or may be one, for which a reader of the values must look."""
    constant = word.constant
    if constant is not None:
        return is_integer(constant)
    return len(word.pieces) == 1 and isinstance(word.pieces[0], Number | Arithmetic | Parameter)
