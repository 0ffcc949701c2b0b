"""Prices: what tokens cost, as a person configured it; pure, and never a guess: what is not known has no price."""

from __future__ import annotations

from harness.messages import Usage
from harness.record import Record

_PER_TOKENS = 1_000_000


class Prices(Record):
    """Dollars per million tokens of one model."""

    input: float
    output: float
    cached_input: float | None = None
    """For input tokens that the provider had in a cache; None: the same as for the others."""

    def cost(self, usage: Usage) -> float | None:
        """Return what `usage` cost in dollars, or None if for some reply the provider did not report what it took."""
        if usage.unreported:
            return None
        cached = min(usage.cached_tokens, usage.input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        dear = (usage.input_tokens - cached) * self.input + usage.output_tokens * self.output
        return (dear + cached * cached_price) / _PER_TOKENS
