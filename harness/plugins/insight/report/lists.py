"""The tables of a report: what was refused, asked, changed, read, reached. Each is complete, a row a call or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from harness.actions import JsonValue
from harness.audit.call_effects import CallEffects, effects_of_calls, effects_words
from harness.audit.calls import AuditedLogs, CallStanding, LoggedCall, answerer, objects_in, rule_of, standing_of, text
from harness.plugins.insight.questions import LoggedQuestion, LoggedRefusal, Refuser, questions
from harness.plugins.insight.report.charts import waited_in_words
from harness.plugins.insight.report.figures import Figures, ReadPath, is_command
from harness.plugins.insight.report.markup import digest, line, moment, number, shown, table
from harness.record import Record

_AboutCall: TypeAlias = LoggedCall | LoggedQuestion | CallEffects
RowT = TypeVar("RowT")


class ReportDetail:
    """How much of a text is shown, and whether the time line holds every call, so that a list can point into it."""

    def __init__(self, figures: Figures, *, characters: int | None, is_whole: bool) -> None:
        """`characters`: of one text, None for all of it."""
        self.figures = figures
        self.characters = characters
        self.is_whole = is_whole

    def anchor(self, call: LoggedCall) -> str:
        """Return the name of a call's place on the page; empty where it can have none."""
        session = self.figures.sessions.get((call.log, call.session))
        is_plain = call.number.isascii() and call.number.isdigit() and len(call.number) < 12
        return f"s{session.place}c{call.number}" if session is not None and is_plain else ""

    def name(self, call: LoggedCall) -> str:
        """Return `session 1, call 5`, as a link where there is something to point at."""
        session = self.figures.sessions.get((call.log, call.session))
        words = f"session {session.place if session else '?'}, call {line(call.number, 20)}"
        anchor = self.anchor(call)
        return f'<a href="#{anchor}">{words}</a>' if anchor and self.is_whole else words


