"""Ctrl-C and termination become interrupts: a run, or a batch, ends at a safe moment with a complete record."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from harness.interrupt import Interrupt
from harness.session.exits import Exit
from harness.session.front import terminal_is_there

if TYPE_CHECKING:
    Handler = Callable[[int, FrameType | None], None]

PATCH_SECONDS = 10.0
"""Seconds that the work after a run may take once the program was asked to end."""


def take_endings(handler: Handler) -> tuple[signal.Signals, ...]:
    """Set `handler` for SIGINT and the ending signals (SIGTERM, SIGHUP, SIGQUIT). Return the signals that were set.

    A signal that is already ignored stays ignored, since nohup(1), or a shell that starts a background job (POSIX, sh,
    2.11), meant it so. There are two exceptions: SIGTERM; and, on a user's terminal, the signals of its keys (SIGQUIT
    would leave the terminal without echo). Must be called from the main thread.
    """
    previous = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        ignored = signal.getsignal(number) is signal.SIG_IGN and number != signal.SIGTERM
        if not ignored or (number != signal.SIGHUP and terminal_is_there()):
            signal.signal(number, handler)
            previous.append(number)
    return tuple(previous)


class Signals:
    """Turns signals into interrupts from `install` on, and records which kinds were received."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.terminated = False
        self.hung_up = False
        """Whether the terminal was closed (SIGHUP, signal(7))."""
        self._interrupt = interrupt

    def install(self) -> None:
        """Install the handlers of the ending signals. Must be called from the main thread."""
        take_endings(self._on_signal)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal.signal calls
        if number != signal.SIGINT:
            self.terminated = True
        if number == signal.SIGHUP:
            self.hung_up = True
        self._interrupt.request()


class Stopping:
    """Counts ending signals of a batch. The first asks it to end in order, the second to kill its tasks."""

    def __init__(self) -> None:
        """Install the handlers. Must be called from the main thread."""
        self.count = 0
        """Number of requests to end the batch."""
        self._terminated = False
        take_endings(self._on_signal)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned

    @property
    def exit_code(self) -> Exit | None:
        """Exit code of the batch after a request to end. `None` without one."""
        if not self.count:
            return None
        return Exit.TERMINATED if self._terminated else Exit.INTERRUPTED

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if number != signal.SIGINT:
            self._terminated = True


@contextmanager
def bounded_by_signals(seconds: float = PATCH_SECONDS) -> Iterator[None]:
    """Give the block `seconds` to finish after a first ending signal. A second signal ends it at once.

    Raises KeyboardInterrupt in the block to end it. After the block, the previous handlers are restored.
    """

    def first(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, _interrupted)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)
    handlers = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGALRM, _interrupted)
    before = take_endings(first)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
