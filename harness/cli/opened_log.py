"""Opens the action log that a session writes, with its head noted while it grows; a log that cannot be relied on is refused."""

from __future__ import annotations

import os

from harness.action_log import ActionLog
from harness.cli.head_notes import HeadNotes
from harness.cli.state import State
from harness.errors import LogError
from harness.heads import HeadsFile, KnownHead
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
        new = state.new_log_path(workspace)
        state.check_heads()
        log = ActionLog.open(new, redactor=redactor)
    else:
        heads = HeadsFile(state.heads)
        _refuse_an_emptied_one(path, heads)
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


def lost_log(state: State, path: str | None) -> KnownHead | None:
    """Return what is known of a log that was noted under this name and is gone, and note that another takes its place.

    None where nothing is missing. Raises LogError where no head can be noted, UsageError if the heads file cannot be read.
    """
    if path is None:
        return None
    state.check_heads()
    if os.path.lexists(path) or not os.path.isdir(os.path.dirname(path)):
        return None
    known = state.known_head(path)
    if known is None or not known.is_missed:
        return None
    # Before the new log is there: of what a kill leaves behind, nothing must look like a tail that somebody cut off.
    state.record_loss(known)
    return known


def _refuse_an_emptied_one(path: str, heads: HeadsFile) -> None:
    """Raise LogError where a log was noted under this name, and its file holds nothing any more."""
    known = heads.of_path(path)
    if known is None or not known.is_missed or not os.path.exists(path) or os.path.getsize(path):
        return
    raise LogError(
        _refusal(path, f"it was longer once: a log of {known.records} records was noted there, and it was emptied")
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
