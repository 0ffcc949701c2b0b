"""The sessions that action logs hold: finds them by workspace or by name; reads logs and changes nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from harness.action_log import log_lines, parse_line, read_log
from harness.cli.heads import KnownHead
from harness.cli.state import State
from harness.errors import LogError, UsageError
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
        if record["kind"] == "session_started" and isinstance(record["session"], str)
    ]
    return tuple(sorted((one for one in found if one.mode != UNDO), key=lambda one: one.time))


def chosen_session(
    sessions: Iterable[LoggedSession], workspace: str, named: str | None, flag: str = "--session"
) -> LoggedSession:
    """Return the session whose name begins with `named`, or the newest one in `workspace` where it is None.

    Raises UsageError if there is none, or more than one; `flag` is what named it.
    """
    if named is None:
        of_it = [one for one in sessions if one.workspace == workspace]
        if not of_it:
            raise UsageError(f"no session in {visible_line(workspace, 1000)} is in the state folder's logs")
        return of_it[-1]
    fitting = [one for one in sessions if named and one.session.startswith(named)]
    if len(fitting) != 1:
        what = f"{len(fitting)} sessions' names begin" if fitting else "no session's name begins"
        raise UsageError(f"{flag}: {what} with {visible_line(named)!r}")
    return fitting[0]


class VerifiedSession(Record):
    """The records of one session, out of a log that was verified."""

    records: tuple[LogRecord, ...]
    torn: bool
    """Whether the log ends in a line that was not written wholly; it is left out."""
    count: int
    """How many records the log holds."""
    head: str
    """The hash of its last whole line."""


def verified_session(found: LoggedSession, state: State) -> VerifiedSession:
    """Return the records of one session, once its log was verified.

    Raises UsageError if the log is broken or not the one whose head was kept, LogError if it cannot be read.
    """
    kept: KnownHead | None = state.known_head(found.path)
    proved = verify(found.path, noted=kept.noted if kept else None)
    problem = ""
    if proved.broken_line is not None:
        problem = f"it is broken at line {proved.broken_line}, which {proved.problem}"
    elif proved.missed is not None:
        problem = "it is not the log whose head was kept"
    elif kept is not None and kept.closed and proved.records > kept.records:
        problem = "something was added to it after it was closed"
    if problem:
        raise UsageError(f"the action log cannot be relied on: {visible_line(found.path, 5_000)}: {problem}")
    records = islice(read_log(found.path), proved.records)
    return VerifiedSession(
        records=tuple(one for one in records if one["session"] == found.session),
        torn=proved.torn,
        count=proved.records,
        head=proved.head,
    )


def verified_records(found: LoggedSession, state: State) -> tuple[LogRecord, ...]:
    """Return the records of one session, once its log was verified; see `verified_session`."""
    return verified_session(found, state).records


class Outline(Record):
    """What a session came to, in short; read quickly, and not verified."""

    found: LoggedSession
    model: str
    turns: int
    """How often the person said something."""
    prompt: str
    """What they said first."""
    ended: str
    """The stop reason; empty where the session never said that it ended."""
    torn: bool
    """Whether its log ends in a line that was not written wholly."""
    origin: str
    """The session that it goes on from; empty where it began with nothing."""


def outlines(sessions: Iterable[LoggedSession]) -> tuple[Outline, ...]:
    """Return what these sessions came to, in their order. Raises LogError for what cannot be read."""
    sessions = tuple(sessions)
    read = {path: tuple(_records_of(path, *_OUTLINE_MARKS)) for path in dict.fromkeys(one.path for one in sessions)}
    torn = {path: not is_whole(path) for path in read}
    return tuple(
        _outline(one, [r for r in read[one.path] if r["session"] == one.session], torn=torn[one.path])
        for one in sessions
    )


_OUTLINE_MARKS = (b'"kind":"session_started"', b'"kind":"user_message"', b'"kind":"session_ended"')


def _outline(found: LoggedSession, records: Sequence[LogRecord], *, torn: bool) -> Outline:
    of_kind = {kind: [one for one in records if one["kind"] == kind] for kind in ("user_message", "session_ended")}
    said, ends = of_kind["user_message"], of_kind["session_ended"]
    first = next((one for one in records if one["kind"] == "session_started"), {})
    origin = first.get("origin")
    return Outline(
        found=found,
        model=str(first.get("model") or ""),
        turns=len(said),
        prompt=str(said[0].get("text")) if said else "",
        ended=str(ends[-1].get("stop") or "unknown") if ends else "",
        torn=torn and not ends,
        origin=str(origin.get("session") or "") if isinstance(origin, dict) else "",
    )


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


def _records_of(path: str, *marks: bytes) -> Iterator[LogRecord]:
    """Yield the records whose line holds a mark: most lines need not be parsed to know that they are others."""
    for line, whole in log_lines(path):
        record = parse_line(line) if whole and any(mark in line for mark in marks) else None
        if record is not None:
            yield record


def is_whole(path: str) -> bool:
    """Say whether a log ends in a whole line, or is empty. Raises LogError if it cannot be read."""
    last = b"\n"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                last = file.read(1)
    except OSError as error:
        raise LogError(f"the action log cannot be read: {path}: {error.strerror}") from None
    return last == b"\n"


def is_in_use(path: str) -> bool:
    """Say whether a running program holds the lock of a log. Raises LogError if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LogError(f"the action log cannot be read: {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
