"""Threads that are kept for the next piece of work: to start one takes longer than many a piece."""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

_Work: TypeAlias = tuple[Callable[[], object], Callable[[], object]]


class KeptThreads:
    """Threads for pieces of work of one kind.

    INVARIANT: none is waited for. While one works, or is stuck, another takes the next piece.
    """

    def __init__(self, first: Callable[[], object] | None = None) -> None:
        """`first` is called on each new thread, before its first piece."""
        self._first = first
        self._idle: list[SimpleQueue[_Work]] = []
        """What the threads without work wait at. Lists and queues are written in C: an interrupt leaves no lock behind."""
        self._started = 0

    @property
    def busy(self) -> int:
        """How many of them have a piece of work that has not come to its end."""
        return self._started - len(self._idle)

    def begin(self, work: Callable[[], object], over: Callable[[], object]) -> None:
        """Do `work`, which raises nothing, on a thread that has none, or on a new one; then call `over` there.

        When `over` is called, that thread is free for the next piece. Raises RuntimeError where no thread can be started.
        """
        try:
            waiting = self._idle.pop()
        except IndexError:
            if self._started == 0:
                os.register_at_fork(after_in_child=self._forget)
            waiting = SimpleQueue()
            start_new_thread(self._work, (waiting,))
            self._started += 1
        waiting.put((work, over))

    def _work(self, waiting: SimpleQueue[_Work]) -> None:
        if self._first is not None:
            self._first()
        while True:
            work, over = waiting.get()
            work()
            del work
            self._idle.append(waiting)
            over()
            del over

    def _forget(self) -> None:
        """A process forked from this one has none of its threads."""
        self._idle.clear()
        self._started = 0
