"""JSON as servers send it, in which a key that stands twice is not passed by in silence; pure."""

from __future__ import annotations

import json

from harness.actions import JsonValue


class Repeated(dict[str, JsonValue]):
    """An object in which a key stands twice: in it the last value counts, but its text, written anew, repeats the key.

    So arguments that came as an object are refused by whoever reads their text strictly.
    """

    def __init__(self, pairs: list[tuple[str, JsonValue]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self) -> list[tuple[str, JsonValue]]:  # type: ignore[override]
        """Return every pair that came: this is what json writes."""
        return self.pairs


class AmbiguousKey(Exception):
    """A key stands twice with different values, outside of a call's arguments."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def read_json(data: bytes) -> JsonValue:
    """Return the value of `data`, JSON in UTF-8.

    A key that stands twice is left to its reader within `arguments`, which are text or as good as that; elsewhere it may
    say the same twice.

    Raises ValueError, RecursionError, AmbiguousKey.
    """
    found: list[Repeated] = []

    def made(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        found.append(Repeated(pairs))
        return found[-1]

    value: JsonValue = json.loads(data.decode(), object_pairs_hook=made)
    if found and (key := _ambiguous(value)) is not None:
        raise AmbiguousKey(key)
    return value


def ends_early(data: bytes) -> bool:
    """Say whether `data`, which is no JSON, may be the beginning of some: nothing but its end is wrong with it."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if error.msg.startswith("Invalid \\uXXXX"):
            return len(rest) < len("uXXXX") and '"' not in rest
        return (
            not rest
            or error.msg.startswith("Unterminated string")
            or any(word.startswith(rest) for word in ("true", "false", "null", "-", "e", "E", "e-", "e+", "."))
        )
    except (ValueError, RecursionError):
        pass
    return False


def _ambiguous(value: JsonValue) -> str | None:
    """Return a key that stands twice with different values; goes level by level, and not into arguments."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        if not isinstance(item, dict):
            continue
        pairs = item.pairs if isinstance(item, Repeated) else ()
        differing = [key for key, inner in pairs if item[key] != inner]
        if differing:
            return differing[0]
        waiting += [inner for key, inner in item.items() if key != "arguments"]
    return None
