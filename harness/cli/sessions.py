"""`harness sessions list`, and the sessions that action logs hold: found by workspace or by name."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from harness.actions import JsonValue
from harness.cli.console import Console, complain, look_here
from harness.cli.exits import Exit
from harness.cli.state import State, here
from harness.cli.terminal.styles import Tone
from harness.errors import UsageError
from harness.log.findings import judge_log
from harness.log.heads_file import HeadsFile
from harness.log.order import LogRecord
from harness.log.reader import is_whole, read_log, records
from harness.record import Record
from harness.text.visible import visible_line

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


def logged_sessions(
    paths: Iterable[str], *, undoings: bool = False, stopped: Callable[[str, int], None] | None = None
) -> tuple[LoggedSession, ...]:
    """Return the sessions of these logs, the newest last, those that undid another's changes only with `undoings`.

    A line that is no record ends the reading of its log; `stopped` is told the path and the line (from 1). Raises LogError for
    what cannot be read.
    """
    found = []
    for path in paths:
        stops: list[int] = []
        found += [_session_of(path, one) for one in records(path, ("session_started",), stopped=stops.append)]
        if stops and stopped is not None:
            stopped(path, stops[0])
    return tuple(sorted((one for one in found if undoings or one.mode != UNDO), key=lambda one: one.time))


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
    """How many records the log holds."""
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


def outlines(sessions: Iterable[LoggedSession]) -> tuple[SessionOutline, ...]:
    """Return what these sessions came to, in their order. Raises LogError for what cannot be read."""
    sessions = tuple(sessions)
    read = {path: tuple(records(path, _OUTLINED)) for path in dict.fromkeys(one.path for one in sessions)}
    torn = {path: not is_whole(path) for path in read}
    return tuple(
        _outline(one, [r for r in read[one.path] if r["session"] == one.session], torn=torn[one.path])
        for one in sessions
    )


_OUTLINED = ("session_started", "user_message", "session_ended")


def _outline(found: LoggedSession, of_it: Sequence[LogRecord], *, torn: bool) -> SessionOutline:
    of_kind = {kind: [one for one in of_it if one["kind"] == kind] for kind in ("user_message", "session_ended")}
    said, ends = of_kind["user_message"], of_kind["session_ended"]
    first = next((one for one in of_it if one["kind"] == "session_started"), {})
    origin = first.get("origin")
    return SessionOutline(
        found=found,
        model=str(first.get("model") or ""),
        turns=len(said),
        prompt=str(said[0].get("text")) if said else "",
        ended=str(ends[-1].get("stop") or "unknown") if ends else "",
        torn=torn and not ends,
        origin=str(origin.get("session") or "") if isinstance(origin, dict) else "",
    )


def list_sessions(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line a session, the newest last, and return the exit code. Raises HarnessError."""
    workspace = here(arguments.cwd)
    found = logged_sessions(State.of(environment).log_paths(None if arguments.all else workspace), stopped=_tell_stop)
    told = outlines(one for one in found if arguments.all or one.workspace == workspace)
    if arguments.json:
        for one in told:
            sys.stdout.write(json.dumps(_fields(one), sort_keys=True) + "\n")
        return Exit.DONE
    console = Console(sys.stdout, look_here(sys.stdout, environment))
    for one in told:
        console.line(_line(one, everywhere=arguments.all))
    if not told:
        console.line(visible_line(f"no session in {workspace}; --all shows those of other folders", 1_000), Tone.QUIET)
    return Exit.BROKEN_PIPE if console.broken else Exit.DONE


def _tell_stop(path: str, line: int) -> None:
    where = f"{path}: line {line} is no whole record; what follows in that log is left out"
    complain(where)


def _line(one: SessionOutline, *, everywhere: bool) -> str:
    ended = one.ended.replace("_", " ") or ("open, torn" if one.torn else "open")
    turns = "1 turn" if one.turns == 1 else f"{one.turns} turns"
    words = [one.found.session, f"{one.found.time[:16].replace('T', ' ')}Z", one.found.mode, one.model, turns, ended]
    if everywhere:
        words.append(one.found.workspace)
    if one.origin:
        words.append(f"(from {one.origin})")
    prompt = next((line for line in one.prompt.splitlines() if line.strip()), "")
    return "  ".join((*(visible_line(word, 200) for word in words), visible_line(prompt.strip(), 80))).rstrip()


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
        "torn": one.torn,
        "origin": one.origin or None,
    }
