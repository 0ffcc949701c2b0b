"""Redactor: secrets in a text become marks; known values in all their forms first, then shapes; reads nothing."""

from __future__ import annotations

import hmac
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.record import Record, replace
from harness.redaction.forms import (
    MIN_SECRET_CHARACTERS,
    MIN_WRAPPED_CHARACTERS,
    forms_of,
    is_ordinary,
    unwrapped,
    wrapped_places,
)
from harness.redaction.shapes import Shape, Span, shape_spans, shapes_for

__all__ = ["KNOWN", "MIN_SECRET_CHARACTERS", "Redactor", "is_redacted"]

KNOWN = "known"
"""The rule of a value that was told to the redactor."""
ROUNDS = 8
"""How often a text is gone through at most: where a secret stood right before another one, only the second time shows it."""

_OPENING = "[redacted:"
_MARK = re.compile(r"\[redacted:[a-z0-9_-]{1,40}:[0-9a-f]{8}\]")


def is_redacted(text: str) -> bool:
    """Say whether `text` holds a mark, `[redacted:<rule>:<8 hex>]`; also one that somebody wrote who saw one."""
    return _OPENING in text and _MARK.search(text) is not None


class _Known(Record):
    """A form of a known value."""

    form: str
    plain: str
    data: bytes
    """The form in UTF-8."""

    def is_wrapped(self, data: bytes, flat: bytes) -> bool:
        """Say whether the form goes over the ends of lines in `data`, which is `flat` without them."""
        return (
            len(self.form) >= MIN_WRAPPED_CHARACTERS
            and self.data in flat
            and flat.count(self.data) > data.count(self.data)
        )


class _Search(Record):
    """What there may be to find in a text."""

    known: tuple[_Known, ...]
    wrapped: tuple[_Known, ...]
    """What may go over the ends of lines."""
    shapes: tuple[Shape, ...]


class Redactor:
    """Replaces what is secret by `[redacted:<rule>:<hmac8>]`; equal secrets have equal marks, under one key.

    hmac8 is the beginning of HMAC-SHA256 (RFC 2104) of the secret as it is, whatever encoding it was found in: who has
    the log but not the key can neither read a secret from it nor try guesses. Redacting twice changes nothing more.

    Not found: a value that is cut in two, or encoded in a way that harness/redaction/forms.py does not name; one of under
    MIN_SECRET_CHARACTERS, or so ordinary that masking it would blot out ordinary text (`is_ordinary`).
    """

    def __init__(self, secrets: Iterable[str] = (), *, key: bytes = b"", shapes: bool = True) -> None:
        """`key` is that of the installation, never logged; empty: a random one. Without `shapes` only `secrets` are found."""
        self._key = key or os.urandom(32)
        self._shapes = shapes
        self._issued: set[str] = set()
        forms: dict[str, str] = {}
        for secret in secrets:
            plain = secret.strip()
            if len(plain) >= MIN_SECRET_CHARACTERS and not is_ordinary(plain):
                for form in forms_of(plain):
                    forms.setdefault(form, plain)
        self._known = tuple(
            _Known(form=form, plain=plain, data=form.encode("utf-8", "surrogatepass"))
            for form, plain in sorted(forms.items(), key=lambda item: (-len(item[0]), item[0]))
        )

    def redact(self, text: str) -> str:
        """Return `text` with marks for what is secret in it."""
        return self.counted(text)[0]

    def counted(self, text: str) -> tuple[str, Mapping[str, int]]:
        """Return `text` with marks for what is secret in it, and how many places each rule replaced."""
        hits: dict[str, int] = {}
        for _ in range(ROUNDS):
            changed = self._once(text, self._search(text), hits)
            if changed is text:
                break
            text = changed
        return text, hits

    def fields(self, fields: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], dict[str, int]]:
        """Return `fields` with every text inside redacted, at any depth, and how many places each rule replaced.

        Names of fields and numbers stay: without them, the form of a record would break.
        """
        hits: dict[str, int] = {}
        search = self._search("\n".join(_texts(fields)))

        def redacted(text: str) -> str:
            changed = self._once(text, search, hits)
            if changed is text:
                return text
            changed, more = self.counted(changed)
            for rule, count in more.items():
                hits[rule] = hits.get(rule, 0) + count
            return changed

        result: dict[str, JsonValue] = {}
        _copy(fields, result, redacted)
        return result, hits

    def issued(self, text: str) -> str:
        """Return the first mark in `text` that this redactor made or noted, or nothing: a forged one is ordinary text."""
        return next((mark for mark in _marks_in(text) if mark in self._issued), "")

    def note(self, text: str) -> None:
        """Take the marks in `text` as issued: those of a conversation that is resumed."""
        self._issued.update(_marks_in(text))

    @property
    def forms(self) -> tuple[str, ...]:
        """Every text that stands for a known value, the longest first. They are secret."""
        return tuple(known.form for known in self._known)

    def spans(self, text: str) -> list[Span]:
        """Return the secrets in `text`, in order and apart from each other."""
        return self._spans(text, self._search(text))

    def mark(self, span: Span) -> str:
        """Return the mark that stands for a secret, which counts as issued from now on."""
        digest = hmac.digest(self._key, span.plain.encode("utf-8", "surrogatepass"), "sha256").hex()
        mark = f"{_OPENING}{span.rule}:{digest[:8]}]"
        self._issued.add(mark)
        return mark

    def _search(self, text: str) -> _Search:
        """Return what there may be to find in `text`, or in a part of it."""
        if not self._known:
            return _Search(known=(), wrapped=(), shapes=shapes_for(text) if self._shapes else ())
        data = text.encode("utf-8", "surrogatepass")  # four times faster to search than a text with one wide character
        flat_text = unwrapped(text)
        flat = data if flat_text is text else flat_text.encode("utf-8", "surrogatepass")
        return _Search(
            known=tuple(known for known in self._known if known.data in data),
            wrapped=tuple(known for known in self._known if known.is_wrapped(data, flat)) if flat is not data else (),
            shapes=shapes_for(text) if self._shapes else (),
        )

    def _spans(self, text: str, search: _Search) -> list[Span]:
        found = [
            Span(start=start, end=start + len(known.form), rule=KNOWN, plain=known.plain)
            for known in search.known
            for start in _places(text, known.form)
        ]
        found += [
            Span(start=start, end=end, rule=KNOWN, plain=known.plain)
            for known in search.wrapped
            for start, end in wrapped_places(text, known.form)
        ]
        found += shape_spans(text, search.shapes)
        return _joined(_beside_marks(text, found)) if found else found

    def _once(self, text: str, search: _Search, hits: dict[str, int]) -> str:
        """Return `text` with what was found replaced, and count it; the same object if that is nothing."""
        pieces, end = [], 0
        for span in self._spans(text, search):
            hits[span.rule] = hits.get(span.rule, 0) + 1
            pieces += [text[end : span.start], self.mark(span)]
            end = span.end
        return "".join([*pieces, text[end:]]) if pieces else text


