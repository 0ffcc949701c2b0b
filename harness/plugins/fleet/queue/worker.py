"""A worker: takes tasks from a queue, runs each in a process as `harness batch` does, and reports the results."""

from __future__ import annotations

import json
import os
import re
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from harness.actions import JsonValue
from harness.errors import LogError, UsageError
from harness.plugins.fleet.batch.growing_log import GrowingLog
from harness.plugins.fleet.batch.outcome import TaskEnd, TaskOutcome, with_result
from harness.plugins.fleet.batch.pool import (
    ENDED_BY_SIGNAL,
    EVERY_SECONDS,
    GRACE_SECONDS,
    TaskProcess,
    is_key_refused,
    last_words,
    start_process,
)
from harness.plugins.fleet.batch.results import AttemptTaken, Results
from harness.plugins.fleet.batch.sources import INPUTS_VARIABLE, refuse_outside
from harness.plugins.fleet.batch.store import ResultsError, is_url
from harness.plugins.fleet.batch.task import Task, task_of
from harness.plugins.fleet.batch.task_folder import TaskFolder, is_held
from harness.plugins.fleet.queue.queue import NAME_LENGTH, Done, Growth, Queue, QueueAwayError, QueuedTask, TaskAttempt
from harness.process.removal import remove_folder
from harness.record import Record, replace
from harness.safe_files import remove_if_there, replace_file
from harness.session.exits import Exit
from harness.session.work_folders.work_folder import is_kept
from harness.session.work_folders.worktree import remove_work_folder
from harness.system import CLOCK_WITH_SLEEP, ended_child
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.process.lifeline import Lifeline

    Key: TypeAlias = tuple[str, str]

LEASE_SECONDS = 60.0
"""Seconds without a heartbeat before a worker's tasks are reassigned."""
BEATS = 6
"""Number of heartbeats per lease."""
FENCE = 0.75
"""Share of the lease after which a worker without a successful heartbeat kills its tasks, before others begin them."""
HEAD_SECONDS = 30.0
"""Seconds between reports of a growing log's head."""
NOTE = "attempt.json"
"""Name of the file with the attempt, in a task's folder.

With it, another process can upload the log of a dead worker.
"""
_OF_THE_QUEUE = frozenset(("PGPASSWORD", "PGPASSFILE"))
"""Environment variables with access to the queue, which are not passed to runs."""
LOW_BYTES, LOW_FILES = 64 << 20, 1_000
"""Free bytes and files below which a disk counts as full. A failure is then not blamed on the task."""


class Running(Record):
    """The process and the log of a running attempt."""

    process: TaskProcess
    log: GrowingLog


