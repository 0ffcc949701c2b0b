"""Open action logs and read their records. Pipes are refused, and at most one record is held in memory per line."""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO

from harness.actions import JsonValue
from harness.errors import LogError
from harness.log.order import LogRecord
from harness.log.schema import MAX_RECORD_BYTES
from harness.regex import regex
from harness.text.strict_json import no_number, once

NO_PREVIOUS = "0" * 64
"""`prev` of a log's first record."""
LARGEST = 2**63 - 1
_COMMON_FIELDS = frozenset(("v", "seq", "time", "mono_ns", "session", "kind", "prev"))

encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Encoder for the only form in which records are written."""

_BUFFER_BYTES = 1 << 20
_STEP = 65_536


def open_log(path: str) -> BinaryIO:
    """Open a log for reading. Raises LogError if it cannot be read, or is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb", buffering=_BUFFER_BYTES)
    os.close(descriptor)
    raise LogError(f"the action log cannot be read: {path}: not a regular file")


def unreadable(path: str, error: OSError) -> LogError:
    """Return the error to raise if a log cannot be read."""
    return LogError(f"the action log cannot be read: {path}: {error.strerror}")


def raw_lines(path: str) -> Iterator[bytes]:
    """Yield each line of a log with its newline. A line that is too long for a record is cut to MAX_RECORD_BYTES + 1.

    A cut line, and a torn last line, have no newline. Raises LogError if the log cannot be read.
    """
    try:
        with open_log(path) as file:
            while line := file.readline(MAX_RECORD_BYTES + 1):
                yield line
                rest = line
                while not rest.endswith(b"\n") and (rest := file.readline(_BUFFER_BYTES)):
                    pass  # skip the rest of a line that is too long
    except OSError as error:
        raise unreadable(path, error) from None


