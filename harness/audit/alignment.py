"""Two sequences side by side: which items of one are which of the other, in order, within bounded time and memory; pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

MOST_CELLS = 400_000_000
"""Product of the lengths up to which the longest common subsequence is found; beyond it, a common one that may be shorter."""


def aligned(
    left: Sequence[bytes], right: Sequence[bytes], most_cells: int = MOST_CELLS
) -> Iterator[tuple[int | None, int | None]]:
    """Yield every place of both, in order: pairs of places with equal items, and places that have none (None there).

    `most_cells` bounds the product of the lengths for which as many pairs as can be are found.
    """
    done_left = done_right = 0
    for a, b in (*_pairs(left, right, most_cells), (len(left), len(right))):
        yield from ((place, None) for place in range(done_left, a))
        yield from ((None, place) for place in range(done_right, b))
        if a < len(left):
            yield a, b
        done_left, done_right = a + 1, b + 1


def _pairs(left: Sequence[bytes], right: Sequence[bytes], most_cells: int) -> list[tuple[int, int]]:
    start, most = 0, min(len(left), len(right))
    while start < most and left[start] == right[start]:
        start += 1
    end = 0
    while end < most - start and left[-1 - end] == right[-1 - end]:
        end += 1
    middle = left[start : len(left) - end], right[start : len(right) - end]
    find = _longest if len(middle[0]) * len(middle[1]) <= most_cells else _by_occurrence
    return [
        *((place, place) for place in range(start)),
        *((start + a, start + b) for a, b in find(*middle)),
        *((len(left) - place, len(right) - place) for place in range(end, 0, -1)),
    ]


def _longest(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the longest common subsequence, a bit an item of `left` (H. Hyyrö, Bit-parallel LCS-length computation, 2004).

    In row j, the zero bits among the lowest i say how long the longest one is of left[:i] and right[: j + 1].
    """
    places: dict[bytes, int] = {}
    for place, item in enumerate(left):
        places[item] = places.get(item, 0) | 1 << place
    every = (1 << len(left)) - 1
    row, rows = every, []
    for item in right:
        hits = row & places.get(item, 0)
        row = ((row + hits) | (row - hits)) & every
        rows.append(row)
    pairs = []
    a, b = len(left), len(right)
    while a and b:
        if rows[b - 1] >> (a - 1) & 1:
            a -= 1
        elif b > 1 and not rows[b - 2] >> (a - 1) & 1:
            b -= 1
        else:
            a, b = a - 1, b - 1
            pairs.append((a, b))
    return pairs[::-1]


def _by_occurrence(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return a common subsequence in n log n: the first of an item goes with the first, the second with the second."""
    there = {label: place for place, label in enumerate(_labels(right))}
    ends: list[int] = []
    chains: list[int] = []
    found: list[tuple[int, int, int]] = []  # place, place, and the entry before it in its chain
    for a, label in enumerate(_labels(left)):
        b = there.get(label)
        if b is None:
            continue
        length = bisect_left(ends, b)
        if length == len(ends):
            ends.append(b)
            chains.append(0)
        ends[length], chains[length] = b, len(found)
        found.append((a, b, chains[length - 1] if length else -1))
    pairs, entry = [], chains[-1] if chains else -1
    while entry >= 0:
        a, b, entry = found[entry]
        pairs.append((a, b))
    return pairs[::-1]


def _labels(items: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    seen: dict[bytes, int] = {}
    for item in items:
        seen[item] = seen.get(item, 0) + 1
        yield item, seen[item]
