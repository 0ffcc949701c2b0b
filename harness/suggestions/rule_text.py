"""A suggested rule as policies write it: TOML in ASCII, whatever its words hold; pure, judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | bool | Sequence[str] | Sequence[str | Sequence[str]]"
"""What a key of a rule can be: of a list within a list, each is meant."""

_MOST_ID = 40
_KEY_WIDTH = 9


def rule_text(keys: Mapping[str, Value]) -> str:
    """Return one `[[rule]]`; of lists that are empty, nothing. Its texts must hold no lone surrogate."""
    lines = [f"{key:{_KEY_WIDTH}} = {_value(value)}" for key, value in keys.items() if value]
    return "".join(f"{line}\n" for line in ("[[rule]]", *lines))


def rule_id(words: str, taken: Iterable[str]) -> str:
    """Return a name for a rule about these words, that no other has."""
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in words.lower())
    name = "-".join(part for part in slug.split("-") if part)[:_MOST_ID].rstrip("-") or "rule"
    known, number, found = set(taken), 1, f"suggested-{name}"
    while found in known:
        number += 1
        found = f"suggested-{name}-{number}"
    return found


def is_text(word: str) -> bool:
    """Say whether a word can stand in a policy file: Unicode without lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in word)


def _value(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case _:
            return f"[{', '.join(map(_value, value))}]"


def _text(text: str) -> str:
    """Return a basic string of TOML 1.0, in printable ASCII."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
