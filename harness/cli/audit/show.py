"""`harness audit show`: a readable timeline of logs, or the calls of them that fit; changes nothing."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Mapping

from harness.audit.calls import Joiner, LoggedCall, text
from harness.audit.filters import CallFilter
from harness.cli.audit.answers import Output, count
from harness.cli.audit.filters import call_filter
from harness.cli.audit.logs import ChosenLogs, chosen_logs, latest_log
from harness.cli.audit.timeline import call_lines, heading, record_lines
from harness.cli.state import State
from harness.cli.trace import Line, Tone
from harness.log_clocks import Clocks
from harness.log_order import LogRecord
from harness.visible import visible_line

_BESIDE_THE_TIME = " " * 10


def show_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write a timeline and return the exit code. Raises HarnessError."""
    wanted = call_filter(arguments, time.time())
    named = arguments.logs or arguments.all or arguments.session or arguments.cwd
    logs = chosen_logs(arguments, environment) if named else latest_log(State.of(environment))
    logs.tell_standing()
    output = Output(environment, as_json=arguments.json)
    if wanted.is_set:
        _show_calls(logs, wanted, output, full=arguments.full)
    elif arguments.json:
        for _, record in logs.records():
            output.row(record)
    else:
        for path in logs.paths:
            if len(logs.paths) > 1:
                output.line(f"log {path}", Tone.QUIET, width=5_000)
            Timeline(output, full=arguments.full).show(path, logs.records_of(path))
    return logs.code


class Timeline:
    """Writes lines behind the time of day, in UTC; the date stands on a line of its own where it changes."""

    def __init__(self, output: Output, *, full: bool) -> None:
        self._output = output
        self._full = full
        self._date = ""
        self._session = ""

    def show(self, path: str, records: Iterable[LogRecord]) -> None:
        """Write what happened, each call where it ended; calls without an end where their session, or the log, ends."""
        joiner, clocks = Joiner(path), Clocks()
        for record in records:
            if jump := clocks.jump(record):
                line = Line(tone=Tone.WARNING, text=f"~ {jump.words}")
                self._lines(text(record, "session"), text(record, "time"), [line], record)
            ended = joiner.take(record)
            if ended is not None:
                self.call(ended)
            elif record["kind"] == "session_ended":
                for call in joiner.rest(text(record, "session")):
                    self.call(call)
            self._lines(text(record, "session"), text(record, "time"), record_lines(record, full=self._full), record)
        for call in joiner.rest():
            self.call(call)

    def call(self, call: LoggedCall) -> None:
        """Write what is said of a call, at the time of the last record about it."""
        moment = text(call.records[-1], "time") if call.records else ""
        self._lines(call.session, moment, call_lines(call, full=self._full))

    def _lines(self, session: str, moment: str, lines: Iterable[Line], record: LogRecord | None = None) -> None:
        beside = f"{visible_line(moment[11:19], 8):8}  "
        for line in lines:
            if moment[:10] != self._date:
                self._date = moment[:10]
                self._output.line(f"{self._date} (UTC)", Tone.QUIET)
            if session != self._session:
                if self._session and (record is None or record["kind"] != "session_started"):
                    self._output.line(f"{_BESIDE_THE_TIME}session {session} goes on", Tone.QUIET)
                self._session = session
            # Cut and made safe where it was made; blocks of --full are meant to be long.
            self._output.line(beside + line.text, line.tone, width=len(beside) + len(line.text))
            beside = _BESIDE_THE_TIME


def _show_calls(logs: ChosenLogs, wanted: CallFilter, output: Output, *, full: bool) -> None:
    """Write the calls that fit, and nothing else; as JSON their records, call by call."""
    session, shown = ("", ""), 0
    timeline = Timeline(output, full=full)
    for call in logs.calls():
        if not wanted.takes(call):
            continue
        shown += 1
        if (call.log, call.session) != session:
            session = call.log, call.session
            output.line(heading(call), Tone.QUIET, width=5_000)
            timeline = Timeline(output, full=full)
        timeline.call(call)
        for record in call.records if output.as_json else ():
            output.row(record)
    if not shown:
        output.line(f"no call fits in {count(logs.sessions, 'session')}")
