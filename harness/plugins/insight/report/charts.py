"""Charts of a report: inline SVG drawn from counts, each with a title, a description and its figures in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from harness.audit.calls import STANDING_NAMES, AuditedLogs, CallStanding, LoggedCall, did_fail, standing_of
from harness.log.clocks import seconds_between
from harness.plugins.insight.report.figures import WAITS, Figures, SessionFigures
from harness.plugins.insight.report.markup import line, number
from harness.text.amounts import duration

CHARTED_SESSIONS = 24
"""So many sessions are drawn; of the others the page says that they are not."""
COLUMNS = 300
"""Steps of a time line: what lies closer together is drawn as one."""
RULE_ROWS = 40

_LEFT, _WIDTH, _LANE = 178, 720, 24
_PATTERNS = {
    CallStanding.APPROVED: '<path d="M0 8L8 0M-2 2L2 -2M6 10L10 6"/>',
    CallStanding.REFUSED: '<path d="M0 0L8 8M0 8L8 0"/>',
    CallStanding.BLOCKED: '<path d="M0 2H8M0 6H8"/>',
    CallStanding.NEVER: '<path d="M2 2h1M6 6h1"/>',
    CallStanding.UNKNOWN: '<path d="M2 0V8M6 0V8"/>',
    CallStanding.UNACCOUNTED: '<path d="M0 4H8M4 0V8"/>',
}


def patterns() -> str:
    """Return the patterns that the other charts refer to: each standing looks its own way without any colour."""
    made = "".join(
        f'<pattern id="p-{one.value}" width="8" height="8" patternUnits="userSpaceOnUse"><g class="p">{path}</g></pattern>'
        for one, path in _PATTERNS.items()
    )
    wait = (
        '<pattern id="p-wait" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<g class="i"><path d="M0 6L6 0M-1 1L1 -1M5 7L7 5"/></g></pattern>'
    )
    # Stripes across: what is drawn of a call may be narrower than a pattern is wide, and must look failed all the same.
    failed = (
        '<pattern id="p-failed" width="4" height="4" patternUnits="userSpaceOnUse">'
        '<g class="p"><path d="M0 2H4"/></g></pattern>'
    )
    return f'<svg class="defs" aria-hidden="true" focusable="false"><defs>{made}{wait}{failed}</defs></svg>'


def legend() -> str:
    """Return what the standings look like."""
    items = "".join(f"<li>{_swatch(one)}{STANDING_NAMES[one]}</li>" for one in CallStanding)
    wait = '<svg aria-hidden="true" focusable="false"><rect width="100%" height="100%" fill="url(#p-wait)"/></svg>'
    failed = (
        '<svg aria-hidden="true" focusable="false"><rect width="100%" height="100%" class="f-unasked"/>'
        '<rect width="100%" height="100%" fill="url(#p-failed)"/></svg>'
    )
    return (
        f'<ul class="legend">{items}<li>{wait}waiting for an answer</li><li>{failed}striped: ran and failed</li></ul>'
    )


def _swatch(standing: CallStanding) -> str:
    return f'<svg aria-hidden="true" focusable="false">{_filled("0", "100%", standing)}</svg>'


def _filled(x: str, width: str, standing: CallStanding) -> str:
    box = f'x="{x}" y="0" width="{width}" height="100%"'
    over = f'<rect {box} fill="url(#p-{standing.value})"/>' if standing in _PATTERNS else ""
    return f'<rect {box} class="f-{standing.value}"/>{over}'


def bar(counts: Counter[CallStanding], largest: int) -> str:
    """Return a bar of as many parts as there are standings, in proportion to `largest`."""
    told = ", ".join(f"{number(counts[one])} {STANDING_NAMES[one]}" for one in CallStanding if counts[one])
    at, parts = 0.0, []
    for one in CallStanding:
        if counts[one]:
            width = 100 * counts[one] / max(1, largest)
            parts.append(_filled(f"{at:.2f}%", f"{width:.2f}%", one))
            at += width
    return f'<svg class="bar" role="img"><title>{told}</title>{"".join(parts)}</svg>'


def bar_table(caption: str, head: str, counters: Mapping[str, Counter[CallStanding]], rows: int) -> str:
    """Return a table with a row and a bar a name, the longest first; says how many rows are left out."""
    ordered = sorted(counters.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    kept, rest = ordered[:rows], ordered[rows:]
    if not kept:
        return '<p class="quiet">There is none.</p>'
    largest = sum(kept[0][1].values())
    told = [one for one in CallStanding if any(counts[one] for _, counts in kept)]
    heads = "".join(f'<th scope="col" class="n">{_LANE_NAMES[one]}</th>' for one in told)
    body = "".join(
        f'<tr><th scope="row">{line(name, 200) or "(without a name)"}</th><td class="bar">{bar(counts, largest)}</td>'
        + "".join(f'<td class="n">{number(counts[one])}</td>' for one in told)
        + "</tr>"
        for name, counts in kept
    )
    table = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{line(caption)}"><table><caption>{line(caption)}</caption>'
        f'<thead><tr><th scope="col">{line(head)}</th><th scope="col">share</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    if not rest:
        return table
    others = sum(sum(counts.values()) for _, counts in rest)
    return f'{table}<p class="cut">{number(len(rest))} more with {number(others)} calls in all are not drawn.</p>'


def histogram(figures: Figures) -> str:
    """Return the waiting times of answered questions, with the bin under a second marked."""
    total = sum(figures.waits)
    if not total:
        return '<p class="quiet">No question was answered by a person.</p>'
    names = _bin_names()
    told = ", ".join(f"{name}: {number(count)}" for name, count in zip(names, figures.waits, strict=True))
    largest, step, height = max(figures.waits), 104, 150
    parts = []
    for place, (name, count) in enumerate(zip(names, figures.waits, strict=True)):
        x, tall = place * step + 8, height * count / largest
        is_fast = place == 0
        mark = "fast f-refused" if is_fast else "f-approved"
        over = f'<rect x="{x}" y="{170 - tall:.1f}" width="{step - 16}" height="{tall:.1f}" fill="url(#p-refused)"/>'
        parts.append(f'<rect x="{x}" y="{170 - tall:.1f}" width="{step - 16}" height="{tall:.1f}" class="{mark}"/>')
        parts.append(over if is_fast else "")
        middle = x + (step - 16) // 2
        parts.append(f'<text x="{middle}" y="{164 - tall:.1f}" text-anchor="middle">{number(count)}</text>')
        parts.append(f'<text x="{middle}" y="188" text-anchor="middle" class="soft">{line(name)}</text>')
    parts.append('<text x="52" y="206" text-anchor="middle">! hardly read</text>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="waiting times">'
        f'<svg class="chart small" viewBox="0 0 {step * len(names)} 216" role="img" aria-labelledby="h-t h-d">'
        f'<title id="h-t">How long questions waited for their answer</title><desc id="h-d">{line(told, 1000)}</desc>'
        f'<path class="grid" d="M0 170.5H{step * len(names)}"/>{"".join(parts)}</svg></div>'
    )


def _bin_names() -> list[str]:
    bounds = [duration(bound) if bound != int(bound) else _short(int(bound)) for bound in WAITS]
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"under {bounds[0]}", *between, f"over {bounds[-1]}"]


def _short(seconds: int) -> str:
    return f"{seconds // 60} min" if seconds >= 60 else f"{seconds} s"


def tick_words(seconds: float) -> tuple[str, ...]:
    """Return what six marks from 0 to `seconds` are called: with so many digits that no two are called alike."""
    moments = [seconds * tick / 5 for tick in range(6)]
    if not seconds:
        return ("0 s", "", "", "", "", "")
    words = [duration(at) for at in moments[1:]]
    for digits in range(2, 10):
        if len(set(words)) == len(words):
            break
        words = [f"{at:.{digits}f} s" for at in moments[1:]]
    return "0 s", *words


class Strip:
    """The calls of one session in time, a lane a standing, gathered in columns: as small for a million calls as for ten."""

    def __init__(self, session: SessionFigures) -> None:
        self.session = session
        self.cells: dict[tuple[CallStanding, str], dict[int, tuple[int, str]]] = {}
        """By lane and form (ok, failed, wait), by column: how many calls, and the first of them."""

    def take(self, call: LoggedCall) -> None:
        """Enter a call."""
        standing = standing_of(call)
        begin = self._at(call, "intent", "proposed", "decision")
        end = self._at(call, "outcome", "intent", "answered", "decision", "proposed")
        if begin is None or end is None:
            return
        if call.asked:
            waited = self._at(call, "answered", "asked")
            self._enter(standing, "wait", self._at(call, "asked") or 0.0, waited or 0.0, call)
        form = "failed" if did_fail(call) else "ok"
        self._enter(standing, form, begin if call.intent else end, end, call)

    def _at(self, call: LoggedCall, *names: str) -> float | None:
        for name in names:
            record = getattr(call, name)
            if record and (found := seconds_between(self.session.began, record)) is not None:
                return found
        return None

    def _enter(self, lane: CallStanding, form: str, begin: float, end: float, call: LoggedCall) -> None:
        span = max(self.session.seconds, 0.001)
        first, last = (min(COLUMNS - 1, int(COLUMNS * at / span)) for at in (begin, max(begin, end)))
        cells = self.cells.setdefault((lane, form), {})
        for column in range(first, last + 1):
            count, label = cells.get(column, (0, ""))
            cells[column] = (count + 1, label or f"call {call.number[:20]} {call.tool[:60]}")

    def svg(self) -> str:
        """Return the drawing."""
        lanes = [one for one in CallStanding if any(lane is one for lane, _ in self.cells)]
        height = len(lanes) * _LANE + 26
        names = ", ".join(STANDING_NAMES[one] for one in lanes)
        place, seconds = self.session.place, self.session.seconds
        title = f"Session {self.session.name}: {number(self.session.calls)} calls in {duration(seconds)}"
        parts = [f'<path class="grid" d="M{_LEFT} {height - 26.5}H{_LEFT + _WIDTH}"/>']
        for row, lane in enumerate(lanes):
            parts.append(f'<text x="{_LEFT - 8}" y="{row * _LANE + 17}" text-anchor="end">{_LANE_NAMES[lane]}</text>')
            for form in ("wait", "ok", "failed"):
                parts += self._runs(lane, form, row * _LANE + 4)
        ticks = tick_words(seconds)
        for tick in range(6):
            x = _LEFT + _WIDTH * tick // 5
            anchor = "start" if tick == 0 else "end" if tick == 5 else "middle"
            parts.append(f'<path class="grid" d="M{x}.5 {height - 27}v5"/>')
            parts.append(f'<text x="{x}" y="{height - 6}" text-anchor="{anchor}" class="soft">{ticks[tick]}</text>')
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{line(title)}">'
            f'<svg class="chart" viewBox="0 0 {_LEFT + _WIDTH + 8} {height}" role="img" '
            f'aria-labelledby="t{place} d{place}"><title id="t{place}">{line(title)}</title>'
            f'<desc id="d{place}">From left to right the time since the session began. '
            f"One lane each: {names}. Filled: ran well. Striped: ran and failed. Hatched: waited for an answer.</desc>"
            f"{''.join(parts)}</svg></div>"
        )

    def _runs(self, lane: CallStanding, form: str, y: int) -> Iterator[str]:
        """Yield what is drawn of a lane: columns side by side that tell of the same are one."""
        cells = self.cells.get((lane, form), {})
        columns = sorted(cells)
        start = 0
        while start < len(columns):
            stop = start + 1
            while (
                stop < len(columns)
                and columns[stop] == columns[stop - 1] + 1
                and cells[columns[stop]] == cells[columns[start]]
            ):
                stop += 1
            count, label = cells[columns[start]]
            x = _LEFT + _WIDTH * columns[start] / COLUMNS
            width = max(_WIDTH * (stop - start) / COLUMNS - 0.4, 2)
            told = (
                f"{label}{' waited' if form == 'wait' else ''}"
                if count == 1
                else f"{number(count)} calls, first {label}"
            )
            shape = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="16"'
            look = 'fill="url(#p-wait)"' if form == "wait" else f'class="f-{lane.value}"'
            yield f"<rect {shape} {look}><title>{line(told)}</title></rect>"
            if form == "failed":
                yield f'<rect {shape} fill="url(#p-failed)"><title>{line(told)}, failed</title></rect>'
            start = stop


_LANE_NAMES = {
    CallStanding.UNASKED: "without a human",
    CallStanding.APPROVED: "after a yes",
    CallStanding.REFUSED: "refused",
    CallStanding.BLOCKED: "blocked",
    CallStanding.NEVER: "not run",
    CallStanding.UNKNOWN: "unknown",
    CallStanding.UNACCOUNTED: "not accounted for",
}


def strips(calls: Iterable[LoggedCall], figures: Figures) -> Sequence[Strip]:
    """Return the time lines of the first sessions that have calls."""
    drawn = [one for one in figures.sessions.values() if one.calls][:CHARTED_SESSIONS]
    made = {(one.log, one.name): Strip(one) for one in drawn}
    for call in calls:
        strip = made.get((call.log, call.session))
        if strip is not None:
            strip.take(call)
    return tuple(made.values())


def waited_in_words(call: LoggedCall) -> str:
    """Return how long the answer took, with a mark on those that came too soon; HTML."""
    waited = call.waited
    if waited is None:
        return '<span class="quiet">not told</span>'
    told = f"{waited:.2f} s" if waited < 10 else duration(waited)
    return f'{told} <span class="mark">! under 1 s</span>' if call.is_quick else told


def pictures(logs: AuditedLogs, figures: Figures) -> Iterator[str]:
    """Yield all charts, each under its heading."""
    yield "<h3>Calls over time</h3>\n"
    drawn = strips(logs.calls(), figures)
    for strip in drawn:
        yield f"<p>Session {strip.session.place}: {number(strip.session.calls)} calls</p>{strip.svg()}\n"
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
