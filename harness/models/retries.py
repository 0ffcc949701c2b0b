"""Decide whether a failed request is sent again, and after which wait. Callers read the clock, and wait.

Sending again is safe: no part of a failed reply was run or is in the history, so the next try begins like the first.
But it costs money, and it repeats text that the user has already read. So a reply that broke off after some of it was
displayed is requested only once more, and a message tells the user that it begins again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from harness.errors import ModelError, ModelFault
from harness.messages import Usage
from harness.model import Retry
from harness.models.endpoint import CacheMarks, Quirks
from harness.models.failures import EMPTY_ANSWER, FailedTry, ProviderRefusal, duration
from harness.record import replace
from harness.regex import regex

BACKOFF_SECONDS = (0.5, 8.0)
"""First and longest wait in seconds. Waits double, as in the SDK (`_constants.py`); jitter subtracts up to a quarter."""
RATE_BACKOFF_SECONDS = (8.0, 120.0)
"""First and longest wait after a rate limit. Five tries take two minutes, since most limits count per minute."""
MAX_BEGUN_AGAIN = 1
"""Maximum number of retries after a reply of which some text or call had arrived."""
MAX_NOBODY_THERE = 1
"""Maximum number of retries if no server listens on this machine. One is enough for a server that is just starting."""
BEGINS_AGAIN = "The reply begins again."
ASKS_DIFFERENTLY = "It is asked again in the way that the server takes."

_SECONDS = regex(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


class Retries:
    """The tries of one request."""

    def __init__(self, *, attempts: int, seconds: float) -> None:
        """`attempts` is the maximum number of tries, including the first. A try may begin up to `seconds` after the first."""
        self.failed = 0
        """Number of failed tries."""
        self._attempts = attempts
        self._seconds = seconds
        self._begun_again = 0
        self._nobody_there = 0

    def after(
        self,
        failure: FailedTry,
        *,
        is_shown: bool,
        elapsed: float,
        seconds_left: float | None = None,
        jitter: float = 0.0,
    ) -> Retry:
        """Return the next try with its wait.

        `is_shown` says whether text or a call had begun to arrive. `elapsed` is the time in seconds since the first try
        began, `seconds_left` the remaining time of the run, `jitter` a number from 0 to below 1.

        Raises the failure as CutReply or ModelError if this was the last try.
        """
        self.failed += 1
        if not failure.passing:
            raise failure.lasting(self._tried())
        if is_shown:
            self._begun_again += 1
        self._nobody_there += failure.nobody_there
        wait = self._wait(failure, jitter)
        if self._nobody_there > MAX_NOBODY_THERE:
            raise failure.lasting(self._tried())
        if self.failed >= self._attempts or self._begun_again > MAX_BEGUN_AGAIN:
            raise failure.lasting(self._tried())
        if elapsed + wait > self._seconds:
            raise failure.lasting(self._tried() + self._too_long(failure, elapsed))
        if seconds_left is not None and wait >= seconds_left:
            raise ModelError(
                f"{failure} The time that the run has left, {max(seconds_left, 0.0):.1f} s, is over before the next try.",
                fault=ModelFault.TIME,
                usage=failure.usage,
            )
        reason = f"{failure} {BEGINS_AGAIN}" if is_shown else str(failure)
        return self._retry(failure, wait, reason)

    def differently(self, failure: FailedTry) -> Retry:
        """Return an immediate retry after a refusal to which the request was adapted. It does not use up an attempt."""
        self.failed += 1
        self._attempts += 1
        return self._retry(failure, 0.0, f"{failure} {ASKS_DIFFERENTLY}")

    def _retry(self, failure: FailedTry, wait: float, reason: str) -> Retry:
        return Retry(
            attempt=self.failed,
            attempts=self.failed + MAX_NOBODY_THERE if failure.nobody_there else self._attempts,
            wait_seconds=wait,
            reason=reason,
            usage=failure.usage or Usage(),
        )

    def _wait(self, failure: FailedTry, jitter: float) -> float:
        """Return the wait in seconds, as the provider requests. From the second failure on, at least the backoff."""
        requested = failure.retry_after
        limited = failure.refusal is not None and failure.refusal.is_rate_limit
        first, longest = RATE_BACKOFF_SECONDS if limited else BACKOFF_SECONDS
        doublings = self.failed - (1 if requested is None else 2)
        backoff = min(first * 2 ** min(doublings, 10), longest) * (1 - 0.25 * jitter) if doublings >= 0 else 0.0
        return max(requested or 0.0, backoff)

    def _too_long(self, failure: FailedTry, elapsed: float) -> str:
        """Return a sentence if the provider requests a wait beyond the time for retries, else an empty string."""
        requested = failure.retry_after
        if requested is None or elapsed + requested <= self._seconds:
            return ""
        return (
            f" The provider asks to wait {requested:.0f} s; of `retry_seconds` ({self._seconds:g}) "
            f"{max(self._seconds - elapsed, 0.0):.0f} s are left. Try again later, or raise it."
        )

    def _tried(self) -> str:
        return f" (tried {self.failed} times)" if self.failed > 1 else ""


def retry_after(headers: Iterable[tuple[str, str]], now: float) -> float | None:
    """Return the wait in seconds that the headers of an answer ask for at the time `now` (seconds since 1970).

    `retry-after-ms` (OpenAI, Azure) is in milliseconds and precedes `retry-after`: seconds, or a date (RFC 9110, section
    10.2.3). Of several values the longest counts; malformed, past and zero ones are skipped. `None` if none is left.
    """
    waits: dict[str, float] = {}
    for name, value in headers:
        key = name.lower()
        if key == "retry-after-ms":
            seconds = _number(value) / 1000
        elif key == "retry-after":
            seconds = _number(value)
            if math.isnan(seconds):
                seconds = _date(value) - now
        else:
            continue
        if seconds > 0:
            waits[key] = max(seconds, waits.get(key, 0.0))
    return waits.get("retry-after-ms", waits.get("retry-after"))


def limit_reset(headers: Iterable[tuple[str, str]], now: float) -> float | None:
    """Return the seconds until every exhausted limit is reset, by headers such as `x-ratelimit-reset-tokens: 6m0s`.

    A limit is exhausted if its header with `remaining` in place of `reset` is 0 or missing. A value is seconds, a duration
    (OpenAI, Groq), a time in seconds or milliseconds since 1970 (OpenRouter), or a date (Anthropic). `None` if there is none.
    """
    values = {name.lower(): value.strip() for name, value in headers if "ratelimit" in name.lower()}
    resets = [
        _until(value, now)
        for name, value in values.items()
        if "reset" in name and values.get(name.replace("reset", "remaining"), "0") == "0"
    ]
    return max((seconds for seconds in resets if seconds > 0), default=None)


def _until(value: str, now: float) -> float:
    """Return the seconds from `now` to the time that the value of a reset header names; NaN for a malformed one."""
    number = _number(value)
    if number > 1e11:
        return number / 1000 - now
    if not math.isnan(number):
        return number - now if number > 1e8 else number
    if (seconds := duration(value)) is not None:
        return seconds
    from datetime import datetime

    try:
        return datetime.fromisoformat(value).timestamp() - now
    except ValueError:
        return math.nan


def _number(text: str) -> float:
    """Parse a decimal number. NaN for other text, including forms that only `float` accepts."""
    return float(text) if _SECONDS.fullmatch(text.strip()) else math.nan


def _date(text: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return math.nan


Lesson: TypeAlias = Callable[[Quirks, ProviderRefusal], Quirks]
"""Returns the quirks adapted to a refusal. Unchanged if the refusal is about something else."""

_ABOUT_THE_REQUEST = frozenset((0, 400, 422, 500, 501))
"""Statuses of refusals to adapt to. 0 is for an error inside an answer; llama-server uses 500."""

# llama-server: "Cannot use tools with stream". Texts of other servers: streaming is not supported, or not with tools.
_NO_STREAM = regex(
    r"tools? with stream|stream\w*[^.]{0,40}(not|n't) (supported|support|allowed|available)|"
    r"(not|n't) support[^.]{0,40}stream|stream\w*[^.]{0,40}(unsupported|tool|function)"
)
# DeepSeek: "The `reasoning_content` in the thinking mode must be passed back to the API", before "Missing `reasoning_content`
# field in the assistant message". Kimi: "thinking is enabled but reasoning_content is missing in assistant tool call message".
_ECHO_WANTED = regex(r"must be passed back|missing `?reasoning|reasoning\w* is missing")
# OpenAI says "Encrypted content is not supported with this model" (pydantic/pydantic-ai#2865), others name the field.
_NO_ENCRYPTED_REASONING = regex(r"\binclude\b|encrypted.?content")


def learned(quirks: Quirks, refusal: ProviderRefusal, lessons: tuple[Lesson, ...]) -> Quirks:
    """Return `quirks` adapted by the first lesson that applies to the refusal."""
    return next((taught for lesson in lessons if (taught := lesson(quirks, refusal)) != quirks), quirks)


def no_usage(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn not to ask for the usage of a stream."""
    is_named = "stream_options" in refusal.words or "include_usage" in refusal.words
    applies = quirks.stream and quirks.usage and refusal.status in _ABOUT_THE_REQUEST
    return replace(quirks, usage=False) if is_named and applies else quirks


