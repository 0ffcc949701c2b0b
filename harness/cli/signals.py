"""Signals to interrupts: Ctrl-C and termination end a run at a safe moment, with a complete record."""

from __future__ import annotations

import os
import signal
from types import FrameType

from harness.interrupt import Interrupt


class Signals:
    """What came in; owns the process's handlers from `install` on."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.terminated = False
        self._interrupt = interrupt

    def install(self) -> None:
        """Turn SIGINT, SIGTERM and SIGHUP into interrupts. Call it from the main thread."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGHUP, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        if number != signal.SIGINT:
            self.terminated = True
        self._interrupt.request()


def keep_standard_descriptors() -> tuple[bool, bool, bool]:
    """Say which of stdin, stdout and stderr are open, and put /dev/null in the place of the others.

    Otherwise the next file that is opened (the action log, say) would become the standard output of something.
    """
    was_open = []
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
            was_open.append(True)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            was_open.append(False)
    return was_open[0], was_open[1], was_open[2]
