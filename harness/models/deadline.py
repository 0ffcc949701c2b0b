"""Until when one try of a request may take, and which of its deadlines comes next; pure: others read the clock."""

from __future__ import annotations

from enum import Enum

from harness.models.connections import Phase
from harness.models.endpoint import Deadlines
from harness.record import Record

CONNECT_SLACK = 1.1
"""The SDK keeps to the deadline of a connect for each address and for TLS; this one is for all of it, names included."""
ERROR_SECONDS = 10.0
"""From an error status to the end of what the server says about it."""
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


class Timing(Record):
    """How long the steps of one try took, in seconds from its start; None where it did not come so far."""

    connected: float | None = None
    first_event: float | None = None
    """The first with data; None for an answer that is no stream."""


class TryClock:
    """The deadlines of one try. Times are those of one monotonic clock, in seconds."""

    def __init__(self, deadlines: Deadlines, *, started: float, run_ends: float | None = None) -> None:
        """Take when the try began, and when the run that it belongs to must end."""
        self._deadlines = deadlines
        self._run_ends = run_ends
        self._started = started
        self._connected: float | None = None
        self._sent = False
        self._first_event: float | None = None
        self._total_ends = started + deadlines.total
        self._next = Limit.CONNECT
        self._next_ends = started + deadlines.connect * CONNECT_SLACK

    @property
    def timing(self) -> Timing:
        """How fast it went so far."""
        return Timing(connected=self._connected, first_event=self._first_event)

    def reached(self, phase: Phase, now: float) -> None:
        """The request came so far. From when it was sent the first event is waited for; where the server moves it, no
        longer for that."""
        match phase:
            case Phase.CONNECTED if self._connected is None:
                self._connected = now - self._started
                self._set(Limit.FIRST_EVENT, now + self._deadlines.first_event)
            case Phase.SENT if not self._sent and self._first_event is None:
                self._sent = True
                self._set(Limit.FIRST_EVENT, now + self._deadlines.first_event)
            case Phase.REFUSED:
                ends = now + min(ERROR_SECONDS, self._deadlines.first_event)
                self._set(Limit.FIRST_EVENT, min(ends, self._next_ends))
            case _:
                pass

    def event(self, now: float) -> None:
        """An event with data came in."""
        if self._first_event is None:
            self._first_event = now - self._started
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
