"""The HTTP client for servers at a URL: the token in a header, no redirect to another host, answers bounded.

The SDK follows a redirect only where it stays with scheme, host and port.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import httpx2

from harness.process.json_rpc import MOST_LINE_BYTES

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 300.0
"""Maximum silence of a stream of events in seconds, before another is opened; a call has its own deadline."""
_STREAM = "text/event-stream"


class TooMuch(httpx2.StreamError):
    """Raised for an answer above the size limit."""


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer, which ends with an error where it is too large."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        """Take the body."""
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield its blocks. Raises TooMuch."""
        size = 0
        async for block in self._inner:
            size += len(block)
            if size > MOST_LINE_BYTES:
                raise TooMuch(f"an answer of more than {MOST_LINE_BYTES >> 20} MiB")
            yield block

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def http_client(headers: Mapping[str, str], seconds: float) -> httpx2.AsyncClient:
    """Return the client of one server whose calls take so long at the most."""
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(SILENT_SECONDS, seconds)),
        follow_redirects=False,
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx2.Response) -> None:
    """Bound a body that is read whole. Events are bounded one by one, and a packed body could become any size."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        await response.aclose()
        raise TooMuch("an answer that is packed, though it was not to be")
    if not response.headers.get("content-type", "").lower().startswith(_STREAM):
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = BoundedStream(stream)
