"""Requests to an OpenAI-compatible server through the openai SDK (2.x and 3.x), the only importer of it.

The SDK does what it is best at: addresses, authentication, connections. Its typed calls are passed by: they encode the
whole history anew for every turn, repair nothing, and retry out of sight. This module judges and runs nothing.
"""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol, assert_never, cast

from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import ModelResponse
from harness.model import Retry
from harness.models.connections import Connections
from harness.models.deadline import Limit, TryClock
from harness.models.endpoint import Endpoint
from harness.models.exchange import Exchange
from harness.models.failures import FailedTry, Refusal, refusal_of, refused
from harness.models.provider_text import excerpt
from harness.models.reading import OutOfTime, read_reply
from harness.models.reply_body import Assembly, ReplyBody
from harness.models.retries import Retries, retry_after
from harness.record import replace

if TYPE_CHECKING:
    import openai

SDK_SLACK_SECONDS = 60.0
"""How much later than the deadlines here those of the SDK are, so that they never come first."""

_LOOPBACK = re.compile(r"https?://(localhost|127(\.\d+){3}|\[::1\])(:|/|$)", re.IGNORECASE)
_ALL = ("http://", "https://", "all://")
"""What the environment may name a proxy for, as httpx writes it."""

# The body is read here as it comes: the SDK hands it over unread (`_base_client._process_response`).
_UNREAD = {"X-Stainless-Raw-Response": "stream"}


