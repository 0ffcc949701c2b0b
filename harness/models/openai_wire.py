"""A model behind an OpenAI-compatible server: sends requests, retries where that is safe, and reads the reply.

`Dialect` hides the differences between the APIs. openai_client.py connects to the server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, assert_never

from harness.declared_types import check_arguments
from harness.errors import CutReply, ModelError, ModelFault
from harness.interrupt import sleep_here, stops_here
from harness.messages import Message, ModelResponse, Usage
from harness.model import Retry, ToolSpec
from harness.models.dialect import Assembly, Dialect
from harness.models.endpoint import Endpoint, Quirks
from harness.models.exchange import Exchange, Limit, OutOfTime, Timing, TryClock, read_reply
from harness.models.failures import FailedTry
from harness.models.openai_client import OpenAIClient
from harness.models.reply_body import ReplyBody
from harness.models.retries import Retries
from harness.record import replace


class OpenAIWire:
    """A model behind one server. One conversation, and one request, at a time."""

    dialect: ClassVar[type[Dialect]]
    """Class of the API's dialect."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint | None = None,
        *,
        sleep: Callable[[float], None] = sleep_here,
        stops: Callable[[], int] = stops_here,
        jitter: Callable[[], float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`endpoint` is the model's address (`None`: the SDK's default). Nothing is imported, opened or sent yet.

        `sleep` waits before a retry. `stops` returns how often the user asked to stop. It is for threads that no signal
        interrupts: once it is not 0, `complete` raises KeyboardInterrupt while it waits for an answer. `jitter` returns
        a number from 0 to below 1 (default: random.random); `monotonic` is the clock of the deadlines.

        Raises ValueError if the endpoint allows no attempt.
        """
        check_arguments(OpenAIWire.__init__, locals())
        endpoint = self.dialect.completed(endpoint or Endpoint())
        if endpoint.attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {endpoint.attempts}")
        self.name = model
        self.timing = Timing()
        """Times of the steps of the last try."""
        self._endpoint = endpoint
        self._dialect = self.dialect(model, endpoint)
        self._sleep = sleep
        self._stops = stops
        self._jitter = jitter
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._client: OpenAIClient | None = None

    @property
    def quirks(self) -> Quirks:
        """The server's quirks, including those learned from refusals."""
        return self._dialect.quirks

    @property
    def client(self) -> str:
        """Name and version of the SDK. Empty until it is imported."""
        return "" if self._client is None else self._client.sdk

    def warm_up(self) -> None:
        """Import the SDK and build the client ahead of the first request, since this is slow. Any thread may call it.

        Never raises ModelError: the failure occurs again in `complete`, which can report it.
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

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the whole reply to `messages`; see Model.complete.

        A request that failed for a temporary reason is sent again (see retries.py). If the dialect can adapt to a
        refusal, the adapted request is sent at once.

        Raises CutReply and ModelError as `Model.complete` does; exceptions of `on_text`, `on_retry` and `sleep` pass
        through, KeyboardInterrupt at any moment.
        """
        started = self._monotonic()
        run_ends = None if seconds is None else started + seconds
        offered = frozenset(tool.name for tool in tools)
        self._dialect.resume_streams()
        body = self._dialect.request(messages, tools)
        secret = self._connected().secret
        retries = Retries(attempts=self._endpoint.attempts, seconds=self._endpoint.retry_seconds)
        while True:
            assembly = self._dialect.assembly(secret)
            reply = ReplyBody(assembly, secret=secret, bounds=self._endpoint.bounds)
            try:
                self._try(body, reply, on_text, run_ends)
                response = reply.response(self._dialect.call_ids, offered)
                return replace(response, retries=retries.failed)
            except CutReply as cut:
                failure = FailedTry(str(cut), fault=cut.fault, passing=True, cut=True)
            except FailedTry as failed:
                failure = failed
            except ModelError as error:
                error.usage = _used(assembly, reply)
                raise
            failure.usage = _used(assembly, reply)
            if failure.refusal is not None and self._dialect.learn(failure.refusal, messages):
                body = self._dialect.request(messages, tools)
                on_retry(retries.differently(failure))
                continue
            if failure.refusal is not None:
                failure.hint += self._dialect.setting_hint(failure.refusal)
            now = self._monotonic()
            retry = retries.after(
                failure,
                is_shown=reply.is_shown,
                elapsed=now - started,
                seconds_left=None if run_ends is None else run_ends - now,
                jitter=self._random() if failure.passing else 0,
            )
            on_retry(retry)
            self._sleep(retry.wait_seconds)

    def _try(self, body: bytes, reply: ReplyBody, on_text: Callable[[str], None], run_ends: float | None) -> None:
        """Send the request once and read its answer to the end."""
        client = self._connected()
        exchange = Exchange(
            lambda: client.send(self._dialect.path, body), hang_up=client.connections.hang_up, stops=self._stops
        )
        client.connections.report = exchange.report
        clock = TryClock(self._endpoint.deadlines, started=self._monotonic(), run_ends=run_ends)
        try:
            exchange.start()
            read_reply(exchange, clock, reply, on_text, self._monotonic)
        except OutOfTime as late:
            if client.refusal is not None and late.limit is not Limit.RUN:
                raise client.refusal from None  # the body of the error is incomplete, but its status is known
            if not reply.finished:
                raise self._late(late.limit, reply, client.address) from None
        except FailedTry as failure:
            if reply.finished and failure.fault is ModelFault.CONNECTION:
                pass  # the connection failed after the reply was complete
            elif reply.started and failure.fault is ModelFault.CONNECTION:
                raise reply.cut(str(failure).rstrip("."), ModelFault.CONNECTION) from None
            else:
                raise
        finally:
            self.timing = clock.timing
            if not exchange.close() or not client.connections.reusable:
                self.close()  # the next request opens new sockets
        for text in reply.end():
            on_text(text)

    def _late(self, limit: Limit, reply: ReplyBody, address: str) -> ModelError:
        """Return the error for an exceeded deadline."""
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
                return reply.cut(f"the reply took longer than {deadlines.total:g} s", timeout)
            case Limit.TOTAL:
                text = f"{address} did not answer within {deadlines.total:g} s."
            case _:
                assert_never(limit)
        return FailedTry(text, fault=timeout, passing=True)

    def _connected(self) -> OpenAIClient:
        with self._lock:
            if self._client is None:
                self._client = OpenAIClient(self.name, self._endpoint)
            return self._client

    def _random(self) -> float:
        if self._jitter is not None:
            return self._jitter()
        import random

        return random.random()  # noqa: S311 - spreads retries, protects nothing


def _used(assembly: Assembly, reply: ReplyBody) -> Usage | None:
    """Return the usage of a failed try, reported or unknown; `None` if no reply had begun."""
    return assembly.usage if reply.is_shown or not assembly.usage.unreported else None
