"""Run one command behind walls instead of the agent, in the same folder, with the environment of our own commands.

The command inherits our session, process group and standard streams, but for masked output. This process exits with its
exit code. A keeper forked from this process starts it where it gets namespaces; else it is a child of this process.

INVARIANT: the processes of the command have ended before protected places are compared (`left_running`).
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from harness.actions import JsonValue
from harness.plugins.agents.left_running import LeftRunning
from harness.plugins.agents.masked_output import MaskedOutput
from harness.plugins.agents.tickets import Ticket, machine
from harness.process.environment import at_a_terminal, child_environment, path_without_surprise
from harness.process.hardening import end_with_parent
from harness.process.start import Launch, find_bash, start_elsewhere
from harness.process.temporary import TemporaryFolder
from harness.record import Record, replace
from harness.redaction.redactor import Redactor
from harness.regex import regex
from harness.sandbox import Confinement, Machine, Unhidden, hides_where_it_may_write, keeper_here, prepare
from harness.sandbox.walls import TEMPORARY
from harness.system import inherited_path, memory_file, quiet_pipe

if TYPE_CHECKING:
    from harness.plugins.agents.watched_run import RestoredPlaces

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals to forward to the command. Signals from a terminal reach the command directly."""
_KEYS = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to the command directly. This process ignores them meanwhile."""
_FAR = 200
"""Lowest number of the file descriptors that we pass to bash, to avoid numbers that commands use."""
_USES = regex(r"\$\{?([A-Za-z_]\w*)|\bprintenv\s+([A-Za-z_]\w*)")
"""Matches the use of a variable in a command line."""
MOST_NAMED = 5
"""Maximum number of variables named to the agent."""
NOT_STARTED = 126
MOST_PATH = 4096


class CommandEnd(Record):
    """The end of a command."""

    code: int
    """Exit code; for a command that a signal ended, 128 plus the signal number, as in shells."""
    seconds: float
    gaps: tuple[str, ...]
    """Requested protections that the walls do not enforce, a sentence each."""
    fields: Mapping[str, JsonValue]
    """Further fields of the outcome record: connections through the proxy, processes that ended with the command."""
    notes: tuple[str, ...] = ()
    """Sentences for the agent."""
    restored: RestoredPlaces | None = None
    """The protected places that it changed. `None` if there are none."""


def start_keeper(ticket: Ticket) -> None:
    """Start the keeper that a ticket's command will need, without waiting for it."""
    if ticket.walls.own_network or not ticket.walls.reader:
        keeper_here(machine()).start()


