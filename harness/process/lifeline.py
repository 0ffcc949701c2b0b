"""Lifeline: a pipe that makes task processes exit when the batch that started them exits."""

from __future__ import annotations

import os
import signal
import stat
from _thread import start_new_thread
from collections.abc import Mapping

VARIABLE = "HARNESS_LIFELINE"
"""Environment variable with the file descriptor of the pipe's read end, for the processes that a batch starts."""


class Lifeline:
    """A pipe that a batch keeps open, so that its processes notice when the batch ends."""

    def __init__(self) -> None:
        """Create the pipe. INVARIANT: only this process has the write end, so that the others notice when it closes."""
        self.reading, self._writing = os.pipe()

    def close(self) -> None:
        """Close both ends."""
        os.close(self.reading)
        os.close(self._writing)


def is_of_a_batch(environment: Mapping[str, str]) -> bool:
    """Return whether a batch started this process."""
    return VARIABLE in environment


def watch_lifeline(environment: Mapping[str, str]) -> None:
    """Send this process SIGTERM once the batch that started it has ended. Does nothing in other processes."""
    descriptor_text = environment.get(VARIABLE, "")
    if not descriptor_text.isascii() or not descriptor_text.isdigit() or len(descriptor_text) > 6:
        return
    try:
        descriptor = int(descriptor_text)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        os.set_inheritable(descriptor, False)  # so that no command inherits it
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
