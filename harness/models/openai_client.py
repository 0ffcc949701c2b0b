"""Client of one server, built on the openai SDK (2.x and 3.x). No other module imports the SDK.

The SDK handles addresses, authentication and connections. Its typed calls are not used: they encode the whole history
again for every turn, repair nothing, and retry without notice. Its exceptions are converted to FailedTry.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Generator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast

from harness.errors import ModelError, ModelFault
from harness.models.endpoint import CERTIFICATE_VARIABLES, LOOPBACK_HOSTS, Endpoint, loopback_host, shown_address
from harness.models.exchange import Connections
from harness.models.failures import FailedTry, excerpt
from harness.models.http_answer import (
    ACCEPTED_ENCODINGS,
    ROUND_PROXY,
    AnswerBody,
    AnswerCheck,
    HttpAnswer,
    Moved,
    cause_of,
)

if TYPE_CHECKING:
    import ssl

    import openai

SDK_SLACK_SECONDS = 60.0
"""Seconds by which the SDK's deadlines exceed those of `Deadlines`, so that the SDK's never expire first."""
MAX_REDIRECTS = 5

# Makes the SDK return the answer with an unread body (`_base_client._process_response`); the body is read here.
_UNREAD = {"X-Stainless-Raw-Response": "stream"}


class _Answered(Protocol):
    """The part of the SDK's APIResponse that is used."""

    http_response: HttpAnswer

    def close(self) -> None: ...


class _Transport(Protocol):
    """The methods of a transport of httpx and httpx2 that its client calls."""

    def handle_request(self, request: object, /) -> object: ...

    def close(self) -> None: ...


class _Proxy:
    """A transport through a proxy that the environment names. It is built for the first request through the proxy.

    So a program whose addresses bypass the proxy never needs the package for the proxy's protocol.
    """

    def __init__(self, pattern: str, url: str, httpx: ModuleType, trusted: ssl.SSLContext, check: AnswerCheck) -> None:
        """`pattern` selects the addresses for the proxy, such as `all://`, in the form of the client's `mounts`."""
        self._variable = f"{pattern.partition(':')[0].upper()}_PROXY"
        self._url = url
        self._httpx = httpx
        self._trusted = trusted
        self._check = check
        self._transport: _Transport | None = None

    def handle_request(self, request: object) -> object:
        """Send a request. Raises FailedTry for an unusable proxy, and the exceptions of the transport."""
        self._check.proxy = f"{shown_address(self._url)} ({self._variable})"
        if self._transport is None:
            self._transport = self._built()
        return self._transport.handle_request(request)

    def close(self) -> None:
        """Close the connections of the transport."""
        if self._transport is not None:
            self._transport.close()

    def _built(self) -> _Transport:
        try:
            proxy = self._httpx.Proxy(self._url)
            return cast(_Transport, self._httpx.HTTPTransport(verify=self._trusted, proxy=proxy))
        except ImportError:
            problem = f"which needs a package: pip install '{self._httpx.__name__}[socks]'"
        except ValueError:
            problem = "whose protocol is not supported: http, https, socks5 and socks5h are"
        subject = f"{self._variable} names the proxy {shown_address(self._url)}"
        raise FailedTry(f"{subject}, {problem}. {ROUND_PROXY}", fault=ModelFault.SETTINGS)


