"""The loop's interface to a provider's model; models/ implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from harness.actions import JsonValue
from harness.declared_types import CheckedRecord
from harness.messages import Message, ModelResponse, Usage
from harness.record import Record, field_names

MAX_REPLY_CHARACTERS = 5_505_024
"""Maximum length of a reply's text and its logged additions, in characters.

A character may take twelve bytes, and a longer reply would not fit a log record.
"""


class ToolSpec(CheckedRecord):
    """Description of a tool for the model."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments: an object with `additionalProperties` false.

    The registry checks calls against it.
    """
    is_checked: bool = True
    """Whether the registry checks the arguments.

    For a foreign tool, its runner checks them with the tool's own schema.
    """


class ModelSettings(CheckedRecord):
    """The user's settings for the model. `None` and empty values are not sent, so that the server decides."""

    max_output_tokens: int | None = None
    """Maximum number of tokens of a reply."""
    effort: str = ""
    """Amount of reasoning, in a word of the provider such as low, medium or high."""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """Texts at which a reply ends."""
    verbosity: str = ""
    service_tier: str = ""
    extra_body: Mapping[str, JsonValue] = {}
    """Further fields of a request."""
    extra_headers: Mapping[str, str] = {}
    """Further headers of a request. INVARIANT: none of them carries a key."""

    def stated_settings(self) -> dict[str, JsonValue]:
        """Return the settings that are set, for the log. Only the names of headers are included."""
        settings = {name: getattr(self, name) for name in field_names(ModelSettings) if name != "extra_headers"}
        fields = {name: value for name, value in settings.items() if value is not None and value not in ("", (), {})}
        if self.stop:
            fields["stop"] = list(self.stop)
        return {**fields, "extra_headers": [*self.extra_headers]} if self.extra_headers else fields


class Retry(Record):
    """A failed request that is sent again: after a transient failure, or in another form that the server requires."""

    attempt: int
    """Number of the failed try, from 1."""
    attempts: int
    """Maximum number of tries."""
    wait_seconds: float
    reason: str
    usage: Usage = Usage()
    """Usage of the failed try. A reply that broke off is billed too."""


class Model(Protocol):
    """A provider's model, with any API."""

    @property
    def name(self) -> str:
        """The model's name, for the log and the user."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the complete reply to `messages`.

        `on_text` receives the text as it arrives, `on_retry` every failed try before the wait. The adapter itself
        retries after transient failures, as often as it is configured to. Limits on turns, tokens and cost are checked
        before a request, not before each retry. `seconds` is the remaining time of the run, which also limits the
        waits.

        Raises CutReply for an unfinished reply, and ModelError for every other failure (with the fault TIME if
        `seconds` have passed). KeyboardInterrupt passes through.
        """
        ...


class OwnModel(Model, Protocol):
    """A model that is used by only one conversation."""

    def close(self) -> None:
        """Close the connections."""
        ...


_PER_TOKENS = 1_000_000


class Prices(CheckedRecord):
    """Prices of one model, in dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """Price of input tokens that the provider read from a cache. `None` means the price of other input tokens."""
    cache_write: float | None = None
    """Price of input tokens that the provider wrote to a cache. `None` means the price of other input tokens."""

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of `usage` in dollars, or `None` if the provider did not report the usage of some reply."""
        if usage.unreported:
            return None
        cached = min(usage.cached_tokens, usage.input_tokens)
        written = min(usage.cache_write_tokens, usage.input_tokens - cached)
        cached_price = self.input if self.cached_input is None else self.cached_input
        write_price = self.input if self.cache_write is None else self.cache_write
        inward = (usage.input_tokens - cached - written) * self.input + cached * cached_price + written * write_price
        return (inward + usage.output_tokens * self.output) / _PER_TOKENS
