"""The resident: one process per user that has loaded the program, and forks a process for each event of an agent.

The forked process has the streams, folder and environment of the client (resident_client.py), and decides as a process
of its own would. The resident itself reads no event, keeps no session, no key and no log, and runs no thread. It ends
after some idle minutes, or as soon as a file of the program changed.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

import harness.programs
import harness.shell
from harness.errors import UsageError
from harness.paths import is_within
from harness.plugins.agents.commands import each_call
from harness.plugins.agents.guarded_agent import AGENTS
from harness.plugins.agents.resident_client import GREETING, NUMBER, peer_surroundings, surroundings
from harness.policy.loader import load_policy, shipped_policy_path
from harness.policy.rules import Layer
from harness.process.hardening import end_with_parent
from harness.record import Record
from harness.redaction.shapes import SHAPES, shape_spans
from harness.regex import compile_all
from harness.sandbox.machine import landlock_trial, seccomp_trial

IDLE_SECONDS = 300.0
"""Seconds without an event after which the resident ends."""
LOOK_SECONDS = 20.0
"""Seconds after which an idle resident looks whether its socket is still there."""
REQUEST_SECONDS = 20.0
"""Maximum seconds until a client has sent its request."""
MOST_CHILDREN = 64
"""Maximum number of events at once. Further clients decide theirs themselves."""
MOST_REQUEST = 64 * 1024 * 1024
FAILED = 2
"""Exit code of an event whose process failed: it refuses the call."""
WARM = (
    "harness.files.file_changes",
    "harness.files.hard_links",
    "harness.log.heads_file",
    "harness.plugins.agents.answering",
    "harness.plugins.agents.judging",
    "harness.plugins.agents.submitted_prompt",
    "harness.plugins.agents.tickets",
    "harness.policy.tool_arguments",
    "harness.sandbox.keeper",
    "harness.session.advice",
    "harness.session.config.config_file",
    "harness.session.environment_secrets",
    "harness.session.extensions.hooks_here",
    "harness.session.kept_grants",
    "harness.session.policies",
    "harness.session.waiting",
    "harness.tools.bash",
    "harness.tools.command_runner",
    "harness.tools.forbidden_files",
)
"""Modules that the deciding of an event imports late, besides the agents and the models of programs."""


class EventProcess(Record):
    """The process of one event."""

    pid: int
    link: socket.socket
    """The connection to its client."""
    handle: int
    """The descriptor that is readable when the process has ended (pidfd_open(2))."""


def start_for_agent(words: Sequence[str], environment: MutableMapping[str, str]) -> NoReturn:
    """Run `harness resident SOCKET LOCK`: answer the clients at the socket until the resident is idle or stale. Exits.

    The descriptor LOCK keeps others from starting a resident until this one listens. `environment` is that of this
    process.
    """
    _, path, lock = words
    os.chdir("/")
    warm()
    resident = Resident(path, environment)
    os.close(int(lock))
    gc.collect()
    gc.freeze()  # so that a collection in a child copies no page
    gc.disable()
    resident.run()
    os._exit(0)


def warm() -> None:
    """Load all that the deciding of any event needs, and that depends on this installation alone."""
    rooms = (harness.programs, harness.shell)
    modules = [f"{room.__name__}.{module.name}" for room in rooms for module in iter_modules(room.__path__)]
    agents = (f"harness.plugins.agents.{module}" for module in AGENTS.values())
    for name in (*WARM, *modules, *agents):
        import_module(name)
    compile_all()
    list(shape_spans(" ".join(word for shape in SHAPES for word in shape.words), SHAPES))  # compiles them
    landlock_trial(), seccomp_trial()
    load_policy(shipped_policy_path("default"), layer=Layer.SHIPPED, examples=False)


class Resident:
    """The listening socket, and the processes of the events that are being decided."""

    def __init__(
        self,
        path: str,
        environment: MutableMapping[str, str],
        *,
        idle_seconds: float = IDLE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Listen at `path`. `environment` is that of this process. Raises OSError."""
        self._path = path
        self._idle_seconds = idle_seconds
        self._look_seconds = min(look_seconds, idle_seconds)
        self._environment = environment
        self._surroundings = surroundings("self")
        self._files = _own_files()
        self._states = _states(self._files)
        self._children: dict[int, EventProcess] = {}
        self._poll = select.poll()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        new_path = f"{path}.{os.getpid()}"
        with suppress(FileNotFoundError):
            os.unlink(new_path)
        self._listener.bind(new_path)
        os.chmod(new_path, 0o600)
        self._listener.listen(MOST_CHILDREN)
        os.rename(new_path, path)
        self._socket = os.lstat(path).st_ino
        self._poll.register(self._listener, select.POLLIN)

    def run(self) -> None:
        """Serve until the resident is idle, or its program changed."""
        listens, idle = True, 0.0
        while listens or self._children:
            ready = {descriptor for descriptor, _ in self._poll.poll(self._look_seconds * 1000)}
            idle = 0.0 if ready or self._children else idle + self._look_seconds
            for child in [*self._children.values()]:
                if child.handle in ready:
                    self._end(child)
                elif child.link.fileno() in ready:
                    self._kill(child)
            if listens and self._listener.fileno() in ready:
                listens = self._accept()
            listens = listens and idle < self._idle_seconds and self._is_reachable()
            if not listens:
                self._close()

    def _accept(self) -> bool:
        """Fork a process for the next client. Return whether the resident may serve further ones."""
        link, _ = self._listener.accept()
        if _states(self._files) != self._states:
            link.close()
            return False
        if (
            self._surroundings is None
            or peer_surroundings(link) != self._surroundings
            or len(self._children) >= MOST_CHILDREN
        ):
            link.close()
            return True
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(link, parent)
        handle = os.pidfd_open(pid)
        self._children[handle] = EventProcess(pid=pid, link=link, handle=handle)
        self._poll.register(handle, select.POLLIN)
        self._poll.register(link, 0)  # only its end: the child reads the request
        with suppress(OSError):
            link.send(GREETING)
        return True

    def _end(self, child: EventProcess) -> None:
        """Tell a client the exit code of its process."""
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._poll.unregister(child.handle)
        del self._children[child.handle]
        os.close(child.handle)
        with suppress(KeyError):
            self._poll.unregister(child.link)
        if code >= 0:
            with suppress(OSError):
                child.link.send(bytes([code]))
        child.link.close()  # without a code, the client refuses

    def _kill(self, child: EventProcess) -> None:
        """Kill the process of a client that is gone."""
        self._poll.unregister(child.link)
        os.kill(child.pid, signal.SIGKILL)  # it is not reaped yet, so the number is its own

    def _close(self) -> None:
        if self._listener.fileno() < 0:
            return
        with suppress(OSError):
            if self._is_reachable():
                os.unlink(self._path)
        self._poll.unregister(self._listener)
        self._listener.close()

    def _is_reachable(self) -> bool:
        """Return whether the socket is where the clients look for it."""
        try:
            return os.lstat(self._path).st_ino == self._socket
        except OSError:
            return False

    def _become(self, link: socket.socket, parent: int) -> NoReturn:
        """Answer one client in a forked process: take on its streams, folder and environment. Never returns."""
        try:
            end_with_parent()
            if os.getppid() != parent:
                os._exit(FAILED)
            self._listener.close()
            for child in self._children.values():
                child.link.close()
                os.close(child.handle)
            words = self._take_over(link)
            peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            link.close()
            client = int.from_bytes(peer[:4], sys.byteorder, signed=True)
            each_call.start_for_agent(words, self._environment, client)
            raise UsageError("no such agent")  # noqa: TRY301 - every error is reported below
        except BaseException as error:  # noqa: BLE001 - this process must not continue
            with suppress(OSError):
                os.write(2, f"harness refuses this call: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(FAILED)

    def _take_over(self, link: socket.socket) -> list[str]:
        """Read the request, and take on all that it says. Return the words of the command line."""
        link.settimeout(REQUEST_SECONDS)
        data, descriptors, _, _ = socket.recv_fds(link, NUMBER, 4, socket.MSG_WAITALL)
        body = _read(link, int.from_bytes(data, "big"))
        *streams, folder = descriptors
        for stream, descriptor in enumerate(streams):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.fchdir(folder)
        os.close(folder)
        umask, count, *fields = map(os.fsdecode, body.split(b"\0"))
        os.umask(int(umask))
        words, variables = fields[: int(count)], fields[int(count) :]
        self._environment.clear()
        for variable in variables:
            name, _, value = variable.partition("=")
            self._environment[name] = value
        time.tzset()
        sys.argv[1:] = words
        return words


def _read(link: socket.socket, size: int) -> bytes:
    if size > MOST_REQUEST:
        raise ValueError(f"a request of {size} bytes")
    data = bytearray()
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            raise EOFError("the request was cut")
        data += piece
    return bytes(data)


def _own_files() -> tuple[str, ...]:
    """Return the files of this program that are loaded, without Python's library: an upgrade changes them."""
    library = os.path.dirname(os.__file__)
    paths = {getattr(module, "__file__", None) or library for module in sys.modules.copy().values()}
    return (sys.executable, *(path for path in paths if "-packages/" in path or not is_within(path, library)))


def _states(paths: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return inode, size and time of change of each file; zeros for one that is gone."""
    states = []
    for path in paths:
        try:
            status = os.stat(path)
            states.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            states.append((0, 0, 0))
    return states
