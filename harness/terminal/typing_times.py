"""The times at which the user last typed text ahead, and last answered a question. All readers of keys share them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

TYPED_SECONDS = 10.0
"""Seconds after typed text within which the user may still be typing when a question appears."""
ANSWER_SECONDS = 1.0
"""Seconds after an answer within which no key answers another question, and a short word belongs to the answer."""
WORD_SECONDS = 3.0
"""Seconds after an answer within which the rest of a slowly typed word belongs to it."""
LONGEST_REST = 4
"""Maximum number of letters after an answer that can belong to it, such as the `eah` of `yeah`."""
_RESTS = ("es", "o")
"""The rest of `yes` after the answer `y`, and of `no` after `n`."""


class TypingTimes:
    """Times of the user's last text and last answer."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Use a clock."""
        self._monotonic = monotonic
        self._typed_at = self._answered_at = -math.inf

    def type(self) -> None:
        """Record that the user is typing."""
        self._typed_at = self._monotonic()

    def answer(self) -> None:
        """Record that the user has just answered."""
        self._answered_at = self._monotonic()

    @property
    def is_typing(self) -> bool:
        """Whether the user typed a short time ago."""
        return self._monotonic() - self._typed_at < TYPED_SECONDS

    @property
    def answer_seconds(self) -> float:
        """Remaining seconds in which keys belong to the last answer; 0 if none remain."""
        return max(0.0, ANSWER_SECONDS - self._since_answer)

    def ends_answer(self, line: str) -> bool:
        """Return whether a line that was typed and finished after the last answer belongs to it."""
        is_short = not line or (len(line) <= LONGEST_REST and line.isalpha())
        seconds = WORD_SECONDS if line.lower() in _RESTS else ANSWER_SECONDS if is_short else 0.0
        return self._since_answer < seconds

    def begins_rest(self, text: str) -> bool:
        """Return whether unfinished text after the last answer begins the rest of its word."""
        is_rest = bool(text) and any(rest.startswith(text.lower()) for rest in _RESTS)
        return is_rest and self._since_answer < WORD_SECONDS

    @property
    def _since_answer(self) -> float:
        return self._monotonic() - self._answered_at
