"""Tables for a terminal: columns side by side within a width, long cells cut in the middle, safe to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.cli.terminal.styles import Line, Tone
from harness.text.visible import visible_line

WIDTH = 100
_GAP = 2
_MOST_CHARACTERS = 5_000


def cut(text: str, width: int) -> str:
    """Return `text`, safe to show, in at most `width` characters; of a longer one the middle is left out."""
    line = visible_line(text, _MOST_CHARACTERS)
    if len(line) <= width:
        return line
    head = (width - 3) // 2
    return f"{line[:head]}...{line[len(line) - (width - 3 - head) :]}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: int = 0, least: int = 16) -> list[str]:
    """Return the lines of a table: the `flexible` column to the left and as wide as WIDTH leaves it, the others to the right.

    Where that leaves it less than `least`, the table is wider.
    """
    widths = [
        max(len(visible_line(row[n], _MOST_CHARACTERS)) for row in (headings, *rows)) for n in range(len(headings))
    ]
    others = sum(widths) - widths[flexible] + _GAP * (len(widths) - 1)
    widths[flexible] = min(widths[flexible], max(least, WIDTH - others))
    return [
        (" " * _GAP)
        .join(
            cut(text, width).ljust(width) if n == flexible else cut(text, width).rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in (headings, *rows)
    ]


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
