"""Bounds on a run, stated by policies and flags; the strictest of each wins."""

from __future__ import annotations

from collections.abc import Iterable

from harness.record import Record, field_names


class Limits(Record):
    """Bounds on a run; `None` is a bound that was not stated."""

    max_turns: int | None = None
    """Requests to the model; one that is tried again counts once more with every try."""
    max_seconds: float | None = None
    """Wall time for a run, or for a turn at the prompt."""
    max_tokens: int | None = None
    """Input and output tokens together, as the provider reports them; a reply for which it reports none ends the run."""
    max_cost: float | None = None
    """Dollars, by the prices of the person's own configuration; the cost of a reply must be known."""
    max_refusals: int | None = None
    max_bad_calls: int | None = None
    """Calls in a row that could not even be prepared."""
    command_seconds: float | None = None
    """Time limit of a command without one of its own, and the greatest that it may request; at most
    MAX_COMMAND_SECONDS.
    """
    result_characters: int | None = None
    """Maximum length of a tool result; the middle of a longer one is cut."""

    def filled(self) -> Limits:
        """Return these limits with defaults for those that were not stated."""
        return Limits(**{name: value if (value := getattr(self, name)) is not None else getattr(STANDARD, name)
                         for name in field_names(Limits)})  # fmt: skip


STANDARD = Limits(max_turns=50, max_refusals=20, max_bad_calls=5, command_seconds=600.0, result_characters=30_000)
"""Defaults; seconds, tokens and cost have no bound."""

MAX_COMMAND_SECONDS = 1_000_000
"""Eleven days. What waits for a command counts milliseconds in an `int` (poll(2)), which ends after 24."""
DEFAULT_COMMAND_SECONDS = 120.0
"""For a command that names no time limit, where the policy allows as much."""


def strictest(limits: Iterable[Limits]) -> Limits:
    """Return the least of each bound over all `limits`; None where none of them states it."""
    stated = list(limits)
    return Limits(**{
        name: min((value for limit in stated if (value := getattr(limit, name)) is not None), default=None)
        for name in field_names(Limits)
    })  # fmt: skip
