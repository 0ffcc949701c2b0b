"""Start one program in a session of its own, confined if it is to be; follows and ends nothing."""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.record import Record

if TYPE_CHECKING:
    from subprocess import Popen


class NotConfinedError(OSError):
    """The walls could not be put up; nothing was started."""


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
        try:
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
        except subprocess.SubprocessError as error:  # something wrote into the pipe by which the start is reported
            raise OSError(errno.EIO, str(error)) from error

    return popen() if launch.confine is None else _behind_walls(launch.confine, popen)


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

    start_new_thread(spawn, ())
    done.acquire()
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result
