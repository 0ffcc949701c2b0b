"""The guard: a small process that outlives the harness briefly, and ends the commands that the harness left running.

The guard notices the end of the harness, even by kill -9, when a pipe closes that only the harness holds open. This
module has both sides: `Guard` in the harness, `watch` in the guard process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Collection, Iterator
from contextlib import suppress

from harness.process import procfs
from harness.process.hardening import set_name
from harness.process.procfs import Process
from harness.system import HAS_PROC, memory_file

MARK_VARIABLE = "HARNESS_CALL"
"""Environment variable that marks the processes of a command."""
TERM_SECONDS = 0.25
"""Seconds between SIGTERM and SIGKILL, in which the remaining processes can clean up their files."""
SPAWN_SECONDS = 1.0
"""Maximum seconds that a command waits for the start of the guard, which takes a millisecond or two."""
KILL_SECONDS = 5.0
"""Maximum seconds of repeated SIGKILL, even if new processes keep appearing."""
STEP_SECONDS = 0.02
QUIET_LOOKS = 2
"""Number of consecutive looks without a new process before the end, since a process may start another as it exits."""
_POLITE = (signal.SIGTERM, signal.SIGCONT)

READY_SECONDS = 30.0
"""Maximum seconds that a command which may change the harness's code waits until the guard has loaded that code."""
_LOADED = b"\n"
"""First byte of the table once the guard process has loaded its code. The lines begin behind it."""
_LOADED_NAME = "harness-guard"
"""Name that the guard process takes once it has loaded its code."""
_CODE = "import sys; sys.path.append(sys.argv[1]); from harness.process.guard import watch; watch()"
_guards: dict[int, Guard] = {}
_lock = allocate_lock()


def marked(mark: int) -> bytes:
    """Return the environment entry of the command with this mark."""
    return f"{MARK_VARIABLE}={mark:x}".encode()


def guard() -> Guard:
    """Return the guard of this process. Start it if there is none or if it was killed."""
    with _lock:
        existing = _guards.get(os.getpid())
        if existing is None:
            if not _guards:
                os.register_at_fork(after_in_child=_forget)
            existing = _guards[os.getpid()] = Guard()
    existing.keep()
    return existing


def _forget() -> None:
    """Close the parent's pipe in a process forked from the harness, so that the guard notices the harness's end."""
    for inherited in _guards.values():
        inherited.close()