class Worker:
    """Runs tasks on threads of the queue."""

    def __init__(
        self,
        queue: Queue,
        arguments: Namespace,
        environment: Mapping[str, str],
        *,
        folder: str,
        lifeline: Lifeline,
        tell: Callable[[str], None],
        lease: float,
    ) -> None:
        """Make a worker. `arguments` are the flags of every run, and `folder` is the worker's own folder.

        `lease` is in seconds. `tell` gets each message for the operator, as one line.
        """
        self._queue = queue
        self._arguments = arguments
        self._folder = folder
        self._inputs = os.path.join(folder, "inputs")
        passed = {name: value for name, value in environment.items() if name not in _OF_THE_QUEUE}
        self._environment = {**passed, INPUTS_VARIABLE: self._inputs}
        self._lifeline = lifeline
        self._tell = tell
        self._lease = lease
        self._lock = Lock()
        """Lock for `_running`: held during the start of a process, the removal of an ended one, and signals."""
        self._running: dict[Key, Running] = {}
        self._cancelled: frozenset[Key] = frozenset()
        self._kill_at: dict[Key, float] = {}
        """Times at which processes that were asked to end are killed, by batch and task."""
        self._places: dict[str, Results] = {}
        self._told_at: dict[Key, float] = {}
        self._seen_at = _now()
        self._is_ended = False
        self.is_closing = False
        """Whether the worker takes no more tasks."""
        self.is_lost = False
        """Whether the worker lost its lease, so that others may run its tasks."""
        self.code = Exit.DONE
        """The exit code."""
        self.done = 0
        """Number of finished tasks."""

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    def do(self, queued: QueuedTask, attempt: TaskAttempt) -> Done:
        """Run one task. Called on a thread of the queue."""
        if self.is_lost:
            return Done.LOST
        if problem := self._place_problem(attempt.out):
            self.close(f"nothing more is taken: {problem}", Exit.USAGE)
        if self.is_closing:
            self._queue.finish(attempt, "not begun")
            return Done.BACK
        try:
            task = _read(queued)
            if attempt.is_won:  # its worker was lost before it published the result
                self._publish(attempt)
                return Done.FINISHED
            return self._done(task, attempt, TaskFolder(os.path.join(self._folder, queued.batch, task.id)))
        except (UsageError, AttemptTaken) as error:  # the task is invalid for every worker of this version
            return self._finished(attempt, _outcome(attempt, TaskEnd.CANNOT_BEGIN, Exit.USAGE, problem=str(error)))
        except (OSError, ResultsError) as error:  # a problem of this machine, or of the place of the results
            return self._broken(attempt, str(error))
        except Exception as error:  # noqa: BLE001 - the queue would record it as the task's end, and lose the task
            return self._broken(attempt, f"internal error: {type(error).__name__}: {error}")

    def _done(self, task: Task, attempt: TaskAttempt, folder: TaskFolder) -> Done:
        self._make_ready(task, attempt, folder)
        began = time.monotonic()
        code = self._waited_for(attempt, folder)
        outcome = _outcome(attempt, TaskEnd.RAN, code, seconds=time.monotonic() - began)
        if self.is_lost:
            return Done.LOST
        if code < 0 or code in ENDED_BY_SIGNAL:
            return self._was_ended(attempt, folder, code, outcome.seconds)
        result = folder.read_result() or {}
        has_result = result.get("exit_code") == code
        if code == Exit.MODEL and task.model is None and is_key_refused(result):
            self.close(f"nothing more is taken: the key was refused at {task.id}", Exit.MODEL)
            return self._back(attempt, folder, "key refused")
        if not has_result and (code == Exit.LOG or _is_full(self._folder)):
            return self._broken(attempt, last_words(folder) or f"exit code {code}")
        if not has_result and code == Exit.INTERNAL:
            self._tell(f"{task.id}: {last_words(folder) or f'exit code {code}'}; it goes back into the queue")
            return self._back(attempt, folder, "broken")
        if has_result:
            self._results(attempt).put(folder.path, attempt.task, attempt.number)
            outcome = with_result(outcome, result, folder.read_work() or {})
        else:
            self._put_log(attempt, folder)
            outcome = _outcome(attempt, TaskEnd.CANNOT_BEGIN, code, problem=last_words(folder))
        facts: dict[str, JsonValue] = {key: result[key] for key in ("records", "head") if has_result and key in result}
        done = self._finished(attempt, outcome, facts | {"has_result": has_result})
        if "its folder is kept" not in outcome.problem:
            self._clear(folder)
        return done

    def _make_ready(self, task: Task, attempt: TaskAttempt, folder: TaskFolder) -> None:
        """Download the inputs of a task and make its folder. Raises UsageError, OSError and ResultsError.

        Also makes the folder of the preceding attempt, so that the run numbers its attempt as the queue does.
        """
        inputs = {
            key: self._results(attempt).get_input(name, self._inputs)
            for key in ("bundle", "archive")
            if (name := getattr(task, key)) is not None
        }
        if task.source is None and task.cwd is None:
            raise UsageError(f"task {task.id} has no files to work on: give repo, bundle, archive or cwd")
        refuse_outside(replace(task, **inputs), [*self._arguments.folder, self._inputs])
        self._clear(folder)
        folder.make()
        note = {"out": attempt.out, "batch": attempt.batch, "task": attempt.task, "number": attempt.number}
        replace_file(os.path.join(folder.path, NOTE), (json.dumps(note).encode(),))
        if attempt.number > 1:
            os.makedirs(folder.attempt(attempt.number - 1), mode=0o700)
        folder.claim(task)

    def _waited_for(self, attempt: TaskAttempt, folder: TaskFolder) -> int:
        """Start the process of a task, wait for its end, and return its exit code. Raises OSError."""
        key = attempt.batch, attempt.task
        with self._lock:
            process = start_process(folder, self._arguments, self._environment, self._lifeline)
            self._running[key] = Running(process=process, log=GrowingLog(folder.log(attempt.number)))
            if self.is_lost:
                process.kill()
            elif self._is_ended or key in self._cancelled:
                self._ask_to_end(key)
        ended_child(process.process.pid, wait=True)
        with self._lock:
            del self._running[key]
            self._kill_at.pop(key, None)
            return process.process.wait()

    def _was_ended(self, attempt: TaskAttempt, folder: TaskFolder, code: int, seconds: float) -> Done:
        """Report a task whose process was ended by a signal, because of a cancellation, the end of the worker, or a kill."""
        if (attempt.batch, attempt.task) in self._cancelled:
            self._put_log(attempt, folder)
            self._clear(folder)
            cancelled = _outcome(attempt, TaskEnd.CANCELLED, None, seconds=seconds, problem="it was cancelled")
            return self._finished(attempt, cancelled)
        if self._is_ended:
            return self._back(attempt, folder, "ended with its worker")
        self._tell(f"{attempt.task}: its process was ended ({code}); it goes back into the queue")
        return self._back(attempt, folder, "broken")

    def _broken(self, attempt: TaskAttempt, reason: str) -> Done:
        """Take no more tasks, since this worker has a problem, and return the task. Its folder is kept."""
        self.close(f"nothing more is taken, since {attempt.task} failed: {visible_line(reason, 1_000)}", Exit.INTERNAL)
        self._queue.finish(attempt, "broken")
        return Done.BACK

    def _back(self, attempt: TaskAttempt, folder: TaskFolder, end: str) -> Done:
        self._put_log(attempt, folder)
        self._clear(folder)
        self._queue.finish(attempt, end)
        return Done.BACK

    def _finished(
        self, attempt: TaskAttempt, outcome: TaskOutcome, facts: Mapping[str, JsonValue] | None = None
    ) -> Done:
        """Record the result in the queue, and publish it unless another attempt was first. Raises ResultsError."""
        result = {**outcome.as_json, **(facts or {})}
        if not self._queue.finish(attempt, "done", result):
            self._tell(f"{attempt.task}: attempt {attempt.number} came too late: another attempt counts")
            return Done.BACK  # has an effect only if the task is still assigned to this worker
        if result.get("has_result"):
            self._publish(attempt)
        self.done += 1
        text = f"{attempt.task}: {outcome.end_words}, {outcome.seconds:.1f} s"
        self._tell(f"{text}: {outcome.problem_text}" if outcome.problem_text else text)
        return Done.FINISHED

    def _publish(self, attempt: TaskAttempt) -> None:
        """Publish the attempt that gave the result.

        It replaces a published one that was discarded. Raises ResultsError.
        """
        results = self._results(attempt)
        results.publish(attempt.task, attempt.number, instead_of=results.published(attempt.task))

    def _put_log(self, attempt: TaskAttempt, folder: TaskFolder) -> None:
        if os.path.lexists(folder.log(attempt.number)):
            self._results(attempt).put_log(folder.path, attempt.task, attempt.number)

    def _place_problem(self, out: str) -> str:
        """Return the reason why this worker may not write results to `out`, or an empty string."""
        allowed: str | None = self._arguments.out
        if allowed is None:
            return (
                "" if is_url(out) else f"results of a batch go to {out}; start the worker with --out and a folder above"
            )
        is_below = _place(out).startswith(_place(allowed))
        return "" if is_below else f"results of a batch go to {out}, and here below {allowed} alone (--out)"

    def _results(self, attempt: TaskAttempt) -> Results:
        with self._lock:
            if attempt.out not in self._places:
                self._places[attempt.out] = Results.at(attempt.out)
            return self._places[attempt.out]

    def _clear(self, folder: TaskFolder) -> None:
        # INVARIANT: the note goes first, so that a killed removal leaves no attempt that would be uploaded again.
        remove_if_there(os.path.join(folder.path, NOTE))
        for number in folder.attempts():
            remove_work_folder(folder.attempt(number), self._environment)
        remove_folder(folder.path)

    def close(self, reason: str, code: Exit = Exit.DONE) -> None:
        """Take no more tasks. Running tasks continue to their end. The first reason and code are kept."""
        if not self.is_closing:
            self.is_closing = True
            self.code = code
            self._tell(reason)

    def end(self, *, kill: bool = False) -> None:
        """Ask running tasks to end, after which they go back into the queue. With `kill`, kill them at once."""
        with self._lock:
            for key, run in self._running.items():
                run.process.kill() if kill else self._ask_to_end(key)
            self._is_ended = True

    def _ask_to_end(self, key: Key) -> None:
        """Ask a process to end, once. It is killed after GRACE_SECONDS. The caller must hold the lock."""
        if key not in self._kill_at:
            self._kill_at[key] = _now() + GRACE_SECONDS
            self._running[key].process.ask_to_end()

    def lose(self, reason: str) -> None:
        """Kill all running tasks, and return none to the queue, since other workers have them or will get them."""
        with self._lock:
            if self.is_lost:
                return
            self.is_lost, self.code = True, Exit.INTERNAL
            for run in self._running.values():
                run.process.kill()
        self._tell(f"{reason}: what ran here was killed, and others do it; this worker ends")

    def check(self) -> None:
        """Kill all tasks if heartbeats failed for too long, and each task that does not end after a request."""
        now = _now()
        if now - self._seen_at > self._lease * FENCE:
            self.lose(f"the queue was not told for {now - self._seen_at:.0f} s that this worker lives")
        with self._lock:
            for key, at in self._kill_at.items():
                if now > at:
                    self._running[key].process.kill()

    def beat(self) -> None:
        """Send a heartbeat with the progress of the logs. Ask cancelled tasks to end."""
        now = _now()
        try:
            beaten = self._queue.beat(self._growing(now))
        except QueueAwayError as error:
            self._tell(f"the queue cannot be reached: {visible_line(str(error), 300)}")
            return
        if not beaten.is_alive:
            self.lose(f"this worker was silent for more than {self._lease:.0f} s")
            return
        self._seen_at = now
        with self._lock:
            self._cancelled = beaten.cancelled
            for key in self._cancelled & self._running.keys():
                self._ask_to_end(key)

    def _growing(self, now: float) -> dict[Key, Growth]:
        """Return the progress of each log whose last report is old enough."""
        with self._lock:
            running = dict(self._running)
        self._told_at = {key: at for key, at in self._told_at.items() if key in running}
        grown: dict[Key, Growth] = {}
        for key, run in running.items():
            if now - self._told_at.get(key, 0.0) < min(HEAD_SECONDS, self._lease / 2):
                continue
            try:
                head = run.log.look()
            except LogError:
                continue  # other readers of the log report the error
            if head is not None:
                grown[key] = Growth(records=head.records, head=head.head)
                self._told_at[key] = now
        return grown


