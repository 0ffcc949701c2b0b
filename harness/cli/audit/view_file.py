"""The file that a view of logs is written to: whole or not at all, private, and never in the place of a record."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence

from harness.cli.state import State
from harness.durable import put, sync_names
from harness.errors import UsageError
from harness.paths import is_within

STDOUT = "-"
_BESIDE = re.compile(r"\.(torn(\.[0-9]+)?|head(\.sig)?)\Z")
"""What stands behind a log's name in that of what is kept beside it: torn bytes, a signed head, its signature."""
_LOOKED_AT = 1 << 20
"""Bytes of a file that are looked at."""


def write_view(pieces: Iterable[str], output: str, *, logs: Sequence[str], state: State) -> None:
    """Write text to the file `output` (mode 0600, UTF-8), or to stdout; `logs` are those that it is about.

    The file appears under its name when all of it is on the disk; what stood there before stays until then. Lone
    surrogates become escapes.

    Raises UsageError if it must not or cannot be written, OSError if stdout cannot.
    """
    if output == STDOUT:
        # Through the stream, not to the bytes below it: in a CI job a guard stands before them.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
        return
    target = os.path.realpath(output)
    _check_harmless(target, logs, state)
    try:
        put(target, (piece.encode("utf-8", "backslashreplace") for piece in pieces))
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    sync_names(os.path.dirname(target))


def _check_harmless(target: str, logs: Sequence[str], state: State) -> None:
    """Raise UsageError where writing there would destroy a log, or something else that the harness relies on."""
    if any(is_within(target, folder) for folder in state.guarded):
        raise UsageError(f"{target} lies among the harness's own files; choose another place")
    if _is_beside(target, logs):
        raise UsageError(f"{target} belongs to an action log, and is never written over")
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{target} is not a regular file; {STDOUT} writes to stdout")
    if any(_is_same(target, log) for log in logs) or _is_record(target):
        raise UsageError(f"{target} is an action log, or holds records, and is never written over")


def _is_same(target: str, log: str) -> bool:
    try:
        return os.path.samefile(target, log)
    except OSError:
        return False


def _is_beside(target: str, logs: Sequence[str]) -> bool:
    """Say whether a path is that of what is kept beside a log: one of these, or any `*.jsonl`."""
    found = _BESIDE.search(target)
    log = target[: found.start()] if found else ""
    return log.endswith(".jsonl") or log in map(os.path.realpath, logs)


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
    if re.search(rb'"(prev|head)":\s?"[0-9a-f]{64}"', start):
        return True
    return bool(start) and path.endswith(".jsonl") and not start.startswith(b"{")
