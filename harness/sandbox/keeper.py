"""The harness's side of the keeper (keeper_process): start it, ask it to start programs, and follow these.

There is one keeper for each process that runs commands. It starts at the first need, or early with `start_early`. The
keeper of commands that stay in this process's session is a fork of it.
"""

from __future__ import annotations

import array
import atexit
import errno
import marshal
import os
import select
import signal
import socket
import struct
import sys
from _thread import allocate_lock
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from harness.process.own_code import own_code
from harness.process.start import Launch, NotConfinedError
from harness.record import Record
from harness.sandbox.keeper_process import keep_in_session
from harness.system import IS_LINUX

READY_SECONDS = 30.0
"""Maximum seconds until the keeper is ready. It usually takes a few hundredths of a second."""
END_SECONDS = 5.0
"""Maximum seconds to wait for the end of the keeper."""
_CODE = "import sys; sys.path.append(sys.argv[1]); from harness.sandbox.keeper_process import main; main()"
_MAX_ANSWER = 4096
_keepers: dict[tuple[int, bool], Keeper] = {}
_lock = allocate_lock()


def keeper(*, in_session: bool = False) -> Keeper:
    """Return the keeper of this process, which may not run yet.

    `in_session` means that its commands stay in the session and process group of this process.
    """
    key = os.getpid(), in_session
    with _lock:
        existing = _keepers.get(key)
        if existing is None:
            if not _keepers:
                os.register_at_fork(after_in_child=_close_all)
                atexit.register(_close_all)
            existing = _keepers[key] = Keeper(_forked if in_session else _spawned)
    return existing


def start_early() -> None:
    """Start the keeper without waiting for it, so that the first command need not. A failure is reported later."""
    keeper().start()


def _close_all() -> None:
    """Close the sockets, at the end of this process, and in a fork of it, so that keepers notice the harness's end."""
    for existing in _keepers.values():
        existing.close()


class KeptWalls(Record):
    """The walls of one command, for the keeper."""

    view: Mapping[str, object] | None
    """The mounts (views.Views). `None`: those of the machine."""
    network: str
    """One of the values of `Network`."""
    capabilities: int
    ruleset: int | None
    """Descriptor of a Landlock ruleset."""
    program: bytes
    """The filter of system calls."""


class KeptProgram:
    """A program that the keeper started. Its number and its group are those of this machine."""

    def __init__(self, pid: int, link: socket.socket, door: socket.socket | None) -> None:
        self.pid = pid
        self.door = door
        """Listener in the program's own network, for a proxy. `None` without such a network."""
        self.returncode: int | None = None
        self._link = link
        self._status: tuple[bool, int] | None = None

    def status(self) -> tuple[bool, int] | None:
        """Wait for the program's end. Return whether it exited by itself, and its exit code or the number of a signal.

        `None` if the status is lost, since the keeper ended.
        """
        if self._status is None:
            try:
                words = self._link.recv(_MAX_ANSWER).decode().split()
            except OSError:
                words = []
            if len(words) == 2:
                self._status = words[0] == "exited", int(words[1])
        return self._status

    def wait(self) -> int:
        """Wait for the program's end, and have it reaped. Return its exit code, or minus the number of its signal."""
        if self.returncode is None:
            status = self.status()
            self.returncode = 255 if status is None else status[1] if status[0] else -status[1]
            self._link.close()
        return self.returncode

    def release(self) -> None:
        """Have the keeper reap the program, and kill it if it still runs."""
        if self.returncode is None:
            self._link.setblocking(False)
            self.wait()

    def kill(self) -> None:
        """Send SIGKILL to the program, if it was not reaped."""
        if self.returncode is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except OSError:
                pass


class KeptStarter:
    """Starts one command in its walls, by the keeper. See process.start.Starter."""

    def __init__(self, keeper: Keeper, walls: KeptWalls) -> None:
        self._keeper = keeper
        self._walls = walls

    @property
    def parents(self) -> tuple[int, ...]:
        """Numbers of the keeper, and of the process that becomes the parent of the command's orphans."""
        return self._keeper.parents

    def start(self, launch: Launch, streams: Sequence[int]) -> KeptProgram:
        """Start the command. Raises NotConfinedError, OSError."""
        return self._keeper.launch(self._walls, launch, streams)


