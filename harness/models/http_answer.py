"""Answers and errors of one server over HTTP. An unsuccessful answer becomes a `FailedTry` with a class and a message.

It inspects an answer before the SDK reads it, and imports neither the SDK nor its client.
"""

from __future__ import annotations

import errno
import json
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, KeysView
from typing import Protocol, Self, TypeVar

from harness.errors import ModelFault
from harness.models.endpoint import (
    CERTIFICATE_VARIABLES,
    OTHER_CERTIFICATE_VARIABLES,
    Endpoint,
    is_local,
    shown_address,
)
from harness.models.exchange import Connections, Phase
from harness.models.failures import FailedTry, excerpt, refusal_of, refused
from harness.models.presets import preset_of
from harness.models.retries import limit_reset, retry_after

ACCEPTED_ENCODINGS = "gzip"
"""Accepted encodings (`Accept-Encoding`). An answer in any other encoding is not read."""
STEP_BYTES = 256 * 1024
"""Number of bytes unpacked in one step."""

ROUND_PROXY = "NO_PROXY names hosts that are reached without a proxy."

_GZIP = 16 + zlib.MAX_WBITS
# Attributes that lead from the stream of a body (httpx, httpcore and their second versions) to the parser of its
# connection. No public interface tells which bytes are left over.
_INWARDS = ("_stream", "_httpcore_stream", "_connection", "_h11_state")


class DecodingError(Exception):
    """Raised for a body that is not in the encoding that its headers name."""


class _ReadOnce(Protocol):
    """The part of the headers of httpx and httpx2 that is used."""

    def multi_items(self) -> list[tuple[str, str]]: ...


class _RawAnswer(Protocol):
    """The part of an unread response of httpx and httpx2 that is used."""

    @property
    def headers(self) -> _ReadOnce: ...

    @property
    def stream(self) -> object: ...

    def iter_raw(self) -> Iterator[bytes]: ...


class AnswerBody:
    """The body of one answer. Can be iterated only once."""

    def __init__(self, answer: _RawAnswer) -> None:
        values = (value for name, value in answer.headers.multi_items() if name.lower() == "content-encoding")
        encodings = [name.strip().lower() for value in values for name in value.split(",")]
        self._encodings = [name for name in encodings if name not in ("", "identity")]
        self._answer = answer

    @property
    def unknown_encoding(self) -> str:
        """The server's name of an encoding that was not requested. Empty if the body can be read."""
        return "" if self._encodings in ([], ["gzip"], ["x-gzip"]) else ", ".join(self._encodings)

    def __iter__(self) -> Generator[bytes, None, bool]:
        """Yield the pieces of the body, including empty ones, so that the reader can stop in between.

        Returns whether the connection is clean after the body: no unrequested bytes follow. If that cannot be
        determined, it counts as unclean. Raises DecodingError, and the errors of the HTTP client.
        """
        parser = _parser(self._answer.stream)
        raw = self._answer.iter_raw()
        yield from _unpacked(raw) if self._encodings else raw
        return parser is not None and not parser.trailing_data[0]


class _Parser(Protocol):
    """The part of h11's Connection that is used."""

    @property
    def trailing_data(self) -> tuple[bytes, bool]: ...


def _parser(stream: object) -> _Parser | None:
    parser: object = stream
    for _ in range(8):
        if hasattr(parser, "trailing_data"):
            return parser
        parser = next((inner for name in _INWARDS if (inner := getattr(parser, name, None)) is not None), None)
    return None


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip data. Bytes after its end are ignored. A missing end is not an error: an incomplete reply is
    detected later.
    """
    packed = zlib.decompressobj(_GZIP)
    for piece in pieces:
        try:
            yield (unpacked := packed.decompress(piece, STEP_BYTES))
            while not packed.eof and len(unpacked) == STEP_BYTES:
                yield (unpacked := packed.decompress(packed.unconsumed_tail, STEP_BYTES))
        except zlib.error as error:
            raise DecodingError(str(error)) from None


ERROR_BYTES = 64 * 1024
"""Maximum number of bytes read from an error's body. ERROR_SECONDS in exchange.py limits the time."""

_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)

_Cause = TypeVar("_Cause", bound=Exception)


class _URL(Protocol):
    """The part of a URL of httpx and httpx2 that is used. `netloc` omits the scheme's default port."""

    scheme: str
    netloc: bytes

    def join(self, url: str) -> Self: ...


class _Headers(Protocol):
    """The part of the headers of httpx and httpx2 that is used: a mapping of names in lower case."""

    def keys(self) -> KeysView[str]: ...

    def __getitem__(self, name: str) -> str: ...

    def multi_items(self) -> list[tuple[str, str]]: ...


class HttpAnswer(Protocol):
    """The part of an unread response of httpx and httpx2 that is used."""

    status_code: int
    has_redirect_location: bool
    url: _URL

    @property
    def headers(self) -> _Headers:
        """The headers of the answer."""
        ...

    @property
    def stream(self) -> object:
        """The source of the body."""
        ...

    def iter_raw(self) -> Iterator[bytes]:
        """Yield the body as it was sent, without decompression."""
        ...


