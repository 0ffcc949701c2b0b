"""Find the texts that edits name, exactly or but for line ends, and splice in the new; all other bytes stay; pure."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from harness.errors import ErrorCode
from harness.record import Record, replace
from harness.tools.near_miss import explain_miss

MAX_NAMED_LINES = 20
"""Line numbers that are listed when a text occurs several times."""

MAX_COUNTED = 100_000
"""Occurrences that are counted."""
MAX_COMPARED_BYTES = 20_000_000
"""Occurrences times their length: those of a long text that overlaps itself are not counted to the end."""

Span: TypeAlias = "tuple[int, int]"


class Occurrences(Enum):
    """How often the text may occur."""

    ONE = "one"
    ALL = "all"


class Edit(Record):
    """One text to be replaced by another."""

    old: str
    new: str
    occurrences: Occurrences


class Spliced(Record):
    """The new bytes."""

    content: bytes
    replacements: int


class Unmatched(Record):
    """Why nothing was replaced, for the model; `{path}` stands for the file's name."""

    reason: str
    code: ErrorCode


def splice_all(data: bytes, edits: Sequence[Edit], *, most_bytes: int) -> Spliced | Unmatched:
    """Return `data` (UTF-8, or at least ASCII with other bytes in it) with `edits` made one after the other, or with none."""
    content, replacements = data, 0
    for number, edit in enumerate(edits, 1):
        spliced = splice(content, edit, most_bytes=most_bytes)
        if isinstance(spliced, Unmatched):
            return spliced if len(edits) == 1 else _in_list(spliced, number, len(edits))
        content, replacements = spliced.content, replacements + spliced.replacements
    if content == data:
        return Unmatched(reason="The edits change nothing in {path} together.", code=ErrorCode.NO_CHANGE)
    return Spliced(content=content, replacements=replacements)


def _in_list(unmatched: Unmatched, number: int, count: int) -> Unmatched:
    reason, end = unmatched.reason, "; nothing was applied."
    several = "\n" in reason
    told = f"{reason}\n(Nothing was applied.)" if several else f"{reason.rstrip('.')}{end}"
    return replace(unmatched, reason=f"edit {number} of {count}: {told}")


def splice(data: bytes, edit: Edit, *, most_bytes: int) -> Spliced | Unmatched:
    """Return `data` with the old text of one edit (not empty) replaced by the new.

    An exact match counts first. If there is none, CR LF and LF are taken as equal. Line ends in the new text follow
    those of the replaced text, or of the line around it, unless the call itself speaks of CR.
    """
    old, new = edit.old.encode(), edit.new.encode()
    if not edit.new.isascii() and not _is_utf8(data):
        return Unmatched(
            reason="{path} is not valid UTF-8 and new_string is not ASCII; refusing to mix encodings.",
            code=ErrorCode.ENCODING,
        )
    # A line end that is named without CR is the whole of one: CR LF is not cut in two by a text that begins with LF.
    whole_ends = old.startswith(b"\n") and b"\r" not in old and b"\r\n" in data
    exact = not whole_ends and old in data
    finder = _Exact(data, old) if exact else _AnyLineEnd(data, old)
    if not exact and next(finder.starts(), None) is None:
        told = explain_miss(data, edit.old, edit.new)
        return Unmatched(reason=f"old_string not found in {{path}}. {told}", code=ErrorCode.NO_MATCH)
    if edit.occurrences is Occurrences.ONE:
        positions, count = _starts(finder, len(old))
        if len(positions) > 1:
            return Unmatched(reason=_several(data, positions, count), code=ErrorCode.NOT_UNIQUE)
    if exact and (b"\n" not in new or b"\r" in old or b"\r" in new):
        return _plainly(data, old, new, most_bytes)
    if b"\r" not in data:
        return _plainly(data, _with_lf(old), new if exact else _with_lf(new), most_bytes)
    with_lf = _with_lf(new)
    return _joined(data, finder.spans(), new if exact else with_lf, with_lf.replace(b"\n", b"\r\n"), most_bytes)


