"""Remaining processes of a command on a system without `/proc`: its process group and what descends from it, by ps(1).

A process that leaves the group (setsid(2)) is found while a process of the command is among its parents, not after that.
`survivors` finds all of them on Linux.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness.process.guard import guard
from harness.process.procfs import Process
from harness.process.start import Launch
from harness.process.survivors import Survivors
from harness.system import HAS_PROC

_PS = ("ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,comm=")
_FOLDERS = "/bin:/usr/bin"
SECONDS = 10.0
"""Maximum seconds for the list of processes."""


def processes(command: Sequence[str] = _PS) -> list[Process]:
    """Return the processes of this machine, without their times. Raises OSError if they cannot be listed."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            env={"PATH": _FOLDERS, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise OSError(f"processes cannot be listed: {error}") from None
    lines = (line.split(None, 4) for line in done.stdout.decode("utf-8", "replace").splitlines())
    return [_process(*fields) for fields in lines if len(fields) == 5]


def _process(pid: str, parent: str, group: str, state: str, name: str) -> Process:
    return Process(
        pid=int(pid),
        name=os.path.basename(name)[:15],
        state=state[0],
        parent=int(parent),
        group=int(group),
        session=0,
        terminal=0,
        threads=1,
        started=0,
    )


class GroupSurvivors:
    """The processes of one command, as `survivors.Survivors`."""

    def __init__(self) -> None:
        """Register the command. `close` must be called later."""
        self.mark = int.from_bytes(os.urandom(8), "big")
        self._leader = 0
        self._guard = guard()
        self._guard.announce(self.mark)

    def started(self, leader: int, *, bounded: bool = True) -> None:  # noqa: ARG002 - limits of others cannot be set
        """Record the command's first process, which leads its group."""
        self._leader = leader
        self._guard.announce(self.mark, leader)

    def leader_ended(self) -> None:
        """Do nothing: the first process is never counted."""

    def close(self) -> None:
        """Unregister the command. May be called several times."""
        self._guard.report_end(self.mark)

    def reap(self) -> None:
        """Do nothing: orphans become children of another process."""

    def unknown(self) -> list[Process]:
        """Return nothing: a process of another command is never taken for one of this."""
        return []

    def remaining(self) -> list[Process]:
        """Return every running process of the group, and their descendants, except the first process."""
        if not self._leader:
            return []
        try:
            every = processes()
        except OSError:
            return []  # the whole group is killed all the same
        members = {each.pid for each in every if each.group == self._leader}
        count = 0
        while count != len(members):
            count = len(members)
            members |= {each.pid for each in every if each.parent in members}
        return [each for each in every if each.pid in members - {self._leader} and not each.has_ended]


def survivors_of(launch: Launch) -> Survivors | GroupSurvivors:
    """Return the processes of a launch that will be started next."""
    return Survivors.of(launch) if HAS_PROC else GroupSurvivors()