def wanted_echo(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn that every assistant message must hold a field of reasoning, even a message without reasoning."""
    mentioned_name = next((name for name in quirks.echo if name in refusal.words), "")
    applies = refusal.status in {0, 400, 422} and _ECHO_WANTED.search(refusal.words)
    return replace(quirks, wanted_echo=mentioned_name) if mentioned_name and applies else quirks


def less_echo(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn not to send back the fields of a reply's message that the refusal names."""
    if refusal.status not in _ABOUT_THE_REQUEST - {500} or _ECHO_WANTED.search(refusal.words):
        return quirks
    return replace(quirks, echo=tuple(name for name in quirks.echo if name not in refusal.words))


def other_output_field(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn the other name of the field for the maximum output. The old name is tried first, and each name only once.

    OpenAI's text: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'
    instead."
    """
    applies = quirks.output_field == "max_tokens" and refusal.status in _ABOUT_THE_REQUEST
    is_named = applies and "max_completion_tokens" in refusal.words
    return replace(quirks, output_field="max_completion_tokens") if is_named else quirks


def no_cache_marks(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn not to send cache marks, for a compatible server that refuses them."""
    is_named = refusal.status in {0, 400, 422} and "cache_control" in refusal.words
    return replace(quirks, cache_marks=CacheMarks.NOWHERE) if is_named else quirks


def no_streams(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn to request replies as a whole, which may also reveal the reason of an empty stream.

    llama-cpp-python streams no text for a prompt that is too long, and reports that without streaming.
    """
    applies = quirks.stream and refusal.status in _ABOUT_THE_REQUEST
    refused = EMPTY_ANSWER in refusal.codes or _NO_STREAM.search(refusal.words)
    return replace(quirks, stream=False) if applies and refused else quirks


def no_encrypted_reasoning(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Learn not to ask for encrypted reasoning."""
    applies = quirks.encrypted_reasoning and refusal.status in {0, 400, 404, 422}
    return (
        replace(quirks, encrypted_reasoning=False)
        if applies and _NO_ENCRYPTED_REASONING.search(refusal.words)
        else quirks
    )
