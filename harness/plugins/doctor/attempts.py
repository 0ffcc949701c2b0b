"""Attempts to break out of the walls, and work that must succeed inside them. Only data.

A small selection from this package's tests that covers every wall and takes under a second.
"""

from __future__ import annotations

from enum import Enum

from harness.record import Record


class Ground(Enum):
    """The subject of an attempt, in words."""

    WRITING = "writing"
    READING = "reading"
    NETWORK = "network"
    OTHERS = "other programs and the kernel"
    WORK = "what has to work"


class Behind(Enum):
    """The walls around an attempt."""

    READER = "reader"
    """Walls of a command without write access and network."""
    WRITER = "writer"
    """Walls of a command that may write its workspace, without network and Unix sockets: the level `workspace`."""
    MASKED = "masked"
    """Walls of a writer with a hidden file in its workspace."""


class Expectation(Enum):
    """The required result of an attempt."""

    STOPPED = "stopped"
    ALLOWED = "allowed"
    """The walls do not stop it, by design. The user should know that."""
    WORKS = "works"


class WallAttempt(Record):
    """One attempt, made in a separate process whose working directory is the workspace.

    The workspace contains `kept` and `.env`. Environment variables name the other targets. OUTSIDE and HIDDEN are
    folders that contain `kept`. HARNESS is the id of a process outside the walls. TCP and UDP are ports on 127.0.0.1.
    OUTSIDE/s and the abstract name ABSTRACT are Unix sockets.
    """

    ground: Ground
    action: str
    """The attempted action, in plain words."""
    code: str
    """Python code that raises OSError if it is stopped. For work that must succeed, a command line of bash instead."""
    walls: Behind = Behind.WRITER
    expected: Expectation = Expectation.STOPPED
    reason: str = ""
    """Text to show if the attempt is not stopped."""


REQUIRED = frozenset((Ground.WRITING, Ground.READING, Ground.NETWORK, Ground.WORK))
"""Subjects in which no attempt may fail if a policy requires confinement.

A hidden file in the workspace counts only if bubblewrap is installed: without it, such a policy runs no command.
"""

_SOCKET = "import os, socket; s = socket.socket(socket.{}, socket.{}); s.settimeout(2); s."
_TCP = _SOCKET.format("AF_INET", "SOCK_STREAM") + "connect(('127.0.0.1', int(os.environ['TCP'])))"
_UDP = (
    _SOCKET.format("AF_INET", "SOCK_DGRAM")
    + "connect(('127.0.0.1', int(os.environ['UDP']))); s.send(b'x'); s.send(b'x')"
)
"""The second one fails if nothing listens, as in a network of its own."""
_UNIX = "import os; os.chdir(os.environ['OUTSIDE']); " + _SOCKET.format("AF_UNIX", "SOCK_STREAM") + "connect('s')"
_ABSTRACT = _SOCKET.format("AF_UNIX", "SOCK_STREAM") + "connect('\\0' + os.environ['ABSTRACT'])"
_CALL = """\
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.{} < 0:
    raise OSError(ctypes.get_errno(), "")
"""
_ZERO = "ctypes.c_long(0)"
# <asm-generic/unistd.h>: 425 on every architecture; struct io_uring_params has 120 bytes.
_RING = _CALL.format("syscall(425, 1, ctypes.create_string_buffer(120))")
# PTRACE_TRACEME concerns only this process and its parent, so Yama never forbids it.
_TRACE = _CALL.format(f"ptrace({_ZERO}, {_ZERO}, {_ZERO}, {_ZERO})")
_NAMESPACE = _CALL.format("unshare(0x10000000)")  # CLONE_NEWUSER

ENVIRON = WallAttempt(
    ground=Ground.OTHERS,
    action="read the environment of the harness in /proc",
    code="open('/proc/' + os.environ['HARNESS'] + '/environ', 'rb').read(1)",
)

