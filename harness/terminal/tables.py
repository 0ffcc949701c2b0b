"""Tables for finished output: drawn to fit a terminal, or as plain columns without one.

INVARIANTS: no cell is cut, no row is wider than the terminal, and all text from elsewhere is made safe to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.record import Record
from harness.terminal.row_text import cells, toned, toned_rows
from harness.terminal.styles import Tone, signs
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.terminal.console import Look

MOST_CHARACTERS = 5_000
"""Maximum number of characters of one cell."""
LEAST_WIDTH = 16
"""Minimum width of a wrapped column, in cells. If not all columns get it, each row is shown as a record."""
MOST_PADDED = 60
"""Maximum width to which a column of plain output is padded, in characters. A longer cell shifts only its own row."""
GAP = "  "
_NOTHING = frozenset(("", "0", "-"))


class Column(Record):
    """One column, and its behaviour if there is little room."""

    name: str
    folds: bool = False
    """Whether its cells may be wrapped over several rows."""
    right: bool = False
    """Whether its cells are aligned to the right, as numbers are."""
    leaves: bool = False
    """Whether a terminal leaves it out if all its cells are empty, 0 or -."""
    toned: bool = False
    """Whether it has the colour of its row."""
    in_line: str = "{}"
    """Format of a cell in plain output with one line per row."""
    spare: int = 0
    """Priority for leaving it out on a narrow terminal, highest first. 0 keeps it."""


class TableRow(Record):
    """The cells of one row, with any text, and their meanings."""

    cells: tuple[str, ...]
    tone: Tone = Tone.PLAIN


class Table(Record):
    """Rows under headings."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    headed: bool = True
    """Whether the headings are shown. Records always contain them."""

    @property
    def as_written(self) -> tuple[tuple[str, ...], ...]:
        """The cells of all rows, safe to show."""
        return tuple(tuple(visible_line(cell, MOST_CHARACTERS) for cell in row.cells) for row in self.rows)


def numbers(*names: str) -> tuple[Column, ...]:
    """Return columns of numbers. A terminal leaves out those that have none."""
    return tuple(Column(name=name, right=True, leaves=True) for name in names)


LABEL = 12
"""Width of a label, in characters."""


def labelled(rows: Iterable[tuple[str, str, Tone]]) -> Table:
    """Return a table of coloured labels and their texts. An empty label continues the previous one."""
    columns = Column(name="", folds=True, toned=True), Column(name="", folds=True)
    rows_of_table = (TableRow(cells=(f"{label:<{LABEL}}", text), tone=tone) for label, text, tone in rows)
    return Table(columns=columns, rows=tuple(rows_of_table), headed=False)


def plain(table: Table) -> Iterator[str]:
    """Yield the lines of a table as plain output. Columns are as wide as their longest cell, up to MOST_PADDED."""
    headings = tuple(column.name for column in table.columns)
    cell_rows = (headings, *table.as_written) if table.headed else table.as_written
    widths = [min(max(map(len, column)), MOST_PADDED) for column in zip(*cell_rows, strict=True)]
    sides = [str.rjust if column.right else str.ljust for column in table.columns]
    for row in cell_rows:
        yield GAP.join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()


def drawn(table: Table, look: Look, width: int) -> list[str]:
    """Return the rows of a table for a terminal of `width` columns, ready to be written.

    On a narrow terminal, spare columns are left out, and listed below. If that does not suffice, each row is shown as a
    record.
    """
    columns, cell_rows = table.columns, table.as_written
    widest = [max(map(cells, of_it)) for of_it in zip((column.name for column in columns), *cell_rows, strict=True)]
    min_widths = [
        min(width, LEAST_WIDTH) if column.folds else width for column, width in zip(columns, widest, strict=True)
    ]
    used = [
        n for n, column in enumerate(columns) if not (column.leaves and all(row[n] in _NOTHING for row in cell_rows))
    ]
    columns_kept, spare = list(used), sorted((n for n in used if columns[n].spare), key=lambda n: columns[n].spare)
    while sum(min_widths[n] for n in columns_kept) + len(GAP) * (len(columns_kept) - 1) > width:
        if not spare:
            return list(_records(table, cell_rows, used, look, width))
        columns_kept.remove(spare.pop())
    rows = _laid_out(table, cell_rows, {n: widest[n] for n in columns_kept}, look, width)
    left_out = [columns[n].name for n in used if n not in columns_kept]
    if left_out:
        notice = f"(no room for: {', '.join(left_out)})"
        rows += toned_rows(notice, Tone.QUIET, width, look.colours)
    return rows


def _records(table: Table, rows: Iterable[Sequence[str]], used: Sequence[int], look: Look, width: int) -> Iterator[str]:
    """Yield each row as a record: its first cell, and below it the others with their names, short ones side by side."""
    first, *other_columns = used
    for row, of_table in zip(rows, table.rows, strict=True):
        yield from toned_rows(row[first], Tone.PLAIN, width, look.colours)
        short: list[str] = []
        for place in other_columns:
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


def _laid_out(
    table: Table, rows: Iterable[Sequence[str]], widest: Mapping[int, int], look: Look, width: int
) -> list[str]:
    """Return the rows of the remaining columns in rich's layout, which narrows the widest folding columns first."""
    from rich.text import Text

    from harness.terminal.rich_drawing import rich_console, rich_rows, rich_table

    drawing = rich_table(signs(ascii_only=look.ascii).rule)
    drawing.show_header = table.headed
    for number, cells_of_it in widest.items():
        column = table.columns[number]
        drawing.add_column(
            Text(column.name),
            justify="right" if column.right else "left",
            overflow="fold",
            width=None if column.folds else cells_of_it,
        )
    for row, of_table in zip(rows, table.rows, strict=True):
        tinted_cells = ((table.columns[number].toned, row[number]) for number in widest)
        drawing.add_row(
            *(
                Text.from_ansi(toned(cell, of_table.tone, look.colours)) if tinted else Text(cell)
                for tinted, cell in tinted_cells
            )
        )
    return rich_rows(rich_console(look.colours, width), drawing, width)
