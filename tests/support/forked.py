"""Processes of the program without what starting Python costs: one process has imported it, and forks for each start.

A fork is a process like any other: arguments, environment, folder, descriptors, signals and exit code are its own. What a
test says of starting itself (imports, variables of Python) or of how Python ends needs the program as it is installed; see
`can_fork`.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO, Any

LOCALE = "C.UTF-8"
"""Of the process that forks: a program that is to have another one is started as it is installed."""
OPTIONS = {
    "stdin",
    "stdout",
    "stderr",
    "cwd",
    "env",
    "start_new_session",
    "umask",
    "controlling_terminal",
    "file_size",
    "user",
}

# A request comes with the three streams and a pipe, to which the process id is written and, at its end, the wait status.
SERVER = """
import atexit, fcntl, gc, importlib, json, os, pkgutil, select, signal, socket, struct, sys, termios, threading, time
import ctypes, difflib, encodings.idna, resource, tty
import harness, openai, prompt_toolkit.shortcuts, rich.console
import prompt_toolkit.input.vt100, prompt_toolkit.key_binding.bindings.search
for module in pkgutil.walk_packages(harness.__path__, "harness."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
openai.OpenAI(api_key="none").close()  # loads what the first request would
gc.collect()
gc.freeze()

def serve(asked):
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports = {}
    while True:
        ready = select.select([asked, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            while reports:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                os.write(reports[pid], struct.pack("i", status))
                os.close(reports.pop(pid))
        if asked in ready:
            data, given, _, _ = socket.recv_fds(asked, 1_000_000, 4)
            if not data:
                os._exit(0)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return json.loads(data), given
            for number in given[:3]:
                os.close(number)
            os.write(given[3], struct.pack("i", pid))
            reports[pid] = given[3]

wanted, given = serve(socket.socket(fileno=int(sys.argv[1])))
if wanted["session"]:
    os.setsid()
given = [fcntl.fcntl(number, fcntl.F_DUPFD, 1000) for number in given[:3]]
for place, number in enumerate(given):
    os.dup2(number, place)
os.closerange(3, 4096)
if wanted["terminal"]:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if wanted["umask"] is not None:
    os.umask(wanted["umask"])
if wanted["file_size"] is not None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (wanted["file_size"], wanted["file_size"]))
if wanted["user"] is not None:
    os.setgroups([])
    os.setgid(wanted["user"])
    os.setuid(wanted["user"])
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: as a program that this user started
os.chdir(wanted["cwd"])
os.environ.clear()
os.environ.update(wanted["environment"])
time.tzset()
sys.argv[:] = [os.path.join(os.path.dirname(harness.__file__), "__main__.py"), *wanted["words"][1:]]  # as -m has it
sys.stdin = sys.__stdin__ = open(0)
sys.stdout = sys.__stdout__ = open(1, "w")
sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace")
try:
    harness.is_program = True
    harness.shipped.start_for_agent(sys.argv[1:], os.environ)
    harness.app.main.program()
except SystemExit as end:
    code = int(end.code)
# The end of Python, but for taking a thousand modules down: it takes as long as all before.
threading._shutdown()
atexit._run_exitfuncs()
for stream in (sys.stdout, sys.stderr):
    try:
        stream.flush()
    except (OSError, ValueError):
        code = 120
os._exit(code)
"""


def can_fork(environment: Mapping[str, str], options: Mapping[str, object]) -> bool:
    """Say whether a program with this environment, started with these options of `Popen`, is the same when it is forked."""
    if not set(options) <= OPTIONS:
        return False
    given = {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LC_", "LANG", "LD_"))}
    return given == {"LANG": LOCALE}


@cache
def fork_server() -> ForkServer:
    """Return the one of this process; made when first needed, and ended with it."""
    made = ForkServer()
    atexit.register(made.close)
    return made


class ForkServer:
    """The process that has imported the program."""

    def __init__(self) -> None:
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LANG": LOCALE},
        )
        theirs.close()

    def start(self, wanted: Mapping[str, object], streams: Sequence[int]) -> tuple[int, int]:
        """Start the program; return its process id, and the end of a pipe that its wait status comes from."""
        report, theirs = os.pipe()
        try:
            socket.send_fds(self._asked, [json.dumps(wanted).encode()], [*streams, theirs])
        finally:
            os.close(theirs)
        told = os.read(report, 4)
        if not told:
            raise RuntimeError("the process that forks the program has ended; stderr says why")
        return struct.unpack("i", told)[0], report

    def close(self) -> None:
        """End the server; what it started goes on."""
        self._asked.close()
        self._process.wait()


class Forked(subprocess.Popen[bytes]):
    """A process of the program, used like one of `subprocess`."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        """Start the program with `words`, the first of which is its name; `options` are those of `Popen` in `OPTIONS`, and
        `controlling_terminal`: the terminal on its stdin is that of its session; `file_size`: its files grow no larger;
        `user`: the number of the user and group that it belongs to."""
        streams: list[IO[bytes] | None] = []
        given: list[int] = []
        for name, mode in (("stdin", "wb"), ("stdout", "rb"), ("stderr", "rb")):
            number, stream = _ends(options.get(name), mode, given)
            given.append(number)
            streams.append(stream)
        self.args = [sys.executable, "-m", *words]
        self.stdin, self.stdout, self.stderr = streams
        self.universal_newlines = self.text_mode = False
        self.encoding = self.errors = None
        self.pipesize = -1
        self.returncode = None
        # What `communicate`, `wait` and `send_signal` look at besides.
        self._input = None
        self._communication_started = False
        self._waitpid_lock = threading.Lock()
        self._child_created = True
        wanted = {
            "words": list(words),
            "environment": dict(options["env"]),
            "cwd": os.fspath(options.get("cwd") or "."),
            "session": bool(options.get("start_new_session")),
            "terminal": bool(options.get("controlling_terminal")),
            "umask": options.get("umask"),
            "file_size": options.get("file_size"),
            "user": options.get("user"),
        }
        try:
            self.pid, self._report = fork_server().start(wanted, given)
        finally:
            for number in given:
                os.close(number)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if not select.select([self._report], [], [], 0 if flags & os.WNOHANG else None)[0]:
            return (0, 0)
        status = os.read(self._report, 4)
        os.close(self._report)
        return (self.pid, struct.unpack("i", status)[0] if status else 9)  # the server is gone

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        with self._waitpid_lock:
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def __del__(self, *_: object, **__: object) -> None:
        """Close what nobody waited for."""
        if self.returncode is None and hasattr(self, "_report"):
            os.close(self._report)


def _ends(wanted: Any, mode: str, before: Sequence[int]) -> tuple[int, IO[bytes] | None]:
    """Return the descriptor that a process gets for one of its streams, and the stream that a test has of it."""
    if wanted is None:
        return os.dup(len(before)), None
    if wanted == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    if wanted == subprocess.STDOUT:
        return os.dup(before[1]), None
    if wanted != subprocess.PIPE:
        return os.dup(wanted if isinstance(wanted, int) else wanted.fileno()), None
    read, write = os.pipe()
    if mode == "wb":
        return read, os.fdopen(write, mode)
    return write, os.fdopen(read, mode)
