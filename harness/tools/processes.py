"""Run one program and everything that it starts to an end that always comes; judges nothing.

INVARIANT: when `run_group` returns or raises, nothing that the program started is left that this process may kill, or what is
left is told (`Ended.surviving`), and a thread goes on killing it for a while.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import time
from _thread import allocate_lock
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from harness.guard import MARK_VARIABLE
from harness.record import Record
from harness.tools.hardening import adopt_orphans, come_first
from harness.tools.live import Live
from harness.tools.output import Capture
from harness.tools.start import Barrier, Launch, new_thread, start
from harness.tools.survivors import MAX_MET, Left, Survivors, send

if TYPE_CHECKING:
    from subprocess import Popen

GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
SETTLE_SECONDS = 0.15
"""How long what the program left has to end, and to print its last, of its own accord."""
TERM_SECONDS = 0.25
"""How long it has after SIGTERM: git removes its lock files then."""
KILL_SECONDS = 2.0
"""How long it is killed for; a process inside a system call that cannot be interrupted takes longer."""
AFTER_SECONDS = 10.0
"""How long a thread goes on with that when the result was told, so that what ends late is reaped."""
CLEAN_LOOKS = 2
"""How many times in a row nothing must be met, ended or not, before all is taken to be over."""
STEP_SECONDS = 0.01
REAP_SECONDS = 0.1
"""How often what a command left is reaped while it runs: a table of processes holds 32,768, of all programs."""
GONE_SECONDS = 1.0
"""How long the end of the program itself is waited for after SIGKILL."""
LOOK_UP_SECONDS = 0.1
"""How often the waiting thread looks up: a signal that comes just before it waits does not wake it."""
BLOCK_BYTES = 1 << 18
"""What the pipe holds, and one reading takes: twice as fast as the standard 64 KiB, and small enough for the cache."""


class Ending(Enum):
    """How a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """It ended, and its status went to another part of this process, which waits for children that are not its own."""


class Ended(Record):
    """What a run came to."""

    ending: Ending
    status: int | None
    """The exit code, or the signal's number."""
    seconds: float
    terminated: tuple[str, ...] = ()
    """The names of the processes that still ran when the program had ended, and that are gone."""
    surviving: tuple[str, ...] = ()
    """The names of those that could not be killed: another person's, inside the kernel, or new ones all the time."""


class _Seen(Enum):
    EXIT = "exit"
    INTERRUPT = "interrupt"
    DEADLINE = "deadline"


def run_group(
    launch: Launch,
    *,
    seconds: float,
    output: Capture,
    live: Live | None = None,
    interrupts: Callable[[], int] | None = None,
) -> Ended:
    """Run a program in a session of its own, without input, stdout and stderr merged into `output`; return its end.

    After `seconds` the group gets SIGTERM, and SIGKILL two seconds later. KeyboardInterrupt does the same (twice: at
    once) and is not raised but told by the ending. `interrupts` says how often a person asked to stop so far, for a
    program that raises only the first time. `live` is told on this thread what is printed, ten times a second.

    Raises NotConfinedError where it could not be confined, another OSError (NoThreadError at the limit of processes) or
    ValueError if it cannot be started, ChildProcessError where SIGCHLD is ignored: the kernel would give the number of
    the program away as soon as it ends.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise ChildProcessError(errno.ECHILD, "SIGCHLD is ignored in this process, so no command's end can be learned")
    return _Apart(lambda interrupt: _run(launch, seconds, output, live, interrupt), live, interrupts).result()


class _Apart:
    """A run on a thread of its own, and the thread that waits for it.

    KeyboardInterrupt is raised in the main thread only, between any two instructions: here it can only cut short the
    waiting, never lose a child that has just been started.

    INVARIANT: `result` returns or raises when the run is over, or if it never began; whatever interrupts come.
    """

    def __init__(self, run: Callable[[int], Ended], live: Live | None, interrupts: Callable[[], int] | None) -> None:
        self._run = run
        self._live = live
        self._interrupts = interrupts
        self._ended: list[Ended | BaseException] = []
        self._begun, self._done = allocate_lock(), allocate_lock()
        self._done.acquire()
        self._interrupt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def result(self) -> Ended:
        asked = self._interrupts() if self._interrupts is not None else 0
        try:
            new_thread(self._work)
            self._wait(asked)
        except BaseException as error:
            if self._begun.acquire(blocking=False):  # the thread did not begin; it never will, now
                os.close(self._interrupt)
                raise
            self._outlast()
            if not isinstance(error, KeyboardInterrupt):
                raise
        os.close(self._interrupt)
        (ended,) = self._ended
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def _work(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._ended.append(self._run(self._interrupt))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._ended.append(error)
        finally:
            self._done.release()

    def _wait(self, asked: int) -> None:
        over = False
        while not over:
            try:
                self._done.acquire(timeout=LOOK_UP_SECONDS)
                over = bool(self._ended)
                if self._live is not None:
                    self._live.deliver(last=over)
                if self._interrupts is not None and self._interrupts() > asked:
                    asked = self._interrupts()
                    os.eventfd_write(self._interrupt, 1)
            except KeyboardInterrupt:
                asked += 1
                os.eventfd_write(self._interrupt, 1)

    def _outlast(self) -> None:
        """Have everything killed, and wait for the end of it. An interrupt in the inner handler is met by the outer one."""
        while not self._ended:
            try:
                while not self._ended:
                    try:
                        os.eventfd_write(self._interrupt, 1)
                        self._done.acquire(timeout=LOOK_UP_SECONDS)
                    except KeyboardInterrupt:
                        continue
            except KeyboardInterrupt:
                continue


def _run(launch: Launch, seconds: float, output: Capture, live: Live | None, interrupt: int) -> Ended:
    started = time.monotonic()
    adopt_orphans()
    survivors = Survivors()
    try:
        with Barrier(launch, {MARK_VARIABLE: f"{survivors.mark:x}"}) as barrier:
            process, pipe = _start(barrier.launch)
            group = _Group(process, pipe, interrupt, output, live, survivors)
            barrier.lift()
    except BaseException:
        survivors.close()
        raise
    try:
        return group.follow(seconds, started)
    finally:
        group.close()


def _start(launch: Launch) -> tuple[Popen[bytes], int]:
    """Start the program without input; return it, and the end of the pipe from which its output is read."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        _widen(writing)
        return start(launch, nothing, writing), reading
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(nothing)
        os.close(writing)