class Guard:
    """The harness's side of the guard. If the guard process cannot be started, commands run without it.

    The running commands are listed in a file in memory that both processes have open. The guard process sleeps until
    the harness ends.
    """

    def __init__(self) -> None:
        """Initialize without starting the process."""
        self._table = memory_file("commands")
        self._pipe = -1
        self._pid = 0
        self._lock = allocate_lock()
        self._spawning = allocate_lock()
        """Lock that is held while the process is being started."""
        self._running: dict[int, int] = {}

    def keep(self) -> None:
        """Start the process in the background if it does not run. Raises ChangedCodeError."""
        with self._lock:
            if self._table < 0 or (self._pipe >= 0 and self._alive()):
                return
            from harness.process.own_code import own_code  # the guard process itself does not need it

            options = own_code().python_options()
            if self._pipe >= 0:
                os.close(self._pipe)
                os.pwrite(self._table, b"\0", 0)  # an earlier process had loaded its code
            reading, self._pipe = os.pipe()
            self._pid = 0
            self._spawning.acquire()
        start_new_thread(self._start, (reading, options))

    def announce(self, mark: int, leader: int = 0) -> None:
        """Announce a command before its start, and again with `leader`, its first process, which leads its session.

        INVARIANT: the guard process runs when this returns (or SPAWN_SECONDS are over). So no process is left even if
        the harness is killed right after it started its first command.
        """
        if self._spawning.acquire(timeout=SPAWN_SECONDS):
            self._spawning.release()
        with self._lock:
            self._running[mark] = leader
            self._tell()

    def wait_until_loaded(self) -> None:
        """Wait until the process has loaded all of its code, or cannot. It is killed after READY_SECONDS."""
        self.keep()
        deadline = time.monotonic() + READY_SECONDS
        while self._pid >= 0 and self._alive() and not self._has_loaded():
            if time.monotonic() > deadline and self._pid:
                os.kill(self._pid, signal.SIGKILL)
                return
            time.sleep(STEP_SECONDS / 10)

    def _has_loaded(self) -> bool:
        return self._pid > 0 and os.pread(self._table, 1, 0) == _LOADED

    def report_end(self, mark: int) -> None:
        """Report that the command with this mark has no process left."""
        with self._lock:
            self._running.pop(mark, None)
            self._tell()

    def close(self) -> None:
        """Close the pipe and the table permanently."""
        for descriptor in (self._pipe, self._table):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._table = -1

    def _alive(self) -> bool:
        """Return whether the process runs, is being started, or could not be started. Reaps it if it has ended."""
        try:
            return self._pid <= 0 or os.waitpid(self._pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False

    def _start(self, reading: int, options: tuple[str, ...]) -> None:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        actions = (
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_DUP2, self._table, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        )
        try:
            # The environment is empty, since commands could read its secrets.
            self._pid = os.posix_spawn(
                sys.executable,
                (sys.executable, *options, "-S", "-c", _CODE, package),
                {},
                file_actions=actions,
                setsid=True,  # so that Ctrl-C at the terminal does not reach it
                setsigmask=(),
            )
        except (OSError, NotImplementedError):
            self._pid = -1
        finally:
            self._spawning.release()
        os.close(reading)

    def _tell(self) -> None:
        """Write the table: a line with mark and leader per command, then an empty line.

        It is one write, so that a kill of the harness leaves the table complete.
        """
        lines = "".join(f"{mark} {leader}\n" for mark, leader in self._running.items())
        try:
            os.pwrite(self._table, f"{lines}\n".encode(), len(_LOADED))
        except OSError:
            pass  # closed in a process forked from the harness, which has its own guard


def watch() -> None:
    """Run the guard process: wait for the end of stdin, then end the commands listed in the file that is stdout."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, 1 << 20)
    os.chdir("/")
    import resource  # noqa: F401 - procfs needs it later

    set_name(_LOADED_NAME.encode())
    os.pwrite(1, _LOADED, 0)
    while os.read(0, 1):
        pass
    running = running_commands(os.pread(1, 1 << 20, len(_LOADED)))
    if running:
        _end(running)


def running_commands(table: bytes) -> dict[int, int]:
    """Return the leaders by mark from a table of running commands. It ends at an empty line; older data follows."""
    lines = table.rstrip(b"\0").partition(b"\n\n")[0].splitlines() if not table.startswith(b"\n") else []
    return {int(mark): int(leader) for mark, leader in (line.split() for line in lines)}


def _end(running: dict[int, int]) -> None:
    """End every process of these commands, and their descendants. `running` has leaders by mark (0: unknown).

    INVARIANT: the harness reports a command's end before it reaps the leader. So each number still belonged to its
    leader when the harness ended. Later looks use the marks, and the processes known from the first look.
    """
    leaders = frozenset(running.values()) - {0}
    if not HAS_PROC:
        _end_groups(leaders)
        return
    signalled = {
        (process.pid, process.started)
        for process in _find_processes(running, leaders, frozenset(), set())
        if _send(process, *_POLITE)
    }
    time.sleep(TERM_SECONDS)
    deadline = time.monotonic() + KILL_SECONDS
    collected: set[tuple[int, int]] = set()
    strangers: set[int] = set()
    quiet = 0
    while quiet < QUIET_LOOKS and time.monotonic() < deadline:
        has_new = news = False
        # Each process is killed as soon as it is found, since one may start the next and exit at any moment.
        for process in _find_processes(running, frozenset(), signalled, strangers):
            identity = (process.pid, process.started)
            if process.has_ended and identity in collected:
                continue  # its parent has not reaped it
            has_new = True
            news |= identity not in signalled
            signalled.add(identity)
            if process.has_ended:
                collected.add(identity)
            else:
                _send(process, signal.SIGKILL)
        quiet = 0 if has_new else quiet + 1
        if not news:
            time.sleep(STEP_SECONDS)


def _end_groups(leaders: Collection[int]) -> None:
    """End the process groups of these leaders."""
    for seconds, *numbers in ((TERM_SECONDS, *_POLITE), (0, signal.SIGKILL)):
        for leader in leaders:
            for number in numbers:
                with suppress(OSError):
                    os.killpg(leader, number)
        time.sleep(seconds)


def _find_processes(
    running: dict[int, int], leaders: Collection[int], identities: Collection[tuple[int, int]], strangers: set[int]
) -> Iterator[Process]:
    """Yield every known or marked process and every process of a leader's session, each with its descendants.

    The numbers of all others are added to `strangers`, to skip them in the next look: no process gets a mark later.
    """
    numbers = set(procfs.numbers()) - {os.getpid()}
    strangers &= numbers
    for number in numbers - strangers:
        process = procfs.process(number)
        if process is None:
            continue
        if (number, process.started) in identities or process.session in leaders or _is_marked(number, running):
            yield from procfs.family([process])
        else:
            strangers.add(number)


def _send(process: Process, *numbers: signal.Signals) -> bool:
    """Send signals to a process. Return whether it still ran when it was found."""
    for number in numbers:
        try:
            os.kill(process.pid, number)
        except OSError:
            pass
    return not process.has_ended


def _is_marked(number: int, marks: Collection[int]) -> bool:
    return procfs.lock_limit(number) in marks or any(procfs.carries(number, marked(mark)) for mark in marks)
