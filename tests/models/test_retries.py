"""Which wait comes before the next try, and when there is none."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.errors import CutReply, ModelError, ModelFault
from harness.model import Retry
from harness.models.failures import FailedTry
from harness.models.retries import Retries, retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT

HEADERS: dict[str, tuple[list[tuple[str, str]], float | None]] = {
    "none": ([], None),
    "seconds": ([("retry-after", "7")], 7.0),
    "a fraction": ([("Retry-After", "1.5")], 1.5),
    "white space around it": ([("retry-after", " 2 ")], 2.0),
    "zero": ([("retry-after", "0")], None),
    "negative": ([("retry-after", "-5")], None),
    "huge": ([("retry-after", "9" * 20)], 1e20),
    "longer than a number can be": ([("retry-after", "9" * 400)], float("inf")),
    "a word": ([("retry-after", "soon")], None),
    "words that a number may be in Python": (
        [("retry-after", word) for word in ("inf", "nan", "1e3", "1_0", "0x10")],
        None,
    ),
    "empty": ([("retry-after", "")], None),
    "a date ahead": ([("retry-after", "Tue, 14 Nov 2023 22:13:50 GMT")], 30.0),
    "a date past": ([("retry-after", "Tue, 14 Nov 2023 22:13:10 GMT")], None),
    "a date in the oldest form": ([("retry-after", "Tuesday, 14-Nov-23 22:13:50 GMT")], 30.0),
    "a date that is none": ([("retry-after", "Tue, 99 Nov 2023 22:13:50 GMT")], None),
    "milliseconds": ([("retry-after-ms", "250")], 0.25),
    "milliseconds go first": ([("retry-after", "7"), ("retry-after-ms", "250")], 0.25),
    "milliseconds that are none": ([("retry-after-ms", "-1"), ("retry-after", "7")], 7.0),
    "several: the longest": ([("retry-after", "7"), ("retry-after", "junk"), ("retry-after", "9")], 9.0),
}


@all_rows(("headers", "expected"), HEADERS)
def test_what_a_provider_asks_to_wait(headers: list[tuple[str, str]], expected: float | None) -> None:
    assert retry_after(headers, NOW) == expected


def busy(retry_after: float | None = None, *, passing: bool = True, cut: bool = False) -> FailedTry:
    return FailedTry("busy.", fault=ModelFault.SERVER, passing=passing, cut=cut, retry_after=retry_after)


def test_waits_double_up_to_a_most() -> None:
    retries = Retries(attempts=9, seconds=100)
    waits = [retries.after(busy(), shown=False, elapsed=0).wait_seconds for _ in range(7)]
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]
    assert retries.failed == 7


def test_jitter_takes_up_to_a_quarter_off() -> None:
    assert Retries(attempts=2, seconds=9).after(busy(), shown=False, elapsed=0, jitter=1).wait_seconds == 0.375


def test_a_retry_says_which_try_failed_and_why() -> None:
    assert Retries(attempts=3, seconds=9).after(busy(3), shown=False, elapsed=0) == Retry(
        attempt=1, attempts=3, wait_seconds=3, reason="busy."
    )


LASTING = {
    "no try left": (Retries(attempts=1, seconds=9), busy(), {}, ModelError, "busy."),
    "not worth a try": (Retries(attempts=9, seconds=9), busy(passing=False), {}, ModelError, "busy."),
    "a cut reply stays one": (Retries(attempts=1, seconds=9), busy(cut=True), {}, CutReply, "busy."),
    "the wait is too long": (
        Retries(attempts=9, seconds=900),
        busy(60.1),
        {},
        ModelError,
        "busy. The provider asks to wait 60 s; more than 60 s are not waited. Try again later.",
    ),
    "the time for tries is over": (Retries(attempts=9, seconds=10), busy(), {"elapsed": 9.6}, ModelError, "busy."),
    "an endless wait": (
        Retries(attempts=9, seconds=900),
        busy(float("inf")),
        {},
        ModelError,
        "busy. The provider asks to wait inf s; more than 60 s are not waited. Try again later.",
    ),
}


@all_rows(("retries", "failure", "more", "kind", "text"), LASTING)
def test_there_is_an_end_to_it(
    retries: Retries, failure: FailedTry, more: dict[str, float], kind: type[ModelError], text: str
) -> None:
    with pytest.raises(ModelError) as raised:
        retries.after(failure, shown=False, elapsed=more.get("elapsed", 0.0))
    assert (type(raised.value), str(raised.value), raised.value.fault) == (kind, text, ModelFault.SERVER)


def test_the_last_failure_says_how_often_it_was_tried() -> None:
    retries = Retries(attempts=2, seconds=9)
    retries.after(busy(), shown=False, elapsed=0)
    with pytest.raises(ModelError, match=r"^busy\. \(tried 2 times\)$"):
        retries.after(busy(), shown=False, elapsed=0)


def test_a_wait_that_the_run_has_no_time_for_ends_it() -> None:
    with pytest.raises(ModelError) as raised:
        Retries(attempts=9, seconds=99).after(busy(5), shown=False, elapsed=0, left=4.2)
    assert raised.value.fault is ModelFault.TIME
    assert str(raised.value) == "busy. The time that the run has left, 4.2 s, is over before the next try."


def test_a_reply_that_showed_something_begins_again_once() -> None:
    retries = Retries(attempts=9, seconds=99)
    assert retries.after(busy(), shown=False, elapsed=0).reason == "busy."
    assert retries.after(busy(), shown=True, elapsed=0).reason == "busy. The reply begins again."
    assert retries.after(busy(), shown=False, elapsed=0).reason == "busy."
    with pytest.raises(ModelError, match=r"^busy\. \(tried 4 times\)$"):
        retries.after(busy(), shown=True, elapsed=0)
