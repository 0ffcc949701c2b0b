"""Rows of a report: a label and a text beside it, wrapped to the width and safe to show; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cli.trace import Line, Tone
from harness.visible import visible_line

WIDTH = 80
LABEL = 14
"""How wide the first column is: the longest label, and blanks on both sides."""


def row(label: str, text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """Yield a label and a text beside it, within the width."""
    import textwrap

    shown = textwrap.wrap(visible_line(text, 1000), WIDTH - LABEL, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(shown):
        yield Line(tone=tone, text=f"{'' if number else label:<{LABEL}}{line}")


def paragraph(text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """Yield a text over the whole width."""
    import textwrap

    for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False):
        yield Line(tone=tone, text=line)
