"""Signals to interrupts: Ctrl-C and termination end a run at a safe moment, with a complete record."""

from __future__ import annotations

import signal
from types import FrameType

from harness.interrupt import Interrupt


class Signals:
    """What came in; decides what signals do from `install` on."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.terminated = False
        self._interrupt = interrupt

    def install(self) -> None:
        """Turn SIGINT, and what ends a program (SIGTERM, SIGHUP, SIGQUIT), into interrupts. Call it from the main thread."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGHUP, self._on_signal)
        signal.signal(signal.SIGQUIT, self._on_signal)  # at its key the terminal would be left without echo
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal.signal calls
        if number != signal.SIGINT:
            self.terminated = True
        self._interrupt.request()
