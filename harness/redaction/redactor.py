"""Replace secrets in a text with marks: known values in all their forms, and credentials found by their shape."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.record import Record
from harness.redaction.encoded import encoded_spans, may_hold_encoded
from harness.redaction.known_values import KNOWN, NOTHING, Candidates, KnownValues, known_spans
from harness.redaction.marks import MARK, OPENING, Span, marks_in
from harness.redaction.shapes import Shape, shape_spans, shapes_for
from harness.regex import regex

ROUNDS = 8
"""Maximum number of passes over a text. A secret right before another one is found in the second pass only."""
_MOST_MARKS_KEPT = 4_096
"""Maximum number of secrets whose marks are cached, so that a frequent secret is hashed once."""

_DIGEST = regex("[0-9a-f]{64}")
_SESSION = regex("[0-9a-f]{12}")
_APART = "\x00"
"""Separator of texts that are searched as one. No environment variable contains it, and it is not a line end."""


class _Search(Record):
    """The kinds of secrets that a text may contain."""

    candidates: Candidates
    shapes: tuple[Shape, ...]
    is_encoded: bool
    """Whether the text has base64 or hex that may contain secrets."""


class Redactor:
    """Replaces secrets with `[redacted:<rule>:<hmac8>]`. Equal secrets have equal marks under one key.

    hmac8 is the beginning of HMAC-SHA256 (RFC 2104) of the decoded secret. A reader of the log without the key can
    neither recover a secret from it nor test guesses. A second redaction changes nothing.

    A value of several lines is found in any layout, and so is each of its lines that looks random. Not found are values
    that are cut in two, in an encoding that harness/redaction/known_values.py does not name, shorter than
    MIN_SECRET_CHARACTERS, or so ordinary that masking would hide ordinary text (`is_ordinary`).
    """

    def __init__(self, secrets: Iterable[str] = (), *, key: bytes = b"", shapes: bool = True) -> None:
        """Prepare to find `secrets`, and credentials by their shape if `shapes` is true.

        `key` is the key of the installation, which is never logged. If it is empty, a random key is used.
        """
        self._key = key or os.urandom(32)
        self._shapes = shapes
        self._issued: set[str] = set()
        self._marks: dict[tuple[str, str], str] = {}
        self._secrets = tuple(secrets)
        self._known_values = KnownValues(self._secrets)

    def learn(self, secret: str) -> None:
        """Also find `secret` from now on. Any thread may call this."""
        if secret not in self._secrets:
            self._secrets += (secret,)
            self._known_values = KnownValues(self._secrets)

    def redact(self, text: str) -> str:
        """Return `text` with marks instead of secrets."""
        return self.redact_and_count(text)[0]

    def redact_and_count(self, text: str) -> tuple[str, Mapping[str, int]]:
        """Return `text` with marks instead of secrets, and the number of replacements per rule."""
        hits: dict[str, int] = {}
        for _ in range(ROUNDS):
            changed = self._once(text, self._search(text), hits)
            if changed is text:
                break
            text = changed
        return text, hits

    def fields(self, fields: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], dict[str, int]]:
        """Return `fields` with every text redacted, at any depth, and the number of marks in them per rule.

        A mark counts if this redactor made or noted it, even if the text was redacted before. Names of fields and
        numbers are unchanged. Digests and session IDs in fields of certain names (`_is_kept`) are also unchanged, even
        if one is a known value. Otherwise a record would lose its form, and the log could not be verified.
        Where nothing is found, the inner values of the result are those of `fields`.
        """
        joined = _APART.join(_texts(fields))
        search = self._search(joined)
        if search is None and OPENING not in joined:
            return dict(fields), {}
        hits: dict[str, int] = {}

        def redacted(text: str) -> str:
            changed = self._once(text, search, {})
            changed = text if changed is text else self.redact(changed)
            for mark in marks_in(changed):
                if mark in self._issued:
                    rule = mark.split(":")[1]
                    hits[rule] = hits.get(rule, 0) + 1
            return changed

        return _copy(fields, redacted), hits

    def issued(self, text: str) -> str:
        """Return the first mark in `text` that this redactor issued or noted, or an empty string. A forged mark is
        ordinary text.
        """
        return next((mark for mark in marks_in(text) if mark in self._issued), "")

    def note(self, text: str) -> None:
        """Note the marks in `text` as issued.

        For marks that were made when a conversation was recorded (`marks_of`).
        """
        self._issued.update(marks_in(text))

    @property
    def forms(self) -> tuple[str, ...]:
        """All spellings of all known values, longest first. They are secret."""
        return self._known_values.forms

    def knows(self, text: str) -> bool:
        """Return whether a known value occurs in `text`."""
        return self._known_values.candidates(text) is not NOTHING

    def spans(self, text: str) -> list[Span]:
        """Return the secrets in `text`, in order and without overlaps."""
        return self._spans(text, self._search(text))

    def mark(self, span: Span) -> str:
        """Return the mark of a secret and note it as issued."""
        mark = self._marks.get((span.rule, span.plain))
        if mark is None:
            import hmac

            digest = hmac.digest(self._key, span.plain.encode("utf-8", "surrogatepass"), "sha256").hex()
            mark = f"{OPENING}{span.rule}:{digest[:8]}]"
            if len(self._marks) >= _MOST_MARKS_KEPT:
                self._marks.clear()
            self._marks[span.rule, span.plain] = mark
        self._issued.add(mark)
        return mark

    def _search(self, text: str) -> _Search | None:
        """Return the kinds of secrets that `text` or a part of it may contain, or `None` if there are none."""
        candidates, shapes = self._known_values.candidates(text), shapes_for(text) if self._shapes else ()
        is_encoded = self._shapes and may_hold_encoded(text)
        if not shapes and not is_encoded and candidates is NOTHING:
            return None
        return _Search(candidates=candidates, shapes=shapes, is_encoded=is_encoded)

    def _spans(self, text: str, search: _Search | None) -> list[Span]:
        if search is None:
            return []
        spans = [*known_spans(text, search.candidates), *shape_spans(text, search.shapes)]
        if search.is_encoded:
            spans += encoded_spans(text)
        return _joined(_beside_marks(text, spans)) if spans else spans

    def _once(self, text: str, search: _Search | None, hits: dict[str, int]) -> str:
        """Return `text` with the secrets found replaced, and count them in `hits`.

        Without any, return the same object.
        """
        pieces, end = [], 0
        for span in self._spans(text, search):
            hits[span.rule] = hits.get(span.rule, 0) + 1
            pieces += [text[end : span.start], self.mark(span)]
            end = span.end
        return "".join([*pieces, text[end:]]) if pieces else text


def _is_kept(name: str, text: str) -> bool:
    """Return whether a field is not redacted: a digest or a session ID in a field whose name says so."""
    match len(text):
        case 64:
            return (name.endswith("sha256") or name in ("prev", "head", "keyed_digest")) and _DIGEST.fullmatch(
                text
            ) is not None
        case 12:
            return name in ("session", "of_session") and _SESSION.fullmatch(text) is not None
        case _:
            return False


def _texts(fields: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the texts of `fields` that are redacted, at any depth and in any order."""
    waiting: list[tuple[str, JsonValue]] = [*fields.items()]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            if not _is_kept(name, value):
                yield value
        elif isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list | tuple):
            waiting += [("", item) for item in value]


