"""What a command leaves running: found among the children of this process, named, signalled; waits for nothing.

INVARIANT: whose a process is. When a command's first process has ended, all that it left descends from children of the
harness (hardening.adopt_orphans). Such a child is the command's
  - if it is of the session or the group of the command's first process, which is not reaped before all this is over;
  - or if it carries the command's mark, a number that is no other process's, in its environment or as a limit.
Both pass from a process to what it starts, and to nothing else: what the program around this one starts, confined or limited
as it may be, has neither. The mark is there before the command begins (start.Barrier), and no confined command can
change its limit of file locks (sandbox/seccomp.py). One that runs unconfined, and sheds its session, its environment
and both limits on purpose, is not found; nor is one whose limits the harness may not set, being inside another
harness's command: that one finds it. Only what is the command's is signalled, and reaped.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Iterator
from enum import Enum

from harness import procfs
from harness.guard import Chase, guard, marked
from harness.procfs import Process
from harness.record import Record
from harness.tools.hardening import bound, new_mark

MAX_MET = 500
"""Of a command's processes, before it is asked again who there is: what is new comes first."""


CHASES = 20
"""Between two looks at them all."""


class Left(Record):
    """What one look found of a command, besides its first process."""

    running: tuple[Process, ...] = ()
    ended: int = 0
    """How many had ended, and were reaped: what forks and exits all the time may never be met in another state."""
    name: str = ""
    """The name of one of either kind."""

    @property
    def nothing(self) -> bool:
        """Whether nothing was met at all."""
        return not self.running and not self.ended


class _Act(Enum):
    """What is done to what is met."""

    FIND = "find"
    KILL = "kill"


class Survivors:
    """What one command has started, from before its start until nothing of it is left."""

    def __init__(self) -> None:
        """Take note of the children that are there before it. `close` must be called."""
        self.mark = new_mark()
        """Names the command: see guard.marked and hardening.bound."""
        self._leader = 0
        self._known: set[tuple[int, int]] = set()
        self._chase: Chase | None = None
        self._guard = guard()
        self._guard.announce(self.mark)
        self._before = set(procfs.first_children(os.getpid()))
        self._before_checked = False

    def started(self, leader: int) -> None:
        """Take the number of its first process, which is its session's and its group's as well; bound and mark it.

        What it has started before gets the same: not every program waits to be marked.
        """
        self._leader = leader
        self._guard.announce(self.mark, leader)
        waiting = [leader]
        while waiting:
            number = waiting.pop()
            if bound(number, self.mark):
                waiting += procfs.first_children(number)

    def close(self) -> None:
        """Forget the command: nothing of it is left. Called before its first process is reaped; may be called again."""
        self._guard.ended(self.mark)

    def reap(self) -> int:
        """Reap what has ended of the command, so that it fills no table of processes while it runs; say how many."""
        return self._met(_Act.FIND)[1]

    def left(self) -> Left:
        """Find every process of the command; reap those that have ended."""
        return self._look(_Act.FIND)

    def strike(self) -> Left:
        """Do the same, and kill each at sight: the latest first, and before anything else is asked (see guard.Chase)."""
        self._chase = self._chase or Chase((self.mark,))
        for _ in range(CHASES):
            self._chase.look()
        return self._look(_Act.KILL)

    def _look(self, act: _Act) -> Left:
        met, ended, name = self._met(act)
        if not met:
            return Left(ended=ended, name=name)
        found = procfs.family(met)
        if act is _Act.KILL:
            send(found[len(met) :], signal.SIGKILL)
        return Left(running=tuple(one for one in found if one.state != "Z"), ended=ended, name=name)

    def _met(self, act: _Act) -> tuple[list[Process], int, str]:
        """Return the command's processes among the children, how many of these had ended, and the name of one of them."""
        running: list[Process] = []
        ended, name = 0, ""
        for number in self._latest_children():
            if ended + len(running) >= MAX_MET:
                break
            try:
                descriptor = os.pidfd_open(number)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    running += self._unreachable(number)
                continue
            try:
                # Whatever gets this number from now on, a signal goes to the process that had it.
                if not self._claims(number):
                    continue
                if act is _Act.KILL:
                    _kill(descriptor)
                child = procfs.process(number) if not name else None
                name = child.name if child is not None else name
                if _reap(descriptor):
                    ended += 1
                elif (child := child or procfs.process(number)) is not None:
                    running.append(child)
            finally:
                os.close(descriptor)
        return running, ended, name

    def _unreachable(self, number: int) -> list[Process]:
        """Return a process for which no descriptor is left, if it is the command's: it is not killed, nor overlooked."""
        child = procfs.process(number)
        return [child] if child is not None and self._claims(number) else []

    def _latest_children(self) -> Iterator[int]:
        """Yield the children, the latest first, besides the command's first process and those that were there before it."""
        children = procfs.first_children(os.getpid())
        if self._before and not self._before_checked and self._leader:
            self._before_checked = True
            self._before = {number for number in self._before if not self._is_later(number)}
        for number in reversed(children):
            if number not in self._before and number != self._leader:
                yield number

    def _is_later(self, number: int) -> bool:
        """Say whether the number was given to another process since the command was started."""
        leader, child = procfs.process(self._leader), procfs.process(number)
        return leader is not None and child is not None and child.started > leader.started

    def _claims(self, number: int) -> bool:
        """Apply the rule that stands at the head of this module; what was the command's once is so when it has ended."""
        if self.mark in procfs.marks(number):
            return True
        child = procfs.process(number)
        if child is None or child.parent != os.getpid():
            return False
        identity = (child.pid, child.started)
        if identity in self._known:
            return True
        if self._leader in (child.session, child.group) or procfs.carries(number, marked(self.mark)):
            self._known.add(identity)
            return True
        return False


def send(processes: Iterable[Process], *numbers: signal.Signals) -> None:
    """Send signals to processes; one that ended since, so that another may have its number, is left alone."""
    for one in processes:
        try:
            descriptor = os.pidfd_open(one.pid)
        except OSError:
            continue
        try:
            now = procfs.process(one.pid)
            if now is not None and now.started == one.started:
                for number in numbers:
                    signal.pidfd_send_signal(descriptor, number)
        except OSError:
            pass  # it ended, or became another person's (a program that changes its user)
        finally:
            os.close(descriptor)


def _kill(descriptor: int) -> None:
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        pass  # it has ended, or became another person's


def _reap(descriptor: int) -> bool:
    """Reap a child that has ended; say whether it had."""
    try:
        return os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG) is not None
    except ChildProcessError:
        return True  # another part of this process waits for children that are not its own
