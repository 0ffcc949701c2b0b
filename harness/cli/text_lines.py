"""Tables for a terminal: columns side by side within a width, long cells cut in the middle, safe to show."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from harness.cli.terminal.styles import Line, Tone
from harness.text.visible import visible_line

WIDTH = 100
_GAP = "  "
_MOST_CHARACTERS = 5_000


def cut(text: str, width: int, beginning: float = 0.5) -> str:
    """Return `text`, safe to show, in at most `width` characters; of a longer one the middle is left out.

    `beginning` is its share of what stays: 1 leaves the end out, 0 the beginning.
    """
    line = visible_line(text, _MOST_CHARACTERS)
    if len(line) <= width:
        return line
    head = int((width - 3) * beginning)
    return f"{line[:head]}...{line[len(line) - (width - 3 - head) :]}"


def column_widths(rows: Sequence[Sequence[str]], width: int, shrink: Iterable[tuple[int, int]]) -> list[int]:
    """Return how wide each column is: as its longest cell, as long as all fit into `width`.

    Else columns give way, in the order of `shrink`: a column, and how far. Where that does not help, the rows are wider.
    """
    widths = [max(len(visible_line(cell, _MOST_CHARACTERS)) for cell in column) for column in zip(*rows, strict=True)]
    for column, least in shrink:
        excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        if excess > 0:
            widths[column] = max(min(least, widths[column]), widths[column] - excess)
    return widths


def aligned(row: Sequence[str], widths: Sequence[int], left: Container[int], beginnings: Sequence[float] = ()) -> str:
    """Return the line of a row: columns in `left` to the left, others to the right; `beginnings` as `cut` takes them."""
    cells = map(cut, row, widths, beginnings or [0.5] * len(row))
    sides = (str.ljust if column in left else str.rjust for column in range(len(row)))
    return _GAP.join(side(cell, width) for side, cell, width in zip(sides, cells, widths, strict=True)).rstrip()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, least: int = 16) -> list[str]:
    """Return the lines of a table of numbers: the first column is to the left, and gives way where WIDTH is too narrow."""
    widths = column_widths((headings, *rows), WIDTH, [(0, least)])
    return [aligned(row, widths, (0,)) for row in (headings, *rows)]


ROW_WIDTH = 80
LABEL = 14
"""How wide the first column is: the longest label, and blanks on both sides."""


def row(label: str, text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """Yield a label and a text beside it, within the width."""
    import textwrap

    shown = textwrap.wrap(visible_line(text, 1000), ROW_WIDTH - LABEL, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(shown):
        yield Line(tone=tone, text=f"{'' if number else label:<{LABEL}}{line}")


def paragraph(text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """Yield a text over the whole width."""
    import textwrap

    for line in textwrap.wrap(text, ROW_WIDTH, break_on_hyphens=False):
        yield Line(tone=tone, text=line)
