"""The head of a log that is still being written: its number of records and the digest of the last.

Reads only the end.
"""

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
    """The head of a log. An incomplete line at the end of the log does not count."""

    records: int
    head: str
    """SHA-256 of the last complete line, as `harness audit verify --head` accepts it."""
    size: int
    """Size of the log up to the end of that line, in bytes."""
    session: str
    closed: bool
    """Whether the last record says that the session ended."""
    time: str
    """Time of that record (RFC 3339)."""

    def note(self, file: str) -> bytes:
        """Return the head as a line of a heads file for `harness audit verify --heads`. `file` is the log's path."""
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
    """Return the fields of a head as a line of a heads file."""
    return json.dumps(note, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def head_of(path: str) -> LogHead | None:
    """Return the current head of a log. `None` if its last complete line is not a record.

    The number of records follows from the number of the last one, since records are numbered from 0 without gaps.
    Raises LogError if the log cannot be read.
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
    """A log that is read repeatedly while it grows."""

    def __init__(self, path: str) -> None:
        """Follow the log at `path`, which need not exist yet."""
        self.path = path
        self.head: LogHead | None = None
        """The head that `look` found last."""
        self._size = -1

    def look(self) -> LogHead | None:
        """Return the head if it has changed since the last call, otherwise `None`.

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
