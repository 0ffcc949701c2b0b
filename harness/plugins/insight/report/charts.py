"""Bar charts of a report. Each bar has its counts as text too; the style sheet draws the bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from harness.app.pages import line, number
from harness.audit.calls import STANDING_NAMES, CallStanding
from harness.plugins.insight.report.figures import WAITS, Figures
from harness.record import Record
from harness.text.amounts import duration

CHARTED_SESSIONS = 24
"""Maximum number of sessions with their own bars; the rest are counted."""
CHARTED_NAMES = 40
"""Maximum number of tools, and of rules, with their own bars; the rest are counted."""
SHORT_NAMES = {
    CallStanding.UNASKED: "without a human",
    CallStanding.APPROVED: "after a yes",
    CallStanding.REFUSED: "refused",
    CallStanding.BLOCKED: "blocked",
    CallStanding.NEVER: "not run",
    CallStanding.UNKNOWN: "unknown",
    CallStanding.UNACCOUNTED: "not accounted for",
}


class BarPart(NamedTuple):
    """One part of a bar."""

    look: str
    """The value of a CallStanding."""
    width: int
    """Percent of the longest bar."""


class Bar(Record):
    """A bar with its figures."""

    words: str
    parts: Sequence[BarPart]


class BarRow(Record):
    """A row of a chart: a name, its bar, and its counts."""

    name: str
    bar: Bar
    counts: Sequence[str]


class Chart(Record):
    """A table of bars."""

    caption: str
    head: str
    columns: Sequence[str]
    rows: Sequence[BarRow]
    left_out: str = ""
    """Number of rows and calls that the chart leaves out, in words. Empty if it leaves out none."""


def bar(counts: Mapping[CallStanding, int], largest: int) -> Bar:
    """Return a bar with a part for each standing that occurs, in proportion to `largest`."""
    words = ", ".join(
        f"{number(counts[standing])} {STANDING_NAMES[standing]}" for standing in CallStanding if counts[standing]
    )
    parts = [
        BarPart(standing.value, _percent(counts[standing], largest)) for standing in CallStanding if counts[standing]
    ]
    return Bar(words=words, parts=parts)


def _percent(count: int, largest: int) -> int:
    """Return the width of a part in percent. At least 1, so that the part is visible."""
    return max(1, round(100 * count / max(1, largest)))


def charts(figures: Figures) -> Iterator[tuple[str, Chart]]:
    """Yield every chart with its heading."""
    sessions = {
        f"{session.place}: {session.name}": session.standings for session in figures.sessions.values() if session.calls
    }
    yield "Calls by session", _standings("calls by session", "session", sessions, CHARTED_SESSIONS, by_size=False)
    yield "Decisions by tool", _standings("calls by tool", "tool", figures.by_tool, CHARTED_NAMES)
    yield "How long answers took", _waits(figures)
    yield "What decided, rule by rule", _standings("calls by what decided", "rule", figures.by_rule, CHARTED_NAMES)


def _standings(
    caption: str, head: str, counters: Mapping[str, Counter[CallStanding]], max_rows: int, *, by_size: bool = True
) -> Chart:
    """Return a chart with a row for each name. With `by_size`, the longest bar is first."""
    ordered = [*counters.items()]
    if by_size:
        ordered.sort(key=lambda item: (-sum(item[1].values()), item[0]))
    drawn, rest = ordered[:max_rows], ordered[max_rows:]
    largest = max((sum(counts.values()) for _, counts in drawn), default=0)
    columns = [standing for standing in CallStanding if any(counts[standing] for _, counts in drawn)]
    other_calls = sum(sum(counts.values()) for _, counts in rest)
    return Chart(
        caption=caption,
        head=head,
        columns=[SHORT_NAMES[standing] for standing in columns],
        rows=[
            BarRow(
                name=line(name, 200) or "(without a name)",
                bar=bar(counts, largest),
                counts=[number(counts[standing]) for standing in columns],
            )
            for name, counts in drawn
        ],
        left_out=f"{number(len(rest))} more with {number(other_calls)} calls in all are not drawn." if rest else "",
    )


def _waits(figures: Figures) -> Chart:
    """Return the chart of people's answer times. Answers in under a second are marked."""
    largest = max(figures.waits)
    rows = [
        BarRow(
            name=f"{name} ! hardly read" if place == 0 else name,
            bar=Bar(
                words=f"{name}: {number(count)}",
                parts=[
                    BarPart((CallStanding.APPROVED if place else CallStanding.REFUSED).value, _percent(count, largest))
                ]
                if count
                else [],
            ),
            counts=[number(count)],
        )
        for place, (name, count) in enumerate(zip(_bin_names(), figures.waits, strict=True))
    ]
    unreadable = f"{number(figures.unreadable_waits)} answers without a readable waiting time are not drawn."
    return Chart(
        caption="answers by waiting time",
        head="waited",
        columns=["answers"],
        rows=rows if largest else [],
        left_out=unreadable if figures.unreadable_waits else "",
    )


def _bin_names() -> list[str]:
    bounds = [duration(bound) if bound != int(bound) else _short(int(bound)) for bound in WAITS]
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"under {bounds[0]}", *between, f"over {bounds[-1]}"]


def _short(seconds: int) -> str:
    return f"{seconds // 60} min" if seconds >= 60 else f"{seconds} s"
