"""The harness's own lines, as rows that fit: toned, and with column 1 empty in what goes on from the row before; pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from harness.cli.terminal.cells import wrapped
from harness.cli.trace import Tone

HANGING = "    "
"""Before what did not fit on the row before: text from elsewhere must not reach column 1 by being long."""

_SGR = {Tone.PLAIN: "", Tone.QUIET: "\x1b[2m", Tone.GOOD: "\x1b[32m", Tone.WARNING: "\x1b[33m", Tone.BAD: "\x1b[1;31m"}
_ENDS_SGR = "\x1b[0m"


def toned(text: str, tone: Tone, *, colour: bool) -> str:
    """Return text in the colour of its tone (SGR, ECMA-48 8.3.117), or as it is."""
    code = _SGR[tone] if colour and text else ""
    return f"{code}{text}{_ENDS_SGR}" if code else text


def diff_tone(line: str) -> Tone:
    """Return the tone of a line of a diff."""
    return Tone.GOOD if line.startswith("+") else Tone.BAD if line.startswith("-") else Tone.PLAIN


def rows_of(parts: Sequence[tuple[str, Tone]], width: int, *, colour: bool) -> list[str]:
    """Return one line, given in parts of one tone each, in rows of at most `width` cells.

    The parts are safe to show and hold no line ends.
    """
    parts = [(text.expandtabs(8), tone) for text, tone in parts]
    whole = "".join(text for text, _ in parts)
    rows = wrapped(whole, width, width - len(HANGING))
    if len(parts) == 1:
        tone = parts[0][1]
        return [f"{HANGING if number else ''}{toned(row, tone, colour=colour)}" for number, row in enumerate(rows)]
    return _in_tones(parts, whole, rows, colour=colour)


def _in_tones(parts: Sequence[tuple[str, Tone]], whole: str, rows: list[str], *, colour: bool) -> list[str]:
    ends, at, done = [0], 0, []
    for text, _ in parts:
        ends.append(ends[-1] + len(text))
    for number, row in enumerate(rows):
        at = max(at, whole.find(row, at))
        until = at + len(row)
        shown = [
            toned(whole[max(at, start) : min(until, end)], tone, colour=colour)
            for (start, end), (_, tone) in zip(pairwise(ends), parts, strict=True)
            if start < until and end > at
        ]
        done.append(f"{HANGING if number else ''}{''.join(shown)}")
        at = until
    return done
