"""The file that a view of logs is written to: whole or not at all, private, and never in the place of a record."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence

from harness.cli.named_places import place_of
from harness.cli.state import State, here
from harness.cli.written_over import why_not
from harness.durable import put, sync_names
from harness.errors import UsageError
from harness.paths import is_within
from harness.tools.opening import open_to_list

STDOUT = "-"


def write_view(
    pieces: Iterable[str], output: str, *, logs: Sequence[str], state: State, cwd: str | None = None
) -> None:
    """Write text to the file `output` (mode 0600, UTF-8), or to stdout; `logs` are those that it is about.

    No link in the workspace (`cwd`, else the current folder) is followed. The file appears under its name when all of it is
    on the disk; what stood there before stays until then. Lone surrogates become escapes.

    Raises UsageError if it must not or cannot be written, OSError if stdout cannot.
    """
    if output == STDOUT:
        # Through the stream, not to the bytes below it: in a CI job a guard stands before them.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
        return
    target = place_of(output, (here(cwd),))
    _check_harmless(target, logs, state)
    try:
        folder = open_to_list(os.path.dirname(target))
        try:
            put(os.path.basename(target), (piece.encode("utf-8", "backslashreplace") for piece in pieces), folder)
            sync_names(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None


def _check_harmless(target: str, logs: Sequence[str], state: State) -> None:
    """Raise UsageError where writing there would destroy a log, or something else that the harness relies on."""
    if any(is_within(target, folder) for folder in state.guarded):
        raise UsageError(f"{target} lies among the harness's own files; choose another place")
    why = why_not(target, logs)
    if why:
        raise UsageError(f"{target}: {why}; {STDOUT} writes to stdout")
