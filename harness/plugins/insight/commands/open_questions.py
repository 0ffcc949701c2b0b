"""The answer to `audit unknown`: calls without an outcome, open sessions and torn lines, and files as they are now."""

from __future__ import annotations

from collections.abc import Iterator

from harness.actions import JsonValue
from harness.app.audit.answer_writer import answer_source, deciding_part, name, short_digest, tool_and_summary
from harness.app.audit.question import AnswerRow, AskedLogs, Total
from harness.audit.calls import CALL_KINDS, text
from harness.audit.logged_changes import file_on_disk
from harness.log.reader import is_in_use, is_whole
from harness.plugins.insight.questions import OpenSession, UnknownCall, open_ends
from harness.terminal.styles import Tone
from harness.terminal.tables import GAP
from harness.text.amounts import count_of
from harness.text.visible import visible_line

FOUND = 3
"""Exit code if the logs have a call without an outcome, an open session or a torn line."""


class OpenEnds:
    """The calls, sessions and lines in some logs that have no end."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._calls = self._sessions = self._torn = 0

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each unknown call, open session and torn line, log by log. Raises LogError."""
        logs = self._asked_logs.logs
        for path in logs.paths:
            in_use, is_torn = is_in_use(path), not is_whole(path)
            for open_end in open_ends(path, logs.count_sessions(logs.records_of(path, CALL_KINDS))):
                if isinstance(open_end, OpenSession):
                    self._sessions += 1
                    yield self._session(open_end, in_use=in_use, is_torn=is_torn)
                else:
                    self._calls += 1
                    yield self._call(open_end, in_use=in_use)
            if is_torn:
                self._torn += 1
                yield _torn_line(path, in_use=in_use)

    def total(self) -> Total:
        """Return the counts, and FOUND if one of them is not 0."""
        calls, sessions, torn = self._calls, self._sessions, self._torn
        counts: dict[str, JsonValue] = {"unknown_calls": calls, "open_sessions": sessions, "torn_lines": torn}
        if not (calls or sessions or torn):
            return Total(counts=counts, lines=(_nothing_open(self._asked_logs.logs.sessions),))
        lines = f", {count_of(torn, 'torn line')}" if torn else ""
        summary = f"{count_of(calls, 'call')} of unknown end, {count_of(sessions, 'open session')}{lines}"
        return Total(counts=counts, lines=(summary,), code=FOUND)

    def _call(self, unknown: UnknownCall, *, in_use: bool) -> AnswerRow:
        call = unknown.call
        allowed = f"yes by {answer_source(call)}" if call.answered else "auto"
        file_now = _file_now(unknown)
        change = _could_write(unknown.could_write)
        if unknown.path:
            digests = f"{short_digest(unknown.before_sha256)} -> {short_digest(unknown.after_sha256)}"
            change = f"to change {visible_line(unknown.path, 1_000)} {digests}: {_NOW[file_now]}"
        running = "in use: it may simply be running" if in_use else "it may have run, wholly or in part"
        which = self._asked_logs.moment(call.intent), name(call), *tool_and_summary(call)
        return AnswerRow(
            cells=(*which, f"{allowed}: {deciding_part(call)}", change, f"end unknown; {running}"),
            objects=(unknown.fields(in_use=in_use, file_now=file_now),),
            tone=Tone.WARNING if in_use else Tone.BAD,
        )

    def _session(self, open_session: OpenSession, *, in_use: bool, is_torn: bool) -> AnswerRow:
        session = visible_line(text(open_session.started, "session"), 40)
        workspace = visible_line(text(open_session.started, "workspace") or "-", 300)
        when, log = self._asked_logs.moment(open_session.started), visible_line(open_session.log, 5_000)
        parts = [f"session {session} in {workspace} never said that it ended"]
        if open_session.not_begun:
            parts.append(f"{count_of(len(open_session.not_begun), 'call')} without an end and not begun")
        if in_use:
            parts.append("its log is in use: it may simply be running")
        elif is_torn:
            parts.append("its log's last line is torn")
        return AnswerRow(
            cells=(when, session, "", log, "", "", "; ".join(parts)),
            objects=(open_session.fields(in_use=in_use, torn=is_torn),),
            lines=((visible_line(GAP.join((when, *parts, log)), 2_000), Tone.WARNING),),
        )


def _torn_line(path: str, *, in_use: bool) -> AnswerRow:
    may = "in use: it may be being written" if in_use else "it may have begun a call, or ended one"
    torn, log = f"the last line is torn; {may}", visible_line(path, 5_000)
    return AnswerRow(
        cells=("", "", "", log, "", "", torn),
        objects=({"row": "torn_line", "log": path, "in_use": in_use},),
        lines=((f"{log}: {torn}", Tone.WARNING),),
    )


def _nothing_open(sessions: int) -> str:
    """Return the line for logs in which every call and session has an end."""
    if not sessions:
        return "there is no session, and so no call"
    return f"every call that was begun in {count_of(sessions, 'session')} has an end, and every session"


def _could_write(paths: list[str] | None) -> str:
    if paths is None:
        return "it could write; which paths is not known"
    if not paths:
        return "it was to read only"
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return f"it could write {', '.join(visible_line(path, 200) for path in paths[:5])}{more}"


_NOW = {
    "as_intended": "the file is what it was to become",
    "as_before": "the file is as it was before",
    "otherwise": "the file is neither what it was nor what it was to become",
    "not_looked_at": "the file was not looked at",
    "": "",
}


def _file_now(unknown: UnknownCall) -> str:
    """Return a key of _NOW: the current state of the file, compared with the intended change."""
    if not unknown.path:
        return ""
    file_state = file_on_disk(unknown.path)
    if file_state.problem or unknown.after_sha256 is None:
        return "not_looked_at"
    if file_state.sha256 == unknown.after_sha256:
        return "as_intended"
    return "as_before" if file_state.sha256 == unknown.before_sha256 else "otherwise"