class Keeper:
    """The keeper of this process."""

    def __init__(self, begin: Callable[[socket.socket], None]) -> None:
        """Initialize without starting the process. `begin` starts it with its end of the control socket."""
        self._begin = begin
        self._control: socket.socket | None = None
        self._answer: str | None = None
        self._lock = allocate_lock()
        self._error = ""

    def start(self) -> None:
        """Start the process if it does not run, without waiting for it."""
        with self._lock:
            self._start()

    def why_not(self) -> str:
        """Return the reason why this machine gives commands no namespaces: the step and its error. Empty if it does."""
        with self._lock:
            self._start()
            return self._wait()

    @property
    def is_started(self) -> bool:
        """Whether the process was started."""
        return self._control is not None or bool(self._error)

    @property
    def separates_processes(self) -> bool:
        """Whether commands see only processes of their session. Call `why_not` before."""
        return os.getpid() not in self.parents

    @property
    def parents(self) -> tuple[int, ...]:
        """Numbers of the keeper, and of the process that becomes the parent of orphans. Call `why_not` before."""
        word, *numbers = (self._answer or "").split() or ("",)
        keeper, init = map(int, numbers) if word == "yes" else (0, 0)
        return keeper or os.getpid(), init or os.getpid()

    def starter(
        self,
        *,
        view: Mapping[str, object] | None,
        network: str,
        capabilities: int,
        ruleset: int | None,
        program: bytes,
    ) -> KeptStarter:
        """Return the starter of one command in these walls (see `KeptWalls`)."""
        walls = KeptWalls(view=view, network=network, capabilities=capabilities, ruleset=ruleset, program=program)
        return KeptStarter(self, walls)

    def launch(self, walls: KeptWalls, launch: Launch, streams: Sequence[int]) -> KeptProgram:
        """Start a program in `walls`. `streams` are its stdin, stdout and stderr.

        Raises NotConfinedError if the walls could not be built, OSError if the program could not be started.
        """
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            try:
                self._send(walls, launch, streams, far)
                near.settimeout(READY_SECONDS)
                program = _program_of(near)
            except TimeoutError:
                near.close()
                self.close()  # the next command gets a new keeper
                raise NotConfinedError(errno.ETIMEDOUT, "the keeper did not answer") from None
            except BaseException:
                near.close()
                raise
        near.settimeout(None)
        return program

    def end(self) -> None:
        """End the keeper and all processes in its namespace of processes, and wait for that (at most END_SECONDS)."""
        number, _ = self.parents
        self.close()
        with suppress(OSError):  # it has ended
            descriptor = os.pidfd_open(number)
            select.select((descriptor,), (), (), END_SECONDS)
            os.close(descriptor)

    def close(self) -> None:
        """Close the control socket, so that the keeper and every program that it started end."""
        if self._control is not None:
            self._control.close()
            self._control = None

    def _start(self) -> None:
        if self._control is not None and not _is_closed(self._control, has_answered=self._answer is not None):
            return
        if not IS_LINUX:
            self._error = "only Linux has namespaces"
        if self._error:
            return
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            try:
                self._begin(far)
            except (OSError, NotImplementedError) as error:
                self._error = f"the keeper was not started: {error}"
                near.close()
                return
        self.close()
        self._control, self._answer = near, None

    def _wait(self) -> str:
        """Wait until the keeper is ready, and return its reason against namespaces. Empty without one."""
        if self._error or self._control is None:
            return self._error
        if self._answer is None:
            self._control.settimeout(READY_SECONDS)
            try:
                self._answer = self._control.recv(_MAX_ANSWER).decode("utf-8", "replace")
            except OSError as error:
                self._answer = f"no {error}"
            self._control.settimeout(None)
            if not self._answer.startswith("yes "):
                self._error = self._answer.removeprefix("no ") or "the keeper ended"
        return self._error

    def _send(self, walls: KeptWalls, launch: Launch, streams: Sequence[int], far: socket.socket) -> None:
        argv = launch.argv
        request = {
            "argv": list(argv),
            "executable": launch.executable,
            "cwd": launch.cwd,
            "environment": dict(launch.environment),
            "view": walls.view,
            "network": walls.network,
            "capabilities": walls.capabilities,
            "filter": walls.program,
            "has_ruleset": walls.ruleset is not None,
            "numbers": [*range(len(streams)), *launch.descriptors],
            "terminal": launch.terminal is not None,
        }
        text = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            os.write(text, marshal.dumps(request))
            os.lseek(text, 0, os.SEEK_SET)
            ruleset = () if walls.ruleset is None else (walls.ruleset,)
            descriptors = array.array("i", (text, far.fileno(), *streams, *launch.descriptors, *ruleset))
            with self._lock:
                self._start()
                reason = self._wait()
                if reason or self._control is None:
                    raise NotConfinedError(errno.EPERM, reason)
                self._control.sendmsg([b"start"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        finally:
            os.close(text)


def _spawned(control: socket.socket) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    actions = (
        (os.POSIX_SPAWN_DUP2, control.fileno(), 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    options = own_code().python_options()
    # The environment is empty, since commands could read its secrets.
    os.posix_spawn(
        sys.executable,
        (sys.executable, *options, "-S", "-c", _CODE, package),
        {},
        file_actions=actions,
        setsid=True,
        setsigmask=(),
    )


def _forked(control: socket.socket) -> None:
    if os.fork() == 0:
        keep_in_session(control)


def _is_closed(control: socket.socket, *, has_answered: bool) -> bool:
    """Return whether the keeper has ended. It sends nothing over this socket after its first answer."""
    try:
        return not control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return has_answered


def _program_of(link: socket.socket) -> KeptProgram:
    """Return the program that the keeper reports as started. Raises NotConfinedError or OSError with its reason."""
    message, ancillary, _flags, _address = link.recvmsg(_MAX_ANSWER, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    stage, _, rest = message.decode("utf-8", "replace").partition(" ")
    if stage == "started":
        doors = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)]
        door = socket.socket(fileno=struct.unpack("i", doors[0][:4])[0]) if doors else None
        return KeptProgram(int(rest), link, door)
    number, _, words = rest.partition(" ")
    if stage == "start":
        raise OSError(int(number), words)
    raise NotConfinedError(int(number or errno.EIO), words or "the keeper ended")
