"""The grants on offer at a question, and their durations: numbered lists, the narrowest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.grant_pattern import GrantScope
from harness.policy.grant_offers import GrantChoice, Offer
from harness.terminal.question import Usual
from harness.terminal.row_text import Row, Tint, cells, line_rows, prose, safe_line
from harness.terminal.styles import Ink, Tone
from harness.text.visible import one_line

TIMES: tuple[tuple[str, GrantScope, int | None], ...] = (
    ("this session", GrantScope.SESSION, None),
    ("7 days", GrantScope.WORKSPACE, 7),
    ("until you revoke it, with /grants", GrantScope.WORKSPACE, None),
)
"""The durations of a grant."""


def times_rows(width: int) -> list[Row]:
    """Return a numbered row for each possible duration of a grant."""
    return [row for number, (name, _, _) in enumerate(TIMES, 1) for row in prose(name, width, gutter=f"  [{number}] ")]


def offered_rows(offer: Offer, width: int, *, usual: Usual) -> list[Row]:
    """Return the rows of the possible grants, uncut: each choice with its number."""
    rows: list[Row] = []
    choice_lines = [tuple(_lines(choice, usual)) for choice in offer.choices]
    names = [cells(safe_line(one_line(name))) for lines in choice_lines for name, may, _ in lines if name and may]
    column = max((wide for wide in names if wide <= width // 3), default=0)
    for number, (choice, lines) in enumerate(zip(offer.choices, choice_lines, strict=True), 1):
        gutter = f"  [{number}] "
        for name, may, tone in lines:
            label = safe_line(one_line(name))
            tints = (Tint(0, len(label), Ink.STRONG),)
            blanks = " " * (column - cells(label)) if name and may else ""
            rows += line_rows(
                f"{label}{blanks}{safe_line(one_line(may))}", width, gutter=gutter, tints=tints, tone=tone
            )
            gutter = " " * len(gutter)
        for part in choice.asked_still:
            rows += prose(f"asked about still: {part}", width, gutter=gutter, tone=Tone.QUIET)
    caches = _caches(usual)
    if any(pattern.has_caches(caches) for choice in offer.choices for pattern in choice.patterns):
        rows += prose(f"caches: {', '.join(caches)}", width, tone=Tone.QUIET)
    if offer.no_program:
        rows += prose(f"no program with any words: {offer.no_program}", width, tone=Tone.QUIET)
    return rows


def _lines(choice: GrantChoice, usual: Usual) -> Iterator[tuple[str, str, Tone]]:
    """Yield the names that a choice covers, and their effects. Not yet safe to show.

    Consecutive commands with the same effects share one line for them. The workspace is not named, and caches are only
    named together.
    """
    only = "  (cannot be kept: ends with this session)" if choice.session_only else ""
    caches = _caches(usual)
    for may, group in groupby(choice.patterns, key=lambda pattern: pattern.may(usual.folder, caches)):
        patterns = tuple(group)
        tone = Tone.WARNING if patterns[0].network else Tone.PLAIN
        if may and len(patterns) > 1:
            yield from ((pattern.name, "", tone) for pattern in patterns)
            yield "", f"each {may}{only}", tone
        else:
            yield from ((pattern.name, f"  {may}{only}" if may else only, tone) for pattern in patterns)


def _caches(usual: Usual) -> Sequence[str]:
    """Return the places outside the workspace that every permitted command may write."""
    return [place for place in usual.write if place.startswith(("/", "~"))]
