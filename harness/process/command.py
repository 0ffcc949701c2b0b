"""Run one bash and everything that it starts, and guarantee their end.

INVARIANT: when `run_group` returns or raises, no process that it started remains, except those that this process may
not kill.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from harness.interrupt import stops_here
from harness.process.capture import Live
from harness.process.ended import CommandEnding, Ended
from harness.process.group import GroupSurvivors, survivors_of
from harness.process.guard import MARK_VARIABLE
from harness.process.hardening import adopt_orphans
from harness.process.procfs import Process
from harness.process.start import Latch, Launch, StartedProgram, start
from harness.process.survivors import Survivors, send
from harness.record import Record, replace
from harness.system import Bell, exit_descriptor, poll_for

if TYPE_CHECKING:
    from harness.process.lent_terminal import LentTerminal

STEP_SECONDS = 0.01
REAP_SECONDS = 0.5
"""Seconds between two rounds of reaping ended processes while the program runs. Process IDs are scarce."""
LOOK_UP_SECONDS = 0.1
"""Seconds between checks by the waiting thread, since a signal right before a wait does not wake it."""
BLOCK_BYTES = 1 << 18
"""Size of the pipe and of one read, in bytes. Twice as fast as the usual 64 KiB, and small enough for the cache."""


class TakesOutput(Protocol):
    """A receiver of a program's output; see Capture."""

    def add(self, block: bytes) -> None:
        """Add the next bytes."""
        ...


class Pace(Record):
    """Time limits for the steps of a command's end."""

    grace_seconds: float = 2.0
    """Seconds between SIGTERM and SIGKILL for the program."""
    gone_seconds: float = 1.0
    """Seconds to wait for the program after SIGKILL."""
    settle_seconds: float = 0.15
    """Seconds that the remaining processes get to exit by themselves after the program has exited."""
    term_seconds: float = 0.25
    """Seconds that the remaining processes get after SIGTERM, in which git removes its lock files."""
    kill_seconds: float = 2.0
    """Seconds of repeated SIGKILL. A process inside an uninterruptible system call takes longer."""


STANDARD_PACE = Pace()


class _Seen(Enum):
    EXIT = "exit"
    INTERRUPT = "interrupt"
    DEADLINE = "deadline"


