"""A worker: takes tasks from a queue, runs each in a process like `harness batch`, and reports the result."""

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
from harness.safe_files import replace_file
from harness.session.exits import Exit
from harness.session.work_folders.work_folder import is_kept
from harness.session.work_folders.worktree import remove_work_folder
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.process.lifeline import Lifeline

    Key: TypeAlias = tuple[str, str]

LEASE_SECONDS = 60.0
"""A worker that is silent for so long is lost: others do its tasks."""
BEATS = 6
"""Number of heartbeats per lease."""
FENCE = 0.75
"""A worker that could not say so for this share of its lease ends what it runs, before others begin it again."""
HEAD_SECONDS = 30.0
"""Seconds between reports of a growing log's head."""
NOTE = "attempt.json"
"""File in a task's folder with its attempt. After the worker's death, the finder of it reports the log."""
_OF_THE_QUEUE = frozenset(("PGPASSWORD", "PGPASSFILE"))
"""Variables that open the queue, and which runs do not get."""
LOW_BYTES, LOW_FILES = 64 << 20, 1_000
"""With less room than that a disk is taken for full. What failed there says nothing about the task."""


class Running(Record):
    """An attempt that a process is at."""

    process: TaskProcess
    log: GrowingLog


class Worker:
    """Does tasks, on threads of the queue."""

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
        """Take the queue, the flags of every run, and the folder that this worker works in.

        `lease` is in seconds. What the operator should know goes to `tell`, a line each.
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
        """Held while a process is started or its end noted, and while processes are sent a signal."""
        self._running: dict[Key, Running] = {}
        self._cancelled: frozenset[Key] = frozenset()
        self._kill_at: dict[Key, float] = {}
        """Times at which processes are killed that were asked to end."""
        self._places: dict[str, Results] = {}
        self._told_at: dict[Key, float] = {}
        self._seen_at = _now()
        self._is_ended = False
        self.is_closing = False
        """Whether it takes nothing more."""
        self.is_lost = False
        """Whether others do, or may do, its tasks."""
        self.code = Exit.DONE
        """The exit code."""
        self.done = 0
        """Number of finished tasks."""

    @property
    def running(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    def do(self, queued: QueuedTask, attempt: TaskAttempt) -> Done:
        """Do one task, on a thread of the queue."""
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
        except (UsageError, AttemptTaken) as error:  # the task makes no sense, here and at any worker of this kind
            return self._finished(attempt, _outcome(attempt, TaskEnd.CANNOT_BEGIN, Exit.USAGE, problem=str(error)))
        except (OSError, ResultsError) as error:  # this machine, or the place of the results
            return self._broken(attempt, str(error))
        except Exception as error:  # noqa: BLE001 - the queue would take it for the task's end, and the task would be lost
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
        """Make the folder of the task. The run in it gets the number of the attempt: the folder of the one before is there.

        Raises UsageError, OSError and ResultsError.
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
        """Start the process of a task, and return its exit code. Raises OSError."""
        key = attempt.batch, attempt.task
        with self._lock:
            process = start_process(folder, self._arguments, self._environment, self._lifeline)
            self._running[key] = Running(process=process, log=GrowingLog(folder.log(attempt.number)))
            if self.is_lost:
                process.kill()
            elif self._is_ended or key in self._cancelled:
                self._ask_to_end(key)
        os.waitid(os.P_PID, process.process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            del self._running[key]
            self._kill_at.pop(key, None)
            return process.process.wait()

    def _was_ended(self, attempt: TaskAttempt, folder: TaskFolder, code: int, seconds: float) -> Done:
        """Report a process that a signal ended: its task was cancelled, the worker ends, or it was killed by hand."""
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
        """Take nothing more: something is wrong here. What the attempt left stays in its folder."""
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
        """Note the result, and publish it where it is the one that counts. Raises ResultsError."""
        result = {**outcome.as_json, **(facts or {})}
        if not self._queue.finish(attempt, "done", result):
            self._tell(f"{attempt.task}: attempt {attempt.number} came too late: another attempt counts")
            return Done.BACK  # if the task is still in this worker's hands
        if result.get("has_result"):
            self._publish(attempt)
        self.done += 1
        text = f"{attempt.task}: {outcome.end_words}, {outcome.seconds:.1f} s"
        self._tell(f"{text}: {outcome.problem_text}" if outcome.problem_text else text)
        return Done.FINISHED

    def _publish(self, attempt: TaskAttempt) -> None:
        """Make the attempt that counts the task's result, in place of one that was set aside. Raises ResultsError."""
        results = self._results(attempt)
        results.publish(attempt.task, attempt.number, instead_of=results.published(attempt.task))

    def _put_log(self, attempt: TaskAttempt, folder: TaskFolder) -> None:
        if os.path.lexists(folder.log(attempt.number)):
            self._results(attempt).put_log(folder.path, attempt.task, attempt.number)

    def _place_problem(self, out: str) -> str:
        """Return the reason why results may not go to a place from here, or an empty string."""
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
        for number in folder.attempts():
            remove_work_folder(folder.attempt(number), self._environment)
        remove_folder(folder.path)

    def close(self, reason: str, code: Exit = Exit.DONE) -> None:
        """Take nothing more. What runs goes on to its end."""
        if not self.is_closing:
            self.is_closing = True
            self.code = code
            self._tell(reason)

    def end(self, *, kill: bool = False) -> None:
        """Ask what runs to end: it goes back into the queue. With `kill` end it at once."""
        with self._lock:
            for key, run in self._running.items():
                run.process.kill() if kill else self._ask_to_end(key)
            self._is_ended = True

    def _ask_to_end(self, key: Key) -> None:
        """Ask a process to end, once. After GRACE_SECONDS it is killed. To be called with the lock held."""
        if key not in self._kill_at:
            self._kill_at[key] = _now() + GRACE_SECONDS
            self._running[key].process.ask_to_end()

    def lose(self, reason: str) -> None:
        """End what runs at once, and give nothing back: others have these tasks, or will."""
        with self._lock:
            if self.is_lost:
                return
            self.is_lost, self.code = True, Exit.INTERNAL
            for run in self._running.values():
                run.process.kill()
        self._tell(f"{reason}: what ran here was killed, and others do it; this worker ends")

    def check(self) -> None:
        """End what runs where the queue was not reached for too long; kill what was asked to end, and does not."""
        now = _now()
        if now - self._seen_at > self._lease * FENCE:
            self.lose(f"the queue was not told for {now - self._seen_at:.0f} s that this worker lives")
        with self._lock:
            for key, at in self._kill_at.items():
                if now > at:
                    self._running[key].process.kill()

    def beat(self) -> None:
        """Say that this worker lives, and how far its logs got. End what was cancelled."""
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
        """Return the progress of each log whose head was not reported for a while."""
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
                continue  # whoever reads the log says what is wrong with it
            if head is not None:
                grown[key] = Growth(records=head.records, head=head.head)
                self._told_at[key] = now
        return grown


def bring_in(folder: str, environment: Mapping[str, str]) -> str:
    """Report the logs that a worker left in its folder, and remove the folder. Return the problem, or an empty
    string.

    Waits for a run that is still ending there. Changes without a patch stay (see `work_folder.keep`).
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
    """Report the log of the attempt in a folder, once its run has ended. Return the problem, or an empty string."""
    if not _is_at_its_end(folder):
        return f"{folder.path}: a run is still at work there"
    try:
        with open(os.path.join(folder.path, NOTE), "rb") as file:
            note = json.load(file)
        if os.path.lexists(folder.log(note["number"])):
            Results.at(note["out"]).put_log(folder.path, note["task"], note["number"])
    except (OSError, ValueError, KeyError) as error:
        return f"{folder.path}: {error}" if folder.attempts() else ""
    except (ResultsError, UsageError) as error:
        return f"{folder.path} cannot be handed in: {error}"
    return ""


def _is_at_its_end(folder: TaskFolder) -> bool:
    """Say whether no run is at work in a folder: one whose worker died ends too, and may take GRACE_SECONDS for it."""
    end = _now() + GRACE_SECONDS
    while is_held(folder.path):
        if _now() > end:
            return False
        time.sleep(EVERY_SECONDS)
    return True


def _read(queued: QueuedTask) -> Task:
    """Return the task. Its name and that of its batch become names of folders. Raises UsageError for an invalid one."""
    if not re.fullmatch(f"[0-9a-f]{{{NAME_LENGTH}}}", queued.batch):
        raise UsageError(f"invalid name of a batch: {visible_line(queued.batch, 80)}")
    return task_of(json.dumps(dict(queued.task)).encode(), f"task {visible_line(queued.name, 80)}")


def _place(out: str) -> str:
    """Return a place of results so that two can be compared: it ends in `/`; a folder is absolute, links followed."""
    return (out if is_url(out) else os.path.realpath(out)).rstrip("/") + "/"


def _is_full(folder: str) -> bool:
    """Say whether the disk of a folder has hardly any room."""
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
    """Return seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
