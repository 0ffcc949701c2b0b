"""`harness audit list`: one line per session. No log is verified."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.app.audit.answer_writer import AnswerWriter
from harness.app.audit.logs import chosen_logs
from harness.audit.batch_results import task_of
from harness.audit.calls import text
from harness.errors import LogError, UsageError
from harness.log.order import LogRecord
from harness.log.reader import is_in_use, records, size_and_end
from harness.paths import is_within
from harness.record import Record
from harness.session.exits import Exit
from harness.session.state import State, workspace_folder
from harness.terminal.local_time import local_time, zone
from harness.terminal.styles import Tone
from harness.terminal.tables import Column
from harness.text.visible import visible_line


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line per session and return the exit code. Raises HarnessError."""
    sessions = State.of(environment).sessions
    workspace = "" if arguments.all else workspace_folder(arguments.cwd)
    with AnswerWriter(environment, as_json=arguments.json) as output:
        try:
            logs = chosen_logs(arguments, environment)
        except UsageError as error:
            if arguments.logs or arguments.session:
                raise
            output.line(str(error), Tone.QUIET)
            return Exit.DONE
        for path in logs.paths:
            try:
                _list(path, logs.session, output, sessions, workspace)
            except LogError as error:
                output.row({"row": "session", "log": path, "state": "unreadable", "problem": str(error)})
                output.line(f"unreadable: {error}", Tone.BAD)
        if output.at_terminal:
            output.line(f"Times are in {zone()}. `harness audit show --session ID` reads one.", Tone.QUIET)
    return Exit.DONE


_COLUMNS = (
    Column(name="task", leaves=True),
    Column(name="session"),
    Column(name="begun"),
    Column(name="mode", spare=4),
    Column(name="model", folds=True, spare=5),
    Column(name="calls", right=True),
    Column(name="asked", right=True, spare=3),
    Column(name="refused", right=True, spare=2),
    Column(name="ended", folds=True, toned=True),
    Column(name="size", right=True, spare=6),
    Column(name="workspace", folds=True, leaves=True, spare=1),
    Column(name="log", folds=True, leaves=True),
)


def _list(path: str, session: str, output: AnswerWriter, sessions: str, workspace: str) -> None:
    for entry in sessions_of(path):
        if session and text(entry.started, "session") != session:
            continue
        in_use = entry.state != "ended" and is_in_use(path)
        output.row(entry.fields(in_use=in_use))
        if output.as_json:
            continue
        ending, tone = _ending(entry, in_use=in_use)
        if output.at_terminal:
            output.entry(
                _COLUMNS,
                (
                    *_cells(entry),
                    ending,
                    _size(entry.size),
                    *_places(entry, path, sessions, workspace),
                ),
                tone,
            )
        else:
            output.line(
                "  ".join((_description(entry), ending, _size(entry.size), visible_line(path, 5_000))),
                tone,
                width=8_000,
            )


def _cells(entry: CountedSession) -> tuple[str, ...]:
    start = local_time(text(entry.started, "time"))
    details = (text(entry.started, name) or "-" for name in ("session", "mode", "model"))
    session, mode, model = details
    return (
        task_of(entry.log),
        session,
        start,
        mode,
        model,
        *map(str, (entry.calls, entry.question_count, entry.refused)),
    )


def _places(session: CountedSession, path: str, sessions: str, workspace: str) -> tuple[str, str]:
    """Return the two columns workspace and log of a session.

    The workspace is empty if it is `workspace`. The log is empty if it is in `sessions`, where the session's name finds
    it.
    """
    folder = text(session.started, "workspace")
    return "" if folder == workspace else folder, "" if is_within(path, sessions) and session.started else path


def _description(session: CountedSession) -> str:
    started = session.started
    if not started:
        return "no session"
    start = visible_line(text(started, "time")[:19].replace("T", " "), 19)
    words = [text(started, "session"), f"{start}Z", text(started, "mode") or "?", text(started, "model") or "-"]
    words = [visible_line(word, 100) for word in (*words, text(started, "workspace") or "-")]
    task = [visible_line(task, 64)] if (task := task_of(session.log)) else []
    return "  ".join(
        (*task, *words, f"{session.calls} calls / {session.question_count} asked / {session.refused} refused")
    )


