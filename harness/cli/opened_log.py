"""Opens the action log that a session writes, with its head noted while it grows; a log that cannot be relied on is refused."""

from __future__ import annotations

import os

from harness.action_log import ActionLog
from harness.cli.head_notes import HeadNotes
from harness.cli.state import State
from harness.errors import LogError
from harness.heads import HeadsFile
from harness.log_findings import judged

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.redaction.redactor import Redactor


def opened_log(state: State, redactor: Redactor, *, path: str | None, workspace: str) -> ActionLog:
    """Open the log at `path`, or a new one for a session in `workspace` where it is None.

    An existing log is judged first: who goes on with it, and notes its head at the end, says of all that it holds that it
    is what the harness wrote. That it is gone on with is noted before the first record.

    Raises LogError if it cannot be opened or relied on, UsageError if the heads file cannot be read.
    """
    if path is None:
        log = ActionLog.open(state.new_log_path(workspace), redactor=redactor)
    else:
        heads = HeadsFile(state.heads)
        _refuse_a_lost_one(path, heads)
        log = ActionLog.open(path, redactor=redactor)
        try:
            if log.count:
                _refuse_an_unfit_one(log, heads)
                state.record_head(log, closed=False)
        except BaseException:
            log.close()
            raise
    log.observers.append(HeadNotes(state, log).record)
    return log


def _refuse_a_lost_one(path: str, heads: HeadsFile) -> None:
    """Raise LogError where a log was noted under this name, and nothing is there any more."""
    known = heads.of_path(path)
    if known is None or known.removed or not known.records:
        return
    try:
        size = os.stat(path).st_size
    except OSError:
        size = 0
    if not size:
        raise LogError(
            _refusal(
                path,
                f"it was longer once: a log of {known.records} records was noted there, and it is gone or was emptied",
            )
        )


def _refuse_an_unfit_one(log: ActionLog, heads: HeadsFile) -> None:
    """Raise LogError where what stands in a log is not all what was written; its lock is held."""
    findings = judged(log.path, heads)
    why = findings.unfit
    if not why and (findings.found.records, findings.found.head) != (log.count, log.head):
        why = "it was changed while it was opened"
    if why:
        raise LogError(_refusal(log.path, why))


def _refusal(path: str, why: str) -> str:
    return (
        f"the action log is not gone on with: {path}: {why}. `harness audit verify` says what can be relied on; "
        "name another file with --log"
    )
