"""Requests that are under way in this process, and a signal that strikes one; what the tests of the wire share."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from process_scene import wait_until

from harness.models.exchange import Exchange


def exchanges() -> int:
    """Return how many threads are sending just now, or are stuck."""
    return sum(
        any(frame.f_code is Exchange.run.__code__ for frame, _ in traceback.walk_stack(innermost))
        for innermost in sys._current_frames().values()
    )


def all_over() -> bool:
    """Each request has ended; one that was let go may take a moment."""
    return wait_until(lambda: exchanges() == 0)


@contextmanager
def signalled(number: signal.Signals, when: Callable[[], bool]) -> Iterator[None]:
    """Send this process a signal a moment after `when` holds, while the block runs, which has no end of its own.

    On a busy machine it may strike before what the test is about; then the test passes.
    """

    def strike() -> None:
        wait_until(when)
        time.sleep(0.1)
        os.kill(os.getpid(), number)

    striking = threading.Thread(target=strike)
    striking.start()
    try:
        yield
    finally:
        striking.join()
