"""How large the long proofs are: small by default, whole with `HARNESS_FULL=1`, and of any size by a variable of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def proof_size(name: str, default: int, *, full: int) -> int:
    """Return the number that the variable `HARNESS_<name>` holds, else `full` where HARNESS_FULL is set, else `default`."""
    given = os.environ.get(f"HARNESS_{name}", "")
    return int(given) if given else full if os.environ.get("HARNESS_FULL") else default


def examples(full: int) -> int:
    """Return how many examples of chance are tried where the whole proof tries `full`; HARNESS_EXAMPLES says another number."""
    return proof_size("EXAMPLES", max(full // 8, 3), full=full)


def spread(name: str, numbers: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of these, evenly spread, the first and the last among them; all with HARNESS_FULL.

    HARNESS_<name> says another number.
    """
    kept = proof_size(name, most, full=len(numbers))
    if kept >= len(numbers):
        return list(numbers)
    return [numbers[place * (len(numbers) - 1) // max(kept - 1, 1)] for place in range(kept)]
