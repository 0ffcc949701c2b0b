"""`harness batch --queue`: adds tasks to a queue, waits for them, and checks the result of each."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from harness.actions import JsonValue
from harness.audit.findings import judge_log
from harness.digest import digest_of
from harness.errors import LogError, UsageError
from harness.log.heads_file import HeadsFile
from harness.plugins.fleet.batch.growing_log import head_of, heads_line
from harness.plugins.fleet.batch.outcome import Progress, TaskEnd, TaskOutcome, count_in
from harness.plugins.fleet.batch.results import INPUTS, Results
from harness.plugins.fleet.batch.store import ResultsError, is_url
from harness.plugins.fleet.batch.task import LIMITS, Task, of_task
from harness.plugins.fleet.batch.task_folder import FINISHED, TaskFolder
from harness.plugins.fleet.queue.open_queue import open_queue
from harness.plugins.fleet.queue.queue import (
    NAME_LENGTH,
    Batch,
    QueueAwayError,
    QueuedTask,
    TaskResult,
    TaskRow,
    TaskState,
)
from harness.plugins.fleet.queue.version import policy_digest, version_of
from harness.record import replace
from harness.safe_files import replace_file
from harness.session.exits import Exit
from harness.session.signals import Stopping
from harness.session.state import State
from harness.session.work_folders.packed import Packed, pack
from harness.session.work_folders.transport import local_path
from harness.text.amounts import count_of

EVERY_SECONDS = 1.0
"""Seconds between two polls of the queue."""
FIRST_SECONDS = 5.0
TELL_SECONDS = 60.0
"""Seconds between two messages that no worker takes the tasks."""
HEADS = "heads.jsonl"
"""Name of the file, in the folder of results, with the heads of all logs for `harness audit verify --heads`."""
_WHY = {
    TaskState.CANCELLED: "it was cancelled",
    TaskState.BROKEN: "the queue has no result of it; `harness queue retry` does it again",
}
_AWAY = "the queue cannot be reached, and is tried again: {}"


def batch_name(out: str) -> str:
    """Return the name of the batch with results at `out`, a URL or an absolute path. Each place has one batch."""
    return digest_of(out.encode())[:NAME_LENGTH]


def queued(
    arguments: Namespace,
    environment: Mapping[str, str],
    local: str,
    tasks: Sequence[Task],
    progress: Progress,
    stopping: Stopping,
) -> list[TaskOutcome] | None:
    """Add tasks to the queue in the flags. With --wait, wait for the tasks and return their outcomes, otherwise `None`.

    `local` is the local folder of the results. Raises UsageError, PolicyError and OSError.
    """
    reserved = {task.id for task in tasks} & {INPUTS, HEADS}
    if reserved:
        raise UsageError(f"with --queue no task may be called {min(reserved)!r}: the batch writes a file of that name")
    out = arguments.out if is_url(arguments.out) else local
    batch = QueuedBatch(arguments, environment, out, is_gone=lambda: stopping.count > 0, away=progress.tell)
    try:
        count = batch.put(tasks)
        already = f"; {count_of(len(tasks) - count, 'task')} there already" if count < len(tasks) else ""
        if not arguments.quiet:
            later = "" if arguments.wait else "; the same command with --wait gathers what came of them"
            progress.tell(f"{count_of(count, 'task')} put into the queue as batch {batch.name}{already}{later}")
            if batch.is_in_new_queue:
                progress.tell("there was no queue at this address: it was made now")
        return batch.gather(batch.wait(tasks, progress, stopping), local) if arguments.wait else None
    except ResultsError as error:
        raise UsageError(f"--out: {error}") from None
    except QueueAwayError as error:
        raise UsageError(f"--queue: it cannot be reached: {error}") from None
    finally:
        batch.close()


class QueuedBatch:
    """A batch in a queue."""

    def __init__(
        self,
        arguments: Namespace,
        environment: Mapping[str, str],
        out: str,
        *,
        is_gone: Callable[[], bool],
        away: Callable[[str], None],
    ) -> None:
        """Open the queue. `out` is the place of the results for workers, a URL or an absolute path.

        `is_gone` and `away` are those of DbosQueue, with a whole sentence for `away`. Raises UsageError and
        PolicyError.
        """
        self._arguments = arguments
        self._environment = environment
        self._policy = policy_digest(arguments)
        self._version = version_of(arguments, self._policy)
        self._results = Results.at(out)
        self._batch = Batch(name=batch_name(out), out=out, budget=arguments.budget)
        self._queue = open_queue(
            arguments.queue, key=arguments.key, is_gone=is_gone, away=lambda reason: away(_AWAY.format(reason))
        )
        self._heads_file = HeadsFile(State.of(environment).heads)
        self._packed: dict[tuple[str, str | None], Packed] = {}
        self._heads: dict[str, TaskResult] = {}

    @property
    def name(self) -> str:
        """Name of the batch in the queue."""
        return self._batch.name

    @property
    def is_in_new_queue(self) -> bool:
        """Whether the queue was created now."""
        return self._queue.is_new

    def put(self, tasks: Sequence[Task]) -> int:
        """Add new tasks, and tasks whose earlier end permits another try. Return the number of both.

        Raises UsageError if a task cannot be packed or the queue has a different task of that name, and ResultsError.
        """
        return self._queue.put(self._batch, tuple(self._queued(tasks)), is_tried_again)

    def wait(self, tasks: Sequence[Task], progress: Progress, stopping: Stopping) -> list[TaskOutcome]:
        """Wait until the tasks are done or the batch is stopped. Return the outcomes in the order of the tasks."""
        places = {task.id: place for place, task in enumerate(tasks)}
        outcomes: dict[str, TaskOutcome] = {}
        since, tell_at = 0.0, time.monotonic() + FIRST_SECONDS
        remaining, is_first = len(tasks), True
        try:
            while remaining and not stopping.count:
                is_over = not self._queue.undone(self.name)
                # Finally read all results: one with an earlier end time may have been recorded later.
                for result in self._queue.results(self.name, 0.0 if is_over else since):
                    since = result.end_time
                    earlier = self._heads.get(result.task)
                    if result.task in places and (earlier is None or earlier.number != result.number):
                        self._heads[result.task] = result
                        outcomes[result.task] = self._report(result, places[result.task], progress, is_earlier=is_first)
                remaining, is_first = 0 if is_over else len(places) - len(outcomes), False
                if not remaining:
                    break
                workers = [worker for worker in self._queue.ledger.workers() if worker.version == self._version]
                progress.now(min(remaining, sum(worker.jobs for worker in workers)))
                if time.monotonic() > tell_at and not workers:
                    tell_at = time.monotonic() + TELL_SECONDS
                    waits = f"{count_of(remaining, 'task')} left, and no worker is there for {self._version}"
                    progress.tell(f"{waits}: start `harness worker` with this queue, and the same policy and settings")
                with suppress(QueueAwayError):  # the next poll reports the outage
                    self._queue.give_back_lost()
                time.sleep(EVERY_SECONDS)
        except QueueAwayError:
            pass  # the user stopped the batch during an outage
        if remaining:
            on = f"{count_of(remaining, 'task')} left; workers go on with them"
            progress.tell(f"{on}. `harness queue cancel --queue URL {self.name}` ends them")
        else:
            outcomes = {**self._without_result(places), **outcomes}
        not_done = TaskOutcome(id="", place=0, task_end=TaskEnd.NOT_RUN, problem="it is not done")
        return [outcomes.get(task.id) or replace(not_done, id=task.id, place=places[task.id]) for task in tasks]

    def _report(self, result: TaskResult, place: int, progress: Progress, *, is_earlier: bool) -> TaskOutcome:
        """Return the outcome of a task, and report it."""
        outcome = outcome_of(result, place)
        is_earlier = is_earlier and outcome.task_end is TaskEnd.RAN
        if is_earlier:
            outcome = replace(outcome, task_end=TaskEnd.EARLIER)
        end_text = f"{outcome.end_words}{' (done earlier)' if is_earlier else ''}"
        progress.count_finished(
            result.task, end_text, outcome.seconds, failed=outcome.code != Exit.DONE, reason=outcome.problem_text
        )
        return outcome

    def _without_result(self, places: Mapping[str, int]) -> dict[str, TaskOutcome]:
        """Return the outcomes of tasks that ended without a result: cancelled tasks, and tasks with a broken row."""
        ends = {TaskState.CANCELLED: TaskEnd.CANCELLED, TaskState.BROKEN: TaskEnd.NOT_DONE}
        return {
            row.task: TaskOutcome(
                id=row.task, place=places[row.task], task_end=ends[row.state], problem=_WHY[row.state]
            )
            for row in self._queue.list(self.name)
            if row.state in ends and row.task in places
        }

    def gather(self, outcomes: Sequence[TaskOutcome], local: str) -> list[TaskOutcome]:
        """Compare each log with its head in the queue, and write the heads into the file HEADS in `local`.

        `local` is the folder of the results. Results at a URL are downloaded into it. Return the outcomes; one whose
        log does not match the head in the queue gets Exit.LOG. Raises OSError.
        """
        checked: list[TaskOutcome] = []
        lines: list[bytes] = []
        for outcome in outcomes:
            result = self._heads.get(outcome.id)
            if result is not None and result.result.get("has_result"):
                folder = TaskFolder(os.path.join(local, outcome.id))
                problem, line = self._compared(folder, result)
                lines += line, *self._other_heads(folder, result)
                if problem:
                    outcome = replace(outcome, code=Exit.LOG, problem=problem)  # noqa: PLW2901 - the same, corrected
            checked.append(outcome)
        replace_file(os.path.join(local, HEADS), lines)
        return checked

    def _compared(self, folder: TaskFolder, result: TaskResult) -> tuple[str, bytes]:
        """Return the problem of a log, or an empty string, and the queue's head of the log as a line for HEADS."""
        path, head = folder.log(result.number), str(result.result.get("head"))
        note: dict[str, JsonValue] = {
            "file": path,
            "records": result.result.get("records"),
            "head": head,
            "closed": True,
        }
        problem = ""
        try:
            if is_url(self._batch.out):
                self._results.fetch(result.task, folder.path)
            if (log_head := head_of(path)) is not None:
                note |= {"session": log_head.session, "size": log_head.size}
            findings = judge_log(path, self._heads_file, given_head=head)
            if findings.unfit or findings.verification.head != head:
                problem = f"{path}: {findings.unfit or findings.reason}"
        except (LogError, ResultsError) as error:
            problem = str(error)
        return problem, heads_line(note)

    def _other_heads(self, folder: TaskFolder, result: TaskResult) -> Iterator[bytes]:
        """Yield the heads, as lines for HEADS, of the uploaded logs of a task's other attempts."""
        for number in folder.attempts():
            if number != result.number and (head := self._results.head(result.task, number)) is not None:
                yield heads_line({**head, "file": folder.log(number)})

    def close(self) -> None:
        """Close the connections to the queue."""
        self._queue.close()

    def _queued(self, tasks: Sequence[Task]) -> Iterator[QueuedTask]:
        for task in tasks:
            fields = {**task.file_fields, **self._source(task)}
            flags = of_task(self._arguments, task)  # raises UsageError for a task that cannot run
            limits = {name: getattr(flags, name) for name in LIMITS if getattr(flags, name) is not None}
            model = {"model": flags.model} if flags.model else {}
            fields = {**fields, **limits, **model, "policy_sha256": self._policy}
            left_out = ("policy", "priority", "group")
            yield QueuedTask(
                batch=self.name,
                task={name: value for name, value in fields.items() if value is not None and name not in left_out},
                version=self._version,
                priority=task.priority or 0,
                group=task.group or task.repo or task.cwd or "-",
            )

    def _source(self, task: Task) -> dict[str, JsonValue]:
        """Return the fields with the task's source for workers: a repository that they can reach, or an uploaded file."""
        if task.bundle is not None:
            return {"bundle": self._uploaded(task.bundle, f"{task.file_sha256}.bundle")}
        if task.archive is not None:
            return {"archive": self._uploaded(task.archive, f"{task.file_sha256}.tar")}
        if task.repo is None:
            return self._packed_source(task.cwd or self._arguments.cwd or os.getcwd(), task.revision)
        place = local_path(task.repo)
        if place is None or task.repo.startswith("file:"):  # `file:` names a place that exists on the workers too
            return {}
        return {**self._packed_source(place, task.commit), "repo": None, **({"cwd": task.cwd} if task.cwd else {})}

    def _packed_source(self, folder: str, revision: str | None) -> dict[str, JsonValue]:
        key = os.path.realpath(folder), revision
        if key not in self._packed:
            into = os.path.join(State.of(self._environment).state, "packed")
            packed = self._packed[key] = pack(*key, into, self._environment)
            self._uploaded(packed.path, os.path.basename(packed.path))
            os.unlink(packed.path)
        packed = self._packed[key]
        source: dict[str, JsonValue] = {packed.kind: os.path.basename(packed.path), "sha256": packed.sha256}
        return {**source, "commit": packed.commit or None, "cwd": packed.cwd or None, "revision": None}

    def _uploaded(self, path: str, name: str) -> str:
        self._results.put_input(path, name)
        return name


