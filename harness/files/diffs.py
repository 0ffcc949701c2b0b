"""Diff of two contents, as lines for the user or the model. Bounded in size and in time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from math import isqrt

from harness.record import Record
from harness.regex import regex
from harness.text.visible import visible

MAX_LINES = 4_000
"""Maximum number of lines of a stored diff; the rest is counted."""
MAX_LINE_CHARACTERS = 100_000
"""Maximum number of characters shown of a changed line, after unchanged text was left out; the rest is cut."""
MAX_CHARACTERS = 1_000_000
"""Maximum number of characters of a stored diff."""
LONG_LINE = 2_000
"""Maximum length of a line that is always shown completely, in characters."""
_BESIDE = 150
"""Number of characters shown on each side of a change within a long line."""
_MIN_LEFT_OUT = 200
"""Minimum length of a text that is left out, in characters."""
_MAX_WORD_CHARACTERS = 3_000_000
"""Maximum number of characters in long lines that one diff compares word by word."""
_BLOCK_BYTES = 4096
CONTEXT = 3
"""Number of unchanged lines shown around a change."""
_MAX_COMPARED_LINES = 200_000
"""Maximum number of lines to compare. If there are more, only the start of the new content is shown."""
_MAX_PAIRS = 40_000
"""Maximum number of line pairs (lines of one content times lines of the other) in one difflib call.

The time of difflib grows faster than this number.
"""
_MAX_ALL_PAIRS = 200_000
"""Maximum number of line pairs in all difflib calls of a diff. Beyond it, gaps are compared by `_few_changes` only."""
_LEAST_PAIRS = 20
"""Minimum number of pairs counted per difflib call, since even a short call takes time."""
_MAX_EDITS = 100
"""Maximum number of edits that `_few_changes` looks for."""
_MAX_LOOKS = 40
"""Maximum comparisons per item in `_few_changes`, so that its time grows with the length only."""

_WORD = regex(r"\w+|\s+|.")
_BREAK = regex(r"[\s;,\"'<>(){}]")
_UNCHANGED = regex(rf"[^\r\n]{{{_MIN_LEFT_OUT},}}")
_LEFT_OUT = "\ud800"
"""Mark before and after a number of omitted characters. Decoded files lack it: `surrogateescape` yields U+DC80 to U+DCFF."""
_COUNT_SIGN = "\u2026"
_LIKE_AN_ESCAPE = regex(r"\\(?:[xuU][0-9a-f]|\Z)")


class Diff(Record):
    """A unified diff. In long lines, unchanged text is replaced by its number of characters."""

    lines: tuple[str, ...]
    more: int
    """Number of lines left out at the end."""
    added: int
    removed: int

    @property
    def is_whole(self) -> bool:
        """Whether it contains all added and removed text: no line is missing or cut."""
        changed = (line for line in self.lines if line.startswith(("+", "-")))
        return not self.more and not any(len(line) > MAX_LINE_CHARACTERS + 1 for line in changed)

    def text(self, max_lines: int = MAX_LINES) -> str:
        """Return at most `max_lines` lines, and a last line with the number of omitted ones."""
        first_lines = self.lines[:max_lines]
        rest = len(self.lines) - len(first_lines) + self.more
        return "\n".join((*first_lines, f"[... {rest:,} more lines of the diff ...]") if rest else first_lines)


class Change(Record):
    """A replacement: lines `old_start` to `old_end` (excluded) became lines `new_start` to `new_end` (excluded)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def compare(old: bytes, new: bytes) -> Diff:
    """Return the difference between two contents; lines end at LF and are shown decoded, escaped and clipped.

    The CR of CR LF is not shown if all compared lines have it, old and new.
    """
    start, end = _equal_bytes(old, new)
    first = old.count(b"\n", 0, start)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if max(before.count(b"\n"), after.count(b"\n")) > _MAX_COMPARED_LINES:
        return _too_long(old, new)
    ends = [(content.count(b"\n"), content.count(b"\r\n")) for content in (before, after)]
    crlf = ends[0][0] > 0 and all(every == with_cr for every, with_cr in ends)
    return _compare(_lines(before), _lines(after), first=first, crlf=crlf)


