"""Verify an action log: read the whole file, and return the proven facts.

Uses constant memory: one line at a time, and at most MAX_RECORD_BYTES of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from harness.log.clocks import Clocks, Jump
from harness.log.order import Ledger, LogRecord
from harness.log.reader import NO_PREVIOUS, encode, first_line, is_number, parse_line, raw_lines
from harness.log.schema import MAX_RECORD_BYTES, VERSION
from harness.log.schema import problem as schema_problem
from harness.log.vocabulary import DECISIONS
from harness.record import Record
from harness.redaction.marks import is_redacted, marks_in, marks_of
from harness.regex import regex

_PREVIOUS = regex(rb'"prev":"([0-9a-f]{64})"')
_decode = json.JSONDecoder().raw_decode


_MOST_JUMPS = 100
_MOST_UNJUDGED = 1_000
_STRICTNESS = {decision: rank for rank, decision in enumerate(DECISIONS)}


class Verification(Record):
    """The result of reading a whole log."""

    records: int
    head: str
    """Hash of the last valid line."""
    bytes: int = 0
    """Size of the valid lines in bytes, including newlines."""
    sessions: tuple[str, ...] = ()
    """Sessions in the order in which they began."""
    broken_line: int | None = None
    """Number (from 1) of the first invalid line. `None` if all lines are valid."""
    broken_offset: int = 0
    """Offset of that line in bytes from the start of the file."""
    problem: str = ""
    torn: bool = False
    """Whether the last line has no newline, because of a crash while it was written."""
    torn_bytes: int = 0
    unknown_calls: tuple[str, ...] = ()
    """Calls with an intent but no outcome. They may have run completely or in part."""
    open_sessions: tuple[str, ...] = ()
    """Sessions without a record of their end."""
    unjudged: tuple[str, ...] = ()
    """Calls that an agent ran and that were not allowed, as `session:tool`: the first `_MOST_UNJUDGED`."""
    passed_head: bool = False
    """Whether a line has the requested hash. Up to that line, the log is identical to the one that had this head."""
    missed: int | None = None
    """Lowest count in `noted` at which the log has another head, or has too few records. `None` if all heads match."""
    policy_texts: int = 0
    """Number of policy files whose text in the log has the stated digest."""
    masked_policies: tuple[str, ...] = ()
    """Policy files whose text in the log has masked secrets, so that their digests could not be checked."""
    jumps: tuple[Jump, ...] = ()
    """Jumps of the wall clock: the first `_MOST_JUMPS`."""
    held_arguments: int = 0
    """Number of calls whose arguments have the stated digest."""
    masked_arguments: int = 0
    """Number of calls with masked secrets in their arguments, so that their digests could not be checked."""
    cut_arguments: int = 0
    """Number of calls whose arguments are cut in the log."""


def verify(path: str, head: str | None = None, noted: Mapping[int, frozenset[str]] | None = None) -> Verification:
    """Check a log, and return the result. Raises LogError if the file cannot be read.

    Checks for each line that it is a record in the form of the harness, with the fields of its kind. The sequence has
    no gaps, and each `prev` is the hash of the line before. Within a session, the clock never goes back. Every run was
    permitted beforehand, and every call ended. Arguments and policies have the stated digests.

    `head` is an earlier hash of the log that was stored elsewhere; the result says whether a line has it. `noted` are
    earlier heads by their number of records; the log must contain all of them.

    This proves that the file is consistent with these heads. It does not prove that the heads are the original ones
    (compare them with copies elsewhere), nor that the harness was honest.
    """
    reading = _Reading(head, noted or {})
    for line in raw_lines(path):
        if not reading.take(line):
            break
    return reading.verification()


def is_as_noted(path: str, noted: Mapping[int, frozenset[str]]) -> bool:
    """Return whether a log is exactly the one whose last head was noted, and contains all earlier noted heads.

    Only the chain is checked, which takes little more time than hashing; the content of records is not. Also false if a
    record has two `prev`: such a log needs a full verification. Raises LogError if it cannot be read.
    """
    count, previous = 0, NO_PREVIOUS
    for line in raw_lines(path):
        # A text in a record cannot match, because its quotation marks are escaped. A nested object may have a `prev`.
        if not line.endswith(b"\n") or _PREVIOUS.findall(line) != [previous.encode()]:
            return False
        count, previous = count + 1, hashlib.sha256(line[:-1]).hexdigest()
        if count in noted and noted[count] != {previous}:
            return False
    return count == max(noted, default=None)  # nothing follows the head that was noted last


def first_session(path: str) -> str:
    """Return the session of the first record. Empty if the first line is not a record.

    Raises LogError if the log cannot be read.
    """
    record = parse_line(first_line(path))
    session = record["session"] if record is not None else ""
    return session if isinstance(session, str) else ""


class _Reading:
    """State of a verification that reads a log line by line."""

    def __init__(self, head: str | None, noted: Mapping[int, frozenset[str]]) -> None:
        self.head, self.noted = head, noted
        self.previous, self.count, self.bytes = NO_PREVIOUS, 0, 0
        self.torn_bytes = 0
        self.problem = ""
        self.passed = False
        self.missed: int | None = None
        self.ledger = Ledger()
        self.clocks: dict[str, int] = {}
        """Monotonic time of the last record of each session, in nanoseconds."""
        self.wall_clocks = Clocks()
        self.jumps: list[Jump] = []
        self.unjudged: list[str] = []
        self.policies = _Policies()
        self.arguments = _Arguments()

    def take(self, line: bytes) -> bool:
        """Check one line, including its newline. Return whether it is valid."""
        if not line.endswith(b"\n"):
            if len(line) > MAX_RECORD_BYTES:
                self.problem = f"is longer than {MAX_RECORD_BYTES} bytes"
            else:
                self.torn_bytes = len(line)
            return False
        raw = line[:-1]
        record, self.problem = _read_record(raw)
        if record is not None:
            try:
                self.problem = self._problem(record)
            except RecursionError:
                self.problem = "is nested more deeply than any record"
        if self.problem:
            return False
        self.previous, self.count = hashlib.sha256(raw).hexdigest(), self.count + 1
        self.bytes += len(line)
        self.passed = self.passed or self.previous == self.head
        if record is not None and (jump := self.wall_clocks.jump(record)) and len(self.jumps) < _MOST_JUMPS:
            self.jumps.append(jump)
        if record is not None and record["kind"] == "ran_unjudged" and len(self.unjudged) < _MOST_UNJUDGED:
            self.unjudged.append(f"{record['session']}:{record['tool']}")
        if self.count in self.noted and self.missed is None and self.noted[self.count] != {self.previous}:
            self.missed = self.count
        return True

    def _problem(self, record: LogRecord) -> str:
        return (
            _chain_problem(record, self.count, self.previous)
            or schema_problem(record)
            or self.ledger.enter(record)
            or (self.arguments.problem(record) if record["kind"] == "call_proposed" else "")
            or (_decision_problem(record) if record["kind"] == "decision" else "")
            or (self.policies.problem(record) if record["kind"] in ("session_started", "policy_changed") else "")
            or self._clock_problem(record)
        )

    def _clock_problem(self, record: LogRecord) -> str:
        session, now = str(record["session"]), record["mono_ns"]
        assert isinstance(now, int)  # noqa: S101 - the schema says so
        if now < self.clocks.get(session, 0):
            return "was written before the one before it, by the monotonic clock of its session"
        self.clocks[session] = now
        return ""

    def verification(self) -> Verification:
        beyond = [count for count in self.noted if count > self.count]
        missed = self.missed if self.missed is not None else min(beyond, default=None)
        return Verification(
            records=self.count,
            head=self.previous,
            bytes=self.bytes,
            sessions=tuple(self.clocks),
            broken_line=self.count + 1 if self.problem else None,
            broken_offset=self.bytes if self.problem else 0,
            problem=self.problem,
            torn=self.torn_bytes > 0,
            torn_bytes=self.torn_bytes,
            unknown_calls=self.ledger.unknown_calls,
            open_sessions=self.ledger.open_sessions,
            unjudged=tuple(self.unjudged),
            passed_head=self.passed,
            missed=missed,
            policy_texts=self.policies.good,
            masked_policies=tuple(self.policies.masked),
            jumps=tuple(self.jumps),
            held_arguments=self.arguments.proved,
            masked_arguments=self.arguments.masked,
            cut_arguments=self.arguments.cut,
        )


def _read_record(raw: bytes) -> tuple[LogRecord | None, str]:
    """Return the record in one raw line, and a description of its problem as JSON, or an empty string.

    A record that encodes to the same bytes again is strict JSON in the form of the harness: sorted keys, no duplicates,
    no NaN, no blanks. Other lines are parsed again by a slower parser, to distinguish an invalid record from a record
    in another form.
    """
    try:
        text = raw.decode("ascii")
        record, _ = _decode(text)
        if isinstance(record, dict) and encode(record) == text:
            return record, ""
    except (ValueError, RecursionError):
        pass
    if parse_line(raw) is None:
        return None, "is not a record"
    return None, "is a record, but not in the form in which the harness writes them: another program wrote this line"


def _chain_problem(record: LogRecord, count: int, previous: str) -> str:
    version, seq = record.get("v"), record.get("seq")
    if not is_number(version, VERSION):
        return f"has version {version!r}, not {VERSION}"[:200]
    if not is_number(seq, count):
        return f"has sequence number {seq!r}, not {count}"[:200]
    if record.get("prev") != previous:
        return "does not hold the hash of the line before"
    return ""


def _decision_problem(record: LogRecord) -> str:
    """Return the problem if a decision is not the strictest of its parts' decisions; otherwise an empty string.

    The gate always decides by the strictest part.
    """
    facets, decision = record.get("facets"), record.get("decision")
    if not isinstance(facets, list) or not facets:
        return ""
    ranks = [_STRICTNESS.get(str(facet.get("decision")), -1) for facet in facets if isinstance(facet, dict)]
    strictest, rank = max(ranks, default=-1), _STRICTNESS.get(str(decision), -1)
    if min(ranks, default=-1) < 0:
        return "holds a part of a call that was decided in no known way"
    if strictest > rank or (strictest < rank and len(facets) == record.get("facet_count")):
        return f"decides {decision} on call {record.get('call')}, and its parts come to another decision"
    return ""


class _Arguments:
    """Checks the arguments of calls against the stated digest, which decisions and intents also contain."""

    def __init__(self) -> None:
        self.proved = 0
        self.masked = 0
        self.cut = 0

    def problem(self, record: LogRecord) -> str:
        """Return the problem with the arguments of a proposed call, or an empty string."""
        text, characters = str(record["arguments"]), record.get("arguments_characters")
        if isinstance(characters, int) and characters > len(text):
            self.cut += 1
        elif _sha256_of(text) == record["arguments_sha256"]:
            self.proved += 1
        elif marks_of(record).intersection(marks_in(text)):
            self.masked += 1
        else:
            return f"holds other arguments of call {record['call']} than those of the digest that it gives"
        return ""


class _Policies:
    """Checks the texts of the policy files that sessions name against their stated digests."""

    def __init__(self) -> None:
        self.good = 0
        self.masked: dict[str, None] = {}

    def problem(self, record: LogRecord) -> str:
        """Return the problem with the policy texts in a record that names the policies in force, or an empty string."""
        files = record.get("policy_files")
        for file in files if isinstance(files, list) else ():
            text = file.get("text") if isinstance(file, dict) else None
            if not isinstance(file, dict) or not isinstance(text, str):
                continue
            if _sha256_of(text) == file.get("sha256"):
                self.good += 1
            elif is_redacted(text):
                self.masked[str(file.get("path"))] = None
            else:
                return f"holds a text of the policy {str(file.get('path'))!r} that has another digest than it says"[
                    :400
                ]
        return _policy_problem(record)


def _policy_problem(record: LogRecord) -> str:
    """Return the problem if a session's policy digest does not match its policy files; otherwise an empty string.

    The session's calls were judged by the policy with that digest.
    """
    files, claimed = record.get("policy_files"), record.get("policy_sha256")
    if not isinstance(files, list) or not files or claimed is None:
        return ""
    policy_files = [file for file in files if isinstance(file, dict)]
    if len(policy_files) == 1:
        digest = policy_files[0].get("sha256")
    else:  # the same calculation as in `Policy.sha256`
        lines = sorted(f"{file.get('layer')} {file.get('sha256')} {file.get('trusted')}" for file in policy_files)
        digest = _sha256_of("\n".join(lines))
    return "" if digest == claimed else "names a policy that is not the one of the files it was made of"


def _sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
