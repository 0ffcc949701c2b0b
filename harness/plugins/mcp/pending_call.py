"""A pending call to a tool of a configured server: its outcome, and the server's questions before that."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.plugins.mcp.elicitation import ElicitAnswer, ElicitForm
from harness.record import Record

LOOK_UP_SECONDS = 0.1
"""Seconds between checks of the waiting thread. A signal just before the wait does not end the wait."""


class CallOutcome(Record):
    """The outcome of a call that was sent."""

    result: Mapping[str, JsonValue] | None = None
    error: str = ""
    """Reason for a missing result. The text may come from the server."""
    timed_out: bool = False
    questions: tuple[str, ...] = ()
    """The server's questions to the user during the call, with the answers, one sentence each."""


NOT_ANSWERED = ElicitAnswer(action="cancel", words="not answered")


def _never() -> int:
    return 0


class AwaitedCall:
    """One call, for the thread that waits for it. This thread also puts the server's questions to the user."""

    def __init__(self, ask: Callable[[ElicitForm], ElicitAnswer] | None, stops: Callable[[], int] = _never) -> None:
        """Create the call. `ask` shows a form to the user; `None` if forms cannot be shown.

        `stops` returns the number of the user's requests to stop, for threads on which KeyboardInterrupt is not raised.
        """
        self.ask = ask
        self._stops = stops
        self._events: queue.SimpleQueue[CallOutcome | ElicitForm] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[ElicitAnswer] = queue.SimpleQueue()

    def wait(self) -> CallOutcome:
        """Wait for the outcome, and put the server's questions to the user until then. Raises KeyboardInterrupt."""
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
            self._answers.put(NOT_ANSWERED)  # ends the wait for an answer in `await_answer`

    def _ask(self, form: ElicitForm) -> None:
        if self.ask is None:
            raise RuntimeError("a form without an approver")
        answer = self.ask(form)
        if answer.stops:
            raise KeyboardInterrupt
        self._answers.put(answer)

    def finish(self, outcome: CallOutcome) -> None:
        """Set the outcome of the call."""
        self._events.put(outcome)

    def await_answer(self, form: ElicitForm) -> ElicitAnswer:
        """Have the waiting thread ask the user, and return the answer. Called by another thread."""
        self._events.put(form)
        return self._answers.get()
