"""The harness's own lines, as rows that fit: toned, and with column 1 empty in what goes on from the row before; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.cli.terminal.cells import wrapped
from harness.cli.trace import Tone

HANGING = "    "
"""Before what did not fit on the row before: text from elsewhere must not reach column 1 by being long."""

_SGR = {Tone.PLAIN: "", Tone.QUIET: "\x1b[2m", Tone.GOOD: "\x1b[32m", Tone.WARNING: "\x1b[33m", Tone.BAD: "\x1b[1;31m"}
_ENDS_SGR = "\x1b[0m"
_SGRS = re.compile(r"\x1b\[[0-9;]*+m")
_NARROW = "   "
"""Likewise, where there is hardly room."""


def toned(text: str, tone: Tone, *, colour: bool) -> str:
    """Return text in the colour of its tone (SGR, ECMA-48 8.3.117), or as it is."""
    code = _SGR[tone] if colour and text else ""
    return f"{code}{text}{_ENDS_SGR}" if code else text


def diff_tone(line: str) -> Tone:
    """Return the tone of a line of a diff."""
    return Tone.GOOD if line.startswith("+") else Tone.BAD if line.startswith("-") else Tone.PLAIN


def toned_rows(line: str, tone: Tone, width: int, *, colour: bool) -> list[str]:
    """Return one line, which is safe to show and holds no line end, in rows of at most `width` cells."""
    first, *rest = wrapped(line.expandtabs(8), width, width - len(HANGING))
    return [toned(first, tone, colour=colour), *(f"{HANGING}{toned(row, tone, colour=colour)}" for row in rest)]


def narrowed(rows: Sequence[str], width: int) -> Iterator[str]:
    """Yield rows that were made for a wider terminal in rows that fit, without their colours; none of them begins like the
    output of a command."""
    for row in rows:
        first, *rest = wrapped(_SGRS.sub("", row), width, width - len(_NARROW))
        yield first
        yield from (f"{_NARROW}{part}" for part in rest)