def _texts(fields: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield every text in `fields`, at any depth, in any order."""
    left: list[JsonValue] = list(fields.values())
    while left:
        match left.pop():
            case str() as text:
                yield text
            case dict() as inner:
                left.extend(inner.values())
            case list() | tuple() as items:
                left.extend(items)
            case _:
                pass


def _copy(fields: Mapping[str, JsonValue], result: dict[str, JsonValue], redacted: Callable[[str], str]) -> None:
    """Copy `fields` into `result` with each text `redacted`; a tuple becomes a list. No depth is too deep for it."""
    left: list[tuple[JsonValue, dict[str, JsonValue] | list[JsonValue]]] = []

    def copied(value: JsonValue) -> JsonValue:
        match value:
            case str():
                return redacted(value)
            case dict():
                inner: dict[str, JsonValue] = {}
                left.append((value, inner))
                return inner
            case list() | tuple():
                items: list[JsonValue] = []
                left.append((value, items))
                return items
            case _:
                return value

    left.append((dict(fields), result))
    while left:
        source, target = left.pop()
        if isinstance(target, dict) and isinstance(source, dict):
            for name, value in source.items():
                target[name] = copied(value)
        elif isinstance(target, list) and isinstance(source, list | tuple):
            target.extend(copied(value) for value in source)


def _marks_in(text: str) -> Iterator[str]:
    return (found[0] for found in _MARK.finditer(text)) if _OPENING in text else iter(())


def _places(text: str, form: str) -> Iterator[int]:
    place = text.find(form)
    while place >= 0:
        yield place
        place = text.find(form, place + len(form))


def _beside_marks(text: str, spans: list[Span]) -> list[Span]:
    """Return the spans that neither cut a mark in two nor hold nothing but marks: a mark is never redacted itself."""
    marks = [found.span() for found in _MARK.finditer(text)] if _OPENING in text else []
    if not marks:
        return spans
    ends = [end for _, end in marks]

    def is_inside(place: int) -> bool:
        after = bisect_right(ends, place)
        return after < len(marks) and marks[after][0] < place

    return [
        span
        for span in spans
        if not (is_inside(span.start) or is_inside(span.end)) and _MARK.sub("", text[span.start : span.end]).strip()
    ]


def _joined(spans: list[Span]) -> list[Span]:
    """Return the spans in order, with those that overlap made one: the widest of them names it, and a known value first."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.rule != KNOWN)):
        if joined and span.start < joined[-1].end:
            before = joined[-1]
            wider = span if span.end - span.start > before.end - before.start else before
            joined[-1] = replace(wider, start=before.start, end=max(before.end, span.end))
        else:
            joined.append(span)
    return joined
