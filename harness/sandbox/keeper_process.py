"""The keeper: a process that holds the namespaces of a session, and starts each command in its view.

The harness sends a request over the control socket, with descriptors. A thread builds the view or enters a kept one, enters
the walls and starts the program, then ends. The answers go over a socket of that command: the number of the process, later
its status. The harness closes that socket when no process of the command remains; only then is the program reaped, so that
its number cannot become that of another process.

The keeper ends when its control socket closes, and every process of its commands ends with it.

The keeper is a program of its own (`main`), whose commands have sessions of their own, or a fork of the harness
(`keep_in_session`), whose commands stay in its session.
"""

from __future__ import annotations

import array
import errno
import fcntl
import marshal
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, NoReturn

from harness.process.hardening import set_name
from harness.sandbox import kernel, mounts
from harness.sandbox.kept_views import KeptViews
from harness.sandbox.namespaces import Namespaces, make, new_network, on_a_thread
from harness.sandbox.trial import why_not_held
from harness.sandbox.view import allow_writing
from harness.sandbox.walls import DOOR, Network

MAX_DESCRIPTORS = 253  # SCM_MAX_FD of <net/scm.h>
WAITING = 1024
"""Maximum number of connections that wait to be accepted at the door."""
LINGER_SECONDS = 0.5
"""Seconds between the end of the harness and that of the keeper, in which the guard asks the commands to end."""
IDLE_MILLISECONDS = 60_000
"""Milliseconds without a request after which views are not kept any more. They keep disks busy."""
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)
"""Signals that Python ignores or handles, and a command does not."""


class RunningProgram:
    """A started program, until the harness has no more use for it."""

    def __init__(self, pid: int, link: socket.socket) -> None:
        self.link = link
        self.exit = os.pidfd_open(pid)
        self.is_wanted = True
        """Whether the harness has its link still open."""

    def report(self) -> None:
        """Send the status of the ended program, without reaping it."""
        status = os.waitid(os.P_PIDFD, self.exit, os.WEXITED | os.WNOWAIT)
        if status is not None:
            kind = "exited" if status.si_code == os.CLD_EXITED else "signalled"
            _send(self.link, f"{kind} {status.si_status}")

    def release(self) -> bool:
        """Kill the program if it still runs. Reap it and return True if it has ended."""
        self.is_wanted = False
        signal.pidfd_send_signal(self.exit, signal.SIGKILL)
        return os.waitid(os.P_PIDFD, self.exit, os.WEXITED | os.WNOHANG) is not None