def _compare(before: Sequence[bytes], after: Sequence[bytes], *, first: int, crlf: bool) -> Diff:
    """Return the difference between two lists of lines. In both contents, `first` equal lines precede them."""
    lines: list[str] = []
    added = removed = more = characters = 0
    for sign, line in _diff_lines(_hunks(changes(before, after)), before, after, first):
        added += sign == "+"
        removed += sign == "-"
        if len(lines) < MAX_LINES and characters < MAX_CHARACTERS:
            pieces = tuple(_rows_of(sign, line, crlf=crlf))
            characters += sum(map(len, pieces))
            lines.extend(pieces)
        else:
            more += 1
    return Diff(lines=tuple(lines), more=more, added=added, removed=removed)


def _equal_bytes(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the number of bytes to skip at the start and at the end: equal in both, whole lines, and not shown.

    Changes in large files are usually small. So blocks of bytes are compared first, and only the rest as lines.
    """
    shorter = min(len(old), len(new))
    if shorter < _BLOCK_BYTES:
        return 0, 0
    start = 0
    while old[start : start + _BLOCK_BYTES] == new[start : start + _BLOCK_BYTES] and start < shorter:
        start += _BLOCK_BYTES
    start = min(start, shorter)
    for _ in range(CONTEXT + 1):
        start = old.rfind(b"\n", 0, max(start, 0))
    start += 1
    end = 0
    while end + _BLOCK_BYTES <= shorter - start:
        a, b = len(old) - end, len(new) - end
        if old[a - _BLOCK_BYTES : a] != new[b - _BLOCK_BYTES : b]:
            break
        end += _BLOCK_BYTES
    place = len(old) - end
    for _ in range(CONTEXT + 1):
        place = old.find(b"\n", place) + 1 or len(old)
    return start, len(old) - place


def count_lines(data: bytes) -> int:
    """Return the number of lines, including a last line without a newline."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _too_long(old: bytes, new: bytes) -> Diff:
    removed, added = count_lines(old), count_lines(new)
    lines = [f"[too long to compare: {removed:,} lines before, {added:,} after; the new content begins:]"]
    beginning = sum(len(line) + 1 for line in new.split(b"\n", MAX_LINES)[:MAX_LINES])
    line_count = characters = 0
    for line in _lines(new[:beginning]):
        if characters >= MAX_CHARACTERS:
            break
        lines.extend(_rows_of("+", _text(line), crlf=False))
        characters += len(lines[-1])
        line_count += 1
    # Removed lines are not shown, so `more` is above 0 and the diff never counts as whole.
    return Diff(lines=tuple(lines), more=removed + added - line_count, added=added, removed=removed)


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()
    return lines if last == b"\n" else [*lines, last[:-1]]


def changes(
    before: Sequence[Hashable], after: Sequence[Hashable], *, most_pairs: int = _MAX_ALL_PAIRS
) -> Iterator[Change]:
    """Yield the changes in order: unique common lines align the two texts, difflib fills the gaps.

    Bounded in time: a gap that is too long for difflib, or beyond `most_pairs`, is split only if it has few changes.
    Otherwise the whole gap counts as one change, including its equal lines.
    """
    start, tail = common(before, after)
    old, new = before[start : len(before) - tail], after[start : len(after) - tail]
    i = j = 0
    remaining = most_pairs
    for x, y in (*_anchors(old, new), (len(old), len(new))):
        pairs = (x - i) * (y - j)
        if pairs:
            remaining -= max(pairs, _LEAST_PAIRS)
        for a1, a2, b1, b2 in _gap(old[i:x], new[j:y], closely=remaining >= 0 and pairs <= _MAX_PAIRS):
            yield Change(
                old_start=start + i + a1, old_end=start + i + a2, new_start=start + j + b1, new_end=start + j + b2
            )
        i, j = x + 1, y + 1


def common(before: Sequence[object], after: Sequence[object]) -> tuple[int, int]:
    """Return the numbers of equal items at the start and at the end. No item is counted in both."""
    start = _equal_run(before, 0, after, 0)
    return start, _equal_run(before[start:][::-1], 0, after[start:][::-1], 0)


def _equal_run(old: Sequence[object], i: int, new: Sequence[object], j: int) -> int:
    """Return the number of equal items starting at `old[i]` and `new[j]`. Compares slices for speed."""
    max_run = min(len(old) - i, len(new) - j)
    run, size, grows = 0, 1, True
    while size and run < max_run:
        if old[i + run : i + run + size] == new[j + run : j + run + size]:
            run += size
        else:
            grows = False
        size = size * 2 if grows else size // 2
    return min(run, max_run)


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest sequence of pairs of equal lines: unique and in order on both sides (patience sorting)."""
    places = _unique(new)
    pairs = [(i, places[line]) for line, i in _unique(old).items() if line in places]
    piles: list[int] = []
    tops: list[int] = []
    below: list[int] = []
    for index, (_, j) in enumerate(pairs):
        pile = bisect_left(piles, j)
        below.append(tops[pile - 1] if pile else -1)
        piles[pile : pile + 1] = [j]
        tops[pile : pile + 1] = [index]
    row: list[tuple[int, int]] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        row.append(pairs[index])
        index = below[index]
    return row[::-1]


def _unique(lines: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the lines that occur once, in order, with their indexes."""
    places: dict[Hashable, int] = {}
    for index, line in enumerate(lines):
        places[line] = -1 if line in places else index
    return {line: index for line, index in places.items() if index >= 0}


def _gap(old: Sequence[Hashable], new: Sequence[Hashable], *, closely: bool) -> list[tuple[int, int, int, int]]:
    if old == new:
        return []
    if not old or not new:
        return [(0, len(old), 0, len(new))]
    if not closely:
        return _few_changes(old, new) or [(0, len(old), 0, len(new))]
    from difflib import SequenceMatcher

    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a1, a2, b1, b2) for tag, a1, a2, b1, b2 in codes if tag != "equal"]


