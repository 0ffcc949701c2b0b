"""A pending call of a configured server's tool: its end, and the server's questions before it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.plugins.mcp.elicitation import ElicitAnswer, ElicitForm
from harness.record import Record

LOOK_UP_SECONDS = 0.1
"""Seconds between checks of the waiting thread: a signal that comes just before it waits does not wake it."""


class CallOutcome(Record):
    """The outcome of a call that was sent."""

    result: Mapping[str, JsonValue] | None = None
    error: str = ""
    """Reason for a missing result, in words that may be the server's."""
    timed_out: bool = False
    questions: tuple[str, ...] = ()
    """The server's questions to the person during the call, with their answers, a sentence each."""


NOT_ANSWERED = ElicitAnswer(action="cancel", words="not answered")


def _never() -> int:
    return 0


class AwaitedCall:
    """One call, for the thread that waits: it asks the person."""

    def __init__(self, ask: Callable[[ElicitForm], ElicitAnswer] | None, stops: Callable[[], int] = _never) -> None:
        """Create the call. `ask` fills in forms; `None` if no one does. `stops` returns the number of the person's
        requests to stop since the call began, for a thread in which no signal raises.
        """
        self.ask = ask
        self._stops = stops
        self._events: queue.SimpleQueue[CallOutcome | ElicitForm] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[ElicitAnswer] = queue.SimpleQueue()

    def wait(self) -> CallOutcome:
        """Return the outcome, and put the server's questions to the person until then. Raises KeyboardInterrupt."""
        try:
            while True:
                try:
                    event = self._events.get(timeout=LOOK_UP_SECONDS)
                except queue.Empty:
                    if self._stops():
                        raise KeyboardInterrupt from None
                    continue
                if isinstance(event, CallOutcome):
                    return event
                self._ask(event)
        finally:
            self._answers.put(NOT_ANSWERED)  # whoever asks now waits for nobody

    def _ask(self, form: ElicitForm) -> None:
        if self.ask is None:
            raise RuntimeError("a form without an approver")
        answer = self.ask(form)
        if answer.stops:
            raise KeyboardInterrupt
        self._answers.put(answer)

    def finish(self, outcome: CallOutcome) -> None:
        """Take its outcome."""
        self._events.put(outcome)

    def await_answer(self, form: ElicitForm) -> ElicitAnswer:
        """Have the person asked, and wait for what they say; called by another thread."""
        self._events.put(form)
        return self._answers.get()
