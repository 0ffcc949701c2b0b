"""Find the text that an edit names, exactly or but for line ends, and splice in the new; all other bytes stay; pure."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from harness.record import Record
from harness.tools.near_miss import explain_miss

MAX_NAMED_LINES = 20
"""Line numbers that are listed when a text occurs several times."""

Span: TypeAlias = "tuple[int, int]"


class Occurrences(Enum):
    """How often the text may occur."""

    ONE = "one"
    ALL = "all"


class Spliced(Record):
    """The new bytes."""

    content: bytes
    replacements: int


class Unmatched(Record):
    """Why nothing was replaced, for the model; `{path}` stands for the file's name."""

    reason: str


def splice(data: bytes, old: str, new: str, occurrences: Occurrences, *, most_bytes: int) -> Spliced | Unmatched:
    """Return `data` with `old` (not empty) replaced by `new`.

    An exact match counts first. If there is none, CR LF and LF are taken as equal. Line ends in `new` follow those of
    the replaced text, or of the line around it, unless the call itself speaks of CR.
    """
    if not new.isascii() and not _is_utf8(data):
        return Unmatched(
            reason="{path} is not valid UTF-8; new_string has non-ASCII characters, and mixing is refused."
        )
    exact = old.encode() in data
    finder = _Exact(data, old.encode()) if exact else _AnyLineEnd(data, old.encode())
    if next(finder.spans(), None) is None:
        return Unmatched(reason=f"old_string not found in {{path}}. {explain_miss(data, old, new)}")
    if occurrences is Occurrences.ONE:
        positions, count = _starts(finder)
        if count > 1:
            return Unmatched(reason=_several(data, positions, count))
    follow = "\n" in new and not (exact and ("\r" in old or "\r" in new))
    new_bytes = new.encode()
    pieces = (
        (start, end, _with_line_ends(new_bytes, data, start, end, exact=exact) if follow else new_bytes)
        for start, end in finder.spans()
    )
    return _joined(data, pieces, most_bytes)


def _joined(data: bytes, pieces: Iterator[tuple[int, int, bytes]], most_bytes: int) -> Spliced | Unmatched:
    content = bytearray()
    done = replacements = 0
    for start, end, piece in pieces:
        content += data[done:start]
        content += piece
        done = end
        replacements += 1
        if len(content) > most_bytes:
            break
    content += data[done:]
    if len(content) > most_bytes:
        return Unmatched(reason=f"{{path}} would become larger than {most_bytes:,} bytes; nothing was written.")
    if content == data:
        return Unmatched(reason="The edit changes nothing in {path}: line ends follow those of the file.")
    return Spliced(content=bytes(content), replacements=replacements)


class _Exact:
    """Occurrences of bytes in bytes."""

    def __init__(self, data: bytes, old: bytes) -> None:
        self._data, self._old = data, old

    def starts(self) -> Iterator[int]:
        """Yield where `old` begins, overlapping occurrences included."""
        start = self._data.find(self._old)
        while start >= 0:
            yield start
            start = self._data.find(self._old, start + 1)

    def spans(self) -> Iterator[Span]:
        """Yield the occurrences from left to right, none overlapping."""
        start = self._data.find(self._old)
        while start >= 0:
            end = start + len(self._old)
            yield start, end
            start = self._data.find(self._old, end)


class _AnyLineEnd:
    """The same with CR LF taken as LF; positions are those in the data as it is."""

    def __init__(self, data: bytes, old: bytes) -> None:
        self._exact = _Exact(data.replace(b"\r\n", b"\n"), old.replace(b"\r\n", b"\n"))
        self._data = data
        self._dropped: array[int] | None = None

    def starts(self) -> Iterator[int]:
        return (self._real(start) for start in self._exact.starts())

    def spans(self) -> Iterator[Span]:
        return ((self._real(start), self._real(end)) for start, end in self._exact.spans())

    def _real(self, position: int) -> int:
        """Return the place in the data of a place in the text without CRs: one more for each CR dropped before it."""
        if self._dropped is None:
            found = re.finditer(b"\r\n", self._data)
            self._dropped = array("q", (match.start() - index for index, match in enumerate(found)))
        return position + bisect_left(self._dropped, position)


def _starts(finder: _Exact | _AnyLineEnd) -> tuple[list[int], int]:
    """Return where the first occurrences are, and how many there are."""
    first: list[int] = []
    count = 0
    for start in finder.starts():
        count += 1
        if len(first) < MAX_NAMED_LINES:
            first.append(start)
    return first, count


def _several(data: bytes, positions: list[int], count: int) -> str:
    lines = ", ".join(str(data.count(b"\n", 0, position) + 1) for position in positions)
    more = ", ..." if count > len(positions) else ""
    return f"old_string occurs {count:,} times in {{path}} (lines {lines}{more}). Add context, or set replace_all."


def _with_line_ends(new: bytes, data: bytes, start: int, end: int, *, exact: bool) -> bytes:
    """Return `new` with the line ends that the file has at the span."""
    if _line_end(data, start, end) == b"\r\n":
        return new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return new if exact else new.replace(b"\r\n", b"\n")


def _line_end(data: bytes, start: int, end: int) -> bytes:
    """Return the first line end in the span, else the next one behind it, else the last one before it, else LF."""
    position = data.find(b"\n", start, end)
    if position < 0:
        position = data.find(b"\n", end)
    if position < 0:
        position = data.rfind(b"\n", 0, start)
    return b"\r\n" if position > 0 and data[position - 1 : position] == b"\r" else b"\n"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
