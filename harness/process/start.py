"""Start one program in a session of its own, behind walls if it is to be confined."""

from __future__ import annotations

import errno
import fcntl
import os
import termios
import time
from _thread import allocate_lock, get_native_id, start_new_thread
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from harness.record import Record

if TYPE_CHECKING:
    from subprocess import Popen

    from harness.process.lent_terminal import LentTerminal


END_SECONDS = 1.0
"""Seconds to wait for the end of an idle thread; it takes a few hundredths of a millisecond."""
STEP_SECONDS = 0.00005


class NotConfinedError(OSError):
    """Raised if the walls could not be built, and so no program was started."""


class NetworkOfItsOwn(Protocol):
    """A network that the child makes for itself before it becomes the program."""

    def make(self) -> None:
        """Make it, in the child. Raises OSError, of which `serve` tells."""
        ...

    def bind(self) -> None:
        """Bind the child, as `Launch.confine` binds a thread. Raises OSError."""
        ...

    def serve(self) -> None:
        """Begin to serve it, in the harness. Raises OSError if it was not made."""
        ...


class Launch(Record):
    """A program to be started."""

    argv: Sequence[str]
    executable: str
    cwd: str
    environment: Mapping[str, str]
    confine: Callable[[], None] | None = None
    """Binds the calling thread for ever, and thereby what it starts; raises OSError where it cannot. None: no walls."""
    network: NetworkOfItsOwn | None = None
    """Made before the walls are put up, which then bind the child and not the thread: `confine` is not called."""
    prefix: Sequence[str] = ()
    """Put in front of the command line: a program that confines, and starts `executable` in its turn."""
    descriptors: Sequence[int] = ()
    """Descriptors that the program inherits besides its standard streams."""
    input: int | None = None
    """A descriptor that it reads its input from; None: it has none."""
    terminal: LentTerminal | None = None
    """The person's, to which it is given a way: then its standard streams are a terminal, that of its session."""


def find_bash(folders: Iterable[str]) -> str:
    """Return the path of bash for commands, the system's before those of PATH; empty if there is none."""
    for folder in ("/bin", "/usr/bin", *folders):
        if folder.startswith("/") and os.access(f"{folder}/bash", os.X_OK):
            return f"{folder}/bash"
    return ""


def becoming(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of a bash that becomes the program that `words` name, and reads none of them.

    A bash, since that waits until it is bound and marked (Latch); another program would not.
    """
    return ("bash", "--noprofile", "--norc", "-c", "--", 'exec -- "$@"', "bash", *words)


def start(launch: Launch, stdin: int, output: int, errors: int | None = None) -> Popen[bytes]:
    """Start a program with `output` as its stdout, and `errors` (`None`: that too) as its stderr.

    INVARIANT: the thread that starts the program has ended when this returns. The thread enters the walls: a Landlock
    domain and a seccomp filter bind a thread for ever and pass to its children; no other thread of the harness ever
    gets them. (A function between fork and exec would cost a fork of the whole harness instead of a vfork.) Its
    children become those of the main thread, which is where they are searched for (procfs.first_children): with
    CLONE_PARENT (clone(2)), a child of the program is a child of the thread that started the program.

    Raises NotConfinedError without walls, OSError or ValueError if the program cannot be started.
    """
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
                preexec_fn=_in_child(launch),  # noqa: PLW1509 - it makes a few system calls
            )
        except subprocess.SubprocessError as error:  # something wrote into the pipe by which the start is reported
            raise OSError(errno.EIO, str(error)) from error

    if launch.network is None:
        return _on_a_thread_that_ends(launch.confine, popen)
    return _on_a_thread_that_ends(None, partial(_with_network, launch.network, popen))


def _with_network(network: NetworkOfItsOwn, popen: Callable[[], Popen[bytes]]) -> Popen[bytes]:
    """Start a program that makes its own network; serve that before the program begins."""
    try:
        process = popen()
    except OSError as error:
        _put_up(network.serve)  # raises what it was, if it was the network
        raise NotConfinedError(error.errno or errno.EIO, error.strerror or str(error)) from error
    try:
        _put_up(network.serve)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def _in_child(launch: Launch) -> Callable[[], None] | None:
    """Return the function that the child runs before it becomes the program. `None` avoids a copy of the harness."""
    if launch.network is None:
        return None if launch.terminal is None else _take_terminal
    network, terminal = launch.network, launch.terminal

    def prepare() -> None:
        if terminal is not None:
            _take_terminal()
        network.make()
        network.bind()

    return prepare


def _take_terminal() -> None:
    """Make standard input the terminal of the session, whose leader the process is: keys like Ctrl-C reach it then."""
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
                _put_up(confine)
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


def _put_up(confine: Callable[[], None]) -> None:
    try:
        confine()
    except OSError as error:
        number = error.errno or errno.EIO
        raise NotConfinedError(number, error.strerror or str(error) or os.strerror(number)) from error


def _wait_for_end(thread: int) -> None:
    """Wait until the kernel has ended a thread of this process, which is through with its work."""
    deadline = time.monotonic() + END_SECONDS
    while os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)


_TEXT = "read -rn1 -u {pipe} && exec {pipe}<&- {text}<&- && unset BASH_ENV REPLY || exit 126\n: bash\n"
"""The last line makes of `$_` what it is without it."""
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class Latch:
    """Holds one bash before its command. Close it once it is lifted, or if nothing was started."""

    def __init__(self) -> None:
        """Make it, closed. Raises OSError."""
        waiting, self._lifting = os.pipe2(os.O_CLOEXEC)
        self._waiting = self._text = -1
        try:
            self._waiting = _above_streams(waiting)
            # A file, not another pipe: a process forked from the harness meanwhile could keep that one's end from coming.
            self._text = _above_streams(os.memfd_create("latch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
            os.write(self._text, _TEXT.format(pipe=self._waiting, text=self._text).encode())
            fcntl.fcntl(self._text, fcntl.F_ADD_SEALS, _SEALS)
        except BaseException:
            self.close()
            raise

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables for the environment of bash."""
        return {"BASH_ENV": f"/proc/self/fd/{self._text}"}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that bash must inherit."""
        return (self._waiting, self._text)

    def lift(self) -> None:
        """Let the command begin."""
        os.write(self._lifting, b"\n")

    def close(self) -> None:
        """Close the descriptors; a bash that still waits ends."""
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
    """Return the descriptor, or a copy above 2: lower ones are the command's streams. Raises OSError."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)
