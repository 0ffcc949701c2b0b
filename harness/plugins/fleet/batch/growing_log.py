"""The head of a log that is being written: how many records it has, and the digest of the last. Only its end is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.log.reader import open_log, parse_line, unreadable
from harness.log.schema import MAX_RECORD_BYTES
from harness.record import Record

_STEP = 65_536


class LogHead(Record):
    """The head of a log after its whole lines; a torn line at the end is left out."""

    records: int
    head: str
    """The SHA-256 of the last whole line, which is what `harness audit verify --head` takes."""
    size: int
    """The bytes up to the end of that line."""
    session: str
    closed: bool
    """Whether the last record says that the session ended."""
    time: str
    """Time of that record (RFC 3339)."""

    def note(self, file: str) -> bytes:
        """Return the head as a line of a heads file, which `harness audit verify --heads` takes. `file` is the log's path."""
        entry: dict[str, JsonValue] = {
            "file": file,
            "session": self.session,
            "records": self.records,
            "head": self.head,
            "closed": self.closed,
            "time": self.time,
            "size": self.size,
        }
        return heads_line(entry)


def heads_line(note: Mapping[str, JsonValue]) -> bytes:
    """Return the note of a head as a line of a heads file."""
    return json.dumps(note, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def head_of(path: str) -> LogHead | None:
    """Return the current head of a log. `None` if the log does not end in a whole record.

    The number of records comes from the last one: a log counts them from 0 without gaps. Raises LogError if the log
    cannot be read.
    """
    try:
        with open_log(path) as file:
            line, size = _last_whole_line(file.fileno(), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise unreadable(path, error) from None
    record = parse_line(line) if line else None
    if record is None or type(record["seq"]) is not int:
        return None
    return LogHead(
        records=record["seq"] + 1,
        head=digest_of(line),
        size=size,
        session=str(record["session"]),
        closed=record["kind"] == "session_ended",
        time=str(record["time"]),
    )


class GrowingLog:
    """A log that is looked at again and again while it grows."""

    def __init__(self, path: str) -> None:
        """Take the path of the log, which need not be there yet."""
        self.path = path
        self.head: LogHead | None = None
        """The head at the last look."""
        self._size = -1

    def look(self) -> LogHead | None:
        """Return the head if it differs from the one at the last look, otherwise `None`.

        A log of unchanged size is not read. Raises LogError if the log cannot be read; a missing log is not an error.
        """
        try:
            size = os.stat(self.path).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(self.path, error) from None
        if size == self._size:
            return None
        head = head_of(self.path)
        self._size = size
        if head is None or head == self.head:
            return None
        self.head = head
        return head


def _last_whole_line(descriptor: int, size: int) -> tuple[bytes, int]:
    """Return the last complete line without its newline, and the offset after that newline. `(b"", 0)` if there is
    none.

    Raises OSError.
    """
    step = _STEP
    while True:
        begin = max(0, size - step)
        tail = os.pread(descriptor, size - begin, begin)
        end = tail.rfind(b"\n")
        before = tail.rfind(b"\n", 0, max(end, 0))
        if end >= 0 and (before >= 0 or not begin):
            return tail[before + 1 : end], begin + end + 1
        if not begin or step > 2 * MAX_RECORD_BYTES:
            return b"", 0
        step *= 4
