"""Jobs: commands that run in the background of a session, each with its latest output.

INVARIANT: no job outlives its session. `Jobs.close` ends all of them, and the guard does so if the harness is killed.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol, assert_never

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.process.ended import CommandEnding, Ended

MOST_JOBS = 8
"""Maximum number of running jobs. Without it, a model that starts its server again and again would fill the machine."""
MOST_BYTES = 1 << 18
"""Maximum size of the latest output of a job, in bytes. Older output is dropped and counted."""
END_SECONDS = 10.0
"""Maximum seconds that `close` waits for the jobs, whose ends take at most five seconds each, at the same time."""


class Stopper(Enum):
    """The cause of a job's end."""

    ITSELF = "itself"
    MODEL = "model"
    PERSON = "person"
    SESSION = "session"


class Mask(Protocol):
    """Masks the secrets in a text that comes in pieces, also those that are split between two pieces."""

    def feed(self, piece: str) -> str:
        """Return the masked text that is certain, after the next piece."""
        ...

    def finish(self) -> str:
        """Return the rest of the masked text."""
        ...


class Unmasked:
    """A mask that masks nothing, for callers that mask the texts themselves."""

    def feed(self, piece: str) -> str:
        """Return the piece."""
        return piece

    def finish(self) -> str:
        """Return no text."""
        return ""


class JobOutput:
    """The latest output of a job, in bounded memory. May be used by several threads."""

    def __init__(self) -> None:
        self.total = 0
        """Number of bytes received."""
        self._latest = bytearray()
        self._read = 0
        """Number of bytes that `unread` returned or reported as dropped."""
        self._lock = allocate_lock()

    def add(self, block: bytes) -> None:
        """Add the next bytes."""
        with self._lock:
            self.total += len(block)
            self._latest += block
            if len(self._latest) > 2 * MOST_BYTES:
                del self._latest[:-MOST_BYTES]

    def latest(self) -> bytes:
        """Return the latest output, from the start of a line."""
        with self._lock:
            return _from_line_start(self._latest[-MOST_BYTES:], is_cut=self.total > MOST_BYTES)

    def unread(self, *, last: bool) -> tuple[bytes, int]:
        """Return the output since the last call, and the number of bytes before it that were dropped meanwhile.

        Only whole lines are returned, unless `last`, or if a line is very long.
        """
        with self._lock:
            new = self.total - self._read
            raw = _from_line_start(self._latest[-min(new, MOST_BYTES) :] if new else b"", is_cut=new > MOST_BYTES)
            dropped = new - len(raw)
            end = raw.rfind(b"\n") + 1
            if last or len(raw) - end > MOST_BYTES // 2:
                end = len(raw)
            self._read += dropped + end
            return bytes(raw[:end]), dropped


def _from_line_start(raw: bytes | bytearray, *, is_cut: bool) -> bytes:
    """Return output whose beginning is missing, from the start of a line. Half a secret could not be masked."""
    return bytes(raw[raw.find(b"\n") + 1 :] if is_cut else raw)


class _Moment:
    """A moment that several threads can wait for. (`threading.Event` would take 10 ms to import.)"""

    def __init__(self) -> None:
        self.has_come = False
        self._lock = allocate_lock()
        self._lock.acquire()

    def come(self) -> None:
        """Let the waiting threads go on. Only one thread at a time may call this."""
        if not self.has_come:
            self.has_come = True
            self._lock.release()

    def wait(self, seconds: float) -> None:
        """Wait for it, at most some seconds (-1: no limit)."""
        if not self.has_come and self._lock.acquire(timeout=seconds):
            self._lock.release()


class BackgroundJob:
    """One command in the background. Its fields change while it runs."""

    def __init__(
        self, name: str, command: str, origin: tuple[str, int], *, writes: bool, mask: Mask, serves: bool = False
    ) -> None:
        """Describe a job that has not started. `command` is its text in one line, `origin` its session and its call there.

        `writes` tells whether it may change files, and `serves` whether commands in the walls reach its ports.
        """
        self.name = name
        self.command = command
        self.session, self.call = origin
        self.writes = writes
        self.serves = serves
        self.output = JobOutput()
        self.end: Ended | None = None
        """The end of the command. `None` while it runs, and if it did not start."""
        self.error: Exception | None = None
        """The error because of which it did not start."""
        self.facts: Mapping[str, JsonValue] = {}
        """Further facts about the whole run, as fields of a record."""
        self.stopped_by = Stopper.ITSELF
        self.is_end_read = False
        """Whether the model has read that the job ended."""
        self._mask = mask
        self._began = time.monotonic()
        self._stops = 0
        self._started, self._over = _Moment(), _Moment()

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return not self._over.has_come

    @property
    def seconds(self) -> float:
        """Seconds that the job has run."""
        return time.monotonic() - self._began if self.end is None else self.end.seconds

    @property
    def state(self) -> str:
        """The name, and in words: running, or how it ended. Not yet safe to show."""
        seconds = f"{self.seconds:.1f} s"
        if self.is_running:
            return f"{self.name} is running, {seconds}"
        if self.end is None:
            return f"{self.name} did not start: {self.error}"
        match self.end.ending:
            case CommandEnding.EXITED:
                ending = f"exit code {self.end.status}"
            case CommandEnding.SIGNALLED:
                ending = f"killed by signal {self.end.status}"
            case CommandEnding.INTERRUPTED:
                ending = f"stopped by the {self.stopped_by.value}"
            case CommandEnding.TIMED_OUT | CommandEnding.UNKNOWN:
                ending = "its status is unknown"
            case _:
                assert_never(self.end.ending)
        return f"{self.name} ended: {ending}, {seconds}"

    def run(self, work: Callable[[BackgroundJob], Ended]) -> None:
        """Run the command by `work` on this thread, and note its end."""
        try:
            self.end = work(self)
        except Exception as error:  # noqa: BLE001 - reported by the thread that waits for the start
            self.error = error
        finally:
            self._over.come()
            self._started.come()

    def note_start(self) -> None:
        """Note that the command has started."""
        self._started.come()

    def wait(self, seconds: float, *, start_seconds: float = -1) -> None:
        """Wait for the end, at most `seconds` after the start. Wait for the start at most `start_seconds` (-1: no limit)."""
        self._started.wait(start_seconds)
        self._over.wait(seconds)

    def stop(self, by: Stopper) -> None:
        """Ask the command to end: SIGTERM, and SIGKILL after a grace period. Returns at once."""
        if self.is_running and not self._stops:
            self.stopped_by = by
            self._stops += 1

    def stops(self) -> int:
        """Return the number of requests to end."""
        return self._stops

    def read(self) -> str:
        """Return the new output with secrets masked, after a note on output that was dropped unread."""
        is_over = not self.is_running
        raw, dropped = self.output.unread(last=is_over)
        note = ""
        if dropped:
            self._mask.finish()
            note = f"[... {dropped:,} bytes omitted ...]\n"
        text = self._mask.feed(raw.decode("utf-8", "replace"))
        return f"{note}{text}{self._mask.finish() if is_over else ''}"


