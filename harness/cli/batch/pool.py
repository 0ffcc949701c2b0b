"""The processes of a batch, some at once: starts, waits, starts again what was killed; of a finished task it keeps a row."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.cli.batch.git import Lifeline
from harness.cli.batch.outcome import TaskEnd, TaskOutcome, with_result
from harness.cli.batch.task import Task, of_task, settings_of
from harness.cli.batch.task_folder import Finished, TaskFolder, finished, holder, is_held
from harness.cli.batch.task_run import HELD
from harness.cli.batch.worker import Worker, last_words, start_worker
from harness.cli.exits import Exit
from harness.cli.signals import Stopping
from harness.cli.text_lines import counted
from harness.errors import ModelFault, UsageError
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import TextIO


EVERY_SECONDS = 0.2
_LEAST_WIDTH, _BAR = 40, 20


class Progress:
    """Tells how many tasks of how many are done."""

    def __init__(self, stream: TextIO, total: int, *, quiet: bool, width: int) -> None:
        """Write to `stream` for `total` tasks; nothing with `quiet`. `width` is that of the terminal, 0 where it is none."""
        self._stream = stream
        self._total = total
        self._quiet = quiet
        self._width = max(width, _LEAST_WIDTH) if width else 0
        self._began = time.monotonic()
        self._next = 0.0
        self._shown = False
        self.done = 0
        self.failed = 0
        """Of those that are done: how many came to another exit code than 0."""

    def tell(self, line: str) -> None:
        """Write a line that stays, also with `quiet`: a problem."""
        self._clear()
        self._write(f"harness: {visible_line(line, 2_000)}\n")

    def ended(self, name: str, how: str, seconds: float, *, failed: bool, why: str = "") -> None:
        """Count a task; where there is no terminal, say how it ended, and why."""
        self.done += 1
        self.failed += failed
        if not self._quiet and not self._width:
            told = f"{name}: {how}, {seconds:.1f} s ({self.done} of {self._total})"
            self.tell(f"{told}: {why}" if why else told)

    def show(self, running: int, elsewhere: int = 0) -> None:
        """Write the line over itself, where there is a terminal and enough time has passed since the last."""
        now = time.monotonic()
        if self._quiet or not self._width or now < self._next:
            return
        self._next = now + EVERY_SECONDS
        full = _BAR * self.done // self._total if self._total else _BAR
        seconds = int(now - self._began)
        parts = [
            f"[{'#' * full}{'.' * (_BAR - full)}] {self.done}/{self._total} done",
            f"{running} running",
            *([f"{elsewhere} elsewhere"] if elsewhere else []),
            *([f"{self.failed} not with exit code 0"] if self.failed else []),
            f"{seconds // 60}:{seconds % 60:02}",
        ]
        # One column less: a full line would move the cursor to the next.
        line = ", ".join(parts)[: self._width - 1]
        self._shown = True
        self._write(f"\r{line.ljust(self._width - 1)}")

    def finish(self) -> None:
        """Take the line away."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            self._write(f"\r{' ' * (self._width - 1)}\r")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._quiet = True  # nobody reads; the exit code and the summary say it


MAX_TRIES = 3
"""How many processes are started for a task whose processes are killed."""
GRACE_SECONDS = 30.0
"""How long processes that were asked to end have for it; then they are killed."""
ELSEWHERE_SECONDS = 0.5
"""How often it is asked whether a task that another process runs is free."""
TELL_SECONDS = 60.0
"""How often it is said which tasks other processes run."""
_ENDED_BY_SIGNAL = frozenset((Exit.INTERRUPTED, Exit.TERMINATED))


class _Queued:
    """A task that is not done yet."""

    def __init__(self, task: Task, place: int, folder: TaskFolder) -> None:
        self.task = task
        self.place = place
        """Which task of the batch, from 0."""
        self.folder = folder
        self.tries = 0
        """How many processes were started for it, and came to run it."""
        self.seconds = 0.0
        """How long they ran."""


