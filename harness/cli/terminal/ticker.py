"""Ticker: a thread that is there only while something goes on, and wakes some times a second; it shows nothing itself."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Ticker:
    """Calls a function again and again between `start` and `stop`; either may be called twice."""

    def __init__(self, seconds: float, tick: Callable[[threading.Event], None]) -> None:
        """`tick` is called every so many seconds with what is set when its time is over: it must look at that under the
        lock that `stop` is called with, since it may have been waiting for that very lock."""
        self._seconds = seconds
        self._tick = tick
        self._ended: threading.Event | None = None

    def start(self) -> None:
        """Begin, unless begun."""
        if self._ended is None:
            ended = self._ended = threading.Event()
            threading.Thread(target=self._run, args=(ended,), name="ticker", daemon=True).start()

    def stop(self) -> None:
        """End; the thread ends soon after, and is not waited for."""
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self._seconds):
            self._tick(ended)
