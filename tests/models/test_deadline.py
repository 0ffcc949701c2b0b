"""Which deadline of a try comes next."""

from __future__ import annotations

from rows import all_rows

from harness.models.endpoint import Deadlines
from harness.models.exchange import Limit, Phase, Timing, TryClock

SET = Deadlines(connect=10, first_event=100, idle=50, total=1000)


def clock(run_ends: float | None = None, deadlines: Deadlines = SET) -> TryClock:
    return TryClock(deadlines, started=1000.0, run_ends=run_ends)


def test_each_step_begins_its_own_wait() -> None:
    found = clock()
    assert found.next() == (1011.0, Limit.CONNECT)
    found.reached(Phase.CONNECTED, 1001.0)
    assert found.next() == (1101.0, Limit.FIRST_EVENT)
    found.reached(Phase.SENT, 1002.0)
    assert found.next() == (1102.0, Limit.FIRST_EVENT)
    found.event(1050.0)
    assert found.next() == (1100.0, Limit.IDLE)
    found.reached(Phase.SENT, 1060.0)
    assert found.next() == (1100.0, Limit.IDLE)
    found.finished(1070.0)
    assert found.next() == (1080.0, Limit.TAIL)
    found.over(1070.5)
    assert found.next() == (1070.75, Limit.TAIL)


def test_the_steps_are_timed_once() -> None:
    found = clock()
    assert found.timing == Timing()
    for seconds in (1.5, 2.5):
        found.reached(Phase.CONNECTED, 1000.0 + seconds)
        found.reached(Phase.SENT, 1003.0 + seconds)
    assert found.timing == Timing(connected=1.5)
    for seconds in (8.0, 9.0):
        found.event(1000.0 + seconds)
    assert found.timing == Timing(connected=1.5, first_event=8.0)


@all_rows(
    ("now", "run_ends", "expected"),
    [
        (1000.0, 1500.0, (1050.0, Limit.IDLE)),
        (1980.0, None, (2000.0, Limit.TOTAL)),
        (1980.0, 1990.0, (1990.0, Limit.RUN)),
        (1980.0, 2000.0, (2000.0, Limit.RUN)),
    ],
)
def test_the_nearest_deadline_counts(now: float, run_ends: float | None, expected: tuple[float, Limit]) -> None:
    found = clock(run_ends)
    found.event(now)
    assert found.next() == expected


def test_the_end_of_a_reply_is_waited_for_no_longer_than_an_event() -> None:
    found = clock(deadlines=Deadlines(idle=2))
    found.finished(1000.0)
    assert found.next() == (1002.0, Limit.TAIL)
