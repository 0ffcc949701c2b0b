"""Run one program with everything that it starts in its process group, to an end that always comes; judges nothing.

INVARIANT: when `run_group` returns or raises, no process of the group is left, and nothing waits for one that left it.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from harness.record import Record
from harness.tools.output import Capture

if TYPE_CHECKING:
    from subprocess import Popen

GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 0.15
"""How long output is waited for when the program has ended and something else still holds its pipe."""
SETTLE_SECONDS = 0.05
"""The same, after what was left of the group has been killed."""
GONE_SECONDS = 1.0
"""How long the end after SIGKILL is waited for; a process inside a system call that cannot be interrupted takes longer."""
LOOK_UP_SECONDS = 0.1
"""How often the waiting thread looks up: a signal that comes just before it waits does not wake it."""
BLOCK_BYTES = 65_536
"""The capacity of a pipe (pipe(7))."""


class Ending(Enum):
    """How a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """It ended, and its status went to another part of this process, which waits for children that are not its own."""


class Rest(Enum):
    """What was found to hold the output when the program itself had ended."""

    NOTHING = "nothing"
    ENDED = "ended"
    """Processes of its group; they are gone."""
    ESCAPED = "escaped"
    """A process that had left the group; it may still run."""


class Ended(Record):
    """What a run came to."""

    ending: Ending
    status: int | None
    """The exit code, or the signal's number."""
    seconds: float
    rest: Rest


class _Seen(Enum):
    EXIT = "exit"
    INTERRUPT = "interrupt"
    DEADLINE = "deadline"


def run_group(
    argv: Sequence[str], *, executable: str, cwd: str, environment: Mapping[str, str], seconds: float, output: Capture
) -> Ended:
    """Run `executable` in a session of its own, without input, stdout and stderr merged into `output`; return its end.

    After `seconds` the group gets SIGTERM, and SIGKILL two seconds later. KeyboardInterrupt does the same (twice: at
    once) and is not raised but told by the ending. Processes that made a session of their own are left alone.

    Raises OSError or ValueError if it cannot be started, ChildProcessError where SIGCHLD is ignored: the kernel would
    give the number of the program away as soon as it ends.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise ChildProcessError(errno.ECHILD, "SIGCHLD is ignored in this process, so no command's end can be learned")
    # On a thread of its own, since KeyboardInterrupt is raised in the main thread only, between any two instructions:
    # here it can only cut short the waiting, never lose a child that has just been started.
    ended: list[Ended | BaseException] = []
    done = allocate_lock()
    done.acquire()
    interrupt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def work() -> None:
        try:
            ended.append(_run(argv, executable, cwd, environment, seconds, output, interrupt))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            ended.append(error)
        finally:
            done.release()

    try:
        start_new_thread(work, ())
        while not ended:
            try:
                done.acquire(timeout=LOOK_UP_SECONDS)
            except KeyboardInterrupt:
                os.eventfd_write(interrupt, 1)
    except BaseException:
        os.eventfd_write(interrupt, 1)  # not closed: the thread may still be looking at it
        raise
    os.close(interrupt)
    result = ended[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _run(
    argv: Sequence[str],
    executable: str,
    cwd: str,
    environment: Mapping[str, str],
    seconds: float,
    output: Capture,
    interrupt: int,
) -> Ended:
    import subprocess

    started = time.monotonic()
    process = subprocess.Popen(
        argv,
        executable=executable,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
    )
    group = _Group(process, interrupt, output)
    try:
        return group.follow(seconds, started)
    finally:
        group.close()


class _Group:
    """A started program, its process group and its pipe."""

    def __init__(self, process: Popen[bytes], interrupt: int, output: Capture) -> None:
        if process.stdout is None:
            raise ValueError("the program was started without a pipe")
        self._process = process
        self._stream = process.stdout
        self._pipe = process.stdout.fileno()
        self._pipe_open = True
        self._interrupt = interrupt
        self._output = output
        self._poll = select.poll()
        self._exit = -1
        try:
            self._exit = os.pidfd_open(process.pid)
        except BaseException:
            self.close()
            raise
        for descriptor in (self._pipe, self._exit, interrupt):
            self._poll.register(descriptor, select.POLLIN)

    def follow(self, seconds: float, started: float) -> Ended:
        """Take output until the end, or bring it about after `seconds`; leave nothing of the group behind."""
        seen = self._until_exit(seconds)
        if seen is not _Seen.EXIT:
            self._stop()
        ending, status = self._status(seen)
        rest = self._end_rest()
        return Ended(ending=ending, status=status, seconds=time.monotonic() - started, rest=rest)

    def close(self) -> None:
        """Kill what is left, reap the program if it is dead, and close the descriptors. May be called again."""
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._process.poll()
        self._stream.close()
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

    def _end_rest(self) -> Rest:
        """Kill what is left of the group and reap the program. Does not wait for whoever left the group.

        INVARIANT: the program is not reaped before the group is killed; until then its number cannot name another group.
        """
        self._poll.unregister(self._exit)
        self._poll.unregister(self._interrupt)
        drained = self._drain(DRAIN_SECONDS)
        self._signal(signal.SIGKILL)
        settled = drained or self._drain(SETTLE_SECONDS)
        self._process.poll()
        if drained:
            return Rest.NOTHING
        return Rest.ENDED if settled else Rest.ESCAPED

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
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready = self._wait(left)
            if self._exit in ready:
                return _Seen.EXIT
            if self._interrupt in ready:
                os.eventfd_read(self._interrupt)
                return _Seen.INTERRUPT
        return _Seen.DEADLINE

    def _drain(self, seconds: float) -> bool:
        """Take output until its end, `seconds` at most; return whether it ended."""
        deadline = time.monotonic() + seconds
        while self._pipe_open and (left := deadline - time.monotonic()) > 0:
            self._wait(left)
        return not self._pipe_open

    def _wait(self, seconds: float) -> set[int]:
        """Wait until something happens, take one block of output if there is one, and return what is ready."""
        ready = {descriptor for descriptor, _ in self._poll.poll(int(seconds * 1000) + 1)}
        if self._pipe in ready:
            block = os.read(self._pipe, BLOCK_BYTES)
            if block:
                self._output.add(block)
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
