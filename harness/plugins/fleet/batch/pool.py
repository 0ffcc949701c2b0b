"""The processes of a batch. They run in parallel, and a task whose process was killed is tried again."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from subprocess import DEVNULL, Popen
from threading import Lock

from harness.actions import JsonValue
from harness.errors import ModelFault, UsageError
from harness.plugins.fleet.batch.outcome import Progress, TaskEnd, TaskOutcome, with_result
from harness.plugins.fleet.batch.task import Task, of_task, settings_of
from harness.plugins.fleet.batch.task_folder import Finished, HeldElsewhere, TaskFolder, finished_task, holder, is_held
from harness.plugins.fleet.batch.task_run import HELD
from harness.process.lifeline import VARIABLE, Lifeline
from harness.session.exits import Exit
from harness.session.signals import Stopping
from harness.system import ended_child
from harness.text.amounts import count_of

MAX_TRIES = 3
"""Maximum number of processes for one task, if they are killed."""
GRACE_SECONDS = 30.0
"""Seconds that a process gets to end after a request. Then it is killed."""
EVERY_SECONDS = 0.2
"""Seconds between two checks for finished tasks."""
ELSEWHERE_SECONDS = 0.5
"""Seconds between two checks whether other processes have released their tasks."""
TELL_SECONDS = 60.0
"""Seconds between two messages about tasks that other processes run."""
ENDED_BY_SIGNAL = frozenset((Exit.INTERRUPTED, Exit.TERMINATED))


class _Queued:
    """A task that is not done yet."""

    def __init__(self, task: Task, place: int, folder: TaskFolder) -> None:
        self.task = task
        self.place = place
        """Index of the task in the batch, from 0."""
        self.folder = folder
        self.tries = 0
        """Number of processes of this task that have ended."""
        self.seconds = 0.0
        """Total time of these processes, in seconds."""

    def outcome(
        self,
        end: TaskEnd,
        code: int | None,
        *,
        result: Mapping[str, JsonValue] | None = None,
        work: Mapping[str, JsonValue] | None = None,
        problem: str = "",
    ) -> TaskOutcome:
        """Return the outcome of the task."""
        came_to = TaskOutcome(
            id=self.task.id,
            place=self.place,
            task_end=end,
            code=code,
            seconds=self.seconds,
            tries=self.tries,
            problem=problem,
        )
        return came_to if result is None else with_result(came_to, result, work or {})


class Pool:
    """Runs tasks in parallel. Each thread takes a task, starts its process and waits for its end."""

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
        self._elsewhere: list[_Queued] = []
        """Tasks whose lease another process holds."""
        self._lock = Lock()
        """Lock for `_processes`: held during the start of a process, the removal of an ended one, and signals to all."""
        self._processes: set[TaskProcess] = set()
        self._untaken = 0
        """Number of tasks that no thread has taken yet."""
        self._given_up = False
        self._ask_at = self._tell_at = self._kill_at = 0.0

    def run(self, tasks: Sequence[Task]) -> list[TaskOutcome]:
        """Run the tasks. Return their outcomes in the order of the tasks."""
        lifeline = Lifeline()
        threads = ThreadPoolExecutor(self._jobs)
        submitted: dict[Future[TaskOutcome | None], _Queued] = {}

        def hand_out(queued: _Queued) -> None:
            with self._lock:
                self._untaken += 1
            submitted[threads.submit(self._do, queued, lifeline)] = queued

        try:
            for place, task in enumerate(tasks):
                hand_out(_Queued(task, place, TaskFolder(os.path.join(self._out, task.id))))
            while submitted or (self._elsewhere and not self._is_ending()):
                self._progress.now(len(self._processes), len(self._elsewhere))
                if not submitted:
                    time.sleep(EVERY_SECONDS)
                for future in wait(submitted, EVERY_SECONDS, FIRST_COMPLETED).done:
                    self._take(submitted.pop(future), future.result())
                self._end_if_asked()
                for queued in self._freed(idle=not submitted):
                    hand_out(queued)
        finally:
            with self._lock:
                self._given_up = True
                for running in self._processes:
                    running.kill()
            threads.shutdown(cancel_futures=True)
            lifeline.close()
        for queued in self._elsewhere:
            self._take(queued, self._not_run(queued))
        return sorted(self._outcomes, key=lambda outcome: outcome.place)

    def _do(self, queued: _Queued, lifeline: Lifeline) -> TaskOutcome | None:
        """Run one task to its end. Return its outcome, or `None` if another process runs it."""
        with self._lock:
            self._untaken -= 1
        try:
            while (outcome := self._tried(queued, lifeline)) is None:
                pass
        except HeldElsewhere:
            return None
        except UsageError as error:
            return queued.outcome(TaskEnd.CANNOT_BEGIN, Exit.USAGE, problem=str(error))
        except OSError as error:
            problem = f"its process cannot be started: {error}"
            return queued.outcome(TaskEnd.CANNOT_BEGIN, Exit.INTERNAL, problem=problem)
        return outcome

    def _tried(self, queued: _Queued, lifeline: Lifeline) -> TaskOutcome | None:
        """Run a task in one process, unless it is done. Return its outcome.

        Return `None` if the process was killed and the task should be tried again. Raises UsageError (also
        HeldElsewhere) and OSError if the process cannot be started.
        """
        done = self._done(queued)
        if done is not None:
            end = TaskEnd.RAN if queued.tries else TaskEnd.EARLIER
            return queued.outcome(end, done.code, result=done.result, work=done.work)
        running = self._started(queued, lifeline)
        if running is None:
            return self._not_run(queued)
        code = self._waited_for(running)
        if code == HELD:
            raise HeldElsewhere(queued.folder.path)
        queued.tries += 1
        queued.seconds += time.monotonic() - running.began
        if code >= 0 and code not in ENDED_BY_SIGNAL:
            return self._outcome_of_exit(queued, code)
        how_it_ended = f"its process was ended ({_signal(code)})"
        if self._stopping.count:
            return queued.outcome(TaskEnd.NOT_RUN, None, problem=f"{how_it_ended} with the batch")
        if queued.tries == MAX_TRIES:
            return queued.outcome(TaskEnd.NOT_DONE, None, problem=f"{how_it_ended}, {queued.tries} times")
        again = f"it is tried again ({queued.tries + 1} of {MAX_TRIES})"
        self._progress.tell(f"{queued.task.id}: {how_it_ended}; {again}")
        return None

    def _done(self, queued: _Queued) -> Finished | None:
        """Return the stored end of a task. `None` if it is unfinished, damaged or not cleaned up. Raises UsageError."""
        flags = of_task(self._arguments, queued.task)
        done = finished_task(queued.folder, queued.task, settings_of(flags, queued.task))
        return done if done is not None and done.is_clean and not (done.damage or done.log_damage) else None

    def _started(self, queued: _Queued, lifeline: Lifeline) -> TaskProcess | None:
        """Start the process of a task. Return `None` if the batch is ending.

        Raises UsageError (also HeldElsewhere) and OSError.
        """
        with self._lock:
            if self._is_ending():
                return None
            queued.folder.make()
            if is_held(queued.folder.path):
                raise HeldElsewhere(queued.folder.path)
            queued.folder.claim(queued.task)
            running = start_process(queued.folder, self._arguments, self._environment, lifeline)
            self._processes.add(running)
            return running

    def _waited_for(self, running: TaskProcess) -> int:
        """Wait for the end of a process, and return its exit code.

        The process is reaped under the lock, so that a signal never goes to another process with a reused ID.
        """
        ended_child(running.process.pid, wait=True)
        with self._lock:
            self._processes.remove(running)
            return running.process.wait()

    def _outcome_of_exit(self, queued: _Queued, code: int) -> TaskOutcome:
        """Return the outcome of a task whose process exited without a signal."""
        result = queued.folder.read_result() or {}
        problem = "" if result.get("exit_code") == code else last_words(queued.folder)
        if code == Exit.MODEL and not problem and not queued.task.model and is_key_refused(result):
            self._give_up(queued)
        return queued.outcome(
            TaskEnd.CANNOT_BEGIN if code == Exit.USAGE else TaskEnd.RAN,
            code,
            result=result if not problem else None,
            work=queued.folder.read_work(),
            problem=problem,
        )

    def _give_up(self, queued: _Queued) -> None:
        """Start no more tasks, since the provider refuses their API key. Running tasks continue to their end."""
        with self._lock:
            before, self._given_up = self._given_up, True
            remaining = count_of(self._untaken + len(self._elsewhere), "task")
        if not before:
            self._progress.tell(
                f"nothing more is started, since the key of {queued.task.id} was refused; {remaining} left"
            )

    def _not_run(self, queued: _Queued) -> TaskOutcome:
        """Return the outcome of a task that was not run because the batch ends. It may have been done earlier."""
        try:
            done = self._done(queued)
        except UsageError:
            done = None
        if done is not None:
            return queued.outcome(TaskEnd.EARLIER, done.code, result=done.result, work=done.work)
        return queued.outcome(TaskEnd.NOT_RUN, None, problem="the batch was ended before")

    def _take(self, queued: _Queued, outcome: TaskOutcome | None) -> None:
        """Store and report the outcome of a task. `None` means that another process runs it."""
        if outcome is None:
            self._elsewhere.append(queued)
            return
        self._outcomes.append(outcome)
        if outcome.task_end is not TaskEnd.NOT_RUN:  # there may be thousands of these when a batch ends early
            earlier = " (done earlier)" if outcome.task_end is TaskEnd.EARLIER else ""
            end_text = f"{outcome.end_words}{earlier}"
            self._progress.count_finished(
                outcome.id, end_text, outcome.seconds, failed=outcome.code != Exit.DONE, reason=outcome.problem_text
            )

    def _freed(self, *, idle: bool) -> list[_Queued]:
        """Return the tasks that other processes have released.

        If the pool is idle, report the tasks that it waits for.
        """
        now = time.monotonic()
        if not self._elsewhere or now < self._ask_at or self._is_ending():
            return []
        self._ask_at = now + ELSEWHERE_SECONDS
        locked = [is_held(queued.folder.path) for queued in self._elsewhere]
        freed = [queued for queued, is_at_it in zip(self._elsewhere, locked, strict=True) if not is_at_it]
        self._elsewhere = [queued for queued, is_at_it in zip(self._elsewhere, locked, strict=True) if is_at_it]
        if self._elsewhere and not freed and idle and now >= self._tell_at:
            self._tell_at = now + TELL_SECONDS
            first = self._elsewhere[0]
            text = f"waiting for {count_of(len(self._elsewhere), 'task')} that other processes run"
            self._progress.tell(f"{text}: {first.task.id} is run by process {holder(first.folder.path)}")
        return freed

    def _is_ending(self) -> bool:
        return self._stopping.count > 0 or self._given_up

    def _end_if_asked(self) -> None:
        """Pass a request to end the batch on to the processes: first as SIGTERM, then as SIGKILL."""
        stop_count, now = self._stopping.count, time.monotonic()
        if not stop_count:
            return
        with self._lock:
            if not self._kill_at:
                self._kill_at = now + GRACE_SECONDS
                text = f"{count_of(len(self._processes), 'task')} asked to end"
                self._progress.tell(f"ending: {text}; once more kills what is still run")
                for running in self._processes:
                    running.ask_to_end()
            if stop_count > 1 or now > self._kill_at:
                for running in self._processes:
                    running.kill()


def is_key_refused(result: Mapping[str, JsonValue]) -> bool:
    """Return whether a run ended because the provider refused its API key."""
    errors = result.get("errors")
    last = errors[-1] if isinstance(errors, list) and errors else None
    return isinstance(last, dict) and last.get("fault") == ModelFault.AUTHENTICATION.value


def _signal(code: int) -> str:
    """Return the name of the signal that ended a process, or its exit code, as text."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


