"""Take a numbered page of lines out of an open file, in little memory however large it is; opens nothing."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from harness.record import Record
from harness.visible import visible

MAX_LINE_CHARACTERS = 2_000
MAX_READ_BYTES = 2 * 1024 * 1024 * 1024
"""Of a file: lines behind that are not looked for, since a file with a hole may be larger than any disk."""
MAX_COUNTED_BYTES = 32 * 1024 * 1024
"""How far behind the page lines are still counted."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_BLOCK_BYTES = 1024 * 1024
_LIKE_AN_ESCAPE = re.compile(r"\\[xuU][0-9a-f]")


class Page(Record):
    """Lines of a file, and what there is to know about the file."""

    rows: tuple[str, ...]
    """Each line with its number in front, control and hidden characters escaped; empty behind the end of the file."""
    lines: int
    """How many the file has, as far as it was counted."""
    counted: bool
    """Whether it was counted to its end."""
    size: int
    """In bytes."""
    crlf: int
    """How many line ends are CR LF, as far as it was counted."""
    newlines: int
    invalid: int
    """How many bytes of the page are no UTF-8; they are shown as `\\xNN`."""
    escaped: bool
    """Whether a character is shown as an escape."""
    cut: bool
    """Whether a line is shown in part."""
    ambiguous: tuple[int, ...]
    """Lines that hold, besides such characters, words that look like escapes and are none."""
    given_up: bool
    """Whether reading ended at `MAX_READ_BYTES`."""


class _Tally:
    """What has gone by of a file: bytes and line ends."""

    def __init__(self) -> None:
        self.size = 0
        self.newlines = 0
        self.crlf = 0
        self.last = b""

    @property
    def left(self) -> int:
        """How many bytes may still be read."""
        return max(MAX_READ_BYTES - self.size, 0)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.newlines += data.count(b"\n")
        if b"\r" in data:  # looking for one byte is ten times quicker than counting two
            self.crlf += data.count(b"\r\n")
        self.crlf += self.last == b"\r" and data.startswith(b"\n")
        self.last = data[-1:]

    @property
    def lines(self) -> int:
        return self.newlines + (self.last not in (b"", b"\n"))


class _Rows:
    """The page as it grows."""

    def __init__(self, room: int) -> None:
        self.rows: list[str] = []
        self.invalid = 0
        self.escaped = False
        self.cut = False
        self.ambiguous: list[int] = []
        self._room = room
        self.widest = min(MAX_LINE_CHARACTERS, room // 2)

    def add(self, number: int, start: bytes) -> bool:
        """Add the line that starts with `start`; return False if there is no room for it."""
        ended = start.endswith(b"\n")
        line = start[: -2 if start.endswith(b"\r\n") else -1] if ended else start
        decoded = line.decode("utf-8", "surrogateescape")
        taken = decoded[: self.widest]
        raw = taken.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        safe = visible(raw)
        row = f"{number:6d}\t{safe[: self.widest]}"
        cut = len(decoded) > len(taken) or len(safe) > self.widest
        size = len(row.encode()) + 1
        if self.rows and size > self._room:
            return False
        self._room -= size
        self.rows.append(row)
        self.cut |= cut
        self.escaped |= safe != raw
        if safe != taken and _LIKE_AN_ESCAPE.search(taken):
            self.ambiguous.append(number)
        self.invalid += 0 if taken.isascii() else sum("\udc80" <= char <= "\udcff" for char in taken)
        return True

    def mark_cut(self, size: int, *, ended: bool) -> None:
        """Say that the last line is longer than shown: `size` bytes, or more if it was not read to its end."""
        self.rows[-1] += f"... [line cut: it has {'' if ended else 'more than '}{size:,} bytes]"


def take_page(file: BinaryIO, *, offset: int, limit: int, room: int) -> Page:
    """Return at most `limit` lines from line `offset` (from 1) on, in at most `room` bytes of text; at least one line.

    Only LF ends a line. `file` stands at its start. No more than `MAX_READ_BYTES` are read, and what is counted behind
    the page. Raises OSError.
    """
    tally, rows = _Tally(), _Rows(room)
    if _skip(file, offset - 1, tally):
        for number in range(offset, offset + limit):
            if not _take_line(file, number, tally, rows):
                break
    given_up = not tally.left
    counted = not given_up and _count_rest(file, tally)
    return Page(
        rows=tuple(rows.rows),
        lines=tally.lines,
        counted=counted,
        size=tally.size if counted else os.fstat(file.fileno()).st_size,
        crlf=tally.crlf,
        newlines=tally.newlines,
        invalid=rows.invalid,
        escaped=rows.escaped,
        cut=rows.cut,
        ambiguous=tuple(rows.ambiguous),
        given_up=given_up,
    )


def _skip(file: BinaryIO, lines: int, tally: _Tally) -> bool:
    """Move behind the first `lines` lines; return False if there are fewer, or they are too long."""
    while tally.newlines < lines:
        block = file.read(min(_BLOCK_BYTES, tally.left))
        if not block:
            return False
        missing = lines - tally.newlines
        if block.count(b"\n") < missing:
            tally.add(block)
            continue
        end = 0
        for _ in range(missing):
            end = block.index(b"\n", end) + 1
        tally.add(block[:end])
        file.seek(end - len(block), os.SEEK_CUR)
    return True


def _take_line(file: BinaryIO, number: int, tally: _Tally, rows: _Rows) -> bool:
    """Take the next line; return False at the end of what is read, or, standing before the line, if it finds no room."""
    piece = file.readline(min(rows.widest * 4, tally.left))  # a character has at most four bytes
    if not piece:
        return False
    start = piece.removeprefix(BYTE_ORDER_MARK) if number == 1 else piece
    cut_before, rows.cut = rows.cut, False
    if not rows.add(number, start):
        rows.cut = cut_before
        file.seek(-len(piece), os.SEEK_CUR)
        return False
    tally.add(piece)
    size = len(piece)
    while not piece.endswith(b"\n") and (piece := file.readline(min(_BLOCK_BYTES, tally.left))):
        tally.add(piece)
        size += len(piece)
    if rows.cut or not tally.left:
        rows.mark_cut(size, ended=tally.left > 0)
    rows.cut |= cut_before
    return True


def _count_rest(file: BinaryIO, tally: _Tally) -> bool:
    """Count what follows; return whether the end was reached."""
    left = MAX_COUNTED_BYTES
    while block := file.read(_BLOCK_BYTES):
        tally.add(block)
        left -= len(block)
        if left <= 0:
            return not file.read(1)
    return True