def run_confined(
    ticket: Ticket,
    environment: Mapping[str, str],
    images: str,
    redactor: Redactor,
    *,
    abilities: Machine | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> CommandEnd:
    """Run the command of a ticket and wait for its end. `redactor` masks what it prints.

    It gets the same few variables as commands of our own, from `environment`, the environment of the agent's shell.
    Protected places that it changed are restored from copies in the folder `images`, since nobody can be asked here.
    `abilities` are those of this machine, by default found by a trial.

    Raises OSError if the command cannot be started.
    """
    for folder in ticket.folders:
        os.makedirs(folder, exist_ok=True)
    temporary_path = environment.get("TMPDIR", "")
    scratch = TemporaryFolder(temporary_path if os.path.isdir(temporary_path) else "/tmp")  # noqa: S108 - a private folder, removed at the end
    temporary = scratch.path() if ticket.keeps_temporary else None
    # The agent's own tools write to the `/tmp` of the machine, so its commands read there.
    walls = replace(ticket.walls, temporary=temporary, readable=TEMPORARY, console=_terminal())
    abilities, watch = machine() if abilities is None else abilities, None
    left_running = LeftRunning()
    if ticket.watched:
        from harness.plugins.agents.watched_run import WatchedRun  # late: most commands only read

        watch = WatchedRun(ticket, images)
        walls = replace(walls, hold=(*walls.hold, *watch.holdable_paths))
    if walls.hold and hides_where_it_may_write(abilities):
        walls = replace(walls, keep=(*walls.keep, *walls.hold), hold=())
    network = None
    if ticket.hosts:
        from harness.tools.command_network import CommandNetwork  # late: few commands reach a host

        network = CommandNetwork(ticket.hosts)
    unhidden = Unhidden.REFUSE if ticket.required else Unhidden.TELL
    with prepare(walls, abilities, unhidden=unhidden) as confinement:
        variables = _variables(ticket, environment, temporary)
        inherited, reader = confinement.descriptors, -1
        if ticket.folder_to:
            reader, tells = _pipe()
            script = _script(tells)
            variables["BASH_ENV"] = inherited_path(script)
            inherited = (*inherited, tells, script)
        for descriptor in inherited:
            os.set_inheritable(descriptor, True)
        bash = find_bash(environment.get("PATH", os.defpath).split(":"))
        launch = Launch(
            argv=(bash, "--noprofile", "--norc", "-c", "--", ticket.command),
            executable=bash,
            cwd=ticket.cwd,
            environment={**variables, **({} if network is None else network.variables)},
            network=network,
        )
        started = monotonic()
        with MaskedOutput(redactor) as masked:
            code = _code_of(launch, confinement, masked.begin)
            seconds = monotonic() - started
            jobs_ended, left_notes = left_running.end(
                () if confinement.starter is None else confinement.starter.parents
            )
            if confinement.starter is not None:
                keeper_here(abilities).end()
        if ticket.folder_to and code == 0:
            _tell(ticket.folder_to, reader)
        code = code if code >= 0 else 128 - code
        restored = None if watch is None else watch.restore()
        notes = [*ticket.notes, *left_notes, *(_missing(ticket.command, environment, variables) if code else ())]
        if network is not None:
            network.close()
            notes += network.notes(failed=code != 0)
        return CommandEnd(
            code=code,
            seconds=seconds,
            gaps=confinement.gaps,
            fields={
                **({"jobs_ended": jobs_ended} if jobs_ended else {}),
                **({} if network is None else network.fields),
            },
            notes=tuple(notes),
            restored=restored,
        )


def _pipe() -> tuple[int, int]:
    """Return a pipe: its reading end, and its writing end with a high number that commands do not use."""
    reader, tells = quiet_pipe()
    far = fcntl.fcntl(tells, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(tells)
    return reader, far


def _script(tells: int) -> int:
    """Return a file descriptor of a startup script for bash. It makes bash report its last folder when it exits."""
    near = memory_file("folder")
    script = fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(near)
    os.write(script, f"unset BASH_ENV\nexec {script}<&-\ntrap 'pwd -P >&{tells}' EXIT\n".encode())
    os.lseek(script, 0, os.SEEK_SET)
    return script


def _tell(path: str, reader: int) -> None:
    """Write the folder in which a command ended to a new file, for `cd`.

    The command may have reported any bytes. Unless they are the absolute path of a folder, the file stays empty: `cd ""`
    changes nothing.
    """
    try:
        folder = os.read(reader, MOST_PATH).removesuffix(b"\n")
    except BlockingIOError:
        folder = b""
    with suppress(OSError), open(path, "xb") as file:  # on an error, `cat` reports the missing file
        file.write(folder if folder.startswith(b"/") and os.path.isdir(folder) else b"")


def _variables(ticket: Ticket, environment: Mapping[str, str], temporary: str | None) -> dict[str, str]:
    variables = child_environment(environment)
    if _terminal():
        variables = at_a_terminal(variables, environment)
    if ticket.root:
        variables["PATH"] = path_without_surprise(variables["PATH"], ticket.root)
    return {**variables, **ticket.variables, **({} if temporary is None else {"TMPDIR": temporary})}


def _missing(command: str, environment: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on the variables that a failed command uses, and that only the agent's shell has."""
    used = dict.fromkeys(first or second for first, second in _USES.findall(command))
    names = [f"${name}" for name in used if name in environment and name not in variables]
    if names:
        yield f"[commands are not given {', '.join(names[:MOST_NAMED])}]"


def _code_of(launch: Launch, confinement: Confinement, on_start: Callable[[], None]) -> int:
    """Run a program in its walls. Return its exit code, or minus the number of the signal that ended it.

    `on_start` is called once the program runs, while signals are blocked. Raises OSError if it could not be started.
    """
    mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, (*_FORWARDED, *_KEYS)
    )  # until the command and we are ready for them
    if confinement.starter is not None:
        program = start_elsewhere(replace(launch, descriptors=_inheritable()), confinement.starter, ())
        on_start()
        return _waited_for(program.pid, program.wait, mask)
    child = os.fork()
    if child == 0:
        _become((*confinement.prefix, *launch.argv), launch.environment, confinement.enter, mask)
    on_start()
    return _waited_for(child, lambda: _code_of_child(child), mask)


def _code_of_child(child: int) -> int:
    """Wait for a child, and return its exit code, or minus the number of a signal. Reap the orphans that end before it."""
    while True:
        number, status = os.wait()
        if number == child:
            return os.waitstatus_to_exitcode(status)


def _terminal() -> str:
    """Return the path of the terminal among our standard streams. Empty if there is none."""
    for stream in range(3):
        with suppress(OSError):
            return os.ttyname(stream)
    return ""


def _inheritable() -> tuple[int, ...]:
    """Return our inheritable descriptors, which the command gets, without those of folders.

    From an open folder, a command could reach files that its view of the disk hides.
    """
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the list itself
            if os.get_inheritable(int(name)) and not stat.S_ISDIR(os.fstat(int(name)).st_mode):
                descriptors.append(int(name))
    return tuple(descriptors)


def _become(
    argv: Sequence[str], variables: Mapping[str, str], enter: Callable[[], None], mask: Iterable[int]
) -> NoReturn:
    """Become the command in a forked child: enter the walls, and make the child end with its parent. Never returns.

    `mask` is the mask of signals for the command.
    """
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # undo what Python or our parent set
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        done = allocate_lock()
        done.acquire()

        def go() -> None:  # on a separate thread: see Confinement.enter
            try:
                end_with_parent()  # set on this thread: execve(2) keeps its setting
                enter()
                os.execve(argv[0], tuple(argv), variables)  # noqa: S606 - the shell is what is started
            except BaseException as error:  # noqa: BLE001 - this process must not continue
                os.write(2, f"harness: the command was not started: {error}\n".encode())
                os._exit(NOT_STARTED)

        start_new_thread(go, ())
        done.acquire()
    finally:
        os._exit(NOT_STARTED)


def _waited_for(pid: int, wait: Callable[[], int], mask: Iterable[int]) -> int:
    """Forward signals to a process until `wait` returns, and return its result. `mask` is the usual mask of signals."""

    def pass_on(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a signal handler
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in _FORWARDED:
        signal.signal(number, pass_on)
    for number in _KEYS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return wait()