def _few_changes(old: Sequence[object], new: Sequence[object]) -> list[tuple[int, int, int, int]]:
    """Return the fewest changes between two lists, or an empty list if there are too many.

    Source: Myers, "An O(ND) Difference Algorithm", 1986.

    INVARIANT: its time is proportional to the length of the lists.
    """
    total = len(old) + len(new)
    remaining = _MAX_LOOKS * total
    reached = {1: 0}
    trace = []
    for edits in range(min(_MAX_EDITS, isqrt(total)) + 1):
        trace.append(reached)
        reached = {}
        for diagonal in range(-edits, edits + 1, 2):
            start = _step(trace[-1], diagonal, edits)[0]
            end = start + _equal_run(old, start, new, start - diagonal)
            if end >= len(old) and end - diagonal >= len(new):
                return _way_back(trace, len(old), len(new))
            reached[diagonal] = end
            remaining -= end - start
        if remaining < 0:
            break
    return []


def _step(reached: dict[int, int], diagonal: int, edits: int) -> tuple[int, int]:
    """Return the index in the old list after the edit that reaches a diagonal, and the diagonal before that edit."""
    above, below = diagonal + 1, diagonal - 1
    adds = diagonal == -edits or (diagonal != edits and reached[below] < reached[above])
    return (reached[above], above) if adds else (reached[below] + 1, below)


def _way_back(trace: Sequence[dict[int, int]], old_end: int, new_end: int) -> list[tuple[int, int, int, int]]:
    """Return the changes on the traced path to both ends. Adjacent edits are joined into one change."""
    blocks: list[tuple[int, int, int, int]] = []
    diagonal = old_end - new_end
    for edits in range(len(trace) - 1, 0, -1):
        end, before = _step(trace[edits], diagonal, edits)
        start = trace[edits][before]
        a1, a2, b1, b2 = start, end, start - before, end - diagonal
        if blocks and (blocks[-1][0], blocks[-1][2]) == (a2, b2):
            _, a2, _, b2 = blocks.pop()
        blocks.append((a1, a2, b1, b2))
        diagonal = before
    return blocks[::-1]


