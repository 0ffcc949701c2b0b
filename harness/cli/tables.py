"""Tables of finished output: drawn for the width of a terminal, plain columns where there is none.

INVARIANTS: no cell is cut, no row is wider than the terminal, and text from elsewhere is data: it is made safe to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from harness.cli.terminal.row_text import Row, Tint, cells, toned, toned_rows, wrapped
from harness.cli.terminal.row_text import drawn as row_drawn
from harness.cli.terminal.styles import Ink, Palette, Tone, signs
from harness.record import Record
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.cli.console import Look

MOST_CHARACTERS = 5_000
"""Of one cell."""
LEAST_WIDTH = 16
"""Cells of a column that is broken over several rows; where not all of them have so many, a row becomes a record."""
MOST_PADDED = 60
"""Characters that a column of a pipe is filled up to: a longer cell moves only its own row."""
GAP = "  "
_NOTHING = frozenset(("", "0", "-"))


class Column(Record):
    """One column, and what it does where there is little room."""

    name: str
    folds: bool = False
    """Whether a cell may go on in the next row; else it stays whole."""
    right: bool = False
    """Whether its cells stand to the right: numbers."""
    leaves: bool = False
    """Whether a terminal does without it where no row has anything in it: nothing, 0 or -."""
    toned: bool = False
    """Whether it has the colour of its row."""
    in_line: str = "{}"
    """How a cell is written where a row is a line of a pipe."""
    spare: int = 0
    """Above 0: a terminal does without it where there is no room, the highest first."""


class TableRow(Record):
    """The cells of one row, which may hold anything, and how they are meant."""

    cells: tuple[str, ...]
    tone: Tone = Tone.PLAIN


class Table(Record):
    """Rows under headings."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    headed: bool = True
    """Whether the headings are shown; records have them always."""

    @property
    def as_written(self) -> tuple[tuple[str, ...], ...]:
        """The cells of all rows, safe to show."""
        return tuple(tuple(visible_line(cell, MOST_CHARACTERS) for cell in row.cells) for row in self.rows)


def numbers(*names: str) -> tuple[Column, ...]:
    """Return columns of numbers; a terminal does without those that have none."""
    return tuple(Column(name=name, right=True, leaves=True) for name in names)


LABEL = 12
"""Characters of a label."""


def labelled(rows: Iterable[tuple[str, str, Tone]]) -> Table:
    """Return coloured labels, each with a text beside it; an empty label goes on with what is said above it."""
    columns = Column(name="", folds=True, toned=True), Column(name="", folds=True)
    shown = (TableRow(cells=(f"{label:<{LABEL}}", text), tone=tone) for label, text, tone in rows)
    return Table(columns=columns, rows=tuple(shown), headed=False)


def plain(table: Table) -> Iterator[str]:
    """Yield the lines of a table for a pipe: columns as wide as their longest cell, up to MOST_PADDED."""
    headings = tuple(column.name for column in table.columns)
    shown = (headings, *table.as_written) if table.headed else table.as_written
    widths = [min(max(map(len, column)), MOST_PADDED) for column in zip(*shown, strict=True)]
    sides = [str.rjust if column.right else str.ljust for column in table.columns]
    for row in shown:
        yield GAP.join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()


def drawn(table: Table, look: Look, width: int) -> list[str]:
    """Return the rows of a table for a terminal of `width` columns, ready to be written.

    Where there is no room, spare columns are left out, and named; where that is not enough, each row becomes a record.
    """
    shown = table.as_written
    used = [
        number
        for number, column in enumerate(table.columns)
        if not (column.leaves and all(row[number] in _NOTHING for row in shown))
    ]
    naturals = [max(map(cells, of_it)) for of_it in zip((column.name for column in table.columns), *shown, strict=True)]
    kept, spare = list(used), sorted((n for n in used if table.columns[n].spare), key=lambda n: table.columns[n].spare)
    while (widths := _widths(table.columns, naturals, kept, width)) is None:
        if not spare:
            return list(_records(table, shown, used, look, width))
        kept.remove(spare.pop())
    rows = list(_columns(table, shown, dict(zip(kept, widths, strict=True)), look))
    left_out = [table.columns[number].name for number in used if number not in kept]
    if left_out:
        said = f"(no room for: {', '.join(left_out)})"
        rows += toned_rows(said, Tone.QUIET, width, look.colours)
    return rows


def _widths(columns: Sequence[Column], naturals: Sequence[int], kept: Sequence[int], room: int) -> list[int] | None:
    """Return how wide each column is that is kept: as its longest cell, and where there is no room, the widest that fold give
    way, down to LEAST_WIDTH; None where that does not help.
    """
    widths = [naturals[number] for number in kept]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    folding = [place for place, number in enumerate(kept) if columns[number].folds]
    for _ in range(excess):
        widest = max(folding, key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= LEAST_WIDTH:
            return None
        widths[widest] -= 1
    return widths


def _records(table: Table, rows: Iterable[Sequence[str]], used: Sequence[int], look: Look, width: int) -> Iterator[str]:
    """Yield each row as a record: its first cell, below it the others with their names, short ones side by side."""
    first, *others = used
    for row, of_table in zip(rows, table.rows, strict=True):
        yield from toned_rows(row[first], Tone.PLAIN, width, look.colours)
        short: list[str] = []
        for place in others:
            column, cell = table.columns[place], row[place]
            if not cell or (column.leaves and cell in _NOTHING):
                continue
            if not column.folds and not column.toned:
                short.append(f"{column.name} {cell}")
                continue
            tone = of_table.tone if column.toned else Tone.PLAIN
            name = f"  {column.name}: " if column.name else "    "
            yield from toned_rows(f"{name}{cell}", tone, width, look.colours)
        if short:
            yield from toned_rows(f"  {', '.join(short)}", Tone.PLAIN, width, look.colours)
        if table.headed:
            yield ""


def _columns(table: Table, rows: Iterable[Sequence[str]], widths: Mapping[int, int], look: Look) -> Iterator[str]:
    """Yield the rows of the columns that have a width, joined here: rich takes four times as long for a long table."""
    columns = [(table.columns[number], width) for number, width in widths.items()]
    if table.headed:
        names = _joined([column.name for column, _ in columns], columns, Tone.PLAIN, None)
        yield row_drawn(Row(text=names, tints=(Tint(0, len(names), Ink.STRONG),)), look.colours)
        whole = sum(widths.values()) + len(GAP) * (len(widths) - 1)
        yield toned(signs(ascii_only=look.ascii).rule * whole, Tone.QUIET, look.colours)
    for row, of_table in zip(rows, table.rows, strict=True):
        broken = (_broken(row[number], width) for number, width in widths.items())
        for line in zip_longest(*broken, fillvalue=""):
            yield _joined(line, columns, of_table.tone, look.colours)


def _joined(line: Sequence[str], columns: Sequence[tuple[Column, int]], tone: Tone, palette: Palette | None) -> str:
    """Return one row: what stands in each column of a width, filled up to it."""
    parts = []
    for cell, (column, width) in zip(line, columns, strict=True):
        blanks = " " * (width - cells(cell))
        shown = toned(cell, tone, palette) if column.toned else cell
        parts.append(blanks + shown if column.right else shown + blanks)
    return GAP.join(parts).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    """Return a cell in rows of at most `width` cells, all as far to the right as the first."""
    cell = cell.rstrip()
    lead = "  " if cell.startswith("  ") and width > len(cell) - len(cell.lstrip()) else ""
    return [lead + row for row in wrapped(cell.removeprefix(lead), width - len(lead))]
