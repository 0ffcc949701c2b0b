"""`harness sessions list`, and the sessions that action logs hold: found by workspace or by name."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.log.clocks import NANO, nanoseconds
from harness.log.findings import judge_log
from harness.log.heads_file import HeadsFile
from harness.log.order import LogRecord
from harness.log.reader import is_in_use, is_whole, read_log, records
from harness.record import Record
from harness.session.exits import Exit
from harness.session.person_message import own_words
from harness.session.state import State, here
from harness.terminal.console import FinishedOutput, complain
from harness.terminal.local_time import local_time
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import ago, counted
from harness.text.visible import visible_line

UNDO = "undo"
"""The mode of a session that undid another's changes."""
HELPER = "helper"
"""Mode of a helper's session: it cannot be continued, and its changes are gone with its copy."""
WEEK = 7 * 86_400
"""Seconds."""


class LoggedSession(Record):
    """A session, as its first record tells of it."""

    path: str
    """Path of the log."""
    session: str
    time: str
    mode: str
    workspace: str


def logged_sessions(
    paths: Iterable[str], *, undoings: bool = False, stopped: Callable[[str, int], None] | None = None
) -> tuple[LoggedSession, ...]:
    """Return the sessions of these logs, the newest last; sessions that undid changes, and helpers', only with
    `undoings`.

    An invalid line ends the reading of its log; `stopped` gets the path and the line (from 1). Raises LogError for an
    unreadable log.
    """
    found = []
    for path in paths:
        stops: list[int] = []
        found += [_session_of(path, one) for one in records(path, ("session_started",), stopped=stops.append)]
        if stops and stopped is not None:
            stopped(path, stops[0])
    return tuple(sorted((one for one in found if undoings or one.mode not in (UNDO, HELPER)), key=lambda one: one.time))


def _session_of(path: str, started: LogRecord) -> LoggedSession:
    return LoggedSession(
        path=path,
        session=str(started["session"]),
        time=str(started["time"]),
        mode=str(started.get("mode")),
        workspace=str(started.get("workspace")),
    )


def session_named(sessions: Iterable[LoggedSession], name: str, flag: str = "") -> LoggedSession:
    """Return the only session whose name begins with `name`, which came with `flag`. Raises UsageError."""
    found = [one for one in sessions if name and one.session.startswith(name)]
    if len(found) != 1:
        what = f"{len(found)} sessions' names begin" if found else "no session's name begins"
        raise UsageError(f"{f'{flag}: ' if flag else ''}{what} with {visible_line(name)!r}")
    return found[0]


class VerifiedSession(Record):
    """The records of one session, out of a log that was verified."""

    records: tuple[LogRecord, ...]
    torn: bool
    """Whether the log ends in a line that was not written wholly; it is left out."""
    count: int
    """Number of records in the log."""
    head: str
    """The hash of its last whole line."""


def verified_session(found: LoggedSession, state: State) -> VerifiedSession:
    """Return the records of one session, once its log was verified.

    Raises UsageError if the log is broken, not the one whose head was noted, or went on after it was closed; LogError if it
    cannot be read.
    """
    findings = judge_log(found.path, HeadsFile(state.heads))
    if findings.unfit:
        why = visible_line(findings.unfit, 1_000)
        raise UsageError(f"the action log cannot be relied on: {visible_line(found.path, 5_000)}: {why}")
    proved = findings.found
    return VerifiedSession(
        records=tuple(one for one in islice(read_log(found.path), proved.records) if one["session"] == found.session),
        torn=proved.torn,
        count=proved.records,
        head=proved.head,
    )


class SessionOutline(Record):
    """A session in short; read quickly, and not verified."""

    found: LoggedSession
    model: str
    """The one that was asked last."""
    turns: int
    """Number of the person's messages."""
    prompt: str
    """Their first message, in their own words alone. Empty without one."""
    ended: str
    """The stop reason; empty where the session never said that it ended."""
    running: bool
    """Whether a program is writing its log, so that it cannot be gone on with from elsewhere."""
    torn: bool
    """Whether its log ends in a line that was not written wholly."""
    origin: str
    """The session that it goes on from; empty where it began with nothing."""

    @property
    def is_talk(self) -> bool:
        """Whether it has a conversation. A continuation counts even without a message, since its conversation may
        have been cleared.
        """
        return bool(self.turns or self.origin)

    @property
    def title(self) -> str:
        """The first line that the person typed to the model: any text, not yet made safe to show."""
        return next((line.strip() for line in self.prompt.splitlines() if line.strip()), "") or "(nothing typed)"

    @property
    def end(self) -> str:
        """Its end, in words."""
        return self.ended.replace("_", " ") or ("running" if self.running else "open, torn" if self.torn else "open")

    def age(self, now: float) -> str:
        """Return its age at `now` (seconds since 1970); after a week its date and time, by the local clock."""
        nanos = nanoseconds(self.found.time)
        if nanos is None:
            return "at an unknown time"
        seconds = now - nanos / NANO
        return ago(seconds) if 0 <= seconds < WEEK else local_time(self.found.time)

    def cells(self, now: float) -> tuple[str, ...]:
        """Return its cells, each any text: name, age, turns, model, end, title, origin."""
        of_it = (self.found.session, self.age(now), counted(self.turns, "turn"), self.model, self.end)
        return (*of_it, visible_line(self.title, 80), f"from {self.origin}" if self.origin else "")


