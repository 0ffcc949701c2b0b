"""`harness audit report`: verify logs and write the page about them; judges nothing and changes no log."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from harness.audit.reading import records
from harness.audit.report import report
from harness.audit.report.logs import LogStanding, Soundness, soundness
from harness.cli.audit.logs import BROKEN, chosen_logs
from harness.cli.audit.view_file import STDOUT, write_view
from harness.cli.exits import Exit
from harness.cli.state import State
from harness.log_check import verify
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


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
        only=chosen.session,
        full=arguments.full,
        grown=lambda: [path for path, size in sizes.items() if _size(path) != size],
    )
    write_view(pieces, arguments.output, logs=chosen.paths, state=state)
    if arguments.output != STDOUT:
        sys.stderr.write(f"harness: wrote {visible_line(arguments.output, 5_000)}\n")
    return _told(standing)


def _standing(path: str, state: State) -> LogStanding:
    known = state.known_head(path)
    found = verify(path) if known is None else verify(path, known.head, known.noted)
    unread = _unread_from(path) if found.broken_line is not None else None
    if known is None:
        return LogStanding(path=path, found=found, unread_from=unread)
    return LogStanding(
        path=path,
        found=found,
        noted_head=known.head,
        noted_records=known.records,
        unread_from=unread,
        is_closed=known.closed,
    )


def _unread_from(path: str) -> int | None:
    """Return the first line of a log that is no record at all, or None."""
    lines: list[int] = []
    for _ in records(path, stopped=lines.append):
        pass
    return lines[0] if lines else None


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
