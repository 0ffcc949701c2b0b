"""One conversation (Session), and all the state of one prompt's work on it (Run): counters, limits, and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from harness.actions import JsonValue
from harness.gate.refused_calls import RefusedCalls, refusal_limit
from harness.history import History
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.attachments import attachment_fields
from harness.log.transcript import message_json
from harness.messages import Attachment, Message, Role, RunResult, StopReason, ToolCall, Usage
from harness.model import Prices
from harness.record import Record


class Session:
    """One conversation. `identity` is its ID in the log. Created by `Agent.start`."""

    def __init__(self, system: str, identity: str) -> None:
        self.identity = identity
        self.history = History(system)
        self.usage = Usage()
        self.helpers_usage = Usage()
        """Usage of its helpers."""
        self.last_usage = Usage()
        """Usage of the last exchange: the conversation's length in tokens, as the provider counts them."""
        self.ended = False
        self.notes: list[str] = []
        """Notes for the model that hooks or the background left, to be sent with the next request."""

    @property
    def messages(self) -> list[Message]:
        """The conversation, the system message first. Changed by History only."""
        return self.history.messages

    @property
    def whole_usage(self) -> Usage:
        """Usage of the session, helpers included."""
        return self.usage + self.helpers_usage

    def change(self, log: ActionLog, reason: str, start: int, stop: int, messages: Sequence[Message] = ()) -> None:
        """Replace a range of the conversation (counted without the system message), and record that first.

        Raises LogError, and ValueError for a range that would part a call from its result; then nothing is changed.
        """
        changed: list[JsonValue] = [message_json(message) for message in messages]
        fields: dict[str, JsonValue] = {"why": reason, "start": start, "stop": stop, "messages": changed}
        self.history.splice(start, stop, messages, before=lambda: log.append("history_changed", fields, sync=True))
        self.last_usage = Usage()  # the next reply reports the new length


class News(Record):
    """Something that happened between the calls of a session."""

    kind: str
    """Kind of its record."""
    fields: Mapping[str, JsonValue]
    """Fields of its record."""
    note: str = ""
    """Note for the model. Empty if it needs none."""


class Background(Protocol):
    """Work of a session that goes on between its calls, such as commands in the background."""

    def news(self) -> Sequence[News]:
        """Return the events since the last call."""
        ...

    def close(self) -> None:
        """End all work, and wait for its end."""
        ...


class NoBackground:
    """The background of a session in which nothing goes on between calls."""

    def news(self) -> Sequence[News]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Do nothing."""


class Interjection(Record):
    """A message that the user sends while a run goes on."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def no_interjection() -> Interjection | None:
    """Return `None`: the user sends no message during the run."""
    return None


class HelpersUse(Record):
    """Usage of a run's helpers, which counts against the limits of their caller."""

    turns: int = 0
    """Number of requests and retries."""
    refusals: int = 0
    usage: Usage = Usage()