_COLUMNS = (
    Column(name="session"),
    Column(name="begun"),
    Column(name="length", right=True),
    Column(name="model", folds=True, spare=1),
    Column(name="ended", folds=True),
    Column(name="title", folds=True),
    Column(name="origin", leaves=True, spare=2),
    Column(name="workspace", folds=True, leaves=True),
)


def outlines(sessions: Iterable[LoggedSession], own: str = "") -> tuple[SessionOutline, ...]:
    """Return these sessions in short, in their order; `own` is the log that this program writes itself.

    Raises LogError for an unreadable log.
    """
    sessions = tuple(sessions)
    logs = {path: _read(path, own) for path in dict.fromkeys(one.path for one in sessions)}
    return tuple(_outline(one, logs[one.path]) for one in sessions)


class _Log(Record):
    records: tuple[LogRecord, ...]
    torn: bool
    running: bool


def _read(path: str, own: str) -> _Log:
    kinds = ("session_started", "user_message", "model_changed", "session_ended")
    return _Log(records=tuple(records(path, kinds)), torn=not is_whole(path), running=path != own and is_in_use(path))


def _outline(found: LoggedSession, log: _Log) -> SessionOutline:
    of_it = [one for one in log.records if one["session"] == found.session]
    first = next((one for one in of_it if one["kind"] == "session_started"), {})
    asked = next((one for one in reversed(of_it) if one["kind"] == "model_changed"), first)
    said = [one for one in of_it if is_of_person(one)]
    own = (own_words(str(one.get("text"))) for one in said)
    ends = [one for one in of_it if one["kind"] == "session_ended"]
    origin = first.get("origin")
    return SessionOutline(
        found=found,
        model=str(asked.get("model") or ""),
        turns=len(said),
        prompt=next((words for words in own if words.strip()), ""),
        ended=str(ends[-1].get("stop") or "unknown") if ends else "",
        running=log.running,
        torn=log.torn and not ends,
        origin=str(origin.get("session") or "") if isinstance(origin, dict) else "",
    )


def is_of_person(record: LogRecord) -> bool:
    """Say whether a record is a message of the person; the harness says something in their place where an answer is unfit."""
    return record["kind"] == "user_message" and record.get("by") != "harness"


def talks(paths: Iterable[str], workspace: str, own: str = "") -> Iterator[SessionOutline]:
    """Yield the sessions of a workspace that hold a conversation, the newest first; `own` as for `outlines`.

    Each log is read when its session's turn comes. Raises LogError.
    """
    for found in reversed(logged_sessions(paths)):
        if found.workspace == workspace:
            yield from (one for one in outlines((found,), own) if one.is_talk)


def list_sessions(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line a session, the newest last, and return the exit code. Raises HarnessError.

    Sessions without a message to a model are left out for a person; programs, and `--all`, get every session.
    """
    workspace = here(arguments.cwd)
    found = logged_sessions(State.of(environment).log_paths(None if arguments.all else workspace), stopped=_tell_stop)
    told = outlines(one for one in found if arguments.all or one.workspace == workspace)
    if arguments.json:
        for one in told:
            sys.stdout.write(json.dumps(_fields(one), sort_keys=True) + "\n")
        return Exit.DONE
    console = FinishedOutput(environment)
    shown = [one for one in told if arguments.all or one.is_talk]
    if shown:
        now = time.time()
        rows = tuple(TableRow(cells=(*one.cells(now), one.found.workspace if arguments.all else "")) for one in shown)
        console.table(Table(columns=_COLUMNS, rows=rows, headed=console.width > 0))
    else:
        console.line(visible_line(f"no session in {workspace}; --all shows those of other folders", 1_000), Tone.QUIET)
    return Exit.DONE


def _tell_stop(path: str, line: int) -> None:
    where = f"{path}: line {line} is no whole record; what follows in that log is left out"
    complain(where)


def _fields(one: SessionOutline) -> dict[str, JsonValue]:
    return {
        "session": one.found.session,
        "time": one.found.time,
        "mode": one.found.mode,
        "workspace": one.found.workspace,
        "log": one.found.path,
        "model": one.model,
        "turns": one.turns,
        "prompt": one.prompt,
        "ended": one.ended or None,
        "running": one.running,
        "torn": one.torn,
        "origin": one.origin or None,
    }
