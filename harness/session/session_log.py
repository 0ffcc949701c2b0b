"""The action log of a session: checked and opened, its head noted while it grows, and closed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.errors import LogError, UsageError
from harness.log.action_log import ActionLog
from harness.log.clocks import timestamp
from harness.paths import is_within
from harness.session.state import State
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.actions import JsonValue
    from harness.log.heads_file import HeadsFile, KnownHead
    from harness.redaction.redactor import Redactor


NOTE_RECORDS = 256
"""Maximum number of records between two notes of the head."""
NOTE_SECONDS = 60.0
"""Seconds after which the next record causes a note of the head."""


class HeadNotes:
    """Notes the head of a log as it grows, so that a recent head remains after a kill. It observes the log's records.

    A failure is reported at the first record and ignored later. At the end, `State.record_head` raises for it.
    """

    def __init__(
        self,
        state: State,
        log: ActionLog,
        tell: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to note heads. `clock` returns monotonic seconds."""
        self._state = state
        self._log = log
        self._tell = tell
        self._clock = clock
        self._is_first = True
        self._next_count = 0
        """Record count at which the head is noted next. 0, so that the first record is noted at once."""
        self._next_at = 0.0

    def record(self, record: object) -> None:  # noqa: ARG002 - an observer's one argument; the log knows more
        """Note the head if enough records or seconds have passed."""
        if self._log.count < self._next_count and self._clock() < self._next_at:
            return
        self._next_count = self._log.count + NOTE_RECORDS
        self._next_at = self._clock() + NOTE_SECONDS
        try:
            self._state.record_head(self._log, closed=False)
        except LogError as error:
            if self._is_first:
                self._tell(str(error))
        self._is_first = False


def opened_log(
    state: State, redactor: Redactor, *, path: str | None, workspace: str, tell: Callable[[str], None]
) -> ActionLog:
    """Open the log at `path`, or a new one for a session in `workspace` if `path` is `None`.

    An existing log is checked first. If it still ends with the head that was noted at its close, only its hash chain is
    verified. Any other log is verified completely, as `harness audit verify` does. Before the first new record, a note
    says that the log is being continued. `tell` shows lines about later problems.

    Raises LogError if it cannot be opened or fails the check, UsageError if the heads file cannot be read.
    """
    if path is None:
        new = state.new_log_path(workspace)
        state.check_heads()
        log = ActionLog.open(new, redactor=redactor)
    else:
        from harness.log.heads_file import HeadsFile

        heads = HeadsFile(state.heads)
        noted_head = heads.of_path(path)
        _refuse_an_emptied_one(path, noted_head)
        log = ActionLog.open(path, redactor=redactor)
        try:
            if log.count:
                if not _is_as_closed(log, noted_head):
                    _refuse_an_unfit_one(log, heads)
                state.record_head(log, closed=False)
        except BaseException:
            log.close()
            raise
    log.observers.append(HeadNotes(state, log, tell).record)
    return log


def lost_log(state: State, path: str | None) -> KnownHead | None:
    """Return the noted head of a missing log at `path`, and note that a new log replaces it.

    `None` if none is missing. Raises LogError if no head can be noted, UsageError if the heads file cannot be read.
    """
    if path is None:
        return None
    state.check_heads()
    if os.path.lexists(path) or not os.path.isdir(os.path.dirname(path)):
        return None
    noted_head = state.known_head(path)
    if noted_head is None or not noted_head.is_missed:
        return None
    # Noted before the new log exists: after a kill in between, the log must not look as if its tail was cut off.
    state.record_loss(noted_head)
    return noted_head


def _refuse_an_emptied_one(path: str, noted_head: KnownHead | None) -> None:
    """Raise LogError if the file is empty although a log was noted at this path."""
    if noted_head is None or not noted_head.is_missed or not os.path.exists(path) or os.path.getsize(path):
        return
    raise LogError(_refusal(path, f"it was longer once and was emptied: {noted_head.records} records are noted"))


def _is_as_closed(log: ActionLog, noted_head: KnownHead | None) -> bool:
    """Return whether a log is unchanged since its close, when its head was noted. The caller holds its lock."""
    if (
        noted_head is None
        or noted_head.removed
        or not noted_head.closed
        or (noted_head.records, noted_head.head) != (log.count, log.head)
    ):
        return False
    from harness.log.verify import is_as_noted

    return is_as_noted(log.path, noted_head.noted)


def _refuse_an_unfit_one(log: ActionLog, heads: HeadsFile) -> None:
    """Raise LogError if a log is incomplete or was changed. The caller holds its lock."""
    from harness.audit.findings import judge_log

    findings = judge_log(log.path, heads)
    reason = findings.unfit
    if not reason and (findings.verification.records, findings.verification.head) != (log.count, log.head):
        reason = "the log changed while it was opened"
    if reason:
        raise LogError(_refusal(log.path, reason))


def _refusal(path: str, reason: str) -> str:
    return (
        f"the action log is not gone on with: {path}: {reason}. `harness audit verify` says what can be relied on; "
        "name another file with --log"
    )


def who_and_where() -> dict[str, JsonValue]:
    """Return account name, user ID, host name and process ID of this process, for a session's first record."""
    import pwd

    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = ""
    return {"user": user, "uid": os.getuid(), "host": os.uname().nodename, "pid": os.getpid()}


def pinned(log: ActionLog, home: str = "") -> tuple[str, str, str]:
    """Return lines with the path, number of records and head of a log, for output that leaves this machine.

    A path in the folder `home` begins with `~`.
    """
    inside = home.strip("/") and is_within(log.path, home.rstrip("/"))
    path = f"~{log.path[len(home.rstrip('/')) :]}" if inside else log.path
    return visible_line(f"log: {path}", 5_000), f"records: {log.count}", f"head: {log.head}"


def close_log(state: State, log: ActionLog) -> None:
    """Close a log and note its size and head in the heads file. Raises LogError if they cannot be written."""
    try:
        state.record_head(log)
    finally:
        log.close()


def close_and_sign(state: State, log: ActionLog, sign_key: str, tell: Callable[[str], None]) -> None:
    """Close a log as `close_log` does, and sign its size and head with the SSH key at `sign_key`. An empty path signs nothing.

    Raises LogError as `close_log` does. If signing fails, the user only gets a line: the run is done and its log complete,
    and an error code would cause callers to repeat it. `audit verify --signers` reports a missing signature.
    """
    close_log(state, log)
    if not sign_key:
        return
    from harness.audit.signed_heads import sign_head
    from harness.log.heads_file import HeadNote

    try:
        now = timestamp(time.time())
        note = HeadNote(records=log.count, head=log.head, size=log.size, session=log.session, time=now)
        sign_head(log.path, note, sign_key, os.environ)
    except UsageError as error:
        tell(f"the head of the log is NOT signed: {error}")