def _hunks(changes: Iterator[Change]) -> list[list[Change]]:
    """Group changes into hunks: changes whose context lines touch or overlap share one."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change.old_start - hunks[-1][-1].old_end <= 2 * CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _diff_lines(
    hunks: Iterable[Sequence[Change]], before: Sequence[bytes], after: Sequence[bytes], above: int
) -> Iterator[tuple[str, str]]:
    """Yield the lines of hunks with their signs, unchanged text in long lines left out."""
    remaining = _MAX_WORD_CHARACTERS
    for hunk in hunks:
        first, last = hunk[0], hunk[-1]
        lead = min(CONTEXT, first.old_start)
        trail = min(CONTEXT, len(before) - last.old_end)
        old = _range(above + first.old_start - lead, above + last.old_end + trail)
        new = _range(above + first.new_start - lead, above + last.new_end + trail)
        yield "@", f"@@ -{old} +{new} @@"
        position = first.old_start - lead
        for change in hunk:
            yield from ((" ", _clipped(line)) for line in before[position : change.old_start])
            goes, comes = before[change.old_start : change.old_end], after[change.new_start : change.new_end]
            if max(map(len, (*goes, *comes))) > LONG_LINE:
                old_lines, new_lines, looked_at = _shortened(b"".join(goes), b"".join(comes), remaining)
                remaining -= looked_at
            else:
                old_lines, new_lines = list(map(_text, goes)), list(map(_text, comes))
            removed, added = [("-", line) for line in old_lines], [("+", line) for line in new_lines]
            # A diff is cut at its end. If many lines are removed, the added lines go first.
            yield from (*added, *removed) if len(removed) > MAX_LINES // 2 else (*removed, *added)
            position = change.old_end
        yield from ((" ", _clipped(line)) for line in before[position : position + trail])


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _clipped(line: bytes) -> str:
    """Return an unchanged line. A long one is cut to its start and the number of omitted characters."""
    text = _text(line)
    end = len(text.rstrip("\r\n"))
    if end <= LONG_LINE:
        return text
    gap = _BREAK.search(text, _BESIDE, 2 * _BESIDE)
    first = gap.start() if gap else _BESIDE
    return f"{text[:first]}{_LEFT_OUT}{end - first}{_LEFT_OUT}{text[end:]}"


def _shortened(before: bytes, after: bytes, max_characters: int) -> tuple[list[str], list[str], int]:
    """Return the lines of two texts without their long equal stretches, and the number of characters compared.

    If more than `max_characters` characters lie between the common start and end, all of them count as changed.
    INVARIANT: an omitted stretch is equal in both texts. Everything else is in the lines.
    """
    old, new = _text(before), _text(after)
    ends = len(old), len(old), len(new), len(new)
    start, tail = common(old, new)
    changed = [(start, len(old) - tail, start, len(new) - tail)]
    size = changed[0][1] + changed[0][3] - 2 * start
    if size <= max_characters:
        changed = _changed_words(old[: changed[0][1]], new[: changed[0][3]], start)
    old_pieces: list[str] = []
    new_pieces: list[str] = []
    i = j = kept_old = kept_new = 0
    for a1, a2, b1, b2 in (*changed, ends):
        first = i + _BESIDE if i or j else 0
        last = a1 if (a1, b1) == (ends[0], ends[2]) else a1 - _BESIDE
        for left_out, end in _left_out(old, first, last):
            note = f"{_LEFT_OUT}{end - left_out}{_LEFT_OUT}"
            old_pieces += (old[kept_old:left_out], note)
            new_pieces += (new[kept_new : left_out + j - i], note)
            kept_old, kept_new = end, end + j - i
        i, j = a2, b2
    return (
        _text_lines("".join((*old_pieces, old[kept_old:]))),
        _text_lines("".join((*new_pieces, new[kept_new:]))),
        min(size, max_characters),
    )


def _changed_words(old: str, new: str, start: int) -> list[tuple[int, int, int, int]]:
    """Return the ranges of differing words in both texts. The first `start` characters are equal."""
    words = _WORD.findall(old, start), _WORD.findall(new, start)
    before, after = (list(accumulate(map(len, word_list), initial=start)) for word_list in words)
    return [
        (before[change.old_start], before[change.old_end], after[change.new_start], after[change.new_end])
        for change in changes(*words, most_pairs=0)
    ]


def _left_out(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of unchanged text to omit; each is within one line.

    Ranges start and end at word boundaries if one is near, because a cut secret would not be recognized as one.
    """
    for stretch in _UNCHANGED.finditer(text, start, max(start, end)):
        first, last = stretch.span()
        if first and text[first - 1] != "\n" and (gap := _BREAK.search(text, first, first + _BESIDE)):
            first = gap.start()
        if text[last : last + 1].strip("\r\n") and (gap := _BREAK.search(text[last - _BESIDE : last][::-1])):
            last -= gap.start()
        if last - first >= _MIN_LEFT_OUT:
            yield first, last


