"""A Python as on macOS: on PYTHONPATH, this module takes from `os` and its like what a Mac lacks, and hides `/proc`.

The program itself runs on Linux. So only names and files are missing; what macOS does differently is not shown.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import resource
import select
import selectors
import signal
import socket
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

MISSING = {
    # typeshed: what is not there if sys.platform == "darwin". `waitid` came with Python 3.13.
    "os": """
        CLONE_FS CLONE_NEWNS EFD_CLOEXEC EFD_NONBLOCK EFD_SEMAPHORE GRND_NONBLOCK GRND_RANDOM MFD_ALLOW_SEALING MFD_CLOEXEC
        O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE P_ALL P_PGID P_PID P_PIDFD XATTR_CREATE XATTR_REPLACE
        copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom getresgid getresuid getxattr listxattr
        memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_getaffinity sched_setaffinity setns
        setresgid setresuid setxattr splice timerfd_create unshare waitid waitid_result
    """,
    "fcntl": """
        F_ADD_SEALS F_GET_SEALS F_GETPIPE_SZ F_NOTIFY F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_SEAL_GROW F_SEAL_SEAL
        F_SEAL_SHRINK F_SEAL_WRITE F_SETPIPE_SZ F_SETSIG F_GETSIG
    """,
    "resource": "RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_OFILE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING RUSAGE_THREAD prlimit",
    "select": "EPOLLIN EPOLLOUT EPOLL_CLOEXEC POLLMSG POLLRDHUP epoll",
    "signal": "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    "socket": """
        AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE
        SO_DOMAIN SO_MARK SO_PASSCRED SO_PASSSEC SO_PEERCRED SO_PEERSEC SO_PRIORITY SO_PROTOCOL SCM_CREDENTIALS
    """,
    "time": "CLOCK_BOOTTIME CLOCK_TAI",
}
"""Names that the modules of Python's library do not have on macOS."""
NO_CALLS = frozenset(
    "prctl capget capset mount umount2 syscall setns unshare renameat2 pivot_root inotify_init1".split()
)
"""Functions that the C library of macOS does not have, or that do something else there."""
F_FULLFSYNC = 51  # sys/fcntl.h of macOS
MAC = os.uname_result(("Darwin", "mac", "24.5.0", "Darwin Kernel", "arm64"))


def is_hidden(path: object) -> bool:
    """Return whether a path is below a file system that only Linux has."""
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return text.startswith(("/proc/", "/sys/")) or text in ("/proc", "/sys")


def _refuse(path: object) -> None:
    if is_hidden(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _on_event(name: str, arguments: tuple[object, ...]) -> None:
    if name in ("open", "os.listdir", "os.scandir", "os.chmod", "os.chdir", "os.link"):
        _refuse(arguments[0])
    elif name == "ctypes.dlsym" and arguments[1] in NO_CALLS:
        raise AttributeError(f"{arguments[1]}: symbol not found")
    elif name == "socket.__new__" and arguments[2] == 5:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")


def _looking(function: Callable[..., Any]) -> Callable[..., Any]:
    def look(path: object, *rest: Any, **named: Any) -> Any:
        _refuse(path)
        return function(path, *rest, **named)

    return look


def _fcntl(descriptor: Any, command: int, argument: Any = 0) -> Any:
    if command == F_FULLFSYNC:
        return os.fsync(descriptor)
    return _real_fcntl(descriptor, command, argument)


class _Poll:
    """poll(2) of macOS, which does not support devices."""

    def __init__(self) -> None:
        self._poll, self._devices = _real_poll(), set[int]()

    def register(self, file: Any, events: int = select.POLLIN | select.POLLOUT | select.POLLPRI) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if os.isatty(descriptor):
            self._devices.add(descriptor)
        else:
            self._poll.register(descriptor, events)

    def unregister(self, file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if descriptor in self._devices:
            self._devices.discard(descriptor)
        else:
            self._poll.unregister(descriptor)

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        refused = [(descriptor, select.POLLNVAL) for descriptor in sorted(self._devices)]
        return refused + self._poll.poll(0 if refused else timeout)


_real_fcntl, _real_poll = fcntl.fcntl, select.poll


def become() -> None:
    """Take from this Python what macOS lacks."""
    with suppress(ImportError):
        import_module("truststore")  # of httpcore2; on macOS it loads a framework of Apple's
    sys.addaudithook(_on_event)
    for module in (os, fcntl, resource, select, signal, socket, time):
        for name in MISSING[module.__name__].split():
            if hasattr(module, name):
                delattr(module, name)
    for name in ("stat", "lstat", "access", "readlink"):
        setattr(os, name, _looking(getattr(os, name)))
    del selectors.EpollSelector
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment]
    os.uname = lambda: MAC
    data = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
    sys.modules[data.replace("linux", "darwin", 1)] = import_module(data)
    sys.platform = "darwin"
    fcntl.F_FULLFSYNC = F_FULLFSYNC  # type: ignore[attr-defined]
    fcntl.fcntl = _fcntl
    select.poll = _Poll  # type: ignore[misc,assignment]
    platform.mac_ver = lambda *_: ("15.5", ("", "", ""), "arm64")
    proxies = ModuleType("_scproxy")  # urllib asks macOS for its proxies
    proxies._get_proxies = dict  # type: ignore[attr-defined]
    proxies._get_proxy_settings = dict  # type: ignore[attr-defined]
    sys.modules["_scproxy"] = proxies


if os.environ.get("HARNESS_TESTS_ON") == "darwin":
    become()