class Moved(Exception):
    """Raised for a redirect to another URL of the same origin. The sender catches it and sends the request there."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class AnswerCheck:
    """Turns one server's unsuccessful answers into failed tries.

    INVARIANT: it has no reference to our client or the SDK's. Both refer to it, and a client without references is closed.
    """

    def __init__(self, model: str, endpoint: Endpoint, connections: Connections) -> None:
        self.address = ""
        """The server's address, safe to display. Empty until the SDK's client exists."""
        self.refusal: FailedTry | None = None
        """The failure for the error status alone, before its body is read."""
        self.secret = endpoint.api_key or ""
        """The API key. Empty without one."""
        self.proxy = ""
        """Address of the proxy that the requests take, and the variable that names it. Empty if they take none."""
        self._model = model
        self._endpoint = endpoint
        self._connections = connections

    def check(self, answer: HttpAnswer) -> None:
        """Raise FailedTry, or Moved, unless the answer is a readable success. Runs before the SDK reads the body."""
        body = AnswerBody(answer)
        if 200 <= answer.status_code < 300:
            if body.unknown_encoding:
                raise self._unreadable(body.unknown_encoding)
            return
        if answer.status_code == 407:  # only a proxy may say so (RFC 9110, section 15.5.8)
            raise self._refused_by_proxy("407 Proxy Authentication Required")
        if answer.has_redirect_location:
            self._redirect(answer)
        self.refusal = self._refused(answer, "")
        self._connections.report(Phase.REFUSED)
        raise self._refused(answer, "" if body.unknown_encoding else self._error_value(body))

    def _refused(self, answer: HttpAnswer, value: object) -> FailedTry:
        refusal = refusal_of(value, status=answer.status_code, secret=self.secret)
        failure = refused(
            refusal,
            model=self._model,
            address=self.address,
            key_variable=self._endpoint.key_variable,
            headers=dict(answer.headers),
        )
        if self.proxy and self.address.startswith("http:"):
            failure.hint = f" The proxy {self.proxy} may have answered in place of the server."
        headers, now = answer.headers.multi_items(), time.time()
        # A stated wait takes precedence over the reset time of a limit, which may be longer than necessary.
        failure.retry_after = retry_after(headers, now) or failure.retry_after
        if failure.retry_after is None and refusal.is_rate_limit:
            failure.retry_after = limit_reset([*headers, *_inner_headers(value)], now)
        return failure

    def _error_value(self, body: AnswerBody) -> object:
        """Return the content of an error's body: the value of its error field, its JSON, or its text."""
        data = bytearray()
        pieces = iter(body)
        try:
            while len(data) < ERROR_BYTES:
                data += next(pieces)
        except StopIteration as end:
            self._connections.reusable = self._connections.reusable and bool(end.value)
        except Exception:  # noqa: BLE001, S110 - cut off or badly compressed: the status is enough
            pass
        return _error_value(bytes(data[:ERROR_BYTES]))

    def _unreadable(self, encoding: str) -> FailedTry:
        encoding_text = excerpt(encoding, self.secret)
        return FailedTry(
            f"{self.address} sent its answer in an encoding that was not requested ({encoding_text}). The answer was not read.",
            fault=ModelFault.REPLY,
        )

    def _redirect(self, answer: HttpAnswer) -> None:
        """Raise Moved for a redirect within the origin, else FailedTry.

        Another origin must not get the key or the conversation. A 303 asks for a GET, which would drop the body.
        """
        target = answer.url.join(answer.headers["location"])
        if (target.scheme, target.netloc) == (answer.url.scheme, answer.url.netloc) and answer.status_code != 303:
            raise Moved(str(target))
        to = excerpt(shown_address(str(target)), self.secret)
        raise FailedTry(
            f"{self.address} redirects the request to {to} (HTTP {answer.status_code}). The redirect was not followed. "
            "If the provider is there, set that address with --base-url.",
            fault=ModelFault.REQUEST,
        )

    def of(self, error: Exception) -> FailedTry:
        """Convert `error` to a FailedTry whose text says what to do."""
        if (failed_try := cause_of(error, FailedTry)) is not None:
            return failed_try
        causes = list(_causes(error))
        names = {cls.__name__ for cause in causes for cls in type(cause).__mro__}
        message = next((text for cause in reversed(causes) if (text := str(cause).strip())), "")
        description = excerpt(f"{type(causes[-1]).__name__}: {message}", self.secret)
        if "ProxyError" in names:
            return self._refused_by_proxy(message)
        if "SSLCertVerificationError" in names or "CERTIFICATE_VERIFY_FAILED" in message:
            text = f"The certificate of {self.address} cannot be verified: {description.removesuffix('.')}."
            return FailedTry(f"{text} {_remedy(message, self._endpoint)}", fault=ModelFault.CONNECTION)
        # OpenSSL's errors for an answer in plain text.
        if "WRONG_VERSION_NUMBER" in message or "RECORD_LAYER_FAILURE" in message:
            text = f"{self.address} does not speak TLS: {description}. Is its address one with http://?"
            return FailedTry(text, fault=ModelFault.CONNECTION)
        place, hint = self.address, ""
        if self.proxy and names & {"ConnectError", "ConnectTimeout"} and "SSLError" not in names:
            place, hint = f"the proxy {self.proxy}", f" {ROUND_PROXY}"
        if "ConnectTimeout" in names:
            seconds = self._endpoint.deadlines.connect
            subject = f"The proxy {self.proxy}" if hint else self.address
            text = f"{subject} did not take the connection within {seconds:g} s.{hint}"
            return FailedTry(text, fault=ModelFault.TIMEOUT, passing=True)
        # LocalProtocolError and UnsupportedProtocol are errors of the request itself. Another try would fail too.
        if names & {"TransportError", "OSError"} and not names & {"LocalProtocolError", "UnsupportedProtocol"}:
            text = f"The connection to {place} failed: {description.removesuffix('.')}."
            system = _of_the_system(causes)
            nobody = isinstance(system, ConnectionRefusedError) and is_local(self.proxy if hint else self.address)
            if hint:
                hint = f" Is it running, and its address right?{hint}"
            elif nobody:
                hint = self._not_running()
            else:
                hint = _no_network(system) or _no_http(message)
            return FailedTry(f"{text}{hint}", fault=ModelFault.CONNECTION, passing=True, nobody_there=nobody)
        fault = ModelFault.REPLY if "DecodingError" in names else ModelFault.REQUEST
        return FailedTry(f"The request to {self.address} failed: {description}", fault=fault)

    def _refused_by_proxy(self, answer: str) -> FailedTry:
        """Return the failure for a proxy that refused to connect; `answer` is its text, with the status first if it has one."""
        wants_user = answer.startswith("407") or "password" in answer
        remedy = "Put a user and a password into its address (http://USER:PASSWORD@HOST:PORT)." if wants_user else ""
        text = f"The proxy {self.proxy} refused to connect to {self.address}: {excerpt(answer, self.secret)}."
        return FailedTry(f"{text} {remedy or ROUND_PROXY}", fault=ModelFault.CONNECTION, passing=answer.startswith("5"))

    def _not_running(self) -> str:
        server = preset_of(self.address)
        if server is None:
            return " Nothing listens there: is the server running, and the port right?"
        return f" Nothing listens there: is {server.title.partition(',')[0]} running (`{server.start}`)?"


