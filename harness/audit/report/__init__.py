"""A report: one page of HTML about logs, for somebody who was not there; reads records, judges and writes nothing.

The page holds no script, refers to nothing outside itself and says the same whenever it is made of the same logs: its
time is that of the last record. It is yielded in pieces, and several passes are made over the logs, so that memory does
not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.audit.calls import AuditedLogs, LoggedCall
from harness.audit.effects import effects_of_calls
from harness.audit.report.calls import (
    ASKED_HEADS,
    CHANGED_HEADS,
    COMMAND_HEADS,
    OUTSIDE_HEADS,
    READ_HEADS,
    REFUSED_HEADS,
    UNKNOWN_HEADS,
    Shown,
    asked_rows,
    changed_row,
    reach_row,
    read_rows,
    refused_row,
    unknown_row,
)
from harness.audit.report.charts import RULE_ROWS, bar_table, histogram, legend, patterns, strips
from harness.audit.report.figures import Figures, figures_of, is_command
from harness.audit.report.logs import looked_at
from harness.audit.report.page import alarms, figure_cards, page_end, page_start, policies, session_rows, talk
from harness.audit.report.tables import table
from harness.audit.report.text import many, number
from harness.audit.report.timeline import Timeline
from harness.audit.standing import CallStanding, standing_of
from harness.log.findings import Findings

TIMELINE_CALLS = 2_000
"""So many calls are shown whole, unless all are asked for."""
CHARACTERS = 4_000
"""So much of one text is shown, unless all of it is asked for."""


def report(
    source: AuditedLogs,
    logs: Sequence[Findings],
    *,
    unread: Mapping[str, int] = {},
    gone: Sequence[str] = (),
    title: str = "",
    only: str = "",
    full: bool = False,
    grown: Callable[[], Sequence[str]] = lambda: (),
) -> Iterator[str]:
    """Yield the page about `source`, whose logs were judged with `logs` as the result.

    `unread` and `gone` are as in `looked_at`.
    `only` is the session that `source` keeps to, where it does: the page says so.
    With `full` nothing is cut. `grown` is asked at the end for the logs that were written to in the meantime.

    Raises LogError if a log cannot be read.
    """
    figures = figures_of(source)
    most = None if full else TIMELINE_CALLS
    show = Shown(figures, characters=None if full else CHARACTERS, is_whole=most is None or figures.calls <= most)
    yield from page_start(title, figures, logs, only)
    yield patterns()
    yield from alarms(figures, logs, gone)
    yield from talk(figures)
    yield from _unknown(source, show)
    yield from _lists(source, show)
    yield from session_rows(figures, is_linked=show.is_whole)
    yield from figure_cards(figures)
    yield from _files(source, show)
    yield from looked_at(logs, unread, gone)
    yield from _charts(source, figures)
    yield from policies(source, show)
    yield '<h2 id="timeline">Time line</h2>\n'
    yield "<p>Everything in the order of the log. <code>+</code> ran well, <code>!</code> ran and failed, "
    yield "or was no valid call, <code>x</code> refused, <code>#</code> blocked, <code>-</code> not run, <code>?</code> "
    yield "unknown, <code>??</code> ran though nothing allows it, <code>.</code> the log ends before it was begun.</p>\n"
    yield from Timeline(show, None if show.is_whole else most).written(source.records())
    yield from page_end(grown())


def _unknown(source: AuditedLogs, show: Shown) -> Iterator[str]:
    count = show.figures.standings[CallStanding.UNKNOWN]
    yield '<h2 id="unknown">Unknown calls</h2>\n'
    if not count:
        yield '<p class="whole">None: every call that was begun has an end in the log.</p>\n'
        return
    yield f'<p class="alarm"><strong>? {number(count)} begun, end not known.</strong> They may have run, wholly or in part: '
    yield "look at what they would have changed.</p>\n"
    chosen = (call for call in source.calls() if standing_of(call) is CallStanding.UNKNOWN)
    yield from table("calls whose end is not known", UNKNOWN_HEADS, (unknown_row(call, show) for call in chosen))


def _charts(source: AuditedLogs, figures: Figures) -> Iterator[str]:
    yield '<h2 id="charts">Pictures</h2>\n'
    yield legend()
    yield "<h3>Calls over time</h3>\n"
    drawn = strips(source.calls(), figures)
    for strip in drawn:
        session = strip.session
        yield f"<p>Session {session.place}: {number(session.calls)} calls</p>{strip.svg()}\n"
    left_out = sum(1 for one in figures.sessions.values() if one.calls) - len(drawn)
    if left_out:
        yield f'<p class="cut">{number(left_out)} more sessions with calls are not drawn.</p>\n'
    if not drawn:
        yield '<p class="quiet">There is no call.</p>\n'
    yield f"<h3>Decisions by tool</h3>\n{bar_table('calls by tool', 'tool', figures.by_tool, RULE_ROWS)}\n"
    yield f"<h3>How long answers took</h3>\n{histogram(figures)}\n"
    if figures.unreadable_waits:
        yield f'<p class="cut">{number(figures.unreadable_waits)} answers without a readable waiting time are not drawn.</p>\n'
    yield f"<h3>What decided, rule by rule</h3>\n{bar_table('calls by what decided', 'rule', figures.by_rule, RULE_ROWS)}\n"


def _lists(source: AuditedLogs, show: Shown) -> Iterator[str]:
    """Yield the lists of refusals, questions, and what left the workspace: each complete."""
    figures = show.figures
    refused = figures.standings[CallStanding.REFUSED] + figures.standings[CallStanding.BLOCKED]
    yield f'<h2 id="refused">Refused ({number(refused)})</h2>\n'
    if refused:
        chosen = (c for c in source.calls() if standing_of(c) in (CallStanding.REFUSED, CallStanding.BLOCKED))
        yield from table("calls that were refused", REFUSED_HEADS, (refused_row(call, show) for call in chosen))
    yield f'<h2 id="asked">Questions and approvals ({number(figures.asked)})</h2>\n'
    if figures.asked:
        asked = (call for call in source.calls() if call.asked or call.answered)
        yield from table("calls about which was asked", ASKED_HEADS, asked_rows(asked, show))
    yield '<h2 id="outside">Outside, network</h2>\n'
    yield "<p>Calls that read or could write outside the workspace, or could reach the network, as their verdicts let them. "
    yield f"What {many(figures.reads_unknown, 'call')} read is not known.</p>\n"
    if figures.outside or figures.network:
        outside = (left for reach in effects_of_calls(source.calls()) if (left := reach.outside) is not None)
        rows = (reach_row(one, show, outside=True) for one in outside)
        yield from table("calls that left the workspace, or could", OUTSIDE_HEADS, rows)


def _files(source: AuditedLogs, show: Shown) -> Iterator[str]:
    """Yield what was changed, what commands could change, and what was read."""
    figures = show.figures
    yield f'<h2 id="changed">Files changed ({number(figures.changes)})</h2>\n'
    yield "<p>What the file tools wrote.</p>\n"
    if figures.changes:
        changed = (call for call in source.calls() if _changed(call))
        yield from table("files that calls changed", CHANGED_HEADS, (changed_row(call, show) for call in changed))
    if figures.kinds["restored"]:
        yield f"<p>{number(figures.kinds['restored'])} records tell of files that were put back: see the time line.</p>\n"
    yield f'<h2 id="commands">Commands that could write ({number(figures.commands)})</h2>\n'
    yield "<p>What commands changed is not recorded file by file. Told is where they could, as their verdicts say.</p>\n"
    if figures.commands:
        rows = (reach_row(one, show, outside=False) for one in effects_of_calls(source.calls()) if is_command(one))
        yield from table("commands that could write", COMMAND_HEADS, rows)
    yield f'<h2 id="read">Files read ({number(len(figures.read))})</h2>\n'
    yield f"<p>Of a folder, all below it may be meant. What {many(figures.reads_unknown, 'call')} read is not known, "
    yield "or not all of it.</p>\n"
    if figures.read:
        yield from table("files and folders that calls read", READ_HEADS, read_rows(show))


def _changed(call: LoggedCall) -> bool:
    return isinstance(call.outcome.get("changed_path"), str) and call.outcome["changed_path"] != ""
