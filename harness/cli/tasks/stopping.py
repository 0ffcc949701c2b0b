"""Signals of a batch: the first asks it to end in order, a second to kill what it runs; it wakes who waits."""

from __future__ import annotations

import os
import signal
from types import FrameType

from harness.cli.exits import Exit


class Stopping:
    """What came in, and a descriptor that can be read when something did: a signal, or the end of a process."""

    def __init__(self) -> None:
        """Decide from here on what signals do. To be made in the main thread."""
        self.count = 0
        """How often the batch was asked to end."""
        self._terminated = False
        self.descriptor, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, _ignore)  # a function: with SIG_IGN no end of a process could be learned

    @property
    def exit_code(self) -> Exit | None:
        """What the batch exits with where it was asked to end."""
        if not self.count:
            return None
        return Exit.TERMINATED if self._terminated else Exit.INTERRUPTED

    def wait(self, seconds: float) -> None:
        """Sleep until something came in, or for so long."""
        import select

        if select.select([self.descriptor], [], [], seconds)[0]:
            try:
                while os.read(self.descriptor, 4096):
                    pass
            except BlockingIOError:
                pass  # all of it was read

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if number != signal.SIGINT:
            self._terminated = True


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass
