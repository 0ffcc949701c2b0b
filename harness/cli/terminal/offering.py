"""The second step of a grant: which patterns are shown, and which key means which; pure, grants nothing."""

from __future__ import annotations

from harness.cli.terminal.keys import Event, Key, Pasted
from harness.cli.terminal.rows import Row, prose, rows_of
from harness.cli.trace import Tone
from harness.granting import GrantScope, Offer, Pattern
from harness.visible import one_line


def until(scope: GrantScope) -> str:
    """Return how long a grant holds, in words."""
    return "for this session" if scope is GrantScope.SESSION else "in this project, from now on, until revoked,"


def offered_rows(offer: Offer, width: int) -> list[Row]:
    """Return the rows that show what would be granted, whole."""
    rows = list(prose("these patterns:" if offer.wider else "exactly this:", width))
    for pattern in offer.patterns:
        rows += rows_of(one_line(pattern.text), width, gutter="    ", tone=Tone.WARNING)
    if offer.wider:
        rows += prose("or, wider (2):", width)
    for pattern in offer.wider:
        rows += rows_of(one_line(pattern.text), width, gutter="    ", tone=Tone.WARNING)
    return rows


def chosen(offer: Offer, came: Key | Pasted | Event) -> tuple[Pattern, ...]:
    """Return what a key grants; nothing of any other."""
    match came:
        case Key(text="y" | "Y" | "1"):
            return offer.patterns
        case Key(text="2"):
            return offer.wider
        case _:
            return ()