def _remedy(problem: str, endpoint: Endpoint) -> str:
    """Return advice about a certificate for OpenSSL's error text."""
    if "expired" in problem or "not yet valid" in problem:
        return "Is this machine's clock right? Otherwise the server needs a new certificate."
    if "ostname mismatch" in problem or "IP address mismatch" in problem:
        return "Is its address right? The certificate is for another name."
    paths = endpoint.certificate_paths
    other = next((name for name in OTHER_CERTIFICATE_VARIABLES if name in paths), "")
    if other and not paths.keys() & CERTIFICATE_VARIABLES:
        return f"{other} is not read here: set SSL_CERT_FILE to {paths[other]}."
    return "If your own authority signs it, set SSL_CERT_FILE to a file with that authority's certificate (PEM)."


def _no_http(problem: str) -> str:
    """Return a hint if h11's error text shows an answer that is not HTTP; it is mostly a TLS alert. Else empty."""
    is_other = problem.startswith(("illegal request line", "illegal status line"))
    return " The server does not speak HTTP there; try the address with https://." if is_other else ""


def _of_the_system(causes: Iterable[BaseException]) -> OSError | None:
    """Return the error of the operating system among the causes; httpcore passes it as an argument of its own error."""
    causes_and_arguments = (item for cause in causes for item in (cause, *cause.args))
    return next((item for item in causes_and_arguments if isinstance(item, OSError)), None)


def _no_network(system: OSError | None) -> str:
    """Return advice for a failed name lookup (getaddrinfo(3)) or an unreachable address (connect(2)). Else empty."""
    unreachable = system is not None and (type(system).__name__ == "gaierror" or system.errno in _NO_WAY)
    return " Is there a network, and is the address right?" if unreachable else ""


def _error_value(body: bytes) -> object:
    text = body.decode(errors="replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value.get("error", value) if isinstance(value, dict) else value


def _inner_headers(value: object) -> list[tuple[str, str]]:
    """Return the headers that OpenRouter puts into `metadata` of an error (openrouter.ai/docs/api-reference/limits)."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    headers = metadata.get("headers") if isinstance(metadata, dict) else None
    return [(str(name), str(text)) for name, text in headers.items()] if isinstance(headers, dict) else []


def cause_of(error: Exception, kind: type[_Cause]) -> _Cause | None:
    """Return the first of `error` and its causes that is an instance of `kind`; `None` if there is none."""
    return next((cause for cause in _causes(error) if isinstance(cause, kind)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its causes, the original cause last; at most ten."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
