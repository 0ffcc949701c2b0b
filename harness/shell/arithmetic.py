"""Arithmetic: the expression between `$((` and `))`, and its value. See bash(1), ARITHMETIC EVALUATION.

bash evaluates the value of a name as an expression too: `x='a[$(id)]'; echo $((x))` runs id. Names are accepted only if
their value is certainly an integer. Expressions that assign, compare, shift or index are not accepted, nor expressions
that may fail: after an error bash continues with the next line, and variables keep their old values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness.regex import regex

MOST = 2**63 - 1
"""Largest integer of bash. A larger value is only known to be an integer."""
_MAX_TOKENS = 100
UNREADABLE = "more than names, numbers and + - * / % ** ( )"
_MAY_FAIL = "a division or a power that may fail"

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = regex(
    rf"[ \t]*(?:(?P<number>0|[1-9][0-9]{{0,17}})(?![A-Za-z0-9_])|(?P<name>{_NAME})|\$(?P<plain>{_NAME})"
    rf"|\$\{{(?P<braced>{_NAME})\}}|(?P<operator>\*\*|[-+*/%()]))"
)
_INTEGER = regex("-?(?:0|[1-9][0-9]{0,17})")


def is_integer(value: str) -> bool:
    """Return whether a value is a plain decimal integer: without leading zeros, blanks or a plus sign."""
    return _INTEGER.fullmatch(value) is not None and value != "-0"


def is_readable(expression: str) -> bool:
    """Return whether `evaluated` accepts an expression if all names in it are integers."""
    try:
        evaluated(expression, lambda _name: 1)
    except ValueError:
        return False
    return True


def evaluated(expression: str, value_of: Callable[[str], int | None]) -> int | None:
    """Return the value of an expression, or `None` if it is an unknown integer. `value_of` returns the values of names.

    Raises ValueError for an expression that is not accepted.
    """
    tokens = _tokens(expression, value_of)
    evaluation = _Evaluation(tokens)
    value = evaluation.sum()
    if evaluation.position < len(tokens):
        raise ValueError("something behind an operand")
    return value


_Token: TypeAlias = str | int | None


def _tokens(expression: str, value_of: Callable[[str], int | None]) -> list[_Token]:
    matches: list[re.Match[str]] = []
    position = 0
    text = expression.rstrip(" \t")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(matches) == _MAX_TOKENS:
            raise ValueError(UNREADABLE)
        matches.append(match)
        position = match.end()
    tokens = [_token(match, value_of) for match in matches]
    for before, match, token in zip(matches, matches[1:], tokens[1:], strict=False):
        if match[0][0] not in " \t" and _could_count(before["operator"], match, token):
            raise ValueError("++ or --")
    return tokens


def _token(match: re.Match[str], value_of: Callable[[str], int | None]) -> _Token:
    if match["number"]:
        return int(match["number"])
    name = match["name"] or match["plain"] or match["braced"]
    return value_of(name) if name else match["operator"]


def _could_count(before: str | None, match: re.Match[str], token: _Token) -> bool:
    """Return whether `+` or `-` and the token right after it may form `++` or `--`.

    The token is the same sign, or an expansion that may begin with `-`.
    """
    if before not in ("+", "-"):
        return False
    expands = match["plain"] or match["braced"]
    return match["operator"] == before or bool(
        expands and before == "-" and not (isinstance(token, int) and token >= 0)
    )


class _Evaluation:
    """Recursive descent evaluation. `**` is right-associative, and a sign binds more tightly than `**`."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.tokens = tokens
        self.position = 0

    def sum(self) -> int | None:
        value = self._product()
        while (operator := self._take("+", "-")) is not None:
            other = self._product()
            value = _bounded(None if value is None or other is None else value + other * (1 if operator == "+" else -1))
        return value

    def _product(self) -> int | None:
        value = self._power()
        while (operator := self._take("*", "/", "%")) is not None:
            value = _multiplied(operator, value, self._power())
        return value

    def _power(self) -> int | None:
        value = self._signed()
        if self._take("**") is None:
            return value
        exponent = self._power()
        if exponent is None or exponent < 0:
            raise ValueError(_MAY_FAIL)
        return None if value is None or exponent > 63 else _bounded(value**exponent)

    def _signed(self) -> int | None:
        sign = self._take("+", "-")
        if sign is not None:
            value = self._signed()
            return -value if value is not None and sign == "-" else value
        if self._take("(") is not None:
            value = self.sum()
            if self._take(")") is None:
                raise ValueError("a parenthesis that is not closed")
            return value
        if self.position >= len(self.tokens) or isinstance(token := self.tokens[self.position], str):
            raise ValueError("an operand is missing")
        self.position += 1
        return token

    def _take(self, *operators: str) -> str | None:
        token = self.tokens[self.position] if self.position < len(self.tokens) else None
        if not isinstance(token, str) or token not in operators:
            return None
        self.position += 1
        return token


def _multiplied(operator: str, value: int | None, other: int | None) -> int | None:
    """Multiply or divide, rounding towards zero like C. Raises ValueError for a divisor that may be zero."""
    if operator == "*":
        return None if value is None or other is None else _bounded(value * other)
    if not other:
        raise ValueError(_MAY_FAIL)
    if value is None:
        return None
    quotient = abs(value) // abs(other) * (1 if (value < 0) == (other < 0) else -1)
    return quotient if operator == "/" else value - quotient * other


def _bounded(value: int | None) -> int | None:
    return value if value is not None and abs(value) <= MOST else None
