"""The tables of a report, such as refused calls or changed files. Each is complete, with a row per call or file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from harness.actions import JsonValue
from harness.app.pages import line, moment, number, value_text
from harness.audit.call_effects import CallEffects, effects_of_calls, effects_words
from harness.audit.calls import AuditedLogs, CallStanding, LoggedCall, answerer, objects_in, rule_of, standing_of, text
from harness.plugins.insight.questions import LoggedQuestion, LoggedRefusal, Refuser, questions
from harness.plugins.insight.report.figures import Figures, ReadPath, is_command
from harness.plugins.insight.report.spans import BREAK, Cell, PageSpan, PageTable, cell, code, digest, waited
from harness.record import Record

_AboutCall: TypeAlias = LoggedCall | LoggedQuestion | CallEffects
RowT = TypeVar("RowT")


class ReportDetail:
    """The amount of detail on a page: the length of texts, and whether the time line has every call.

    Lists link to calls in the time line only if it has every call.
    """

    def __init__(self, figures: Figures, *, characters: int | None, is_whole: bool) -> None:
        """Initialize. `characters` is the maximum length of one text (`None`: unlimited)."""
        self.figures = figures
        self.characters = characters
        self.is_whole = is_whole

    def anchor(self, call: LoggedCall) -> str:
        """Return the anchor of a call on the page. Empty for an unknown session or an irregular number."""
        session = self.figures.sessions.get((call.log, call.session))
        is_plain = call.number.isascii() and call.number.isdigit() and len(call.number) < 12
        return f"s{session.place}c{call.number}" if session is not None and is_plain else ""

    def name(self, call: LoggedCall) -> PageSpan:
        """Return `session 1, call 5`, as a link if the time line has every call."""
        session = self.figures.sessions.get((call.log, call.session))
        words = f"session {session.place if session else '?'}, call {line(call.number, 20)}"
        return PageSpan(words, link=self.anchor(call) if self.is_whole else "")


class ReportList(Record, Generic[RowT]):
    """One of the tables."""

    caption: str
    is_any: Callable[[Figures], object]
    """Whether the table has a row. An empty table is left out, and the logs are not read for it."""
    rows: Callable[[AuditedLogs, Figures], Iterable[RowT]]
    columns: Sequence[tuple[str, Callable[[RowT, ReportDetail], Cell]]]
    """Heading and cell function of each column."""

    def table(self, logs: AuditedLogs, show: ReportDetail) -> PageTable | None:
        """Return the table. `None` if it has no rows."""
        if not self.is_any(show.figures):
            return None
        cells = ([make(row, show) for _, make in self.columns] for row in self.rows(logs, show.figures))
        return PageTable(caption=self.caption, heads=[head for head, _ in self.columns], rows=cells)


def _file(name: object) -> Cell:
    """Return the cell that names a row."""
    return cell(code(name, 1000), kind="what", is_head=True)


def _of(row: _AboutCall) -> LoggedCall:
    return row if isinstance(row, LoggedCall) else row.call


def _time(row: _AboutCall, _show: ReportDetail) -> Cell:
    return cell(moment(_of(row).time), kind="t")


def _call(row: _AboutCall, show: ReportDetail) -> Cell:
    return cell(show.name(_of(row)), kind="t")


def _tool(row: _AboutCall, _show: ReportDetail) -> Cell:
    return cell(line(_of(row).tool, 60))


def _summary(row: _AboutCall, _show: ReportDetail) -> Cell:
    return cell(code(_of(row).summary, 400), kind="what")


def _rule(row: _AboutCall, _show: ReportDetail) -> Cell:
    return cell(line(rule_of(_of(row)), 400), kind="why")


def _to_change(call: LoggedCall, _show: ReportDetail) -> Cell:
    change = call.intent.get("change")
    return cell(code(change.get("path"), 1000), kind="what") if isinstance(change, dict) else cell()


def _refused_by(call: LoggedCall, _show: ReportDetail) -> Cell:
    is_blocked = text(call.outcome, "status") == "blocked"
    halted = (PageSpan(" "), PageSpan("# the run halted", "mark")) if is_blocked else ()
    return cell(*_refuser(call), *halted, kind="why")


def _refuser(call: LoggedCall) -> tuple[PageSpan, ...]:
    """Return the source of a refusal in words."""
    match LoggedRefusal(call=call).refuser:
        case Refuser.POLICY:
            return (PageSpan("the policy"),)
        case Refuser.NOBODY:
            return (PageSpan("nobody was there to ask"),)
        case Refuser.EDIT:
            return (PageSpan(f"replaced by an edited call ({line(call.answered.get('edited_to'), 20)})"),)
        case Refuser.PERSON | Refuser.SCRIPT | Refuser.OUTSIDE:
            return PageSpan(f"{line(call.answered.get('by'), 60)}, after "), *waited(call)
        case Refuser.TOOL | Refuser.UNSAID:
            return (PageSpan("the log does not say"),)


def _reason(call: LoggedCall, _show: ReportDetail) -> Cell:
    words = text(call.answered, "words")
    return cell(line(f'"{words}"' if words else text(call.decision, "reason"), 400), kind="why")


def _answer(question: LoggedQuestion, _show: ReportDetail) -> Cell:
    answer_record = question.call.answered
    answer = PageSpan(line(answer_record.get("answer"), 20) or "no answer in the log", "word")
    if "edited_to" not in answer_record:
        return cell(answer)
    return cell(answer, BREAK, f"became call {line(answer_record['edited_to'], 20)}")


def _waited(question: LoggedQuestion, _show: ReportDetail) -> Cell:
    burst = (PageSpan(" "), PageSpan("! burst", "mark")) if question.in_burst else ()
    return cell(*(waited(question.call) if question.call.answered else ()), *burst, kind="t")


def _calls_that(*standings: CallStanding) -> Callable[[AuditedLogs, Figures], Iterator[LoggedCall]]:
    return lambda logs, _: (call for call in logs.calls() if standing_of(call) in standings)


class _Connection(Record):
    """The connections of a call to one host."""

    call: LoggedCall
    fields: Mapping[str, JsonValue]


class _Shown(Record):
    """A picture that the model was shown."""

    fields: Mapping[str, JsonValue]
    time: JsonValue
    by: str
    """The call or prompt with the picture."""


def _connections(logs: AuditedLogs, _: Figures) -> Iterator[_Connection]:
    for call in logs.calls():
        yield from (
            _Connection(call=call, fields=connection) for connection in objects_in(call.outcome.get("connections"))
        )


def _pictures(logs: AuditedLogs, figures: Figures) -> Iterator[_Shown]:
    """Yield the pictures of prompts, then those of results."""
    for log, record in logs.records(("user_message",)):
        session = figures.sessions.get((log, str(record["session"])))
        by = f"session {session.place if session else '?'}, prompt"
        yield from (
            _Shown(fields=picture, time=record["time"], by=by) for picture in objects_in(record.get("pictures"))
        )
    for call in logs.calls():
        session = figures.sessions.get((call.log, call.session))
        by = f"session {session.place if session else '?'}, call {line(call.number, 20)}"
        yield from (
            _Shown(fields=picture, time=call.time, by=by) for picture in objects_in(call.outcome.get("pictures"))
        )


def _host(row: _Connection, _show: ReportDetail) -> Cell:
    return _file(f"{value_text(row.fields.get('host'))}:{value_text(row.fields.get('port'))}")


def _allowed(row: _Connection, _show: ReportDetail) -> Cell:
    if row.fields.get("allowed") is True:
        return cell("allowed")
    return cell(PageSpan("x refused", "mark"), f" {line(row.fields.get('why_not'), 400)}", kind="why")


def _bytes(row: _Connection, _show: ReportDetail) -> Cell:
    return cell(f"{line(row.fields.get('sent'), 20)} / {line(row.fields.get('received'), 20)}", kind="n")


def _size(row: _Shown, _show: ReportDetail) -> Cell:
    picture = row.fields
    pixels = f"{line(picture.get('width'), 20)} x {line(picture.get('height'), 20)} pixels"
    return cell(f"{line(picture.get('media_type'), 60)}, {pixels}, {line(picture.get('size'), 20)} bytes")


_THE_CALL = (("time (UTC)", _time), ("call", _call), ("tool", _tool), ("what", _summary))
LISTS: Mapping[str, ReportList[Any]] = {
    "unknown_calls": ReportList[LoggedCall](
        caption="calls whose end is not known",
        is_any=lambda figures: figures.standings[CallStanding.UNKNOWN],
        rows=_calls_that(CallStanding.UNKNOWN),
        columns=(
            ("begun (UTC)", lambda call, _: cell(moment(call.intent.get("time")), kind="t")),
            ("call", _call),
            ("tool", _tool),
            ("what", _summary),
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
        is_any=lambda figures: figures.questions.question_count,
        rows=lambda logs, _: questions(call for call in logs.calls() if call.asked or call.answered),
        columns=(
            ("time (UTC)", _time),
            ("call", _call),
            ("what", _summary),
            ("asked by rule", _rule),
            ("answer", _answer),
            ("who", lambda row, _: cell(line(answerer(row.call.answered), 200))),
            ("after", _waited),
            ("words", lambda row, _: cell(line(row.call.answered.get("words"), 400), kind="why")),
        ),
    ),
    "outside_calls": ReportList[CallEffects](
        caption="calls that left the workspace, or could",
        is_any=lambda figures: figures.outside or figures.network,
        rows=lambda logs, _: (
            outside for reach in effects_of_calls(logs.calls()) if (outside := reach.outside) is not None
        ),
        columns=(
            *_THE_CALL,
            ("outside", lambda reach, _: cell(line(effects_words(reach, outside=True), 2000), kind="what")),
            ("allowed by", _rule),
        ),
    ),
    "connections": ReportList[_Connection](
        caption="connections of commands with network by host",
        is_any=lambda figures: figures.connections,
        rows=_connections,
        columns=(
            ("host", _host),
            ("address", lambda row, _: cell(line(row.fields.get("address", ""), 60))),
            ("call", lambda row, show: _call(row.call, show)),
            ("was", _allowed),
            ("times", lambda row, _: cell(line(row.fields.get("times"), 20), kind="n")),
            ("bytes sent / received", _bytes),
        ),
    ),
    "shown_pictures": ReportList[_Shown](
        caption="pictures that the model was shown",
        is_any=lambda figures: figures.pictures,
        rows=_pictures,
        columns=(
            ("time (UTC)", lambda row, _: cell(moment(row.time), kind="t")),
            ("by", lambda row, _: cell(row.by, kind="t")),
            ("picture", _size),
            ("SHA-256", lambda row, _: cell(digest(row.fields.get("sha256")))),
        ),
    ),
    "changed_files": ReportList[LoggedCall](
        caption="files that calls changed",
        is_any=lambda figures: figures.changes,
        rows=lambda logs, _: (call for call in logs.calls() if text(call.outcome, "changed_path")),
        columns=(
            ("file", lambda call, _: _file(call.outcome.get("changed_path"))),
            ("call", _call),
            ("SHA-256 before", lambda call, _: cell(digest(call.outcome.get("before_sha256")))),
            ("SHA-256 after", lambda call, _: cell(digest(call.outcome.get("after_sha256")))),
        ),
    ),
    "writing_commands": ReportList[CallEffects](
        caption="commands that could write",
        is_any=lambda figures: figures.commands,
        rows=lambda logs, _: (reach for reach in effects_of_calls(logs.calls()) if is_command(reach)),
        columns=(
            *_THE_CALL,
            ("where", lambda reach, _: cell(line(effects_words(reach, outside=False), 2000), kind="what")),
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
                lambda row, _: cell(PageSpan("! outside", "mark") if row[1].is_outside else "in the workspace"),
            ),
            ("calls", lambda row, _: cell(number(row[1].calls), kind="n")),
            ("first", lambda row, show: _call(row[1].first, show)),
        ),
    ),
}
"""Lists, by the name of the page slot that each fills."""