def _copy(fields: Mapping[str, JsonValue], redacted: Callable[[str], str]) -> dict[str, JsonValue]:
    """Return a copy of `fields`, with `redacted` applied to each text, at any depth. Tuples become lists."""
    result: dict[str, JsonValue] = {}
    stack: list[tuple[JsonValue, dict[str, JsonValue] | list[JsonValue]]] = []

    def copied(name: str, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value if _is_kept(name, value) else redacted(value)
        if isinstance(value, dict):
            inner: dict[str, JsonValue] = {}
            stack.append((value, inner))
            return inner
        if isinstance(value, list | tuple):
            items: list[JsonValue] = []
            stack.append((value, items))
            return items
        return value

    for name, value in fields.items():
        result[name] = copied(name, value)
    while stack:
        source, target = stack.pop()
        if isinstance(target, dict) and isinstance(source, dict):
            for name, value in source.items():
                target[name] = copied(name, value)
        elif isinstance(target, list) and isinstance(source, list | tuple):
            target.extend(copied("", value) for value in source)
    return result


def _beside_marks(text: str, spans: list[Span]) -> list[Span]:
    """Return the spans without those that cut a mark in two or contain only marks. A mark is never redacted."""
    marks = [match.span() for match in MARK.finditer(text)] if OPENING in text else []
    if not marks:
        return spans
    ends = [end for _, end in marks]

    def is_inside(place: int) -> bool:
        after = bisect_right(ends, place)
        return after < len(marks) and marks[after][0] < place

    return [
        span
        for span in spans
        if not (is_inside(span.start) or is_inside(span.end)) and MARK.sub("", text[span.start : span.end]).strip()
    ]


def _joined(spans: list[Span]) -> list[Span]:
    """Return the spans in order, with overlapping ones merged.

    A merged span gets rule and secret of the widest one. Among equal spans, a known value is preferred.
    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.rule != KNOWN)):
        if joined and span.start < joined[-1].end:
            before = joined[-1]
            wider = span if span.end - span.start > before.end - before.start else before
            end = max(before.end, span.end)
            joined[-1] = Span(start=before.start, end=end, rule=wider.rule, plain=wider.plain)
        else:
            joined.append(span)
    return joined
