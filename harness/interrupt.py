"""The user's request to stop, which takes effect only when stopping is safe."""

from __future__ import annotations

import time
from _thread import _local as Local  # noqa: N812 - threading.local, which is a class
from collections.abc import Callable
from types import TracebackType
from typing import Self

LOOK_SECONDS = 0.05
"""Seconds between checks of `sleep` for a request to stop."""

_HERE = Local()


class Interrupted(Exception):
    """Raised when the user stops an idle run, so that callers can shut down cleanly."""


def stops_here() -> int:
    """Return the number of requests to stop since this thread opened its window. 0 outside of a window.

    Waiting code calls it, since KeyboardInterrupt is raised in the main thread only.
    """
    window: Interrupt | None = getattr(_HERE, "window", None)
    return 0 if window is None else window.stops


def sleep_here(seconds: float) -> None:
    """Sleep. Raises KeyboardInterrupt as soon as a stop is requested in this thread's window."""
    until = time.monotonic() + seconds
    while (remaining := until - time.monotonic()) > 0:
        if stops_here():
            raise KeyboardInterrupt
        time.sleep(min(LOOK_SECONDS, remaining))


def _never() -> int:
    return 0


class Interrupt:
    """A flag that a signal handler sets and the loop obeys.

    While a window is open (the model is answering, a tool is running), a request raises KeyboardInterrupt at once. At
    other times it is only recorded, so that every log record is written completely.
    """

    def __init__(self, also: Callable[[], int] = _never) -> None:
        """Create it. `also` returns a number of further requests to stop from elsewhere; it must never decrease."""
        self._also = also
        self._is_requested = False
        self._count = 0
        self._since = 0
        self._open = False
        self._tell: Callable[[], None] | None = None

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
        return self._is_requested or self._also() > 0

    @property
    def count(self) -> int:
        """Number of requests to stop. It never decreases."""
        return self._count + self._also()

    @property
    def stops(self) -> int:
        """Number of requests to stop since the last window was opened.

        For threads in which KeyboardInterrupt is not raised.
        """
        return self.count - self._since

    def tell_by(self, tell: Callable[[], None] | None) -> None:
        """Call `tell` for a request in the open window, instead of raising KeyboardInterrupt.

        For a window with an event loop. There, an exception from a signal handler may occur in a callback that swallows
        every exception (weakref, `__del__`).
        """
        self._tell = tell

    def request(self) -> None:
        """Request a stop, from a signal handler. Raises KeyboardInterrupt while a window is open (see `tell_by`).

        INVARIANT: raising closes the window. So no window is left open if the interrupt arrives while `__exit__`
        begins, and a second interrupt cannot cut short the cleanup that the first one started (ending a process group).
        """
        self.note()
        if self._open:
            self._open = False
            if self._tell is None:
                raise KeyboardInterrupt
            self._tell()

    def request_later(self) -> None:
        """Request a stop at the next safe moment, without raising."""
        self._is_requested = True

    def note(self) -> None:
        """Request a stop from another thread. No exception is raised in either thread.

        The working thread checks `requested` and `stops`. The next window that it opens raises.
        """
        self._is_requested = True
        self._count += 1

    def sleep(self, seconds: float) -> None:
        """Sleep, in a thread that no signal interrupts. Raises KeyboardInterrupt as soon as a stop is requested."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            if self.requested:
                raise KeyboardInterrupt
            time.sleep(min(LOOK_SECONDS, remaining))

    def clear(self) -> None:
        """Forget the request, because a new turn begins."""
        self._is_requested = False

    def hold(self) -> _Held:
        """Return a `with` block in which a request is only recorded, for use inside a window.

        Leaving the block raises KeyboardInterrupt if a request arrived.
        """
        return _Held(self)

    def __enter__(self) -> Self:
        """Open a window. Raises KeyboardInterrupt if a stop was requested before."""
        self._since = self.count  # before `_reopen` checks: a request in between counts in one of the two
        _HERE.window = self
        self._reopen()
        return self

    def _reopen(self) -> None:
        self._open = True
        if self.requested:
            self._open = False
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the window."""
        self._open = False
        self._tell = None
        _HERE.window = None


class _Held:
    """A window that is closed for a moment, while a record is written."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._was_open = False

    def __enter__(self) -> None:
        """Close the window, if one is open."""
        self._was_open = self._interrupt._open  # noqa: SLF001 - a part of the class above
        self._interrupt._open = False  # noqa: SLF001

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Reopen the window.

        Raises KeyboardInterrupt if a request arrived in between, unless another exception is being raised.
        """
        if error is None and self._was_open:
            self._interrupt._reopen()  # noqa: SLF001
        else:
            self._interrupt._open = self._was_open  # noqa: SLF001
