"""The leash: a pipe whose end tells a batch's process that the batch is gone, however it went; it ends no other process."""

from __future__ import annotations

import os
import signal
import stat
from _thread import start_new_thread
from collections.abc import Mapping

VARIABLE = "HARNESS_LEASH"
"""Names the descriptor of the pipe's end for reading, in the process that a batch starts."""


def watch_leash(environment: Mapping[str, str]) -> None:
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
