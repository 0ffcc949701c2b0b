"""`harness audit report`: verify logs and write the page about them; judges nothing and changes no log."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from harness.audit.report import report
from harness.audit.report_logs import LogStanding, Soundness, soundness
from harness.cli.audit_logs import BROKEN, chosen_logs
from harness.cli.audit_output import STDOUT, write_view
from harness.cli.exits import Exit
from harness.cli.state import State
from harness.log_check import verify
from harness.visible import visible_line


def report_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the page and return the exit code: 1 if a log is broken, which the page says first. Raises HarnessError."""
    state = State.of(environment)
    chosen = chosen_logs(arguments, environment)
    sizes = {path: _size(path) for path in chosen.paths}
    standing = [_standing(path, state) for path in chosen.paths]
    pieces = report(
        chosen,
        standing,
        title=arguments.title,
        full=arguments.full,
        grown=lambda: [path for path, size in sizes.items() if _size(path) != size],
    )
    write_view(pieces, arguments.output, logs=chosen.paths, state=state)
    if arguments.output != STDOUT:
        sys.stderr.write(f"harness: wrote {visible_line(arguments.output, 5_000)}\n")
    return _told(standing)


def _standing(path: str, state: State) -> LogStanding:
    known = state.known_head(path)
    if known is None:
        return LogStanding(path=path, found=verify(path))
    found = verify(path, known.head, known.noted)
    return LogStanding(
        path=path, found=found, noted_head=known.head, noted_records=known.records, is_closed=known.closed
    )


def _told(standing: Sequence[LogStanding]) -> int:
    """Say on stderr what is broken, and return the exit code."""
    code = Exit.DONE.value
    for log in standing:
        state, why = soundness(log)
        if state is Soundness.BROKEN:
            sys.stderr.write(f"harness: {visible_line(log.path, 5_000)} is BROKEN: {visible_line(why, 500)}\n")
            code = BROKEN
    return code


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return -1