def _widen(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BLOCK_BYTES)
    except OSError:
        pass  # the person's pipes hold too much together (pipe-user-pages-soft); it works as it is, only slower


class _Group:
    """A started program, what it starts, and its pipe."""

    def __init__(
        self,
        process: Popen[bytes],
        pipe: int,
        interrupt: int,
        output: Capture,
        live: Live | None,
        survivors: Survivors,
    ) -> None:
        self._process = process
        self._pipe = pipe
        self._pipe_open = True
        self._left_to_thread = False
        self._interrupt = interrupt
        self._output = output
        self._live = live
        self._survivors = survivors
        self._poll = select.poll()
        self._exit = -1
        try:
            survivors.started(process.pid)
            self._exit = os.pidfd_open(process.pid)
        except BaseException:
            self.close()
            raise
        for descriptor in (self._pipe, self._exit, interrupt):
            self._poll.register(descriptor, select.POLLIN)

    def follow(self, seconds: float, started: float) -> Ended:
        """Take output until the end, or bring it about after `seconds`; leave nothing behind that can be killed."""
        seen = self._until_exit(seconds)
        if seen is not _Seen.EXIT:
            self._stop()
        ending, status = self._status(seen)
        taken = time.monotonic() - started
        terminated, surviving = self._end_rest(settle=SETTLE_SECONDS if seen is _Seen.EXIT else 0.0)
        return Ended(ending=ending, status=status, seconds=taken, terminated=terminated, surviving=surviving)

    def close(self) -> None:
        """Kill what is left, reap the program if it is dead, and close the descriptors. May be called again."""
        if self._process.returncode is None and not self._left_to_thread:
            self._signal(signal.SIGKILL)
            self._survivors.close()
            self._process.poll()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._exit >= 0:
            os.close(self._exit)
            self._exit = -1

    def _stop(self) -> None:
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process obeys nothing but SIGKILL
        if self._until_exit(GRACE_SECONDS) is _Seen.EXIT:
            return
        self._signal(signal.SIGKILL)
        while self._until_exit(GONE_SECONDS) is _Seen.INTERRUPT:
            pass

    def _end_rest(self, settle: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """End what the program left, reap the program; return the names of what was ended, and of what was not.

        INVARIANT: the program is not reaped before all that is over; until then its number cannot name another group.
        """
        self._poll.unregister(self._exit)
        self._poll.unregister(self._interrupt)
        left = self._until_gone(settle)
        names = {(one.pid, one.started): one.name for one in left.running}
        if left.running:
            self._signal(signal.SIGTERM)
            send(left.running, signal.SIGTERM, signal.SIGCONT)
            left = self._until_gone(TERM_SECONDS)
        self._signal(signal.SIGKILL)
        if not left.nothing:
            left = self._killed(names)
        self._drain(STEP_SECONDS)
        if not left.nothing:
            return self._go_on(names, left)
        self._survivors.close()
        self._process.poll()
        return tuple(names.values()), ()

    def _killed(self, names: dict[tuple[int, int], str]) -> Left:
        """Kill what is left for as long as there is something, and note the names; return what is still met at the end."""
        come_first()
        deadline = time.monotonic() + KILL_SECONDS
        clean = 0
        while True:
            left = self._survivors.strike()
            clean = clean + 1 if left.nothing else 0
            if clean == CLEAN_LOOKS or time.monotonic() > deadline:
                return left
            new = {(one.pid, one.started): one.name for one in left.running if (one.pid, one.started) not in names}
            names |= new
            if left.name and not names:
                names[0, 0] = left.name  # killed before more could be asked than what it is called
            if new or left.ended:
                self._wait(0.0)  # there may be more of them by now
            elif left.running:
                self._drain(STEP_SECONDS)
                time.sleep(0.0 if self._pipe_open else STEP_SECONDS)

    def _go_on(self, names: dict[tuple[int, int], str], left: Left) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Leave the rest to a thread, and the program with it, which is reaped at the end; return both kinds of names."""
        self._left_to_thread = True
        process, survivors = self._process, self._survivors

        def work() -> None:
            come_first()
            deadline = time.monotonic() + AFTER_SECONDS
            clean = 0
            while clean < CLEAN_LOOKS and time.monotonic() < deadline:
                found = survivors.strike()
                clean = clean + 1 if found.nothing else 0
                if not found.ended:
                    time.sleep(STEP_SECONDS)
            survivors.close()
            process.poll()

        try:
            new_thread(work)
        except OSError:
            survivors.close()
            process.poll()
        surviving = {(one.pid, one.started): one.name for one in left.running}
        terminated = tuple(name for one, name in names.items() if one not in surviving)
        return terminated, tuple(surviving.values()) or (left.name,)

    def _until_gone(self, seconds: float) -> Left:
        """Take output until it ends and only the program is left, `seconds` at most; return what else is left."""
        deadline = time.monotonic() + seconds
        clean = ended = 0
        while True:
            wait = min(max(deadline - time.monotonic(), 0.0), STEP_SECONDS)
            self._drain(wait)
            left = self._survivors.left()
            clean = clean + 1 if left.nothing else 0
            ended += left.ended
            if ended >= MAX_MET:
                return left  # so many do not end of their own accord: they fork all the time, and are to be killed soon
            if clean != 1 and (wait == 0.0 or (clean and not self._pipe_open)):
                return left
            if not self._pipe_open and not clean:
                time.sleep(wait)

    def _status(self, seen: _Seen) -> tuple[Ending, int | None]:
        if seen is _Seen.DEADLINE:
            return Ending.TIMED_OUT, None
        if seen is _Seen.INTERRUPT:
            return Ending.INTERRUPTED, None
        try:
            status = os.waitid(os.P_PIDFD, self._exit, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            status = None
        if status is None:
            return Ending.UNKNOWN, None
        return (Ending.EXITED if status.si_code == os.CLD_EXITED else Ending.SIGNALLED), status.si_status

    def _until_exit(self, seconds: float) -> _Seen:
        now = time.monotonic()
        deadline, reap = now + seconds, now + REAP_SECONDS
        while now < deadline:
            ready = self._wait(min(deadline, reap) - now)
            if self._exit in ready:
                return _Seen.EXIT
            if self._interrupt in ready:
                os.eventfd_read(self._interrupt)
                return _Seen.INTERRUPT
            now = time.monotonic()
            if now >= reap:
                many = self._survivors.reap() >= MAX_MET
                reap = time.monotonic() + (0.0 if many else REAP_SECONDS)
        return _Seen.DEADLINE

    def _drain(self, seconds: float) -> bool:
        """Take output until its end, `seconds` at most; return whether it ended."""
        deadline = time.monotonic() + seconds
        while self._pipe_open and (left := deadline - time.monotonic()) > 0:
            self._wait(left)
        return not self._pipe_open

    def _wait(self, seconds: float) -> set[int]:
        """Wait until something happens, take one block of output if there is one, and return what is ready."""
        ready = {descriptor for descriptor, _ in self._poll.poll(int(seconds * 1000) + 1 if seconds else 0)}
        if self._pipe in ready:
            block = os.read(self._pipe, BLOCK_BYTES)
            if block:
                self._output.add(block)
                if self._live is not None:
                    self._live.add(block)
            else:
                self._poll.unregister(self._pipe)
                self._pipe_open = False
        return ready

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group. A group that is gone, or that is another user's by now, is left alone."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
