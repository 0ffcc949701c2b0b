"""Processes of the program without what starting Python costs: one process has imported it, and forks for each start.

A fork is a process like any other: arguments, environment, folder, descriptors, signals and exit code are its own. What a
test says of starting itself (imports, variables of Python) needs the program as it is installed; see Program.start.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from typing import IO, Any

SERVER = """
import gc, json, os, select, signal, socket, sys
import harness.cli.main, harness.cli.run.run_command, harness.cli.repl.repl_command, harness.loop.agent
import harness.models.openai_chat, openai
gc.freeze()

def serve(asked):
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([asked, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            while True:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if not pid:
                    break
                asked.send(json.dumps(["ended", pid, status]).encode())
        if asked in ready:
            data, given, _, _ = socket.recv_fds(asked, 1_000_000, 4)
            if not data:
                os._exit(0)
            wanted = json.loads(data)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number in (asked.fileno(), woken, wake):
                    os.close(number)
                return wanted, given
            for number in given:
                os.close(number)
            asked.send(json.dumps(["began", pid]).encode())

wanted, given = serve(socket.socket(fileno=int(sys.argv[1])))
if wanted["session"]:
    os.setsid()
given = [os.dup2(number, number + 100) for number in given]
for place, number in enumerate(given):
    os.dup2(number, place)
    os.close(number)
os.closerange(3, 200)
os.chdir(wanted["cwd"])
os.environ.clear()
os.environ.update(wanted["environment"])
sys.argv[:] = ["harness", *wanted["arguments"]]
sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")
harness.cli.main.program()
"""


class ForkServer:
    """The process that has imported the program; made when first needed, one for a process of tests."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked = ours
        self._ended: dict[int, int] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()

    def start(
        self, arguments: list[str], environment: dict[str, str], cwd: str, descriptors: tuple[int, int, int], *, session: bool
    ) -> int:
        """Start the program, and return its process id."""
        wanted = {"arguments": arguments, "environment": environment, "cwd": cwd, "session": session}
        socket.send_fds(self._asked, [json.dumps(wanted).encode()], list(descriptors))
        while True:
            kind, pid, *_ = told = json.loads(self._asked.recv(1000))
            if kind == "began":
                return int(pid)
            self._ended[told[1]] = told[2]

    def status(self, pid: int, seconds: float | None) -> int | None:
        """Return the wait status of a process once it has ended; None where it has not after `seconds`."""
        while pid not in self._ended:
            if not select.select([self._asked], [], [], seconds)[0]:
                return None
            _, ended, status = json.loads(self._asked.recv(1000))
            self._ended[ended] = status
        return self._ended[pid]

    def close(self) -> None:
        """End the server; what it started goes on."""
        self._asked.close()
        self._process.wait()


class Forked(subprocess.Popen[bytes]):
    """A process of the program, used like one of `subprocess`."""

    def __init__(self, server: ForkServer, arguments: list[str], **options: Any) -> None:
        self._server = server
        self._ours: list[int] = []
        given, streams = [], []
        for name, mode in (("stdin", "wb"), ("stdout", "rb"), ("stderr", "rb")):
            number, stream = _ends(options.get(name), mode)
            given.append(number)
            streams.append(stream)
        if options.get("stderr") == subprocess.STDOUT:
            given[2] = os.dup(given[1])
        self.args = ["harness", *arguments]
        self.stdin, self.stdout, self.stderr = streams
        self.universal_newlines = self.text_mode = False
        self.encoding = self.errors = None
        self._input = None
        self._communication_started = False
        self._waitpid_lock = threading.Lock()
        self._child_created = True
        self.pipesize = -1
        self.returncode = None
        try:
            self.pid = server.start(
                arguments,
                dict(options["env"]),
                os.fspath(options["cwd"]),
                (given[0], given[1], given[2]),
                session=bool(options.get("start_new_session")),
            )
        finally:
            for number in given:
                os.close(number)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        status = self._server.status(self.pid, 0 if flags & os.WNOHANG else None)
        return (0, 0) if status is None else (self.pid, status)

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid == self.pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _ends(wanted: Any, mode: str) -> tuple[int, IO[bytes] | None]:
    """Return the descriptor that a process gets for one of its streams, and the stream that a test has of it."""
    if wanted is None:
        return os.dup({"wb": 0, "rb": 1}[mode]), None
    if wanted == subprocess.DEVNULL or wanted == subprocess.STDOUT:
        return os.open(os.devnull, os.O_RDWR), None
    if wanted != subprocess.PIPE:
        return os.dup(wanted if isinstance(wanted, int) else wanted.fileno()), None
    read, write = os.pipe()
    if mode == "wb":
        return read, os.fdopen(write, mode)
    return write, os.fdopen(read, mode)
