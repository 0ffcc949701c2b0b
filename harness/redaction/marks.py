"""The mark that replaces a secret: its form, and how to find marks in a text or a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from harness.actions import JsonValue
from harness.record import Record
from harness.regex import regex

OPENING = "[redacted:"
MARK = regex(r"\[redacted:([a-z0-9_-]{1,40}):[0-9a-f]{8}\]")


class Span(Record):
    """A secret in a text."""

    start: int
    end: int
    rule: str
    plain: str
    """The secret without its encoding; the mark is computed from it."""


def masked_value(value: JsonValue, redact: Callable[[str], str]) -> JsonValue:
    """Return a JSON value with `redact` applied to all of its texts and names."""
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {redact(name): masked_value(inner, redact) for name, inner in value.items()}
        case list() | tuple():
            return [masked_value(inner, redact) for inner in value]
        case _:
            return value


def is_redacted(text: str) -> bool:
    """Return whether `text` contains a mark, `[redacted:<rule>:<8 hex>]`, even one copied from another text."""
    return OPENING in text and MARK.search(text) is not None


def marks_in(text: str) -> Iterator[str]:
    """Yield the marks in `text`."""
    return (match[0] for match in MARK.finditer(text)) if OPENING in text else iter(())


def marks_of(record: Mapping[str, JsonValue]) -> frozenset[str]:
    """Return the marks in a log record that redaction made when the record was written, as far as the record shows.

    These are the marks of the rules in its field `masked`. A mark that was already in the text is only returned if its
    rule also masked a secret in the same record.
    """
    masked = record.get("masked")
    if not isinstance(masked, dict) or not masked:
        return frozenset()
    texts = (text for name, value in record.items() if name != "masked" for text in _texts_in(value))
    return frozenset(mark for text in texts for mark in marks_in(text) if mark.split(":")[1] in masked)


def _texts_in(value: JsonValue) -> Iterator[str]:
    """Yield every text in `value`, at any depth and in any order, without the names of fields."""
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
