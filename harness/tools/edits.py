"""Apply edits to the bytes of a file: find each old text, exactly or except for line ends, and insert the new text.

All other bytes are unchanged. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from harness.errors import ErrorCode
from harness.record import Record, replace
from harness.tools.near_miss import explain_miss

MAX_NAMED_LINES = 20
"""Maximum number of line numbers listed if a text occurs several times."""

MAX_COUNTED = 100_000
"""Maximum number of occurrences that are counted."""
MAX_COMPARED_BYTES = 20_000_000
"""Maximum product of the number of occurrences and their length. Counting stops there, as a long text may overlap
itself.
"""
MAX_SPANS = 200_000
"""Maximum number of occurrences that all edits of a call replace one by one. Needed if their line ends differ."""
MAX_SEARCHED_BYTES = 150_000_000
"""Maximum number of bytes that all edits of a call search. Each edit searches the whole file, or three times its size
if line ends are mixed.
"""

Span: TypeAlias = "tuple[int, int]"


class Occurrences(Enum):
    """The allowed number of occurrences of a text."""

    ONE = "one"
    ALL = "all"


class Edit(Record):
    """One replacement: an old text and a new text."""

    old: str
    new: str
    occurrences: Occurrences


class Spliced(Record):
    """The new content of the file."""

    content: bytes
    replacements: int


class Unmatched(Record):
    """Reason why no text was replaced, for the model. The caller replaces `{path}` with the name of the file."""

    reason: str
    code: ErrorCode


class _Search(Record):
    """A text to find and its replacement, in the form of the searched bytes."""

    text: bytes
    """The data to search: the original, or a copy with LF instead of CR LF."""
    needle: bytes
    new: bytes
    with_crlf: bytes | None = None
    """Replacement where lines end in CR LF. If `None`, `new` is used everywhere."""


class _Work:
    """Remaining work for the edits of one call. INVARIANT: judging a call takes no more than about a second."""

    def __init__(self, data: bytes) -> None:
        self._bytes = MAX_SEARCHED_BYTES
        self.spans = MAX_SPANS
        self._data = data
        self._is_utf8: bool | None = None

    @property
    def is_utf8(self) -> bool:
        """Whether the file is UTF-8 before the first edit. Edits cannot change that."""
        if self._is_utf8 is None:
            self._is_utf8 = _is_utf8(self._data)
        return self._is_utf8

    def covers(self, size: int) -> bool:
        """Subtract `size` from the number of bytes that may still be searched. Return whether enough were left."""
        self._bytes -= size
        return self._bytes >= 0


def splice_all(data: bytes, edits: Sequence[Edit], *, most_bytes: int) -> Spliced | Unmatched:
    """Apply `edits` to `data` in order, all or none. Return the new content, or the reason of the first that fails.

    `data` is UTF-8, or at least ASCII with other bytes in it.
    """
    content, replacements = data, 0
    work = _Work(data)
    for number, edit in enumerate(edits, 1):
        spliced = splice(content, edit, most_bytes=most_bytes, work=work)
        if isinstance(spliced, Unmatched):
            return spliced if len(edits) == 1 else _in_list(spliced, number, len(edits))
        content, replacements = spliced.content, replacements + spliced.replacements
    if content == data:
        return Unmatched(reason="The edits change nothing in {path} together.", code=ErrorCode.NO_CHANGE)
    return Spliced(content=content, replacements=replacements)


def _in_list(unmatched: Unmatched, number: int, count: int) -> Unmatched:
    reason, end = unmatched.reason, ". No edit was applied."
    several = "\n" in reason
    text = f"{reason}\n(No edit was applied.)" if several else f"{reason.rstrip('.')}{end}"
    return replace(unmatched, reason=f"edit {number} of {count}: {text}")


def splice(data: bytes, edit: Edit, *, most_bytes: int, work: _Work | None = None) -> Spliced | Unmatched:
    """Return `data` with the old text of one edit, which is not empty, replaced by the new.

    An exact match is preferred. If there is none, CR LF and LF count as equal. Line ends in the new text are converted
    to those of the replaced text, or of the line around it, unless the edit changes only line ends.
    """
    work = _Work(data) if work is None else work
    if not edit.new.isascii() and not work.is_utf8:
        return Unmatched(
            reason="{path} is not valid UTF-8 and new_string is not ASCII; refusing to mix encodings.",
            code=ErrorCode.ENCODING,
        )
    if not work.covers(len(data)):
        return _too_much()
    search = _search(data, edit.old.encode(), edit.new.encode())
    if search.text is not data and not work.covers(2 * len(data)):
        return _too_much()
    first = search.text.find(search.needle)
    if first < 0:
        explanation = explain_miss(data, edit.old, edit.new)
        return Unmatched(reason=f"old_string not found in {{path}}. {explanation}", code=ErrorCode.NO_MATCH)
    if edit.occurrences is Occurrences.ONE and search.text.find(search.needle, first + 1) >= 0:
        return Unmatched(reason=_several(search), code=ErrorCode.NOT_UNIQUE)
    if search.with_crlf is None:
        return _plainly(search, most_bytes)
    return _joined(data, search, search.with_crlf, most_bytes, work)


def _search(data: bytes, old: bytes, new: bytes) -> _Search:
    """Return the search for an edit. It uses plain bytes if possible, which is a hundred times faster."""
    has_crlf = b"\r\n" in data
    # An LF without CR in the old text means a whole line end. So a text that begins with LF must not split a CR LF.
    whole_ends = has_crlf and old.startswith(b"\n") and b"\r" not in old
    exact = not whole_ends and old in data
    if exact and (b"\n" not in new or b"\n" not in data or _ends_as_lf(old) == _ends_as_lf(new)):
        return _Search(text=data, needle=old, new=new)
    if not has_crlf:
        return _Search(text=data, needle=old if exact else _with_lf(old), new=_with_lf(new))
    with_crlf = _with_crlf(new)
    if data.count(b"\n") == data.count(b"\r\n"):
        if exact:
            return _Search(text=data, needle=old, new=with_crlf)
        if not old.endswith(b"\r"):  # a CR at the end is not a line end, and must not become half of one
            return _Search(text=data, needle=_with_crlf(old), new=with_crlf)
    if exact:
        return _Search(text=data, needle=old, new=_with_lf(new), with_crlf=with_crlf)
    return _Search(text=_with_lf(data), needle=_with_lf(old), new=_with_lf(new), with_crlf=with_crlf)


def _plainly(search: _Search, most_bytes: int) -> Spliced | Unmatched:
    """Replace every occurrence with the same bytes."""
    data, needle, new = search.text, search.needle, search.new
    count = data.count(needle)
    if len(data) + count * (len(new) - len(needle)) > most_bytes:
        return _too_large(most_bytes)
    return _unless_equal(data, data.replace(needle, new), count)


def _joined(data: bytes, search: _Search, with_crlf: bytes, most_bytes: int, work: _Work) -> Spliced | Unmatched:
    """Replace every occurrence with the new text, or with `with_crlf` where lines end in CR LF."""
    content = bytearray()
    ends = _Ends(data)
    done = replacements = 0
    for start, end in _spans(data, search):
        work.spans -= 1
        if work.spans < 0:
            return _too_much()
        content += data[done:start]
        content += with_crlf if ends.are_crlf(start) else search.new
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
    reason = f"{{path}} would become larger than {most_bytes:,} bytes. The file was not changed."
    return Unmatched(reason=reason, code=ErrorCode.TOO_LARGE)


def _too_much() -> Unmatched:
    reason = "Too much to replace in {path} at once: send fewer edits in a call, or use a command such as sed."
    return Unmatched(reason=reason, code=ErrorCode.TOO_LARGE)


def _spans(data: bytes, search: _Search) -> Iterator[Span]:
    """Yield the spans of the occurrences in `data`, from left to right, without overlaps."""
    text, needle = search.text, search.needle
    places = None if text is data else _Places(data)
    start = text.find(needle)
    while start >= 0:
        end = start + len(needle)
        yield (start, end) if places is None else (places.of(start), places.of(end))
        start = text.find(needle, end)


class _Places:
    """Converter of positions in the text with LF to positions in the data with CR LF. Used from left to right only.

    INVARIANT: the data up to `_place`, with LF instead of CR LF, is the text up to `_position`. `_place` is never
    between CR and LF.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = self._place = 0

    def of(self, position: int) -> int:
        """Return the position in the data for `position` in the text, which must not be before that of the last call."""
        missing = position - self._position
        while missing:
            # Each CR LF in this part makes the text one byte shorter. Advance by that number in the next round.
            end = self._place + missing
            missing = self._data.count(b"\r\n", self._place, end)
            if self._data[end - 1 : end + 1] == b"\r\n":
                end += 1
            self._place = end
        self._position = position
        return self._place


