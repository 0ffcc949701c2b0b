"""A process of the resident that answers the events of one environment, one after the other.

It has the streams, folder, umask and environment of the client whose event it answers (resident_client.py), and decides
as a process of its own would. INVARIANT: it never gets the event of a client with another environment, and it ends unless
an event left it as it was: with the same open files, no thread and no child.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import MutableMapping
from contextlib import suppress
from functools import partial
from typing import NoReturn

from harness.errors import UsageError
from harness.plugins.agents.commands import each_call
from harness.plugins.agents.resident_client import NUMBER, WAITS, WORKS, peer_credentials
from harness.process import procfs
from harness.process.hardening import end_with_parent

REQUEST_SECONDS = 20.0
"""Maximum seconds until a client has sent its request."""
MOST_REQUEST = 64 * 1024 * 1024
MOST_EVENTS = 50
"""Maximum number of events of one process, which collects no garbage."""
FAILED = 2
"""Exit code of an event whose process failed: it refuses the call."""
_STREAMS = (0, 1, 2)


class EventProcess:
    """A process that answers events, as the resident sees it."""

    def __init__(self, pid: int, control: socket.socket, key: int) -> None:
        """`control` is connected to the process, and `key` is the number of the environment of its clients."""
        self.control = control
        self.key = key
        self.handle = os.pidfd_open(pid)
        """The descriptor that is readable when the process has ended."""
        self.link: socket.socket | None = None
        """The connection to the client whose event it answers."""
        self._pid = pid

    def begin(self, link: socket.socket) -> None:
        """Have the process answer a client. Raises OSError if it has ended."""
        socket.send_fds(self.control, [b"\0"], [link.fileno()])
        self.link = link

    def end(self) -> bool:
        """Tell the client the exit code of its event, and return whether the process waits for another one."""
        code = b""
        with suppress(OSError):  # it has ended
            code = self.control.recv(1, socket.MSG_DONTWAIT)
        waits = bool(code)
        if not waits:
            _, status = os.waitpid(self._pid, 0)
            number = os.waitstatus_to_exitcode(status)
            code = bytes([number]) if number >= 0 else b""
        if self.link is not None:
            with suppress(OSError):
                self.link.send(code)
            self.link.close()  # without a code, the client refuses
            self.link = None
        return waits

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger stopped the process, or it has ended."""
        process = procfs.process(self._pid)
        return process is None or process.state in "TtZX"

    def kill(self) -> None:
        """Kill the process, which `end` has not reaped."""
        os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the connections to the process and its client."""
        self.control.close()
        os.close(self.handle)
        if self.link is not None:
            self.link.close()


def serve(control: socket.socket, parent: int, environment: MutableMapping[str, str]) -> NoReturn:
    """Answer the clients that come by `control`, in a process forked from `parent`. Never returns.

    `environment` is that of this process.
    """
    try:
        end_with_parent()
        if os.getppid() != parent:
            os._exit(FAILED)
        variables: dict[str, str] | None = None
        state = _state()
        for remaining in reversed(range(MOST_EVENTS)):
            _, descriptors, _, _ = socket.recv_fds(control, 1, 1, socket.MSG_CMSG_CLOEXEC)
            if not descriptors:
                os._exit(0)
            link = socket.socket(fileno=descriptors[0])
            words, theirs = _take_over(link)
            client, _ = peer_credentials(link)
            if variables is None:
                variables = theirs
                environment.clear()
                environment.update(variables)
                time.tzset()
            elif variables != theirs:
                raise UsageError("the event has another environment")  # noqa: TRY301 - every error is reported below
            sys.argv[1:] = words
            code = each_call.answer_event(words, environment, process=client, on_wait=partial(_tell, link))
            link.close()
            if code is None:
                raise UsageError("no such agent")  # noqa: TRY301 - every error is reported below
            _leave_surroundings()
            if not remaining or _state() != state or dict(environment) != variables:
                os._exit(code)
            control.send(bytes([code]))
    except BaseException as error:  # noqa: BLE001 - this process must not continue
        with suppress(OSError):
            os.write(2, f"harness refuses this call: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(FAILED)


def _take_over(link: socket.socket) -> tuple[list[str], dict[str, str]]:
    """Take on the streams, folder and umask of a request. Return its words and its environment."""
    link.settimeout(REQUEST_SECONDS)
    data, descriptors, _, _ = socket.recv_fds(link, NUMBER, 4, socket.MSG_WAITALL)
    body = _read(link, int.from_bytes(data, "big"))
    *streams, folder = descriptors
    for stream, descriptor in zip(_STREAMS, streams, strict=True):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.fchdir(folder)
    os.close(folder)
    umask, count, *fields = map(os.fsdecode, body.split(b"\0"))
    os.umask(int(umask))
    variables = {}
    for variable in fields[int(count) :]:
        name, _, value = variable.partition("=")
        variables[name] = value
    return fields[: int(count)], variables


def _tell(link: socket.socket, is_waiting: bool) -> None:
    """Tell a client that its event waits for a person, or that it does not any more."""
    with suppress(OSError):  # the resident ends this process with its client
        link.send(WAITS if is_waiting else WORKS)


def _leave_surroundings() -> None:
    """Close the streams of a client, and leave its folder."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in _STREAMS:
        os.dup2(null, stream)
    os.close(null)
    os.chdir("/")


def _state() -> tuple[object, ...]:
    """Return the open files and threads of this process, and whether it has a child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        has_child = True
    except ChildProcessError:
        has_child = False
    return sorted(os.listdir("/proc/self/fd")), os.listdir("/proc/self/task"), has_child


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
