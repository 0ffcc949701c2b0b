"""The difference of two contents, as lines for a person or the model: bounded in size and in time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from harness.record import Record
from harness.regex import regex
from harness.text.visible import visible

MAX_LINES = 4_000
"""Of a diff that is kept; the rest is counted."""
MAX_LINE_CHARACTERS = 20_000
MAX_CHARACTERS = 1_000_000
"""Of a diff that is kept."""
_BLOCK_BYTES = 4096
CONTEXT = 3
"""Unchanged lines shown around a change."""
_MAX_COMPARED_LINES = 200_000
"""Of one content; a longer one is only shown from its start."""
_MAX_PAIRS = 40_000
"""Lines of one content times lines of the other that difflib is given at once: its time grows with more than that."""
_MAX_ALL_PAIRS = 200_000
"""Of one comparison; behind that everything between two lines that hold is replaced as a whole."""
_LEAST_PAIRS = 20
"""That are counted however short the lists are: each takes difflib some time."""

_LIKE_AN_ESCAPE = regex(r"\\(?:[xuU][0-9a-f]|\Z)")


class Diff(Record):
    """A unified diff."""

    lines: tuple[str, ...]
    more: int
    """How many lines were left out at the end."""
    added: int
    removed: int

    @property
    def whole(self) -> bool:
        """Whether nothing of what goes or comes is left out, neither lines nor the end of one."""
        changed = (line for line in self.lines if line.startswith(("+", "-")))
        return not self.more and not any(len(line) > MAX_LINE_CHARACTERS + 1 for line in changed)

    def text(self, most: int = MAX_LINES) -> str:
        """Return at most `most` lines, and one that counts the rest."""
        kept = self.lines[:most]
        rest = len(self.lines) - len(kept) + self.more
        return "\n".join((*kept, f"[... {rest:,} more lines of the diff ...]") if rest else kept)


class Change(Record):
    """Lines `old_start` to `old_end` (excluded) of the one are lines `new_start` to `new_end` of the other."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def compare(old: bytes, new: bytes) -> Diff:
    """Return the difference between two contents; lines end at LF and are shown decoded, escaped and clipped.

    The CR of CR LF is left out where the lines that are compared all have it, the old ones and the new.
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
    """Return the difference between two lists of lines; `first` equal ones stand before them."""
    lines: list[str] = []
    added = removed = more = characters = 0
    for hunk in _hunks(changes(before, after)):
        for sign, line in _hunk_lines(hunk, before, after, first):
            added += sign == "+"
            removed += sign == "-"
            if len(lines) < MAX_LINES and characters < MAX_CHARACTERS:
                shown = tuple(_shown(sign, line, crlf=crlf))
                characters += sum(map(len, shown))
                lines.extend(shown)
            else:
                more += 1
    return Diff(lines=tuple(lines), more=more, added=added, removed=removed)


def _equal_bytes(old: bytes, new: bytes) -> tuple[int, int]:
    """Return how many bytes at the start and at the end are equal and need no comparing, whole lines that are not shown.

    A change in a large file is mostly a small one: blocks are compared as a whole, and only what remains as lines.
    """
    most = min(len(old), len(new))
    if most < _BLOCK_BYTES:
        return 0, 0
    start = 0
    while old[start : start + _BLOCK_BYTES] == new[start : start + _BLOCK_BYTES] and start < most:
        start += _BLOCK_BYTES
    start = min(start, most)
    for _ in range(CONTEXT + 1):
        start = old.rfind(b"\n", 0, max(start, 0))
    start += 1
    end = 0
    while end + _BLOCK_BYTES <= most - start:
        a, b = len(old) - end, len(new) - end
        if old[a - _BLOCK_BYTES : a] != new[b - _BLOCK_BYTES : b]:
            break
        end += _BLOCK_BYTES
    place = len(old) - end
    for _ in range(CONTEXT + 1):
        place = old.find(b"\n", place) + 1 or len(old)
    return start, len(old) - place


def count_lines(data: bytes) -> int:
    """Return how many lines there are; one without an end counts."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _too_long(old: bytes, new: bytes) -> Diff:
    removed, added = count_lines(old), count_lines(new)
    lines = [f"[too long to compare: {removed:,} lines before, {added:,} after; the new content begins:]"]
    beginning = sum(len(line) + 1 for line in new.split(b"\n", MAX_LINES)[:MAX_LINES])
    shown = characters = 0
    for line in _lines(new[:beginning]):
        if characters >= MAX_CHARACTERS:
            break
        lines.extend(_shown("+", line, crlf=False))
        characters += len(lines[-1])
        shown += 1
    # Nothing of what goes is shown, so that it is never the whole.
    return Diff(lines=tuple(lines), more=removed + added - shown, added=added, removed=removed)


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()
    return lines if last == b"\n" else [*lines, last[:-1]]


