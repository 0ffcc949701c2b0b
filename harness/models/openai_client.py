"""One server's client out of the openai SDK (2.x and 3.x), of which this is the only importer; decides nothing.

The SDK does what it is best at: addresses, authentication, connections. Its typed calls are passed by: they encode the
whole history anew for every turn, repair nothing, and retry out of sight. What it raises leaves here as FailedTry.
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable, Generator, Iterator, KeysView
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from harness.errors import ModelError, ModelFault
from harness.models.addresses import LOOPBACK_HOSTS, loopback_host, shown_address
from harness.models.connections import Connections
from harness.models.endpoint import Endpoint
from harness.models.failures import FailedTry, refusal_of, refused
from harness.models.provider_text import excerpt
from harness.models.retries import retry_after

if TYPE_CHECKING:
    import openai

SDK_SLACK_SECONDS = 60.0
"""How much later than the deadlines here those of the SDK are, so that they never come first."""
ERROR_BYTES = 64 * 1024
"""How much of the body of an error status is read; in time it is bound like a reply, by the deadline of a first event."""
MAX_REDIRECTS = 5

# The body is read here as it comes: the SDK hands it over unread (`_base_client._process_response`).
_UNREAD = {"X-Stainless-Raw-Response": "stream"}

_Cause = TypeVar("_Cause", bound=Exception)


class _Body(Protocol):
    """What is used of the SDK's APIResponse."""

    def iter_bytes(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class _URL(Protocol):
    """What is used of a URL of httpx and httpx2; `netloc` leaves out a port that the scheme implies."""

    scheme: str
    netloc: bytes

    def join(self, url: str) -> Self: ...


class _Headers(Protocol):
    """What is used of the headers of httpx and httpx2: a mapping of names in lower case."""

    def keys(self) -> KeysView[str]: ...

    def __getitem__(self, name: str) -> str: ...

    def multi_items(self) -> list[tuple[str, str]]: ...


class _Answer(Protocol):
    """What is used of a response of httpx and httpx2, whose body is not yet read."""

    status_code: int
    has_redirect_location: bool

    @property
    def headers(self) -> _Headers: ...

    url: _URL

    def iter_bytes(self) -> Iterator[bytes]: ...


class _Moved(Exception):
    """The server wants the request elsewhere at its own origin; never leaves this module."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class OpenAIClient:
    """A client of one server. One request at a time; INVARIANT: nothing is sent to another origin than its own."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """Import the SDK and build its client, which opens nothing yet; `model` is for error texts, and Azure's paths.

        Raises ModelError (SETTINGS) where that cannot be.
        """
        self.connections = Connections()
        """Those that are open."""
        self._failures = _Failures(model, endpoint)
        try:
            self._sdk = _sdk_client(model, endpoint, self.connections, self._failures.check)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken installation, an address that is none
            told = excerpt(str(error), self._failures.secret)
            raise _unusable(f"The openai client cannot be made: {type(error).__name__}: {told}") from None
        self.close: Callable[[], object] = weakref.finalize(self, self._sdk.close)
        """Close the connections, for good; happens by itself when nobody holds the client any longer."""
        self.secret = self._failures.secret = self._sdk.api_key
        """The API key, for those who must not repeat it."""
        base_url = str(self._sdk.base_url)
        self.address = self._failures.address = shown_address(base_url)
        """Where the server is, fit to be shown."""
        if not self.secret.strip():
            raise _unusable(_no_key(endpoint))
        if not self.secret.isascii() or not self.secret.isprintable():
            where = f"; see {endpoint.key_variable}" if endpoint.key_variable else ""
            raise _unusable(f"The API key holds a line end or another character that cannot be sent{where}.")
        if not base_url.startswith(("http://", "https://")):
            raise _unusable(f"The base URL must begin with http:// or https://, not {base_url[:200]!r}.")

    def send(self, path: str, body: bytes) -> Generator[bytes, None, None]:
        """POST `body` to `path` below the base URL and yield the body of the answer. Raises FailedTry alone.

        INVARIANT: when the generator is closed, the connection is free again, whatever happened.
        """
        try:
            answer = self._post(path, body)
            try:
                yield from answer.iter_bytes()
            finally:
                answer.close()
        except Exception as error:  # noqa: BLE001 - the SDK lets errors of its parts through; here they get their class
            raise self._failures.of(error) from None

    def _post(self, path: str, body: bytes) -> _Body:
        """Send the request, again where the server moves it within its origin."""
        for _ in range(MAX_REDIRECTS + 1):
            try:
                return _post(self._sdk, path, body)
            except Exception as error:
                moved = _cause(error, _Moved)
                if moved is None:
                    raise
                path = moved.url
        last = excerpt(shown_address(path), self.secret)
        text = f"{self.address} redirects the request again and again, at last to {last}."
        raise FailedTry(text, fault=ModelFault.REQUEST)


class _Failures:
    """What one server's errors and answers become that are no success. INVARIANT: holds neither a client nor its SDK's,
    which holds this: the one that nobody holds any longer is closed.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.address = ""
        """Where the server is, fit to be shown; known once the SDK's client is there."""
        self.secret = endpoint.api_key or ""
        """The API key, as far as it is known."""
        self._model = model
        self._endpoint = endpoint

    def check(self, answer: _Answer) -> None:
        """Stop at everything but success, before the SDK reads all of its body, or httpx follows it."""
        if 200 <= answer.status_code < 300:
            return
        if answer.has_redirect_location:
            self._redirect(answer)
        refusal = refusal_of(_error_value(answer), status=answer.status_code, secret=self.secret)
        failure = refused(
            refusal,
            model=self._model,
            address=self.address,
            key_variable=self._endpoint.key_variable,
            headers=dict(answer.headers),
        )
        failure.retry_after = retry_after(answer.headers.multi_items(), time.time())
        raise failure

    def _redirect(self, answer: _Answer) -> None:
        """Raise _Moved for a redirect within the origin; another one must not get the key, nor the conversation.

        A 303 asks for a GET, which would drop the request.
        """
        target = answer.url.join(answer.headers["location"])
        if (target.scheme, target.netloc) == (answer.url.scheme, answer.url.netloc) and answer.status_code != 303:
            raise _Moved(str(target))
        to = excerpt(shown_address(str(target)), self.secret)
        raise FailedTry(
            f"{self.address} redirects the request to {to} (HTTP {answer.status_code}); nothing was sent there. If the "
            "provider is there, name that address with --base-url.",
            fault=ModelFault.REQUEST,
        )

    def of(self, error: Exception) -> FailedTry:
        """Return `error` as one of ours, with a text that says what to do."""
        if (known := _cause(error, FailedTry)) is not None:
            return known
        causes = list(_causes(error))
        names = {cls.__name__ for cause in causes for cls in type(cause).__mro__}
        told = next((text for cause in reversed(causes) if (text := str(cause).strip())), "")
        what = excerpt(f"{type(causes[-1]).__name__}: {told}", self.secret)
        if "SSLCertVerificationError" in names or "CERTIFICATE_VERIFY_FAILED" in told:
            text = f"The certificate of {self.address} cannot be verified: {what}"
            return FailedTry(text, fault=ModelFault.CONNECTION)
        if "ConnectTimeout" in names:
            text = f"{self.address} did not take the connection within {self._endpoint.deadlines.connect:g} s."
            return FailedTry(text, fault=ModelFault.TIMEOUT, passing=True)
        # LocalProtocolError and UnsupportedProtocol are ours: they would fail in the same way again.
        if names & {"TransportError", "OSError"} and not names & {"LocalProtocolError", "UnsupportedProtocol"}:
            text = f"The connection to {self.address} failed: {what}."
            return FailedTry(text, fault=ModelFault.CONNECTION, passing=True)
        fault = ModelFault.REPLY if "DecodingError" in names else ModelFault.REQUEST
        return FailedTry(f"The request to {self.address} failed: {what}", fault=fault)


def _sdk_client(
    model: str, endpoint: Endpoint, connections: Connections, check: Callable[[_Answer], None]
) -> openai.OpenAI:
    import openai

    deadlines = endpoint.deadlines
    timeout = openai.Timeout(max(deadlines.total, deadlines.first_event) + SDK_SLACK_SECONDS, connect=deadlines.connect)
    own = openai.DefaultHttpxClient(
        # A proxy named in the environment cannot reach this machine's own loopback.
        mounts={f"all://{host}": None for host in (*LOOPBACK_HOSTS, loopback_host(endpoint.base_url or "")) if host},
        event_hooks={"request": [connections.follow], "response": [check]},
        follow_redirects=False,
    )
    try:
        if endpoint.azure_api_version:
            # Bodies are bytes here, so that the SDK cannot read the deployment out of them. It leaves it out of the
            # paths that have none (the Responses API).
            return openai.AzureOpenAI(
                api_key=endpoint.api_key,
                azure_endpoint=_azure_resource(endpoint.base_url or ""),
                azure_deployment=model,
                api_version=endpoint.azure_api_version,
                timeout=timeout,
                max_retries=0,
                http_client=own,
            )
        return openai.OpenAI(
            api_key=endpoint.api_key, base_url=endpoint.base_url, timeout=timeout, max_retries=0, http_client=own
        )
    except openai.OpenAIError:
        raise _unusable(_no_key(endpoint)) from None


def _post(client: openai.OpenAI, path: str, body: bytes) -> _Body:
    """POST `body` through the SDK's generic request; 3.x takes bytes as `content`, 2.x as `body`."""
    if "content" in (type(client).post.__kwdefaults__ or {}):
        answer = client.post(path, cast_to=object, content=body, options={"headers": _UNREAD})
    else:
        answer = client.post(path, cast_to=object, body=body, options={"headers": _UNREAD})
    return cast(_Body, answer)


def _error_value(answer: _Answer) -> object:
    """Return what the body of an error status says: the value of its error field, its JSON, or its text."""
    body = bytearray()
    for piece in answer.iter_bytes():
        body += piece
        if len(body) >= ERROR_BYTES:
            break
    text = body[:ERROR_BYTES].decode(errors="replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value.get("error", value) if isinstance(value, dict) else value


def _cause(error: Exception, kind: type[_Cause]) -> _Cause | None:
    return next((cause for cause in _causes(error) if isinstance(cause, kind)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what caused it, the first cause last; a chain longer than ten is cut."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _unusable(text: str) -> ModelError:
    return ModelError(text, fault=ModelFault.SETTINGS)


def _no_key(endpoint: Endpoint) -> str:
    way = f"Set {endpoint.key_variable}" if endpoint.key_variable else "Name a variable that holds one"
    return (
        f"There is no API key. {way}; a local server that wants no key takes any text. "
        "`harness demo` needs neither key nor network."
    )


def _azure_resource(base_url: str) -> str:
    """Return the address of an Azure resource, which people also give with the path that the SDK adds to it."""
    return base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
