"""Questions to a program that listens at a Unix socket. Each has its own connection: one line out, one line in."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Callable

from harness.errors import UsageError
from harness.gate.approval import Approval, nobody
from harness.session.approver.outside_question import (
    MOST_ANSWER_BYTES,
    AnswerError,
    OutsideQuestion,
    approval_from,
    withdrawal_of,
)
from harness.session.approver.standing_question import IN_TIME, Watched

_BLOCK = 65_536


def check_socket(path: str) -> None:
    """Raise UsageError unless a socket belongs to the user or root, and no other user can write or replace it."""
    owners = (0, os.getuid())
    try:
        socket_status, above = os.stat(path, follow_symlinks=False), os.stat(os.path.dirname(path))
    except OSError as error:
        raise UsageError(f"the approver's socket {path}: {error.strerror}") from None
    if not stat.S_ISSOCK(socket_status.st_mode):
        raise UsageError(f"the approver's socket {path} is not a Unix socket")
    if socket_status.st_uid not in owners or socket_status.st_mode & stat.S_IWOTH:
        raise UsageError(f"the approver's socket {path} belongs to another user, or others may write it")
    if above.st_uid not in owners or (above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX):
        raise UsageError(f"the folder of the approver's socket {path} belongs to another user, or others may write it")


class AskedSocket:
    """See StandingQuestion."""

    def __init__(
        self, question: OutsideQuestion, path: str, seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Connect. Raises UsageError if no program listens there, or one of a user other than this one or root."""
        check_socket(path)
        self._question = question
        self._unsent = question.line
        self._came = b""
        self._listens = True
        self._monotonic = monotonic
        self._end = monotonic() + seconds
        self._connection: socket.socket | None = _connected(path)

    def watched(self) -> Watched:
        """See StandingQuestion."""
        if self._connection is None:
            return Watched()
        number = (self._connection.fileno(),)
        return Watched(reads=number, writes=number if self._unsent else (), seconds=self._end - self._monotonic())

    def look(self) -> Approval | None:
        """See StandingQuestion."""
        if self._connection is None:
            return nobody(IN_TIME)
        try:
            self._listens = self._exchanged(self._connection)
        except OSError as error:
            return nobody(f"the connection to the approver broke: {error.strerror}")
        if not self._listens or b"\n" in self._came or len(self._came) > MOST_ANSWER_BYTES:
            try:
                return approval_from(self._came, self._question)
            except AnswerError as error:
                return nobody(f"from the approver's socket: {error}")
        return nobody(IN_TIME) if self._monotonic() >= self._end else None

    def withdraw(self) -> None:
        """See StandingQuestion. If the question was sent completely and has no answer, a withdrawal is sent."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with connection:
            if self._listens and not self._unsent and not self._came:
                try:
                    connection.send(withdrawal_of(self._question))
                except OSError:
                    pass  # the end of the connection says the same

    def _exchanged(self, connection: socket.socket) -> bool:
        """Send and receive without waiting. Return whether the connection is still open. Raises OSError."""
        try:
            while self._unsent:
                self._unsent = self._unsent[connection.send(self._unsent) :]
        except BlockingIOError:
            pass
        try:
            while len(self._came) <= MOST_ANSWER_BYTES:
                piece = connection.recv(_BLOCK)
                if not piece:
                    return False
                self._came += piece
        except BlockingIOError:
            pass
        return True


_LOCAL_PEER = (0, 1, 76)
"""SOL_LOCAL, LOCAL_PEERCRED and the size of `struct xucred` (sys/un.h and sys/ucred.h of macOS)."""


def _peer_user(connection: socket.socket) -> int:
    """Return the user of the process at the other end. Raises OSError."""
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    level, option, size = _LOCAL_PEER
    credentials = connection.getsockopt(level, option, size)
    if len(credentials) < 8:
        raise OSError(errno.ENOTSUP, "its user is not known")
    return int(struct.unpack_from("I", credentials, 4)[0])


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(path)
        user = _peer_user(connection)
    except OSError as error:
        connection.close()
        raise UsageError(f"the approver's socket {path}: {error.strerror}") from None
    if user not in (0, os.getuid()):
        connection.close()
        raise UsageError(f"another user listens at the approver's socket {path}")
    return connection
