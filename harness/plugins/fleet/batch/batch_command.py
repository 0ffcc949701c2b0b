"""`harness batch`: runs many tasks in parallel, each in its own process."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import cast

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts, facts_of_log
from harness.app.run.report_files import Reports
from harness.app.run.reported import ReportedRun
from harness.app.run.result import result_object
from harness.app.run.run_end import Job, runner_files
from harness.audit.batch_results import is_summary, summary_name
from harness.errors import LogError, UsageError
from harness.plugins.fleet.batch.outcome import Progress, TaskEnd, TaskOutcome, by_exit_code, tell, worst
from harness.plugins.fleet.batch.pool import Pool
from harness.plugins.fleet.batch.results import Results
from harness.plugins.fleet.batch.swebench import REPOS, is_predictions, read_instances, write_predictions
from harness.plugins.fleet.batch.task import Task, in_shard, of_task, read_tasks, settings_of
from harness.plugins.fleet.batch.task_folder import TaskFolder, refuse_other_settings
from harness.plugins.fleet.batch.uploads import Uploads, working_folder
from harness.plugins.fleet.queue.fleet_flags import checked_queue_flags
from harness.plugins.fleet.queue.queued_batch import queued
from harness.safe_files import replace_file, sync_path
from harness.session.exits import Exit, is_soft
from harness.session.named_plugins import other_report_forms
from harness.session.own_folders import fix_modes, output_path
from harness.session.shipped_plugins import job_in
from harness.session.signals import Stopping
from harness.session.state import PROJECT_POLICY, State, workspace_folder
from harness.system import processors
from harness.terminal.console import Console, complain, look_here


def folders_of(arguments: Namespace, tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return the local folders that the tasks work on, with links resolved. Raises UsageError."""
    return tuple(dict.fromkeys(workspace_folder(task.cwd or arguments.cwd) for task in tasks if task.source is None))


