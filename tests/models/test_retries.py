"""Which wait comes before the next try, and when there is none."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.errors import CutReply, ModelError, ModelFault
from harness.model import Retry
from harness.models.failures import FailedTry, broken_off, refusal_of, refused
from harness.models.retries import Retries, limit_reset, retry_after

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
def test_retry_delay_is_read_from_the_headers(headers: list[tuple[str, str]], expected: float | None) -> None:
    assert retry_after(headers, NOW) == expected


def busy(retry_after: float | None = None, *, passing: bool = True, cut: bool = False) -> FailedTry:
    return FailedTry("busy.", fault=ModelFault.SERVER, passing=passing, cut=cut, retry_after=retry_after)


def test_waits_double_up_to_a_most() -> None:
    retries = Retries(attempts=9, seconds=100)
    waits = [retries.after(busy(), is_shown=False, elapsed=0).wait_seconds for _ in range(7)]
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]
    assert retries.failed == 7


def limited(message: str = "slow down", *, status: int = 429, **fields: object) -> FailedTry:
    refusal = refusal_of({"error": {"message": message, **fields}}, status=status)
    return refused(refusal, model="m1", address="http://a", key_variable="KEY")


def test_an_untold_rate_limit_is_waited_for_by_minutes() -> None:
    retries = Retries(attempts=9, seconds=1000)
    waits = [retries.after(limited(), is_shown=False, elapsed=0).wait_seconds for _ in range(6)]
    assert waits == [8, 16, 32, 64, 120, 120]


def test_a_wait_that_was_too_short_is_lengthened() -> None:
    retries = Retries(attempts=9, seconds=300)
    waits = [
        retries.after(limited("Please try again in 250ms."), is_shown=False, elapsed=0).wait_seconds for _ in range(4)
    ]
    assert waits == [0.25, 8, 16, 32]


WORDED_WAITS: dict[str, tuple[FailedTry, float | None]] = {
    "OpenAI": (
        limited(
            "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, "
            "Requested 7000. Please try again in 12.5s. Visit https://platform.openai.com/account/rate-limits."
        ),
        12.5,
    ),
    "OpenAI, milliseconds": (limited("Please try again in 350ms."), 0.35),
    "Groq, minutes": (limited("Used 99, Requested 9. Please try again in 2m59.56s. Need more tokens?"), 179.56),
    "hours": (limited("Your quota will reset after 1h16m0.667s."), 4560.667),
    "Azure": (limited("Requests have exceeded call rate limit. Please retry after 26 seconds."), 26),
    "Gemini, words": (limited("You exceeded your current quota. Please retry in 12.34s."), 12.34),
    "Gemini, a field": (
        limited(
            "You exceeded your current quota.",
            details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}],
        ),
        12,
    ),
    "LiteLLM": (limited("No deployments available for selected model, Try again in 60 seconds."), 60),
    "words for people": (limited("Please wait 1 minute and 30 seconds before the next request"), 90),
    "Django": (limited("Request was throttled. Expected available in 34 seconds."), 34),
    "a field in seconds": (limited(retry_after=26), 26),
    "a field in seconds by its name": (limited(resets_in_seconds=40), 40),
    "a field in milliseconds": (limited(retryAfterMs=1500), 1.5),
    "a field in a text of the provider behind": (limited(metadata={"raw": '{"retry_after": 7}'}), 7),
    "a model that loads": (limited("Model x is currently loading", status=503, estimated_time=20.5), 20.5),
    "within an answer": (broken_off({"code": 429, "message": "Try again in 9s"}), 9),
    "none": (limited("Too many requests. Please wait before trying again."), None),
    "a number of something else": (limited("Please retry. Limit: 20 requests"), None),
    "a time of something else": (limited("Unavailable. See also: 3 m"), None),
    "an ID that begins like a duration": (limited("Try again later (request 5d41402abc4b)"), None),
    "an ID of one duration": (limited("Try again later, request 5d-41402abc4b"), None),
    "zero": (limited("Please try again in 0s."), None),
    "a zero field": (limited(retry_after=0), None),
    "not worth another try": (limited("no money; try again in 5s", code="insufficient_quota"), 5),
}


@all_rows(("failure", "expected"), WORDED_WAITS)
def test_waits_are_read_from_the_text_of_an_error(failure: FailedTry, expected: float | None) -> None:
    assert failure.retry_after == (expected if expected is None else pytest.approx(expected))


RESETS: dict[str, tuple[list[tuple[str, str]], float | None]] = {
    "none": ([("x-ratelimit-remaining-tokens", "0")], None),
    "OpenAI: the exhausted one": (
        [
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("X-RateLimit-Remaining-Tokens", "0"),
            ("X-RateLimit-Reset-Tokens", "1m30s"),
        ],
        90,
    ),
    "none is exhausted": ([("x-ratelimit-remaining-requests", "9"), ("x-ratelimit-reset-requests", "8h")], None),
    "seconds": ([("ratelimit-reset", "15")], 15),
    "a fraction of seconds": ([("x-ratelimit-reset-tokens-minute", "33.01")], 33.01),
    "a time in seconds": ([("x-ratelimit-reset", str(int(NOW) + 30))], 30),
    "a time in milliseconds": ([("X-RateLimit-Reset", str(int(NOW * 1000) + 2500))], 2.5),
    "a date": (
        [("anthropic-ratelimit-tokens-remaining", "0"), ("anthropic-ratelimit-tokens-reset", "2023-11-14T22:13:50Z")],
        30,
    ),
    "a time that is past": ([("x-ratelimit-reset", str(int(NOW) - 30))], None),
    "junk": ([("x-ratelimit-reset", "soon"), ("ratelimit", "limit=9, reset=9")], None),
}


@all_rows(("headers", "expected"), RESETS)
def test_limits_are_reset_at_the_time_that_headers_name(headers: list[tuple[str, str]], expected: float | None) -> None:
    assert limit_reset(headers, NOW) == (expected if expected is None else pytest.approx(expected))


def test_jitter_takes_up_to_a_quarter_off() -> None:
    assert Retries(attempts=2, seconds=9).after(busy(), is_shown=False, elapsed=0, jitter=1).wait_seconds == 0.375


def test_retry_names_the_failed_try_and_its_reason() -> None:
    assert Retries(attempts=3, seconds=9).after(busy(3), is_shown=False, elapsed=0) == Retry(
        attempt=1, attempts=3, wait_seconds=3, reason="busy."
    )


LASTING = {
    "no try left": (Retries(attempts=1, seconds=9), busy(), {}, ModelError, "busy."),
    "not worth a try": (Retries(attempts=9, seconds=9), busy(passing=False), {}, ModelError, "busy."),
    "a cut reply stays one": (Retries(attempts=1, seconds=9), busy(cut=True), {}, CutReply, "busy."),
    "a wait longer than all tries may take": (
        Retries(attempts=9, seconds=300),
        busy(432),
        {},
        ModelError,
        "busy. The provider asks to wait 432 s; of `retry_seconds` (300) 300 s are left. Try again later, or raise it.",
    ),
    "a wait longer than the time that is left": (
        Retries(attempts=9, seconds=300),
        busy(90),
        {"elapsed": 220},
        ModelError,
        "busy. The provider asks to wait 90 s; of `retry_seconds` (300) 80 s are left. Try again later, or raise it.",
    ),
    "the time for tries is over": (Retries(attempts=9, seconds=10), busy(), {"elapsed": 9.6}, ModelError, "busy."),
    "an endless wait": (
        Retries(attempts=9, seconds=900),
        busy(float("inf")),
        {},
        ModelError,
        "busy. The provider asks to wait inf s; of `retry_seconds` (900) 900 s are left. Try again later, or raise it.",
    ),
}


@all_rows(("retries", "failure", "more", "kind", "text"), LASTING)
def test_there_is_an_end_to_it(
    retries: Retries, failure: FailedTry, more: dict[str, float], kind: type[ModelError], text: str
) -> None:
    with pytest.raises(ModelError) as raised:
        retries.after(failure, is_shown=False, elapsed=more.get("elapsed", 0.0))
    assert (type(raised.value), str(raised.value), raised.value.fault) == (kind, text, ModelFault.SERVER)


def test_last_failure_names_the_number_of_tries() -> None:
    retries = Retries(attempts=2, seconds=9)
    retries.after(busy(), is_shown=False, elapsed=0)
    with pytest.raises(ModelError, match=r"^busy\. \(tried 2 times\)$"):
        retries.after(busy(), is_shown=False, elapsed=0)


def test_a_wait_that_the_run_has_no_time_for_ends_it() -> None:
    with pytest.raises(ModelError) as raised:
        Retries(attempts=9, seconds=99).after(busy(5), is_shown=False, elapsed=0, seconds_left=4.2)
    assert raised.value.fault is ModelFault.TIME
    assert str(raised.value) == "busy. The time that the run has left, 4.2 s, is over before the next try."


def test_a_reply_that_showed_something_begins_again_once() -> None:
    retries = Retries(attempts=9, seconds=99)
    assert retries.after(busy(), is_shown=False, elapsed=0).reason == "busy."
    assert retries.after(busy(), is_shown=True, elapsed=0).reason == "busy. The reply begins again."
    assert retries.after(busy(), is_shown=False, elapsed=0).reason == "busy."
    with pytest.raises(ModelError, match=r"^busy\. \(tried 4 times\)$"):
        retries.after(busy(), is_shown=True, elapsed=0)
