"""Observers of a run, each on a thread of its own: the run goes on whatever they do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from harness.log.order import LogRecord
from harness.messages import RunResult

MAX_WAITING, MAX_WAITING_CHARACTERS = 10_000, 10_000_000
"""Maximum backlog of one observer; further text and output are dropped for it, records and the end never are."""
PARTING_SECONDS = 2.0
"""Seconds that the end of a run waits for observers to process their backlog."""


class Observer:
    """The events of a run; override the methods that you need. May be slow, may raise.

    The methods of one observer are called in order, from one thread, which is never the run's own.
    """

    def text(self, delta: str) -> None:
        """Hear a piece of the model's text as it comes."""

    def record(self, record: LogRecord) -> None:
        """Hear a record of the action log as it was appended: calls, decisions, outcomes, retries, limits."""

    def output(self, printed: str) -> None:
        """Hear what a running command printed."""

    def end(self, result: RunResult) -> None:
        """Hear how the run ended: exactly once for each run, after everything else of it."""


class Observers:
    """Hands what happens to every observer, at once and without waiting for any of them."""

    def __init__(self, observers: Sequence[Observer] = (), *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start one thread for each observer; it ends with `close`, or with the process."""
        self._monotonic = monotonic
        self._deliveries = [_Delivery(observer) for observer in observers]

    def text(self, delta: str) -> None:
        """Pass a piece of the model's text on."""
        for delivery in self._deliveries:
            delivery.put_droppable(delivery.observer.text, delta)

    def record(self, record: LogRecord) -> None:
        """Pass a record of the log on; each observer gets a copy, with which it may do what it likes."""
        if self._deliveries:
            text = json.dumps(record)
            for delivery in self._deliveries:
                delivery.put_record(text)

    def output(self, printed: str) -> None:
        """Pass on what a command printed."""
        for delivery in self._deliveries:
            delivery.put_droppable(delivery.observer.output, printed)

    def end(self, result: RunResult) -> None:
        """Pass the end of a run on, and wait at most PARTING_SECONDS in all for the observers to have heard it."""
        for delivery in self._deliveries:
            delivery.put(delivery.observer.end, result)
        until = self._monotonic() + PARTING_SECONDS
        for delivery, heard in [(delivery, delivery.mark()) for delivery in self._deliveries]:
            # One that was late before is not waited for again.
            delivery.late = not heard.wait(0.0 if delivery.late else max(0.0, until - self._monotonic()))

    def close(self) -> None:
        """Let the threads end, each when its observer has heard what is waiting."""
        for delivery in self._deliveries:
            delivery.close()

    @property
    def dropped(self) -> int:
        """Number of pieces of text and output that were dropped for a slow observer."""
        return sum(delivery.dropped for delivery in self._deliveries)


class _Delivery:
    """One observer's queue, and the thread that empties it.

    INVARIANT: putting is one step of a SimpleQueue, so that an interrupt in the middle of it can neither lose the order
    nor leave a lock behind.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.dropped = 0
        self.late = False
        self._put_characters = 0
        """Characters of text and output, counted by the sender; the thread counts the delivered ones."""
        self._heard_characters = 0
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def put(self, hear: Callable[..., None], event: object) -> None:
        self._waiting.put(lambda: hear(event))

    def put_record(self, text: str) -> None:
        self._waiting.put(lambda: self.observer.record(json.loads(text)))

    def put_droppable(self, hear: Callable[[str], None], text: str) -> None:
        backlog = self._put_characters - self._heard_characters
        if self._waiting.qsize() >= MAX_WAITING or backlog >= MAX_WAITING_CHARACTERS:
            self.dropped += 1
            return
        self._put_characters += len(text)
        self._waiting.put(lambda: self._hear(hear, text))

    def _hear(self, hear: Callable[[str], None], text: str) -> None:
        self._heard_characters += len(text)
        hear(text)

    def mark(self) -> threading.Event:
        """Return an event that is set as soon as everything before it was delivered."""
        heard = threading.Event()
        self._waiting.put(heard.set)
        return heard

    def close(self) -> None:
        self._waiting.put(None)

    def _serve(self) -> None:
        while (hear := self._waiting.get()) is not None:
            try:
                hear()
            except BaseException:  # noqa: BLE001, S110 - an observer that fails, or wants to leave, harms nothing
                pass