def is_tried_again(row: TaskRow) -> bool:
    """Return whether a second start runs a task again.

    That is so for the ends that are tried again without a queue, and for cancelled tasks and those that were given up.
    """
    if row.state is not TaskState.DONE:
        return row.state in (TaskState.CANCELLED, TaskState.UNKNOWN, TaskState.BROKEN)
    return row.result.get("exit_code") not in FINISHED or row.result.get("how") == TaskEnd.NOT_RUN.value


def outcome_of(result: TaskResult, place: int) -> TaskOutcome:
    """Return the outcome of a task from the result that a worker or the queue recorded."""
    fields = result.result
    lost = f"{count_of(result.lost, 'earlier attempt')} lost with its worker: effect unknown" if result.lost else ""
    code, cost, seconds = fields.get("exit_code"), fields.get("cost"), fields.get("seconds")
    return TaskOutcome(
        id=result.task,
        place=place,
        task_end=TaskEnd(str(fields.get("how"))),
        code=code if isinstance(code, int) else None,
        end=str(fields.get("end") or ""),
        turns=count_in(fields.get("turns")),
        refused=count_in(fields.get("refused")),
        changed=count_in(fields.get("files")),
        cost=float(cost) if isinstance(cost, (int, float)) else None,
        seconds=float(seconds) if isinstance(seconds, (int, float)) else 0.0,
        tries=result.number,
        problem="; ".join(part for part in (str(fields.get("problem") or ""), lost) if part),
        detail=str(fields.get("detail") or ""),
    )