def changes(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[Change]:
    """Yield what changed, in order: lines that are unique in both hold the two together, difflib fills the gaps.

    Bounded in time: a gap that is too long for difflib is one change, whatever is equal in it.
    """
    start, tail = _common(before, after)
    old, new = before[start : len(before) - tail], after[start : len(after) - tail]
    i = j = 0
    left = _MAX_ALL_PAIRS
    for x, y in (*_anchors(old, new), (len(old), len(new))):
        pairs = (x - i) * (y - j)
        if pairs:
            left -= max(pairs, _LEAST_PAIRS)
        for a1, a2, b1, b2 in _gap(old[i:x], new[j:y], closely=left >= 0 and pairs <= _MAX_PAIRS):
            yield Change(
                old_start=start + i + a1, old_end=start + i + a2, new_start=start + j + b1, new_end=start + j + b2
            )
        i, j = x + 1, y + 1


def _common(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines are equal at the start and at the end."""
    most = min(len(before), len(after))
    start = 0
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, end


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return pairs of equal lines, unique on both sides and in order on both: the longest such row (patience sorting)."""
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


def _unique(lines: Sequence[bytes]) -> dict[bytes, int]:
    """Return the lines that occur once, in order, with their places."""
    places: dict[bytes, int] = {}
    for index, line in enumerate(lines):
        places[line] = -1 if line in places else index
    return {line: index for line, index in places.items() if index >= 0}


def _gap(old: Sequence[bytes], new: Sequence[bytes], *, closely: bool) -> list[tuple[int, int, int, int]]:
    if old == new:
        return []
    if not closely or not old or not new:
        return [(0, len(old), 0, len(new))]
    from difflib import SequenceMatcher

    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a1, a2, b1, b2) for tag, a1, a2, b1, b2 in codes if tag != "equal"]


def _hunks(changes: Iterator[Change]) -> list[list[Change]]:
    """Put together what is so near that the lines around would overlap."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change.old_start - hunks[-1][-1].old_end <= 2 * CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _hunk_lines(
    hunk: Sequence[Change], before: Sequence[bytes], after: Sequence[bytes], above: int
) -> Iterator[tuple[str, bytes]]:
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT, first.old_start)
    trail = min(CONTEXT, len(before) - last.old_end)
    old = _range(above + first.old_start - lead, above + last.old_end + trail)
    new = _range(above + first.new_start - lead, above + last.new_end + trail)
    yield "@", f"@@ -{old} +{new} @@".encode()
    position = first.old_start - lead
    for change in hunk:
        yield from ((" ", line) for line in before[position : change.old_start])
        removed = [("-", line) for line in before[change.old_start : change.old_end]]
        added = [("+", line) for line in after[change.new_start : change.new_end]]
        # A diff is cut at its end: where much goes, what comes is shown first.
        yield from (*added, *removed) if len(removed) > MAX_LINES // 2 else (*removed, *added)
        position = change.old_end
    yield from ((" ", line) for line in before[position : position + trail])


def _range(start: int, end: int) -> str:
    """Return a hunk's range as diff -u writes it: the line before it where it is empty."""
    length = end - start
    first = start + (length > 0)
    return f"{first}" if length == 1 else f"{first},{length}"


def _shown(sign: str, line: bytes, *, crlf: bool) -> Iterator[str]:
    if sign == "@":
        yield line.decode()
        return
    whole = line.endswith(b"\n")
    line = line.removesuffix(b"\r\n" if crlf else b"\n")
    start = line[: 4 * MAX_LINE_CHARACTERS + 4]  # a character has at most four bytes
    double = _looks_escaped(start)
    if double:
        start = start.replace(b"\\", b"\\\\")
    text = visible(start.decode("utf-8", "backslashreplace"))
    if len(text) > MAX_LINE_CHARACTERS:
        text = f"{text[:MAX_LINE_CHARACTERS]}...(cut: the line has {len(line):,} bytes)"
    yield sign + text
    if double:
        yield "\\ Backslashes of the line above are doubled, to tell them from those that stand for hidden characters"
    if not whole:
        yield "\\ No newline at end of file"


def _looks_escaped(line: bytes) -> bool:
    """Say whether a line holds both characters that are shown as escapes and backslashes that could be taken for such."""
    if b"\\" not in line:
        return False
    text = line.decode("utf-8", "surrogateescape")
    plain = text.removesuffix("\r")
    return visible(plain) != plain or (plain != text and _LIKE_AN_ESCAPE.search(plain) is not None)
