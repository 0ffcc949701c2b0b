"""The questions that were asked before calls, with their answers: who said what, how fast, and which came in a burst."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from harness.actions import JsonValue
from harness.audit.calls import LoggedCall, Who, about_call, about_decision, edited_from, edited_to, text
from harness.record import Record

BURST_SECONDS, BURST = 10.0, 3
"""So many times yes within so many seconds are a burst."""


class LoggedQuestion(Record):
    """A question that the gate asked."""

    call: LoggedCall
    in_burst: bool
    """Whether the person said yes at least BURST times within BURST_SECONDS, this among them."""

    @property
    def answer(self) -> str:
        """One of order.ANSWERS; empty where the log has no answer."""
        return self.call.answer

    @property
    def seconds(self) -> float | None:
        """How long the answer took."""
        return self.call.waited

    @property
    def by_person(self) -> bool:
        """Whether a person answered."""
        return self.call.answered_by is Who.PERSON

    @property
    def is_quick(self) -> bool:
        """Whether a person answered in under a second."""
        return self.call.is_quick

    def fields(self) -> dict[str, JsonValue]:
        """Return what is written of it as JSON."""
        answered = self.call.answered
        return {
            "row": "question",
            **about_call(self.call),
            **about_decision(self.call),
            "time": text(self.call.asked or self.call.answered, "time"),
            "shown_sha256": text(self.call.asked, "shown_sha256") or None,
            "answer": self.answer or None,
            "answered_at": text(answered, "time") or None,
            "answered_by": text(answered, "by") or None,
            "words": text(answered, "words"),
            "seconds": self.seconds,
            "quick": self.is_quick,
            "in_burst": self.in_burst,
            "edited_to": edited_to(self.call),
            "edited_from": edited_from(self.call),
            "fate": self.call.fate.value,
            "status": text(self.call.outcome, "status") or None,
        }


def questions(calls: Iterable[LoggedCall]) -> Iterator[LoggedQuestion]:
    """Yield the questions among these calls, in their order; keeps those of the last BURST_SECONDS.

    Whether a yes is in a burst is told within one log: the answers of one person at one terminal.
    """
    waiting: deque[_Waiting] = deque()
    yeses: deque[_Waiting] = deque(maxlen=BURST)
    for call in calls:
        if not (call.asked or call.answered):
            continue
        if waiting and waiting[-1].call.log != call.log:
            yield from _released(waiting)
            yeses.clear()
        one = _Waiting(call)
        waiting.append(one)
        if one.is_yes:
            yeses.append(one)
            if len(yeses) == BURST and _within(yeses[0], one):
                for yes in yeses:
                    yes.in_burst = True
        while waiting and not (waiting[0] in list(yeses)[-BURST + 1 :] and _within(waiting[0], one)):
            yield waiting.popleft().question()
    yield from _released(waiting)


class _Waiting:
    """A question of which it is not known yet whether two more times yes follow soon."""

    def __init__(self, call: LoggedCall) -> None:
        self.call = call
        self.in_burst = False
        self.is_yes = call.answer == "yes" and call.answered_by is Who.PERSON

    def question(self) -> LoggedQuestion:
        return LoggedQuestion(call=self.call, in_burst=self.in_burst)


def _within(first: _Waiting, last: _Waiting) -> bool:
    from harness.log.clocks import (
        NANO,
        nanoseconds,
        seconds_between,  # where no person said yes, there is no need
    )

    earlier, later = first.call.answered, last.call.answered or last.call.asked
    if first.call.session == last.call.session:
        between = seconds_between(earlier, later)
        return between is not None and between <= BURST_SECONDS
    # Monotonic clocks of two sessions cannot be compared: they may be of two boots.
    begun, ended = nanoseconds(earlier.get("time")), nanoseconds(later.get("time"))
    return begun is not None and ended is not None and abs(ended - begun) <= BURST_SECONDS * NANO


def _released(waiting: deque[_Waiting]) -> Iterator[LoggedQuestion]:
    while waiting:
        yield waiting.popleft().question()
