"""Asking: requests to the model for a run, each recorded with what came of it, and the conversation made shorter by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from harness.action_log import ActionLog
from harness.actions import JsonValue
from harness.compaction import Plan, characters, plan
from harness.errors import HarnessError, ModelError, ModelFault
from harness.history import message_json
from harness.interrupt import Interrupt
from harness.messages import FinishReason, Message, ModelResponse, Usage
from harness.model import Model, Retry
from harness.rebuilding import SUMMARY
from harness.run import Run
from harness.session import Session
from harness.tool import ToolSpec

MAX_KEPT_CHARACTERS = 20_000
"""Of the newest messages that stay word for word when the others are summarized."""
MAX_REQUEST_CHARACTERS = 200_000
"""Of a request for a summary: some 50,000 tokens."""


def _ignore_text(text: str) -> None:
    pass


class Asking:
    """The way to the model: what is asked and answered is in the log, and counted against the run's limits."""

    def __init__(
        self,
        model: Model,
        *,
        log: ActionLog,
        interrupt: Interrupt,
        on_text: Callable[[str], None] = _ignore_text,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._log = log
        self._interrupt = interrupt
        self._on_text = on_text
        self._monotonic = monotonic

    def ask(self, run: Run, tools: Sequence[ToolSpec]) -> ModelResponse:
        """Return the reply to the session's conversation.

        Raises ModelError, LogError, and KeyboardInterrupt where the person stopped it.
        """
        response = self._ask(run, run.session.messages, tools, {}, self._tell_text)
        run.session.last_usage = response.usage
        return response

    def compact(
        self, run: Run, *, context_tokens: int | None = None, too_long: bool = False, keep_nothing: bool = False
    ) -> str:
        """Let the model summarize the older part of the conversation, and put the summary in its place.

        What is kept and what is sent is measured by `context_tokens`, how much the model takes; where the provider found
        the conversation `too_long`, by its own length. `keep_nothing`: all of it is summarized.

        Returns an empty text, or what stood in the way; then the conversation is as it was. Raises LogError, ModelError
        where the time that the run had left is over, and KeyboardInterrupt where the person stopped it.
        """
        messages = run.session.messages
        keep, request = _room(messages, context_tokens, too_long=too_long)
        planned = plan(messages, keep_characters=0 if keep_nothing else keep, request_characters=request)
        if planned is None:
            return "there is nothing in the conversation that is worth a summary"
        try:
            response = self._ask(run, planned.request, (), {"purpose": SUMMARY}, _ignore_text)
        except ModelError as error:
            if error.fault is ModelFault.TIME:
                raise
            self.log_error("model", str(error), error.fault)
            return str(error)
        if response.finish_reason is not FinishReason.DONE:
            return f"the summary is not whole ({response.finish_reason.value})"
        if not response.text.strip():
            return "the model gave no summary"
        self._replace(run.session, planned, response.text)
        return ""

    def log_error(self, where: str, message: str, fault: ModelFault | None = None) -> None:
        """Record an error. Raises LogError."""
        kind: dict[str, JsonValue] = {} if fault is None else {"fault": fault.value}
        self._log.append("error", {"where": where, "message": message, **kind})

    def _replace(self, session: Session, planned: Plan, summary: str) -> None:
        change_history(session, self._log, "compacted", planned.start, planned.stop, planned.replacement(summary))

    def _ask(
        self,
        run: Run,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        about: dict[str, JsonValue],
        on_text: Callable[[str], None],
    ) -> ModelResponse:
        run.turns += 1
        self._log.append("model_request", {**about, "turn": run.turns, "messages": len(messages)})
        started = self._monotonic()

        def on_retry(retry: Retry) -> None:
            run.retries += 1
            self._log_retry(retry)

        try:
            with self._interrupt:
                response = self._model.complete(
                    messages, tools, on_text=on_text, on_retry=on_retry, seconds=run.seconds_left
                )
        except HarnessError:
            raise
        except Exception as error:
            raise ModelError(f"the model adapter failed: {type(error).__name__}: {error}") from error
        run.usage += response.usage
        run.session.usage += response.usage
        self._log.append(
            "model_response",
            {**about, **_logged(run, response), "ms": round((self._monotonic() - started) * 1000)},
        )
        return response

    def _tell_text(self, text: str) -> None:
        try:
            self._on_text(text)
        except (Exception, SystemExit):  # noqa: BLE001, S110 - an observer that fails harms nothing
            pass

    def _log_retry(self, retry: Retry) -> None:
        with self._interrupt.hold():
            self._log.append(
                "error",
                {
                    "where": "model",
                    "message": retry.reason,
                    "attempt": retry.attempt,
                    "attempts": retry.attempts,
                    "retry_seconds": round(retry.wait_seconds, 3),
                },
            )


def change_history(
    session: Session, log: ActionLog, why: str, start: int, stop: int, messages: Sequence[Message] = ()
) -> None:
    """Record that a range of the conversation (counted without the system message) is replaced, and replace it.

    Raises LogError, and ValueError for a range that would part a call from its result; then nothing is changed.
    """
    session.history.check_splice(start, stop, messages)
    session.last_usage = Usage()  # how long it is now, the next reply will tell
    changed: list[JsonValue] = [message_json(message) for message in messages]
    log.append("history_changed", {"why": why, "start": start, "stop": stop, "messages": changed}, sync=True)
    session.history.splice(start, stop, messages)


def _room(messages: Sequence[Message], context_tokens: int | None, *, too_long: bool) -> tuple[int, int]:
    """Return how many characters of the newest messages are kept, and how many a request for a summary may have.

    A token is some four characters of English and code, two to three of other texts; two is on the safe side.
    """
    most = MAX_REQUEST_CHARACTERS
    if context_tokens is not None:
        most = min(most, context_tokens * 2)
    if too_long:
        most = min(most, characters(messages) // 3)
    return min(MAX_KEPT_CHARACTERS, most // 4), most


def _logged(run: Run, response: ModelResponse) -> dict[str, JsonValue]:
    usage = response.usage
    fields: dict[str, JsonValue] = {
        "turn": run.turns,
        "text": response.text,
        "calls": len(response.tool_calls),
        "finish_reason": response.finish_reason.value,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "retries": response.retries,
    }
    if usage.cached_tokens:
        fields["cached_tokens"] = usage.cached_tokens
    if usage.unreported:
        fields["unreported"] = usage.unreported
    if response.echo:
        fields["echo"] = response.echo
    return fields
