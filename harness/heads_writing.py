"""The heads file, written: appends one note of a log, or one tombstone; it never changes a log or a line that is there.

INVARIANT: what a note says of a log was on disk before the note was.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.errors import LogError

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.action_log import ActionLog
    from harness.heads import KnownHead

LOCK_SECONDS = 5.0
"""How long another writer of the heads file is waited for. Then the line is appended without the lock: one write with
O_APPEND lands whole (write(2)), and a writer that was stopped must not stop all others."""


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


def note_loss(heads: str, known: KnownHead) -> None:
    """Append that the log of which this is `known` is gone, and that another is begun under its name. Raises LogError."""
    entry: dict[str, JsonValue] = {
        "tombstone": True,
        "lost": True,
        "file": known.file,
        "session": "",
        "records": known.records,
        "head": known.head,
        "closed": known.closed,
        "reason": "it was gone when another log was begun under its name",
        "time": timestamp(time.time()),
    }
    append_note(heads, entry)


def _sync_log(path: str) -> None:
    """Bring what was written to a log to the disk. Raises LogError; not where the log has lost its name.

    After a power cut, a note of records that were lost would look like a tail that somebody cut off. fdatasync(2) is
    about the file, whichever descriptor it is given.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise LogError(f"the action log cannot be synced: {path}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def append_note(heads: str, entry: Mapping[str, JsonValue], *, lock_seconds: float = LOCK_SECONDS) -> None:
    """Append one line to the heads file in one write, and sync it. Raises LogError if that fails.

    Another writer of the file is waited for `lock_seconds`, and no longer.
    """
    line = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    try:
        descriptor = opened_heads(heads)
        try:
            _lock(descriptor, lock_seconds)
            _append(descriptor, line)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LogError(f"the heads file cannot be written: {heads}: {error.strerror}") from None


def opened_heads(heads: str) -> int:
    """Return a descriptor of the heads file, made where it is not there, to append to. Raises LogError."""
    try:
        descriptor = os.open(heads, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LogError(f"the heads file cannot be written: {heads}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LogError(f"the heads file cannot be written: {heads}: not a regular file")
    return descriptor


def _lock(descriptor: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        else:
            return


def _append(descriptor: int, line: bytes) -> None:
    """Write a line that begins on a line of its own, also after one that a crash tore. Raises OSError."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    while line:  # a disk that fills up takes a part first, and then says why (write(2))
        line = line[os.write(descriptor, line) :]


def timestamp(seconds: float) -> str:
    """Return RFC 3339 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
