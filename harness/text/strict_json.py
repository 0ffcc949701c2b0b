"""Strict parsing of one JSON value: no duplicate keys, no NaN, no other text around it."""

from __future__ import annotations

import json
import math

from harness.actions import JsonValue
from harness.text.visible import visible_line


class NotJsonError(ValueError):
    """Raised for a text that is not a single JSON value (RFC 8259). The message is safe to show."""


def read_one(text: str) -> JsonValue:
    """Return the value of `text`. Raises NotJsonError, also for numbers that are too large and for too deep nesting."""
    try:
        return _value(text)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None


def read_line(line: bytes) -> JsonValue:
    """Return the value of a line of JSON Lines, in UTF-8. Raises NotJsonError, whose message does not name the line."""
    try:
        return _value(line.decode())
    except UnicodeDecodeError as error:
        raise NotJsonError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(f"column {error.colno}: {error.msg}") from None


def is_deeper(value: JsonValue, max_depth: int) -> bool:
    """Return whether objects and lists are nested more than `max_depth` levels deep. Does not recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(max_depth):
        if not level:
            return False
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object's fields, as the `object_pairs_hook` of json.loads. Raises NotJsonError for a duplicate key."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    keys: set[str] = set()
    for name, _ in pairs:
        if name in keys:
            raise NotJsonError(f"duplicate key {visible_line(json.dumps(name), 100)}")
        keys.add(name)
    return value


def no_number(word: str) -> float:
    """Raise NotJsonError for NaN, Infinity and -Infinity, which Python reads: `parse_constant` of json.loads."""
    raise NotJsonError(f"{word} is not a JSON number")


def _value(text: str) -> JsonValue:
    """Return the value of `text`. Raises JSONDecodeError for a syntax error, and NotJsonError for other problems."""
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=once, parse_float=_finite, parse_constant=no_number)
    except (NotJsonError, json.JSONDecodeError):
        raise
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    except ValueError:  # sys.set_int_max_str_digits
        raise NotJsonError("a number has too many digits") from None
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJsonError("a number is too large")
    return value
