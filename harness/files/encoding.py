"""Encoding of a text file: determined by its byte-order mark only, never guessed."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from harness.record import Record

BINARY_PROBE_BYTES = 8192
UTF_8_MARK = b"\xef\xbb\xbf"
_MAX_LONE_SURROGATE_BYTES = 1024 * 1024
"""Maximum size of a UTF-16 file with lone surrogates, in bytes. In a larger one they would take too long to decode."""
_UTF_32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")


class Encoding(Enum):
    """The supported encodings. The value is Python's codec name."""

    UTF_8 = "utf-8"
    UTF_16_LE = "utf-16-le"
    UTF_16_BE = "utf-16-be"

    @property
    def label(self) -> str:
        """The name for people."""
        return self.value.replace("utf", "UTF").replace("-le", "LE").replace("-be", "BE")

    @property
    def mark(self) -> bytes:
        """The byte-order mark."""
        match self:
            case Encoding.UTF_8:
                return UTF_8_MARK
            case Encoding.UTF_16_LE:
                return b"\xff\xfe"
            case Encoding.UTF_16_BE:
                return b"\xfe\xff"
            case _:
                assert_never(self)


class Text(Record):
    """A file's content as UTF-8, for search and replacement."""

    encoding: Encoding
    body: bytes
    """The content as UTF-8.

    For a UTF-8 file, its exact bytes, including a byte-order mark and invalid bytes. For a UTF-16 file, the text without
    the mark; a lone surrogate becomes the three bytes that UTF-8 would use for it.
    """

    def encoded(self, body: bytes) -> bytes:
        """Return the bytes of a file with this encoding and the content `body`. Unchanged text keeps its exact bytes."""
        if self.encoding is Encoding.UTF_8:
            return body
        decoded = body.decode("utf-8", "surrogatepass")
        return self.encoding.mark + decoded.encode(self.encoding.value, "surrogatepass")


def encoding_of(start: bytes) -> Encoding:
    """Return the encoding of a file with these first bytes: UTF-16 if it has that byte-order mark, else UTF-8."""
    if not start.startswith(_UTF_32_MARKS):
        for encoding in (Encoding.UTF_16_LE, Encoding.UTF_16_BE):
            if start.startswith(encoding.mark):
                return encoding
    return Encoding.UTF_8


def read_text(data: bytes) -> Text | None:
    """Return a file's content as text, or `None` for binary data: a NUL near the start, or invalid UTF-16.

    Lone surrogates are kept in files of at most 1 MiB; a larger file with one counts as binary.

    INVARIANT: `text.encoded(text.body) == data`.
    """
    encoding = encoding_of(data)
    if encoding is Encoding.UTF_8:
        text = Text(encoding=encoding, body=data)
    else:
        try:
            errors = "surrogatepass" if len(data) <= _MAX_LONE_SURROGATE_BYTES else "strict"
            decoded = data[2:].decode(encoding.value, errors)
        except UnicodeDecodeError:
            return None  # an odd number of bytes, or lone surrogates in a large file
        text = Text(encoding=encoding, body=decoded.encode("utf-8", "surrogatepass"))
        if text.encoded(text.body) != data:
            return None
    return None if is_binary(text.body) else text


def is_binary(data: bytes) -> bool:
    """Return whether bytes from a file's start are not UTF-8 or similar: a NUL among the first 8 KiB."""
    return b"\0" in data[:BINARY_PROBE_BYTES]


def readable(data: bytes) -> bytes:
    """Return the old content of a file for display: its text as UTF-8, empty for binary data.

    New content is always shown in full; this function is not for that.
    """
    text = read_text(data)
    return b"" if text is None else text.body


class Adapted(Record):
    """New content in the form of the file that it replaces."""

    data: bytes
    text: bytes
    """The content of `data` as UTF-8, without a UTF-16 mark."""
    kept_features: tuple[str, ...]
    """Features of the old form that were kept although the new content lacks them, in words."""


def adapted(content: bytes, old: bytes) -> Adapted:
    """Return `content` (UTF-8) in the form of the file that held `old`: its encoding, byte-order mark and line ends.

    Line ends become CR LF if all old ones are, and `content` has no CR. If `old` is not text, `content` is unchanged.
    """
    text = read_text(old)
    if text is None:
        return Adapted(data=content, text=content, kept_features=())
    properties = []
    newlines = text.body.count(b"\n")
    if newlines and newlines == text.body.count(b"\r\n") and b"\r" not in content and b"\n" in content:
        content = content.replace(b"\n", b"\r\n")
        properties.append("CRLF line endings")
    if text.encoding is not Encoding.UTF_8:
        properties.append(f"{text.encoding.label} with BOM")
        content = content.removeprefix(UTF_8_MARK)
    elif text.body.startswith(UTF_8_MARK) and not content.startswith(UTF_8_MARK):
        content = UTF_8_MARK + content
        properties.append("BOM")
    return Adapted(data=text.encoded(content), text=content, kept_features=tuple(properties))
