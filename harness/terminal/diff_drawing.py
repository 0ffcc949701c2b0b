"""A unified diff for the user: line numbers, coloured backgrounds for old and new lines, marks on changed words.

Lines also begin with `-` and `+`, so that colours are not needed. INVARIANT: the complete diff is shown. A long line
is wrapped, and a line that is not part of a diff is shown unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from harness.files.diffs import common
from harness.record import replace
from harness.terminal.highlighting import Highlighter, language_of
from harness.terminal.row_text import Row, Tint, line_rows, safe_line
from harness.terminal.styles import Fill, Ink, Tone

LONGEST_COMPARED, MOST_WORDS = 2_000, 80
"""Limits for the comparison of words: characters of a line, and words between its equal start and end."""
MOST_PAIRS = 200_000
"""Maximum number of word pairs compared in a diff, to limit the time of difflib."""
LEAST_ALIKE = 0.4
"""Minimum similarity of two lines (0 to 1) to mark their changed words. Below it, no words are marked."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@(.*)")
_WORD = re.compile(r"\w+|\s+|.")
_TONES = {"-": Tone.BAD, "+": Tone.GOOD, " ": Tone.PLAIN}
_FILLS = {"-": Fill.REMOVED, "+": Fill.ADDED, " ": Fill.CODE}


def patch_look(line: str) -> tuple[Fill, tuple[Tint, ...]]:
    """Return the background and tints of a single patch line, determined by its sign."""
    if line.startswith(("+++", "---", "@@")):
        return Fill.CODE, (Tint(0, len(line), Ink.COMMENT),)
    return _FILLS.get(line[:1], Fill.CODE), ()


class _Line:
    """A line of a diff, with its tints."""

    def __init__(self, sign: str, text: str, number: int) -> None:
        """`sign` is empty if it is not a line of the file. `text` is safe to show. `number` is the line number."""
        self.sign = sign
        self.text = text
        self.number = number
        self.tints: tuple[Tint, ...] = ()

    def mark(self, start: int, end: int, ink: Ink) -> None:
        """Mark the text from `start` to `end` with the ink of changed words."""
        if start < end:
            self.tints += (Tint(start, end, ink),)


def diff_rows(diff: str, path: str, width: int, *, margin: str = "  ") -> Iterator[Row]:
    """Yield the rows of a unified diff (hostile text) of the file at `path`, for a terminal of `width` columns.

    Each row begins with `margin`, at least two blanks.
    """
    lines = tuple(_lines(diff, language_of(path)))
    _mark_words(lines)
    digits = len(str(max((line.number for line in lines), default=0)))
    for line in lines:
        if not line.sign:
            yield from line_rows(line.text, width, gutter=f"{margin}{'':{digits}} ", tone=Tone.QUIET)
            continue
        gutter = f"{margin}{line.number:{digits}} {line.sign} "
        fill, tone = _FILLS[line.sign], _TONES[line.sign]
        number = Tint(len(margin), len(margin) + digits, Ink.COMMENT)
        for row in line_rows(line.text, width, gutter=gutter, tone=tone, tints=line.tints, fill=fill):
            yield replace(row, tints=(*row.tints, number))


def _lines(diff: str, language: str) -> Iterator[_Line]:
    """Yield the lines of a diff with their numbers and the colours of `language`."""
    old = new = 0
    sides: tuple[Highlighter, ...] = ()
    for line in diff.split("\n"):
        if hunk := _HUNK.fullmatch(line):
            if sides or hunk[3]:
                yield _Line("", f"...{safe_line(hunk[3])}", 0)
            old, new = int(hunk[1]), int(hunk[2])
            sides = (Highlighter(language), Highlighter(language))
            continue
        sign = line[:1]
        if not sides or sign not in _FILLS:
            yield _Line("", safe_line(line), 0)
            continue
        row = _Line(sign, safe_line(line[1:]), old if sign == "-" else new)
        before, after = sides
        old, new = old + (sign != "+"), new + (sign != "-")
        if sign != "+":
            row.tints = before.line(row.text)
        if sign != "-":
            row.tints = after.line(row.text)
        yield row


def _mark_words(lines: Sequence[_Line]) -> None:
    """Mark the changed words of adjacent old and new lines. The first old line is compared with the first new one, etc."""
    remaining = MOST_PAIRS
    of_file = (line for line in lines if line.sign or not line.text.startswith("\\"))  # without notes in between
    for changed, run in groupby(of_file, key=lambda line: line.sign in ("-", "+")):
        if not changed:
            continue
        stretch = tuple(run)
        removed, added = ([line for line in stretch if line.sign == sign] for sign in "-+")
        for before, after in zip(removed, added, strict=False):
            if max(len(before.text), len(after.text)) > LONGEST_COMPARED:
                continue
            words = _WORD.findall(before.text), _WORD.findall(after.text)
            start, tail = common(*words)
            sizes = [len(line) - start - tail for line in words]
            if max(sizes) > MOST_WORDS:
                continue
            remaining -= sizes[0] * sizes[1]
            if remaining < 0:
                return
            _mark_pair(before, after, *words, start=start, tail=tail)


def _mark_pair(before: _Line, after: _Line, old: Sequence[str], new: Sequence[str], *, start: int, tail: int) -> None:
    """Mark the differing words between the equal start and end of two lines, if the lines are similar enough."""
    from difflib import SequenceMatcher

    middles = old[start : len(old) - tail], new[start : len(new) - tail]
    codes = SequenceMatcher(None, *middles, autojunk=False).get_opcodes()
    codes = [(tag, a1 + start, a2 + start, b1 + start, b2 + start) for tag, a1, a2, b1, b2 in codes]
    same = [old[:start], old[len(old) - tail :], *(old[a:b] for tag, a, b, _, _ in codes if tag == "equal")]
    alike = sum(len("".join(part).strip()) for part in same)
    if alike < LEAST_ALIKE * max(len(before.text.strip()), len(after.text.strip())):
        return
    ends = [[0, *accumulate(map(len, words))] for words in (old, new)]
    for tag, a1, a2, b1, b2 in codes:
        if tag != "equal":
            before.mark(ends[0][a1], ends[0][a2], Ink.REMOVED)
            after.mark(ends[1][b1], ends[1][b2], Ink.ADDED)
