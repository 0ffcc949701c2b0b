"""The event loop with the connections to all servers, from their start to the end of the session."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal
from mcp.client.streamable_http import streamable_http_client

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.plugins.mcp.client.connection import Connection
from harness.plugins.mcp.client.http_client import http_client
from harness.plugins.mcp.client.standard_streams import standard_streams
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.pending_call import AwaitedCall, CallOutcome
from harness.plugins.mcp.started_server import StartedServer
from harness.process.json_rpc import MOST_LINE_BYTES

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

REAP_SECONDS = 5.0
"""Seconds between reapings of ended processes, including orphans of a server."""
LET_GO = CallOutcome(error="the server was let go")


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
    started: Sequence[StartedServer],
    headers: Callable[[ConfiguredServer], Mapping[str, str]],
    *,
    asks: bool,
    opened: Callable[[ServersAtWork], None],
) -> None:
    """Run the loop until it is stopped.

    `headers` returns the headers for requests to a server's URL. `opened` receives the access to the loop.
    """
    logger = logging.getLogger("mcp")  # keeps the SDK's log, which quotes a server's messages, off the terminal
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    anyio.run(partial(_keep, started, headers, asks=asks, opened=opened))


async def _keep(
    started: Sequence[StartedServer],
    headers: Callable[[ConfiguredServer], Mapping[str, str]],
    *,
    asks: bool,
    opened: Callable[[ServersAtWork], None],
) -> None:
    over = anyio.Event()
    connections = {}
    for started_server in started:
        transport = (
            partial(_by_streams, started_server)
            if started_server.is_process
            else partial(_by_http, started_server.server, headers)
        )
        connections[started_server.server.name] = Connection(started_server.server, transport, asks=asks)
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        opened(ServersAtWork(portal, connections, over.set))
        for connection in connections.values():
            tasks.start_soon(connection.keep)
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
async def _by_streams(started_server: StartedServer, on_end: Callable[[str], None]) -> AsyncIterator[TransportStreams]:
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
    server: ConfiguredServer,
    headers: Callable[[ConfiguredServer], Mapping[str, str]],
    on_end: Callable[[str], None],  # noqa: ARG001 - requests fail by themselves when the server has ended
) -> AsyncIterator[TransportStreams]:
    """Communicate with a server at a URL during the block."""
    async with (
        http_client(headers(server), server.declaration.seconds) as client,
        streamable_http_client(
            server.declaration.url, http_client=client, max_sse_event_size=MOST_LINE_BYTES
        ) as streams,
    ):
        yield streams
