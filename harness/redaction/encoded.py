"""Find secrets in base64 and hex. Each run of such characters is decoded, and its text searched for the shapes."""

from __future__ import annotations

import binascii
from collections.abc import Iterator

from harness.record import replace
from harness.redaction.marks import Span
from harness.redaction.shapes import shape_spans, shapes_for
from harness.regex import regex

_LEAST = 24
"""Minimum length of a run to decode, in characters: base64 of 18 characters. Keys of all vendors are longer."""
_IN_RUN = bytes(49 if (chr(byte).isalnum() and byte < 128) or chr(byte) in "+/-_" else 48 for byte in range(256))
_HEX = regex(rb"[0-9A-Fa-f]{36,}+")
_RUN = b"1" * _LEAST
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = bytes((9, 10, 13, *range(32, 127)))


def may_hold_encoded(text: str) -> bool:
    """Return whether the text has a run that is long enough to decode. Most texts have none."""
    return _RUN in _classes(text)


def encoded_spans(text: str) -> Iterator[Span]:
    """Yield the secrets in the base64 and hex runs of `text`, each with its decoded text. They may overlap."""
    classes = _classes(text)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b"0", start)
        end = len(classes) if end < 0 else end
        run = text[start:end].encode("ascii")
        for span in (*_in_base64(run), *_in_hex(run)):
            yield replace(span, start=start + span.start, end=start + span.end)
        start = classes.find(_RUN, end)


def _classes(text: str) -> bytes:
    """Return `1` for each character of either base64 alphabet and `0` for any other."""
    return text.encode("ascii", "replace").translate(_IN_RUN)


def _in_base64(run: bytes) -> Iterator[Span]:
    r"""Yield the secrets in a run. The base64 may begin after the end of an escape (`\n`, `%3D`)."""
    characters = run.translate(_URL_SAFE)
    for first in range(4):
        usable = len(run) - first - ((len(run) - first) % 4 == 1)
        data = binascii.a2b_base64(characters[first : first + usable] + b"=" * (-usable % 4))
        for span in _in_text(data) if _is_text(data) else ():
            start, end = first + span.start // 3 * 4, first + -(-span.end // 3) * 4
            yield replace(span, start=start, end=min(len(run), end))


def _in_hex(run: bytes) -> Iterator[Span]:
    for digits in _HEX.finditer(run):
        for first in range(digits.start(), digits.start() + 2):
            data = binascii.a2b_hex(run[first : first + (digits.end() - first) // 2 * 2])
            for span in _in_text(data) if _is_text(data) else ():
                yield replace(span, start=first + 2 * span.start, end=first + 2 * span.end)


def _is_text(data: bytes) -> bool:
    """Return whether three quarters of the bytes are printable. About one third of random bytes are."""
    return len(data.translate(None, _PRINTABLE)) * 4 <= len(data)


def _in_text(data: bytes) -> Iterator[Span]:
    text = data.decode("latin-1")  # one character per byte
    return shape_spans(text, shapes_for(text))
