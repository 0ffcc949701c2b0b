"""The grants on offer at a question, and their durations: numbered lists, the narrowest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.grant_pattern import GrantPattern, GrantScope
from harness.policy.grant_offers import GrantChoice, Offer
from harness.terminal.effects_lines import WORKSPACE_WALLS
from harness.terminal.question import Usual
from harness.terminal.row_text import Row, Tint, cells, line_rows, prose, safe_line
from harness.terminal.styles import Ink, Tone
from harness.terminal.tables import GAP
from harness.text.visible import one_line

TIMES: tuple[tuple[str, GrantScope, int | None], ...] = (
    ("this session", GrantScope.SESSION, None),
    ("7 days", GrantScope.WORKSPACE, 7),
    ("until you revoke it, with /grants", GrantScope.WORKSPACE, None),
)
"""The durations of a grant."""
_SESSION_ONLY = "this session only"
_GUTTER = 6
"""Width of the number of a choice."""


def numbered_rows(names: Sequence[str], width: int) -> list[Row]:
    """Return a numbered row for each name."""
    return [row for number, name in enumerate(names, 1) for row in prose(name, width, gutter=f"  [{number}] ")]


def offered_rows(offer: Offer, width: int, *, usual: Usual, scope: GrantScope = GrantScope.SESSION) -> list[Row]:
    """Return the rows of the possible grants, uncut: each choice with its number, in columns for what and where.

    With `scope` WORKSPACE, choices that end with the session say so.
    """
    choices = [
        [
            (safe_line(one_line(pattern.name)), _walls(pattern, choice, scope, usual), pattern.network)
            for pattern in choice.patterns
        ]
        for choice in offer.choices
    ]
    max_name = (width - _GUTTER - len(GAP)) // 2
    column = max((wide for lines in choices for name, _, _ in lines if (wide := cells(name)) <= max_name), default=0)
    rows: list[Row] = []
    for number, (choice, lines) in enumerate(zip(offer.choices, choices, strict=True), 1):
        gutter = f"  [{number}] "
        for name, walls, has_network in lines:
            rows += _pattern_rows(name, walls, width, gutter, column, Tone.WARNING if has_network else Tone.PLAIN)
            gutter = " " * _GUTTER
        for part in choice.asked_still:
            rows += prose(f"asked about still: {part}", width, gutter=gutter, tone=Tone.QUIET)
    return rows


def explained_rows(offer: Offer, width: int, *, usual: Usual) -> list[Row]:
    """Return rows that explain the words of the list. Empty if they need no explanation."""
    return [row for text in _explanations(offer, _caches(usual)) for row in prose(text, width, tone=Tone.QUIET)]


def _walls(pattern: GrantPattern, choice: GrantChoice, scope: GrantScope, usual: Usual) -> str:
    """Return the walls and the duration of a pattern, as far as they differ between choices. Safe to show."""
    ends = _SESSION_ONLY if choice.session_only and scope is GrantScope.WORKSPACE else ""
    return safe_line(one_line("; ".join(filter(None, (pattern.walls(usual.folder, _caches(usual)), ends)))))


def _pattern_rows(name: str, walls: str, width: int, gutter: str, column: int, tone: Tone) -> Iterator[Row]:
    """Yield the rows of one pattern. If the columns do not fit, `where` gets rows of its own."""
    tints = (Tint(0, len(name), Ink.STRONG),)
    if walls and cells(name) <= column and _GUTTER + column + len(GAP) + cells(walls) <= width:
        line = f"{name}{' ' * (column - cells(name))}{GAP}{walls}"
        yield from line_rows(line, width, gutter=gutter, tints=tints, tone=tone)
        return
    yield from line_rows(name, width, gutter=gutter, tints=tints, tone=tone)
    if walls:
        yield from prose(walls, width, gutter=f"{' ' * _GUTTER}{GAP}", tone=tone)


def _explanations(offer: Offer, caches: Sequence[str]) -> Iterator[str]:
    patterns = [pattern for choice in offer.choices for pattern in choice.patterns]
    if any(pattern.argv and pattern.program for pattern in patterns):
        yield "* stands for any further words. Without it, only exactly these words are covered."
    if any(pattern.program and not pattern.argv for pattern in patterns):
        yield "any command: every command that keeps to this and whose changes /undo can take back."
    if any(pattern.argv or pattern.program for pattern in patterns):
        yield WORKSPACE_WALLS
    if any(pattern.has_caches(caches) for pattern in patterns):
        yield f"caches: {', '.join(caches)}"
    if offer.no_program:
        yield f"no program with any words: {offer.no_program}"


def _caches(usual: Usual) -> Sequence[str]:
    """Return the places outside the workspace that every permitted command may write."""
    return [place for place in usual.write if place.startswith(("/", "~"))]
