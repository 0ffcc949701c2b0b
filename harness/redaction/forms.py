"""The forms in which a known secret may stand in a text: escaped, encoded, quoted; and which values are no secrets; pure."""

from __future__ import annotations

import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Iterator

MIN_SECRET_CHARACTERS = 8
"""Shorter values are not masked: they would blot out ordinary text."""
MIN_SURE_CHARACTERS = 12
"""Of a base64 text, how much must be sure for it to be looked for."""

MIN_WRAPPED_CHARACTERS = 20
"""A shorter form is not looked for across the ends of lines: two words of ordinary text could make it."""

_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986, section 2.3
# What is left as it is besides by: RFC 3986 as a whole; Python's quote; JavaScript's encodeURIComponent and encodeURI.
_LEFT_BARE = (b"", b"/", b"!'()*", b"!'()*;/?:@&=+$,#")
_ORDINARY = (
    r"(?s:[0-9]{1,11}"
    r"|[A-Za-z]?[a-z]{1,10}"
    r"|(.)\1*"
    r"|~?/(?:bin|boot|dev|etc|home|lib|media|mnt|nix|opt|private|proc|root|run|sbin|srv|sys|tmp|usr|var"
    r"|Applications|Library|System|Users|Volumes)(?:/[^\n]*)?)"
)
# What programs put into a long word to fit it into lines: base64(1) after 76 characters, fold(1), an indented block.
LINE_END = r"(?:\r?\n|\\r\\n|\\n)[ \t]*"
_MARK_WORDS = "[redacted:known:"


def is_ordinary(plain: str) -> bool:
    """Say whether masking this value would blot out ordinary text, whatever the name that it was found under.

    Ordinary are: up to 11 digits (a port, a number, a date), one word of up to 11 letters (`localhost`, `Development`), one
    character over and over, an absolute path below a folder that systems have (a socket, a file that holds the key), and
    what the marks themselves are written with. A password that is such a word is not found: text could not be read any more.
    """
    return re.fullmatch(_ORDINARY, plain) is not None or plain in _MARK_WORDS or "[redacted:" in plain


def forms_of(plain: str) -> Iterator[str]:
    """Yield the texts that stand for `plain`, itself first; the same one may come more than once."""
    yield plain
    data = plain.encode("utf-8", "surrogatepass")
    yield from _escaped(plain)
    yield from _quoted(plain)
    yield from _percent_encoded(data)
    yield data.hex()
    yield data.hex().upper()
    yield from _base64(data)


def _escaped(plain: str) -> Iterator[str]:
    """JSON (RFC 8259), once and again inside a text of JSON, and Python's repr."""
    for ascii_only in (True, False):
        once = json.dumps(plain, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        yield once.replace("/", "\\/")
    yield repr(plain)[1:-1]


def _quoted(plain: str) -> Iterator[str]:
    """As a POSIX shell reads it: a single quote in single quotes, in double quotes, and each character escaped."""
    yield plain.replace("'", "'\"'\"'")  # shlex.quote
    yield plain.replace("'", "'\\''")
    yield re.sub(r'([$`"\\])', r"\\\1", plain)
    yield re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", plain)


def _percent_encoded(data: bytes) -> Iterator[str]:
    for bare in _LEFT_BARE:
        kept = _UNRESERVED + bare
        for form in ("%{:02X}", "%{:02x}"):
            encoded = "".join(chr(byte) if byte in kept else form.format(byte) for byte in data)
            yield encoded
            yield encoded.replace("%20", "+")  # a form's blanks


def _base64(data: bytes) -> Iterator[str]:
    """The characters that are sure wherever `data` begins within a longer text: 6 bits each (RFC 4648, sections 4 and 5)."""
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        if end - first >= MIN_SURE_CHARACTERS:
            sure = binascii.b2a_base64(bytes(before) + data, newline=False)[first:end].decode("ascii")
            yield sure
            yield sure.replace("+", "-").replace("/", "_")


def unwrapped(data: bytes) -> bytes:
    """Return `data` without the ends of lines and what indents the next one; the same object if it has none.

    What the expression LINE_END takes out of a text, at an eighth of its time.
    """
    if b"\n" not in data and b"\\n" not in data:
        return data
    lines = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if b"\\n" in lines:
        lines = lines.replace(b"\\r\\n", b"\n").replace(b"\\n", b"\n")
    first, *others = lines.split(b"\n")
    return b"".join([first, *(line.lstrip(b" \t") for line in others)])


def wrapped_places(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield start and end in `text` of each place where `form` stands in one line or in several."""
    removed = 0
    begins, shifts = [0], [0]
    for found in re.finditer(LINE_END, text):
        removed += found.end() - found.start()
        begins.append(found.end() - removed)
        shifts.append(removed)
    flat = re.sub(LINE_END, "", text)
    place = flat.find(form)
    while place >= 0:
        last = place + len(form) - 1
        yield (
            place + shifts[bisect_right(begins, place) - 1],
            last + shifts[bisect_right(begins, last) - 1] + 1,
        )
        place = flat.find(form, last + 1)
