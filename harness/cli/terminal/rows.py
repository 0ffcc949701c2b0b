"""Rows of a terminal: text made safe to show and wrapped to a width, so that none can pass for another; pure.

INVARIANT: every row begins with its gutter, which is ours. What comes out of a call stands behind it, also where it was
wrapped: no text can begin a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.cli.terminal.cells import pieces, wrapped
from harness.cli.trace import Tone
from harness.record import Record
from harness.visible import one_line, visible

WRAPPED = "~ "
"""What stands before the rest of a line that was too long; the last two characters of the gutter."""
TAB = 8
LEAST = 4
"""Columns that are left for the text, however narrow the terminal is."""


class Row(Record):
    """One row, no wider than it was made for."""

    text: str
    tone: Tone = Tone.PLAIN


def rows_of(text: str, width: int, *, gutter: str = "  ", tone: Tone = Tone.PLAIN, further: str = "") -> Iterator[Row]:
    """Yield the rows of `text` (hostile, of any number of lines) at a terminal of `width` columns (at least 10).

    The first line begins with `gutter`, each further one with `further` (else the same), what is wrapped with WRAPPED.
    Nothing is cut. Only LF ends a line here, as in the shell and in files: other line ends are shown as escapes.
    """
    for number, line in enumerate(text.split("\n")):
        start = gutter if number == 0 else further or gutter
        room = max(width - len(hanging(start)), LEAST)
        for index, piece in enumerate(pieces(visible(line).expandtabs(TAB), room)):
            yield Row(text=(hanging(start) if index else start) + piece, tone=tone)


def hanging(gutter: str) -> str:
    """Return what stands before the rest of a line that began with `gutter`: never anything in the first two columns."""
    return " " * max(len(gutter) - len(WRAPPED), 2) + WRAPPED


def prose(text: str, width: int, *, tone: Tone = Tone.PLAIN, gutter: str = "  ") -> Iterator[Row]:
    """Yield the rows of a sentence, on lines of its own and wrapped between words where that is possible."""
    room = max(width - len(hanging(gutter)), LEAST)
    for index, line in enumerate(wrapped(one_line(text), room)):
        yield Row(text=(hanging(gutter) if index else gutter) + line, tone=tone)


def joined(groups: Iterable[Iterable[Row]]) -> tuple[Row, ...]:
    """Return the rows of all groups, in order."""
    return tuple(row for group in groups for row in group)
