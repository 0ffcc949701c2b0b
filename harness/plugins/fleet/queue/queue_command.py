"""`harness queue`: shows the content of a queue, cancels and retries tasks, and sets limits."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.plugins.fleet.queue.open_queue import open_queue
from harness.plugins.fleet.queue.queue import QueueLimits, TaskRow, TaskState
from harness.plugins.fleet.queue.queued_batch import is_tried_again
from harness.plugins.fleet.queue.status import status_of
from harness.session.exits import Exit
from harness.terminal.console import Console, look_here
from harness.terminal.rich_drawing import rich_console
from harness.terminal.tables import drawn
from harness.text.amounts import count_of

if TYPE_CHECKING:
    from harness.plugins.fleet.queue.dbos_queue import DbosQueue

EVERY_SECONDS = 2.0
"""Seconds between two drawings of a live status."""


def queue_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run the subcommand in `arguments.action`, and return the exit code. Raises UsageError."""
    queue = open_queue(arguments.queue, key=arguments.key, make=False)
    console = Console(sys.stdout, look_here(sys.stdout, environment))
    try:
        match arguments.action:
            case "status" if arguments.json:
                console.line(json.dumps(status_of(queue, arguments.batch).as_json, indent=2))
            case "status" if arguments.watch and console.look.repaints:
                _watch(queue, arguments.batch, console)
            case "status":
                for table in status_of(queue, arguments.batch).tables:
                    console.table(table)
                    console.line("")
            case "cancel":
                rows = [row for row in _chosen(queue, arguments) if row.state in (TaskState.WAITING, TaskState.RUNNING)]
                queue.cancel(rows)
                running = sum(row.state is TaskState.RUNNING for row in rows)
                cancelled = count_of(len(rows) - running, "waiting task")
                console.line(f"{cancelled} cancelled; {count_of(running, 'running task')} asked to end")
            case "retry":
                rows = [row for row in _chosen(queue, arguments) if is_tried_again(row) or row.task in arguments.tasks]
                again = sum(queue.retry(row, row.version) for row in rows)
                console.line(f"{count_of(again, 'task')} put in again")
            case _:
                limits = _limits(arguments)
                queue.limit(limits)
                console.line(f"limits of the queue: {limits.words}")
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        queue.close()
    return Exit.BROKEN_PIPE if console.broken else Exit.DONE


def _chosen(queue: DbosQueue, arguments: Namespace) -> Sequence[TaskRow]:
    """Return the tasks of a batch that the command names, or all if it names none. Raises UsageError."""
    rows = list(queue.list(arguments.batch))
    if not rows:
        raise UsageError(f"no batch {arguments.batch} in the queue; `harness queue status` lists all")
    unknown = set(arguments.tasks) - {row.task for row in rows}
    if unknown:
        raise UsageError(f"batch {arguments.batch} has no task {min(unknown)}")
    return [row for row in rows if not arguments.tasks or row.task in arguments.tasks]


def _limits(arguments: Namespace) -> QueueLimits:
    starts, seconds = arguments.starts or (None, None)
    return QueueLimits(at_once=arguments.at_once, per_group=arguments.per_group, starts=starts, seconds=seconds)


def _watch(queue: DbosQueue, batch: str | None, console: Console) -> None:
    """Redraw the status in place until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    def picture() -> Text:
        width = console.width
        rows = [row for table in status_of(queue, batch).tables for row in (*drawn(table, console.look, width), "")]
        return Text.from_ansi("\n".join(rows))

    drawing = rich_console(console.look.colours, console.width)
    drawing.file = sys.stdout
    with Live(picture(), console=drawing, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(EVERY_SECONDS)
                live.update(picture(), refresh=True)
        except KeyboardInterrupt:
            pass
