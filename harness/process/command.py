"""Run one bash, and everything that it starts, to an end that always comes.

INVARIANT: when `run_group` returns or raises, nothing that it started is left that this process may kill.
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

from harness.process.capture import Live
from harness.process.guard import MARK_VARIABLE
from harness.process.hardening import adopt_orphans
from harness.process.procfs import Process
from harness.process.start import Latch, Launch, start
from harness.process.survivors import Survivors, send
from harness.record import Record, replace

if TYPE_CHECKING:
    from subprocess import Popen

    from harness.process.lent_terminal import LentTerminal

STEP_SECONDS = 0.01
REAP_SECONDS = 0.5
"""Seconds between collecting ended processes while the program runs. Process numbers are scarce; init does it at
once.
"""
LOOK_UP_SECONDS = 0.1
"""Seconds between checks of the waiting thread. A signal right before it waits does not wake it."""
BLOCK_BYTES = 1 << 18
"""Size of the pipe and of one read, in bytes: twice as fast as the usual 64 KiB, and small enough for the cache."""


class CommandEnding(Enum):
    """The way a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """It ended, and its status went to another part of this process, which waits for children that are not its own."""


class Ended(Record):
    """The end of a run."""

    ending: CommandEnding
    status: int | None
    """The exit code, or the signal's number."""
    seconds: float
    terminated: tuple[str, ...] = ()
    """The names of the processes that still ran when the program had ended, and that are gone."""
    surviving: tuple[str, ...] = ()
    """The names of those that could not be killed: another person's, or inside the kernel."""


class TakesOutput(Protocol):
    """Takes what a program prints; see Capture."""

    def add(self, block: bytes) -> None:
        """Take in the next bytes."""
        ...


class Pace(Record):
    """Time limits for the steps of a command's end."""

    grace_seconds: float = 2.0
    """Between SIGTERM and SIGKILL."""
    gone_seconds: float = 1.0
    """Seconds to wait for the program itself after SIGKILL."""
    settle_seconds: float = 0.15
    """Seconds for its remaining processes to end, and to print their last, by themselves."""
    term_seconds: float = 0.25
    """Seconds for them after SIGTERM: git removes its lock files then."""
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
) -> Ended:
    """Run a bash in a session of its own, stdout into `output`, stderr into `errors` (`None`: merged); return its
    end.

    Its command begins once it is bound and marked; bash itself waits for that (Latch), other programs would not.
    After `seconds` the group gets SIGTERM, and SIGKILL after a grace period. KeyboardInterrupt does the same (a
    second one at once); it is not raised but reported in the ending. `stops` returns how often a person asked to
    stop, for a program that raises only the first time, or on another thread. `live` receives the output on this
    thread, ten times a second. If the person's terminal was lent to the program, `live` is that.

    Raises NotConfinedError if it could not be confined, OSError or ValueError if it cannot be started,
    ChildProcessError if SIGCHLD is ignored: the kernel would reuse the program's number as soon as it ends.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise ChildProcessError(errno.ECHILD, "SIGCHLD is ignored in this process, so no command's end can be learned")
    # On a thread of its own, since KeyboardInterrupt is raised in the main thread only, between any two instructions:
    # here it can only cut short the waiting, never lose a child that has just been started.
    results: list[Ended | BaseException] = []
    done = allocate_lock()
    done.acquire()
    interrupt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def work() -> None:
        try:
            results.append(_run(launch, seconds, (output, errors), live, interrupt, pace))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            results.append(error)
        finally:
            done.release()

    count, stop_count, over = stops or _never, 0, False
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
                    os.eventfd_write(interrupt, 1)
            except KeyboardInterrupt:
                stop_count += 1
                os.eventfd_write(interrupt, 1)
    except BaseException:
        # Whatever came (two Ctrl-C at once come between any two instructions): the command is ended before it is passed on.
        _wait_for_end(results, interrupt, pace)
        raise
    os.close(interrupt)
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _never() -> int:
    return 0


def _wait_for_end(results: list[Ended | BaseException], interrupt: int, pace: Pace) -> None:
    """Have the command killed, and wait until the thread that follows it is through, however often one is interrupted.

    The event is not closed: the thread may still be looking at it.
    """
    deadline = time.monotonic() + pace.grace_seconds + pace.gone_seconds + pace.kill_seconds
    while not results and time.monotonic() < deadline:
        try:
            os.eventfd_write(interrupt, 1)
            time.sleep(STEP_SECONDS)
        except KeyboardInterrupt:
            pass


def _run(
    launch: Launch,
    seconds: float,
    sinks: tuple[TakesOutput, TakesOutput | None],
    live: Live | LentTerminal | None,
    interrupt: int,
    pace: Pace,
) -> Ended:
    started = time.monotonic()
    adopt_orphans()
    survivors = Survivors(confined=launch.confine is not None or bool(launch.prefix))
    try:
        with Latch() as latch:
            variables = {**launch.environment, MARK_VARIABLE: f"{survivors.mark:x}", **latch.variables}
            descriptors = (*launch.descriptors, *latch.descriptors)
            process, pipes = _start(replace(launch, environment=variables, descriptors=descriptors), sinks)
            group = _Group(process, pipes, interrupt, live, survivors, pace)
            latch.lift()
    except BaseException:
        survivors.close()
        raise
    try:
        return group.follow(seconds, started)
    finally:
        group.close()


def _start(
    launch: Launch, sinks: tuple[TakesOutput, TakesOutput | None]
) -> tuple[Popen[bytes], dict[int, TakesOutput]]:
    """Start the program; return it, and the ends of the pipes from which its output is read, with who takes that.

    One that has a terminal has its input and its output there.
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
            reading, end = os.pipe2(os.O_CLOEXEC)
            pipes[reading] = sink
            writing.append(end)
            _widen(end)
            # INVARIANT: reading never waits. A command can open the pipe by /proc/self/fd/1 and take what poll(2) told of.
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
    except OSError:
        pass  # the person's pipes hold too much together (pipe-user-pages-soft); it works as it is, only slower


