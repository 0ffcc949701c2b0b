"""Which shard of a batch a task falls to: by a digest of its name alone, so that every machine says the same. Pure."""

from __future__ import annotations

import hashlib


def in_shard(name: str, shard: tuple[int, int] | None) -> bool:
    """Say whether a task is one of the I-th of N shards, (I, N) from (1, 1); all are where there is no shard."""
    if shard is None:
        return True
    part, parts = shard
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % parts == part - 1
