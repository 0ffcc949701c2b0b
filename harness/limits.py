"""Limits of a run, set by policies and flags. The strictest value of each applies."""

from __future__ import annotations

from collections.abc import Iterable

from harness.declared_types import CheckedRecord
from harness.record import field_names


class Limits(CheckedRecord):
    """Limits of a run. `None` is a limit that was not set."""

    max_turns: int | None = None
    """Maximum number of requests to the model. Each retry counts as one more."""
    max_seconds: float | None = None
    """Wall time in seconds, for a run or for a turn at the prompt."""
    max_tokens: int | None = None
    """Input and output tokens together, as the provider reports them. A reply without reported usage ends the run."""
    max_cost: float | None = None
    """Dollars, by the prices in the user's own configuration. A reply of unknown cost ends the run."""
    max_refusals: int | None = None
    max_bad_calls: int | None = None
    """Maximum number of consecutive calls that could not even be prepared."""
    command_seconds: float | None = None
    """Default time limit of a command in seconds, and the longest limit that it may request.

    At most MAX_COMMAND_SECONDS.
    """
    result_characters: int | None = None
    """Maximum length of a tool result in characters. The middle of a longer result is cut."""

    def filled(self) -> Limits:
        """Return these limits, with the defaults for limits that were not set."""
        return Limits(**{name: value if (value := getattr(self, name)) is not None else getattr(STANDARD, name)
                         for name in field_names(Limits)})  # fmt: skip


STANDARD = Limits(max_turns=50, max_refusals=20, max_bad_calls=5, command_seconds=600.0, result_characters=30_000)
"""Default limits. Time, tokens and cost are unlimited."""

MAX_COMMAND_SECONDS = 1_000_000
"""Eleven days. The wait for a command counts milliseconds in an `int` (poll(2)), which overflows after 24 days."""
DEFAULT_COMMAND_SECONDS = 120.0
"""Time limit of a command that requests none, in seconds, if the policy allows as much."""


def strictest(limits: Iterable[Limits]) -> Limits:
    """Return the lowest value of each limit. `None` for a limit that is not set in any of `limits`."""
    stated = list(limits)
    return Limits(**{
        name: min((value for limit in stated if (value := getattr(limit, name)) is not None), default=None)
        for name in field_names(Limits)
    })  # fmt: skip
