"""Trials: attempts to break the walls, each made once without walls and once inside them. No files remain.

INVARIANT: attempts touch only a temporary folder, ports and sockets that are created here, and this process.
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
"""Timeout of one attempt, in seconds. Attempts usually take some milliseconds."""
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
"""Program that makes an attempt and prints DONE or REFUSED.

INVARIANT: only a started attempt prints one of the two. A program that could not start inside the walls, or was killed,
proves nothing about them.
"""


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
    """The result proves nothing: the program could not start inside the walls, or the attempt was cut short."""

    @property
    def bad(self) -> bool:
        """Whether the result shows a failure of the walls, or may hide one."""
        return self in (TrialOutcome.NOT_STOPPED, TrialOutcome.FAILS, TrialOutcome.UNCLEAR)


class Trial(Record):
    """An attempt and its result."""

    attempt: WallAttempt
    outcome: TrialOutcome
    without: str
    """Output without walls: DONE, or REFUSED and the name of an error, or another text."""
    within: str
    """Output inside the walls. NO_WALLS and the reason if they could not be built."""


class Scene:
    """Context manager that creates the targets of the attempts: a folder, ports and sockets. Removes them at its end."""

    def __init__(self, bash: str, environment: Mapping[str, str]) -> None:
        """Use the path of bash (empty without one). `environment` provides the PATH of the attempts, and TMPDIR.

        The folder of the scene is created in TMPDIR.
        """
        place = environment.get("TMPDIR", "")
        place = os.path.realpath(place if os.path.isabs(place) and os.path.isdir(place) else "/tmp")  # noqa: S108
        self.folder = os.path.join(place, f"harness-doctor-{os.urandom(8).hex()}")
        self._bash = bash
        self._path = os.pathsep.join(os.get_exec_path(environment))
        self._sockets: list[socket.socket] = []
        self._ports: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Create the folder, ports and sockets.

        Raises OSError, also if TMPDIR is in a folder that every command may write.
        """
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
        for _ in range(3):  # an interrupted attempt may still be writing
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.lexists(self.folder):
                break
            time.sleep(0.05)

    @property
    def workspace(self) -> str:
        """The workspace, which commands with writer's walls may write."""
        return os.path.join(self.folder, "workspace")

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of an attempt. It does not contain this process's environment."""
        places = {name.upper(): os.path.join(self.folder, name) for name in ("outside", "hidden")}
        variables = {"PATH": self._path, "HOME": self.workspace, "TMPDIR": self.workspace, "LC_ALL": "C.UTF-8"}
        return {**variables, **places, **self._ports, "HARNESS": str(os.getpid())}

    def walls(self) -> dict[Behind, Walls]:
        """Return the walls of each kind for this folder."""
        hidden = os.path.join(self.folder, "hidden")
        writer = Walls(write=(self.workspace,), network=False, hide=(hidden,), unix_sockets=False)
        return {
            Behind.READER: Walls(write=(), network=False, hide=(hidden,)),
            Behind.WRITER: writer,
            Behind.MASKED: writer.hiding((os.path.join(self.workspace, ".env"),)),
        }

    def renew(self) -> None:
        """Restore the files to their initial state. Raises OSError.

        The folders are not replaced, because Landlock identifies them by inode and not by name.
        """
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
        """Make an attempt in a separate process. Return its last line of output, or the reason for a missing one."""
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
            starter=None if confinement is None else confinement.starter,
            prefix=() if confinement is None else confinement.prefix,
            descriptors=() if confinement is None else confinement.descriptors,
        )
        try:
            return _last_line(launch)
        except OSError as error:
            return f"not started: {error.strerror or error}"

    def _listen(self) -> None:
        """Open the sockets to connect to. One that this machine cannot open is skipped; then the attempt fails anyway."""
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

    If walls cannot be built on `machine`, the result without walls counts. Raises OSError if the scene cannot be
    restored.
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
    """Return the result of an attempt from its outputs `without` walls and `within` them.

    If the walls could not be built, `without` is used for both.
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
    """Run a program for at most SECONDS, and return the last line of its output. Raises OSError."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    reading, writing = os.pipe()
    try:
        try:
            process = start(launch, nothing, writing)
        finally:
            os.close(writing)
            os.close(nothing)
        try:
            written = _read(reading, time.monotonic() + SECONDS)
            if written is not None:
                process.status()
        finally:
            _kill(process.pid)  # not reaped yet, so no other process has this number
            process.wait()
    finally:
        os.close(reading)
    if written is None:
        return f"no end within {SECONDS:.0f} s"
    return (
        written.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"it ended with status {process.returncode}"
    )


def _read(descriptor: int, end: float) -> bytes | None:
    """Return the last 4,096 bytes read before a pipe is closed. `None` if it is still open at `end`."""
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
        pass  # all its processes have ended
