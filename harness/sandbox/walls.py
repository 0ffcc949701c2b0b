"""Walls: the paths and networks that one command may use, as plain values."""

from __future__ import annotations

from harness.record import Record


class Unenforceable(OSError):
    """Raised for walls that this machine cannot build as requested: no program may start. The text has the reason."""


class Walls(Record):
    """The confinement of one command. Every path is absolute and resolved; a missing one is skipped.

    Besides `write` and `temporary`, every command may write the likes of /dev/null. Everything that is not hidden may
    be read, except devices. A command with no `write` (a reader) is confined further: it cannot change modes, owners,
    times or attributes, share memory, or talk to other programs of this machine except over a `needed_socket`.
    """

    write: tuple[str, ...]
    """Folders (with everything below) and single files. They may be read too, unless hidden inside."""
    network: bool
    """Whether the internet may be reached, this machine's own ports included."""
    hide: tuple[str, ...] = ()
    """Folders, files and Unix sockets that cannot be opened. Names and sizes stay visible (see landlock)."""
    show: tuple[str, ...] = ()
    """Readable paths below a hidden folder."""
    own_network: bool = False
    """Whether it is started in a network of its own (own_network): there it may do what it likes, `network` or not."""
    keep: tuple[str, ...] = ()
    """Files and folders that stay as they are though they lie in a folder that may be written: by bubblewrap alone, Landlock
    takes nothing out of a folder."""
    hold: tuple[str, ...] = ()
    """Further paths to protect if bubblewrap is used anyway."""
    unix_sockets: bool = True
    """Whether Unix sockets may be connected to: those of a container daemon, a session bus, a terminal multiplexer or
    an agent with keys lead out of every wall. By a reader only with `needed_socket`."""
    needed_socket: bool = False
    """Whether a reader may connect to them too: the command needs one, and a person or a rule let it."""

    terminal: bool = False
    """Whether its standard streams are a terminal of its own, of which a reader too may change the modes."""
    temporary: str | None = None
    """A folder of the command's own. It may write there too, and stays a reader if it may write nothing else."""

    @property
    def reader(self) -> bool:
        """Whether it may change nothing but its temporary folder."""
        return not self.write

    @property
    def writable(self) -> tuple[str, ...]:
        """Everything that it may write."""
        return self.write if self.temporary is None else (*self.write, self.temporary)

    @property
    def internet(self) -> bool:
        """Whether it may make sockets of the internet, wherever these lead."""
        return self.network or self.own_network

    @property
    def sockets(self) -> bool:
        """Whether Unix sockets of other programs can be connected to."""
        return self.unix_sockets and (self.needed_socket or not self.reader)


KEPT = {
    # <linux/capability.h>: what building and installing needs. All of them act on files and processes that the
    # other walls guard.
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
"""Everything else goes: CAP_SYS_ADMIN and CAP_PERFMON read other processes' memory past Landlock, CAP_MKNOD makes a disk's
device, CAP_SYS_RAWIO and CAP_SYS_MODULE are the kernel, and a file with capabilities (CAP_SETFCAP) outlives the command."""

KEPT_BITS = sum(1 << number for number in KEPT.values())
