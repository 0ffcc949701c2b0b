"""The event loop in which all servers are at work, from their start to the end of the session."""

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
"""Seconds between reapings of ended processes, including those that a server left behind."""
LET_GO = CallOutcome(error="the server was let go")


class ServersAtWork:
    """The loop, as other threads see it."""

    def __init__(self, portal: BlockingPortal, connections: Mapping[str, Connection], stop: Callable[[], None]) -> None:
        """Take the way into the loop, the connections by their servers' names, and what ends all of it there."""
        self._portal = portal
        self._connections = connections
        self._stop = stop

    def call(
        self, server: str, tool: str, arguments: Mapping[str, JsonValue], seconds: float, wait: AwaitedCall
    ) -> Any:
        """Begin a call; return a future that cancels it. Raises ToolError if the loop is over."""
        try:
            future: Future[None] = self._portal.start_task_soon(
                self._connections[server].call, tool, arguments, seconds, wait
            )
        except RuntimeError:
            raise ToolError("The connections to the servers are closed, so the call was not sent.") from None
        future.add_done_callback(lambda _: wait.finish(LET_GO))
        return future

    def stop(self) -> None:
        """Have all servers let go."""
        try:
            self._portal.start_task_soon(self._stop_there)
        except RuntimeError:
            pass  # it is over

    async def _stop_there(self) -> None:
        self._stop()


def keep_at_work(
    started: Sequence[StartedServer],
    headers: Callable[[ConfiguredServer], Mapping[str, str]],
    *,
    asks: bool,
    opened: Callable[[ServersAtWork], None],
) -> None:
    """Run the loop until it is stopped. `headers` returns the headers for each request to a URL; `opened` receives
    the access to the loop.
    """
    logger = logging.getLogger("mcp")  # what the SDK tells of a server's messages is no line of this program's
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
    """Talk with a process; at the end of the block it is ended, with all that it started."""
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
    on_end: Callable[[str], None],  # noqa: ARG001 - a request that fails says so
) -> AsyncIterator[TransportStreams]:
    """Talk with a server at a URL."""
    async with (
        http_client(headers(server), server.declaration.seconds) as client,
        streamable_http_client(
            server.declaration.url, http_client=client, max_sse_event_size=MOST_LINE_BYTES
        ) as streams,
    ):
        yield streams
