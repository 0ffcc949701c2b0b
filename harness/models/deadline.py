"""Until when one try of a request may take, and which of its deadlines comes next; pure: others read the clock."""

from __future__ import annotations

from enum import Enum

from harness.models.connections import Phase
from harness.models.endpoint import Deadlines

CONNECT_SLACK = 1.1
"""The SDK keeps to the deadline of a connect for each address and for TLS; this one is for all of it, names included."""
TAIL_SECONDS = 10.0
"""From the finish reason to the end of the answer: nothing is due but the usage."""
END_SECONDS = 0.25
"""From `[DONE]` to the end of the answer: nothing is due at all, and waiting only keeps the connection for the next."""


class Limit(Enum):
    """Which deadline passed."""

    CONNECT = "connect"
    FIRST_EVENT = "first_event"
    IDLE = "idle"
    TAIL = "tail"
    TOTAL = "total"
    RUN = "run"


class TryClock:
    """The deadlines of one try. Times are those of one monotonic clock, in seconds."""

    def __init__(self, deadlines: Deadlines, *, started: float, run_ends: float | None = None) -> None:
        """Take when the try began, and when the run that it belongs to must end."""
        self._deadlines = deadlines
        self._run_ends = run_ends
        self._total_ends = started + deadlines.total
        self._next = Limit.CONNECT
        self._next_ends = started + deadlines.connect * CONNECT_SLACK

    def reached(self, phase: Phase, now: float) -> None:  # noqa: ARG002 - both begin the wait for the first event anew
        """The request is connected, or sent: the first event is waited for from now on."""
        if self._next in {Limit.CONNECT, Limit.FIRST_EVENT}:
            self._set(Limit.FIRST_EVENT, now + self._deadlines.first_event)

    def event(self, now: float) -> None:
        """An event with data came in."""
        self._set(Limit.IDLE, now + self._deadlines.idle)

    def finished(self, now: float) -> None:
        """The reply said that it is finished; the answer may go on."""
        self._set(Limit.TAIL, now + min(TAIL_SECONDS, self._deadlines.idle))

    def over(self, now: float) -> None:
        """Nothing can follow but the end of the answer."""
        self._set(Limit.TAIL, now + END_SECONDS)

    def next(self) -> tuple[float, Limit]:
        """Return when the next deadline is, and which."""
        found = min((self._next_ends, 2, self._next), (self._total_ends, 1, Limit.TOTAL), key=lambda end: end[:2])
        if self._run_ends is not None and self._run_ends <= found[0]:
            return self._run_ends, Limit.RUN
        return found[0], found[2]

    def _set(self, limit: Limit, ends: float) -> None:
        self._next, self._next_ends = limit, ends