MAX_TOLD_BYTES = 4_000
"""Size of the end of stderr that is searched for the last message, in bytes."""
_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from harness.__main__ import program; program()"
# Not passed to tasks, so that 40 tasks do not write 40 summaries of one step: the batch writes one summary for all.
_NOT_PASSED = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
_VALUES = (
    "policy_sha256", "provider", "model", "base_url", "api", "calls", "effort", "system", "cwd", "tools",
    "max_turns", "max_seconds", "max_tokens", "max_cost",
)  # fmt: skip
_SWITCHES = ("no_instructions", "dry_run", "plan", "allow_refusals", "quiet")


class TaskProcess:
    """A process that runs a task."""

    def __init__(self, process: Popen[bytes]) -> None:
        self.process = process
        self.began = time.monotonic()

    def ask_to_end(self) -> None:
        """Send SIGTERM, so that the run ends with a complete log."""
        try:
            os.kill(self.process.pid, signal.SIGTERM)
        except OSError:
            pass  # it has ended

    def kill(self) -> None:
        """Send SIGKILL to the process group, so that a child such as git ends too."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass  # it has ended


def start_process(
    folder: TaskFolder, arguments: Namespace, environment: Mapping[str, str], lifeline: Lifeline
) -> TaskProcess:
    """Start `harness run --task ... --out ...` for the task in a folder. Raises OSError.

    Its stderr is appended to a file in the folder, and its stdout is discarded. It gets its own process group, so that
    Ctrl-C at the terminal reaches only the batch, which passes it on.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    errors = os.open(folder.stderr, flags, 0o600)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    try:
        process = Popen(
            # -I: modules of the current folder or of PYTHONPATH cannot replace ours.
            [sys.executable, "-I", "-c", _CODE, package, *_words(folder, arguments)],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=errors,
            env={
                **{key: value for key, value in environment.items() if key not in _NOT_PASSED},
                VARIABLE: str(lifeline.reading),
            },
            pass_fds=(lifeline.reading,),
            process_group=0,
        )
    finally:
        os.close(errors)
    return TaskProcess(process)


def last_words(folder: TaskFolder) -> str:
    """Return the last message that the process of a task wrote to stderr, as one line. Empty if it wrote none.

    This is the text from the last line with `harness: `, or else the last line.
    """
    try:
        with open(folder.stderr, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TOLD_BYTES))
            lines = file.read(MAX_TOLD_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    stripped = [line.strip() for line in lines if line.strip()]
    first = next((n for n in reversed(range(len(stripped))) if stripped[n].startswith("harness: ")), len(stripped) - 1)
    return " ".join(stripped[max(first, 0) :])


def _words(folder: TaskFolder, arguments: Namespace) -> list[str]:
    """Return the command line. A value follows `=`, so that a value with a leading dash is not parsed as a flag."""
    words = ["run", f"--task={folder.task}", f"--out={folder.path}"]
    for name in _VALUES:
        value = getattr(arguments, name, None)
        if value is not None:
            words.append(f"--{name.replace('_', '-')}={value}")
    words += [f"--policy={name}" for name in arguments.policy or ()]
    words += [f"--add-dir={folder}" for folder in arguments.add_dir]
    words += [f"--set={pair}" for pair in arguments.set]
    return [*words, *(f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(arguments, name, False))]
