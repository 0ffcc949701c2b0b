"""`harness audit recover`: make a log whose last line is torn one that can be continued. No whole record is touched.

Each step is on disk before the next: the torn bytes are kept beside the log, the log is cut back to its last whole line, a
session says what was done. A crash in between is made good by recovering again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping

from harness import __version__
from harness.actions import JsonValue
from harness.audit.findings import Findings, judge_log
from harness.errors import LogError, UsageError
from harness.log.clocks import timestamp
from harness.log.heads_file import HeadsFile, append_note
from harness.log.reader import read_log
from harness.log.verify import Verification
from harness.record import Record
from harness.safe_files import sync_path
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.session_log import opened_log, who_and_where
from harness.session.state import State
from harness.terminal.console import complain
from harness.text.visible import visible_line

MODE = "recover"
"""Mode of the session that records the recovery."""
_CHUNK = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Torn(Record):
    """The bytes of a line without an end."""

    size: int
    sha256: str
    kept_in: str
    """The file that holds them."""


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Recover one log and return the exit code. Raises LogError if it cannot be read or written, or is in use."""
    state = State.of(environment)
    path = os.path.abspath(arguments.file)
    state.make_folder_of_heads()
    torn, findings = keep_and_cut(path, state.heads)
    name = visible_line(path, 5_000)
    if findings.unfit:
        sys.stdout.write(f"{name}: NOT recovered, since it is more than torn: {visible_line(findings.unfit, 1_000)}\n")
        return findings.soundness.value
    verification = findings.verification
    if torn is None:
        sys.stdout.write(f"{name}: nothing to recover: its last line is whole\n")
    else:
        note(path, torn, verification, state, environment)
        sys.stdout.write(f"{name}: recovered; {torn.size} torn bytes are kept in {visible_line(torn.kept_in, 5_000)}\n")
    for line in findings.lines:
        if not verification.torn or "torn" not in line:
            sys.stdout.write(f"{visible_line(line, 1_000)}\n")
    return Exit.DONE


def keep_and_cut(path: str, heads: str) -> tuple[Torn | None, Findings]:
    """Keep the torn bytes of a log beside it, and cut it back to its last whole line; an unfit one stays unchanged.

    Returns the torn part (also one that an earlier, unfinished recovery kept; `None` without any) and the findings
    before. The bytes to cut are noted in the heads file first: only that distinguishes an unfinished recovery from
    another file beside the log. Raises LogError.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LogError(f"the action log cannot be opened: {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        heads_file = HeadsFile(heads)
        findings = judge_log(path, heads_file)
        verification = findings.verification
        if findings.unfit:
            return None, findings
        if not verification.torn:
            noted = heads_file.of_path(path)
            return _kept_before(path, noted.torn if noted is not None else frozenset()), findings
        torn = _keep(path, descriptor, verification.bytes)
        append_note(heads, _intent(path, torn, verification))
        os.ftruncate(descriptor, verification.bytes)
        os.fsync(descriptor)
    except BlockingIOError:
        raise LogError(f"the action log is in use by another process: {path}") from None
    except OSError as error:
        raise LogError(f"the action log cannot be recovered: {path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return torn, findings


def _intent(path: str, torn: Torn, verification: Verification) -> dict[str, JsonValue]:
    """Return the note that says what is about to be cut off."""
    return {
        "file": path,
        "session": "",
        "records": verification.records,
        "head": verification.head,
        "closed": False,
        "time": timestamp(time.time()),
        "size": verification.bytes,
        "torn_sha256": torn.sha256,
    }


def _keep(path: str, descriptor: int, start: int) -> Torn:
    """Copy the bytes of the log from `start` on to a file of their own, on disk when this returns. Raises OSError."""
    draft = f"{path}.torn.tmp"  # always the same: what a crash leaves of it is removed
    digest, size = hashlib.sha256(), 0
    try:
        os.unlink(draft)  # and never written to: it may be another name of any file, or a pipe
    except FileNotFoundError:
        pass
    with open(os.open(draft, _NEW, 0o600), "wb") as file:
        while chunk := os.pread(descriptor, _CHUNK, start + size):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    for name in _names(path):
        try:
            os.link(draft, name)  # and never over a file that is there
        except FileExistsError:
            if _digest_of(name) != (size, digest.hexdigest()):
                continue
        os.unlink(draft)
        sync_path(os.path.dirname(path))
        return Torn(size=size, sha256=digest.hexdigest(), kept_in=name)
    raise UsageError(f"there are too many files {path}.torn.*")


def _kept_before(path: str, noted: frozenset[str]) -> Torn | None:
    """Return the part that a stopped recovery kept without a record of it; `None` without any. Raises LogError.

    `noted` are the digests of the bytes to cut: another file beside the log was never a part of it.
    """
    if not noted:
        return None
    recovered_digests = None
    for name in _names(path):
        digest = _digest_of(name)
        if digest is None:
            break
        if recovered_digests is None:
            recovered_digests = {
                str(record.get("torn_sha256")) for record in read_log(path) if record["kind"] == "recovered"
            }
        if digest[1] in noted - recovered_digests:
            return Torn(size=digest[0], sha256=digest[1], kept_in=name)
    return None


def _names(path: str) -> Iterator[str]:
    """Yield the names under which torn ends of a log are kept, the first of them first."""
    yield f"{path}.torn"
    yield from (f"{path}.torn.{number}" for number in range(2, 1_000))


def _digest_of(path: str) -> tuple[int, str] | None:
    """Return size and SHA-256 of a regular file, or None."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return None
    return size, digest.hexdigest()


def note(path: str, torn: Torn, verification: Verification, state: State, environment: Mapping[str, str]) -> None:
    """Append a session that records the recovery, and note the head. Raises LogError; a new recovery then continues
    here.

    Open calls stay open, since the end of a running call is unknown.
    """
    redactor = redactor_for(state, environment, secrets_of(environment), unless=(path, environment.get("HOME", "")))
    log = opened_log(state, redactor, path=path, workspace="", tell=complain)
    try:
        started: dict[str, JsonValue] = {
            "mode": MODE,
            "harness": __version__,
            "argv": list(sys.argv),
            **who_and_where(),
        }
        log.append("session_started", started, sync=True)
        fields: dict[str, JsonValue] = {"torn_bytes": torn.size, "torn_sha256": torn.sha256, "kept_in": torn.kept_in}
        log.append("recovered", {**fields, "open": list(verification.unknown_calls)}, sync=True)
        log.append("session_ended", {"stop": "completed", "detail": f"{torn.size} torn bytes were cut off"}, sync=True)
        state.record_head(log)
    finally:
        log.close()
