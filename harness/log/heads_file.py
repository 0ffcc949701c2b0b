"""The heads file: the size and head of every log, recorded outside the logs while they grow; and signed notes of a head.

Each line is a note, {file, session, records, head, closed, time, size}, or a tombstone. A tombstone records that a log
was removed on purpose. A signed note is a file beside its log; `signed_heads` makes and checks the signature.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import LogError, UsageError
from harness.log.clocks import timestamp
from harness.record import Record
from harness.safe_files import append_line, is_locked_within
from harness.system import sync_data

if TYPE_CHECKING:
    from harness.log.action_log import ActionLog


class Note(Record):
    """One line of the heads file."""

    file: str
    """The log, as an absolute path."""
    session: str
    """The session that was being written. In a tombstone, the first session of the log."""
    records: int
    head: str
    closed: bool = False
    time: str = ""
    size: int | None = None
    """Size of the log, in bytes. `None` in notes of older versions."""
    tombstone: str = ""
    """The reason why the log was removed; empty if it was not removed."""
    by: str = ""
    """The user who removed it."""
    lost: bool = False
    """Whether the log's end is unknown: the log was missing when another one was started under its name."""
    torn_sha256: str = ""
    """SHA-256 of a torn end that `audit recover` is about to cut off."""


class KnownHead(Record):
    """The combined notes of one log: its last size and head, and all earlier heads, which the log must contain."""

    records: int
    head: str
    closed: bool = True
    """Whether the last note was made when the log was closed."""
    file: str = ""
    """Path of the log in the notes."""
    time: str = ""
    """Time of the last note."""
    removed: str = ""
    """The reason why the log was removed, if its last note is a tombstone; otherwise empty."""
    lost: bool = False
    """Whether it was missing when another log was started under its name."""
    noted: Mapping[int, frozenset[str]] = {}
    """All noted heads, by the number of records."""
    torn: frozenset[str] = frozenset()
    """The digests of torn ends that `audit recover` was about to cut off."""

    @property
    def is_missed(self) -> bool:
        """Whether the log should exist: it has records and was not removed on purpose."""
        return bool(self.records) and not self.removed

    @property
    def words(self) -> str:
        """Description of the log, for users who learn that it is missing."""
        when = "missed, when another log was begun under its name," if self.lost else "noted last"
        return f"{self.records} records, head {self.head}, {when} {self.time or 'some time'}"