class Pool:
    """Does tasks, so many at once."""

    def __init__(
        self,
        arguments: Namespace,
        environment: Mapping[str, str],
        out: str,
        progress: Progress,
        stopping: Stopping,
        *,
        jobs: int,
    ) -> None:
        self._arguments = arguments
        self._environment = environment
        self._out = out
        self._progress = progress
        self._stopping = stopping
        self._jobs = jobs
        self._outcomes: list[TaskOutcome] = []
        self._running: dict[int, tuple[Worker, _Queued]] = {}
        """By the number of the process."""
        self._queue: deque[_Queued] = deque()
        self._elsewhere: deque[_Queued] = deque()
        """Tasks whose lease another process holds."""
        self._ask_at = 0.0
        self._tell_at = 0.0
        self._asked = 0
        """How often the processes were asked to end: first kindly, then not."""
        self._kill_at = 0.0
        self._given_up = False

    def run(self, tasks: Sequence[Task]) -> list[TaskOutcome]:
        """Do the tasks, and return a row for each, in their order."""
        for place, task in enumerate(tasks):
            self._queue.append(_Queued(task, place, TaskFolder(os.path.join(self._out, task.id))))
        lifeline = Lifeline()
        try:
            while self._fill(lifeline) or self._running:
                self._progress.show(len(self._running), len(self._elsewhere))
                # A signal wakes it, and the end of a process does.
                self._stopping.wait(EVERY_SECONDS)
                self._end_if_asked()
                self._reap()
        finally:
            for worker, _ in self._running.values():
                worker.kill()
            lifeline.close()
        self._not_run()
        return sorted(self._outcomes, key=lambda one: one.place)

    def _fill(self, lifeline: Lifeline) -> bool:
        """Start what there is room for; say whether anything is left that may be started later."""
        while not self._is_ending() and len(self._running) < self._jobs:
            queued = self._queue.popleft() if self._queue else self._freed()
            if queued is None:
                return bool(self._elsewhere)
            self._begin(queued, lifeline)
            self._progress.show(len(self._running), len(self._elsewhere))
        return not self._is_ending()

    def _is_ending(self) -> bool:
        return self._stopping.count > 0 or self._given_up

    def _freed(self) -> _Queued | None:
        """Return a task that no other process runs any more."""
        now = time.monotonic()
        if now < self._ask_at:
            return None
        for _ in range(len(self._elsewhere)):
            queued = self._elsewhere.popleft()
            if not is_held(queued.folder.path):
                return queued
            self._elsewhere.append(queued)
        self._ask_at = now + ELSEWHERE_SECONDS
        if self._elsewhere and not self._running and now >= self._tell_at:
            self._tell_at = now + TELL_SECONDS
            first = self._elsewhere[0]
            told = f"waiting for {counted(len(self._elsewhere), 'task')} that other processes run"
            self._progress.tell(f"{told}: {first.task.id} is run by process {holder(first.folder.path)}")
        return None

    def _done(self, queued: _Queued) -> Finished | None:
        """Return how a task ended that is done, with nothing left to be looked at or cleaned up. Raises UsageError."""
        flags = of_task(self._arguments, queued.task)
        done = finished(queued.folder, queued.task, settings_of(flags, queued.task))
        return done if done is not None and done.is_clean and not (done.damage or done.log_damage) else None

    def _begin(self, queued: _Queued, lifeline: Lifeline) -> None:
        """Start a task, unless it is done, or another process is at it."""
        try:
            done = self._done(queued)
            if done is not None:
                how = TaskEnd.RAN if queued.tries else TaskEnd.EARLIER
                self._end(queued, how, done.code, result=done.result, work=done.work)
                return
            queued.folder.make()
            if is_held(queued.folder.path):
                self._elsewhere.append(queued)
                return
            queued.folder.claim(queued.task)
            worker = start_worker(queued.folder, self._arguments, self._environment, lifeline)
        except UsageError as error:
            self._end(queued, TaskEnd.CANNOT_BEGIN, Exit.USAGE, problem=str(error))
        except OSError as error:
            problem = f"its process cannot be started: {error}"
            self._end(queued, TaskEnd.CANNOT_BEGIN, Exit.INTERNAL, problem=problem)
        else:
            queued.tries += 1
            self._running[worker.process.pid] = worker, queued

    def _reap(self) -> None:
        """Take notice of the processes that have ended."""
        for worker, queued in list(self._running.values()):
            code = worker.process.poll()
            if code is not None:
                del self._running[worker.process.pid]
                self._ended(worker, queued, code)

    def _ended(self, worker: Worker, queued: _Queued, code: int) -> None:
        queued.seconds += time.monotonic() - worker.began
        if code < 0 or code in _ENDED_BY_SIGNAL:
            self._killed(queued, code)
        elif code == HELD:
            queued.tries -= 1
            self._elsewhere.append(queued)
        else:
            result = queued.folder.read_result() or {}
            problem = "" if result.get("exit_code") == code else last_words(queued.folder)
            self._end(
                queued,
                TaskEnd.CANNOT_BEGIN if code == Exit.USAGE else TaskEnd.RAN,
                code,
                result=result if not problem else None,
                work=queued.folder.read_work(),
                problem=problem,
            )
            if code == Exit.MODEL and not problem and not queued.task.model and _is_key_refused(result):
                self._give_up(queued)

    def _give_up(self, queued: _Queued) -> None:
        """Start nothing more: each further task would be refused with the same key. What runs goes on to its end."""
        if not self._given_up:
            left = counted(len(self._queue) + len(self._elsewhere), "task")
            self._progress.tell(f"nothing more is started, since the key of {queued.task.id} was refused; {left} left")
        self._given_up = True

    def _killed(self, queued: _Queued, code: int) -> None:
        """Have a task tried again whose process was killed, unless that was us, or it happened too often."""
        how = f"its process was ended ({_signal(code)})"
        if self._stopping.count:
            self._end(queued, TaskEnd.NOT_RUN, None, problem=f"{how} with the batch")
        elif queued.tries < MAX_TRIES:
            self._progress.tell(f"{queued.task.id}: {how}; it is tried again ({queued.tries + 1} of {MAX_TRIES})")
            self._queue.appendleft(queued)
        else:
            self._end(queued, TaskEnd.NOT_DONE, None, problem=f"{how}, {queued.tries} times")

    def _end(
        self,
        queued: _Queued,
        how: TaskEnd,
        code: int | None,
        *,
        result: Mapping[str, JsonValue] | None = None,
        work: Mapping[str, JsonValue] | None = None,
        problem: str = "",
    ) -> None:
        outcome = TaskOutcome(
            id=queued.task.id,
            place=queued.place,
            how=how,
            code=code,
            seconds=queued.seconds,
            tries=queued.tries,
            problem=problem,
        )
        if result is not None:
            outcome = with_result(outcome, result, work or {})
        self._outcomes.append(outcome)
        if how is not TaskEnd.NOT_RUN:  # thousands, where a batch is ended early
            said = (
                how.value if code is None else f"exit {int(code)}{' (done earlier)' if how is TaskEnd.EARLIER else ''}"
            )
            self._progress.ended(outcome.id, said, outcome.seconds, failed=code != Exit.DONE, why=outcome.why)

    def _end_if_asked(self) -> None:
        """Pass on that the batch is to end: once as SIGTERM, then as SIGKILL."""
        asked, now = self._stopping.count, time.monotonic()
        if not asked:
            return
        if not self._asked:
            told = f"{counted(len(self._running), 'task')} asked to end"
            self._progress.tell(f"ending: {told}; once more kills what is still run")
            self._kill_at = now + GRACE_SECONDS
            for worker, _ in self._running.values():
                worker.ask_to_end()
        self._asked = asked
        if asked > 1 or now > self._kill_at:
            for worker, _ in self._running.values():
                worker.kill()

    def _not_run(self) -> None:
        """Note what was not come to: only a batch that was asked to end, or gave up, leaves any."""
        for queued in (*self._queue, *self._elsewhere):
            try:
                done = self._done(queued)
            except UsageError:
                done = None
            if done is not None:
                self._end(queued, TaskEnd.EARLIER, done.code, result=done.result, work=done.work)
            else:
                self._end(queued, TaskEnd.NOT_RUN, None, problem="the batch was ended before")


def _is_key_refused(result: Mapping[str, JsonValue]) -> bool:
    """Say whether what ended a run was that the provider did not take its key."""
    errors = result.get("errors")
    last = errors[-1] if isinstance(errors, list) and errors else None
    return isinstance(last, dict) and last.get("fault") == ModelFault.AUTHENTICATION.value


def _signal(code: int) -> str:
    """Return what ended a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