class ReportList(Record, Generic[RowT]):
    """One of the tables."""

    caption: str
    is_any: Callable[[Figures], object]
    """Whether it has a row; without one there is no table, and the logs are not read for it."""
    rows: Callable[[AuditedLogs, Figures], Iterable[RowT]]
    columns: Sequence[tuple[str, Callable[[RowT, ReportDetail], str]]]
    """The head of each, and the cell below it."""

    def html(self, logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
        """Yield the table, if it has a row."""
        if self.is_any(show.figures):
            cells = ([cell(row, show) for _, cell in self.columns] for row in self.rows(logs, show.figures))
            yield from table(self.caption, [head for head, _ in self.columns], cells)


def _cell(html: str, kind: str = "") -> str:
    return f'<td class="{kind}">{html}</td>' if kind else f"<td>{html}</td>"


def _file(name: object) -> str:
    """Return the cell that is the head of a row."""
    return f'<th scope="row" class="what"><code>{line(name, 1000)}</code></th>'


def _of(row: _AboutCall) -> LoggedCall:
    return row if isinstance(row, LoggedCall) else row.call


def _time(row: _AboutCall, _show: ReportDetail) -> str:
    return _cell(moment(_of(row).time), "t")


def _call(row: _AboutCall, show: ReportDetail) -> str:
    return _cell(show.name(_of(row)), "t")


def _tool(row: _AboutCall, _show: ReportDetail) -> str:
    return _cell(line(_of(row).tool, 60))


def _what(row: _AboutCall, _show: ReportDetail) -> str:
    return _cell(f"<code>{line(_of(row).summary, 400)}</code>", "what")


def _rule(row: _AboutCall, _show: ReportDetail) -> str:
    return _cell(line(rule_of(_of(row)), 400), "why")


def _to_change(call: LoggedCall, _show: ReportDetail) -> str:
    change = call.intent.get("change")
    return _cell(f"<code>{line(change.get('path'), 1000)}</code>", "what") if isinstance(change, dict) else _cell("")


def _refused_by(call: LoggedCall, _show: ReportDetail) -> str:
    is_blocked = text(call.outcome, "status") == "blocked"
    halted = ' <span class="mark"># the run halted</span>' if is_blocked else ""
    return _cell(f"{_who(call)}{halted}", "why")


def _who(call: LoggedCall) -> str:
    """Return in words who or what refused; HTML."""
    match LoggedRefusal(call=call).refuser:
        case Refuser.POLICY:
            return "the policy"
        case Refuser.NOBODY:
            return "nobody was there to ask"
        case Refuser.EDIT:
            return f"replaced by an edited call ({line(call.answered.get('edited_to'), 20)})"
        case Refuser.PERSON | Refuser.SCRIPT | Refuser.OUTSIDE:
            return f"{line(call.answered.get('by'), 60)}, after {waited_in_words(call)}"
        case Refuser.TOOL | Refuser.UNSAID:
            return "the log does not say"


def _reason(call: LoggedCall, _show: ReportDetail) -> str:
    words = text(call.answered, "words")
    return _cell(line(f'"{words}"' if words else text(call.decision, "reason"), 400), "why")


def _answer(question: LoggedQuestion, _show: ReportDetail) -> str:
    answered = question.call.answered
    answer = line(answered.get("answer"), 20) or "no answer in the log"
    edited = f"<br>became call {line(answered['edited_to'], 20)}" if "edited_to" in answered else ""
    return _cell(f'<span class="word">{answer}</span>{edited}')


def _waited(question: LoggedQuestion, _show: ReportDetail) -> str:
    burst = ' <span class="mark">! burst</span>' if question.in_burst else ""
    return _cell(f"{waited_in_words(question.call) if question.call.answered else ''}{burst}", "t")


def _calls_that(*standings: CallStanding) -> Callable[[AuditedLogs, Figures], Iterator[LoggedCall]]:
    return lambda logs, _: (call for call in logs.calls() if standing_of(call) in standings)


class _Connection(Record):
    """What came of the connections of a call to one host."""

    call: LoggedCall
    told: Mapping[str, JsonValue]


class _Shown(Record):
    """A picture that the model was shown."""

    told: Mapping[str, JsonValue]
    time: JsonValue
    by: str
    """By which call or prompt; HTML."""


def _connections(logs: AuditedLogs, _: Figures) -> Iterator[_Connection]:
    for call in logs.calls():
        yield from (_Connection(call=call, told=one) for one in objects_in(call.outcome.get("connections")))


def _pictures(logs: AuditedLogs, figures: Figures) -> Iterator[_Shown]:
    """Yield those of the prompts, then those of results."""
    for log, record in logs.records(("user_message",)):
        session = figures.sessions.get((log, str(record["session"])))
        by = f"session {session.place if session else '?'}, prompt"
        yield from (_Shown(told=one, time=record["time"], by=by) for one in objects_in(record.get("pictures")))
    for call in logs.calls():
        session = figures.sessions.get((call.log, call.session))
        by = f"session {session.place if session else '?'}, call {line(call.number, 20)}"
        yield from (_Shown(told=one, time=call.time, by=by) for one in objects_in(call.outcome.get("pictures")))


def _host(row: _Connection, _show: ReportDetail) -> str:
    return _file(f"{shown(row.told.get('host'))}:{shown(row.told.get('port'))}")


def _allowed(row: _Connection, _show: ReportDetail) -> str:
    if row.told.get("allowed") is True:
        return _cell("allowed")
    return _cell(f'<span class="mark">x refused</span> {line(row.told.get("why_not"), 400)}', "why")


def _bytes(row: _Connection, _show: ReportDetail) -> str:
    return _cell(f"{line(row.told.get('sent'), 20)} / {line(row.told.get('received'), 20)}", "n")


def _size(row: _Shown, _show: ReportDetail) -> str:
    told = row.told
    pixels = f"{line(told.get('width'), 20)} x {line(told.get('height'), 20)} pixels"
    return _cell(f"{line(told.get('media_type'), 60)}, {pixels}, {line(told.get('size'), 20)} bytes")


_THE_CALL = (("time (UTC)", _time), ("call", _call), ("tool", _tool), ("what", _what))
LISTS: Mapping[str, ReportList[Any]] = {
    "unknown_calls": ReportList[LoggedCall](
        caption="calls whose end is not known",
        is_any=lambda figures: figures.standings[CallStanding.UNKNOWN],
        rows=_calls_that(CallStanding.UNKNOWN),
        columns=(
            ("begun (UTC)", lambda call, _: _cell(moment(call.intent.get("time")), "t")),
            ("call", _call),
            ("tool", _tool),
            ("what", _what),
            ("was to change", _to_change),
            ("allowed by", _rule),
        ),
    ),
    "refused_calls": ReportList[LoggedCall](
        caption="calls that were refused",
        is_any=lambda figures: figures.standings[CallStanding.REFUSED] or figures.standings[CallStanding.BLOCKED],
        rows=_calls_that(CallStanding.REFUSED, CallStanding.BLOCKED),
        columns=(
            *_THE_CALL,
            ("who refused", _refused_by),
            ("rule", _rule),
            ("reason", _reason),
        ),
    ),
    "asked_calls": ReportList[LoggedQuestion](
        caption="calls about which was asked",
        is_any=lambda figures: figures.questions.asked,
        rows=lambda logs, _: questions(call for call in logs.calls() if call.asked or call.answered),
        columns=(
            ("time (UTC)", _time),
            ("call", _call),
            ("what", _what),
            ("asked by rule", _rule),
            ("answer", _answer),
            ("who", lambda row, _: _cell(line(answerer(row.call.answered), 200))),
            ("after", _waited),
            ("words", lambda row, _: _cell(line(row.call.answered.get("words"), 400), "why")),
        ),
    ),
    "outside_calls": ReportList[CallEffects](
        caption="calls that left the workspace, or could",
        is_any=lambda figures: figures.outside or figures.network,
        rows=lambda logs, _: (left for one in effects_of_calls(logs.calls()) if (left := one.outside) is not None),
        columns=(
            *_THE_CALL,
            ("outside", lambda one, _: _cell(line(effects_words(one, outside=True), 2000), "what")),
            ("allowed by", _rule),
        ),
    ),
    "connections": ReportList[_Connection](
        caption="connections of commands with network by host",
        is_any=lambda figures: figures.connections,
        rows=_connections,
        columns=(
            ("host", _host),
            ("address", lambda row, _: _cell(line(row.told.get("address", ""), 60))),
            ("call", lambda row, show: _call(row.call, show)),
            ("was", _allowed),
            ("times", lambda row, _: _cell(line(row.told.get("times"), 20), "n")),
            ("bytes sent / received", _bytes),
        ),
    ),
    "shown_pictures": ReportList[_Shown](
        caption="pictures that the model was shown",
        is_any=lambda figures: figures.pictures,
        rows=_pictures,
        columns=(
            ("time (UTC)", lambda row, _: _cell(moment(row.time), "t")),
            ("by", lambda row, _: _cell(row.by, "t")),
            ("picture", _size),
            ("SHA-256", lambda row, _: _cell(digest(row.told.get("sha256")))),
        ),
    ),
    "changed_files": ReportList[LoggedCall](
        caption="files that calls changed",
        is_any=lambda figures: figures.changes,
        rows=lambda logs, _: (call for call in logs.calls() if text(call.outcome, "changed_path")),
        columns=(
            ("file", lambda call, _: _file(call.outcome.get("changed_path"))),
            ("call", _call),
            ("SHA-256 before", lambda call, _: _cell(digest(call.outcome.get("before_sha256")))),
            ("SHA-256 after", lambda call, _: _cell(digest(call.outcome.get("after_sha256")))),
        ),
    ),
    "writing_commands": ReportList[CallEffects](
        caption="commands that could write",
        is_any=lambda figures: figures.commands,
        rows=lambda logs, _: (one for one in effects_of_calls(logs.calls()) if is_command(one)),
        columns=(
            *_THE_CALL,
            ("where", lambda one, _: _cell(line(effects_words(one, outside=False), 2000), "what")),
            ("allowed by", _rule),
        ),
    ),
    "read_files": ReportList[tuple[str, ReadPath]](
        caption="files and folders that calls read",
        is_any=lambda figures: figures.read,
        rows=lambda _, figures: sorted(figures.read.items()),
        columns=(
            ("file or folder", lambda row, _: _file(row[0])),
            (
                "where",
                lambda row, _: _cell(
                    '<span class="mark">! outside</span>' if row[1].is_outside else "in the workspace"
                ),
            ),
            ("calls", lambda row, _: _cell(number(row[1].calls), "n")),
            ("first", lambda row, show: _call(row[1].first, show)),
        ),
    ),
}
"""By the slot of the page that they fill."""
