"""The processes of a batch, some at once: starts, waits, starts again what was killed; of a finished task it keeps a row."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.tasks.lease import is_held
from harness.cli.tasks.outcome import How, Outcome, with_result
from harness.cli.tasks.progress import EVERY_SECONDS, Progress
from harness.cli.tasks.settings import of_task, told
from harness.cli.tasks.stopping import Stopping
from harness.cli.tasks.task import Task, tasks_in
from harness.cli.tasks.task_folder import TaskFolder, ends_in_head
from harness.cli.tasks.worker import Leash, Worker, last_words, start_worker
from harness.errors import UsageError
from harness.record import Record

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace

MAX_TRIES = 3
"""How many processes are started for a task whose processes are killed."""
GRACE_SECONDS = 30.0
"""How long processes that were asked to end have for it; then they are killed."""
ELSEWHERE_SECONDS = 0.5
"""How often it is asked whether a task that another process runs is free."""
_ENDED_BY_SIGNAL = frozenset((Exit.INTERRUPTED, Exit.TERMINATED, Exit.BROKEN_PIPE))


class _Wanted(Record):
    """A task that is to be started."""

    task: Task
    place: int
    tries: int = 0
    """How many processes were started for it."""
    seconds: float = 0.0
    """How long they ran."""


class Pool:
    """Does the tasks of a file, so many at once."""

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
        self._outcomes: list[Outcome] = []
        self._running: dict[int, tuple[Worker, _Wanted]] = {}
        """By the number of the process."""
        self._again: deque[_Wanted] = deque()
        self._elsewhere: deque[_Wanted] = deque()
        """Tasks whose lease another process holds."""
        self._ask_at = 0.0
        self._asked = 0
        """How often the processes were asked to end: first kindly, then not."""
        self._kill_at = 0.0

    def run(self, mine: Collection[str]) -> list[Outcome]:
        """Do those of the tasks that are `mine`, and return a row for each, in the order of the file."""
        fresh = (
            _Wanted(task=task, place=place)
            for place, task in enumerate(tasks_in(self._arguments.tasks))
            if task.id in mine
        )
        leash = Leash()
        try:
            while self._fill(fresh, leash) or self._running:
                self._progress.show(len(self._running), len(self._elsewhere))
                # A signal wakes it, and the end of a process does.
                self._stopping.wait(EVERY_SECONDS)
                self._end_if_asked()
                self._reap()
        finally:
            for worker, _ in self._running.values():
                worker.kill()
            leash.close()
        self._not_run(fresh)
        return sorted(self._outcomes, key=lambda one: one.place)

    def _fill(self, fresh: Iterator[_Wanted], leash: Leash) -> bool:
        """Start what there is room for; say whether anything is left that may be started later."""
        while not self._stopping.count and len(self._running) < self._jobs:
            wanted = self._again.popleft() if self._again else next(fresh, None) or self._freed()
            if wanted is None:
                return bool(self._elsewhere)
            self._begin(wanted, leash)
            self._progress.show(len(self._running), len(self._elsewhere))
        return not self._stopping.count

    def _freed(self) -> _Wanted | None:
        """Return a task that no other process runs any more."""
        if time.monotonic() < self._ask_at:
            return None
        for _ in range(len(self._elsewhere)):
            wanted = self._elsewhere.popleft()
            if not is_held(self._folder(wanted).path):
                return wanted
            self._elsewhere.append(wanted)
        self._ask_at = time.monotonic() + ELSEWHERE_SECONDS
        return None

    def _folder(self, wanted: _Wanted) -> TaskFolder:
        return TaskFolder(os.path.join(self._out, wanted.task.id))

    def _begin(self, wanted: _Wanted, leash: Leash) -> None:
        """Start a task, unless it is done, or another process is at it."""
        task, folder = wanted.task, self._folder(wanted)
        try:
            done = folder.finished(task, told(of_task(self._arguments, task), task))
            if done is not None and ends_in_head(done):
                how = How.RAN if wanted.tries else How.EARLIER
                self._end(wanted, how, done.code, result=done.result, work=done.work)
                return
            folder.make()
            if is_held(folder.path):
                self._elsewhere.append(wanted)
                return
            folder.claim(task)
            worker = start_worker(
                folder,
                self._arguments,
                self._environment,
                leash,
                name=task.id,
                place=wanted.place,
                tries=wanted.tries + 1,
            )
        except UsageError as error:
            self._end(wanted, How.NOT_RUN, Exit.USAGE, problem=str(error))
        except OSError as error:
            self._end(wanted, How.NOT_RUN, Exit.INTERNAL, problem=f"its process cannot be started: {error}")
        else:
            self._running[worker.process.pid] = worker, wanted

    def _reap(self) -> None:
        """Take notice of the processes that have ended."""
        for worker, wanted in list(self._running.values()):
            code = worker.process.poll()
            if code is not None:
                del self._running[worker.process.pid]
                self._ended(worker, wanted, code)

    def _ended(self, worker: Worker, before: _Wanted, code: int) -> None:
        ran = time.monotonic() - worker.began
        wanted = _Wanted(task=before.task, place=before.place, tries=worker.tries, seconds=before.seconds + ran)
        if code < 0 or code in _ENDED_BY_SIGNAL:
            self._killed(wanted, code)
        elif code == Exit.USAGE and is_held(worker.folder.path):
            self._elsewhere.append(before)
        else:
            result = worker.folder.read_result() or {}
            problem = "" if result.get("exit_code") == code else last_words(worker.folder)
            self._end(
                wanted,
                How.RAN,
                code,
                result=result if not problem else None,
                work=worker.folder.read_work(),
                problem=problem,
            )

    def _killed(self, wanted: _Wanted, code: int) -> None:
        """Have a task tried again whose process was killed, unless that was us, or it happened too often."""
        how = f"its process was ended ({_signal(code)})"
        if self._stopping.count:
            self._end(wanted, How.NOT_RUN, None, problem=f"{how} with the batch")
        elif wanted.tries < MAX_TRIES:
            self._progress.tell(f"{wanted.task.id}: {how}; it is tried again ({wanted.tries + 1} of {MAX_TRIES})")
            self._again.append(wanted)
        else:
            self._end(wanted, How.NOT_DONE, None, problem=f"{how}, {wanted.tries} times")

    def _end(
        self,
        wanted: _Wanted,
        how: How,
        code: int | None,
        *,
        result: Mapping[str, JsonValue] | None = None,
        work: Mapping[str, JsonValue] | None = None,
        problem: str = "",
    ) -> None:
        outcome = Outcome(
            id=wanted.task.id,
            place=wanted.place,
            how=how,
            code=code,
            seconds=wanted.seconds,
            tries=wanted.tries,
            problem=problem,
        )
        if result is not None:
            outcome = with_result(outcome, result, work or {})
        self._outcomes.append(outcome)
        said = how.value if code is None else f"exit {int(code)}{' (done earlier)' if how is How.EARLIER else ''}"
        self._progress.ended(outcome.id, said, outcome.seconds, failed=code != Exit.DONE)

    def _end_if_asked(self) -> None:
        """Pass on that the batch is to end: once as SIGTERM, then as SIGKILL."""
        asked, now = self._stopping.count, time.monotonic()
        if not asked:
            return
        if not self._asked:
            self._progress.tell(f"ending: {len(self._running)} tasks are asked to end; once more kills them")
            self._kill_at = now + GRACE_SECONDS
            for worker, _ in self._running.values():
                worker.ask_to_end()
        self._asked = asked
        if asked > 1 or now > self._kill_at:
            for worker, _ in self._running.values():
                worker.kill()

    def _not_run(self, fresh: Iterator[_Wanted]) -> None:
        """Note what was not come to: only a batch that was asked to end leaves any."""
        for wanted in (*self._again, *self._elsewhere):
            self._end(wanted, How.NOT_RUN, None, problem="the batch was ended before")
        for wanted in fresh:
            folder = self._folder(wanted)
            try:
                done = folder.finished(wanted.task, told(of_task(self._arguments, wanted.task), wanted.task))
            except UsageError:
                done = None
            if done is not None and ends_in_head(done):
                self._end(wanted, How.EARLIER, done.code, result=done.result, work=done.work)
            else:
                self._end(wanted, How.NOT_RUN, None, problem="the batch was ended before")


def _signal(code: int) -> str:
    """Return what ended a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
