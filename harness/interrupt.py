"""A person's wish to stop, which is obeyed at moments when stopping is safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

LOOK_SECONDS = 0.05
"""Seconds between checks of `sleep` for a request to stop."""


class Interrupted(Exception):
    """Raised when the user stops an idle run, so that callers can shut down cleanly."""


def _never() -> int:
    return 0


class Interrupt:
    """A flag that is raised by a signal and obeyed by the loop.

    While a window is open (the model is answering, a tool is running) a request raises KeyboardInterrupt at once;
    elsewhere it is only noted, so that no record is ever written by half.
    """

    def __init__(self, also: Callable[[], int] = _never) -> None:
        """`also` says how often it was asked to stop from elsewhere; it is never less than before."""
        self._also = also
        self._is_requested = False
        self._count = 0
        self._since = 0
        self._open = False
        self._tell: Callable[[], None] | None = None

    @property
    def requested(self) -> bool:
        """Whether it is to stop."""
        return self._is_requested or self._also() > 0

    @property
    def count(self) -> int:
        """Number of requests to stop; it never falls."""
        return self._count + self._also()

    @property
    def stops(self) -> int:
        """Number of requests to stop since the last window was opened, for a thread in which nothing raises."""
        return self.count - self._since

    def tell_by(self, tell: Callable[[], None] | None) -> None:
        """Report a request in the open window by `tell`, instead of KeyboardInterrupt.

        For a window with an event loop: an exception from a signal's function may end in a callback that swallows
        every exception (weakref, `__del__`).
        """
        self._tell = tell

    def request(self) -> None:
        """Ask to stop; called from a signal's function. Raises KeyboardInterrupt while a window is open (see `tell_by`).

        INVARIANT: raising closes the window, so that an interrupt that lands while `__exit__` begins leaves none open,
        and a second one cannot cut short what the first has set going (the end of a process group).
        """
        self.note()
        if self._open:
            self._open = False
            if self._tell is None:
                raise KeyboardInterrupt
            self._tell()

    def request_later(self) -> None:
        """Ask to stop at the next safe moment, without raising."""
        self._is_requested = True

    def note(self) -> None:
        """Ask to stop from another thread than the one that works: nothing is raised in either. Who works looks at `requested`
        and at `stops`, and meets the request at the next window.
        """
        self._is_requested = True
        self._count += 1

    def sleep(self, seconds: float) -> None:
        """Wait, for a thread that no signal interrupts. Raises KeyboardInterrupt as soon as it was asked to stop."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            if self.requested:
                raise KeyboardInterrupt
            time.sleep(min(LOOK_SECONDS, remaining))

    def clear(self) -> None:
        """Forget the request: a new turn begins."""
        self._is_requested = False

    def hold(self) -> _Held:
        """Return a `with` block inside a window in which a request is only noted; leaving it raises what came."""
        return _Held(self)

    def __enter__(self) -> Self:
        """Open a window. Raises KeyboardInterrupt if a request came before."""
        self._since = self.count  # before it is looked at: what comes in between is seen by the one or the other
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


class _Held:
    """A window closed for a moment: while a record is written."""

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
        """Open the window again. Raises KeyboardInterrupt if a request came in between, unless an exception is on its
        way.
        """
        if error is None and self._was_open:
            self._interrupt._reopen()  # noqa: SLF001
        else:
            self._interrupt._open = self._was_open  # noqa: SLF001
