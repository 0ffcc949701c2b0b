"""Start one program in its own session, inside walls if it must be confined.

A thread of the harness starts it, or a `Starter`: a process that can build walls which no thread can enter.
"""

from __future__ import annotations

import errno
import fcntl
import os
import termios
import time
from _thread import allocate_lock, get_native_id, start_new_thread
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from harness.record import Record
from harness.system import HAS_PROC, ended_child, inherited_path, memory_file, seal

if TYPE_CHECKING:
    import socket
    from subprocess import Popen

    from harness.process.lent_terminal import LentTerminal


END_SECONDS = 1.0
"""Maximum seconds to wait for the end of a thread without work. It takes a few hundredths of a millisecond."""
STEP_SECONDS = 0.00005


class NotConfinedError(OSError):
    """Raised if the walls could not be built, so that no program was started."""


class StartedProgram(Protocol):
    """A started program, as `subprocess.Popen` has it. Its number stays its own until it was waited for."""

    @property
    def pid(self) -> int:
        """Number of the process."""
        ...

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the number of the signal that ended it. `None` until it was waited for."""
        ...

    def wait(self) -> int:
        """Wait for the end, and return the `returncode`."""
        ...

    def kill(self) -> None:
        """Send SIGKILL, if it was not waited for."""
        ...

    def release(self) -> object:
        """Have the program reaped if it has ended, without waiting for it. Its number may then be used again."""
        ...

    def status(self) -> tuple[bool, int] | None:
        """Return whether the ended program exited by itself, and its exit code or signal. It is not reaped.

        `None` if the status is lost.
        """
        ...


class Starter(Protocol):
    """A process that starts programs for the harness."""

    @property
    def parents(self) -> tuple[int, ...]:
        """Numbers of the processes that become parents of the program's processes."""
        ...

    def start(self, launch: Launch, streams: Sequence[int]) -> StartedElsewhere:
        """Start a program with `streams` as its stdin, stdout and stderr. Raises NotConfinedError, OSError."""
        ...


class StartedElsewhere(StartedProgram, Protocol):
    """A program that a Starter started."""

    @property
    def door(self) -> socket.socket | None:
        """Listener in the program's own network. `None` without such a network."""
        ...


class ServedNetwork(Protocol):
    """The service at the door of a private network."""

    def serve(self, door: socket.socket) -> None:
        """Start to serve the network. Raises OSError."""
        ...


class Launch(Record):
    """A program to start, with its settings."""

    argv: Sequence[str]
    executable: str
    cwd: str
    environment: Mapping[str, str]
    confine: Callable[[], None] | None = None
    """Function that permanently confines the calling thread and its children, or raises OSError. `None`: no walls."""
    starter: Starter | None = None
    """Process that starts the program inside its walls. Then `confine` is not used."""
    network: ServedNetwork | None = None
    """Service at the door of the program's own network, which the starter makes."""
    prefix: Sequence[str] = ()
    """Words before the command line: a program that confines itself and then starts `executable`."""
    descriptors: Sequence[int] = ()
    """Descriptors that the program inherits in addition to its standard streams."""
    input: int | None = None
    """Descriptor of the program's stdin. `None`: it gets no input."""
    terminal: LentTerminal | None = None
    """The user's terminal, if it is lent to the program. Its standard streams are then the terminal of its session."""


def find_bash(folders: Iterable[str]) -> str:
    """Return the path of bash for commands: the system's, or else one in `folders`. Empty if there is none."""
    for folder in ("/bin", "/usr/bin", *folders):
        if folder.startswith("/") and os.access(f"{folder}/bash", os.X_OK):
            return f"{folder}/bash"
    return ""


