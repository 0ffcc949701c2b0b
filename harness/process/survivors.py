"""Remaining processes of a command: found among the children of this process, named, and signalled.

INVARIANT: a process belongs to one command. After the end of a command's first process, all its other processes
descend from children of the harness (hardening.adopt_orphans). Such a child is the command's

- if it is of the session or the group of the command's first process, which is collected after all this;
- or if it carries the command's mark, in its environment or as its limit of file locks;
- or if no other command runs in this process, and it is bound as only a command's processes are: by a limit of file
  locks that this process has not, or by the very walls of the command, if that is confined and this process is not;
- or if it hides, so that this cannot be determined.

A child from before the command never is, nor one without any of these signs: a process of a library's user, or the
guard. Only processes of the command are signalled and collected.

Nothing below /proc describes a process that keeps others out of it (PR_SET_DUMPABLE(2const), a set-user-ID program)
if /proc is mounted with hidepid (proc(5)). It is a child all the same, and the system calls for children report it.
"""

from __future__ import annotations

import os
import signal
from _thread import allocate_lock

from harness.process import procfs
from harness.process.guard import guard, marked
from harness.process.hardening import bound, new_mark
from harness.process.procfs import Process

MAX_LOOKS = 100
"""Maximum number of looks. A chain of processes that start the next and end counts as running after that."""
QUIET_LOOKS = 2
HIDDEN = "(a process that hides its name)"

_running: set[int] = set()
"""The marks of the commands that run in this process."""
_lock = allocate_lock()


class Survivors:
    """All processes of one command, from before its start until the last has ended."""

    def __init__(self, *, confined: bool) -> None:
        """Take note of the children that are there before it. `close` must be called."""
        self.mark = new_mark()
        """Names the command: see guard.marked and hardening.bound."""
        self._confined = confined
        self._walls = (0, 0)
        self._leader = 0
        self._owned: set[tuple[int, int]] = set()
        with _lock:
            _running.add(self.mark)
        self._guard = guard()
        self._guard.announce(self.mark)
        self._before = procfs.first_children(os.getpid())

    def started(self, leader: int, *, bounded: bool = True) -> None:
        """Take the number of its first process, which is its session's and its group's as well; bound and mark it.

        Its command waits for that (Latch); what a program in front of it has started by then gets the same. With `bounded`
        false it keeps the limits that it has, and its mark is in its environment alone.
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
        """Take that its first process has ended, with all its threads: it is looked at no more."""
        self._before.add(self._leader)

    def close(self) -> None:
        """Forget the command, whose processes have all ended. Called before its first process is collected; may be
        called again.
        """
        self._guard.report_end(self.mark)
        with _lock:
            _running.discard(self.mark)

    def reap(self) -> None:
        """Reap what has ended, all but its first process; while the command runs, from time to time."""
        for process in self._children():
            self._reap_ended(process)

    def unknown(self) -> list[Process]:
        """Return the children that hide, and of which nothing says whose they are: another command's, it may be."""
        hidden = [process for process in self._new() if process.started == 0 and not process.has_ended]
        return [process for process in hidden if procfs.lock_limit(process.pid) is None and not self._owns(process)]

    def remaining(self) -> list[Process]:
        """Return every running process of the command; collect the ended ones, except its first.

        INVARIANT: the list is empty only if two looks in a row found no child of the command. An ended child proves
        nothing: its own child has become one of the harness since the list was read.
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
        """Return the children of the harness that are the command's; its first process only if that has not ended."""
        return [
            process
            for process in self._new()
            if not (process.pid == self._leader and process.has_ended) and self._owns(process)
        ]

    def _new(self) -> list[Process]:
        """Return the children of the harness that were not there before the command.

        Looked for at least twice a second (see command.REAP_SECONDS), so that a number that was there, and is given anew,
        is not taken for the old one: it was missing in between.
        """
        numbers = procfs.first_children(os.getpid())
        self._before &= numbers
        processes = map(_process_of, numbers - self._before)
        return [process for process in processes if process is not None and process.parent == os.getpid()]

    def _reap_ended(self, child: Process) -> None:
        if not child.has_ended:
            return
        self._owned.discard((child.pid, child.started))
        try:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            pass  # another part of this process waits for children that are not its own

    def _owns(self, child: Process) -> bool:
        """Return whether a child belongs to the command, by the rules at the top of this module. An ended child still
        belongs.
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
        if limit is None:  # a set-user-ID program that hides, or one that has just gone
            return child.started == 0
        if limit != procfs.lock_limit(os.getpid()):
            return True
        own_walls = procfs.walls(os.getpid())
        return self._walls > own_walls and procfs.walls(child.pid) == self._walls


def send(processes: list[Process], *numbers: signal.Signals) -> None:
    """Send signals to processes; one that ended since, so that another may have its number, is left alone."""
    for process in processes:
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
            pass  # it ended, or became another person's (a program that changes its user)
        finally:
            os.close(descriptor)


def _process_of(number: int) -> Process | None:
    """Return a process; one that hides (its start is 0) only if it is a child, which keeps its number until it is reaped."""
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
        pid=number, name=HIDDEN, state=state, parent=os.getpid(), group=group, session=session, threads=1, started=0
    )
