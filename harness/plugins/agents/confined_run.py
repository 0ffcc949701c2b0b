"""The run of one command behind walls, instead of the agent's own run: same folder, same environment, same streams.

The command gets our standard streams as they are, and its exit code becomes ours.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from harness.plugins.agents.tickets import Ticket
from harness.process.environment import path_without_surprise, read_as_judged
from harness.process.hardening import end_with_parent
from harness.process.start import find_bash
from harness.process.temporary import TemporaryFolder
from harness.record import Record, replace
from harness.sandbox import Unhidden, prepare, probe

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that may be sent to us alone. What a terminal sends reaches the command as well."""
_CHANGES_BASH = ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "PS4", "POSIXLY_CORRECT", "IFS")
"""Variables that change what bash makes of a command line: it was judged without them (bash(1), Shell Variables)."""
_FAR = 200
"""Descriptors of ours have numbers from here on."""
NOT_STARTED = 126
MOST_PATH = 4096


class CommandEnd(Record):
    """The end of a command."""

    code: int
    """Exit code; 128 plus the number of the signal that ended it, as in shells."""
    seconds: float
    gaps: tuple[str, ...]
    """Requested protections that the walls do not enforce, a sentence each."""


def run_confined(
    ticket: Ticket, environment: Mapping[str, str], *, monotonic: Callable[[], float] = time.monotonic
) -> CommandEnd:
    """Run the command of a ticket to its end; `environment` is that of the agent's shell, `monotonic` a clock in
    seconds.

    Raises OSError before anything was run.
    """
    for folder in ticket.folders:
        os.makedirs(folder, exist_ok=True)
    temporary_path = environment.get("TMPDIR", "")
    scratch = TemporaryFolder(temporary_path if os.path.isdir(temporary_path) else "/tmp")  # noqa: S108 - made for us alone, and gone with this
    temporary = scratch.path() if ticket.keeps_temporary else None
    walls = replace(ticket.walls, temporary=temporary)
    unhidden = Unhidden.REFUSE if ticket.required else Unhidden.TELL
    with prepare(walls, probe(), unhidden=unhidden) as confinement:
        bash = find_bash(environment.get("PATH", os.defpath).split(":"))
        argv = (*confinement.prefix, bash, "--noprofile", "--norc", "-c", "--", ticket.command)
        variables = _variables(ticket, environment, temporary)
        inherited, reader = confinement.descriptors, -1
        if ticket.folder_to:
            reader, tells = _pipe()
            script = _script(tells)
            variables["BASH_ENV"] = f"/proc/self/fd/{script}"
            inherited = (*inherited, tells, script)
        for descriptor in inherited:
            os.set_inheritable(descriptor, True)
        started = monotonic()
        child = os.fork()
        if child == 0:
            _become(argv, variables, confinement.enter)
        status = _waited_for(child)
        if ticket.folder_to and status == 0:
            _tell(ticket.folder_to, reader)
        seconds, code = monotonic() - started, os.waitstatus_to_exitcode(status)
        return CommandEnd(code=code if code >= 0 else 128 - code, seconds=seconds, gaps=confinement.gaps)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose other end has a number that no command uses for itself."""
    reader, tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    far = fcntl.fcntl(tells, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(tells)
    return reader, far


def _script(tells: int) -> int:
    """Return a descriptor of what bash reads first: that it shall tell in which folder it ends."""
    near = os.memfd_create("folder")
    script = fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(near)
    os.write(script, f"unset BASH_ENV\nexec {script}<&-\ntrap 'pwd -P >&{tells}' EXIT\n".encode())
    os.lseek(script, 0, os.SEEK_SET)
    return script


def _tell(path: str, reader: int) -> None:
    """Write the folder that a command went to into a file, for `cd`. Leave the file empty if it reported none: `cd
    ""` goes nowhere.

    The reported bytes may be anything.
    """
    try:
        folder = os.read(reader, MOST_PATH).removesuffix(b"\n")
    except BlockingIOError:
        folder = b""
    with suppress(OSError), open(path, "xb") as file:  # else `cat` says what is missing
        file.write(folder if folder.startswith(b"/") and os.path.isdir(folder) else b"")


def _variables(ticket: Ticket, environment: Mapping[str, str], temporary: str | None) -> dict[str, str]:
    variables = {
        name: value
        for name, value in environment.items()
        if name not in _CHANGES_BASH and not name.startswith("BASH_FUNC_")
    }
    if ticket.root:
        variables["PATH"] = path_without_surprise(variables.get("PATH", os.defpath), ticket.root)
    return {**read_as_judged(variables), **ticket.variables, **({} if temporary is None else {"TMPDIR": temporary})}


def _become(argv: Sequence[str], variables: Mapping[str, str], enter: Callable[[], None]) -> NoReturn:
    """Be the command, in the child of a fork: behind the walls, and gone when the parent is. Never returns."""
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # as Python found them, or set them
            signal.signal(number, signal.SIG_DFL)
        done = allocate_lock()
        done.acquire()

        def go() -> None:  # on a thread of its own: see Confinement.enter
            try:
                end_with_parent()  # of this thread: execve(2) keeps what it has
                enter()
                os.execve(argv[0], tuple(argv), variables)  # noqa: S606 - the shell is what is started
            except BaseException as error:  # noqa: BLE001 - nothing may go on in this process
                os.write(2, f"harness: the command was not started: {error}\n".encode())
                os._exit(NOT_STARTED)

        start_new_thread(go, ())
        done.acquire()
    finally:
        os._exit(NOT_STARTED)


def _waited_for(child: int) -> int:
    """Wait for the end of the command, pass signals on, and return its status."""

    def pass_on(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a signal handler
        os.kill(child, number)

    for number in _FORWARDED:
        signal.signal(number, pass_on)
    for number in (signal.SIGINT, signal.SIGQUIT):  # a terminal sends them to the command as well
        signal.signal(number, signal.SIG_IGN)
    return os.waitpid(child, 0)[1]
