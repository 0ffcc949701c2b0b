"""A call of a configured server's tool while somebody waits for it: its end, and what the server asks meanwhile."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.plugins.mcp.elicitation import ElicitAnswer, ElicitForm
from harness.record import Record

LOOK_UP_SECONDS = 0.1
"""How often who waits looks up: a signal that comes just before it waits does not wake it."""


class CallOutcome(Record):
    """What became of a call that was sent."""

    result: Mapping[str, JsonValue] | None = None
    error: str = ""
    """Where there is no result: why, in words that may be the server's."""
    timed_out: bool = False
    said: tuple[str, ...] = ()
    """What the server asked the person meanwhile, and what became of that, a sentence each."""


NOT_ANSWERED = ElicitAnswer(action="cancel", said="not answered")


def _never() -> int:
    return 0


class AwaitedCall:
    """One call, seen from the thread that waits: that is where a person is asked."""

    def __init__(self, ask: Callable[[ElicitForm], ElicitAnswer] | None, stops: Callable[[], int] = _never) -> None:
        """Take who fills in forms; None where nobody does. `stops` says how often the person asked to stop since the call
        began, for a thread in which no signal raises."""
        self.ask = ask
        self._stops = stops
        self._events: queue.SimpleQueue[CallOutcome | ElicitForm] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[ElicitAnswer] = queue.SimpleQueue()

    def wait(self) -> CallOutcome:
        """Return its outcome, and ask the person meanwhile what the server asks. Raises KeyboardInterrupt."""
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
            raise RuntimeError("a form that nobody is asked about")
        answer = self.ask(form)
        if answer.stops:
            raise KeyboardInterrupt
        self._answers.put(answer)

    def ended(self, outcome: CallOutcome) -> None:
        """Take its outcome."""
        self._events.put(outcome)

    def asked(self, form: ElicitForm) -> ElicitAnswer:
        """Have the person asked, and wait for what they say; called by another thread."""
        self._events.put(form)
        return self._answers.get()
