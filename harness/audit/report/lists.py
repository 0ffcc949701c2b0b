"""The tables of a report: what was refused, asked, changed, read, reached. Each is complete, a row a call or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.audit.call_effects import CallEffects, effects_of_calls, effects_words
from harness.audit.calls import AuditedLogs, CallStanding, LoggedCall, rule_of, standing_of, text
from harness.audit.questions import LoggedQuestion, LoggedRefusal, Refuser, questions
from harness.audit.report.charts import waited_in_words
from harness.audit.report.figures import Figures, is_command
from harness.audit.report.markup import digest, line, moment, number, table


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


def unknown_calls(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield the calls that were begun and have no end."""
    count = show.figures.standings[CallStanding.UNKNOWN]
    if not count:
        yield '<p class="whole">None: every call that was begun has an end in the log.</p>\n'
        return
    yield f'<p class="alarm"><strong>? {number(count)} begun, end not known.</strong> They may have run, wholly or in part: '
    yield "look at what they would have changed.</p>\n"
    rows = (unknown_row(call, show) for call in logs.calls() if standing_of(call) is CallStanding.UNKNOWN)
    yield from table("calls whose end is not known", UNKNOWN_HEADS, rows)


def refused_calls(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield the calls that were refused or blocked."""
    kinds = CallStanding.REFUSED, CallStanding.BLOCKED
    if any(show.figures.standings[kind] for kind in kinds):
        rows = (refused_row(call, show) for call in logs.calls() if standing_of(call) in kinds)
        yield from table("calls that were refused", REFUSED_HEADS, rows)


def asked_calls(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield the calls about which somebody was asked."""
    if show.figures.questions.asked:
        asked = (call for call in logs.calls() if call.asked or call.answered)
        yield from table("calls about which was asked", ASKED_HEADS, asked_rows(asked, show))


def outside_calls(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield the calls that left the workspace or could reach the network."""
    if show.figures.outside or show.figures.network:
        outside = (left for one in effects_of_calls(logs.calls()) if (left := one.outside) is not None)
        rows = (effects_row(one, show, outside=True) for one in outside)
        yield from table("calls that left the workspace, or could", OUTSIDE_HEADS, rows)


def changed_files(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield what file tools wrote."""
    if show.figures.changes:
        rows = (changed_row(call, show) for call in logs.calls() if text(call.outcome, "changed_path"))
        yield from table("files that calls changed", CHANGED_HEADS, rows)
    if show.figures.kinds["restored"]:
        restored = number(show.figures.kinds["restored"])
        yield f"<p>{restored} records tell of files that were put back: see the time line.</p>\n"


def writing_commands(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield the commands that could write, with where."""
    if show.figures.commands:
        rows = (effects_row(one, show, outside=False) for one in effects_of_calls(logs.calls()) if is_command(one))
        yield from table("commands that could write", COMMAND_HEADS, rows)


def read_files(show: ReportDetail) -> Iterator[str]:
    """Yield the files and folders that were read."""
    if show.figures.read:
        yield from table("files and folders that calls read", READ_HEADS, read_rows(show))


def unknown_row(call: LoggedCall, show: ReportDetail) -> Sequence[str]:
    """Return the row of a call whose end is not known."""
    change = call.intent.get("change")
    begun = moment(call.intent.get("time"))
    return (
        f'<td class="t">{begun}</td>',
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="what"><code>{line(change.get("path"), 1000)}</code></td>'
        if isinstance(change, dict)
        else "<td></td>",
        _rule_cell(call),
    )


UNKNOWN_HEADS = ("begun (UTC)", "call", "tool", "what", "was to change", "allowed by")


def refused_row(call: LoggedCall, show: ReportDetail) -> Sequence[str]:
    """Return the row of a call that was refused or blocked."""
    return (
        _time_cell(call),
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="why">{refused_by(call)}</td>',
        _rule_cell(call),
        f'<td class="why">{line(_reason(call), 400)}</td>',
    )


REFUSED_HEADS = ("time (UTC)", "call", "tool", "what", "who refused", "rule", "reason")


def refused_by(call: LoggedCall) -> str:
    """Return in words who or what refused; HTML."""
    is_blocked = text(call.outcome, "status") == "blocked"
    halted = ' <span class="mark"># the run halted</span>' if is_blocked else ""
    return f"{_who_refused(call)}{halted}"


def _who_refused(call: LoggedCall) -> str:
    match LoggedRefusal(call=call).refuser:
        case Refuser.POLICY:
            return "the policy"
        case Refuser.NOBODY:
            return "nobody was there to ask"
        case Refuser.EDIT:
            return f"replaced by an edited call ({line(call.answered.get('edited_to'), 20)})"
        case Refuser.PERSON | Refuser.SCRIPT:
            return f"{line(call.answered.get('by'), 60)}, after {waited_in_words(call)}"
        case Refuser.TOOL | Refuser.UNSAID:
            return "the log does not say"


def asked_rows(calls: Iterable[LoggedCall], show: ReportDetail) -> Iterator[Sequence[str]]:
    """Yield the row of each of these calls about which somebody was asked."""
    return (_asked_row(question, show) for question in questions(calls))


def _asked_row(question: LoggedQuestion, show: ReportDetail) -> Sequence[str]:
    call = question.call
    burst = ' <span class="mark">! burst</span>' if question.in_burst else ""
    answer = line(call.answered.get("answer"), 20) or "no answer in the log"
    words = line(call.answered.get("words"), 400)
    edited = f"<br>became call {line(call.answered['edited_to'], 20)}" if "edited_to" in call.answered else ""
    return (
        _time_cell(call),
        _call_cell(call, show),
        _what_cell(call),
        _rule_cell(call),
        f'<td><span class="word">{answer}</span>{edited}</td>',
        f"<td>{line(call.answered.get('by'), 60)}</td>",
        f'<td class="t">{waited_in_words(call) if call.answered else ""}{burst}</td>',
        f'<td class="why">{words}</td>',
    )


ASKED_HEADS = ("time (UTC)", "call", "what", "asked by rule", "answer", "who", "after", "words")


def effects_row(one: CallEffects, show: ReportDetail, *, outside: bool) -> Sequence[str]:
    """Return the row of a call that could write, or (`outside`) that left the workspace or could reach the network."""
    call = one.call
    return (
        _time_cell(call),
        _call_cell(call, show),
        f"<td>{line(call.tool, 60)}</td>",
        _what_cell(call),
        f'<td class="what">{line(effects_words(one, outside=outside), 2000)}</td>',
        _rule_cell(call),
    )


OUTSIDE_HEADS = ("time (UTC)", "call", "tool", "what", "outside", "allowed by")
COMMAND_HEADS = ("time (UTC)", "call", "tool", "what", "where", "allowed by")


def read_rows(show: ReportDetail) -> Iterator[Sequence[str]]:
    """Yield the row of each file or folder that was read, by their names."""
    for path, one in sorted(show.figures.read.items()):
        where = '<span class="mark">! outside</span>' if one.is_outside else "in the workspace"
        yield (
            f'<th scope="row" class="what"><code>{line(path, 1000)}</code></th>',
            f"<td>{where}</td>",
            f'<td class="n">{number(one.calls)}</td>',
            _call_cell(one.first, show),
        )


READ_HEADS = ("file or folder", "where", "calls", "first")


def changed_row(call: LoggedCall, show: ReportDetail) -> Sequence[str]:
    """Return the row of a call that changed a file."""
    return (
        f'<th scope="row" class="what"><code>{line(call.outcome.get("changed_path"), 1000)}</code></th>',
        _call_cell(call, show),
        f"<td>{digest(call.outcome.get('before_sha256'))}</td>",
        f"<td>{digest(call.outcome.get('after_sha256'))}</td>",
    )


CHANGED_HEADS = ("file", "call", "SHA-256 before", "SHA-256 after")


def _time_cell(call: LoggedCall) -> str:
    return f'<td class="t">{moment(call.time)}</td>'


def _call_cell(call: LoggedCall, show: ReportDetail) -> str:
    return f'<td class="t">{show.name(call)}</td>'


def _what_cell(call: LoggedCall) -> str:
    return f'<td class="what"><code>{line(call.summary, 400)}</code></td>'


def _rule_cell(call: LoggedCall) -> str:
    return f'<td class="why">{line(rule_of(call), 400)}</td>'


def _reason(call: LoggedCall) -> str:
    words = text(call.answered, "words")
    return f'"{words}"' if words else text(call.decision, "reason")