def run_group(
    launch: Launch,
    *,
    seconds: float,
    output: TakesOutput,
    errors: TakesOutput | None = None,
    live: Live | LentTerminal | None = None,
    stops: Callable[[], int] | None = None,
    pace: Pace = STANDARD_PACE,
    on_start: Callable[[], None] | None = None,
) -> Ended:
    """Run a bash in a new session and return its end.

    Its stdout goes to `output`, its stderr to `errors` (`None`: to `output` too). The bash waits (Latch) until its
    limits and its mark are set, and then runs its command; other programs would not wait.

    After `seconds` the group gets SIGTERM, and SIGKILL after a grace period. KeyboardInterrupt does the same, a second
    one without the grace period. It is not raised, but the ending reports it. `stops` returns the number of stop
    requests by the user, for a caller in which KeyboardInterrupt is raised only once or on another thread (default: the
    requests since this thread opened its window, see Interrupt). `live`
    receives the output on this thread, ten times a second. If the user's terminal is lent to the program, `live` is
    that terminal. `on_start` is called on another thread once the command has begun.

    Raises NotConfinedError if the program could not be confined, OSError or ValueError if it cannot be started,
    ChildProcessError if SIGCHLD is ignored: the kernel would then reuse the program's number as soon as it ends.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise ChildProcessError(errno.ECHILD, "SIGCHLD is ignored in this process, so no command's end can be learned")
    # The work is on another thread, since KeyboardInterrupt is raised only in the main thread, between any two
    # instructions. Here it can only cut the waiting short. It cannot lose a child that was just started.
    results: list[Ended | BaseException] = []
    done = allocate_lock()
    done.acquire()
    interrupt = Bell()

    def work() -> None:
        try:
            results.append(_run(launch, seconds, (output, errors), live, interrupt, pace, on_start))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            results.append(error)
        finally:
            done.release()

    count, stop_count, over = stops or stops_here, 0, False
    try:
        start_new_thread(work, ())
        while not over:
            try:
                done.acquire(timeout=LOOK_UP_SECONDS)
                over = bool(results)
                if live is not None:
                    live.deliver(last=over)
                if count() > stop_count:
                    stop_count = count()
                    interrupt.ring()
            except KeyboardInterrupt:
                stop_count += 1
                interrupt.ring()
    except BaseException:
        # The command is ended before the exception is raised again. Two quick Ctrl-C may raise at any instruction.
        _wait_for_end(results, interrupt, pace)
        raise
    interrupt.close()
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _wait_for_end(results: list[Ended | BaseException], interrupt: Bell, pace: Pace) -> None:
    """Have the command killed, and wait for the thread that follows it, ignoring any KeyboardInterrupt.

    The bell `interrupt` stays open, since the thread may still use it.
    """
    deadline = time.monotonic() + pace.grace_seconds + pace.gone_seconds + pace.kill_seconds
    while not results and time.monotonic() < deadline:
        try:
            interrupt.ring()
            time.sleep(STEP_SECONDS)
        except KeyboardInterrupt:
            pass


def _run(
    launch: Launch,
    seconds: float,
    sinks: tuple[TakesOutput, TakesOutput | None],
    live: Live | LentTerminal | None,
    interrupt: Bell,
    pace: Pace,
    on_start: Callable[[], None] | None,
) -> Ended:
    started = time.monotonic()
    adopt_orphans()
    survivors = survivors_of(launch)
    try:
        with Latch() as latch:
            variables = {**launch.environment, MARK_VARIABLE: f"{survivors.mark:x}", **latch.variables}
            descriptors = (*launch.descriptors, *latch.descriptors)
            process, pipes = _start(replace(launch, environment=variables, descriptors=descriptors), sinks)
            group = _Group(process, pipes, interrupt, live, survivors, pace)
            latch.lift()
        if on_start is not None:
            on_start()
    except BaseException:
        survivors.close()
        raise
    try:
        return group.follow(seconds, started)
    finally:
        group.close()


def _start(
    launch: Launch, sinks: tuple[TakesOutput, TakesOutput | None]
) -> tuple[StartedProgram, dict[int, TakesOutput]]:
    """Start the program. Return it, and the read end of each output pipe with the receiver of its output.

    A program with a terminal uses that for its input and output.
    """
    output, errors = sinks
    if launch.terminal is not None:
        process = start(launch, launch.terminal.far, launch.terminal.far)
        launch.terminal.started()
        return process, {os.dup(launch.terminal.near): output}
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    pipes: dict[int, TakesOutput] = {}
    writing: list[int] = []
    try:
        for sink in (output, *(() if errors is None else (errors,))):
            reading, end = os.pipe()
            pipes[reading] = sink
            writing.append(end)
            _widen(end)
            # INVARIANT: reading never blocks. A command can open the pipe as /proc/self/fd/1 and read it itself.
            os.set_blocking(reading, False)
        return start(launch, nothing if launch.input is None else launch.input, *writing), pipes
    except BaseException:
        _close(pipes)
        raise
    finally:
        _close((nothing, *writing))


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _widen(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BLOCK_BYTES)
    except (OSError, AttributeError):
        pass  # the user's pipes exceed their limit (pipe-user-pages-soft); the usual size works too, but is slower


class _Group:
    """A started program, its descendants, and its pipes."""

    def __init__(
        self,
        process: StartedProgram,
        pipes: dict[int, TakesOutput],
        interrupt: Bell,
        live: Live | LentTerminal | None,
        survivors: Survivors | GroupSurvivors,
        pace: Pace,
    ) -> None:
        self._process = process
        self._pipes = pipes
        self._open = set(pipes)
        """The pipes that are not yet at their end."""
        self._interrupt = interrupt
        self._live = live
        self._survivors = survivors
        self._pace = pace
        self._poll = poll_for(*pipes)
        self._exit = -1
        try:
            survivors.started(process.pid)
            self._exit = exit_descriptor(process.pid)
        except BaseException:
            self.close()
            raise
        for descriptor in (*pipes, self._exit, interrupt.descriptor):
            self._poll.register(descriptor, select.POLLIN)

    def follow(self, seconds: float, started: float) -> Ended:
        """Read output until the program ends, or end it after `seconds`. Then end all its remaining processes."""
        exit_seen = self._until_exit(seconds)
        if exit_seen is not _Seen.EXIT:
            self._stop()
        ending, status = self._status(exit_seen)
        elapsed = time.monotonic() - started
        terminated, surviving = self._end_rest(settle=self._pace.settle_seconds if exit_seen is _Seen.EXIT else 0.0)
        return Ended(ending=ending, status=status, seconds=elapsed, terminated=terminated, surviving=surviving)

    def close(self) -> None:
        """Kill the remaining processes, reap the program if it has ended, and close the descriptors.

        May be called several times.
        """
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._survivors.close()
            self._process.release()
        _close(self._pipes)
        self._pipes = {}
        if self._exit >= 0:
            os.close(self._exit)
            self._exit = -1

    def _stop(self) -> None:
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process obeys nothing but SIGKILL
        if self._until_exit(self._pace.grace_seconds) is _Seen.EXIT:
            return
        self._signal(signal.SIGKILL)
        while self._until_exit(self._pace.gone_seconds) is _Seen.INTERRUPT:
            pass

    def _end_rest(self, settle: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """End the remaining processes and reap the program. Return the names of the ended and of the surviving ones.

        INVARIANT: the program is reaped last. Until then its number cannot become that of another group.
        """
        self._poll.unregister(self._exit)
        self._poll.unregister(self._interrupt.descriptor)
        remaining = self._until_gone(settle)
        names = {(process.pid, process.started): process.name for process in remaining}
        if remaining:
            self._signal(signal.SIGTERM)
            send(remaining, signal.SIGTERM, signal.SIGCONT)
            remaining = self._until_gone(self._pace.term_seconds)
        deadline = time.monotonic() + self._pace.kill_seconds
        self._signal(signal.SIGKILL)
        while remaining and time.monotonic() < deadline:
            names |= {(process.pid, process.started): process.name for process in remaining}
            send(remaining, signal.SIGKILL)
            remaining = self._until_gone(STEP_SECONDS)
        self._drain(STEP_SECONDS)
        unknown = self._survivors.unknown()
        self._survivors.close()
        self._process.release()
        surviving = {(process.pid, process.started) for process in remaining}
        terminated = tuple(name for process, name in names.items() if process not in surviving)
        return terminated, tuple(process.name for process in (*remaining, *unknown))

    def _until_gone(self, seconds: float) -> list[Process]:
        """Read output for at most `seconds`, or until it ends and only the program is left.

        Return the other processes that are left.
        """
        deadline = time.monotonic() + seconds
        while True:
            wait = min(max(deadline - time.monotonic(), 0.0), STEP_SECONDS)
            self._drain(wait)
            remaining = self._survivors.remaining()
            if wait == 0.0 or (not remaining and not self._open):
                return remaining
            if not self._open:
                time.sleep(wait)

    def _status(self, exit_seen: _Seen) -> tuple[CommandEnding, int | None]:
        if exit_seen is _Seen.DEADLINE:
            return CommandEnding.TIMED_OUT, None
        if exit_seen is _Seen.INTERRUPT:
            return CommandEnding.INTERRUPTED, None
        status = self._process.status()
        if status is None:
            return CommandEnding.UNKNOWN, None
        return (CommandEnding.EXITED if status[0] else CommandEnding.SIGNALLED), status[1]

    def _until_exit(self, seconds: float) -> _Seen:
        now = time.monotonic()
        deadline, reaping = now + seconds, now + REAP_SECONDS
        while now < deadline:
            ready = self._wait(min(deadline, reaping) - now)
            now = time.monotonic()
            if now >= reaping:
                self._survivors.reap()
                reaping = now + REAP_SECONDS
            if self._exit in ready:
                self._survivors.leader_ended()
                return _Seen.EXIT
            if self._interrupt.descriptor in ready:
                self._interrupt.quiet()
                return _Seen.INTERRUPT
        return _Seen.DEADLINE

    def _drain(self, seconds: float) -> bool:
        """Read output until its end, but for at most `seconds`. Return whether it ended."""
        deadline = time.monotonic() + seconds
        while self._open and (seconds_left := deadline - time.monotonic()) > 0:
            self._wait(seconds_left)
        return not self._open

    def _wait(self, seconds: float) -> set[int]:
        """Wait until a descriptor is ready, for at most `seconds`. Return the ready ones.

        One block of output is read from each ready pipe.
        """
        ready = {descriptor for descriptor, _ in self._poll.poll(int(max(seconds, 0.0) * 1000) + 1)}
        for pipe in self._open & ready:
            self._take(pipe)
        return ready

    def _take(self, pipe: int) -> None:
        try:
            block = os.read(pipe, BLOCK_BYTES)
        except BlockingIOError:
            return  # the command read the bytes itself
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            block = b""  # no process of the command has the terminal open any more (pty(7))
        if block:
            self._pipes[pipe].add(block)
            if self._live is not None:
                self._live.add(block)
        else:
            self._poll.unregister(pipe)
            self._open.discard(pipe)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group. No effect if the group no longer exists or belongs to another user."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
