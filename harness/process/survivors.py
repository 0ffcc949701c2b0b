"""Remaining processes of a command: find them among the children of this process, name and signal them.

INVARIANT: a process belongs to one command. After the end of a command's first process, all its other processes
descend from children of the harness (hardening.adopt_orphans). Such a child belongs to the command

- if it is in the session or the group of the command's first process, which is reaped last;
- or if it has the command's mark, in its environment or as its limit of file locks;
- or if no other command runs in this process, and the child has a limit of file locks that this process does not have,
  or has the walls of the command, if the command is confined and this process is not;
- or if no other command runs in this process, and the child hides, so that this cannot be determined.

A command in namespaces of its own is the child of the keeper, which started it, and its orphans become children of the
first process of its namespace. Its processes are found among the children of these two.

A child from before the command never belongs to it. Neither does one without these signs, such as the guard or a
process of a program that uses harness as a library. Only processes of the command are signalled and reaped.

If /proc is mounted with hidepid (proc(5)), it has no entry for a process that hides (PR_SET_DUMPABLE(2const), a
set-user-ID program). The system calls for children still report such a child.
"""

from __future__ import annotations

import os
import signal
from _thread import allocate_lock
from collections.abc import Sequence

from harness.process import procfs
from harness.process.guard import guard, marked
from harness.process.hardening import bound, new_mark
from harness.process.procfs import Process
from harness.process.start import Launch
from harness.system import HAS_PROC

MAX_LOOKS = 100
"""Maximum number of looks. After that, a chain of processes that each start the next and exit counts as running."""
QUIET_LOOKS = 2
HIDDEN = "(a process that hides its name)"

_running: set[int] = set()
"""The marks of the commands that run in this process."""
_lock = allocate_lock()


