"""What lies outside the walls, and tells what reaches it: listeners, a terminal, another process of the same user."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import selectors
import socket
import stat
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import Sequence

from second_wall_attempts import ABSTRACT, TCP, TCP6, UDP, Kind
from second_wall_files import WORKSPACE

_STREAMS = ("/run/docker.sock", "/run/user/bus", "/tmp/tmux/default", "/tmp/ssh/agent", f"{WORKSPACE}/app.sock")

_CANARY = """\
import ctypes, os, signal, sys, time
held = ctypes.create_string_buffer(b"canary!!", 4096)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
open("/proc/self/comm", "w").write("canary")
print(ctypes.addressof(held), flush=True)
while True: time.sleep(1000)
"""


class Listeners:
    """Programs outside the walls that one can talk to: what reaches them is told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._got: list[tuple[Kind, str]] = []
        self._add(Kind.SENT, "TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", TCP))
        self._add(Kind.SENT, "TCP over IPv6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", TCP6))
        self._add(Kind.SENT, "UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", UDP))
        self._add(Kind.SENT, "an abstract Unix socket", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{ABSTRACT}")
        self._add(Kind.SENT, "an abstract Unix socket", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{ABSTRACT}-datagram")
        for path in _STREAMS:
            self._add(Kind.SOCKET, path, socket.AF_UNIX, socket.SOCK_STREAM, path)
        self._add(Kind.SOCKET, "/run/log", socket.AF_UNIX, socket.SOCK_DGRAM, "/run/log")
        self._wake, wake = socket.socketpair()
        self._selector.register(wake, selectors.EVENT_READ, None)
        self._open = True
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _add(self, kind: Kind, name: str, family: int, style: int, address: object) -> None:
        made = socket.socket(family, style)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if isinstance(address, str) and address.startswith("/"):
            os.makedirs(os.path.dirname(address), exist_ok=True)
            if os.path.lexists(address):
                os.unlink(address)
        made.bind(address)  # type: ignore[arg-type]
        made.setblocking(False)
        if style == socket.SOCK_STREAM:
            made.listen(16)
        self._selector.register(made, selectors.EVENT_READ, (kind, name))

    def _serve(self) -> None:
        """Take what comes as it comes, so that who connects is not kept waiting."""
        while self._open:
            self._selector.select()
            self._take()

    def _take(self) -> None:
        with self._lock:
            for key, _ in self._selector.select(0):
                if key.data is None or not isinstance(key.fileobj, socket.socket):
                    continue
                kind, name = key.data
                try:
                    if key.fileobj.type == socket.SOCK_STREAM:
                        key.fileobj.accept()[0].close()
                    else:
                        key.fileobj.recv(4096)
                except OSError:
                    continue
                self._got.append((kind, name))

    def taken(self) -> list[tuple[Kind, str]]:
        """Return what came since this was asked last."""
        self._take()
        with self._lock:
            got, self._got = self._got, []
        return got

    def close(self) -> None:
        self._open = False
        self._wake.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._wake.close()


class Terminal:
    """The terminal at which a person sits: something typed that nobody has read yet, and what is shown."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        os.write(self._master, b"typed")
        os.set_blocking(self._master, False)
        while self._state()[0] != 5:  # the kernel hands it on when it gets to it
            time.sleep(0.001)
        self._settings = self._state()

    def _state(self) -> tuple[object, ...]:
        waiting = array.array("i", [0])
        fcntl.ioctl(self.slave, termios.FIONREAD, waiting)
        size = fcntl.ioctl(self.slave, termios.TIOCGWINSZ, bytes(8))
        return waiting[0], size, termios.tcgetattr(self.slave), stat.S_IMODE(os.fstat(self.slave).st_mode)

    def changes(self) -> list[str]:
        """Say what was done to it."""
        try:
            shown = os.read(self._master, 4096)
        except BlockingIOError:
            shown = b""
        changes = [f"it shows {shown!r}"] if shown else []
        return changes + (["what was typed, or its settings, changed"] if self._state() != self._settings else [])

    def close(self) -> None:
        os.close(self._master)
        os.close(self.slave)


class Canary:
    """Another process of the same user, that takes note of what is done to it: every signal stays pending."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CANARY], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self.address = int(self._process.stdout.readline())
        self.pid = self._process.pid
        self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        while state_of(self.pid)[0] != "S":
            time.sleep(0.01)
        self._good = self._state()

    def _state(self) -> tuple[object, ...]:
        return (*state_of(self.pid), os.pread(self._memory, 8, self.address), *_pending(self.pid))

    def changes(self) -> list[tuple[Kind, str]]:
        """Say what was done to it."""
        try:
            now = self._state()
        except (OSError, IndexError):
            return [(Kind.SIGNALLED, "the canary is dead")]
        changes = []
        if now[0] not in ("S", "D") or now[-2:] != self._good[-2:]:
            changes.append((Kind.SIGNALLED, f"the canary is {now[0]}, signals {now[-2:]}"))
        if now[1:-2] != self._good[1:-2]:
            changes.append((Kind.OTHERS, f"the canary: {differences(self._good[1:-2], now[1:-2])}"))
        return changes

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._memory)


def state_of(pid: int) -> tuple[object, ...]:
    """Return the state, and what other processes may have changed, of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        text = file.read()
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        limits = file.read()
    settings = [text_of(f"/proc/{pid}/{name}") for name in ("oom_score_adj", "coredump_filter")]
    if fields[0] == "Z":
        raise ProcessLookupError
    return (
        fields[0], name, fields[15:17], fields[38:40], sorted(os.sched_getaffinity(pid)), limits, settings, _io_priority(pid)
    )  # fmt: skip


def _io_priority(pid: int) -> int:
    number = {"x86_64": 252, "aarch64": 31}.get(os.uname().machine)  # ioprio_get
    return 0 if number is None else int(ctypes.CDLL(None).syscall(number, 1, pid))


def _pending(pid: int) -> list[str]:
    return [
        line.split()[1] for line in text_of(f"/proc/{pid}/status").splitlines() if line.startswith(("SigPnd", "ShdPnd"))
    ]


def text_of(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def differences(before: Sequence[object], after: Sequence[object]) -> str:
    return str([pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]])[:500]