ATTEMPTS = (
    WallAttempt(
        ground=Ground.WRITING,
        action="make a file outside the workspace",
        code="open(os.environ['OUTSIDE'] + '/new', 'x').close()",
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="write to a file outside, through a link inside",
        code="os.symlink(os.environ['OUTSIDE'] + '/kept', 'link'); open('link', 'a').close()",
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="empty a file outside",
        code="os.truncate(os.environ['OUTSIDE'] + '/kept', 0)",
    ),
    WallAttempt(
        ground=Ground.WRITING, action="delete a file outside", code="os.unlink(os.environ['OUTSIDE'] + '/kept')"
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="move a file out of the workspace",
        code="os.rename('kept', os.environ['OUTSIDE'] + '/moved')",
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="link a file from outside into the workspace",
        code="os.link(os.environ['OUTSIDE'] + '/kept', 'linked')",
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="make a file inside the workspace, as a reader",
        code="open('new', 'x').close()",
        walls=Behind.READER,
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="change the mode of a file outside, as a reader",
        code="os.chmod(os.environ['OUTSIDE'] + '/kept', 0o640)",
        walls=Behind.READER,
    ),
    WallAttempt(
        ground=Ground.WRITING,
        action="change the mode of a file outside, as a writer",
        code="os.chmod(os.environ['OUTSIDE'] + '/kept', 0o640)",
        expected=Expectation.ALLOWED,
        reason="modes, owners and times of one's own files are closed to readers only",
    ),
    WallAttempt(
        ground=Ground.READING, action="read a hidden folder", code="open(os.environ['HIDDEN'] + '/kept').read()"
    ),
    WallAttempt(
        ground=Ground.READING,
        action="read the size of a file in a hidden folder",
        code="os.stat(os.environ['HIDDEN'] + '/kept')",
        expected=Expectation.ALLOWED,
        reason="Landlock hides what is in files, not their names and sizes",
    ),
    WallAttempt(
        ground=Ground.READING,
        action="read a hidden file inside the workspace",
        code="if open('.env').read() == '': raise PermissionError(1, 'it is empty')",
        walls=Behind.MASKED,
        reason="it takes namespaces or bubblewrap; a policy that hides such files and requires walls runs no command without",
    ),
    WallAttempt(ground=Ground.NETWORK, action="connect over TCP", code=_TCP),
    WallAttempt(ground=Ground.NETWORK, action="send over UDP", code=_UDP),
    WallAttempt(ground=Ground.NETWORK, action="use io_uring, past the filter of system calls", code=_RING),
    WallAttempt(
        ground=Ground.NETWORK,
        action="connect to a Unix socket, as a reader",
        code=_UNIX,
        walls=Behind.READER,
    ),
    WallAttempt(
        ground=Ground.NETWORK,
        action="connect to a Unix socket, as a writer",
        code=_UNIX,
    ),
    WallAttempt(
        ground=Ground.OTHERS,
        action="connect to an abstract Unix socket",
        code=_ABSTRACT,
    ),
    WallAttempt(
        ground=Ground.OTHERS,
        action="send a signal to the harness",
        code="os.kill(int(os.environ['HARNESS']), 0)",
        reason="it takes Landlock 6 (Linux 6.12)",
    ),
    ENVIRON,
    WallAttempt(ground=Ground.OTHERS, action="trace a process (ptrace)", code=_TRACE),
    WallAttempt(ground=Ground.OTHERS, action="enter a user namespace of its own", code=_NAMESPACE),
    WallAttempt(
        ground=Ground.WORK,
        action="make, move and delete files in the workspace",
        code="echo x > made && mkdir folder && mv made folder/ && ln folder/made again && rm -r folder again",
        expected=Expectation.WORKS,
    ),
    WallAttempt(
        ground=Ground.WORK,
        action="a here-document of 200 kB",
        code="printf -v text '%*s' 200000 ''\n[ \"$(wc -c << END\n$text\nEND\n)\" = 200001 ]",
        expected=Expectation.WORKS,
    ),
    WallAttempt(
        ground=Ground.WORK,
        action="write to /dev/null",
        code="echo x > /dev/null && ! read -r < /dev/null",
        expected=Expectation.WORKS,
    ),
    WallAttempt(
        ground=Ground.WORK,
        action="a pipe of 1 MB, as a reader",
        code='[ "$(yes | head -c 1000000 | wc -c)" = 1000000 ]',
        walls=Behind.READER,
        expected=Expectation.WORKS,
    ),
    WallAttempt(
        ground=Ground.WORK,
        action="git init",
        code="git init -q repository && rm -r repository",
        expected=Expectation.WORKS,
    ),
)
