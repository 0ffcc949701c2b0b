"""A panel of all keys: as many columns as fit, and never more rows than the terminal has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from harness.record import Record
from harness.terminal.row_text import cells, fitted

LEAST_COLUMN = 38
"""Minimum width of a column, in cells. A narrower terminal gets one column, with cut texts."""


class KeyWords(Record):
    """A key and its effect."""

    key: str
    does: str
    """The effect in a few words, for the panel."""
    more: str = ""
    """The effect in a sentence, for /help. Empty if the few words suffice."""


def panel_rows(keys: Sequence[KeyWords], width: int, height: int) -> Iterator[tuple[str, str]]:
    """Yield pieces of rows, each with its kind (`key` or `does`). Keys fill the columns from top to bottom."""
    columns = max(min(width // LEAST_COLUMN, 3), 1)
    rows = min(-(-len(keys) // columns), max(height, 1))
    visible_keys = keys[: rows * columns]
    first = max(cells(key.key) for key in visible_keys) + 4
    room = width // columns - first - 1
    for number, row in enumerate(
        zip_longest(*(visible_keys[at : at + rows] for at in range(0, len(visible_keys), rows)))
    ):
        if number:
            yield "does", "\n"
        for key in row:
            if key is not None:
                does = fitted(key.does, max(room, 1))
                yield "key", f"  {key.key}{' ' * (first - 2 - cells(key.key))}"
                yield "does", f"{does}{' ' * (room + 1 - cells(does))}"