class _Ends:
    """Lookup of the kind of line ends in the data. Used from left to right only."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._last = data.rfind(b"\n")
        self._next = -1

    def are_crlf(self, start: int) -> bool:
        """Return whether the first line end from `start` on is CR LF. Without one, the last before it decides."""
        if start > self._last:
            position = self._last
        else:
            if self._next < start:
                self._next = self._data.find(b"\n", start)
            position = self._next
        return position > 0 and self._data[position - 1 : position] == b"\r"


def _several(search: _Search) -> str:
    """Return the reason for a text that occurs several times, with the number of occurrences and their lines."""
    text, needle = search.text, search.needle
    lines: list[str] = []
    count, line, position = 0, 1, 0
    start = text.find(needle)
    while start >= 0:
        count += 1
        if len(lines) < MAX_NAMED_LINES:
            line += text.count(b"\n", position, start)
            position = start
            lines.append(str(line))
        if count >= MAX_COUNTED or count * len(needle) > MAX_COMPARED_BYTES:
            break
        start = text.find(needle, start + 1)
    times = f"{count:,}" if start < 0 else f"at least {count:,}"
    more = ", ..." if times != str(len(lines)) else ""
    return f"old_string occurs {times} times in {{path}} (lines {', '.join(lines)}{more}). Add context, or set replace_all."


def _with_lf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _ends_as_lf(text: bytes) -> bytes:
    return _with_lf(text).replace(b"\r", b"\n")


def _with_crlf(text: bytes) -> bytes:
    return _with_lf(text).replace(b"\n", b"\r\n")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
