"""Fields of JSON and TOML. A text describes the type of each field; a check returns the first problem of a value.

A type is one of these texts:

    text, whole, number     a string, a whole number, a number; with bounds, as in `text of at most 300 characters`,
                            `whole from 1 to 100` and `number above 0, at most 10`
    count, flag, digest     a whole number of at least 0; true or false; a SHA-256
    filled, line            a string that is not blank; one of a single line
    one of a b              one of these strings
    list of TYPE, object of TYPE, TYPE|null
    any name in `parts`     a table of fields, or a check of the caller's own
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from harness.errors import nearest

Check: TypeAlias = Callable[[Any], str]
"""Returns the problem of a value, or an empty string. Accepts any value that JSON or TOML can express."""
Parts: TypeAlias = Mapping[str, "Mapping[str, str] | Check"]

_SHOWN_CHARACTERS = 50
"""Number of characters shown of an unknown name or word."""
_BOUNDS = {"above": operator.gt, "from": operator.ge, "least": operator.ge, "to": operator.le, "most": operator.le}


class Fields:
    """A table of fields: each name with its type. A name that ends in `?` may be missing."""

    def __init__(self, table: Mapping[str, str], parts: Parts | None = None, *, is_open: bool = False) -> None:
        """Parse the table. If `is_open`, objects may have further fields with any name."""
        self._checks = {name.removesuffix("?"): check_of(word, parts) for name, word in table.items()}
        self._required = dict.fromkeys(name for name in table if not name.endswith("?"))
        self._is_open = is_open

    def problem(self, value: object) -> str:
        """Return a message about the first unknown, invalid or missing field of an object, or an empty string."""
        if not isinstance(value, dict):
            return f"must be an object ({', '.join(self._required)}), not {kind_of(value)}"
        for name, item in value.items():
            check = self._checks.get(name)
            if check is None:
                if not self._is_open:
                    cut = name[:_SHOWN_CHARACTERS]
                    return f"has the unknown field {cut!r}{nearest(cut, self._checks)}"
            elif problem := check(item):
                return f"{name}: {problem}"
        missing = next((name for name in self._required if name not in value), None)
        return "" if missing is None else f"lacks the field {missing}"

    def read(self, table: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields of a table, to make a record of: lists as tuples. Raises ValueError with the first problem."""
        values = dict(table)
        if problem := self.problem(values):
            raise ValueError(problem)
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def check_of(word: str, parts: Parts | None = None) -> Check:
    """Return the check for a type (see the module). Raises KeyError for an unknown type."""
    if not parts:
        return _check_of_type(word)
    if word in parts:
        part = parts[word]
        return part if callable(part) else Fields(part, parts).problem
    return _made_check(word, parts)


@cache
def _check_of_type(word: str) -> Check:
    return _made_check(word, None)


def _made_check(word: str, parts: Parts | None) -> Check:
    if word.endswith("|null"):
        inner = check_of(word.removesuffix("|null"), parts)
        return lambda value: "" if value is None else inner(value)
    head, _, rest = word.partition(" of ")
    if head == "one":
        return _one_of(rest.split())
    if head == "list":
        return _list_of(check_of(rest, parts), of_text=rest == "text")
    if head == "object":
        return _object_of(check_of(rest, parts))
    name, _, bounds = word.partition(" ")
    return _bounded(name, bounds) if bounds else _PLAIN[name]


def kind_of(value: object) -> str:
    """Return a readable name for the type of `value`."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a decimal number", str: "a string", list: "a list"}
    return "an object" if isinstance(value, dict) else kinds.get(type(value), "a date or time")


def _one_of(words: list[str]) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str):
            return f"must be a string, not {kind_of(value)}"
        cut = value[:_SHOWN_CHARACTERS]
        return "" if value in words else f"unknown {cut!r}{nearest(cut, words)}"

    return check


def _list_of(inner: Check, *, of_text: bool) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, list):
            return (
                'must be a list of strings, such as ["a", "b"]' if of_text else f"must be a list, not {kind_of(value)}"
            )
        return next(
            (f"number {place}: {problem}" for place, item in enumerate(value, 1) if (problem := inner(item))), ""
        )

    return check


def _object_of(inner: Check) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, dict):
            return f"must be an object, not {kind_of(value)}"
        return next(
            (f"{name[:_SHOWN_CHARACTERS]!r}: {problem}" for name, item in value.items() if (problem := inner(item))), ""
        )

    return check


def _bounded(name: str, bounds: str) -> Check:
    words = bounds.replace(",", "").split()
    limits = [(_BOUNDS[word], float(limit)) for word, limit in pairwise(words) if word in _BOUNDS]
    expected = f"{_SIZED[name][0]} {bounds}"

    def fits(value: Any) -> bool:
        size = len(value) if name == "text" else value
        return all(holds(size, limit) for holds, limit in limits)

    return _check(expected, *_SIZED[name][1:], fits=fits)


def _check(expected: str, *types: type, fits: Callable[[Any], object] | None = None, problem: str = "") -> Check:
    def check(value: object) -> str:
        if type(value) not in types:  # exact types, since `bool` is a subclass of `int`
            return f"must be {expected}, not {kind_of(value)}"
        return "" if fits is None or fits(value) else problem or f"must be {expected}"

    return check


_SIZED: Mapping[str, tuple[str, *tuple[type, ...]]] = {
    "text": ("a string", str),
    "whole": ("a whole number", int),
    "number": ("a number", int, float),
}
_PLAIN: Mapping[str, Check] = {
    **{name: _check(*wanted_and_types) for name, wanted_and_types in _SIZED.items()},
    "count": _check("a whole number of at least 0", int, fits=lambda value: value >= 0),
    "flag": _check("true or false", bool),
    "digest": _check(
        "a SHA-256 digest: 64 hexadecimal digits in lower case", str, fits=re.compile("[0-9a-f]{64}").fullmatch
    ),
    "line": _check(
        "a string", str,
        fits=lambda text: text.strip() and text.isprintable(),
        problem="must not be empty, and on one line",
    ),
    "json": lambda _: "",
    "filled": _check("a string", str, fits=str.strip, problem="must not be empty"),
}  # fmt: skip
