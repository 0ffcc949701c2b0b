"""Namespaces of a session: users, mounts, shared memory, network and processes, made once by the keeper.

The keeper itself stays in the network and among the processes of the machine, since there is no way back to them. Threads
of it make the session's network and its processes' namespace, which are kept as descriptors.

A process with CAP_SYS_ADMIN needs no namespace of users. Any other gets one with its own user in it. That is possible only
for a process that is dumpable and has one thread (user_namespaces(7)).
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import struct
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from typing import NoReturn, TypeVar

from harness.sandbox import kernel, mounts

GET_FLAGS, SET_FLAGS = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS of <linux/sockios.h>
UP = 0x1  # IFF_UP of <linux/if.h>
T = TypeVar("T")


class Namespaces:
    """The namespaces that a session's commands share, as descriptors."""

    def __init__(self, network: int, processes: int, init: int, alive: int) -> None:
        self.network = network
        """Network with loopback only."""
        self.processes = processes
        """Namespace of processes. -1 if this machine forbids a new `/proc`: then commands see others' processes."""
        self.init = init
        """First process of that namespace: it adopts orphans, and all others end with it. 0 without one."""
        self.alive = alive
        """Pipe that keeps the first process running while it is open. -1 without one."""


def make() -> Namespaces:
    """Move this process into new namespaces, and make those that its commands will share.

    Raises OSError, whose text begins with the step that failed. INVARIANT: this process has one thread.
    """
    kinds = mounts.NEW_MOUNTS | mounts.NEW_IPC
    try:
        _step("unshare", lambda: kernel.new_namespaces(kinds))
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        user, group = os.geteuid(), os.getegid()
        _step("unshare", lambda: kernel.new_namespaces(kinds | mounts.NEW_USER))
        _step("user map", lambda: mounts.map_own_user(user, group))
    _step("mount_setattr", lambda: mounts.set_attributes_of_all(0, propagation=mounts.FOLLOWING))
    network = _step("network", lambda: on_a_thread(_session_network))
    processes, init, alive = on_a_thread(_new_processes)
    return Namespaces(network=network, processes=processes, init=init, alive=alive)


def new_network() -> None:
    """Move the calling thread into a new network with loopback only. Raises OSError."""
    kernel.new_namespaces(mounts.NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(wire, GET_FLAGS, request), 16)
        fcntl.ioctl(wire, SET_FLAGS, struct.pack("16sH22x", b"lo", flags | UP))


def _session_network() -> int:
    new_network()
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _new_processes() -> tuple[int, int, int]:
    """Make a namespace of processes, and put its `/proc` over that of this mount namespace.

    Return its descriptor, the number of its first process and the pipe that keeps this running; -1, 0 and -1 if the
    kernel forbids the new `/proc`.
    """
    try:
        kernel.new_namespaces(mounts.NEW_PROCESSES)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSPC, errno.EINVAL):
            return -1, 0, -1
        raise OSError(error.errno or errno.EIO, f"processes: {error.strerror}") from error
    reading, writing = os.pipe2(os.O_CLOEXEC)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    init = os.fork()
    if init == 0:
        _init(reading, far.fileno())
    os.close(reading)
    far.close()
    processes = os.open(f"/proc/{init}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    near.send(b"go")
    answer = near.recv(16)
    near.close()
    if answer == b"mounted":
        return processes, init, writing
    os.close(writing)
    os.close(processes)
    os.waitpid(init, 0)
    return -1, 0, -1


def _init(alive: int, link: int) -> NoReturn:
    """Be the first process of the namespace: mount its `/proc`, then wait until the pipe `alive` closes."""
    try:
        os.setpgid(0, 0)  # away from signals to the group of a keeper that is in no session of its own
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)  # ended orphans are reaped by the kernel
        os.dup2(alive, 0)
        os.dup2(link, 3)
        os.closerange(4, 1 << 16)
        os.read(3, 16)
        kernel.call("mount", b"proc", b"/proc", b"proc", 0xE, None)  # MS_NOSUID | MS_NODEV | MS_NOEXEC
        os.write(3, b"mounted")
        os.close(3)
        os.read(0, 1)
    finally:
        os._exit(0)


def on_a_thread(work: Callable[[], T]) -> T:
    """Return the result of `work` on a new thread, which then ends. Namespaces that it entered end with the thread."""
    results: list[T] = []
    errors: list[BaseException] = []
    done = allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            errors.append(error)
        finally:
            done.release()

    start_new_thread(run, ())
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]


def _step(name: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise OSError(error.errno or errno.EIO, name) from error