def log_lines(path: str) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its newline, and whether it is complete: it had a newline and was not too long.

    Raises LogError if the log cannot be read.
    """
    for line in raw_lines(path):
        yield line.removesuffix(b"\n"), line.endswith(b"\n")


def first_line(path: str) -> bytes:
    """Return the first line without its newline, cut if it is too long for a record. Raises LogError."""
    return next(raw_lines(path), b"").removesuffix(b"\n")


def last_line(descriptor: int, size: int) -> bytes | None:
    """Return the last line of a file of `size` bytes without its newline. `None` if it is torn or too long.

    Raises OSError.
    """
    pieces: list[bytes] = []
    position, ends = size, 0
    while position > 0 and ends < 2 and size - position <= MAX_RECORD_BYTES + 1:
        step = min(_STEP, position)
        position -= step
        pieces.append(os.pread(descriptor, step, position))
        ends += pieces[-1].count(b"\n")
        if not pieces[0].endswith(b"\n"):
            return None
    tail = b"".join(reversed(pieces))
    line = tail[:-1].rpartition(b"\n")[2]
    return line if tail.endswith(b"\n") and len(line) <= MAX_RECORD_BYTES else None


def size_and_end(path: str) -> tuple[int, bool]:
    """Return the size of a log in bytes, and whether it is empty or ends in a complete line. Raises LogError."""
    with open_log(path) as file:
        try:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return size, file.read(1) in (b"\n", b"")
        except OSError as error:
            raise unreadable(path, error) from None


def is_whole(path: str) -> bool:
    """Return whether a log is empty or ends in a complete line. Raises LogError if it cannot be read."""
    return size_and_end(path)[1]


def is_in_use(path: str) -> bool:
    """Return whether a running program holds the lock of a log. Raises LogError if it cannot be read."""
    with open_log(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def parse_line(line: bytes) -> LogRecord | None:
    """Return the record in one raw line. `None` unless it is strict JSON in ASCII: an object without duplicate keys."""
    try:
        # Decoded here, because json.loads guesses the encoding of bytes.
        record = json.loads(line.decode("ascii"), object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.keys() >= _COMMON_FIELDS else None


def read_log(path: str) -> Iterator[LogRecord]:
    """Yield the records of a log in order. Stops at the first line that is not a complete record.

    Raises LogError if the file cannot be read.
    """
    for line, is_complete in log_lines(path):
        record = parse_line(line) if is_complete else None
        if record is None:
            return
        yield record


def is_number(value: JsonValue, expected: int) -> bool:
    """Return whether `value` is the integer `expected`. Rejects `True` and `1.0`, which equal 1 in Python."""
    return type(value) is int and value == expected


_KIND = regex(rb'"kind":"([a-z_]{1,40})","')


def records(
    path: str,
    kinds: Collection[str] | None = None,
    *,
    stopped: Callable[[int], None] | None = None,
    passed_over: Callable[[bytes], bool] | None = None,
) -> Iterator[LogRecord]:
    """Yield the records of these kinds (`None` for all) from a log, in order.

    Stops at the first line that is not a record, and calls `stopped` with its number (from 1). Lines for which
    `passed_over` returns true are skipped without parsing.

    Lines of other kinds are recognized by their bytes, and are not parsed. No text in a record can look like a kind,
    because its quotation marks are escaped; an object in a record could, so the kind is checked again after parsing.
    The chain is not checked: verify the log first.

    A number that JSON cannot represent (NaN, Infinity, 1e999) is read as text. Raises LogError if the file cannot be
    read.
    """
    wanted_kinds = None if kinds is None else frozenset(kind.encode() for kind in kinds)
    for place, (line, is_complete) in enumerate(log_lines(path), start=1):
        if (
            is_complete
            and wanted_kinds is not None
            and wanted_kinds.isdisjoint(_KIND.findall(line))
            and line[:1] == b"{"
        ):
            continue
        if is_complete and passed_over is not None and passed_over(line):
            continue
        record = record_in(line) if is_complete else None
        if record is None:
            if stopped is not None:
                stopped(place)
            return
        if kinds is None or record["kind"] in kinds:
            yield record


class WholeRecords:
    """The records of a log, each with its line. Other lines are skipped and counted. Iterating raises LogError."""

    def __init__(self, path: str) -> None:
        """Use the log at `path`. The attributes below are final after the last record was yielded."""
        self._path = path
        self.left_out = 0
        """Number of lines that are not records."""
        self.torn = False
        """Whether the last line is torn. It is not counted, since a session may be writing it right now."""

    def __iter__(self) -> Iterator[tuple[bytes, LogRecord]]:
        """Yield line and record, in order."""
        for line, is_whole in log_lines(self._path):
            self.left_out += self.torn  # the previous line was not the last one, so it is too long for a record
            self.torn = not is_whole
            record = record_in(line) if is_whole else None
            if record is not None:
                yield line, record
            else:
                self.left_out += is_whole


def record_in(line: bytes) -> LogRecord | None:
    """Return the record in a line, or `None`. Not strict: `verify` reports the errors in a line."""
    try:
        written = line.strip(b" \t\r").decode("ascii")
        record, end = _decode(written)
    except (ValueError, RecursionError):
        return None
    if end != len(written) or not isinstance(record, dict):
        return None
    for name in ("kind", "session", "time"):
        if not isinstance(record.get(name), str):
            return None
    return record


def _finite(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=str).raw_decode


def whole_number(value: JsonValue) -> int | None:
    """Return `value` if it is an integer of at most 63 bits, or `None`. A forged record may contain larger ones."""
    if isinstance(value, bool) or not isinstance(value, int) or not -LARGEST <= value <= LARGEST:
        return None
    return value


def finite(value: JsonValue) -> float | None:
    """Return `value` as a finite number below 1e15, or `None`. Python's JSON reader also returns NaN and infinities."""
    if isinstance(value, float):
        return value if -1e15 < value < 1e15 else None
    number = whole_number(value)
    return None if number is None else float(number)