def _ending(session: CountedSession, *, in_use: bool) -> tuple[str, Tone]:
    if in_use and session.state in ("open", "torn", "none"):
        return "in use", Tone.GOOD
    match session.state:
        case "ended":
            return visible_line(text(session.end_record, "stop").replace("_", " ") or "ended", 60), Tone.PLAIN
        case "open":
            return "open: it never said that it ended", Tone.WARNING
        case "torn":
            return "open, and its last line is torn", Tone.WARNING
        case "broken":
            return f"BROKEN: line {session.bad_line} is no record; what follows was not counted", Tone.BAD
        case _:
            return "empty" if not session.size else "holds no session", Tone.WARNING


def _size(size: int) -> str:
    return f"{size} B" if size < 10_000 else f"{size // 1_000} kB" if size < 10_000_000 else f"{size // 1_000_000} MB"


_KINDS = frozenset(("session_started", "session_ended", "call_proposed", "approval_asked", "outcome"))
_REFUSED = ("denied", "blocked")
_REFUSALS = tuple(f'"status":"{status}"'.encode() for status in _REFUSED)


class CountedSession(Record):
    """One session of a log. For a file without sessions, only the size is set."""

    log: str
    size: int
    """Size of the whole file, in bytes."""
    started: LogRecord
    """First record of the session. Empty if the file has no session."""
    end_record: LogRecord
    """Last record of the session. Empty if the log has no end of the session."""
    calls: int
    question_count: int
    refused: int
    """Number of denied and blocked calls, including those that the user replaced."""
    bad_line: int
    """Number of the invalid line (from 1) at which reading stopped. 0 if there is none."""
    torn: bool
    """Whether the last line of the file has no line end."""

    @property
    def state(self) -> str:
        """State of the session: `ended`, `open`, `torn` or `broken`. `none` for a file without a session."""
        if self.bad_line and not (self.torn and self.end_record):
            return "torn" if self.torn else "broken"
        if not self.started:
            return "none"
        return "ended" if self.end_record else "open"

    def fields(self, *, in_use: bool) -> dict[str, JsonValue]:
        """Return the fields of the JSON object."""
        started = self.started
        names = ("session", "time", "mode", "model", "workspace", "user", "host")
        return {
            "row": "session",
            **{name: text(started, name) or None for name in names},
            "calls": self.calls,
            "asked": self.question_count,
            "refused": self.refused,
            "state": self.state,
            "stop": text(self.end_record, "stop") or None,
            "ended_at": text(self.end_record, "time") or None,
            "in_use": in_use,
            "bad_line": self.bad_line or None,
            "bytes": self.size,
            "log": self.log,
            "task": task_of(self.log) or None,
        }


def sessions_of(log: str) -> Iterator[CountedSession]:
    """Yield the sessions of a log in the order of their start. Raises LogError if it cannot be read.

    Only lines that affect the counts are parsed. Outcomes are parsed only if they are refusals.
    """
    started: dict[str, LogRecord] = {}
    end_records: dict[str, LogRecord] = {}
    counts: dict[str, dict[str, int]] = {}
    stops: list[int] = []
    for record in records(log, _KINDS, stopped=stops.append, passed_over=_is_no_refusal):
        session, kind = text(record, "session"), text(record, "kind")
        if kind == "session_started":
            started.setdefault(session, record)
        elif kind == "session_ended":
            end_records[session] = record
        elif kind != "outcome" or text(record, "status") in _REFUSED:
            of_session = counts.setdefault(session, {})
            of_session[kind] = of_session.get(kind, 0) + 1
    size, has_whole_end = size_and_end(log)
    for session in started or {"": {}}:
        of_session = counts.get(session, {})
        yield CountedSession(
            log=log,
            size=size,
            started=started.get(session, {}),
            end_record=end_records.get(session, {}),
            calls=of_session.get("call_proposed", 0),
            question_count=of_session.get("approval_asked", 0),
            refused=of_session.get("outcome", 0),
            bad_line=stops[0] if stops else 0,
            torn=not has_whole_end,
        )


def _is_no_refusal(line: bytes) -> bool:
    """Return whether a line is the outcome of a call that was not refused.

    The search is reliable because quotation marks inside JSON strings are escaped.
    """
    return b'"kind":"outcome"' in line and not any(mark in line for mark in _REFUSALS)