def check_out(path: str, folders: Sequence[str], tasks: Sequence[Task]) -> str:
    """Return the output folder of a batch, and create it if it is missing. Raises UsageError.

    A link in one of `folders` must not lead to it, or to the folder of a task in it.
    """
    out = output_path(path, folders, shown_as="--out")
    for task in tasks:
        output_path(os.path.join(out, task.id), folders, shown_as="--out")
    try:
        os.makedirs(out, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be made: {error.strerror}") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise UsageError(f"--out: {out} cannot be written")
    return out


def write_summary(
    out: str, outcomes: Sequence[TaskOutcome], code: int, *, shard: tuple[int, int] | None, seconds: float
) -> tuple[str, ...]:
    """Write the two summary files: JSON Lines with a line per task, and a JSON object for all. Return the problems."""
    summary: dict[str, JsonValue] = {
        "v": 1,
        "tasks": len(outcomes),
        "exit_code": code,
        "exit_codes": dict(by_exit_code(outcomes)),
        "done_earlier": sum(outcome.task_end is TaskEnd.EARLIER for outcome in outcomes),
        "cost": sum(outcome.cost for outcome in outcomes if outcome.cost is not None),
        "cost_not_known": sum(outcome.cost is None for outcome in outcomes),
        "shard": "{}/{}".format(*shard) if shard else None,
        "seconds": round(seconds, 3),
    }
    path = os.path.join(out, summary_name(shard))
    rows = ((json.dumps(outcome.as_json, separators=(",", ":")) + "\n").encode() for outcome in outcomes)
    try:
        replace_file(f"{path}.jsonl", rows)
        replace_file(f"{path}.json", ((json.dumps(summary, indent=2) + "\n").encode(),))
        sync_path(out)
    except OSError as error:
        return (f"the summary cannot be written: {error}",)
    return ()


class BatchReports:
    """The reports on all tasks of a batch. Their paths are checked before the batch begins."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str], out: str, tasks: Sequence[Task]) -> None:
        """Check the paths.

        Raises UsageError for a report that cannot be written, or that would overwrite a needed file.
        """
        self._out = out
        self._with_answer: bool = arguments.report_answer
        self._heads = State.of(environment).heads
        self._reports: Reports | None = None
        self._job: Job | None = None
        if arguments.report:
            keep_from = [*_needed(arguments, environment, tasks), *_reserved_paths(out, arguments.report, tasks)]
            self._reports = Reports(
                arguments.report,
                with_answer=arguments.report_answer,
                keep_from=keep_from,
                folders=folders_of(arguments, tasks),
                plugin_forms=other_report_forms(arguments.report, State.of(environment).config_file),
            )
        if environment.get("GITHUB_ACTIONS"):
            self._job = job_in(environment)

    def write(self, outcomes: Sequence[TaskOutcome], code: int) -> tuple[str, ...]:
        """Write the reports, and report to GitHub if this is a GitHub job. Return the problems."""
        if self._reports is None and self._job is None:
            return ()
        runs = runs_of(self._out, outcomes, self._heads)
        problems = []
        if self._reports is not None:
            problems.append(self._reports.write(runs))
        if self._job is not None:
            problems.append(self._job.tell_all(runs, code=code, with_answer=self._with_answer))
        return tuple(problem for problem in problems if problem)


def runs_of(out: str, outcomes: Sequence[TaskOutcome], heads: str) -> Sequence[ReportedRun]:
    """Return the runs of a batch for a report. Each run reads its result and log on first access."""

    reading = _Reading(out, heads)
    return cast("Sequence[ReportedRun]", [_Run(outcome, reading) for outcome in outcomes])


def _needed(arguments: Namespace, environment: Mapping[str, str], tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the files that the batch, its runs or a CI runner reads. A report must not overwrite them."""
    yield from State.of(environment).guarded
    yield from runner_files(environment)
    yield from (path for path in (arguments.tasks, *(arguments.policy or ()), arguments.system) if path)
    yield from (os.path.join(folder, PROJECT_POLICY) for folder in folders_of(arguments, tasks))


def _reserved_paths(out: str, reports: Sequence[str], tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the files and task folders of the batch that a report would overwrite or be placed in."""
    names = {task.id for task in tasks}
    for report in reports:
        path = os.path.realpath(report.partition(":")[2])
        name = os.path.relpath(path, os.path.realpath(out)).partition("/")[0]
        if name in names or is_summary(name) or is_predictions(name):
            yield os.path.join(out, name)


class _Run:
    """A ReportedRun that is read on access, so that the logs of thousands of runs are never in memory together."""

    __slots__ = ("_outcome", "_reading")

    def __init__(self, outcome: TaskOutcome, reading: _Reading) -> None:
        self._outcome = outcome
        self._reading = reading

    def __getattr__(self, name: str) -> object:
        return getattr(self._reading.run(self._outcome), name)


class _Reading:
    """Reads results and logs of a batch. Caches the last run, since reports read many of its fields in a row."""

    def __init__(self, out: str, heads: str) -> None:
        self._out = out
        self._heads = heads
        self._last: tuple[int, ReportedRun] | None = None

    def run(self, outcome: TaskOutcome) -> ReportedRun:
        if self._last is None or self._last[0] != outcome.place:
            result = self._result_of(outcome)
            run = ReportedRun(name=outcome.id, facts=_facts_of(result), result=result, heads=self._heads)
            self._last = outcome.place, run
        return self._last[1]

    def _result_of(self, outcome: TaskOutcome) -> Mapping[str, JsonValue]:
        folder = TaskFolder(os.path.join(self._out, outcome.id))
        result, attempt = folder.read_result(), (folder.read_work() or {}).get("attempt")
        if outcome.code is None or result is None or type(attempt) is not int:
            return _without_facts(outcome, outcome.problem or "there is no result")
        log = folder.log(attempt)  # not the path in the result, since the folder of the batch may have been moved
        if not os.access(log, os.R_OK):
            return _without_facts(outcome, f"the log {log} is not there, or cannot be read")
        return {**result, "log": log}


def _facts_of(result: Mapping[str, JsonValue]) -> RunFacts:
    log = result.get("log")
    try:
        return facts_of_log(log) if isinstance(log, str) and log else RunFacts()
    except LogError:
        facts = RunFacts()
        facts.odd += 1
        return facts


def _without_facts(outcome: TaskOutcome, problem: str) -> Mapping[str, JsonValue]:
    """Return a result object for a task without a result, so that reports include the task."""
    return result_object(
        RunFacts(),
        answer="",
        code=1 if outcome.code is None else outcome.code,
        cost=None,
        model="",
        policy="",
        policy_sha256="",
        log="",
        head="",
        records=0,
        end=outcome.task_end.value if outcome.code is None else "failed before it began",
        detail=problem,
    )


def tasks_of(arguments: Namespace) -> tuple[Task, ...]:
    """Return the tasks of a batch, from a file of tasks or of benchmark instances. Raises UsageError."""
    if arguments.source:
        return read_instances(arguments.tasks, arguments.repos or REPOS)
    if arguments.repos:
        raise UsageError("--repos needs --from swebench: it says where the repositories of its instances are")
    return read_tasks(arguments.tasks)


def place_of(arguments: Namespace, environment: Mapping[str, str], tasks: Sequence[Task]) -> tuple[str, Uploads | None]:
    """Return the folder of a batch, as `check_out` does, and the uploads if the results are at a URL.

    For a URL without a queue, download the finished tasks into the folder first. Raises UsageError.
    """
    folders = folders_of(arguments, tasks)
    if "://" not in arguments.out:
        return check_out(arguments.out, folders, tasks), None

    results = Results.at(arguments.out)
    out = check_out(working_folder(arguments.out, State.of(environment)), folders, tasks)
    uploads = Uploads(results, out, tasks)
    if not arguments.queue:  # with a queue, `queued` downloads the attempts that the queue chose
        uploads.bring()
    return out, uploads


def batch_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run the unfinished tasks of a file. Return the worst of their exit codes.

    Before any run, raises UsageError for an invalid line of the file, a report that could not be written, a folder with
    results of other settings, and an unusable URL of the results.
    """
    fix_modes(State.of(environment), complain)
    checked_queue_flags(arguments)
    mine = [task for task in tasks_of(arguments) if in_shard(task.id, arguments.shard)]
    out, uploads = place_of(arguments, environment, mine)
    if not arguments.queue:
        refuse_other_settings(_with_result(arguments, out, mine))
    reports = BatchReports(arguments, environment, out, mine)
    progress = Progress(sys.stderr, len(mine), look_here(sys.stderr, environment), quiet=arguments.quiet)
    stopping = Stopping()
    jobs = arguments.jobs or processors()
    began = time.monotonic()
    if arguments.queue:
        with progress:
            queued_outcomes = queued(arguments, environment, out, mine, progress, stopping)
        if queued_outcomes is None:
            return Exit.DONE
        outcomes = queued_outcomes
    else:
        with progress, uploads or nullcontext():
            outcomes = Pool(arguments, environment, out, progress, stopping, jobs=jobs).run(mine)
    code = stopping.exit_code or worst(outcomes)
    seconds = time.monotonic() - began
    summary = write_summary(out, outcomes, int(code), shard=arguments.shard, seconds=seconds)
    problems = [*summary, *reports.write(outcomes, int(code))]
    if arguments.source:
        problems += write_predictions(out, outcomes, shard=arguments.shard, tell=progress.tell)
    if uploads is not None:
        reported = [report.partition(":")[2] for report in arguments.report]
        if arguments.queue:
            problems += uploads.put_others(reported)
        else:
            problems += uploads.finish(reported, is_ended=lambda: stopping.count > 1)
    for problem in problems:
        progress.tell(problem)
    if problems and is_soft(code):
        code = Exit.INTERNAL
    return _show(outcomes, code, environment)


def _with_result(
    arguments: Namespace, out: str, tasks: Sequence[Task]
) -> Iterator[tuple[TaskFolder, Task, Mapping[str, JsonValue]]]:
    """Yield folder, task and settings of each task with a result. Skip invalid settings, which the pool reports."""
    for task in tasks:
        folder = TaskFolder(os.path.join(out, task.id))
        if not os.path.lexists(folder.result):
            continue
        try:
            yield folder, task, settings_of(of_task(arguments, task), task)
        except UsageError:
            continue


def _show(outcomes: Sequence[TaskOutcome], code: Exit, environment: Mapping[str, str]) -> int:
    console = Console(sys.stdout, look_here(sys.stdout, environment))
    tell(outcomes, console)
    if console.broken:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the flush at exit does not fail again
        if is_soft(code):
            return Exit.BROKEN_PIPE
    return code