def bring_in(folder: str, environment: Mapping[str, str]) -> str:
    """Upload the logs in a worker's folder, and remove the folder. Return the problem, or an empty string.

    Waits for a run that is still ending there. Keeps work folders with unsaved changes (see `work_folder.keep`).
    """
    has_kept = False
    for batch in sorted(os.listdir(folder)):
        for name in sorted(os.listdir(os.path.join(folder, batch))) if batch != "inputs" else ():
            task_folder = TaskFolder(os.path.join(folder, batch, name))
            if problem := _handed_in(task_folder):
                return problem
            for number in task_folder.attempts():
                if is_kept(task_folder.attempt(number)):
                    has_kept = True
                elif problem := remove_work_folder(task_folder.attempt(number), environment):
                    return problem
    return "" if has_kept else str(remove_folder(folder) or "")


def _handed_in(folder: TaskFolder) -> str:
    """Upload the log of the attempt in a folder, once its run has ended. Return the problem, or an empty string."""
    if not _is_at_its_end(folder):
        return f"{folder.path}: a run is still at work there"
    try:
        with open(os.path.join(folder.path, NOTE), "rb") as file:
            note = json.load(file)
    except FileNotFoundError:
        return ""  # the worker died before the attempt began, or during `_clear`
    except (OSError, ValueError) as error:
        return f"{folder.path}: {error}"
    try:
        if os.path.lexists(folder.log(note["number"])):
            Results.at(note["out"]).put_log(folder.path, note["task"], note["number"])
    except (KeyError, TypeError) as error:
        return f"{folder.path}: invalid {NOTE}: {error!r}"
    except (OSError, ResultsError, UsageError) as error:
        return f"{folder.path} cannot be handed in: {error}"
    return ""


