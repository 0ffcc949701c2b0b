"""The lifeline: a pipe whose end tells a batch's processes that it is gone, however it went; no other process is ended."""

from __future__ import annotations

import os
import signal
import stat
from _thread import start_new_thread
from collections.abc import Mapping

VARIABLE = "HARNESS_LIFELINE"
"""Names the descriptor of the pipe's end for reading, in the process that a batch starts."""


class Lifeline:
    """The batch's own end of the pipe."""

    def __init__(self) -> None:
        """Make the pipe. INVARIANT: nobody but this process holds the end for writing, so that its end is seen."""
        self.reading, self._writing = os.pipe2(os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of both ends."""
        os.close(self.reading)
        os.close(self._writing)


def is_of_a_batch(environment: Mapping[str, str]) -> bool:
    """Say whether a batch started this process."""
    return VARIABLE in environment


def watch_lifeline(environment: Mapping[str, str]) -> None:
    """Where a batch started this process: ask it to end (SIGTERM) once the batch has ended. Otherwise do nothing."""
    told = environment.get(VARIABLE, "")
    if not told.isascii() or not told.isdigit() or len(told) > 6:
        return
    try:
        descriptor = int(told)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        os.set_inheritable(descriptor, False)  # what a command started would hold an end of it otherwise
    except OSError:
        return
    start_new_thread(_watch, (descriptor,))


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1):
            pass
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGTERM)