class OpenAIClient:
    """A client of one server, for one request at a time.

    INVARIANT: nothing is sent to an origin other than the server's.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """Import the SDK and build its client, without opening a connection.

        `model` is used in error texts and in Azure's paths. Raises ModelError (SETTINGS) if the client cannot be built.
        """
        self._endpoint = endpoint
        self.connections = Connections()
        """The open connections."""
        self._check = AnswerCheck(model, endpoint, self.connections)
        try:
            self._sdk = _sdk_client(model, endpoint, self.connections, self._check)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken installation, an invalid address
            reason = excerpt(str(error), self._check.secret)
            raise _unusable(f"The openai client cannot be made: {type(error).__name__}: {reason}") from None
        self.close: Callable[[], object] = weakref.finalize(self, self._sdk.close)
        """Close the connections for good; this also happens when the client has no references left."""
        self.secret = self._check.secret = self._sdk.api_key
        """The API key, for callers that must mask it."""
        self.sdk = f"openai {_version()}"
        """Name and version of the SDK."""
        base_url = str(self._sdk.base_url)
        self.address = self._check.address = shown_address(base_url)
        """The server's address, safe to display."""
        if not self.secret.strip():
            raise _unusable(_no_key(endpoint))
        if not self.secret.isascii() or not self.secret.isprintable():
            advice = f"; see {endpoint.key_variable}" if endpoint.key_variable else ""
            raise _unusable(f"The API key holds a line end or another character that cannot be sent{advice}.")
        if not base_url.startswith(("http://", "https://")):
            raise _unusable(f"The base URL must begin with http:// or https://, not {self.address[:200]!r}.")

    def send(self, path: str, body: bytes | None) -> Generator[bytes, None, None]:
        """POST `body` to `path` below the base URL and yield the body of the answer, in pieces that may be empty.

        If `body` is None, send a GET. Raises only FailedTry. INVARIANT: when the generator is closed, the connection is
        released. It is not reused if more bytes followed the answer: they would look like the answer to the next
        request.
        """
        self._check.refusal = None
        try:
            answer = self._send(path, body)
            try:
                if not (yield from AnswerBody(answer.http_response)):
                    self.connections.reusable = False
            finally:
                answer.close()
        except Exception as error:  # noqa: BLE001 - the SDK raises errors of its dependencies; `of` classifies them
            raise self._check.of(error) from None

    @property
    def refusal(self) -> FailedTry | None:
        """The failure for the error status of the last request, set before the body is read. `None` without one."""
        return self._check.refusal

    def _send(self, path: str, body: bytes | None) -> _Answered:
        """Send the request, and follow redirects within the origin."""
        for _ in range(MAX_REDIRECTS + 1):
            try:
                headers = _headers(self._endpoint, self.secret)
                return _get(self._sdk, path, headers) if body is None else _post(self._sdk, path, body, headers)
            except Exception as error:
                moved = cause_of(error, Moved)
                if moved is None:
                    raise
                path = moved.url
        last = excerpt(shown_address(path), self.secret)
        text = f"{self.address} redirects the request again and again, at last to {last}."
        raise FailedTry(text, fault=ModelFault.REQUEST)


def _version() -> str:
    import openai

    return openai.__version__


def _sdk_client(model: str, endpoint: Endpoint, connections: Connections, check: AnswerCheck) -> openai.OpenAI:
    from harness.models.sparing_import import import_openai

    import_openai()
    import openai

    deadlines = endpoint.deadlines
    timeout = openai.Timeout(max(deadlines.total, deadlines.first_event) + SDK_SLACK_SECONDS, connect=deadlines.connect)
    httpx = import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])  # or httpx2
    trusted = _trusted(endpoint, httpx)
    proxies = import_module(f"{httpx.__name__}._utils").get_environment_proxies()
    routes = {pattern: _Proxy(pattern, url, httpx, trusted, check) if url else None for pattern, url in proxies.items()}
    # A proxy named in the environment cannot reach this machine's own loopback.
    routes |= {f"all://{host}": None for host in (*LOOPBACK_HOSTS, loopback_host(endpoint.base_url or "")) if host}
    http_client = openai.DefaultHttpxClient(
        verify=trusted,
        trust_env=False,  # its proxies are in `routes`, its authorities in `trusted`
        mounts=routes,  # type: ignore[arg-type] # `_Proxy` has the methods that are called
        event_hooks={"request": [connections.follow], "response": [check.check]},
        follow_redirects=False,
        headers={"accept-encoding": ACCEPTED_ENCODINGS},
    )
    try:
        if endpoint.azure_api_version:
            # Bodies are bytes here, so the SDK cannot find the deployment in them. It omits the deployment from paths
            # that need none (the Responses API).
            return openai.AzureOpenAI(
                api_key=endpoint.api_key,
                azure_endpoint=_azure_resource(endpoint.base_url or ""),
                azure_deployment=model,
                api_version=endpoint.azure_api_version,
                timeout=timeout,
                max_retries=0,
                http_client=http_client,
            )
        return openai.OpenAI(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            timeout=timeout,
            max_retries=0,
            http_client=http_client,
        )
    except openai.OpenAIError:
        raise _unusable(_no_key(endpoint)) from None


