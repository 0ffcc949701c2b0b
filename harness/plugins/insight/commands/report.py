"""`harness audit report`: write one HTML page about logs. The logs remain the record."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing

from harness.app.audit.logs import chosen_logs, size_of
from harness.plugins.insight.commands.export import STDOUT, write_view
from harness.plugins.insight.report import report
from harness.session.state import State
from harness.terminal.console import Look, complain, look_here
from harness.terminal.long_work import LongWork


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the page and return the exit code. Raises HarnessError.

    The code is 1 if a log is broken; the page then begins with a warning.
    """
    state = State.of(environment)
    chosen = chosen_logs(arguments, environment)
    sizes = {path: size_of(path) for path in chosen.paths}
    look = look_here(sys.stderr, environment)
    chosen.verify_all(look)
    pieces = report(
        chosen,
        chosen.findings,
        missing_logs=[head.file for head in chosen.missing_logs],
        title=arguments.title,
        only=chosen.session,
        full=arguments.full,
        grown=lambda: [path for path, size in sizes.items() if size_of(path) != size],
    )
    with closing(_with_progress(pieces, Look() if arguments.output == STDOUT else look)) as page:
        write_view(page, arguments.output, logs=chosen.paths, state=state, cwd=arguments.cwd)
    if arguments.output != STDOUT:
        complain(f"wrote {arguments.output}")
    return chosen.code


def _with_progress(pieces: Iterable[str], look: Look) -> Generator[str, None, None]:
    """Yield the pieces of the page, with a display of the progress."""
    size = 0
    with LongWork(sys.stderr, look, 0, lambda: f"{size // 1_000:,} kB of the page written"):
        for piece in pieces:
            size += len(piece)
            yield piece
