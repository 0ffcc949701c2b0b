"""The HTTP client for servers at a URL. It sends the token in a header, and limits the size of answers.

It follows no redirects. The SDK follows a redirect only to the same scheme, host and port. Other hosts, as for a login,
are reached by https alone, so that a server cannot point at an unencrypted service of this machine or its network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import urlsplit

import httpx2

from harness.plugins.mcp.server_declaration import is_loopback
from harness.process.json_rpc import MOST_LINE_BYTES

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 300.0
"""Maximum seconds without data on an event stream, before a new one is opened. Calls have their own deadlines."""
_STREAM = "text/event-stream"


class TooMuch(httpx2.StreamError):
    """Raised for an answer above the size limit."""


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer, which raises an error if it is too large."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        """Wrap a body."""
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the blocks of the body. Raises TooMuch."""
        size = 0
        async for block in self._inner:
            size += len(block)
            if size > MOST_LINE_BYTES:
                raise TooMuch(f"an answer of more than {MOST_LINE_BYTES >> 20} MiB")
            yield block

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


class RefusedHost(httpx2.RequestError):
    """Raised instead of a request to an address that a server may not name."""


def http_client(
    headers: Mapping[str, str],
    seconds: float,
    url: str,
    auth: httpx2.Auth | None = None,
    watch: Callable[[httpx2.Response], None] = lambda _: None,
) -> httpx2.AsyncClient:
    """Return the HTTP client for the server at `url`. `seconds` is the time limit of its calls.

    `watch` is called with each response. Requests raise TooMuch and RefusedHost.
    """
    is_here = is_loopback(urlsplit(url).hostname or "")

    async def check_host(request: httpx2.Request) -> None:
        is_sealed = request.url.scheme == "https"
        if not is_sealed and not (is_here and request.url.scheme == "http" and is_loopback(request.url.host)):
            raise RefusedHost(f"{request.url.copy_with(query=None)} is not reached by https", request=request)

    async def take_response(response: httpx2.Response) -> None:
        watch(response)
        await _bound(response)

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(SILENT_SECONDS, seconds)),
        follow_redirects=False,
        event_hooks={"request": [check_host], "response": [take_response]},
        auth=auth,
    )


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of a response body. Refuse a compressed body, which could expand to any size.

    Event streams are not limited here, since the SDK limits each event.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        await response.aclose()
        raise TooMuch("an answer that is packed, though it was not to be")
    if not response.headers.get("content-type", "").lower().startswith(_STREAM):
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = BoundedStream(stream)
