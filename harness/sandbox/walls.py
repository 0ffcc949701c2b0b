"""Walls: the paths and networks that one command may use, as plain values."""

from __future__ import annotations

import os
from collections.abc import Iterable

from harness.record import Record, replace

DOOR = ("127.0.0.1", 3128)
"""Address of the proxy in a network of its own. Nothing else is reachable there at the start."""


class Network:
    """The network of a command in namespaces."""

    MACHINE = "machine"
    SESSION = "session"
    """Loopback only, shared by the commands of a session."""
    DOOR = "door"
    """A network of its own, with a listener for the proxy."""


TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - a name, and no file in it
"""Folders that a session's own folder covers in namespaces."""


def covered_places() -> tuple[str, ...]:
    """Return the folders of `TEMPORARY` that can be covered: a link is not one."""
    return tuple(path for path in TEMPORARY if os.path.isdir(path) and not os.path.islink(path))


class Unenforceable(OSError):
    """Raised for walls that this machine cannot build as requested. The command must not start. The text is the reason."""


class Walls(Record):
    """The confinement of one command. Every path is absolute and resolved. Missing paths are skipped.

    A command may write `write`, `temporary`, and devices such as /dev/null. It may read everything that is not hidden,
    except other devices. A command without `write` (a reader) has further restrictions: it cannot change modes, owners,
    times or attributes, share memory, or connect to other programs of this machine except with `needed_socket`.
    """

    write: tuple[str, ...]
    """Writable folders (with everything below) and files. They are also readable, except for hidden paths inside."""
    network: bool
    """Whether the command may reach the internet and this machine's own ports."""
    hide: tuple[str, ...] = ()
    """Folders, files and Unix sockets that cannot be opened. Names and sizes stay visible (see landlock)."""
    show: tuple[str, ...] = ()
    """Readable paths below a hidden folder."""
    readable: tuple[str, ...] = ()
    """Paths that stay readable where the rest of `/tmp` is not visible: workspace, home folder, folders of programs.

    With `TEMPORARY`, all of it stays readable.
    """
    own_network: bool = False
    """Whether the command gets a network of its own, whose only exit is a proxy. It requires namespaces."""
    meets_servers: bool = False
    """Whether even a reader may use the network of the session, which has only loopback. It requires namespaces."""
    keep: tuple[str, ...] = ()
    """Protected files and folders inside a writable folder. They require bubblewrap, since Landlock cannot exclude a path
    from a folder."""
    hold: tuple[str, ...] = ()
    """Further paths to protect if bubblewrap is used anyway."""
    unix_sockets: bool = True
    """Whether the command may connect to Unix sockets; a reader may only with `needed_socket`. Sockets of a container daemon,
    a session bus, a terminal multiplexer or an agent with keys lead out of every wall."""
    needed_socket: bool = False
    """Whether a reader may connect to Unix sockets too, because the command needs one and a user or a rule allowed it."""

    terminal: bool = False
    """Whether the standard streams are the command's own terminal. Then even a reader may change its modes."""
    console: str = ""
    """Path of the terminal among the standard streams, if any. A new `/dev` has it as `/dev/console`, so that it has a
    name (ttyname(3))."""
    temporary: str | None = None
    """The command's own temporary folder, which it may write. It does not count for `reader`."""
    own_tmp: bool = False
    """Whether `temporary` must also be the `/tmp` of the command. It requires namespaces; any other command in namespaces that
    writes has it too."""

    @property
    def reader(self) -> bool:
        """Whether the command can change only its temporary folder."""
        return not self.write

    @property
    def writable(self) -> tuple[str, ...]:
        """All paths that the command may write."""
        return self.write if self.temporary is None else (*self.write, self.temporary)

    def hiding(self, paths: Iterable[str]) -> Walls:
        """Return walls that also hide `paths`."""
        return replace(self, hide=(*self.hide, *paths))

    def showing(self, paths: Iterable[str]) -> Walls:
        """Return walls that also show `paths`."""
        return replace(self, show=(*self.show, *paths))

    @property
    def internet(self) -> bool:
        """Whether the command may create internet sockets, no matter which network they reach."""
        return self.network or self.own_network or self.meets_servers

    @property
    def sockets(self) -> bool:
        """Whether the command can connect to Unix sockets of other programs."""
        return self.unix_sockets and (self.needed_socket or not self.reader)


KEPT = {
    # <linux/capability.h>: capabilities for building and installing. They affect only files and processes that the
    # other walls protect.
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_AUDIT_WRITE": 29,
}
"""Capabilities that a command of root keeps. All others are dropped: CAP_SYS_ADMIN and CAP_PERFMON can read the memory of
other processes despite Landlock, CAP_MKNOD can create a disk's device, CAP_SYS_RAWIO and CAP_SYS_MODULE control the kernel,
and a file with capabilities (CAP_SETFCAP) outlives the command."""

KEPT_BITS = sum(1 << number for number in KEPT.values())
