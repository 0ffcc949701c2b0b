"""`harness sessions list`, and look-ups of the sessions in action logs by workspace or by name."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from harness.actions import JsonValue
from harness.audit.calls import is_of_person
from harness.audit.findings import judge_log
from harness.errors import UsageError
from harness.log.clocks import NANO, nanoseconds
from harness.log.heads_file import HeadsFile
from harness.log.order import LogRecord
from harness.log.reader import is_in_use, is_whole, read_log, records
from harness.log.vocabulary import CARRIED
from harness.messages import Role
from harness.record import Record
from harness.session.exits import Exit
from harness.session.person_message import own_words
from harness.session.state import State, workspace_folder
from harness.terminal.console import FinishedOutput, complain
from harness.terminal.local_time import local_time
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import ago, count_of
from harness.text.visible import visible_line

UNDO = "undo"
"""Mode of a session that undid another session's changes."""
HELPER = "helper"
"""Mode of a helper's session.

It cannot be continued, and its changes are removed together with its copy of the workspace.
"""
WEEK = 7 * 86_400
"""One week, in seconds."""


class LoggedSession(Record):
    """A session, as described by its first record."""

    path: str
    """Path of the log."""
    session: str
    time: str
    mode: str
    workspace: str
    method: str = ""
    """`resumed` or `forked` for a session that continues another one."""


def logged_sessions(
    paths: Iterable[str], *, undoings: bool = False, stopped: Callable[[str, int], None] | None = None
) -> tuple[LoggedSession, ...]:
    """Return the sessions of these logs, the newest last.

    Sessions that undid changes and sessions of helpers are included only with `undoings`. Reading of a log stops at an
    invalid line, and `stopped` gets the path and the line number (from 1). Raises LogError for an unreadable log.
    """
    sessions = []
    for path in paths:
        stops: list[int] = []
        sessions += [_session_of(path, item) for item in records(path, ("session_started",), stopped=stops.append)]
        if stops and stopped is not None:
            stopped(path, stops[0])
    return tuple(
        sorted((item for item in sessions if undoings or item.mode not in (UNDO, HELPER)), key=lambda item: item.time)
    )


def _session_of(path: str, started: LogRecord) -> LoggedSession:
    return LoggedSession(
        path=path,
        session=str(started["session"]),
        time=str(started["time"]),
        mode=str(started.get("mode")),
        workspace=str(started.get("workspace")),
        method=str(origin.get("how") or "") if isinstance(origin := started.get("origin"), dict) else "",
    )


def session_named(sessions: Iterable[LoggedSession], name: str, flag: str = "") -> LoggedSession:
    """Return the only session whose name begins with `name`.

    Raises UsageError if there is not exactly one. The error mentions `flag`, the source of `name`.
    """
    matches = [session for session in sessions if name and session.session.startswith(name)]
    if len(matches) != 1:
        problem = f"{len(matches)} sessions' names begin" if matches else "no session's name begins"
        raise UsageError(f"{f'{flag}: ' if flag else ''}{problem} with {visible_line(name)!r}")
    return matches[0]


class VerifiedSession(Record):
    """The records of one session from a verified log."""

    records: tuple[LogRecord, ...]
    torn: bool
    """Whether the last line of the log is incomplete. It is left out."""
    count: int
    """Number of records in the log."""
    head: str
    """Hash of the last complete line."""


def verified_session(session: LoggedSession, state: State) -> VerifiedSession:
    """Verify the log of a session, and return the session's records.

    Raises UsageError if the log is broken, differs from its noted head, or continued after it was closed. Raises
    LogError if it cannot be read.
    """
    findings = judge_log(session.path, HeadsFile(state.heads))
    if findings.unfit:
        reason = visible_line(findings.unfit, 1_000)
        raise UsageError(f"the action log cannot be relied on: {visible_line(session.path, 5_000)}: {reason}")
    proved = findings.verification
    return VerifiedSession(
        records=tuple(
            record for record in islice(read_log(session.path), proved.records) if record["session"] == session.session
        ),
        torn=proved.torn,
        count=proved.records,
        head=proved.head,
    )


class SessionOutline(Record):
    """Summary of a session. It is read quickly, without verification of the log."""

    session: LoggedSession
    model: str
    """The model of the session's last request."""
    turns: int
    """Number of the user's messages."""
    name: str
    """The name that the user gave the session. Empty for none."""
    prompt: str
    """The user's first message in the conversation, without additions by the harness. Empty if there is none."""
    stop_reason: str
    """The stop reason. Empty if the log has no end of the session."""
    running: bool
    """Whether a program is writing the log, so that no other program can continue the session."""
    torn: bool
    """Whether the last line of the log is incomplete."""
    origin: str
    """The session that this one continues. Empty for a new conversation."""
    carried_turns: int = 0
    """Number of the user's messages in the conversation that this session continues."""

    @property
    def is_talk(self) -> bool:
        """Whether the session has a conversation.

        A continuation counts even without a message, since its conversation may have been cleared.
        """
        return bool(self.turns or self.origin)

    @property
    def title(self) -> str:
        """The name, or the first line that the user typed to the model. Not yet safe to display."""
        return (
            self.name
            or next((line.strip() for line in self.prompt.splitlines() if line.strip()), "")
            or "(nothing typed)"
        )

    @property
    def end(self) -> str:
        """Description of the session's end or state."""
        return self.stop_reason.replace("_", " ") or (
            "running" if self.running else "open, torn" if self.torn else "open"
        )

    def age(self, now: float) -> str:
        """Return the age at `now` (seconds since 1970) in words. After a week, return the local date and time."""
        nanos = nanoseconds(self.session.time)
        if nanos is None:
            return "at an unknown time"
        seconds = now - nanos / NANO
        return ago(seconds) if 0 <= seconds < WEEK else local_time(self.session.time)

    def cells(self, now: float) -> tuple[str, ...]:
        """Return the table cells, not yet safe to display: name, age, turns, model, end, title, origin."""
        of_it = (self.session.session, self.age(now), count_of(self.turns, "turn"), self.model, self.end)
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


