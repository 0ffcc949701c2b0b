"""`harness batch`: many tasks, some at once, each a process of its own; it runs no model, and reads no log but its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.cli.exits import Exit, is_soft
from harness.cli.own_modes import set_right
from harness.cli.signals import Stopping
from harness.cli.state import State
from harness.cli.tasks.batch_files import BatchReports, check_out, folders_of, write_summary
from harness.cli.tasks.finished import refuse_other_settings
from harness.cli.tasks.outcome import Outcome, lines_of, worst
from harness.cli.tasks.pool import Pool
from harness.cli.tasks.progress import Progress
from harness.cli.tasks.settings import of_task, settings_of
from harness.cli.tasks.task import Task, in_shard, read_tasks
from harness.cli.tasks.task_folder import TaskFolder
from harness.errors import UsageError

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


def batch_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do the tasks of a file that are not done yet, and return the worst of their exit codes.

    Raises UsageError before anything is run where a line of the file is no task, where a report could not be written, or
    where the folder holds what was done under other settings.
    """
    set_right(State.of(environment))
    mine = [task for task in read_tasks(arguments.tasks) if in_shard(task.id, arguments.shard)]
    out = check_out(arguments.out, folders_of(arguments, mine), mine)
    refuse_other_settings(_with_result(arguments, out, mine))
    reports = BatchReports(arguments, environment, out, mine)
    progress = Progress(sys.stderr, len(mine), quiet=arguments.quiet, width=_width())
    stopping = Stopping()
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    began = time.monotonic()
    outcomes = Pool(arguments, environment, out, progress, stopping, jobs=jobs).run(mine)
    progress.finish()
    code = stopping.exit_code or worst(outcomes)
    seconds = time.monotonic() - began
    summary = write_summary(out, outcomes, int(code), shard=arguments.shard, seconds=seconds)
    problems = [*summary, *reports.write(outcomes, int(code))]
    for problem in problems:
        progress.tell(problem)
    if problems and is_soft(code):
        code = Exit.INTERNAL
    return _shown(outcomes, code)


def _with_result(
    arguments: Namespace, out: str, tasks: Sequence[Task]
) -> Iterator[tuple[TaskFolder, Task, Mapping[str, JsonValue]]]:
    """Yield the tasks that have a result, with folder and settings; not those that cannot begin: these are told of later."""
    for task in tasks:
        folder = TaskFolder(os.path.join(out, task.id))
        if not os.path.lexists(folder.result):
            continue
        try:
            yield folder, task, settings_of(of_task(arguments, task), task)
        except UsageError:
            continue


def _shown(outcomes: Sequence[Outcome], code: Exit) -> int:
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(outcomes)))
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is buffered must not raise again when Python exits
        if is_soft(code):
            return Exit.BROKEN_PIPE
    return code


def _width() -> int:
    """Return how wide the terminal of stderr is, 0 where it is none."""
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 0
