"""The guard: a small process that outlives the harness by a moment, and ends the commands that it left running.

The end of a pipe that only the harness holds is the end of the harness, however that came (kill -9 too). This module
holds both sides: `Guard` in the harness, `watch` in the process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Collection, Iterator

from harness.process import procfs
from harness.process.procfs import Process

MARK_VARIABLE = "HARNESS_CALL"
"""The variable by which a process is known as one of a command's, as long as it keeps its environment."""
TERM_SECONDS = 0.25
"""Seconds for the remaining processes to tidy their files, between SIGTERM and SIGKILL."""
SPAWN_SECONDS = 1.0
"""Seconds that a command waits for the start of the guard, which takes a millisecond or two."""
KILL_SECONDS = 5.0
"""Seconds of repeated SIGKILL, whatever new processes appear."""
STEP_SECONDS = 0.02
QUIET_LOOKS = 2
"""Number of consecutive looks without a new process: one that has ended may just have started another."""
_POLITE = (signal.SIGTERM, signal.SIGCONT)

READY_SECONDS = 30.0
"""Seconds that a command which may change our code waits until the guard has loaded its own."""
_LOADED_NAME = "harness-guard"
"""The name that the process takes once it has loaded what it needs."""
_CODE = "import sys; sys.path.append(sys.argv[1]); from harness.process.guard import watch; watch()"
_guards: dict[int, Guard] = {}
_lock = allocate_lock()


def marked(mark: int) -> bytes:
    """Return the environment entry of the command whose mark this is."""
    return f"{MARK_VARIABLE}={mark:x}".encode()


def guard() -> Guard:
    """Return the guard of this process, started if there is none or if it was killed."""
    with _lock:
        existing = _guards.get(os.getpid())
        if existing is None:
            if not _guards:
                os.register_at_fork(after_in_child=_forget)
            existing = _guards[os.getpid()] = Guard()
    existing.keep()
    return existing


def _forget() -> None:
    """Let go of the parent's pipe in a process forked from the harness: its guard must see the end of the harness."""
    for inherited in _guards.values():
        inherited.close()


class Guard:
    """The harness's side. Where the guard cannot be started, commands run all the same, and nothing else is lost.

    Which commands run is written to a file in memory that both hold: the guard sleeps until the harness ends.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._table = os.memfd_create("commands", os.MFD_CLOEXEC)
        self._pipe = -1
        self._pid = 0
        self._lock = allocate_lock()
        self._spawning = allocate_lock()
        """Held from when the process is wanted until it is there, or could not be started."""
        self._running: dict[int, int] = {}

    def keep(self) -> None:
        """Start the process, in the background, if it was not yet started or if it was killed. Raises ChangedCodeError."""
        with self._lock:
            if self._table < 0 or (self._pipe >= 0 and self._alive()):
                return
            from harness.process.own_code import own_code  # not needed by the process itself

            options = own_code().python_options()
            if self._pipe >= 0:
                os.close(self._pipe)
            reading, self._pipe = os.pipe2(os.O_CLOEXEC)
            self._pid = 0
            self._spawning.acquire()
        start_new_thread(self._start, (reading, options))

    def announce(self, mark: int, leader: int = 0) -> None:
        """Tell of a command about to be started, and again of its first process, which is its session's as well.

        INVARIANT: the process is there when this returns (or SPAWN_SECONDS are over): a harness that is killed right behind
        its first command leaves nothing.
        """
        if self._spawning.acquire(timeout=SPAWN_SECONDS):
            self._spawning.release()
        with self._lock:
            self._running[mark] = leader
            self._tell()

    def wait_until_loaded(self) -> None:
        """Wait until the process has loaded all of its code, or never will."""
        self.keep()
        deadline = time.monotonic() + READY_SECONDS
        while self._pid >= 0 and self._alive() and not (self._pid and _name_of(self._pid) == _LOADED_NAME):
            if time.monotonic() > deadline and self._pid:
                os.kill(self._pid, signal.SIGKILL)
                return
            time.sleep(STEP_SECONDS / 10)

    def report_end(self, mark: int) -> None:
        """Report that none of its processes is left."""
        with self._lock:
            self._running.pop(mark, None)
            self._tell()

    def close(self) -> None:
        """Let go of the pipe and the table, for good."""
        for descriptor in (self._pipe, self._table):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._table = -1

    def _alive(self) -> bool:
        """Say whether the process runs, is being started, or could not be; take notice of its end."""
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
            # An empty environment: what stands in it could be read by the commands, keys too.
            self._pid = os.posix_spawn(
                sys.executable,
                (sys.executable, *options, "-S", "-c", _CODE, package),
                {},
                file_actions=actions,
                setsid=True,  # Ctrl-C at the terminal is not for it
                setsigmask=(),
            )
        except (OSError, NotImplementedError):
            self._pid = -1
        finally:
            self._spawning.release()
        os.close(reading)

    def _tell(self) -> None:
        """Write the table: lines of mark and number, and an empty line; one write, so that a kill leaves it whole."""
        lines = "".join(f"{mark} {leader}\n" for mark, leader in self._running.items())
        try:
            os.pwrite(self._table, f"{lines}\n".encode(), 0)
        except OSError:
            pass  # closed: this is a process forked from the harness, which has a guard of its own


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def watch() -> None:
    """Wait for the end of standard input; kill what is left of the commands in standard output. The process itself."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, 1 << 20)
    os.chdir("/")
    import resource  # noqa: F401 - which procfs needs later

    with open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write(_LOADED_NAME)
    while os.read(0, 1):
        pass
    running = running_commands(os.pread(1, 1 << 20, 0))
    if running:
        _end(running)


def running_commands(table: bytes) -> dict[int, int]:
    """Parse a table of running commands: marks and first processes. It ends with an empty line; older data follows."""
    lines = table.partition(b"\n\n")[0].splitlines() if not table.startswith(b"\n") else []
    return {int(mark): int(leader) for mark, leader in (line.split() for line in lines)}


def _end(running: dict[int, int]) -> None:
    """End every process of these commands, given as mark and first process (0: not known), with what descends from them.

    INVARIANT: the harness told of a command's end before it reaped the command's first process, so that the number still
    named it when the harness ended. Later looks go by marks, and by processes known from the first.
    """
    leaders = frozenset(running.values()) - {0}
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
        # Each is killed as soon as it is seen: where one starts the next and ends, it is a race.
        for process in _find_processes(running, frozenset(), signalled, strangers):
            identity = (process.pid, process.started)
            if process.has_ended and identity in collected:
                continue  # its parent takes no notice of it
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


def _find_processes(
    running: dict[int, int], leaders: Collection[int], identities: Collection[tuple[int, int]], strangers: set[int]
) -> Iterator[Process]:
    """Yield every known or marked process, and each of a leader's session, and then its descendants.

    `strangers` keeps the numbers of the rest to speed up the next look, since no process gets a mark later.
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
    """Send signals to a process that has not ended; return whether it had not."""
    for number in numbers:
        try:
            os.kill(process.pid, number)
        except OSError:
            pass
    return not process.has_ended


def _is_marked(number: int, marks: Collection[int]) -> bool:
    return procfs.lock_limit(number) in marks or any(procfs.carries(number, marked(mark)) for mark in marks)
