"""Requests to an OpenAI-compatible server through the openai SDK (2.x and 3.x), the only importer of it.

The SDK does what it is best at: addresses, authentication, connections. Its typed calls are passed by: they encode the
whole history anew for every turn, repair nothing, and retry out of sight. This module judges and runs nothing.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol, cast

from harness.errors import ModelError
from harness.messages import ModelResponse
from harness.model import Retry
from harness.models.endpoint import Endpoint
from harness.models.provider_text import excerpt, provider_message
from harness.models.reply_body import Assembly, ReplyBody
from harness.record import replace

if TYPE_CHECKING:
    import openai

MAX_RETRY_AFTER_SECONDS = 60.0
"""A provider that asks for a longer wait has failed: a person decides better than a sleeping program."""
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 8.0
"""Doubled from the first to the most, as the SDK does (its `_constants.py`); up to a quarter less by jitter."""

_PASSING_STATUSES = frozenset((408, 409, 429))
_LOOPBACK = re.compile(r"https?://(localhost|127(\.\d+){3}|\[::1\])(:|/|$)", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many tokens", re.IGNORECASE
)
# The server reads the body as it comes, so that the SDK hands it over unread (`_base_client._process_response`).
_UNREAD = {"X-Stainless-Raw-Response": "stream"}


class _Answer(Protocol):
    """What is used of the SDK's APIResponse."""

    def iter_bytes(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class _PassingFailure(ModelError):
    """A request that may succeed when it is sent again; never leaves this module."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        """Seconds, as the provider asks."""


class OpenAIWire:
    """One server, one client. Sends bodies, tries again where that is safe, and reads replies; one at a time."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """Take the model's name (for error texts) and where it is; nothing is imported, opened or sent yet.

        `sleep` waits before a retry; `jitter` returns a number from 0 to below 1, random.random where it is None.

        Raises ValueError if the endpoint allows no attempt.
        """
        if endpoint.attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {endpoint.attempts}")
        self.model = model
        self._endpoint = endpoint
        self._sleep = sleep
        self._jitter = jitter
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None

    def warm_up(self) -> None:
        """Import the SDK and build the client, in any thread: it takes longer than everything else before a request.

        Raises nothing: what fails here fails again in `complete`, where it can be told.
        """
        try:
            self._connected()
        except ModelError:
            pass

    def close(self) -> None:
        """Close the connections; the next `complete` opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def ask(
        self,
        path: str,
        body: bytes,
        assembly: Callable[[str], Assembly],
        *,
        taken_ids: AbstractSet[str],
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,  # noqa: ARG002 - the next commit keeps to it
    ) -> ModelResponse:
        """POST `body` to `path` below the base URL, and return the reply that `assembly(secret)` puts together.

        Sent again are requests that failed with 408, 409, 429, 500 and above, or on the way, before an event of the
        reply came in. Raises CutReply and ModelError as `Model.complete` does; exceptions of `on_text`, `on_retry` and
        `sleep` pass through.
        """
        client = self._connected()
        failed = 0
        while True:
            reply = ReplyBody(assembly(client.api_key), secret=client.api_key)
            try:
                self._read(client, path, body, reply, on_text)
            except _PassingFailure as failure:
                failed += 1
                retry = self._retry(failure, failed)
            else:
                return replace(reply.response(taken_ids), retries=failed)
            on_retry(retry)
            self._sleep(retry.wait_seconds)

    def _read(
        self, client: openai.OpenAI, path: str, body: bytes, reply: ReplyBody, on_text: Callable[[str], None]
    ) -> None:
        answer = self._send(client, path, body)
        try:
            for data in answer:
                for text in reply.feed(data):
                    on_text(text)
        except _PassingFailure as failure:
            if not reply.finished and reply.started:
                raise reply.cut(str(failure).rstrip(".")) from None
            if not reply.finished:
                raise
        finally:
            answer.close()
        for text in reply.end():
            on_text(text)

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._new_client()
                except ModelError:
                    raise
                except Exception as error:  # noqa: BLE001 - a broken installation, an address that is none
                    raise ModelError(
                        f"The openai client cannot be made: {type(error).__name__}: {self._excerpt(str(error))}"
                    ) from None
            return self._client

    def _new_client(self) -> openai.OpenAI:
        import weakref

        import openai

        timeout = openai.Timeout(self._endpoint.deadlines.idle, connect=self._endpoint.deadlines.connect)
        # A proxy named in the environment cannot reach this machine's own loopback.
        own = openai.DefaultHttpxClient(trust_env=False) if _LOOPBACK.match(self._endpoint.base_url or "") else None
        try:
            client = openai.OpenAI(
                api_key=self._endpoint.api_key,
                base_url=self._endpoint.base_url,
                timeout=timeout,
                max_retries=0,
                http_client=own,
            )
        except openai.OpenAIError:
            raise ModelError(_NO_KEY) from None
        weakref.finalize(self, client.close)
        if not client.api_key.strip():
            raise ModelError(_NO_KEY)
        if not client.api_key.isascii() or not client.api_key.isprintable():
            raise ModelError(
                "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY."
            )
        if not str(client.base_url).startswith(("http://", "https://")):
            raise ModelError(f"The base URL must begin with http:// or https://, not {str(client.base_url)[:200]!r}.")
        return client

    def _send(self, client: openai.OpenAI, path: str, body: bytes) -> Generator[bytes, None, None]:
        """Send the request and yield the body of the answer; the one place where the SDK may raise what it likes.

        INVARIANT: when the generator is closed, the connection is free again, whatever happened.
        """
        try:
            answer = _post(client, path, body)
            try:
                yield from answer.iter_bytes()
            finally:
                answer.close()
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of its parts through; here they get their class
            raise self._failure(client, error) from None

    def _retry(self, failure: _PassingFailure, failed: int) -> Retry:
        """Return what to wait for. Raises ModelError if there are no tries left or the wait would be too long."""
        if failed >= self._endpoint.attempts:
            raise ModelError(f"{failure} (tried {failed} times)" if failed > 1 else str(failure)) from None
        wait = failure.retry_after
        if wait is not None and wait > MAX_RETRY_AFTER_SECONDS:
            raise ModelError(
                f"{failure} The provider asks to wait {wait:.0f} s; more than {MAX_RETRY_AFTER_SECONDS:.0f} s are not "
                "waited. Try again later."
            ) from None
        if wait is None:
            wait = min(FIRST_BACKOFF_SECONDS * 2 ** min(failed - 1, 10), MAX_BACKOFF_SECONDS) * (
                1 - 0.25 * self._random()
            )
        return Retry(attempt=failed, attempts=self._endpoint.attempts, wait_seconds=wait, reason=str(failure))

    def _random(self) -> float:
        if self._jitter is not None:
            return self._jitter()
        import random

        return random.random()  # noqa: S311 - spreads retries, protects nothing

    def _failure(self, client: openai.OpenAI, error: Exception) -> ModelError:
        """Return `error` as one of ours, with a text that says what to do."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return self._status_failure(client, error)
        address = _shown_address(str(client.base_url))
        causes = list(_causes(error))
        names = {cls.__name__ for cause in causes for cls in type(cause).__mro__}
        told = next((text for cause in reversed(causes) if (text := str(cause).strip())), "")
        what = self._excerpt(f"{type(causes[-1]).__name__}: {told}")
        if "SSLCertVerificationError" in names or "CERTIFICATE_VERIFY_FAILED" in told:
            return ModelError(f"The certificate of {address} cannot be verified: {what}")
        if "ConnectTimeout" in names:
            return _PassingFailure(
                f"{address} did not take the connection within {self._endpoint.deadlines.connect:g} s."
            )
        if "TimeoutException" in names or isinstance(error, openai.APITimeoutError):
            return _PassingFailure(f"{address} sent nothing for {self._endpoint.deadlines.idle:g} s.")
        # LocalProtocolError and UnsupportedProtocol are ours: they would fail in the same way again.
        if names & {"TransportError", "OSError"} and not names & {"LocalProtocolError", "UnsupportedProtocol"}:
            return _PassingFailure(f"The connection to {address} failed: {what}.")
        return ModelError(f"The request to {address} failed: {what}")

    def _status_failure(self, client: openai.OpenAI, error: openai.APIStatusError) -> ModelError:
        status, headers = error.status_code, error.response.headers
        said = provider_message(error.body, client.api_key)
        told = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        if status in _PASSING_STATUSES or status >= 500:
            lasting = headers.get("x-should-retry") == "false" or error.code == "insufficient_quota"
            text = f"The provider could not answer ({told})."
            return ModelError(text) if lasting else _PassingFailure(text, _retry_after(headers))
        if status == 400 and (error.code == "context_length_exceeded" or _TOO_LONG.search(said)):
            status = 413
        return ModelError(self._refusal(status, told, _shown_address(str(client.base_url))))

    def _refusal(self, status: int, told: str, address: str) -> str:
        match status:
            case 401:
                return (
                    f"{address} refused the API key ({told}). Set OPENAI_API_KEY to a key that is valid there, or "
                    "OPENAI_BASE_URL to the provider that the key is for."
                )
            case 403:
                return (
                    f"{address} does not allow this ({told}). See whether the key in OPENAI_API_KEY may use model "
                    f"{self.model!r}."
                )
            case 404:
                return (
                    f"There is no model {self.model!r} at {address} ({told}). Check the model's name, and the base URL: "
                    "it usually ends in /v1."
                )
            case 413:
                return f"The conversation is too long for model {self.model!r} ({told}). Begin a new one."
            case _:
                return f"The provider refused the request ({told})."

    def _excerpt(self, text: str) -> str:
        return excerpt(text, self._client.api_key if self._client is not None else self._endpoint.api_key or "")


_NO_KEY = (
    "There is no API key. Set OPENAI_API_KEY; a local server that wants no key takes any text. "
    "`harness demo` needs neither key nor network."
)


def _post(client: openai.OpenAI, path: str, body: bytes) -> _Answer:
    """POST `body` through the SDK's generic request; 3.x takes bytes as `content`, 2.x as `body`."""
    if "content" in (type(client).post.__kwdefaults__ or {}):
        answer = client.post(path, cast_to=object, content=body, options={"headers": _UNREAD})
    else:
        answer = client.post(path, cast_to=object, body=body, options={"headers": _UNREAD})
    return cast(_Answer, answer)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what caused it, the first cause last; a chain longer than ten is cut."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _shown_address(base_url: str) -> str:
    """Return the base URL without what may be secret in it: user, password, query."""
    return re.sub(r"//[^/@]*@", "//", base_url.partition("?")[0]).rstrip("/")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a provider asks to wait; None where it asks nothing that makes sense.

    `retry-after-ms` is in milliseconds; `retry-after` in seconds or a date (RFC 9110, section 10.2.3).
    """
    seconds = _number(headers.get("retry-after-ms")) / 1000
    if not seconds > 0:
        value = headers.get("retry-after")
        seconds = _number(value)
        if math.isnan(seconds) and value:
            seconds = _date(value) - time.time()
    return seconds if 0 < seconds < math.inf else None


def _number(text: str | None) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        return math.nan


def _date(text: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return math.nan