class Run:
    """State of the work on one prompt."""

    def __init__(
        self,
        session: Session,
        limits: Limits,
        log: ActionLog,
        *,
        prices: Prices | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the clock and the counters. `limits` must be filled (`Limits.filled`)."""
        self.session = session
        self.limits = limits
        self.log = log
        self.end: RunResult | None = None
        """End of the run. `None` while it goes on."""
        self.turns = 0
        self.retries = 0
        self._refusals = RefusedCalls()
        self.bad_calls = 0
        self.unusable = 0
        """Number of consecutive replies that had no answer or were cut."""
        self.usage = Usage()
        self.last_action = "none"
        self.helpers = HelpersUse()
        self.text = ""
        self.compacted = False
        """Whether the conversation was summarized because the provider found it too long; done once per run."""
        self.told_unfit = False
        """Whether the model got a message that its answer does not fit the request; done once per run."""
        self.told_by_hook = False
        """Whether the model got a message with a hook's objection to its answer; done once per run."""
        self.interjection: Callable[[], Interjection | None] = no_interjection
        """Function that returns the next message that the user sent during the run. `None` if there is none."""
        self._prices = prices
        self._monotonic = monotonic
        self._started = monotonic()

    @property
    def result(self) -> RunResult:
        """The end of the run. If it has none, a result with `INTERNAL_ERROR`, since that is a bug in harness."""
        return self.end or self._result_of(StopReason.INTERNAL_ERROR, "")

    def stop(self, reason: StopReason, detail: str = "") -> None:
        """End the run."""
        self.end = self._result_of(reason, detail)

    def _result_of(self, reason: StopReason, detail: str) -> RunResult:
        return RunResult(
            stop=reason,
            text=self.text,
            detail=detail,
            turns=self.turns + self.helpers.turns,
            refusals=self.whole_refusals,
            usage=self.whole_usage,
            cost=self.cost,
        )

    def stop_at_limit(self, limit: str) -> None:
        """End the run at `limit`, and record that. An empty `limit` has no effect. Raises LogError."""
        if not limit:
            return
        self.log.append("limit", {"limit": limit, "last_action": self.last_action})
        detail = (
            f"a limit was reached: {limit}. Last action: {self.last_action}. "
            "To go on, raise the limit in the policy's [limits] or by flag, or give a new prompt."
        )
        self.stop(StopReason.LIMIT, detail)

    def ask(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Add a message of the user to the conversation, and record it. Raises LogError."""
        self.log.append("user_message", {"text": text, **attachment_fields(attachments)})
        self.session.history.ask(text, attachments)

    def take_interjections(self) -> None:
        """Add the messages that the user sent during the run, if the conversation ends with results. Raises LogError.

        Elsewhere a message would be joined to the user's message before it.
        """
        if self.session.messages[-1].role is Role.TOOL:
            while (message := self.interjection()) is not None:
                self.ask(message.text, message.attachments)

    def tell_model(self, text: str) -> None:
        """Add a message from harness, not from the user, to the conversation, and record it. Raises LogError."""
        self.log.append("user_message", {"text": text, "by": "harness"})
        self.session.history.ask(text)

    @property
    def cost(self) -> float | None:
        """Cost of the run in dollars, helpers included. `None` if unknown."""
        return self.cost_of(self.whole_usage)

    @property
    def whole_usage(self) -> Usage:
        """Usage of the run, helpers included."""
        return self.usage + self.helpers.usage

    @property
    def whole_refusals(self) -> int:
        """Number of refused calls, those of helpers included."""
        return self._refusals.count + self.helpers.refusals

    @property
    def tries(self) -> int:
        """Number of requests and retries, those of helpers included."""
        return self.turns + self.retries + self.helpers.turns

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of a part of the run in dollars; `None` if unknown."""
        return self._prices.cost(usage) if self._prices is not None else None

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds of the run, at least 0; `None` without a limit."""
        limit = self.limits.max_seconds
        return None if limit is None else max(0.0, limit - self._seconds)

    def limit_reached(self) -> str:
        """Return the limit that forbids another request, or an empty string."""
        limits, tries, usage = self.limits, self.tries, self.whole_usage
        if limits.max_turns is not None and tries >= limits.max_turns:
            verb = "request was" if tries == 1 else "requests were"
            return f"{tries} {verb} made (turns = {limits.max_turns})"
        if refusals := self._refusal_limit:
            return refusals
        if self.time_is_over:
            return self.time_limit
        # An unknown amount counts as over the limit.
        if limits.max_tokens is not None:
            if usage.unreported:
                return f"the provider did not report how many tokens it used (tokens = {limits.max_tokens})"
            tokens = usage.input_tokens + usage.output_tokens
            if tokens >= limits.max_tokens:
                return f"{tokens} tokens were used (tokens = {limits.max_tokens})"
        if limits.max_cost is not None:
            cost = self.cost
            if cost is None:
                return f"what the run has cost is not known (cost = {limits.max_cost:g})"
            if cost >= limits.max_cost:
                return f"{cost:.4f} dollars were spent (cost = {limits.max_cost:g})"
        return ""

    @property
    def time_is_over(self) -> bool:
        """Whether the run has reached its time limit."""
        return self.limits.max_seconds is not None and self._seconds >= self.limits.max_seconds

    @property
    def time_limit(self) -> str:
        """Message about the time limit: seconds passed, and the limit."""
        return f"{self._seconds:.0f} seconds have passed (seconds = {self.limits.max_seconds or 0:g})"

    def refused(self, call: ToolCall) -> str:
        """Count a refused call; return the limit that it reaches, or an empty string."""
        return self._refusals.add(call) or self._refusal_limit

    @property
    def _refusal_limit(self) -> str:
        """Message about the limit of refusals if it is reached, otherwise empty."""
        return refusal_limit(self.whole_refusals, self.limits.max_refusals)

    def misunderstood(self) -> str:
        """Count a call that could not be prepared; return the limit that it reaches, or an empty string."""
        self.bad_calls += 1
        if self.limits.max_bad_calls is not None and self.bad_calls >= self.limits.max_bad_calls:
            return f"{self.bad_calls} calls in a row could not be understood (bad_calls = {self.limits.max_bad_calls})"
        return ""

    @property
    def _seconds(self) -> float:
        return self._monotonic() - self._started
