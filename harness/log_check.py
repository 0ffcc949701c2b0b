"""Verify an action log: reads a whole file and says what that proved; writes and repairs nothing."""

from __future__ import annotations

import hashlib

from harness.action_log import KINDS, NO_PREVIOUS, VERSION, is_number, log_lines, parse_line
from harness.log_order import Ledger, LogRecord
from harness.record import Record


class Verification(Record):
    """What reading a whole log showed."""

    records: int
    head: str
    """Hash of the last good line."""
    broken_line: int | None = None
    """The first line (from 1) that does not follow from the one before."""
    problem: str = ""
    torn: bool = False
    """The last line has no end: a crash while it was written."""
    unknown_calls: tuple[str, ...] = ()
    """Calls with an intent and no outcome: they may have run, wholly or in part."""
    open_sessions: tuple[str, ...] = ()
    """Sessions that never said that they ended."""
    passed_head: bool = False
    """Whether some line has the hash that was asked for: up to there the log is the one that had this head."""


def verify(path: str, head: str | None = None) -> Verification:
    """Check a log: every line a record, sequence without gaps, every `prev` the hash of the line before, every run
    permitted beforehand, every call ended. Raises LogError if the file cannot be read.

    `head` is a hash that the log had once, kept elsewhere; the result says whether a line still has it.

    Proves that the file is consistent with its head; not that the head is the one that was written (compare it with the
    one kept elsewhere), nor that the harness was honest.
    """
    previous, count, passed = NO_PREVIOUS, 0, False
    ledger = Ledger()
    for number, (line, whole) in enumerate(log_lines(path), start=1):
        if not whole:
            return _verification(ledger, count, previous, passed, torn=True)
        record = parse_line(line)
        problem = "is not a record" if record is None else _chain_problem(record, count, previous)
        if record is not None and not problem:
            problem = ledger.enter(record)
        if problem:
            return _verification(ledger, count, previous, passed, broken_line=number, problem=problem)
        previous, count = hashlib.sha256(line).hexdigest(), count + 1
        passed = passed or previous == head
    return _verification(ledger, count, previous, passed)


def _chain_problem(record: LogRecord, count: int, previous: str) -> str:
    if not is_number(record["v"], VERSION):
        return f"has version {record['v']!r}, not {VERSION}"
    if not is_number(record["seq"], count):
        return f"has sequence number {record['seq']!r}, not {count}"
    if record["prev"] != previous:
        return "does not hold the hash of the line before"
    if record["kind"] not in KINDS:
        return f"is of the unknown kind {record['kind']!r}"
    return ""


def _verification(
    ledger: Ledger,
    records: int,
    head: str,
    passed_head: bool,
    *,
    broken_line: int | None = None,
    problem: str = "",
    torn: bool = False,
) -> Verification:
    return Verification(
        records=records,
        head=head,
        broken_line=broken_line,
        problem=problem,
        torn=torn,
        unknown_calls=ledger.unknown_calls,
        open_sessions=ledger.open_sessions,
        passed_head=passed_head,
    )