class Jobs:
    """The jobs of one session."""

    def __init__(
        self, mask: Callable[[], Mask] = Unmasked, call_now: Callable[[], tuple[str, int]] = lambda: ("", 0)
    ) -> None:
        """Start with no jobs. `mask` returns a new mask, `call_now` the session and the number of the running call."""
        self._mask = mask
        self.call_now = call_now
        self.on_end: Callable[[], None] = lambda: None
        """Called on another thread after the end of each job."""
        self._jobs: dict[str, BackgroundJob] = {}
        self._untold: list[BackgroundJob] = []
        self._lock = allocate_lock()

    @property
    def all(self) -> Sequence[BackgroundJob]:
        """All jobs that were not replaced by others, in the order of their starts."""
        return tuple(self._jobs.values())

    @property
    def running(self) -> Sequence[BackgroundJob]:
        """The running jobs, in the order of their starts."""
        return [job for job in self.all if job.is_running]

    @property
    def writing(self) -> Sequence[str]:
        """The names of the running jobs that may change files."""
        return [job.name for job in self.running if job.writes]

    def get(self, name: str) -> BackgroundJob:
        """Return the job with a name. Raises ToolError if there is none."""
        job = self._jobs.get(name)
        if job is None:
            names = ", ".join(self._jobs) or "none"
            raise ToolError(f"No command runs in the background as {name!r}. The names of this session: {names}.")
        return job

    def check(self, name: str) -> None:
        """Raise ToolError if no job with this name can start now."""
        if name in self._jobs and self._jobs[name].is_running:
            raise ToolError(
                f"A background command {name!r} runs already. Stop it with job first, or choose another name."
            )
        if len(self.running) >= MOST_JOBS:
            raise ToolError(f"{MOST_JOBS} background commands run already, which is the most. Stop one with job first.")

    def start(
        self,
        name: str,
        command: str,
        work: Callable[[BackgroundJob], Ended],
        *,
        writes: bool,
        serves: bool,
        call: int | None,
    ) -> BackgroundJob:
        """Start a job on a thread. `call` is the number of its call (`None`: the running one). Raises ToolError."""
        with self._lock:
            self.check(name)
            session, running_call = self.call_now()
            origin = session, running_call if call is None else call
            job = BackgroundJob(name, command, origin, writes=writes, serves=serves, mask=self._mask())
            self._jobs.pop(name, None)
            old_names = [each.name for each in self.all if not each.is_running]
            for old in old_names[: max(0, len(self._jobs) + 1 - MOST_JOBS)]:
                del self._jobs[old]
            self._jobs[name] = job
            self._untold.append(job)
            start_new_thread(self._follow, (job, work))
        return job

    def _follow(self, job: BackgroundJob, work: Callable[[BackgroundJob], Ended]) -> None:
        job.run(work)
        self.on_end()

    def forget(self, job: BackgroundJob) -> None:
        """Remove an ended job, of which the result of its call tells everything."""
        with self._lock:
            self._untold.remove(job)
            if self._jobs.get(job.name) is job:
                del self._jobs[job.name]

    def take_ended(self) -> Sequence[BackgroundJob]:
        """Return the jobs that have ended since the last call."""
        with self._lock:
            over = [job for job in self._untold if not job.is_running]
            self._untold = [job for job in self._untold if job not in over]
        return over

    def close(self) -> None:
        """End all jobs, and wait for their ends."""
        running = self.running
        for job in running:
            job.stop(Stopper.SESSION)
        deadline = time.monotonic() + END_SECONDS
        for job in running:
            seconds_left = max(0.0, deadline - time.monotonic())
            job.wait(seconds_left, start_seconds=seconds_left)
