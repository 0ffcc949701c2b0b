"""A separate network for one command. It has only loopback, and one listener (the door) at which harness answers.

A network namespace (network_namespaces(7)) has no connection to the outside. But a socket always belongs to the namespace
in which it was created. So the child creates a listener in its namespace and passes it to harness before it becomes the
command. Harness answers from outside, and no bridge runs inside.

Without CAP_SYS_ADMIN, this also needs a user namespace (user_namespaces(7)), which only a process with one thread can
create. So all of this happens in the child, between fork and exec.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import struct
from functools import cache

from harness.sandbox import kernel
from harness.sandbox.walls import KEPT_BITS

NEW_NETWORK = 0x40000000  # CLONE_NEWNET of <linux/sched.h>
NEW_USER = 0x10000000  # CLONE_NEWUSER
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS of <linux/sockios.h>
UP = 0x1  # IFF_UP of <linux/if.h>
DOOR = ("127.0.0.1", 3128)
"""Address of the proxy in every such network. Nothing else is reachable there at the start."""
WAITING = 1024
"""Maximum number of connections that wait to be accepted at the door."""
_GOOD = b"+"
_MAX_SAID = 200


class OwnNetwork:
    """A network that the child of one command will create. Close it after the command, or if it was not started."""

    def __init__(self) -> None:
        """Create the socket pair over which the child passes the door. Raises OSError."""
        kernel.load_for_namespaces()
        self._near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._user, self._group = os.geteuid(), os.getegid()
        self._capabilities = kernel.capabilities()

    def make(self) -> None:
        """Move the calling process into a new network, and pass its door on. Raises OSError; `door` then raises it too.

        INVARIANT: only a child with one thread calls this, before it enters any wall. Afterwards it has no more rights
        over the rest of the machine than before, and no right to change this network.
        """
        try:
            is_apart = _leave(self._user, self._group)
            _loopback_up()
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                door.bind(DOOR)
                door.listen(WAITING)
                rights = array.array("i", [door.fileno()])
                if is_apart:
                    _drop_gained(self._capabilities)
                self._far.sendmsg([_GOOD], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError as error:
            message = f"{error.errno or errno.EIO} {error.strerror or error}"
            self._far.send(message.encode("utf-8", "replace")[:_MAX_SAID])
            raise

    def door(self) -> socket.socket:
        """Return the listener that the child created. Raises OSError, with the reason, if there is none."""
        self._far.close()  # otherwise `recvmsg` would wait forever for a child that ended early
        message, rights, _flags, _address = self._near.recvmsg(_MAX_SAID, socket.CMSG_SPACE(4))
        for level, kind, data in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                (descriptor,) = struct.unpack("i", data[:4])
                os.set_inheritable(descriptor, False)
                return socket.socket(fileno=descriptor)
        number, _, words = message.decode("utf-8", "replace").partition(" ")
        raise OSError(int(number) if number.isdigit() else errno.EIO, words or "it ended before it had a network")

    def close(self) -> None:
        """Close both ends of the socket pair. May be called more than once."""
        self._near.close()
        self._far.close()


def _leave(user: int, group: int) -> bool:
    """Leave the network of the machine. Return whether that needed a user namespace, which gives every capability in it."""
    try:
        kernel.new_namespaces(NEW_NETWORK)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    else:
        return False
    kernel.new_namespaces(NEW_USER | NEW_NETWORK)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    return True


def _drop_gained(capabilities: int) -> None:
    """Drop all capabilities except those of `capabilities` that commands may keep. Raises OSError."""
    kernel.forbid_new_privileges()
    kernel.keep_capabilities(capabilities & KEPT_BITS)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(wire, GET_FLAGS, request), 16)
        fcntl.ioctl(wire, SET_FLAGS, struct.pack("16sH22x", b"lo", flags | UP))


@cache
def why_none() -> str:
    """Return the reason why commands cannot have separate networks on this machine. Empty if they can.

    Tested once, in a child process.
    """
    import subprocess

    try:
        network = OwnNetwork()
    except OSError as error:
        return f"namespaces cannot be made: {error}"

    def make_and_end() -> None:
        network.make()
        os._exit(0)

    try:
        child = subprocess.Popen("/bin/true", preexec_fn=make_and_end, env={})  # noqa: PLW1509 - it never becomes `true`
        child.wait()
    except (OSError, subprocess.SubprocessError):
        pass  # `door` raises the reason
    try:
        network.door().close()
    except OSError as error:
        return f"this machine gives commands no network of their own: {error.strerror or error}"
    finally:
        network.close()
    return ""
