"""The sessions that action logs hold: finds them by workspace or by name; reads logs and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from harness.action_log import log_lines, parse_line, read_log
from harness.cli.state import KnownHead, State
from harness.errors import UsageError
from harness.log_check import verify
from harness.log_order import LogRecord
from harness.record import Record
from harness.visible import visible_line

UNDO = "undo"
"""The mode of a session that undid another's changes."""


class LoggedSession(Record):
    """A session, as its first record tells of it."""

    path: str
    """Of the log."""
    session: str
    time: str
    mode: str
    workspace: str


def logged_sessions(paths: Iterable[str]) -> tuple[LoggedSession, ...]:
    """Return the sessions of these logs, undoings left out, the newest last. Raises LogError for what cannot be read."""
    found = [
        LoggedSession(
            path=path,
            session=str(record["session"]),
            time=str(record["time"]),
            mode=str(record.get("mode")),
            workspace=str(record.get("workspace")),
        )
        for path in paths
        for record in _records_of(path, b'"kind":"session_started"')
        if record["kind"] == "session_started"
    ]
    return tuple(sorted((one for one in found if one.mode != UNDO), key=lambda one: one.time))


def chosen_session(sessions: Iterable[LoggedSession], workspace: str, named: str | None) -> LoggedSession:
    """Return the session whose name begins with `named`, or the newest one in `workspace` where it is None.

    Raises UsageError if there is none, or more than one.
    """
    if named is None:
        here = [one for one in sessions if one.workspace == workspace]
        if not here:
            raise UsageError(f"no session in {visible_line(workspace, 1000)} is in the state folder's logs")
        return here[-1]
    fitting = [one for one in sessions if named and one.session.startswith(named)]
    if len(fitting) != 1:
        what = f"{len(fitting)} sessions' names begin" if fitting else "no session's name begins"
        raise UsageError(f"--session: {what} with {visible_line(named)!r}")
    return fitting[0]


def verified_records(found: LoggedSession, state: State) -> tuple[LogRecord, ...]:
    """Return the records of one session, once its log was verified. A torn last line is left out.

    Raises UsageError if the log is broken or not the one whose head was kept, LogError if it cannot be read.
    """
    kept: KnownHead | None = state.known_head(found.path)
    proved = verify(found.path, kept.head if kept else None)
    problem = ""
    if proved.broken_line is not None:
        problem = f"it is broken at line {proved.broken_line}, which {proved.problem}"
    elif kept is not None and not proved.passed_head:
        problem = "it is not the log whose head was kept"
    if problem:
        raise UsageError(f"the action log cannot be relied on: {visible_line(found.path, 5_000)}: {problem}")
    return tuple(one for one in islice(read_log(found.path), proved.records) if one["session"] == found.session)


def undone_calls(paths: Iterable[str], session: str) -> frozenset[int]:
    """Return the calls of a session that were undone, as the logs of undoings tell. Raises LogError."""
    calls = set()
    for path in paths:
        for record in _records_of(path, b'"kind":"restored"'):
            call = record.get("call")
            of_it = record["kind"] == "restored" and record.get("of_session") == session
            if of_it and record.get("result") in ("restored", "removed") and isinstance(call, int):
                calls.add(call)
    return frozenset(calls)


def _records_of(path: str, mark: bytes) -> Iterator[LogRecord]:
    """Yield the records whose line holds `mark`: most lines need not be parsed to know that they are others."""
    for line, whole in log_lines(path):
        record = parse_line(line) if whole and mark in line else None
        if record is not None:
            yield record
