"""The difference of two contents as lines for a person or the model: bounded in size and in time; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from harness.record import Record
from harness.visible import visible

MAX_LINES = 400
"""Of a diff that is kept; the rest is counted."""
MAX_LINE_CHARACTERS = 2_000
CONTEXT = 3
"""Unchanged lines shown around a change."""
MAX_EQUAL_PAIRS = 100_000
"""Lines that could be matched with each other: where there are more, the content counts as rewritten, since difflib
takes quadratic time on lines that occur often."""
MAX_COMPARED_LINES = 200_000

_Code: TypeAlias = "tuple[str, int, int, int, int]"


class Diff(Record):
    """A unified diff."""

    lines: tuple[str, ...]
    more: int
    """How many lines were left out at the end."""
    added: int
    removed: int

    def text(self, most: int = MAX_LINES) -> str:
        """Return at most `most` lines, and one that counts the rest."""
        kept = self.lines[:most]
        rest = len(self.lines) - len(kept) + self.more
        return "\n".join((*kept, f"[... {rest:,} more lines of the diff ...]") if rest else kept)


def compare(old: bytes, new: bytes) -> Diff:
    """Return the difference between two contents; lines end at LF and are shown decoded, escaped and clipped."""
    if max(old.count(b"\n"), new.count(b"\n")) > MAX_COMPARED_LINES:
        return _too_long(old, new)
    before, after = _lines(old), _lines(new)
    crlf = all(line.endswith(b"\r\n") for line in (*before, *after) if line.endswith(b"\n"))
    start, tail = _common(before, after)
    start, tail = max(start - CONTEXT, 0), max(tail - CONTEXT, 0)
    a, b = before[start : len(before) - tail], after[start : len(after) - tail]
    lines: list[str] = []
    added = removed = more = 0
    for group in _groups(a, b):
        for sign, line in _hunk(group, a, b, start):
            added += sign == "+"
            removed += sign == "-"
            if len(lines) < MAX_LINES:
                lines.extend(_shown(sign, line, crlf=crlf))
            else:
                more += 1
    return Diff(lines=tuple(lines), more=more, added=added, removed=removed)


def _too_long(old: bytes, new: bytes) -> Diff:
    removed, added = count_lines(old), count_lines(new)
    lines = [f"[too long to compare: {removed:,} lines before, {added:,} after; the new content begins:]"]
    for line in new.split(b"\n", MAX_LINES)[:MAX_LINES]:
        lines.extend(_shown("+", line + b"\n", crlf=False))
    return Diff(lines=tuple(lines), more=max(added - MAX_LINES, 0), added=added, removed=removed)


def count_lines(data: bytes) -> int:
    """Return how many lines there are; one without an end counts."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()
    return lines if last == b"\n" else [*lines, last[:-1]]


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


def _groups(a: list[bytes], b: list[bytes]) -> list[list[_Code]]:
    if a == b:
        return []
    if _equal_pairs(a, b) > MAX_EQUAL_PAIRS:
        start, end = _common(a, b)
        codes: list[_Code] = [
            ("equal", 0, start, 0, start),
            ("replace", start, len(a) - end, start, len(b) - end),
            ("equal", len(a) - end, len(a), len(b) - end, len(b)),
        ]
        return [codes]
    from difflib import SequenceMatcher

    return [list(group) for group in SequenceMatcher(None, a, b).get_grouped_opcodes(CONTEXT)]


def _equal_pairs(a: list[bytes], b: list[bytes]) -> int:
    """Return how many pairs difflib would look at; lines that are popular by its own measure it leaves out itself."""
    counts = Counter(b)
    popular = len(b) // 100 + 1 if len(b) >= 200 else len(b)
    return sum(counts[line] for line in a if counts[line] <= popular)


def _hunk(group: Sequence[_Code], a: Sequence[bytes], b: Sequence[bytes], offset: int) -> Iterator[tuple[str, bytes]]:
    first, last = group[0], group[-1]
    old, new = _range(first[1], last[2], offset), _range(first[3], last[4], offset)
    yield "@", f"@@ -{old} +{new} @@".encode()
    for tag, a1, a2, b1, b2 in group:
        if tag == "equal":
            yield from ((" ", line) for line in a[a1:a2])
            continue
        removed = [("-", line) for line in a[a1:a2]]
        added = [("+", line) for line in b[b1:b2]]
        # A diff is cut at its end: where much goes, what comes is shown first.
        yield from (*added, *removed) if len(removed) > MAX_LINES // 2 else (*removed, *added)


def _range(start: int, end: int, offset: int) -> str:
    """Return a hunk's range as diff -u writes it: the line before it where it is empty."""
    length = end - start
    first = start + offset + (length > 0)
    return f"{first}" if length == 1 else f"{first},{length}"


def _shown(sign: str, line: bytes, *, crlf: bool) -> Iterator[str]:
    if sign == "@":
        yield line.decode()
        return
    whole = line.endswith(b"\n")
    text = visible(line.removesuffix(b"\r\n" if crlf else b"\n").decode("utf-8", "backslashreplace"))
    if len(text) > MAX_LINE_CHARACTERS:
        text = f"{text[:MAX_LINE_CHARACTERS]}...(+{len(text) - MAX_LINE_CHARACTERS:,} characters)"
    yield sign + text
    if not whole:
        yield "\\ No newline at end of file"