def _text_lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()
    return lines if last == "\n" else [*lines, last[:-1]]


def _range(start: int, end: int) -> str:
    """Return a hunk's range in the notation of diff -u. An empty range is given by the line before it."""
    length = end - start
    first = start + (length > 0)
    return f"{first}" if length == 1 else f"{first},{length}"


def _rows_of(sign: str, line: str, *, crlf: bool) -> Iterator[str]:
    if sign == "@":
        yield line
        return
    has_newline = line.endswith("\n")
    pieces = line.removesuffix("\r\n" if crlf else "\n").split(_LEFT_OUT)
    texts, counts = [piece[: MAX_LINE_CHARACTERS + 1] for piece in pieces[::2]], list(map(int, pieces[1::2]))
    double = _looks_escaped(texts, is_shortened=bool(counts))
    if double:
        texts = [text.replace("\\", "\\\\") for text in texts]
    texts = [_visible(text, is_shortened=bool(counts)) for text in texts]
    notes = [f"{_COUNT_SIGN} {count:,} characters {_COUNT_SIGN}" for count in counts]
    text = "".join(text + note for text, note in zip(texts, (*notes, ""), strict=True))
    if len(text) > MAX_LINE_CHARACTERS:
        size = sum(counts) + sum(map(len, pieces[::2]))
        text = f"{text[:MAX_LINE_CHARACTERS]}...(cut: the line has {size:,} characters)"
    yield sign + text
    if counts:
        yield f"\\ {sum(counts):,} unchanged characters of the line above are left out, where {_COUNT_SIGN} encloses a number"
    if double:
        yield "\\ Backslashes of the line above are doubled, to tell them from those that stand for hidden characters"
    if not has_newline:
        yield "\\ No newline at end of file"


def _visible(text: str, *, is_shortened: bool) -> str:
    """Return decoded text with hidden characters as escapes. In a shortened line, `_COUNT_SIGN` is escaped too."""
    plain = text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    text_shown = visible(plain)
    return text_shown.replace(_COUNT_SIGN, "\\u2026") if is_shortened else text_shown


def _looks_escaped(texts: Sequence[str], *, is_shortened: bool) -> bool:
    """Return whether a line contains both escaped characters and backslashes, which could be confused.

    `texts` are the shown parts of the line. If only a CR at its end is escaped, the backslashes must look like escapes.
    """
    if not any("\\" in text for text in texts):
        return False
    *earlier, last = texts
    plain = [*earlier, last.removesuffix("\r")]
    if any(_visible(text, is_shortened=is_shortened) != text for text in plain):
        return True
    return plain[-1] != last and any(_LIKE_AN_ESCAPE.search(text) for text in plain)
