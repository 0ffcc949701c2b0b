"""A server's standard streams as messages of the SDK.

Lines are limited in length; invalid ones are dropped and counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.process.json_rpc import MOST_LINE_BYTES, LineSplitter, RefusedLine, read_message
from harness.process.piped_process import PipedProcess

BLOCK_BYTES = 1 << 16
MOST_UNSENT = 100
"""Maximum number of messages in the queue for a server that does not read."""
CLOSED = "it closed its output"
MOST_NOISE = 10_000
"""Maximum number of lines that are not messages. After that, the server counts as broken."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def standard_streams(
    process: PipedProcess, errors: int, server: ConfiguredServer, on_end: Callable[[str, bool], None]
) -> AsyncIterator[Streams]:
    """Read and write a server's messages during the block. `errors` is the file descriptor of its stderr.

    `on_end` is called when no further message will arrive, with the reason and whether the server ended by itself.
    """
    for descriptor in (process.input, process.output, errors):
        os.set_blocking(descriptor, False)
    into, reading = anyio.create_memory_object_stream[Incoming](0)
    writing, out = anyio.create_memory_object_stream[SessionMessage](MOST_UNSENT)

    async def read() -> None:
        async with into:
            try:
                reason = await _read(process.output, server, into)
                on_end(reason, reason == CLOSED)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the session is over

    async with into, reading, writing, out, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(_write, process.input, out)
        tasks.start_soon(_take_errors, errors, server)
        try:
            yield reading, writing
        finally:
            tasks.cancel_scope.cancel()


async def _read(descriptor: int, server: ConfiguredServer, into: MemoryObjectSendStream[Incoming]) -> str:
    """Pass each message to the session until the end. Return the reason for the end."""
    lines = LineSplitter()
    async for block in _blocks(descriptor):
        for line in lines.add(block):
            if len(line) > MOST_LINE_BYTES:
                return _too_long()
            for message in _messages(line, server):
                await into.send(message)
        if lines.is_too_long:
            return _too_long()
        if server.noise > MOST_NOISE:
            return f"it wrote more than {MOST_NOISE} lines that are no messages"
    return CLOSED


def _too_long() -> str:
    return f"it wrote a line of more than {MOST_LINE_BYTES >> 20} MiB"


def _messages(line: bytes, server: ConfiguredServer) -> Iterator[SessionMessage]:
    """Yield the message in a line. If the line is invalid, yield an error for each request that it answers."""
    message = read_message(line)
    if not isinstance(message, RefusedLine):
        try:
            yield SessionMessage(jsonrpc_message_adapter.validate_python(dict(message.fields), by_name=False))
        except ValidationError:
            message = RefusedLine(
                reason="it is no message of the protocol", answers=(message.id,) if message.id else ()
            )
        else:
            return
    server.noise += 1
    for identity in message.answers:
        error = ErrorData(code=PARSE_ERROR, message=f"its answer cannot be read: {message.reason}")
        yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=json.loads(identity), error=error))


async def _write(descriptor: int, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write each message as a line. Stop silently if the server has closed its input, since `_read` reports its end."""
    async for message in out:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        rest = memoryview(f"{text}\n".encode())
        while rest:
            await anyio.wait_writable(descriptor)
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                continue
            except OSError:
                return


async def _take_errors(descriptor: int, server: ConfiguredServer) -> None:
    async for block in _blocks(descriptor):
        server.take_errors(block)


async def _blocks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield blocks of input, until the end."""
    while True:
        await anyio.wait_readable(descriptor)
        try:
            block = os.read(descriptor, BLOCK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not block:
            return
        yield block
