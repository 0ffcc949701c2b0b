"""How much a long proof does: a part of it where everybody runs the tests, all of it with `HARNESS_PROOFS=full`."""

import os

FULL = os.environ.get("HARNESS_PROOFS", "") == "full"


def proof_size(full: int, part: int = 5) -> int:
    """Return `full` where the whole proof is wanted, else its `part`th part."""
    return full if FULL else max(1, full // part)
