"""The resident: one process per user that has loaded the program, and has forked processes answer the events of agents.

A forked process (event_process.py) serves the clients of one environment. The resident itself reads no event, keeps no
session, no key and no log, and runs no thread. It ends after some idle minutes, or as soon as a file of the program
changed.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

import harness.programs
import harness.shell
from harness.paths import is_within
from harness.plugins.agents.commands.event_process import EventProcess, serve
from harness.plugins.agents.guarded_agent import AGENTS
from harness.plugins.agents.resident_client import (
    GREETING,
    peer_credentials,
    peer_surroundings,
    surroundings,
)
from harness.policy.loader import load_policy, shipped_policy_path
from harness.policy.rules import Layer
from harness.redaction.shapes import SHAPES, shape_spans
from harness.regex import compile_all
from harness.sandbox.machine import landlock_trial, seccomp_trial

IDLE_SECONDS = 300.0
"""Seconds without an event after which the resident ends."""
LOOK_SECONDS = 20.0
"""Seconds after which an idle resident looks whether its socket is still there."""
MOST_CHILDREN = 64
"""Maximum number of events at once. Further clients decide theirs themselves."""
MOST_IDLE = 4
"""Maximum number of processes that wait for the next event of their environment."""
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


def start_for_agent(words: Sequence[str], environment: MutableMapping[str, str]) -> NoReturn:
    """Run `harness resident SOCKET LOCK`: answer the clients at the socket until the resident is idle or stale. Exits.

    The descriptor LOCK keeps others from starting a resident until this one listens. `environment` is that of this
    process.
    """
    _, path, lock = words
    os.closerange(int(lock) + 1, os.sysconf("SC_OPEN_MAX"))  # what the agent left open to its hook
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
        self._busy: list[EventProcess] = []
        self._idle: list[EventProcess] = []
        """Processes that wait for another event, the last used at the end."""
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
        while listens or self._busy:
            ready = {descriptor for descriptor, _ in self._poll.poll(self._look_seconds * 1000)}
            idle = 0.0 if ready or self._busy else idle + self._look_seconds
            for process in (*self._idle, *self._busy):  # `_end` removes idle ones
                if not ready.isdisjoint((process.control.fileno(), process.handle)):
                    self._end(process)
                elif process.link is not None and process.link.fileno() in ready:
                    self._poll.unregister(process.link)
                    process.kill()  # its client is gone
            if listens and self._listener.fileno() in ready:
                listens = self._accept()
            listens = listens and idle < self._idle_seconds and self._is_reachable()
            if not listens:
                self._close()

    def _accept(self) -> bool:
        """Have a process answer the next client. Return whether the resident may serve further ones."""
        link, _ = self._listener.accept()
        if _states(self._files) != self._states:
            link.close()
            return False
        key = _environment_key(link)
        if (
            self._surroundings is None
            or peer_surroundings(link) != self._surroundings
            or len(self._busy) >= MOST_CHILDREN
        ):
            link.close()
            return True
        for stopped in [process for process in self._idle if process.key == key and process.is_stopped]:
            self._idle.remove(stopped)
            self._remove(stopped)
        process = next((process for process in reversed(self._idle) if process.key == key), None)
        if process is None:
            process = self._fork(key, link)
        else:
            self._idle.remove(process)
        self._busy.append(process)
        try:
            process.begin(link)
        except OSError:
            link.close()
            return True
        self._poll.register(link, 0)  # only its end: the process reads the request
        with suppress(OSError):
            link.send(GREETING)
        return True

    def _fork(self, key: int, link: socket.socket) -> EventProcess:
        """Fork a process for the environment of a client. `key` is the number of the environment."""
        parent = os.getpid()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            for process in (*self._busy, *self._idle):
                process.close()
            for other in (self._listener, ours, link):
                other.close()
            serve(theirs, parent, self._environment)
        theirs.close()
        process = EventProcess(pid, ours, key)
        self._poll.register(process.control, select.POLLIN)
        self._poll.register(process.handle, select.POLLIN)
        return process

    def _end(self, process: EventProcess) -> None:
        """Tell a client the exit code of its event, and keep the process for the next one if it waits for that."""
        if process.link is not None:
            with suppress(KeyError):
                self._poll.unregister(process.link)
        (self._busy if process in self._busy else self._idle).remove(process)
        if process.end():
            self._idle.append(process)
        else:
            self._forget(process)
        if len(self._idle) > MOST_IDLE:
            self._remove(self._idle.pop(0))

    def _remove(self, process: EventProcess) -> None:
        """Kill a process that answers no event."""
        process.kill()
        process.end()
        self._forget(process)

    def _forget(self, process: EventProcess) -> None:
        self._poll.unregister(process.control)
        self._poll.unregister(process.handle)
        process.close()

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


def _environment_key(link: socket.socket) -> int:
    """Return a number for the environment of a client: equal environments have the same one.

    The number only selects a process, which compares the environments themselves.
    """
    process, _ = peer_credentials(link)
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return hash(file.read())
    except OSError:
        return 0


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