def main() -> NoReturn:
    """Serve requests from the socket that is stdin, until it closes. Never returns."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, 1 << 16)
    _serve(socket.socket(fileno=os.dup(0)), {*_IGNORED, *_BY_PYTHON}, in_session=False)


def keep_in_session(control: socket.socket) -> NoReturn:
    """Serve requests from `control` in a process that the harness forked for that. Never returns.

    The commands stay in the harness's session and process group, and ignore the signals that it ignored. The keeper leaves
    the group once it has started a command, so that signals to the group do not reach it.
    """
    try:
        usual = {number for number in _IGNORED if signal.getsignal(number) is not signal.SIG_IGN}
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        descriptor = fcntl.fcntl(control.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, 1 << 16)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in range(3):
            os.dup2(null, stream, inheritable=False)
        _serve(socket.socket(fileno=descriptor), {*usual, *_BY_PYTHON}, in_session=True)
    finally:
        os._exit(1)


def _serve(control: socket.socket, restored: AbstractSet[int], *, in_session: bool) -> NoReturn:
    os.chdir("/")
    kernel.load_for_namespaces()
    set_name(b"harness-keeper")
    namespaces: Namespaces | None = None
    views = KeptViews()
    try:
        namespaces = make()
        reason = on_a_thread(partial(why_not_held, namespaces))
    except OSError as error:
        reason = f"{errno.errorcode.get(error.errno or 0, error.errno)} at {error.strerror}"
    if reason or namespaces is None:
        _send(control, f"no {reason}")
        os._exit(0)
    _send(control, f"yes {os.getpid()} {namespaces.init}")
    service = _Service(control, namespaces, views, restored, in_session=in_session)
    service.run()
    if not in_session:
        time.sleep(LINGER_SECONDS)
    service.kill()
    os._exit(0)


class _Service:
    """The programs of one keeper, and the descriptors on which it waits."""

    def __init__(
        self,
        control: socket.socket,
        namespaces: Namespaces,
        views: KeptViews,
        restored: AbstractSet[int],
        *,
        in_session: bool,
    ) -> None:
        self._control = control
        self._namespaces = namespaces
        self._views = views
        self._restored = restored
        self._in_session = in_session
        self._init = os.pidfd_open(namespaces.init) if namespaces.init else -1
        self._programs: dict[int, RunningProgram] = {}
        """Running and ended programs, by the descriptors of their end and of their link."""
        self._poll = select.poll()
        for descriptor in (control.fileno(), self._init):
            if descriptor >= 0:
                self._poll.register(descriptor, select.POLLIN)

    def run(self) -> None:
        """Serve requests until the control socket closes, or the first process of the namespace has ended."""
        while True:
            ready = self._poll.poll(IDLE_MILLISECONDS)
            if not ready:
                self._views.forget()
            for descriptor, _ in ready:
                if descriptor == self._init:
                    return
                if descriptor == self._control.fileno():
                    received = _receive(self._control)
                    if not received:
                        return
                    self._start(received)
                elif descriptor in self._programs:
                    self._follow(self._programs[descriptor], descriptor)

    def kill(self) -> None:
        """Kill the programs that still run, and reap them. Then wait for the namespace's first process, which ends last."""
        unreaped = [program for program in set(self._programs.values()) if not program.release()]
        if self._namespaces.alive >= 0:
            os.close(self._namespaces.alive)
        for program in unreaped:
            os.waitid(os.P_PIDFD, program.exit, os.WEXITED)
        if self._init >= 0:
            os.waitid(os.P_PIDFD, self._init, os.WEXITED)

    def _start(self, received: list[int]) -> None:
        namespaces = self._namespaces
        shared = (namespaces.network, namespaces.processes, namespaces.alive)
        program = _started(
            received, partial(_Start, namespaces, self._views, self._restored, in_session=self._in_session)
        )
        if program is None:
            _close_all_but({self._control.fileno(), self._init, *shared, *self._programs, *self._views.descriptors})
            return
        if self._in_session:
            os.setpgid(0, 0)
        for descriptor in (program.exit, program.link.fileno()):
            self._programs[descriptor] = program
            self._poll.register(descriptor, select.POLLIN)

    def _follow(self, program: RunningProgram, descriptor: int) -> None:
        """Report the end of a program, or release one that the harness does not need any more."""
        self._poll.unregister(descriptor)
        if descriptor == program.exit and program.is_wanted:
            program.report()
            return
        if not program.release():
            return  # it cannot be killed now: its end is noticed later
        for number in (program.exit, program.link.fileno()):
            self._programs.pop(number, None)
            try:
                self._poll.unregister(number)
            except KeyError:
                pass
        os.close(program.exit)
        program.link.close()


