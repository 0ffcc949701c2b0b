"""A Markdown table, fitted to a width; where columns would be too narrow to be read, each row becomes named values; pure."""

from __future__ import annotations

import re

from harness.cli.terminal.cells import cells, wrapped
from harness.cli.terminal.inline import inline, painted
from harness.cli.terminal.marks import BOLD, NOT_BOLD

LEAST_COLUMN = 8
"""Cells of a column that is narrowed, at least."""
MOST_COLUMNS = 32
"""That are narrowed to fit; a row of more becomes named values."""
_GAP = "  "
_DELIMITERS = re.compile(r"\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+")
_PIPE = re.compile(r"(?<!\\)\|")


def cells_of(row: str) -> list[str]:
    """Return the cells of a row as they are written."""
    row = row.strip()
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(row)]


def begins_table(header: str, line: str) -> bool:
    """Say whether `line`, below `header`, makes of it the first row of a table."""
    if "-" not in line or "|" not in header + line or not _DELIMITERS.fullmatch(line.strip()):
        return False
    return len(cells_of(line)) == len(cells_of(header))


class Table:
    """Rows that belong together; the first is the header."""

    def __init__(self, header: str, delimiters: str) -> None:
        self._header = cells_of(header)
        self._right = [cell.endswith(":") and not cell.startswith(":") for cell in cells_of(delimiters)]
        self._rows: list[list[str]] = []
        self._begun = False
        self.size = 0
        """Characters in the rows that wait."""

    def add(self, row: str) -> None:
        """Take in a row: what has no column of its own is shown in the last."""
        found, columns = cells_of(row), len(self._header)
        self.size += len(row)
        if len(found) > columns:
            found = [*found[: columns - 1], " | ".join(found[columns - 1 :])]
        self._rows.append(found + [""] * (columns - len(found)))

    def lines(self, room: int, *, colour: bool, line: str) -> list[str]:
        """Return what is to be shown of the rows that came, within `room` cells, and forget them; `line` draws the rule."""
        rows = [[inline(cell, colour=colour) for cell in row] for row in self._rows]
        header = [inline(cell, colour=colour) for cell in self._header]
        self._rows.clear()
        self.size = 0
        first, self._begun = not self._begun, True
        widths = _fit([max(map(cells, column)) for column in zip(header, *rows, strict=True)], room)
        if widths is None:
            return _named(header, rows, room)
        lines = []
        if first:
            strong = [f"{BOLD}{cell}{NOT_BOLD}" for cell in header] if colour else header
            lines = [*self._row(strong, widths), _GAP.join(line * width for width in widths)]
        for row in rows:
            lines += self._row(row, widths)
        return lines

    def _row(self, row: list[str], widths: list[int]) -> list[str]:
        columns = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        tall = max(map(len, columns))
        shown = []
        styled = [painted(column) for column in columns]
        for place in range(tall):
            parts = []
            for column, style, width, right in zip(columns, styled, widths, self._right, strict=True):
                plain, text = (column[place], style[place]) if place < len(column) else ("", "")
                blanks = " " * (width - cells(plain))
                parts.append(blanks + text if right else text + blanks)
            shown.append(_GAP.join(parts).rstrip(" "))
        return shown


def _fit(natural: list[int], room: int) -> list[int] | None:
    """Return the widths of the columns, the widest narrowed alike; None where they would be too narrow."""
    room -= len(_GAP) * (len(natural) - 1)
    natural = [max(1, width) for width in natural]
    if sum(natural) <= room:
        return natural
    if len(natural) > MOST_COLUMNS or sum(min(width, LEAST_COLUMN) for width in natural) > room:
        return None
    low, high = LEAST_COLUMN, max(natural)
    while low < high:  # the largest cap that fits
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(width, middle) for width in natural) <= room else (low, middle - 1)
    if len(natural) > 2 and low < 2 * LEAST_COLUMN and room < 60:
        return None
    return [min(width, low) for width in natural]


def _named(header: list[str], rows: list[list[str]], room: int) -> list[str]:
    lines: list[str] = []
    for number, row in enumerate(rows):
        lines += [""] if number else []
        for name, value in zip(header, row, strict=True):
            first, *rest = painted(wrapped(f"{name}: {value}" if name else value, room, max(1, room - 2)))
            lines += [first, *(f"  {line}" for line in rest)]
    return lines if rows else [" / ".join(header)]
