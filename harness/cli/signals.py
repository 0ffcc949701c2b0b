"""Signals to interrupts: Ctrl-C and termination end a run at a safe moment, with a complete record."""

from __future__ import annotations

import signal
from types import FrameType

from harness.cli.streams import terminal_is_there
from harness.interrupt import Interrupt


class Signals:
    """What came in; decides what signals do from `install` on."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.terminated = False
        self._interrupt = interrupt

    def install(self) -> None:
        """Turn SIGINT, and what ends a program (SIGTERM, SIGHUP, SIGQUIT), into interrupts. Call it from the main thread.

        What nohup(1), or a shell that starts a job in the background (POSIX, sh, 2.11), left ignored stays ignored: it is
        not meant for this program. Not so the keys of a terminal at which somebody sits.
        """
        self._take(signal.SIGINT)
        signal.signal(signal.SIGTERM, self._on_signal)
        self._take(signal.SIGHUP)
        self._take(signal.SIGQUIT)  # at its key the terminal would be left without echo
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned

    def _take(self, number: signal.Signals) -> None:
        left_out = signal.getsignal(number) is signal.SIG_IGN
        if not left_out or (number != signal.SIGHUP and terminal_is_there()):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal.signal calls
        if number != signal.SIGINT:
            self.terminated = True
        self._interrupt.request()