def _receive(control: socket.socket) -> list[int]:
    """Return the descriptors of the next request: its text, its link, and those for the program. Empty at the end."""
    size = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
    _message, ancillary, _flags, _address = control.recvmsg(16, size, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return descriptors.tolist()


def _started(
    received: list[int], start_of: Callable[[Mapping[str, Any], Sequence[int]], _Start]
) -> RunningProgram | None:
    """Start the program of a request, and answer. Return it, or `None` if it could not be started."""
    text, link_descriptor, *streams = received
    link = socket.socket(fileno=link_descriptor)
    with open(text, "rb") as file:
        request: Mapping[str, Any] = marshal.loads(file.read())  # noqa: S302 - from the harness, over our own socket
    start = start_of(request, streams)
    try:
        pid = on_a_thread(start.run)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        _send(link, f"{start.stage} {number or errno.EIO} {getattr(error, 'strerror', None) or error}")
        link.detach()  # closed with the other descriptors
        return None
    for descriptor in streams:
        os.close(descriptor)
    door = () if start.door is None else (start.door.fileno(),)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", door))] if door else []
    try:
        link.sendmsg([f"started {pid}".encode()], rights)
    except OSError:
        pass  # the harness has ended, and the closed link ends the program
    if start.door is not None:
        start.door.close()
    return RunningProgram(pid, link)


class _Start:
    """The start of one program, on its own thread."""

    def __init__(
        self,
        namespaces: Namespaces,
        views: KeptViews,
        restored: AbstractSet[int],
        request: Mapping[str, Any],
        streams: Sequence[int],
        *,
        in_session: bool,
    ) -> None:
        self._namespaces = namespaces
        self._views = views
        self._restored = restored
        self._request = request
        self._streams = streams
        self._in_session = in_session
        self.stage = "walls"
        """The stage that failed: "walls" or "start"."""
        self.door: socket.socket | None = None

    def run(self) -> int:
        """Build the view, enter the walls, and start the program. Return its number. Raises OSError."""
        request = self._request
        numbers = request["numbers"]
        ruleset = self._streams[len(numbers)] if request["has_ruleset"] else -1
        if request["view"] is not None:
            self._views.enter(request["view"], has_own_processes=self._namespaces.processes >= 0)
            if ruleset >= 0:
                allow_writing(ruleset)
        if request["network"] == Network.SESSION:
            mounts.enter_namespace(self._namespaces.network, mounts.NEW_NETWORK)
        elif request["network"] == Network.DOOR:
            new_network()
            self.door = _listen()
        if self._namespaces.processes >= 0:
            mounts.enter_namespace(self._namespaces.processes, mounts.NEW_PROCESSES)
        enter_walls(request["capabilities"], ruleset, request["filter"])
        self.stage = "start"
        os.chdir(request["cwd"])
        return self._spawn()

    def _spawn(self) -> int:
        """Start the program with its descriptors at their numbers (posix_spawn(3), which does not copy this process)."""
        request = self._request
        numbers: Sequence[int] = request["numbers"]
        # Above every number, so that no number is taken before it is copied.
        above = [
            fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(numbers) + 1)
            for descriptor in self._streams[: len(numbers)]
        ]
        actions: list[tuple[Any, ...]] = []
        for descriptor, number in zip(above, numbers, strict=True):
            if number == 0 and request["terminal"]:  # opened by the leader of a session, it becomes its terminal
                actions.append((os.POSIX_SPAWN_OPEN, 0, f"/proc/self/fd/{descriptor}", os.O_RDWR, 0))
            else:
                actions.append((os.POSIX_SPAWN_DUP2, descriptor, number))
        try:
            return os.posix_spawn(
                request["executable"],
                request["argv"],
                request["environment"],
                file_actions=actions,
                setsid=not self._in_session,
                setsigmask=(),
                setsigdef=self._restored,
            )
        finally:
            for descriptor in above:
                os.close(descriptor)


def enter_walls(capabilities: int, ruleset: int, program: bytes) -> None:
    """Confine the calling thread after its view was built. Raises OSError."""
    kernel.forbid_new_privileges()
    kernel.keep_capabilities(capabilities)
    if ruleset >= 0:
        kernel.restrict_thread(ruleset)
    if program:
        kernel.filter_calls(program)


def _listen() -> socket.socket:
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(DOOR)
    door.listen(WAITING)
    return door


def _send(link: socket.socket, text: str) -> None:
    try:
        link.send(text.encode("utf-8", "replace"))
    except OSError:
        pass  # the harness has ended or needs no answer


def _close_all_but(used: set[int]) -> None:
    """Close the descriptors that a failed start left open. INVARIANT: no other thread is starting a program."""
    for descriptor in range(3, 1024):
        if descriptor not in used:
            try:
                os.close(descriptor)
            except OSError:
                pass