def outlines(sessions: Iterable[LoggedSession], own_log: str = "") -> tuple[SessionOutline, ...]:
    """Return the summaries of these sessions, in order.

    `own_log` is the log that this process writes. Raises LogError for an unreadable log.
    """
    sessions = tuple(sessions)
    logs = {path: _read(path, own_log) for path in dict.fromkeys(session.path for session in sessions)}
    return tuple(_outline(session, logs[session.path]) for session in sessions)


class _Log(Record):
    records: tuple[LogRecord, ...]
    torn: bool
    running: bool


def _read(path: str, own_log: str) -> _Log:
    kinds = ("session_started", "history_changed", "user_message", "session_named", "model_changed", "session_ended")
    return _Log(
        records=tuple(records(path, kinds)), torn=not is_whole(path), running=path != own_log and is_in_use(path)
    )


def _outline(session: LoggedSession, log: _Log) -> SessionOutline:
    of_it = [record for record in log.records if record["session"] == session.session]
    first = next((record for record in of_it if record["kind"] == "session_started"), {})
    model_record = next((record for record in reversed(of_it) if record["kind"] == "model_changed"), first)
    prompts = [record for record in of_it if is_of_person(record)]
    carried = list(_carried_prompts(of_it))
    texts = (own_words(text).strip() for text in (*carried, *(str(record.get("text")) for record in prompts)))
    ends = [record for record in of_it if record["kind"] == "session_ended"]
    origin = first.get("origin")
    return SessionOutline(
        session=session,
        model=str(model_record.get("model") or ""),
        turns=len(prompts),
        name=name_in(of_it),
        prompt=next(filter(None, texts), ""),
        stop_reason=str(ends[-1].get("stop") or "unknown") if ends else "",
        running=log.running,
        torn=log.torn and not ends,
        origin=str(origin.get("session") or "") if isinstance(origin, dict) else "",
        carried_turns=len(carried),
    )


def name_in(records: Sequence[LogRecord]) -> str:
    """Return the last name that the user gave a session. Empty for none."""
    return next((str(record.get("name")) for record in reversed(records) if record["kind"] == "session_named"), "")


def _carried_prompts(records: Sequence[LogRecord]) -> Iterator[str]:
    """Yield the user's messages in the conversation that a session continues, without a summary of older ones."""
    for record in records:
        messages = record.get("messages") if record["kind"] == "history_changed" else None
        for message in messages if isinstance(messages, list) and record.get("why") in CARRIED else ():
            if isinstance(message, dict) and message.get("role") == Role.USER.value:
                content = str(message.get("content"))
                yield "" if own_words(content).startswith("[") else content


def talks(paths: Iterable[str], workspace: str, own_log: str = "") -> Iterator[SessionOutline]:
    """Yield the sessions of a workspace that have a conversation, the newest first.

    `own_log` is the log that this process writes. Each log is read only when its session is needed. Raises LogError.
    """
    for session in reversed(logged_sessions(paths)):
        if session.workspace == workspace:
            yield from (outline for outline in outlines((session,), own_log) if outline.is_talk)


def list_sessions(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line per session, the newest last, and return the exit code. Raises HarnessError.

    Sessions without a message to a model are left out, except with `--json` and `--all`.
    """
    workspace = workspace_folder(arguments.cwd)
    sessions = logged_sessions(
        State.of(environment).log_paths(None if arguments.all else workspace), stopped=_tell_stop
    )
    all_outlines = outlines(outline for outline in sessions if arguments.all or outline.workspace == workspace)
    if arguments.json:
        for outline in all_outlines:
            sys.stdout.write(json.dumps(_fields(outline), sort_keys=True) + "\n")
        return Exit.DONE
    console = FinishedOutput(environment)
    visible_outlines = [outline for outline in all_outlines if arguments.all or outline.is_talk]
    if visible_outlines:
        now = time.time()
        rows = tuple(
            TableRow(cells=(*outline.cells(now), outline.session.workspace if arguments.all else ""))
            for outline in visible_outlines
        )
        console.table(Table(columns=_COLUMNS, rows=rows, headed=console.width > 0))
    else:
        console.line(visible_line(f"no session in {workspace}; --all shows those of other folders", 1_000), Tone.QUIET)
    return Exit.DONE


def _tell_stop(path: str, line: int) -> None:
    problem = f"{path}: line {line} is no whole record; what follows in that log is left out"
    complain(problem)


def _fields(outline: SessionOutline) -> dict[str, JsonValue]:
    return {
        "session": outline.session.session,
        "time": outline.session.time,
        "mode": outline.session.mode,
        "workspace": outline.session.workspace,
        "log": outline.session.path,
        "model": outline.model,
        "turns": outline.turns,
        "name": outline.name or None,
        "prompt": outline.prompt,
        "ended": outline.stop_reason or None,
        "running": outline.running,
        "torn": outline.torn,
        "origin": outline.origin or None,
    }
