"""The action log: one JSON object a line, each holding the hash of the line before; append, read, verify.

INVARIANT: `append(..., sync=True)` returns only when the record is on disk. After the first failure nothing can be
appended any more, so that nothing runs unrecorded.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from harness.actions import JsonValue
from harness.errors import LogError
from harness.record import Record

LogRecord: TypeAlias = Mapping[str, JsonValue]

VERSION = 1
NO_PREVIOUS = "0" * 64
"""`prev` of the first record."""
MASK = "[masked]"
MIN_SECRET_CHARACTERS = 8
"""Shorter values are not masked: they would blot out ordinary text."""

KINDS = (
    "session_started", "user_message", "model_request", "model_response", "call_proposed", "decision", "approval_asked",
    "approval_answered", "intent", "outcome", "limit", "error", "session_ended",
)  # fmt: skip

_COMMON_FIELDS = frozenset(("v", "seq", "time", "session", "kind", "prev"))
_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class ActionLog:
    """The open end of one log file. One writer per file, held by a lock for as long as it is open."""

    def __init__(
        self,
        *,
        path: str,
        descriptor: int,
        seq: int,
        previous: str,
        size: int,
        secrets: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Use `ActionLog.open`."""
        self.path = path
        self.session = os.urandom(6).hex()
        self.observers: list[Callable[[LogRecord], None]] = []
        self._descriptor = descriptor
        self._seq = seq
        self._previous = previous
        self._size = size
        self._secrets = _masks(secrets)
        self._clock = clock
        self._whole = True

    @classmethod
    def open(cls, path: str, *, secrets: Iterable[str] = (), clock: Callable[[], float] = time.time) -> ActionLog:
        """Open the log at `path`, made with mode 0600 if it is not there; an existing whole log is continued.

        `secrets` are values (of 8 characters or more) that are replaced by `[masked]` wherever they occur in a record.

        Raises LogError if it cannot be opened, is no regular file, is in use, or does not end in a whole record.
        """
        path = os.path.abspath(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise LogError(f"the action log cannot be opened: {path}: {error.strerror}") from None
        try:
            seq, previous = _continue_from(descriptor, path)
            _sync_folder(path)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(
            path=path,
            descriptor=descriptor,
            seq=seq,
            previous=previous,
            size=os.fstat(descriptor).st_size,
            secrets=secrets,
            clock=clock,
        )

    @property
    def head(self) -> str:
        """The hash of the last line: together with `count` it pins the whole file."""
        return self._previous

    @property
    def count(self) -> int:
        """How many records the file holds."""
        return self._seq

    def append(self, kind: str, fields: Mapping[str, JsonValue], *, sync: bool = False) -> LogRecord:
        """Append one record and show it to the observers; return it as it was written.

        With `sync` it is on disk when this returns.

        Raises LogError if it could not be written wholly, and ever after.
        """
        if not self._whole:
            raise LogError(f"the action log is closed after an error: {self.path}")
        record: dict[str, JsonValue] = {
            **fields,
            "v": VERSION,
            "seq": self._seq,
            "time": _timestamp(self._clock()),
            "session": self.session,
            "kind": kind,
            "prev": self._previous,
        }
        # INVARIANT: from here until the state is updated the log counts as broken, so that an exception of any kind
        # (a signal's included) can leave a closed log behind but never one whose chain goes on wrongly.
        self._whole = False
        encoded = _encode(record)
        masked = self._masked(encoded)
        line = masked.encode("ascii")
        self._write(line + b"\n", sync=sync)
        self._previous = hashlib.sha256(line).hexdigest()
        self._seq += 1
        self._size += len(line) + 1
        self._whole = True
        shown: LogRecord = record if masked is encoded else json.loads(line)
        for observer in self.observers:
            try:
                observer(shown)
            except Exception:  # noqa: BLE001, S110 - an observer that fails harms nothing (design: the loop)
                pass
        return shown

    def close(self) -> None:
        """Close the file; nothing can be appended afterwards. May be called again."""
        self._whole = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _masked(self, line: str) -> str:
        for secret in self._secrets:
            if secret in line:
                line = line.replace(secret, MASK)
        return line

    def _write(self, data: bytes, *, sync: bool) -> None:
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
            if sync:
                os.fdatasync(self._descriptor)
        except OSError as error:
            self._take_back()
            raise LogError(f"the action log cannot be written: {self.path}: {error.strerror}") from error

    def _take_back(self) -> None:
        """Cut a record that was written in part, so that the file ends in a whole one."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            pass  # verify reports the torn tail


def _masks(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the secrets as they stand inside encoded JSON, the longest first."""
    long_enough = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
    return tuple(sorted((_encode(secret)[1:-1] for secret in long_enough), key=len, reverse=True))


def _timestamp(seconds: float) -> str:
    """Return RFC 3339 in UTC with microseconds."""
    whole, fraction = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{fraction:06d}Z"


def _continue_from(descriptor: int, path: str) -> tuple[int, str]:
    """Lock the file and return the sequence number and hash that the next record continues from."""
    import stat

    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise LogError(f"the action log is not a regular file: {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LogError(f"the action log is in use by another process: {path}") from None
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0, NO_PREVIOUS
    line = _last_line(descriptor, size)
    record = parse_line(line) if line is not None else None
    if line is None or record is None or not isinstance(record.get("seq"), int):
        raise LogError(f"the action log does not end in a whole record; start another file: {path}")
    return int(str(record["seq"])) + 1, hashlib.sha256(line).hexdigest()


def _last_line(descriptor: int, size: int) -> bytes | None:
    """Return the last line without its newline, or None if the file does not end in one."""
    tail = b""
    position = size
    while position > 0 and tail.count(b"\n") < 2:
        step = min(65_536, position)
        position -= step
        tail = os.pread(descriptor, step, position) + tail
    return tail[:-1].rpartition(b"\n")[2] if tail.endswith(b"\n") else None


def _sync_folder(path: str) -> None:
    """Make the file's name durable (fsync(2): syncing a file does not sync the folder that names it)."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    except OSError:
        pass  # some file systems cannot sync a folder; the records themselves are synced
    finally:
        os.close(folder)


def parse_line(line: bytes) -> LogRecord | None:
    """Return the record in one raw line, or None if it is not one: strict JSON, an object, no key twice."""

    def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        record = dict(pairs)
        if len(record) != len(pairs):
            raise ValueError("a key stands twice")
        return record

    def refuse(constant: str) -> JsonValue:
        raise ValueError(f"{constant} is not JSON")

    try:
        record = json.loads(line, object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.keys() >= _COMMON_FIELDS else None


def read_log(path: str) -> Iterator[LogRecord]:
    """Yield the whole records of a log in order; stops at the first line that is not one.

    Raises LogError if the file cannot be read.
    """
    for line, whole in _lines(path):
        record = parse_line(line) if whole else None
        if record is None:
            return
        yield record


def _lines(path: str) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its newline, and whether it had one."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            for line in file:
                yield line.removesuffix(b"\n"), line.endswith(b"\n")
    except OSError as error:
        raise LogError(f"the action log cannot be read: {path}: {error.strerror}") from None


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


def verify(path: str) -> Verification:
    """Check a log: every line a record, sequence without gaps, every `prev` the hash of the line before, every run
    permitted beforehand, every call ended. Raises LogError if the file cannot be read.

    Proves that the file is consistent with its head; not that the head is the one that was written (compare it with the
    one kept elsewhere), nor that the harness was honest.
    """
    previous, count = NO_PREVIOUS, 0
    ledger = _Ledger()
    for number, (line, whole) in enumerate(_lines(path), start=1):
        if not whole:
            return ledger.verification(count, previous, torn=True)
        record = parse_line(line)
        problem = "is not a record" if record is None else _chain_problem(record, count, previous)
        if record is not None and not problem:
            problem = ledger.enter(record)
        if problem:
            return ledger.verification(count, previous, broken_line=number, problem=problem)
        previous, count = hashlib.sha256(line).hexdigest(), count + 1
    return ledger.verification(count, previous)


def _chain_problem(record: LogRecord, count: int, previous: str) -> str:
    if record["v"] != VERSION:
        return f"has version {record['v']!r}, not {VERSION}"
    if record["seq"] != count:
        return f"has sequence number {record['seq']!r}, not {count}"
    if record["prev"] != previous:
        return "does not hold the hash of the line before"
    if record["kind"] not in KINDS:
        return f"is of the unknown kind {record['kind']!r}"
    return ""


class _Ledger:
    """Which calls were proposed, decided, begun and ended: the order that the gate promises."""

    def __init__(self) -> None:
        self.sessions: dict[str, bool] = {}
        self.steps: dict[str, str] = {}
        self.permitted: dict[str, bool] = {}

    def enter(self, record: LogRecord) -> str:
        """Take in one record; return what is wrong with its place in the order, or nothing."""
        session, kind = str(record["session"]), str(record["kind"])
        if kind == "session_started":
            if session in self.sessions:
                return "starts a session that was started before"
            self.sessions[session] = True
            return ""
        if not self.sessions.get(session):
            return f"is a {kind} of a session that is not open"
        if kind == "session_ended":
            self.sessions[session] = False
            return ""
        call = f"{session}:{record.get('call')}"
        return self._enter_call(kind, call, record)

    def _enter_call(self, kind: str, call: str, record: LogRecord) -> str:
        before = {
            "call_proposed": (None,),
            "decision": ("call_proposed",),
            "approval_asked": ("decision",),
            "approval_answered": ("approval_asked",),
            "intent": ("decision", "approval_answered"),
            "outcome": ("decision", "approval_answered", "intent"),
        }
        if kind not in before:
            return ""
        step = self.steps.get(call)
        if step not in before[kind]:
            return f"is a {kind} of call {record.get('call')} after {step or 'nothing'}"
        if kind == "decision":
            self.permitted[call] = record.get("decision") == "auto"
        elif kind == "approval_answered":
            self.permitted[call] = record.get("answer") == "yes"
        elif kind == "intent" and not self.permitted.get(call):
            return f"is an intent of call {record.get('call')}, which nothing before it permits"
        self.steps[call] = kind
        return ""

    def verification(
        self, records: int, head: str, *, broken_line: int | None = None, problem: str = "", torn: bool = False
    ) -> Verification:
        return Verification(
            records=records,
            head=head,
            broken_line=broken_line,
            problem=problem,
            torn=torn,
            unknown_calls=tuple(call.partition(":")[2] for call, step in self.steps.items() if step == "intent"),
            open_sessions=tuple(session for session, is_open in self.sessions.items() if is_open),
        )