def _is_at_its_end(folder: TaskFolder) -> bool:
    """Return whether no run uses a folder. Wait up to GRACE_SECONDS, since the runs of a dead worker end too."""
    end = _now() + GRACE_SECONDS
    while is_held(folder.path):
        if _now() > end:
            return False
        time.sleep(EVERY_SECONDS)
    return True


def _read(queued: QueuedTask) -> Task:
    """Return the task.

    Raises UsageError if it is invalid, or if its batch has an invalid name, which names a folder.
    """
    if not re.fullmatch(f"[0-9a-f]{{{NAME_LENGTH}}}", queued.batch):
        raise UsageError(f"invalid name of a batch: {visible_line(queued.batch, 80)}")
    return task_of(json.dumps(dict(queued.task)).encode(), f"task {visible_line(queued.name, 80)}")


def _place(out: str) -> str:
    """Return a place of results in a form for comparison, which ends in `/`.

    Links in the path of a folder are resolved.
    """
    return (out if is_url(out) else os.path.realpath(out)).rstrip("/") + "/"


def _is_full(folder: str) -> bool:
    """Return whether the disk of a folder is almost full."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return True
    return room.f_bavail * room.f_frsize < LOW_BYTES or (room.f_files > 0 and room.f_favail < LOW_FILES)


def _outcome(
    attempt: TaskAttempt, end: TaskEnd, code: int | None, *, seconds: float = 0.0, problem: str = ""
) -> TaskOutcome:
    return TaskOutcome(
        id=attempt.task, place=0, task_end=end, code=code, seconds=seconds, tries=attempt.number, problem=problem
    )


def _now() -> float:
    """Return the time in seconds, by a monotonic clock that includes sleep of the machine."""
    return time.clock_gettime(CLOCK_WITH_SLEEP)