def _trusted(endpoint: Endpoint, httpx: ModuleType) -> ssl.SSLContext:
    """Return the TLS settings with the trusted authorities.

    For plain HTTP no authorities are loaded, since that takes 0.1 s. INVARIANT: nothing is sent to another origin, so
    that a redirect from plain HTTP to TLS is never followed.

    Raises ModelError (SETTINGS) if the environment names authorities that cannot be read.
    """
    import ssl

    if (endpoint.base_url or "").lower().startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    from harness.process.own_code import own_code

    own_code().check_certificates()
    name = next((name for name in CERTIFICATE_VARIABLES if endpoint.certificate_paths.get(name)), "")
    path = endpoint.certificate_paths.get(name, "")
    problem = f"{name} names {path}, which does not exist"
    try:
        if not name or any(map(os.path.exists, (path, *path.split(os.pathsep)))):  # the second may list folders
            return cast("ssl.SSLContext", httpx.create_ssl_context())
    except OSError as error:
        place = f"{path} ({name})" if name else " or ".join(CERTIFICATE_VARIABLES)
        problem = f"The certificates in {place} cannot be read: {error.strerror or error}"
    raise _unusable(
        f"{problem}. Unset the variable, or name a file with the certificates of trusted authorities (PEM)."
    )


def _headers(endpoint: Endpoint, secret: str) -> Mapping[str, str | openai.Omit]:
    """Return the headers of a request to add to the SDK's.

    Anthropic accepts an API key only as `x-api-key` (platform.claude.com/docs/en/api/overview, "Authentication").
    """
    more = endpoint.settings.extra_headers
    if not endpoint.anthropic_version:
        return {**more, **_UNREAD}
    import openai

    headers: dict[str, str | openai.Omit] = {
        "x-api-key": secret,
        "anthropic-version": endpoint.anthropic_version,
        "Authorization": openai.Omit(),
    }
    return {**more, **_UNREAD, **headers}


def _post(client: openai.OpenAI, path: str, body: bytes, headers: Mapping[str, str | openai.Omit]) -> _Answered:
    """POST `body` with the SDK's generic method. Version 3.x takes bytes as `content`, 2.x as `body`."""
    if "content" in (type(client).post.__kwdefaults__ or {}):
        answer = client.post(path, cast_to=object, content=body, options={"headers": headers})
    else:
        answer = client.post(path, cast_to=object, body=body, options={"headers": headers})
    return cast(_Answered, answer)


def _get(client: openai.OpenAI, path: str, headers: Mapping[str, str | openai.Omit]) -> _Answered:
    return cast(_Answered, client.get(path, cast_to=object, options={"headers": headers}))


def _unusable(text: str) -> ModelError:
    return ModelError(text, fault=ModelFault.SETTINGS)


def _no_key(endpoint: Endpoint) -> str:
    way = f"Set {endpoint.key_variable}" if endpoint.key_variable else "Name a variable that holds one"
    return (
        f"The API key is missing. {way}; a local server without keys takes any text. "
        "`harness demo` needs neither key nor network."
    )


def _azure_resource(base_url: str) -> str:
    """Return the address of an Azure resource without the path that the SDK adds. Users may include that path."""
    return base_url.rstrip("/").removesuffix("/v1").removesuffix("/openai")