def becoming(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of a bash that becomes the program `words` without parsing the words.

    A bash is needed since it waits until its limits and mark are set (Latch). Another program would not wait.
    """
    return ("bash", "--noprofile", "--norc", "-c", "--", 'exec -- "$@"', "bash", *words)


class Child:
    """A program that a thread of this process started."""

    def __init__(self, popen: Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid
        self.wait, self.kill, self.release = popen.wait, popen.kill, popen.poll

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the number of the signal that ended it. `None` until it was waited for."""
        return self._popen.returncode

    def status(self) -> tuple[bool, int] | None:
        """Return whether the program exited by itself, and its exit code or signal. `None` if other code reaped it."""
        try:
            return ended_child(self.pid)
        except ChildProcessError:
            return None


def start(launch: Launch, stdin: int, output: int, errors: int | None = None) -> StartedProgram:
    """Start a program with `output` as its stdout, and `errors` as its stderr (`None`: `output` too).

    INVARIANT: the thread that starts the program has ended when this returns. The thread enters the walls: a Landlock
    domain and a seccomp filter confine a thread permanently, and its children too. No other thread of the harness gets
    them. (A function between fork and exec would require a fork of the whole harness instead of a vfork.) The thread's
    children become those of the main thread, where procfs.first_children finds them. The program could also make its
    own children those of the thread, with CLONE_PARENT (clone(2)).

    Raises NotConfinedError without walls, OSError or ValueError if the program cannot be started.
    """
    if launch.starter is not None:
        return start_elsewhere(launch, launch.starter, (stdin, output, output if errors is None else errors))
    import subprocess

    def popen() -> Popen[bytes]:
        argv = (*launch.prefix, launch.executable, *launch.argv[1:]) if launch.prefix else launch.argv
        try:
            return subprocess.Popen(
                argv,
                executable=None if launch.prefix else launch.executable,
                cwd=launch.cwd,
                env=launch.environment,
                stdin=stdin,
                stdout=output,
                stderr=output if errors is None else errors,
                bufsize=0,
                start_new_session=True,
                pass_fds=launch.descriptors,
                preexec_fn=None if launch.terminal is None else _take_terminal,  # noqa: PLW1509 - one system call
            )
        except subprocess.SubprocessError as error:  # another process wrote into the pipe that reports the start
            raise OSError(errno.EIO, str(error)) from error

    return Child(_on_a_thread_that_ends(launch.confine, popen))


def start_elsewhere(launch: Launch, starter: Starter, streams: Sequence[int]) -> StartedProgram:
    """Have a program started by `starter` with these standard streams, and serve its network.

    Raises NotConfinedError without walls, OSError if the program cannot be started.
    """
    process = starter.start(launch, streams)
    if launch.network is not None and process.door is not None:
        try:
            launch.network.serve(process.door)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return process


def _take_terminal() -> None:
    """Make stdin the controlling terminal of this process's session, so that keys such as Ctrl-C reach it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _on_a_thread_that_ends(confine: Callable[[], None] | None, popen: Callable[[], Popen[bytes]]) -> Popen[bytes]:
    outcome: list[Popen[bytes] | BaseException] = []
    thread = 0
    done = allocate_lock()
    done.acquire()

    def spawn() -> None:
        nonlocal thread
        thread = get_native_id()
        try:
            if confine is not None:
                try:
                    confine()
                except OSError as error:
                    number = error.errno or errno.EIO
                    raise NotConfinedError(number, error.strerror or str(error) or os.strerror(number)) from error
            outcome.append(popen())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            outcome.append(error)
        finally:
            done.release()

    start_new_thread(spawn, ())
    done.acquire()
    _wait_for_end(thread)
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result


def _wait_for_end(thread: int) -> None:
    """Wait until the kernel has ended a thread of this process that has finished its work."""
    deadline = time.monotonic() + END_SECONDS
    while HAS_PROC and os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)


_TEXT = "read -rn1 -u {pipe} && exec {pipe}<&- {text}<&- && unset BASH_ENV REPLY || exit 126\n: bash\n"
"""Script that waits for the latch. Its last line sets `$_` to its usual value."""


class Latch:
    """Makes one bash wait before it runs its command. Call `close` after `lift`, or if no bash was started."""

    def __init__(self) -> None:
        """Create the latch. Raises OSError."""
        waiting, self._lifting = os.pipe()
        self._waiting = self._text = -1
        try:
            self._waiting = _above_streams(waiting)
            # A file, not another pipe: a process forked from the harness at this moment could keep a pipe open.
            self._text = _above_streams(memory_file("latch"))
            os.write(self._text, _TEXT.format(pipe=self._waiting, text=self._text).encode())
            seal(self._text)
        except BaseException:
            self.close()
            raise

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables for the environment of bash."""
        return {"BASH_ENV": inherited_path(self._text)}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that bash must inherit."""
        return (self._waiting, self._text)

    def lift(self) -> None:
        """Let the command begin."""
        os.write(self._lifting, b"\n")

    def close(self) -> None:
        """Close the descriptors. A bash that still waits exits."""
        for descriptor in (self._waiting, self._lifting, self._text):
            if descriptor >= 0:
                os.close(descriptor)
        self._waiting = self._lifting = self._text = -1

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def _above_streams(descriptor: int) -> int:
    """Return the descriptor, or a copy of it above 2 if it has the number of a standard stream. Raises OSError."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)
