"""A unified diff for people: line numbers, coloured backgrounds for old and new lines, marks on the changed words.

Without colours `-` and `+` mean the same. INVARIANT: the diff is shown whole: a long line is wrapped, and a line that
is not part of a diff is shown unchanged.
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
"""Maximum characters of a line whose words are compared, and maximum words between its equal start and end."""
MOST_PAIRS = 200_000
"""Maximum number of compared pairs of words in a diff: difflib's time grows beyond it."""
LEAST_ALIKE = 0.4
"""Minimum similarity of two lines to mark their words; below it, the whole line has changed."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@(.*)")
_WORD = re.compile(r"\w+|\s+|.")
_TONES = {"-": Tone.BAD, "+": Tone.GOOD, " ": Tone.PLAIN}
_FILLS = {"-": Fill.REMOVED, "+": Fill.ADDED, " ": Fill.CODE}


def patch_look(line: str) -> tuple[Fill, tuple[Tint, ...]]:
    """Return the drawing of a patch line by its sign, without the rest of the patch."""
    if line.startswith(("+++", "---", "@@")):
        return Fill.CODE, (Tint(0, len(line), Ink.COMMENT),)
    return _FILLS.get(line[:1], Fill.CODE), ()


class _Line:
    """A line of a diff that is drawn."""

    def __init__(self, sign: str, text: str, number: int) -> None:
        """Take its sign (empty: not a line of the file), its visible text, and its number."""
        self.sign = sign
        self.text = text
        self.number = number
        self.tints: tuple[Tint, ...] = ()

    def mark(self, start: int, end: int, ink: Ink) -> None:
        """Note that these words changed."""
        if start < end:
            self.tints += (Tint(start, end, ink),)


def diff_rows(diff: str, path: str, width: int, *, margin: str = "  ") -> Iterator[Row]:
    """Yield the rows of a unified diff (hostile) of the file of that name, at a terminal of `width` columns.

    Each begins with `margin`, of at least two blanks.
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
    """Yield the lines of a diff with their numbers, in the colours of their language."""
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
    """Mark the changed words of adjacent old and new lines: the first with the first."""
    remaining = MOST_PAIRS
    of_file = (line for line in lines if line.sign or not line.text.startswith("\\"))  # notes are between them
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
    """Mark the words that differ between an equal start and an equal end, where the lines are alike."""
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