def _plainly(data: bytes, old: bytes, new: bytes, most_bytes: int) -> Spliced | Unmatched:
    """Replace every occurrence of bytes by others: what the interpreter does by itself is a hundred times quicker."""
    count = data.count(old)
    if len(data) + count * (len(new) - len(old)) > most_bytes:
        return _too_large(most_bytes)
    return _unless_equal(data, data.replace(old, new), count)


def _joined(data: bytes, spans: Iterator[Span], new: bytes, with_crlf: bytes, most_bytes: int) -> Spliced | Unmatched:
    """Replace the spans by `new`, or by `with_crlf` where lines end so."""
    content = bytearray()
    ends = _Ends(data)
    done = replacements = 0
    for start, end in spans:
        content += data[done:start]
        content += with_crlf if ends.are_crlf(start) else new
        done = end
        replacements += 1
        if len(content) > most_bytes:
            return _too_large(most_bytes)
    content += data[done:]
    if len(content) > most_bytes:
        return _too_large(most_bytes)
    return _unless_equal(data, bytes(content), replacements)


def _unless_equal(data: bytes, content: bytes, replacements: int) -> Spliced | Unmatched:
    if content == data:
        return Unmatched(
            reason="The edit changes nothing in {path}: line ends follow those of the file.", code=ErrorCode.NO_CHANGE
        )
    return Spliced(content=content, replacements=replacements)


def _too_large(most_bytes: int) -> Unmatched:
    reason = f"{{path}} would become larger than {most_bytes:,} bytes; nothing was written."
    return Unmatched(reason=reason, code=ErrorCode.TOO_LARGE)


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
        self._text = _with_lf(data)
        self._exact = _Exact(self._text, _with_lf(old))
        self._data = data
        self._uniform = len(self._text) + self._text.count(b"\n") == len(data)
        self._counted = (0, 0)
        self._dropped: array[int] | None = None

    def starts(self) -> Iterator[int]:
        return (self._real(start) for start in self._exact.starts())

    def spans(self) -> Iterator[Span]:
        return ((self._real(start), self._real(end)) for start, end in self._exact.spans())

    def _real(self, position: int) -> int:
        """Return the place in the data of a place in the text without CRs: one more for each CR dropped before it."""
        if self._uniform:
            return position + self._ends_before(position)
        if self._dropped is None:
            found = re.finditer(b"\r\n", self._data)
            self._dropped = array("q", (match.start() - index for index, match in enumerate(found)))
        return position + bisect_left(self._dropped, position)

    def _ends_before(self, position: int) -> int:
        """Return how many lines end before a place in the text: counted on from the last place that was asked for."""
        place, count = self._counted if self._counted[0] <= position else (0, 0)
        count += self._text.count(b"\n", place, position)
        self._counted = (position, count)
        return count


class _Ends:
    """The line ends of the data, asked for from left to right."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._last = data.rfind(b"\n")
        self._next = -1

    def are_crlf(self, start: int) -> bool:
        """Say whether lines end in CR LF around `start`: the first end from there on decides, else the last before it."""
        if start > self._last:
            position = self._last
        else:
            if self._next < start:
                self._next = self._data.find(b"\n", start)
            position = self._next
        return position > 0 and self._data[position - 1 : position] == b"\r"


def _starts(finder: _Exact | _AnyLineEnd, length: int) -> tuple[list[int], str]:
    """Return where the first occurrences are, and how many there are, overlapping ones included; counted up to a bound."""
    first: list[int] = []
    count = 0
    for start in finder.starts():
        count += 1
        if len(first) < MAX_NAMED_LINES:
            first.append(start)
        if count >= MAX_COUNTED or count * length > MAX_COMPARED_BYTES:
            return first, f"at least {count:,}"
    return first, f"{count:,}"


def _several(data: bytes, positions: list[int], count: str) -> str:
    lines = ", ".join(str(data.count(b"\n", 0, position) + 1) for position in positions)
    more = ", ..." if count != str(len(positions)) else ""
    return f"old_string occurs {count} times in {{path}} (lines {lines}{more}). Add context, or set replace_all."


def _with_lf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
