"""The interrupt: when a request raises, when it waits, and that no window is left open, with real signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from harness.interrupt import Interrupt


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    """An interrupt that SIGUSR1 requests, as the program wires SIGINT to it."""
    made = Interrupt()

    def on_signal(number: int, frame: FrameType | None) -> None:
        made.request()

    before = signal.signal(signal.SIGUSR1, on_signal)
    yield made
    signal.signal(signal.SIGUSR1, before)


def strike() -> None:
    """Send the signal to this process; its function has run, or raised, when this returns."""
    signal.raise_signal(signal.SIGUSR1)


def test_outside_a_window_a_signal_is_only_noted(interrupt: Interrupt) -> None:
    strike()
    strike()
    assert interrupt.requested is True


def in_window(interrupt: Interrupt, *steps: Callable[[], None]) -> None:
    """Take `steps` inside a window."""
    with interrupt:
        for step in steps:
            step()


def held(interrupt: Interrupt, *steps: Callable[[], None]) -> None:
    """Take `steps` while the window is held shut."""
    with interrupt.hold():
        for step in steps:
            step()


def fail() -> None:
    raise ValueError("the body's own")


def test_signal_inside_a_window_raises_immediately(interrupt: Interrupt) -> None:
    after: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        in_window(interrupt, strike, lambda: after.append(True))
    assert (after, interrupt.requested) == ([], True)
    strike()


def test_window_does_not_open_after_an_earlier_request(interrupt: Interrupt) -> None:
    """Raised at the door: the body is never entered. The door is shut again."""
    strike()
    entered = False
    with pytest.raises(KeyboardInterrupt), interrupt:
        entered = True
    assert entered is False
    strike()


def test_after_a_window_signals_are_noted_again(interrupt: Interrupt) -> None:
    """Also where the body failed of itself."""
    with interrupt:
        pass
    strike()
    interrupt.clear()
    with pytest.raises(ValueError, match="the body's own"):
        in_window(interrupt, fail)
    strike()
    assert interrupt.requested is True


def test_clear_forgets(interrupt: Interrupt) -> None:
    strike()
    interrupt.clear()
    with interrupt:
        entered = True
    assert entered is True


def test_a_request_for_later_never_raises(interrupt: Interrupt) -> None:
    with interrupt:
        interrupt.request_later()
    assert interrupt.requested is True


def test_second_signal_does_not_interrupt_the_cleanup_of_the_first(interrupt: Interrupt) -> None:
    """The end of a process group, say: it is done when the exception leaves the window."""
    cleaned: list[bool] = []

    def work() -> None:
        try:
            strike()
        finally:
            strike()
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        in_window(interrupt, work)
    assert cleaned == [True]


@pytest.mark.parametrize("place", ["__enter__", "__exit__"])
@pytest.mark.parametrize("error", [None, ValueError("x")], ids=["after a body that ended", "after a body that failed"])
def test_a_signal_at_any_line_of_the_door_leaves_no_window_open(
    interrupt: Interrupt, place: str, error: Exception | None
) -> None:
    """Python runs a signal's function between any two lines; one that lands in the door's own code counts as well."""
    for line in range(10):
        interrupt.clear()
        try:
            with_signal_at(place, line, interrupt, lambda: pass_through(interrupt, error))
        except (KeyboardInterrupt, ValueError):
            pass
        strike()  # the window is shut, or this raises


def pass_through(interrupt: Interrupt, error: Exception | None) -> None:
    with interrupt:
        if error is not None:
            raise error


def with_signal_at(place: str, line: int, interrupt: Interrupt, body: Callable[[], None]) -> None:
    """Run `body`; strike at the start (line 0) or before the n-th line of the method `place` of an Interrupt."""
    seen = -1

    def trace(frame: FrameType, event: str, argument: object) -> object:
        nonlocal seen
        if frame.f_code.co_name != place or frame.f_locals.get("self") is not interrupt:
            return None
        if event in ("call", "line"):
            seen += 1
            if seen == line:
                strike()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        body()
    finally:
        sys.settrace(before)


# --- a window held shut --------------------------------------------------------------------------------------------


def test_a_signal_while_the_window_is_held_waits_until_it_is_not(interrupt: Interrupt) -> None:
    """What was begun is finished; then it raises."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        in_window(
            interrupt,
            lambda: held(interrupt, strike, lambda: done.append("what was begun")),
            lambda: done.append("what comes after"),
        )
    assert done == ["what was begun"]
    strike()


def test_holding_has_no_effect_without_a_signal(interrupt: Interrupt) -> None:
    """The window is open again behind it, and shut behind the window."""
    with pytest.raises(KeyboardInterrupt):
        in_window(interrupt, lambda: held(interrupt), strike)
    interrupt.clear()
    strike()


def test_holding_no_window_opens_none(interrupt: Interrupt) -> None:
    held(interrupt, strike)
    strike()
    assert interrupt.requested is True


def test_an_error_inside_is_not_replaced_by_an_interrupt(interrupt: Interrupt) -> None:
    """A log that cannot be written is the graver news."""
    with pytest.raises(ValueError, match="the body's own"):
        in_window(interrupt, lambda: held(interrupt, strike, fail))
    strike()


def test_an_error_inside_that_is_caught_leaves_the_window_open(interrupt: Interrupt) -> None:
    """Nothing was requested, and the body goes on: it can still be interrupted."""

    def work() -> None:
        with pytest.raises(ValueError, match="the body's own"):
            held(interrupt, fail)
        strike()

    with pytest.raises(KeyboardInterrupt):
        in_window(interrupt, work)


def test_request_from_another_thread_takes_effect_at_the_next_window(interrupt: Interrupt) -> None:
    in_window(interrupt, interrupt.note, interrupt.note)
    assert (interrupt.requested, interrupt.count) == (True, 2)
    with pytest.raises(KeyboardInterrupt):
        in_window(interrupt)
