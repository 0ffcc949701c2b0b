"""`harness audit report`: verify logs and write the page about them; judges nothing and changes no log."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.audit.reading import records
from harness.audit.report import report
from harness.cli.audit.logs import chosen_logs
from harness.cli.audit.view_file import STDOUT, write_view
from harness.cli.state import State
from harness.cli.streams import complain

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


def report_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the page and return the exit code: 1 if a log is broken, which the page says first. Raises HarnessError."""
    state = State.of(environment)
    chosen = chosen_logs(arguments, environment)
    sizes = {path: _size(path) for path in chosen.paths}
    chosen.verify_all()
    broken = [one.path for one in chosen.findings if one.found.broken_line is not None]
    unread = {path: line for path in broken if (line := _unread_from(path)) is not None}
    pieces = report(
        chosen,
        chosen.findings,
        unread=unread,
        gone=[known.file for known in chosen.gone],
        title=arguments.title,
        only=chosen.session,
        full=arguments.full,
        grown=lambda: [path for path, size in sizes.items() if _size(path) != size],
    )
    write_view(pieces, arguments.output, logs=chosen.paths, state=state, cwd=arguments.cwd)
    if arguments.output != STDOUT:
        complain(f"wrote {arguments.output}")
    return chosen.code


def _unread_from(path: str) -> int | None:
    """Return the first line of a log that is no record at all, or None."""
    lines: list[int] = []
    for _ in records(path, stopped=lines.append):
        pass
    return lines[0] if lines else None


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return -1
