"""`harness sessions delete`: remove the log of a session, and write a tombstone for it, as `audit prune` does."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Mapping

from harness.app.audit.prune import Past, PruneResult, prune_log, remove_unnamed
from harness.app.sessions import LoggedSession, logged_sessions, outlines, session_named
from harness.errors import UsageError
from harness.session.exits import Exit
from harness.session.state import State
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.text.amounts import count_of, size_of_bytes
from harness.text.visible import visible_line


def delete_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Delete a session with its log. Without `--yes`, only describe it. Return the exit code. Raises HarnessError."""
    state = State.of(environment)
    session = session_named(logged_sessions(state.log_paths()), arguments.session, "harness sessions")
    console = FinishedOutput(environment)
    console.line(removal_words(session))
    if not arguments.yes:
        console.line("nothing is deleted yet; --yes deletes it for good", Tone.QUIET)
        return Exit.USAGE
    console.line(remove(session, state))
    return Exit.DONE


def removal_words(session: LoggedSession) -> str:
    """Return a description of the log that is removed with a session, safe to display. Raises LogError."""
    in_log = logged_sessions((session.path,), undoings=True)
    (outline,) = outlines((session,))
    size = size_of_bytes(_size_of(session.path))
    more_sessions = f", with {count_of(len(in_log) - 1, 'other session')} in it" if len(in_log) > 1 else ""
    return visible_line(
        f"{session.session} ({outline.title[:100]}): its log {session.path}, {size}{more_sessions}", 5_000
    )


def remove(session: LoggedSession, state: State) -> str:
    """Remove the log of a session, and the before-images that no other log names. Return a note, safe to display.

    Raises UsageError if the log is in use or broken, LogError without a tombstone.
    """
    past = Past(path=session.path, size=_size_of(session.path), reason="deleted by its user")
    pruned = prune_log(past, state, dry_run=False, is_broken_too=False, is_open_too=True)
    if pruned.fate is not PruneResult.REMOVED:
        raise UsageError(f"the session is not deleted: {visible_line(pruned.reason, 1_000)}")
    _, note = remove_unnamed(state, time.time())
    return f"deleted: {session.session}; the heads file has its tombstone{f'. {note}' if note else ''}"


def _size_of(path: str) -> int:
    """Return the size of a log in bytes. Raises UsageError if it is gone."""
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise UsageError(f"{visible_line(path, 5_000)}: {error.strerror}") from None
