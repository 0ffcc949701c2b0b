"""`harness audit recover`: make a log with a torn last line usable again. No complete record is changed.

There are three steps, each on disk before the next: save the torn bytes next to the log, cut the log back to its last
complete line, append a session that records the recovery. After a crash in between, run the command again.
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
    """The bytes of an incomplete last line."""

    size: int
    sha256: str
    kept_in: str
    """Path of the file with these bytes."""


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
    """Save the torn bytes of a log next to it, and cut the log back to its last complete line.

    Returns the torn part and the findings before the cut. The torn part may be one that an earlier, unfinished recovery
    saved; it is `None` if there is none. A log that is more than torn stays unchanged. The digest of the cut bytes is
    first noted in the heads file. Without that note, an unrelated file could be mistaken for the result of an
    unfinished recovery. Raises LogError.
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
    """Return the note about the bytes that are about to be cut."""
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
    """Copy the bytes of the log from `start` to a new file, which is on disk on return. Raises OSError."""
    draft = f"{path}.torn.tmp"  # a fixed name, so that a leftover of a crash is removed
    digest, size = hashlib.sha256(), 0
    try:
        os.unlink(draft)  # never written to, because it may be a link to another file, or a pipe
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
            os.link(draft, name)  # never replaces an existing file
        except FileExistsError:
            if _digest_of(name) != (size, digest.hexdigest()):
                continue
        os.unlink(draft)
        sync_path(os.path.dirname(path))
        return Torn(size=size, sha256=digest.hexdigest(), kept_in=name)
    raise UsageError(f"there are too many files {path}.torn.*")


def _kept_before(path: str, noted: frozenset[str]) -> Torn | None:
    """Return the torn part that an unfinished recovery saved and did not record. `None` if there is none.

    `noted` are the digests of the bytes that were to be cut. A file with another digest is unrelated. Raises LogError.
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
    """Yield the possible names for torn ends of a log, in order of use."""
    yield f"{path}.torn"
    yield from (f"{path}.torn.{number}" for number in range(2, 1_000))


def _digest_of(path: str) -> tuple[int, str] | None:
    """Return the size and SHA-256 digest of a regular file. `None` for another kind of file or an error."""
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
    """Append a session that records the recovery, and note the head.

    Open calls stay open, since the end of a running call is unknown. Raises LogError. The next recovery then continues
    here.
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
