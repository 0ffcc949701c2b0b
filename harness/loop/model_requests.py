"""Requests to the model for a run. Each is logged with its result and counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from harness.actions import JsonValue
from harness.declared_types import record_problem, type_name
from harness.errors import HarnessError, ModelError, ModelFault
from harness.interrupt import Interrupt
from harness.log.vocabulary import SUMMARY
from harness.loop.reply_calls import MOST_UNUSABLE
from harness.loop.run import Run
from harness.messages import Message, ModelResponse, StopReason, Usage
from harness.model import MAX_REPLY_CHARACTERS, Model, Prices, Retry, ToolSpec


def _ignore_text(text: str) -> None:
    pass


class ModelRequests:
    """Sends requests to the model, logs them with their replies, and counts them against the run's limits."""

    def __init__(
        self,
        model: Model,
        prices: Prices | None,
        *,
        interrupt: Interrupt,
        on_text: Callable[[str], None] = _ignore_text,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        """The model; may be changed between requests, together with its prices."""
        self.prices = prices
        self._interrupt = interrupt
        self._on_text = on_text
        self._monotonic = monotonic

    def ask(self, run: Run, tools: Sequence[ToolSpec]) -> ModelResponse:
        """Return the reply to the session's conversation.

        Raises ModelError, LogError, and KeyboardInterrupt if the user stopped it.
        """
        response = self._ask(run, run.session.messages, tools, {}, self._tell_text)
        run.session.last_usage = response.usage
        return response

    def ask_for_summary(self, run: Run, request: Sequence[Message]) -> ModelResponse:
        """Return the reply to `request`, outside of the conversation: no observer gets its text. Raises the errors of
        `ask`.
        """
        return self._ask(run, request, (), {"purpose": SUMMARY}, _ignore_text)

    def log_failure(self, run: Run, error: ModelError) -> None:
        """Record a request that failed for good, with its usage. Raises LogError."""
        used = _logged_usage(run, error.usage or Usage())
        run.log.append("error", {"where": "model", "message": str(error), "fault": error.fault.value, **used})

    def without_answer(self, run: Run, problem: str) -> None:
        """Record a reply that is not an answer. It is left out of the conversation. The second in a row ends the run.

        Raises LogError.
        """
        again = run.unusable < MOST_UNUSABLE
        problem += " The request is repeated once." if again else " This is the second unusable reply in a row."
        self.log_failure(run, ModelError(problem, fault=ModelFault.REPLY))
        if not again:
            run.stop(StopReason.NO_ANSWER, problem)

    def _ask(
        self,
        run: Run,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        fields: dict[str, JsonValue],
        on_text: Callable[[str], None],
    ) -> ModelResponse:
        run.turns += 1
        run.log.append("model_request", {**fields, "turn": run.turns, "messages": len(messages)})
        started = self._monotonic()

        def on_retry(retry: Retry) -> None:
            run.retries += 1
            _count(run, retry.usage)
            self._log_retry(run, retry)

        try:
            with self._interrupt:
                response = self.model.complete(
                    messages, tools, on_text=on_text, on_retry=on_retry, seconds=run.seconds_left
                )
        except ModelError as error:
            _count(run, error.usage or Usage())
            raise
        except HarnessError:
            raise
        except Exception as error:
            raise ModelError(f"the model adapter failed: {type(error).__name__}: {error}") from error
        _check_types(response)
        _count(run, response.usage)
        _check_size(response)
        logged = {**fields, **_logged(run, response)}
        client = getattr(self.model, "client", "")
        if isinstance(client, str) and client:
            logged["client"] = client  # the SDK and its version
        logged["ms"] = round((self._monotonic() - started) * 1000)
        run.log.append("model_response", logged)
        return response

    def _tell_text(self, text: str) -> None:
        try:
            self._on_text(text)
        except (Exception, SystemExit):  # noqa: BLE001, S110 - an observer that fails harms nothing
            pass

    def _log_retry(self, run: Run, retry: Retry) -> None:
        with self._interrupt.hold():
            run.log.append(
                "error",
                {
                    "where": "model",
                    "message": retry.reason,
                    "attempt": retry.attempt,
                    "attempts": retry.attempts,
                    "retry_seconds": round(retry.wait_seconds, 3),
                    **_logged_usage(run, retry.usage),
                },
            )


def _check_types(response: object) -> None:
    """Raise ModelError unless `response` is a valid ModelResponse. Type checkers do not see every adapter."""
    problem = ""
    if not isinstance(response, ModelResponse):
        problem = f"`complete` must return a ModelResponse, not {type_name(response)}"
    elif not (problem := record_problem(response)):
        parts = (*response.tool_calls, response.usage)
        problem = next((problem for part in parts if (problem := record_problem(part))), "")
    if problem:
        raise ModelError(f"the model adapter failed: {problem}")


def _check_size(response: ModelResponse) -> None:
    """Raise ModelError for a reply whose text, call names and call ids are too long for a log record."""
    texts = [response.text, response.echo, *(text for call in response.tool_calls for text in (call.id, call.name))]
    characters = sum(map(len, texts))
    if characters > MAX_REPLY_CHARACTERS:
        raise ModelError(
            f"The reply has {characters:,} characters; at most {MAX_REPLY_CHARACTERS:,} are taken, and it was dropped.",
            usage=response.usage,
        )


def _count(run: Run, usage: Usage) -> None:
    """Add the usage of a request, or of one try of it, to the run and the session."""
    run.usage += usage
    run.session.usage += usage


def _logged_usage(run: Run, usage: Usage) -> dict[str, JsonValue]:
    """Return the usage of a failed try, for the log; empty if no reply had begun."""
    if usage == Usage():
        return {}
    fields: dict[str, JsonValue] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if usage.unreported:
        fields["unreported"] = usage.unreported
    return {**fields, **_logged_cost(run, usage)}


def _logged_cost(run: Run, usage: Usage) -> dict[str, JsonValue]:
    """Return the cost in dollars, for the log; empty if it is unknown."""
    cost = run.cost_of(usage)
    return {} if cost is None else {"cost": round(cost, 9)}


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
    for name in ("cached_tokens", "cache_write_tokens", "unreported"):
        if count := getattr(usage, name):
            fields[name] = count
    if response.echo:
        fields["echo"] = response.echo
    return {**fields, **_logged_cost(run, usage)}
