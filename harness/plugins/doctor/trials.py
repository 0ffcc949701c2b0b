"""Trials: attempts on the walls, each made once without them and once behind them; leaves nothing behind.

INVARIANT: everything that is tried touches a temporary folder, ports and sockets made here, and this very process only.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Self, assert_never

from harness.plugins.doctor.attempts import Behind, Expectation, WallAttempt
from harness.process.start import Launch, start
from harness.record import Record
from harness.sandbox import Confinement, Machine, Unhidden, Walls, prepare
from harness.sandbox.landlock import SHARED_MEMORY

SECONDS = 30.0
"""For one attempt, which takes some milliseconds."""
DONE, REFUSED, NO_WALLS = "had its way", "refused: ", "no walls: "
PYTHON = f"""\
import errno, os, sys
try:
    exec(sys.argv[1])
except OSError as error:
    print({REFUSED!r} + errno.errorcode.get(error.errno, str(error)))
else:
    print({DONE!r})
"""
"""INVARIANT: only an attempt that was begun says one of the two. A program that could not start behind the walls, or that they
killed, proves nothing about them."""


class TrialOutcome(Enum):
    """Result of an attempt, as shown."""

    STOPPED = "stopped"
    WORKS = "works"
    ALLOWED = "allowed"
    CLOSED = "closed"
    """The attempt fails here without walls too, so it shows nothing about them."""
    SKIPPED = "skipped"
    """The required work fails here without walls too."""
    NOT_STOPPED = "NOT STOPPED"
    FAILS = "FAILS"
    """The required work succeeds without walls only."""
    UNCLEAR = "UNCLEAR"
    """It came to no end that says anything: the walls could not be entered, or the attempt broke off."""

    @property
    def bad(self) -> bool:
        """Whether the walls do not do what they are for."""
        return self in (TrialOutcome.NOT_STOPPED, TrialOutcome.FAILS, TrialOutcome.UNCLEAR)


class Trial(Record):
    """An attempt and its result."""

    attempt: WallAttempt
    outcome: TrialOutcome
    without: str
    """Output without walls: DONE, REFUSED and the name of an error, or anything else."""
    within: str
    """Output behind them; NO_WALLS and the reason if they could not be built."""


class Scene:
    """A folder, ports and sockets of its own, to be attacked. Enter it to make them; all is gone when it is left."""

    def __init__(self, bash: str, environment: Mapping[str, str]) -> None:
        """Take the path of bash (or an empty string), the PATH of the attempts, and TMPDIR, in which the folder is
        made.
        """
        place = environment.get("TMPDIR", "")
        place = os.path.realpath(place if os.path.isabs(place) and os.path.isdir(place) else "/tmp")  # noqa: S108
        self.folder = os.path.join(place, f"harness-doctor-{os.urandom(8).hex()}")
        self._bash = bash
        self._path = os.pathsep.join(os.get_exec_path(environment))
        self._sockets: list[socket.socket] = []
        self._ports: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Make everything. Raises OSError, also where there would be no folder that commands may not write."""
        if f"{self.folder}/".startswith(f"{SHARED_MEMORY}/"):
            problem = "commands may write there, so that nothing outside of what they may write could be tried"
            raise OSError(errno.EINVAL, f"{problem}; set TMPDIR=/tmp", self.folder)
        try:
            os.mkdir(self.folder, 0o700)
            for name in ("workspace", "outside", "hidden"):
                os.mkdir(os.path.join(self.folder, name))
            self._listen()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close and delete everything."""
        self.close()

    def close(self) -> None:
        """Close and delete everything."""
        for listening in self._sockets:
            listening.close()
        for _ in range(3):  # an attempt that was interrupted may still be writing
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.lexists(self.folder):
                break
            time.sleep(0.05)

    @property
    def workspace(self) -> str:
        """The folder that a writer may write."""
        return os.path.join(self.folder, "workspace")

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of an attempt, without this process's own."""
        places = {name.upper(): os.path.join(self.folder, name) for name in ("outside", "hidden")}
        variables = {"PATH": self._path, "HOME": self.workspace, "TMPDIR": self.workspace, "LC_ALL": "C.UTF-8"}
        return {**variables, **places, **self._ports, "HARNESS": str(os.getpid())}

    def walls(self) -> dict[Behind, Walls]:
        """Return the walls of each kind, as a policy would have them for this folder."""
        hidden = os.path.join(self.folder, "hidden")
        return {
            Behind.READER: Walls(write=(), network=False, hide=(hidden,)),
            Behind.WRITER: Walls(write=(self.workspace,), network=False, hide=(hidden,)),
            Behind.MASKED: Walls(
                write=(self.workspace,), network=False, hide=(hidden, os.path.join(self.workspace, ".env"))
            ),
        }

    def renew(self) -> None:
        """Put everything as it was. The folders stay: Landlock knows them, not their names. Raises OSError."""
        for name in ("workspace", "outside", "hidden"):
            folder = os.path.join(self.folder, name)
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif entry.name not in ("s", ".env"):
                    os.unlink(entry.path)
            with open(os.path.join(folder, "kept"), "w", encoding="utf-8") as file:
                file.write("kept\n")
        with open(os.path.join(self.workspace, ".env"), "w", encoding="utf-8") as file:
            file.write("KEY=value\n")

    def say(self, attempt: WallAttempt, confinement: Confinement | None) -> str:
        """Make an attempt in a process of its own, and return its last line, or what kept it from having one."""
        if attempt.expected is Expectation.WORKS and not self._bash:
            return "bash is not installed"
        if attempt.expected is Expectation.WORKS:
            command: tuple[str, ...] = (
                self._bash,
                "--noprofile",
                "--norc",
                "-c",
                f"{{\n{attempt.code}\n}} && echo '{DONE}'",
            )
        else:
            command = (sys.executable, "-I", "-S", "-B", "-c", PYTHON, attempt.code)
        launch = Launch(
            argv=command,
            executable=command[0],
            cwd=self.workspace,
            environment=self.environment,
            confine=None if confinement is None else confinement.enter,
            prefix=() if confinement is None else confinement.prefix,
            descriptors=() if confinement is None else confinement.descriptors,
        )
        try:
            return _last_line(launch)
        except OSError as error:
            return f"not started: {error.strerror or error}"

    def _listen(self) -> None:
        """Open what is to be connected to; what this machine does not have is missing, and refused without walls."""
        path = os.path.join(self.folder, "outside")
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        abstract = f"harness-doctor-{os.urandom(8).hex()}"
        listeners: tuple[tuple[str, int, int, tuple[str, int] | str], ...] = (
            ("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
            ("UNIX", socket.AF_UNIX, socket.SOCK_STREAM, f"/proc/self/fd/{folder}/s"),  # a name is short: 107 bytes
        )
        self._ports = {"TCP": "1", "UDP": "1", "ABSTRACT": abstract}
        try:
            for name, family, kind, address in listeners:
                try:
                    listening = socket.socket(family, kind)
                    self._sockets.append(listening)
                    listening.bind(address)
                    if kind == socket.SOCK_STREAM:
                        listening.listen(16)
                except OSError:
                    continue
                if family == socket.AF_INET:
                    self._ports[name] = str(listening.getsockname()[1])
        finally:
            os.close(folder)


def make(
    attempts: Sequence[WallAttempt], scene: Scene, machine: Machine, walls: Mapping[Behind, Walls]
) -> tuple[Trial, ...]:
    """Make every attempt in an entered scene, and return the results.

    If walls cannot be built on `machine`, an attempt that works without them succeeds. Raises OSError if the scene
    cannot be restored.
    """
    trials = []
    for attempt in attempts:
        scene.renew()
        without = scene.say(attempt, None)
        scene.renew()
        try:
            with prepare(walls[attempt.walls], machine, unhidden=Unhidden.TELL) as confinement:
                within = scene.say(attempt, confinement)
        except OSError as error:
            within = f"{NO_WALLS}{error}"
        outcome = outcome_of(attempt.expected, without, within)
        trials.append(Trial(attempt=attempt, outcome=outcome, without=without, within=within))
    return tuple(trials)


def outcome_of(expected: Expectation, without: str, within: str) -> TrialOutcome:
    """Return the meaning of an attempt's outputs `without` walls and `within` them.

    If there are no walls, both are the same.
    """
    outcome = without if within.startswith(NO_WALLS) else within
    match expected:
        case Expectation.WORKS if without != DONE:
            return TrialOutcome.SKIPPED
        case Expectation.WORKS:
            return TrialOutcome.WORKS if outcome == DONE else TrialOutcome.FAILS
        case Expectation.STOPPED | Expectation.ALLOWED if not outcome.startswith((DONE, REFUSED)):
            return TrialOutcome.UNCLEAR
        case Expectation.STOPPED | Expectation.ALLOWED if outcome != DONE:
            return TrialOutcome.STOPPED if without == DONE else TrialOutcome.CLOSED
        case Expectation.STOPPED:
            return TrialOutcome.NOT_STOPPED
        case Expectation.ALLOWED:
            return TrialOutcome.ALLOWED
        case _:
            assert_never(expected)


def _last_line(launch: Launch) -> str:
    """Run a program to its end, SECONDS at most, and return the last line that it wrote. Raises OSError."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        try:
            process = start(launch, nothing, writing)
        finally:
            os.close(writing)
            os.close(nothing)
        try:
            written = _read(reading, time.monotonic() + SECONDS)
            if written is not None:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        finally:
            _kill(process.pid)  # not reaped yet, so the number is its own
            process.wait()
    finally:
        os.close(reading)
    if written is None:
        return f"no end within {SECONDS:.0f} s"
    return (
        written.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"it ended with status {process.returncode}"
    )


def _read(descriptor: int, end: float) -> bytes | None:
    """Return the last of what comes before a pipe is closed, or None if it is still open at `end`."""
    written = b""
    while (remaining := end - time.monotonic()) > 0 and select.select([descriptor], [], [], remaining)[0]:
        block = os.read(descriptor, 65_536)
        if not block:
            return written
        written = (written + block)[-4_096:]
    return None


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass  # nothing of it is left
