"""One JSON value in a text, read strictly: no key twice, no NaN, nothing beside it; it reads no file and knows no schema."""

from __future__ import annotations

import json
import math

from harness.actions import JsonValue
from harness.visible import visible_line


class NotJsonError(ValueError):
    """A text that is no single JSON value (RFC 8259); says why, in words that are safe to show."""


def read_one(text: str) -> JsonValue:
    """Return the value of `text`. Raises NotJsonError, also for numbers that nothing can hold, and for endless nesting."""
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_number)
    except NotJsonError:
        raise
    except json.JSONDecodeError as error:
        raise NotJsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError:  # sys.set_int_max_str_digits
        raise NotJsonError("a number has too many digits") from None
    return value


def is_deeper(value: JsonValue, most: int) -> bool:
    """Say whether objects and lists lie more than `most` deep in each other."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise NotJsonError(f"the key {visible_line(json.dumps(name), 100)} stands twice in an object")
        seen.add(name)
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJsonError("a number is too large")
    return value


def _no_number(word: str) -> float:
    raise NotJsonError(f"{word} is no JSON number")