class _Group:
    """A started program, what it starts, and its pipes."""

    def __init__(
        self,
        process: Popen[bytes],
        pipes: dict[int, TakesOutput],
        interrupt: int,
        live: Live | LentTerminal | None,
        survivors: Survivors,
        pace: Pace,
    ) -> None:
        self._process = process
        self._pipes = pipes
        self._open = set(pipes)
        """The pipes that have not come to their end."""
        self._interrupt = interrupt
        self._live = live
        self._survivors = survivors
        self._pace = pace
        self._poll = select.poll()
        self._exit = -1
        try:
            survivors.started(process.pid)
            self._exit = os.pidfd_open(process.pid)
        except BaseException:
            self.close()
            raise
        for descriptor in (*pipes, self._exit, interrupt):
            self._poll.register(descriptor, select.POLLIN)

    def follow(self, seconds: float, started: float) -> Ended:
        """Take output until the end, or bring it about after `seconds`; leave nothing behind that can be killed."""
        exit_seen = self._until_exit(seconds)
        if exit_seen is not _Seen.EXIT:
            self._stop()
        ending, status = self._status(exit_seen)
        elapsed = time.monotonic() - started
        terminated, surviving = self._end_rest(settle=self._pace.settle_seconds if exit_seen is _Seen.EXIT else 0.0)
        return Ended(ending=ending, status=status, seconds=elapsed, terminated=terminated, surviving=surviving)

    def close(self) -> None:
        """Kill what is left, reap the program if it is dead, and close the descriptors. May be called again."""
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._survivors.close()
            self._process.poll()
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
        """End what the program left, reap the program; return the names of what was ended, and of what was not.

        INVARIANT: the program is not reaped before all that is over; until then its number cannot name another group.
        """
        self._poll.unregister(self._exit)
        self._poll.unregister(self._interrupt)
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
        self._process.poll()
        surviving = {(process.pid, process.started) for process in remaining}
        terminated = tuple(name for process, name in names.items() if process not in surviving)
        return terminated, tuple(process.name for process in (*remaining, *unknown))

    def _until_gone(self, seconds: float) -> list[Process]:
        """Take output until it ends and only the program is left, `seconds` at most; return what else is left."""
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
        try:
            status = os.waitid(os.P_PIDFD, self._exit, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            status = None
        if status is None:
            return CommandEnding.UNKNOWN, None
        return (CommandEnding.EXITED if status.si_code == os.CLD_EXITED else CommandEnding.SIGNALLED), status.si_status

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
            if self._interrupt in ready:
                os.eventfd_read(self._interrupt)
                return _Seen.INTERRUPT
        return _Seen.DEADLINE

    def _drain(self, seconds: float) -> bool:
        """Take output until its end, `seconds` at most; return whether it ended."""
        deadline = time.monotonic() + seconds
        while self._open and (seconds_left := deadline - time.monotonic()) > 0:
            self._wait(seconds_left)
        return not self._open

    def _wait(self, seconds: float) -> set[int]:
        """Wait until something happens, take one block of output of each pipe that has one, and return what is ready."""
        ready = {descriptor for descriptor, _ in self._poll.poll(int(max(seconds, 0.0) * 1000) + 1)}
        for pipe in self._open & ready:
            self._take(pipe)
        return ready

    def _take(self, pipe: int) -> None:
        try:
            block = os.read(pipe, BLOCK_BYTES)
        except BlockingIOError:
            return  # the command took it itself
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            block = b""  # a terminal that nothing of the command has open any more (pty(7))
        if block:
            self._pipes[pipe].add(block)
            if self._live is not None:
                self._live.add(block)
        else:
            self._poll.unregister(pipe)
            self._open.discard(pipe)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group. A group that is gone, or that is another user's by now, is left alone."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
