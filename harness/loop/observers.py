"""Observers of a run, each on its own thread. A slow or failing observer does not hold up the run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from harness.declared_types import check_arguments
from harness.log.order import LogRecord
from harness.messages import RunResult

MAX_WAITING, MAX_WAITING_CHARACTERS = 10_000, 10_000_000
"""Maximum backlog of one observer, in events and in characters. Beyond it, text and output are dropped.

Records and the end of a run are never dropped.
"""
PARTING_SECONDS = 2.0
"""Seconds that the end of a run waits for observers to process their backlog."""


class Observer:
    """The events of a run; override the methods that you need. May be slow, may raise.

    The methods of one observer are called in order, from one thread, which is never the run's own.
    """

    def text(self, delta: str) -> None:
        """Receive a piece of the model's text as it arrives."""

    def record(self, record: LogRecord) -> None:
        """Receive a record that was appended to the action log: a call, decision, outcome, retry or limit."""

    def output(self, printed: str) -> None:
        """Receive output of a running command."""

    def end(self, result: RunResult) -> None:
        """Receive the result of a run. Called exactly once per run, after all its other events."""


class Observers:
    """Queues each event for every observer without waiting for them."""

    def __init__(self, observers: Sequence[Observer] = (), *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start one thread for each observer; it ends with `close`, or with the process."""
        check_arguments(Observers.__init__, locals())
        self._monotonic = monotonic
        self._deliveries = [_Delivery(observer) for observer in observers]

    def text(self, delta: str) -> None:
        """Pass a piece of the model's text on."""
        for delivery in self._deliveries:
            delivery.put_droppable(delivery.observer.text, delta)

    def record(self, record: LogRecord) -> None:
        """Pass on a record of the log. Each observer gets its own copy, which it may change."""
        if self._deliveries:
            text = json.dumps(record)
            for delivery in self._deliveries:
                delivery.put_record(text)

    def output(self, printed: str) -> None:
        """Pass on output of a command."""
        for delivery in self._deliveries:
            delivery.put_droppable(delivery.observer.output, printed)

    def end(self, result: RunResult) -> None:
        """Pass on the end of a run. Wait at most PARTING_SECONDS in all until the observers have processed it."""
        for delivery in self._deliveries:
            delivery.put(delivery.observer.end, result)
        until = self._monotonic() + PARTING_SECONDS
        for delivery, heard in [(delivery, delivery.mark()) for delivery in self._deliveries]:
            # Do not wait again for an observer that was late before.
            delivery.late = not heard.wait(0.0 if delivery.late else max(0.0, until - self._monotonic()))

    def close(self) -> None:
        """Let each thread end once its observer has processed its backlog."""
        for delivery in self._deliveries:
            delivery.close()

    @property
    def dropped(self) -> int:
        """Number of pieces of text and output that were dropped for a slow observer."""
        return sum(delivery.dropped for delivery in self._deliveries)


class _Delivery:
    """One observer's queue, and the thread that empties it.

    INVARIANT: `put` is a single step of a SimpleQueue. An interrupt during it can neither change the order of events
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
        """Return an event that is set once all events queued before it are delivered."""
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
