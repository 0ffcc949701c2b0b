"""Reading many records quickly: lines of the wanted kinds are parsed, all others passed over; it verifies nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator

from harness.actions import JsonValue
from harness.log_lines import log_lines
from harness.log_order import LogRecord

_KIND = re.compile(rb'"kind":"([a-z_]{1,40})","')


def records(
    path: str,
    kinds: Collection[str] | None = None,
    *,
    stopped: Callable[[int], None] | None = None,
    passed_over: Callable[[bytes], bool] | None = None,
) -> Iterator[LogRecord]:
    """Yield the records of a log that are of these kinds (None: all), in order; stops at the first line that is none.

    `stopped` is told the number (from 1) of that line. A line of a wanted kind for which `passed_over` says so is not
    parsed either.

    Whether a line is of a wanted kind is told by its bytes, as the writer lays them out. Inside a text of a record a
    quotation mark is escaped, so that no text can look like the kind; an object within a record could, and is sorted out
    once it is parsed. What was read says nothing of the chain: verify the log first.

    A number that JSON cannot hold again (NaN, Infinity, 1e999) is a text. Raises LogError if the file cannot be read.
    """
    wanted = None if kinds is None else frozenset(kind.encode() for kind in kinds)
    for place, (line, whole) in enumerate(log_lines(path), start=1):
        if whole and wanted is not None and wanted.isdisjoint(_KIND.findall(line)) and line[:1] == b"{":
            continue
        if whole and passed_over is not None and passed_over(line):
            continue
        record = record_in(line) if whole else None
        if record is None:
            if stopped is not None:
                stopped(place)
            return
        if kinds is None or record["kind"] in kinds:
            yield record


def record_in(line: bytes) -> LogRecord | None:
    """Return the record in a line, or None. Not strict: what is wrong with a line is for `verify` to say."""
    try:
        record: JsonValue = _decode(line.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(isinstance(record.get(n), str) for n in ("kind", "session", "time")):
        return None
    return record


def _finite(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=str).decode