class Survivors:
    """The processes of one command, from before its start until the last has ended."""

    def __init__(self, *, confined: bool, parents: Sequence[int] = ()) -> None:
        """Record the children that exist before the command. `close` must be called later.

        `parents` are the processes that become parents of processes of the command (default: this process).
        """
        self._parents = tuple(parents) or (os.getpid(),)
        self.mark = new_mark()
        """Mark that identifies the command: see guard.marked and hardening.bound."""
        self._confined = confined
        self._walls = (0, 0)
        self._leader = 0
        self._has_leader_ended = False
        self._owned: set[tuple[int, int]] = set()
        with _lock:
            _running.add(self.mark)
        self._guard = guard()
        self._guard.announce(self.mark)
        self._before = self._numbers()

    @classmethod
    def of(cls, launch: Launch) -> Survivors:
        """Return the processes of a launch that will be started next."""
        starter = launch.starter
        confined = launch.confine is not None or bool(launch.prefix) or starter is not None
        return cls(confined=confined, parents=() if starter is None else starter.parents)

    def started(self, leader: int, *, bounded: bool = True) -> None:
        """Record the command's first process, which leads its session and group, and set its limits and mark.

        The command waits for that (Latch). Processes that a program before it has already started get the same. Without
        `bounded` the process keeps its limits, and its mark is only in its environment.
        """
        self._leader = leader
        self._guard.announce(self.mark, leader)
        if not bounded:
            return
        if self._confined:
            self._walls = procfs.walls(leader)
        bound(leader, self.mark)
        waiting = procfs.first_children(leader)
        while waiting:
            number = waiting.pop()
            if bound(number, self.mark):
                waiting |= procfs.first_children(number)

    def leader_ended(self) -> None:
        """Record that the first process has ended with all its threads. It is not inspected any more."""
        self._has_leader_ended = True

    def close(self) -> None:
        """Unregister the command, whose processes have all ended. Call it before the first process is reaped.

        May be called several times.
        """
        self._guard.report_end(self.mark)
        with _lock:
            _running.discard(self.mark)

    def reap(self) -> None:
        """Reap the ended processes except the first one. Call this regularly while the command runs."""
        for process in self._children():
            self._reap_ended(process)

    def unknown(self) -> list[Process]:
        """Return the hiding children that cannot be assigned to a command. They may belong to another one."""
        hidden = [process for process in self._new() if process.started == 0 and not process.has_ended]
        return [process for process in hidden if procfs.lock_limit(process.pid) is None and not self._owns(process)]

    def remaining(self) -> list[Process]:
        """Return every running process of the command. Reap the ended ones, except the first.

        INVARIANT: the list is empty only if two consecutive looks found no child of the command. A look that finds only
        ended children does not count: a child of theirs may have become one of the harness since the list was read.
        """
        children: list[Process] = []
        quiet = 0
        for _ in range(MAX_LOOKS):
            children = self._children()
            living = [process for process in procfs.family(children) if not process.has_ended]
            for process in children:
                self._reap_ended(process)
            quiet = 0 if children else quiet + 1
            if living or quiet == QUIET_LOOKS:
                return living
        return children

    def _children(self) -> list[Process]:
        """Return the children of the harness that belong to the command, without an ended first process."""
        return [
            process
            for process in self._new()
            if not (process.pid == self._leader and process.has_ended) and self._owns(process)
        ]

    def _new(self) -> list[Process]:
        """Return the children that did not exist before the command, and the running first process.

        Left out are ended ones of another process, which alone can reap them.

        This is called at least twice a second (see command.REAP_SECONDS). So if an old child ends and its number is
        reused, the number is seen missing in between, and the new child does not count as the old one.
        """
        numbers = self._numbers()
        self._before &= numbers
        leader = {self._leader} - {0}
        numbers = numbers - leader if self._has_leader_ended else numbers | leader
        processes = map(_process_of, numbers - self._before)
        return [
            process
            for process in processes
            if process is not None
            and (process.parent in self._parents or process.pid in leader)
            and not (process.has_ended and process.parent != os.getpid())
        ]

    def _numbers(self) -> set[int]:
        return set().union(*map(procfs.first_children, self._parents))

    def _reap_ended(self, child: Process) -> None:
        if not child.has_ended:
            return
        self._owned.discard((child.pid, child.started))
        try:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            pass  # other code in this process has reaped it

    def _owns(self, child: Process) -> bool:
        """Return whether a child belongs to the command, by the rules in the module's docstring.

        Once it belongs, it does so after its end too.
        """
        identity = (child.pid, child.started)
        if identity not in self._owned and self._is_owned(child):
            self._owned.add(identity)
        return identity in self._owned

    def _is_owned(self, child: Process) -> bool:
        if self._leader in (child.session, child.group):
            return True
        limit = procfs.lock_limit(child.pid)
        if limit == self.mark or procfs.carries(child.pid, marked(self.mark)):
            return True
        with _lock:
            alone = _running == {self.mark}
        if not alone:
            return False
        if limit is None:  # a set-user-ID program that hides, or a process that has just ended
            return child.started == 0
        if limit != procfs.lock_limit(os.getpid()):
            return True
        own_walls = procfs.walls(os.getpid())
        return self._walls > own_walls and procfs.walls(child.pid) == self._walls


def send(processes: list[Process], *numbers: signal.Signals) -> None:
    """Send signals to processes. Skip a process that has ended, since another may have its number now."""
    for process in processes:
        if not HAS_PROC:
            _kill(process.pid, numbers)
            continue
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            continue
        try:
            now = _process_of(process.pid)
            if now is not None and now.started == process.started:
                for number in numbers:
                    signal.pidfd_send_signal(descriptor, number)
        except OSError:
            pass  # it ended, or belongs to another user now (a program that changes its user)
        finally:
            os.close(descriptor)


def _kill(pid: int, numbers: Sequence[signal.Signals]) -> None:
    """Send signals to a process that was found a moment ago."""
    try:
        for number in numbers:
            os.kill(pid, number)
    except OSError:
        pass  # it has ended, or belongs to another user


def _process_of(number: int) -> Process | None:
    """Return a process, or `None`. A process that hides is found only if it is a child; its `started` is 0.

    A child keeps its number until it is reaped.
    """
    process = procfs.process(number)
    if process is not None:
        return process
    try:
        end = os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        group, session = os.getpgid(number), os.getsid(number)
    except OSError:
        return None
    state = "S" if end is None else "Z"
    return Process(
        pid=number,
        name=HIDDEN,
        state=state,
        parent=os.getpid(),
        group=group,
        session=session,
        terminal=0,
        threads=1,
        started=0,
    )
