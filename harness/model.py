"""The loop's interface to a provider's model; models/ implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from harness.actions import JsonValue
from harness.messages import Message, ModelResponse, Usage
from harness.record import Record, field_names

MAX_REPLY_CHARACTERS = 5_505_024
"""Maximum length of a reply's text and its logged additions: a longer one would not fit a record, in which a
character may take twelve bytes.
"""


class ToolSpec(Record):
    """Description of a tool for the model."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments, an object with `additionalProperties` false; the registry checks calls against it."""
    is_checked: bool = True
    """Whether the registry checks the arguments; the runner of a foreign tool does so itself, by its own schema."""


class ModelSettings(Record):
    """A person's settings for the model's answers. `None` and empty ones are not sent: the server decides."""

    max_output_tokens: int | None = None
    """Maximum number of tokens of a reply."""
    effort: str = ""
    """Amount of thinking: a word of the provider's, such as low, medium or high."""
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
        """Return the stated settings, for the log; only the names of headers."""
        settings = {name: getattr(self, name) for name in field_names(ModelSettings) if name != "extra_headers"}
        fields = {name: value for name, value in settings.items() if value is not None and value not in ("", (), {})}
        if self.stop:
            fields["stop"] = list(self.stop)
        return {**fields, "extra_headers": [*self.extra_headers]} if self.extra_headers else fields


class Retry(Record):
    """A request that failed and is sent again: for a passing reason, or in the way that the server wants it."""

    attempt: int
    """Number of the failed try, from 1."""
    attempts: int
    """Maximum number of tries."""
    wait_seconds: float
    reason: str
    usage: Usage = Usage()
    """Usage of the failed try: a reply that broke off is paid for too."""


class Model(Protocol):
    """A provider's model, over any wire."""

    @property
    def name(self) -> str:
        """The model's name, for the log and the person."""
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
        """Return the whole reply to `messages`.

        `on_text` gets the text as it comes, `on_retry` every failed try before the wait. Transient failures are retried
        in here, as often as the adapter was told to: limits on turns, tokens and cost are looked at before a request, not
        before each of its tries. `seconds` is what is left of the run: nothing in here, waits included, takes longer.

        Raises CutReply for a reply that was not finished, ModelError for everything else that failed (with the fault
        TIME where `seconds` have passed); KeyboardInterrupt passes through.
        """
        ...


class OwnModel(Model, Protocol):
    """A model that one conversation has for itself."""

    def close(self) -> None:
        """Close the connections."""
        ...


_PER_TOKENS = 1_000_000


class Prices(Record):
    """Dollars per million tokens of one model."""

    input: float
    output: float
    cached_input: float | None = None
    """For input tokens that the provider had in a cache; None: the same as for the others."""
    cache_write: float | None = None
    """For input tokens that it put into a cache; None: the same as for the others."""

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