class _Answer(Protocol):
    """What is used of the SDK's APIResponse."""

    def iter_bytes(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


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
        self._connections = Connections()
        """Those of the client."""
        self._release: Callable[[], object] | None = None

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
            self._client, release, self._release = None, self._release, None
        if release is not None:
            release()

    def ask(
        self,
        path: str,
        body: bytes,
        assembly: Callable[[str], Assembly],
        *,
        taken_ids: AbstractSet[str],
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
        amended: Callable[[Refusal], bytes | None] | None = None,
    ) -> ModelResponse:
        """POST `body` to `path` below the base URL, and return the reply that `assembly(secret)` puts together.

        Sent again is what failed for a passing reason: see retries.py. `amended` gets what a provider said instead of a
        reply, and may return another body, which is sent at once; it must know when it has nothing more to change.

        Raises CutReply and ModelError as `Model.complete` does; exceptions of `on_text`, `on_retry` and `sleep` pass
        through, KeyboardInterrupt at any moment.
        """
        begun = time.monotonic()
        run_ends = None if seconds is None else begun + seconds
        client = self._connected()
        retries = Retries(attempts=self._endpoint.attempts, seconds=self._endpoint.retry_seconds)
        while True:
            reply = ReplyBody(assembly(client.api_key), secret=client.api_key, bounds=self._endpoint.bounds)
            try:
                self._try(path, body, reply, on_text, run_ends)
                return replace(reply.response(taken_ids), retries=retries.failed)
            except CutReply as cut:
                failure = FailedTry(str(cut), fault=cut.fault, passing=True, cut=True)
            except FailedTry as failed:
                failure = failed
            if amended is not None and failure.refusal is not None and (other := amended(failure.refusal)) is not None:
                body = other
                continue
            now = time.monotonic()
            left = None if run_ends is None else run_ends - now
            retry = retries.after(
                failure,
                shown=reply.shown,
                elapsed=now - begun,
                left=left,
                jitter=self._random() if failure.passing else 0,
            )
            on_retry(retry)
            self._sleep(retry.wait_seconds)

    def _try(
        self, path: str, body: bytes, reply: ReplyBody, on_text: Callable[[str], None], run_ends: float | None
    ) -> None:
        """Send the request once and read its answer to the end."""
        client, connections = self._connected(), self._connections
        exchange = Exchange(lambda: self._send(client, path, body), hang_up=connections.hang_up)
        connections.report = exchange.report
        clock = TryClock(self._endpoint.deadlines, started=time.monotonic(), run_ends=run_ends)
        try:
            exchange.start()
            read_reply(exchange, clock, reply, on_text)
        except OutOfTime as late:
            if not reply.finished:
                raise self._late(late.limit, reply, _shown_address(str(client.base_url))) from None
        except FailedTry as failure:
            if reply.finished and failure.fault is ModelFault.CONNECTION:
                pass  # whatever became of the connection, the reply is whole
            elif reply.started and failure.fault is ModelFault.CONNECTION:
                raise reply.cut(str(failure).rstrip("."), ModelFault.CONNECTION) from None
            else:
                raise
        finally:
            if not exchange.close():
                self.close()  # the sockets of this client were shut down; the next request begins with new ones
        for text in reply.end():
            on_text(text)

    def _late(self, limit: Limit, reply: ReplyBody, address: str) -> ModelError:
        """Return the error for a deadline that passed."""
        deadlines, timeout = self._endpoint.deadlines, ModelFault.TIMEOUT
        match limit:
            case Limit.RUN:
                return ModelError(
                    "The time that the run had left is over; the reply was dropped.", fault=ModelFault.TIME
                )
            case Limit.CONNECT:
                text = f"{address} did not take the connection within {deadlines.connect:g} s."
            case Limit.FIRST_EVENT if reply.arrived:
                text = f"{address} sent nothing but keep-alives for {deadlines.first_event:g} s."
            case Limit.FIRST_EVENT:
                text = f"{address} sent nothing for {deadlines.first_event:g} s."
            case Limit.IDLE | Limit.TAIL:
                return reply.cut(f"{address} sent nothing more for {deadlines.idle:g} s", timeout)
            case Limit.TOTAL if reply.started:
                return reply.cut(f"it took longer than {deadlines.total:g} s", timeout)
            case Limit.TOTAL:
                text = f"{address} did not answer within {deadlines.total:g} s."
            case _:
                assert_never(limit)
        return FailedTry(text, fault=timeout, passing=True)

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._new_client()
                except ModelError:
                    raise
                except Exception as error:  # noqa: BLE001 - a broken installation, an address that is none
                    raise _unusable(
                        f"The openai client cannot be made: {type(error).__name__}: {self._excerpt(str(error))}"
                    ) from None
            return self._client

    def _new_client(self) -> openai.OpenAI:
        import openai

        deadlines, connections = self._endpoint.deadlines, Connections()
        timeout = openai.Timeout(
            max(deadlines.total, deadlines.first_event) + SDK_SLACK_SECONDS, connect=deadlines.connect
        )
        own = openai.DefaultHttpxClient(
            # A proxy named in the environment cannot reach this machine's own loopback.
            mounts=dict.fromkeys(_ALL) if _LOOPBACK.match(self._endpoint.base_url or "") else None,
            event_hooks={"request": [connections.follow]},
        )
        try:
            if self._endpoint.azure_api_version:
                # Bodies are bytes here, so that the SDK cannot read the deployment out of them. It leaves it out of the
                # paths that have none (the Responses API).
                client: openai.OpenAI = openai.AzureOpenAI(
                    api_key=self._endpoint.api_key,
                    azure_endpoint=_azure_resource(self._endpoint.base_url or ""),
                    azure_deployment=self.model,
                    api_version=self._endpoint.azure_api_version,
                    timeout=timeout,
                    max_retries=0,
                    http_client=own,
                )
            else:
                client = openai.OpenAI(
                    api_key=self._endpoint.api_key,
                    base_url=self._endpoint.base_url,
                    timeout=timeout,
                    max_retries=0,
                    http_client=own,
                )
        except openai.OpenAIError:
            raise _unusable(_NO_KEY) from None
        self._connections = connections
        self._release = weakref.finalize(self, client.close)
        if not client.api_key.strip():
            raise _unusable(_NO_KEY)
        if not client.api_key.isascii() or not client.api_key.isprintable():
            raise _unusable(
                "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY."
            )
        if not str(client.base_url).startswith(("http://", "https://")):
            raise _unusable(f"The base URL must begin with http:// or https://, not {str(client.base_url)[:200]!r}.")
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

    def _random(self) -> float:
        if self._jitter is not None:
            return self._jitter()
        import random

        return random.random()  # noqa: S311 - spreads retries, protects nothing

    def _failure(self, client: openai.OpenAI, error: Exception) -> FailedTry:
        """Return `error` as one of ours, with a text that says what to do."""
        import openai

        address = _shown_address(str(client.base_url))
        if isinstance(error, openai.APIStatusError):
            headers = error.response.headers
            refusal = refusal_of(error.body, status=error.status_code, secret=client.api_key)
            failure = refused(refusal, model=self.model, address=address, headers=headers)
            failure.retry_after = retry_after(headers.multi_items(), time.time())
            return failure
        causes = list(_causes(error))
        names = {cls.__name__ for cause in causes for cls in type(cause).__mro__}
        told = next((text for cause in reversed(causes) if (text := str(cause).strip())), "")
        what = self._excerpt(f"{type(causes[-1]).__name__}: {told}")
        if "SSLCertVerificationError" in names or "CERTIFICATE_VERIFY_FAILED" in told:
            return FailedTry(f"The certificate of {address} cannot be verified: {what}", fault=ModelFault.CONNECTION)
        if "ConnectTimeout" in names:
            text = f"{address} did not take the connection within {self._endpoint.deadlines.connect:g} s."
            return FailedTry(text, fault=ModelFault.TIMEOUT, passing=True)
        # LocalProtocolError and UnsupportedProtocol are ours: they would fail in the same way again.
        if names & {"TransportError", "OSError"} and not names & {"LocalProtocolError", "UnsupportedProtocol"}:
            return FailedTry(f"The connection to {address} failed: {what}.", fault=ModelFault.CONNECTION, passing=True)
        fault = ModelFault.REPLY if "DecodingError" in names else ModelFault.REQUEST
        return FailedTry(f"The request to {address} failed: {what}", fault=fault)

    def _excerpt(self, text: str) -> str:
        return excerpt(text, self._client.api_key if self._client is not None else self._endpoint.api_key or "")


_NO_KEY = (
    "There is no API key. Set OPENAI_API_KEY; a local server that wants no key takes any text. "
    "`harness demo` needs neither key nor network."
)


def _unusable(text: str) -> ModelError:
    return ModelError(text, fault=ModelFault.SETTINGS)


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


def _azure_resource(base_url: str) -> str:
    """Return the address of an Azure resource, which people also give with the path that the SDK adds to it."""
    return base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")


def _shown_address(base_url: str) -> str:
    """Return the base URL without what may be secret in it: user, password, query."""
    return re.sub(r"//[^/@]*@", "//", base_url.partition("?")[0]).rstrip("/")
