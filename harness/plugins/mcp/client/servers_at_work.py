"""The event loop with the connections to all servers, from their start to the end of the session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx2
from anyio.from_thread import BlockingPortal
from mcp.client.streamable_http import streamable_http_client

from harness.actions import JsonValue
from harness.errors import ToolError, UsageError
from harness.plugins.mcp.client.connection import Connection, keep_sdk_quiet, words_of
from harness.plugins.mcp.client.http_client import http_client
from harness.plugins.mcp.client.oauth import REFUSED, StoredLoginAuth, is_scope_too_small
from harness.plugins.mcp.client.standard_streams import standard_streams
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.logins import LoginFile
from harness.plugins.mcp.pending_call import AwaitedCall, CallOutcome
from harness.plugins.mcp.started_server import StartedServer
from harness.process.json_rpc import MOST_LINE_BYTES
from harness.record import Record

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

GONE = 404
"""Status with which a server answers a request of a session that it ended."""
REAP_SECONDS = 5.0
"""Seconds between reapings of ended processes, including orphans of a server."""
LET_GO = CallOutcome(error="the server was let go")


class ServerLinks(Record):
    """The functions of a session by which the loop reaches servers."""

    headers: Callable[[ConfiguredServer], Mapping[str, str]]
    """Returns the headers for requests to a server's URL."""
    login: Callable[[ConfiguredServer], LoginFile | None]
    """Returns the file of the login at a server. `None` if it has a token of its own."""
    credential: Callable[[ConfiguredServer], str]
    """Returns the secret or the private key of a client that logs in by itself. Raises UsageError."""
    learn: Callable[[str], None]
    """Receives each secret of a login, so that it is masked."""
    start: Callable[[ConfiguredServer], StartedServer]
    """Starts a server again. Raises UsageError."""


class ServersAtWork:
    """Access to the loop for other threads."""

    def __init__(self, portal: BlockingPortal, connections: Mapping[str, Connection], stop: Callable[[], None]) -> None:
        """`portal` runs functions in the loop.

        `connections` are by name of the server. `stop`, called there, ends all.
        """
        self._portal = portal
        self._connections = connections
        self._stop = stop

    def call(
        self, server: str, tool: str, arguments: Mapping[str, JsonValue], seconds: float, wait: AwaitedCall
    ) -> Any:
        """Begin a call, and return a future with which it can be cancelled. Raises ToolError if the loop has ended."""
        try:
            future: Future[None] = self._portal.start_task_soon(
                self._connections[server].call, tool, arguments, seconds, wait
            )
        except RuntimeError:
            raise ToolError("The connections to the servers are closed, so the call was not sent.") from None
        future.add_done_callback(lambda _: wait.finish(LET_GO))
        return future

    def stop(self) -> None:
        """Make all connections end."""
        try:
            self._portal.start_task_soon(self._stop_there)
        except RuntimeError:
            pass  # the loop has ended

    async def _stop_there(self) -> None:
        self._stop()


def keep_at_work(
    started: Sequence[StartedServer], links: ServerLinks, *, asks: bool, opened: Callable[[ServersAtWork], None]
) -> None:
    """Run the loop until it is stopped. `opened` receives the access to the loop."""
    keep_sdk_quiet()
    anyio.run(partial(_keep, started, links, asks=asks, opened=opened))


async def _keep(
    started: Sequence[StartedServer], links: ServerLinks, *, asks: bool, opened: Callable[[ServersAtWork], None]
) -> None:
    over = anyio.Event()

    def connection_to(started_server: StartedServer) -> Connection:
        server = started_server.server
        transport = (
            partial(_by_streams, started_server) if started_server.is_process else partial(_by_http, server, links)
        )
        return Connection(server, transport, asks=asks)

    async def keep(connection: Connection) -> None:
        await connection.keep()
        server = connection.server
        if server.is_begun_again and not over.is_set():
            try:
                again = connections[server.name] = connection_to(await anyio.to_thread.run_sync(links.start, server))
            except UsageError as error:
                server.over(str(error))
            else:
                if not over.is_set():
                    await again.keep()

    connections = {started_server.server.name: connection_to(started_server) for started_server in started}
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        opened(ServersAtWork(portal, connections, over.set))
        for connection in [*connections.values()]:
            tasks.start_soon(keep, connection)
        reaping = anyio.CancelScope()
        tasks.start_soon(_reap, started, reaping)
        await over.wait()
        reaping.cancel()
        for connection in connections.values():
            connection.stop()


async def _reap(started: Sequence[StartedServer], scope: anyio.CancelScope) -> None:
    with scope:
        while True:
            await anyio.sleep(REAP_SECONDS)
            for started_server in started:
                started_server.reap()


@asynccontextmanager
async def _by_streams(
    started_server: StartedServer, on_end: Callable[[str, bool], None]
) -> AsyncIterator[TransportStreams]:
    """Communicate with a server process during the block. Then end it, with all processes that it started."""
    try:
        async with standard_streams(
            started_server.process, started_server.errors, started_server.server, on_end
        ) as streams:
            yield streams
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(started_server.end)


@asynccontextmanager
async def _by_http(
    server: ConfiguredServer, links: ServerLinks, on_end: Callable[[str, bool], None]
) -> AsyncIterator[TransportStreams]:
    """Communicate with a server at a URL during the block. A refusal of the login ends the connection."""
    url, seconds = server.declaration.url, server.declaration.seconds

    def wants_login(is_scope_too_small: bool) -> None:
        if is_scope_too_small and server.is_listed.is_set():
            server.note(f"a call was refused: {server.rights_words}")
        else:
            on_end(server.login_words, False)

    def watch(response: httpx2.Response) -> None:
        if response.status_code == REFUSED and auth is None:
            on_end(server.login_words, False)
        elif response.status_code == GONE and is_of_session(response.request):
            on_end("it ended the session", True)

    auth = _auth_of(server, links, wants_login, lambda reason: on_end(reason, False))
    async with (
        http_client(links.headers(server), seconds, url, auth, watch) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MOST_LINE_BYTES) as streams,
    ):
        yield streams


def _auth_of(
    server: ConfiguredServer, links: ServerLinks, wants_login: Callable[[bool], None], fail: Callable[[str], None]
) -> httpx2.Auth | None:
    """Return the login at a server: that of its client, or that of the user. `None` if it takes none.

    `fail` receives the reason if the client cannot log in. Raises UsageError for a missing secret or key.
    """
    declaration, file = server.declaration, links.login(server)
    if file is None:
        return None
    if not declaration.issuer:
        return StoredLoginAuth(file, declaration.url, links.learn, wants_login)
    from harness.plugins.mcp.client.client_credentials import client_auth

    def end(end: httpx2.Response | Exception | None) -> None:
        if isinstance(end, httpx2.Response):
            if end.status_code == REFUSED or is_scope_too_small(end):
                wants_login(end.status_code != REFUSED)
        elif end is not None and not isinstance(end, httpx2.RequestError):
            fail(f"the login at {declaration.issuer} failed: {words_of(end)}")

    return client_auth(file, declaration, links.credential(server), links.learn, end)


def is_of_session(request: httpx2.Request) -> bool:
    """Return whether a request sends a message within a session, which a server may end."""
    return request.method == "POST" and "mcp-session-id" in request.headers
