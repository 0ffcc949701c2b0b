"""A clock that a test moves: what must come in time does, however busy the machine is, and what must be late is late."""

from __future__ import annotations

HOUR = 3600.0


class Clock:
    """Seconds that pass only at looks: each look is `step` later than the one before, also none or less than none.

    With a step below zero there is always time. A step just below a deadline leaves it, and what is struck, a moment.
    """

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now
