"""Write the action log: one JSON object per line, each with the hash of the line before.

INVARIANT: `append(..., sync=True)` returns only when the record is on disk. After the first failure, every further
append fails too, so that no call runs unrecorded.
"""

from __future__ import annotations

import os
import stat
import time
from _thread import RLock, get_ident
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from harness.actions import JsonValue
from harness.declared_types import check_arguments
from harness.digest import digest_of
from harness.errors import LogError
from harness.log.clocks import timestamp
from harness.log.order import Ledger, LogRecord
from harness.log.reader import NO_PREVIOUS, encode, is_number, last_line, parse_line
from harness.log.schema import MAX_RECORD_BYTES, VERSION
from harness.redaction.redactor import Redactor
from harness.safe_files import is_locked_within, sync_names, write_whole
from harness.system import sync_data

_open_files: set[tuple[int, int]] = set()
"""Device and inode of each log that this process has open."""
BEGIN_FIRST = "begin one with `Agent.start`, `Agent.run` or `with GatedTools(...)`"


class ActionLog:
    """One log file, open for appending. Each file has one writer: an open log holds the file's lock.

    Any thread may append: records are written, and shown to the observers, one at a time.
    """

    def __init__(  # noqa: PLR0913 - one caller
        self,
        *,
        path: str,
        descriptor: int,
        seq: int,
        previous: str,
        size: int,
        redactor: Redactor,
        clock: Callable[[], float],
        monotonic_ns: Callable[[], int],
        write: Callable[[int, bytes], int],
        sync: Callable[[int], None],
    ) -> None:
        """Use `ActionLog.open`."""
        self.path = path
        self._session = os.urandom(6).hex()
        self._sessions: dict[int, str] = {}
        """The sessions of threads that write a separate one, by thread."""
        self._turn = RLock()
        """The lock for appending."""
        self.observers: list[Callable[[LogRecord], None]] = []
        self.redactor = redactor
        self._descriptor = descriptor
        self._seq = seq
        self._previous = previous
        self._size = size
        self._clock = clock
        self._monotonic_ns = monotonic_ns
        self._write_some = write
        self._sync = sync
        self._is_usable = True
        self._ledger = Ledger()
        self._file = _identity(descriptor)
        _open_files.add(self._file)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        secrets: Iterable[str] = (),
        redactor: Redactor | None = None,
        wait_seconds: float = 0.0,
        clock: Callable[[], float] = time.time,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        write: Callable[[int, bytes], int] = os.write,
        sync: Callable[[int], None] = sync_data,
    ) -> ActionLog:
        """Open the log at `path`. A new file gets mode 0600; an existing log is continued.

        Every text of a record goes through `redactor` before it is written. `None` selects a redactor for the values
        `secrets` and for text with the usual form of secrets. `wait_seconds` is the maximum wait for another process
        that writes the log. `write` and `sync` are functions like write(2) and fdatasync(2).

        Raises LogError if the log cannot be opened, is not a regular file, is in use, or does not end in a complete
        record.
        """
        check_arguments(ActionLog.open, locals())
        path = os.path.abspath(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise LogError(f"the action log cannot be opened: {path}: {error.strerror}") from None
        try:
            seq, previous = _continue_from(descriptor, path, wait_seconds)
            sync_names(os.path.dirname(path))
        except BaseException:
            os.close(descriptor)
            raise
        if redactor is None:
            redactor = Redactor(secrets)
        return cls(
            path=path,
            descriptor=descriptor,
            seq=seq,
            previous=previous,
            size=os.fstat(descriptor).st_size,
            redactor=redactor,
            clock=clock,
            monotonic_ns=monotonic_ns,
            write=write,
            sync=sync,
        )

    @property
    def session(self) -> str:
        """The session to which this thread writes now."""
        return self._sessions.get(get_ident(), self._session)

    @session.setter
    def session(self, name: str) -> None:
        if get_ident() in self._sessions:
            self._sessions[get_ident()] = name
        else:
            self._session = name

    @contextmanager
    def session_of_thread(self) -> Iterator[None]:
        """Let this thread write a separate session until the end of the block. Other threads keep theirs."""
        self._sessions[get_ident()] = self._session
        try:
            yield
        finally:
            del self._sessions[get_ident()]

    def held(self) -> AbstractContextManager[object]:
        """Return a context manager that blocks appends of other threads, for example while the user reads a question."""
        return self._turn

    @property
    def head(self) -> str:
        """The hash of the last line. Together with `count`, it identifies the content of the whole file."""
        return self._previous

    @property
    def count(self) -> int:
        """Number of records in the file."""
        return self._seq

    @property
    def size(self) -> int:
        """Size of the file, in bytes."""
        return self._size

    @property
    def counts(self) -> dict[str, int]:
        """Counts of the current session's calls: total, and number by decision, answer and status."""
        return self._ledger.counts(self.session)

    @property
    def fault(self) -> str:
        """Reason why nothing can be appended. Empty while the log is usable."""
        if self._descriptor < 0:
            return f"the action log is closed: {self.path}"
        return "" if self._is_usable else f"the action log is closed after an error: {self.path}"

    def check_free(self, sessions: Collection[str]) -> None:
        """Raise LogError if a session is open that is not in `sessions`, unless this thread writes a separate one."""
        if get_ident() not in self._sessions and not set(self._ledger.open_sessions).issubset(sessions):
            raise LogError(f"the action log has an open session: {self.path} (agents at once need one log for each)")

    def begin_session(self) -> str:
        """Start a new session for the following records, and return its name."""
        self.session = os.urandom(6).hex()
        return self.session

    def resume_session(self, session: str, ledger: Ledger) -> None:
        """Continue an open session that another process began. `ledger` has the state of its records."""
        self.session = session
        self._ledger = ledger

    @property
    def granted(self) -> frozenset[str]:
        """The names of the grants in force in the current session."""
        return self._ledger.grants(self.session)

    def saved_session(self) -> dict[str, JsonValue]:
        """Return the state of the current session for `Ledger.restored`. Raises KeyError if no session is open."""
        return self._ledger.saved(self.session)

    def last_step(self, call: int) -> str | None:
        """Return the kind of the last record about a call of the current session. `None` if the call has ended."""
        return self._ledger.last_step(self.session, call)

    @property
    def running_call(self) -> int:
        """The number of the running call in the current session. Raises LogError if none is running."""
        return self._ledger.running_call(self.session)

    def append(self, kind: str, fields: Mapping[str, JsonValue], *, sync: bool = False) -> LogRecord:
        """Append one record, and show it to the observers. Return the record as it was written.

        With `sync`, it is on disk when this returns.

        Raises LogError if it could not be written completely; then all later calls raise it too. Raises LogError also
        for a record outside of a session. Such a record changes nothing.
        """
        with self._turn:
            record = self._appended(kind, fields, sync=sync)
            for observer in tuple(self.observers):
                try:
                    observer(record)
                except (Exception, SystemExit):  # noqa: BLE001, S110 - an observer that fails harms nothing (design: the loop)
                    pass
        return record

    def _appended(self, kind: str, fields: Mapping[str, JsonValue], *, sync: bool) -> LogRecord:
        if not self._is_usable:
            raise LogError(self.fault)
        if kind != "session_started" and not self._ledger.is_open(self.session):
            raise LogError(f"the action log refuses a {kind}, since no session is open: {self.path} ({BEGIN_FIRST})")
        # INVARIANT: from here until the state is updated, the log counts as broken. So any exception (also from a
        # signal handler) may leave a closed log, but never one that continues with a wrong chain.
        self._is_usable = False
        record = self._record(kind, fields)
        problem = self._ledger.enter(record)
        if problem and kind == "intent":
            raise LogError(f"the action log refuses a record that {problem}: {self.path}")
        self._check_untouched()
        try:
            line = encode(record).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise LogError(
                f"the action log cannot be written: {self.path}: invalid JSON in a {kind}: {error}"
            ) from error
        if len(line) > MAX_RECORD_BYTES:
            raise LogError(
                f"the action log cannot be written: {self.path}: a record of {len(line)} bytes is too large ({kind})"
            )
        self._write(line + b"\n", sync=sync)
        self._previous = digest_of(line)
        self._seq += 1
        self._size += len(line) + 1
        self._is_usable = True
        return record

    def _record(self, kind: str, fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        record, masked = self.redactor.fields(fields)
        record |= {
            "v": VERSION,
            "seq": self._seq,
            "time": timestamp(self._clock(), digits=6),
            "mono_ns": self._monotonic_ns(),
            "session": self.session,
            "kind": kind,
            "prev": self._previous,
        }
        if masked:
            record["masked"] = dict(masked)
        return record

    def _check_untouched(self) -> None:
        """Raise LogError if the file has an unexpected size, or was removed.

        A command that may write the log's folder could cause that. Changes of earlier records are not detected here,
        but by the chain and the head.
        """
        status = os.fstat(self._descriptor)
        if status.st_size != self._size or status.st_nlink == 0:
            raise LogError(f"the action log was changed by another program: {self.path}")

    def close(self) -> None:
        """Close the file: appending fails afterwards. May be called again."""
        self._is_usable = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _open_files.discard(self._file)

    def _write(self, data: bytes, *, sync: bool) -> None:
        try:
            write_whole(self._descriptor, data, self._write_some)
            if sync:
                self._sync(self._descriptor)
        except BaseException as error:
            self._take_back()
            if isinstance(error, OSError):
                raise LogError(f"the action log cannot be written: {self.path}: {error.strerror}") from error
            raise

    def _take_back(self) -> None:
        """Remove a partly written record, so that the file ends in a complete one."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            pass  # verify reports the torn tail


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _continue_from(descriptor: int, path: str, wait_seconds: float) -> tuple[int, str]:
    """Lock the file. Return the sequence number of the next record, and the hash of the last one."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise LogError(f"the action log is not a regular file: {path}")
    try:
        is_locked = is_locked_within(descriptor, wait_seconds)
    except OSError:
        is_locked = False
    if not is_locked:
        if _identity(descriptor) in _open_files:
            raise LogError(f"the action log is open already in this process: {path}")
        raise LogError(f"the action log is in use by another process: {path}")
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0, NO_PREVIOUS
    line = last_line(descriptor, size)
    record = parse_line(line) if line is not None else None
    seq = record["seq"] if record is not None and is_number(record["v"], VERSION) else None
    if line is None or not isinstance(seq, int) or isinstance(seq, bool):
        raise LogError(f"the action log does not end in a whole record; start another file: {path}")
    return seq + 1, digest_of(line)