def notes_in(heads: str, *, of: Iterable[str] = ()) -> Iterator[Note]:
    """Yield the notes of the heads file, in order. With `of`, only those of lines that contain one of these texts as JSON.

    Invalid lines are skipped; a missing note is detected where it is needed. A missing file has no notes. Raises
    UsageError if the file cannot be read.
    """
    marks = [json.dumps(text).encode() for text in of]
    try:
        with open(os.open(heads, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{heads} cannot be read: not a regular file")
            for line in file:
                if not marks or any(mark in line for mark in marks):
                    note = _note_of(line)
                    if note is not None:
                        yield note
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UsageError(f"{heads} cannot be read: {error.strerror}") from None


def _note_of(line: bytes) -> Note | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    file, records, head, size = (entry.get(name) for name in ("file", "records", "head", "size"))
    if not isinstance(file, str) or type(records) is not int or not isinstance(head, str):
        return None
    is_tombstone = entry.get("tombstone") is True
    return Note(
        file=file,
        session=str(entry.get("session") or ""),
        records=records,
        head=head,
        closed=entry.get("closed") is True,
        time=str(entry.get("time") or ""),
        size=size if type(size) is int else None,
        tombstone=str(entry.get("reason") or "removed") if is_tombstone else "",
        by=str(entry.get("by") or "") if is_tombstone else "",
        lost=entry.get("lost") is True,
        torn_sha256=str(entry.get("torn_sha256") or ""),
    )


class NotedLogs:
    """The contents of a heads file, log by log."""

    def __init__(self, notes: Iterable[Note]) -> None:
        """Group the notes by log.

        INVARIANT: a tombstone ends the earlier notes of a name. A later log under that name is another log.
        """
        self._notes: dict[str, list[Note]] = {}
        self._lost: list[list[Note]] = []
        for note in notes:
            if note.lost:
                self._lost.append([*self._notes.pop(note.file, ()), note])
            elif note.tombstone:
                self._notes[note.file] = [note]
            else:
                of_file = self._notes.setdefault(note.file, [])
                if of_file and of_file[-1].tombstone:
                    of_file.clear()
                of_file.append(note)

    @property
    def files(self) -> tuple[str, ...]:
        """Every log that was noted."""
        return tuple(dict.fromkeys((*self._notes, *(notes[0].file for notes in self._lost))))

    @property
    def lost(self) -> Iterator[KnownHead]:
        """The noted heads of logs that were missing when others were started under their names."""
        return map(_head_of, self._lost)

    def of_file(self, path: str) -> KnownHead | None:
        """Return the noted head of the log at `path` (absolute). `None` if it was never noted."""
        notes = self._notes.get(path)
        return _head_of(notes) if notes else None

    def of_session(self, session: str) -> KnownHead | None:
        """Return the noted head of the log that contains this session, under any path. `None` if it was never noted."""
        entries = [
            notes for notes in (*self._lost, *self._notes.values()) if any(note.session == session for note in notes)
        ]
        return _head_of(entries[-1]) if entries else None


def _head_of(notes: list[Note]) -> KnownHead:
    last, noted = notes[-1], dict[int, frozenset[str]]()
    for note in notes:
        noted[note.records] = noted.get(note.records, frozenset()) | {note.head}
    return KnownHead(
        records=last.records,
        head=last.head,
        closed=last.closed or bool(last.tombstone and not last.lost),
        file=last.file,
        time=last.time,
        removed="" if last.lost else last.tombstone,
        lost=last.lost,
        noted=noted,
        torn=frozenset(note.torn_sha256 for note in notes if note.torn_sha256),
    )


class HeadsFile:
    """The heads file, for lookups of several logs. After the first few lookups, all its notes are kept in memory."""

    FEW = 3

    def __init__(self, path: str) -> None:
        """Use the file at `path`. All methods raise UsageError if it cannot be read."""
        self.path = path
        self._requests = 0
        self._all: NotedLogs | None = None

    def of_path(self, path: str) -> KnownHead | None:
        """Return the noted head of the log at `path`. `None` if it was never noted."""
        names = names_of(path)
        logs = self._holding(names)
        return next((known_head for name in names if (known_head := logs.of_file(name)) is not None), None)

    def of_session(self, session: str) -> KnownHead | None:
        """Return the noted head of the log that contains a session, for a renamed log. `None` if it was never noted."""
        files = self._holding((session,)).files
        return self._holding(files).of_session(session) if files else None

    def every(self) -> Iterator[KnownHead]:
        """Yield the noted head of every log, except the lost ones."""
        logs = self._all_logs()
        return (known_head for file in logs.files if (known_head := logs.of_file(file)) is not None)

    def lost(self) -> Iterator[KnownHead]:
        """Yield the noted heads of logs that were missing when others were started under their names."""
        return self._all_logs().lost

    def _all_logs(self) -> NotedLogs:
        self._requests = self.FEW
        return self._holding(())

    def _holding(self, texts: Iterable[str]) -> NotedLogs:
        """Return the logs whose notes contain one of these texts. The result may include others."""
        self._requests += 1
        if self._all is None and self._requests > self.FEW:
            self._all = NotedLogs(notes_in(self.path))
        return self._all if self._all is not None else NotedLogs(notes_in(self.path, of=texts))


def names_of(path: str) -> tuple[str, ...]:
    """Return the paths under which a log may have been noted."""
    return tuple(dict.fromkeys((os.path.abspath(path), os.path.realpath(path))))


LOCK_SECONDS = 5.0
"""Maximum wait for another writer of the heads file, in seconds.

Afterwards the line is appended without the lock, so that a stopped writer cannot block all others. That is safe
because one write with O_APPEND is atomic (write(2)).
"""


def note_head(heads: str, log: ActionLog, *, closed: bool) -> None:
    """Append the size and head of `log` to the heads file, on disk when this returns. Raises LogError."""
    _sync_log(log.path)
    entry: dict[str, JsonValue] = {
        "file": log.path,
        "session": log.session,
        "records": log.count,
        "head": log.head,
        "closed": closed,
        "time": timestamp(time.time()),
        "size": log.size,
    }
    append_note(heads, entry)


def note_loss(heads: str, known_head: KnownHead) -> None:
    """Record that the log with `known_head` is missing while another is started under its name. Raises LogError."""
    entry: dict[str, JsonValue] = {
        "tombstone": True,
        "lost": True,
        "file": known_head.file,
        "session": "",
        "records": known_head.records,
        "head": known_head.head,
        "closed": known_head.closed,
        "reason": "it was gone when another log was begun under its name",
        "time": timestamp(time.time()),
    }
    append_note(heads, entry)


def _sync_log(path: str) -> None:
    """Sync a log to disk. Raises LogError if that fails. A log that cannot be opened is skipped.

    Without it, a power cut could lose records that are already noted, which would look as if someone had cut them off.
    fdatasync(2) syncs the file through any of its descriptors.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        sync_data(descriptor)
    except OSError as error:
        raise LogError(f"the action log cannot be synced: {path}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def append_note(heads: str, entry: Mapping[str, JsonValue], *, lock_seconds: float = LOCK_SECONDS) -> None:
    """Append one line to the heads file in one write, and sync it. Raises LogError if that fails.

    Waits at most `lock_seconds` for another writer of the file.
    """
    line = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    try:
        descriptor = opened_heads(heads)
        try:
            is_locked_within(descriptor, lock_seconds)
            append_line(descriptor, line, alone=False)  # others may append without the lock, even after a partial line
            sync_data(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LogError(f"the heads file cannot be written: {heads}: {error.strerror}") from None


def opened_heads(heads: str) -> int:
    """Return a descriptor for appending to the heads file, which is created if missing. Raises LogError."""
    try:
        descriptor = os.open(heads, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LogError(f"the heads file cannot be written: {heads}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LogError(f"the heads file cannot be written: {heads}: not a regular file")
    return descriptor


_ORIGIN = "harness action log"
_NOTE_LINES = 6


class HeadNote(Record):
    """The contents of a signed note of a log."""

    records: int
    head: str
    size: int
    """Size of the log, in bytes."""
    session: str
    time: str

    def text(self) -> str:
        """Return the bytes that are signed, as text."""
        return f"{_ORIGIN}\n{self.records}\n{self.head}\n{self.size}\n{self.session}\n{self.time}\n"


class Signature(Record):
    """The result of checking a signed note."""

    note: HeadNote | None
    """The note, if its signature is valid. `None` otherwise."""
    signer: str = ""
    """The signer's name in the file of allowed signers."""
    problem: str = ""
    """The reason why the signature is not accepted. Empty if it is valid, or if there is no signed note."""


def parse_note(data: bytes) -> HeadNote | None:
    """Parse a note. `None` if it differs by any byte from the form that the harness writes."""
    try:
        lines = data.decode("ascii").split("\n")
        note = HeadNote(records=int(lines[1]), head=lines[2], size=int(lines[3]), session=lines[4], time=lines[5])
    except (ValueError, IndexError):
        return None
    return note if len(lines) == _NOTE_LINES + 1 and note.text().encode() == data else None
