"""One call of a client of `harness mcp serve`. It passes between the protocol's thread and the gate's thread.

The call, its answers and its cancellation go to the gate's thread; its questions and its result come back.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TypeAlias

from harness.plugins.mcp.question_form import FormAnswer, FormEnd, QuestionForm
from harness.record import Record


class ServedClient(Record):
    """The client, with the name that it reports. The name is not verified."""

    name: str = ""
    version: str = ""

    @property
    def display_name(self) -> str:
        """Name of the client for people."""
        return self.name or "a client without a name"


class CallResult(Record):
    """The result of a call."""

    text: str
    is_error: bool


CallNews: TypeAlias = QuestionForm | CallResult
"""Message about a call to the protocol's thread: a question to ask, or the result."""


class ServedCall:
    """One call. The protocol's thread creates it, and the gate's thread runs it."""

    def __init__(
        self,
        name: str,
        arguments: str,
        client: ServedClient,
        *,
        asks: bool,
        tell: Callable[[CallNews], None],
    ) -> None:
        """Make the call. `arguments` are JSON text. `asks`: the client shows forms. `tell` receives the call's news."""
        self.name = name
        self.arguments = arguments
        self.client = client
        self.asks = asks
        self.is_cancelled = False
        self._tell = tell
        self._answers: queue.SimpleQueue[FormAnswer] = queue.SimpleQueue()
        self._is_gone = False
        """Whether no further question may be asked."""

    def ask(self, form: QuestionForm, seconds: float) -> FormAnswer:
        """Have the client show a form, and return the answer. Wait at most `seconds`."""
        if not self._is_gone:
            self._tell(form)
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            answer = FormAnswer(end=FormEnd.LATE)
        return FormAnswer(end=FormEnd.CALL_GONE) if self._is_gone else answer

    def pause(self, seconds: float) -> None:
        """Wait `seconds`. Raises AskedNoMoreError as soon as no further question may be asked."""
        end = time.monotonic() + seconds
        while not self._is_gone and (remaining := end - time.monotonic()) > 0:
            try:
                self._answers.get(timeout=remaining)
            except queue.Empty:
                break
        if self._is_gone:
            raise AskedNoMoreError

    def take_answer(self, answer: FormAnswer) -> None:
        """Accept the answer to the question."""
        self._answers.put(answer)

    def end(self, result: CallResult) -> None:
        """Send the result to the client."""
        self._tell(result)

    def cancel(self) -> None:
        """Mark the call as cancelled by the client, and end its questions."""
        self.is_cancelled = True
        self.ask_no_more()

    def ask_no_more(self) -> None:
        """End every wait for an answer, now and later. May be called by a signal handler."""
        self._is_gone = True
        self._answers.put(FormAnswer(end=FormEnd.CALL_GONE))


class AskedNoMoreError(Exception):
    """Raised if a question needs no answer any more."""
