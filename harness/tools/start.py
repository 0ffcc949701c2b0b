"""Start one program in a session of its own, confined if it is to be; follows and ends nothing."""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.record import Record, replace

if TYPE_CHECKING:
    from subprocess import Popen


class NotConfinedError(OSError):
    """The walls could not be put up; nothing was started."""


class NoThreadError(OSError):
    """No thread could be started; nothing else was."""


class Launch(Record):
    """A program to be started."""

    argv: Sequence[str]
    executable: str
    cwd: str
    environment: Mapping[str, str]
    confine: Callable[[], None] | None = None
    """Binds the calling thread for ever, and thereby what it starts; raises OSError where it cannot. None: no walls."""
    prefix: Sequence[str] = ()
    """Put in front of the command line: a program that confines, and starts `executable` in its turn."""
    descriptors: Sequence[int] = ()
    """What the program inherits besides its standard streams."""


class Barrier:
    """What keeps bash from beginning before it was marked; other programs begin at once.

    A shell that is quicker than the harness could leave processes without a mark. So it first reads a line from a pipe, as
    the file tells it that BASH_ENV names (bash(1), INVOCATION). Where the line never comes, for the harness was
    killed, bash ends without having begun.
    """

    def __init__(self, launch: Launch, variables: Mapping[str, str]) -> None:
        """Take what is to be started, and what its environment gets besides; `launch` must be started. Raises OSError."""
        self._open: list[int] = []
        variables = {**launch.environment, **variables}
        if os.path.basename(launch.executable) != "bash":
            self.launch = replace(launch, environment=variables)
            return
        try:
            self._open += os.pipe2(os.O_CLOEXEC)
            waiting = self._open[0]
            script = os.memfd_create("barrier", os.MFD_CLOEXEC)
            self._open.append(script)
            os.write(script, b"read -ru %d _ || exit; unset BASH_ENV; exec %d<&- %d<&-\n" % (waiting, waiting, script))
            self.launch = replace(
                launch,
                environment={**variables, "BASH_ENV": f"/dev/fd/{script}"},
                descriptors=(*launch.descriptors, waiting, script),
            )
        except BaseException:
            self._close()
            raise

    def lift(self) -> None:
        """Let the program begin."""
        if self._open:
            os.write(self._open[1], b"\n")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the descriptors: who was not let through never begins."""
        self._close()

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())


def start(launch: Launch, stdin: int, output: int) -> Popen[bytes]:
    """Start a program with `output` as its stdout and stderr.

    INVARIANT: walls are put up on a thread that starts the program and ends. A Landlock domain and a seccomp filter bind a
    thread for ever and pass to what it starts; no other thread of the harness ever gets them. (A function between fork
    and exec would cost a fork of the whole harness instead of a vfork.)

    Raises NotConfinedError if there are no walls, OSError or ValueError if the program cannot be started.
    """
    import subprocess

    def popen() -> Popen[bytes]:
        argv = (*launch.prefix, launch.executable, *launch.argv[1:]) if launch.prefix else launch.argv
        return subprocess.Popen(
            argv,
            executable=None if launch.prefix else launch.executable,
            cwd=launch.cwd,
            env=launch.environment,
            stdin=stdin,
            stdout=output,
            stderr=output,
            bufsize=0,
            start_new_session=True,
            pass_fds=launch.descriptors,
        )

    try:
        return popen() if launch.confine is None else _behind_walls(launch.confine, popen)
    except (
        subprocess.SubprocessError
    ) as error:  # what the child said of itself makes no sense: somebody wrote into its pipe
        raise OSError(errno.EIO, "the start of the program was disturbed by another one") from error


def new_thread(work: Callable[[], None]) -> None:
    """Start a thread that the end of the program does not wait for. Raises NoThreadError."""
    try:
        start_new_thread(work, ())
    except RuntimeError as error:
        raise NoThreadError(errno.EAGAIN, "no thread can be started: there are too many processes") from error


def _behind_walls(confine: Callable[[], None], popen: Callable[[], Popen[bytes]]) -> Popen[bytes]:
    outcome: list[Popen[bytes] | BaseException] = []
    done = allocate_lock()
    done.acquire()

    def spawn() -> None:
        try:
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

    new_thread(spawn)
    done.acquire()
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result
