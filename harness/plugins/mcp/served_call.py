"""One call of a client of ours on its way: from the protocol's thread to the gate's, its questions out, its answers in."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TypeAlias

from harness.plugins.mcp.question_form import FormAnswer, FormEnd, QuestionForm
from harness.record import Record


class ServedClient(Record):
    """The caller, as it names itself: the name is not verified."""

    name: str = ""
    version: str = ""

    @property
    def display_name(self) -> str:
        """Its name, for people."""
        return self.name or "a client without a name"


class CallResult(Record):
    """The result of a call."""

    text: str
    is_error: bool


CallNews: TypeAlias = QuestionForm | CallResult
"""News of a call for the protocol's thread: a question to ask, or the end."""


class ServedCall:
    """See the module. Made by the protocol's thread, carried out by the gate's."""

    def __init__(
        self,
        name: str,
        arguments: str,
        client: ServedClient,
        *,
        asks: bool,
        tell: Callable[[CallNews], None],
    ) -> None:
        """`arguments` are JSON text; `asks` says whether the client shows forms; `tell` hands on what is new."""
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
        """Have the client ask, and wait so long at most."""
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
        """Give the client what it waits for."""
        self._tell(result)

    def cancel(self) -> None:
        """Note that the client does not want it any more."""
        self.is_cancelled = True
        self.ask_no_more()

    def ask_no_more(self) -> None:
        """End every wait for an answer; may be called by a signal's function."""
        self._is_gone = True
        self._answers.put(FormAnswer(end=FormEnd.CALL_GONE))


class AskedNoMoreError(Exception):
    """The question that is waited for needs no answer any more."""
