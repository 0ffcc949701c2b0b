"""Why a file must not be written over: it is a record of what was done, or belongs to one; writes nothing itself."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

_BESIDE = re.compile(r"\.(torn(\.[0-9]+)?|head(\.sig)?)\Z")
"""What stands behind a log's name in that of what is kept beside it: torn bytes, a signed head, its signature."""
_RECORD = re.compile(rb'"(prev|head)":\s?"[0-9a-f]{64}"')
_LOOKED_AT = 1 << 20
"""Bytes of a file that are looked at."""


def why_not(target: str, logs: Sequence[str] = ()) -> str:
    """Return what speaks against writing a file at `target` (absolute, links followed), or nothing.

    `logs` are logs that are known; any other that is there is known by its name or by what it holds.
    """
    if _is_beside(target, logs):
        return "it belongs to an action log, and is never written over"
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be written: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if any(_is_same(target, log) for log in logs) or _is_record(target):
        return "it is or holds records of an action log, and is never written over"
    return ""


def _is_beside(target: str, logs: Sequence[str]) -> bool:
    """Say whether a path is that of what is kept beside a log: one of these, or any `*.jsonl`."""
    found = _BESIDE.search(target)
    log = target[: found.start()] if found else ""
    return log.endswith(".jsonl") or log in map(os.path.realpath, logs)


def _is_same(target: str, log: str) -> bool:
    try:
        return os.path.samefile(target, log)
    except OSError:
        return False


def _is_record(path: str) -> bool:
    """Say whether a file holds records of a log, or notes of heads, whatever stands before them.

    A `*.jsonl` that does not begin with an object is taken for a log that was garbled. A view that was written earlier may
    be written over: none of its lines is a record.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError:
        return True  # it is there, and nobody can say what it is
    if _RECORD.search(start):
        return True
    return bool(start) and path.endswith(".jsonl") and not start.startswith(b"{")
