"""What the tests of `harness mcp serve` share: the real program behind the SDK's own client, of both eras, and its person."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from harness.plugins.mcp.question_form import FIELD

if TYPE_CHECKING:
    from program import LogRecord, Program

LEGACY, LATER = "legacy", "auto"
"""Ways in which the SDK's client connects: by the handshake of the older era, or whichever the server speaks."""


class Said(NamedTuple):
    """What a call came to, for the client."""

    is_error: bool
    text: str


class Person:
    """Who fills in forms: as `answer` says."""

    def __init__(self) -> None:
        self.answer: Callable[[types.ElicitRequestFormParams], types.ElicitResult] = refuses
        self.asked: list[types.ElicitRequestFormParams] = []

    async def __call__(self, ctx: object, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self.answer(params)


def refuses(params: types.ElicitRequestFormParams) -> types.ElicitResult:
    """Press `Decline`."""
    return types.ElicitResult(action="decline")


def closes(params: types.ElicitRequestFormParams) -> types.ElicitResult:
    """Press Esc, or be a client without a person."""
    return types.ElicitResult(action="cancel")


def fills(text: Any) -> Callable[[types.ElicitRequestFormParams], types.ElicitResult]:
    """Fill in a text, and send the form off."""
    return lambda params: types.ElicitResult(action="accept", content={FIELD: text})


def sends(content: Mapping[str, Any] | None) -> Callable[[types.ElicitRequestFormParams], types.ElicitResult]:
    """Send a form off with these fields."""
    return lambda params: types.ElicitResult(action="accept", content=None if content is None else dict(content))


def types_the_word(params: types.ElicitRequestFormParams) -> types.ElicitResult:
    """Read the question to its end, and type what it says."""
    return fills(params.message.rpartition("type: ")[2])(params)


class Served:
    """One server, and one client of it."""

    def __init__(self, client: Any, portal: Any, person: Person, program: Program) -> None:
        self._client = client
        self._portal = portal
        self.person = person
        self.program = program

    def tools(self) -> dict[str, types.Tool]:
        """Return the tools on offer, by name."""
        return {tool.name: tool for tool in self._portal.call(self._client.list_tools).tools}

    def call(self, name: str, **arguments: Any) -> Said:
        """Call a tool; its result is one text, and nothing else."""
        result = self._portal.call(self._client.call_tool, name, arguments)
        assert (len(result.content), result.structured_content) == (1, None), result
        return Said(result.is_error, result.content[0].text)


@contextmanager
def served(program: Program, *flags: str, mode: str = LEGACY, asks: bool = True) -> Iterator[Served]:
    """Serve the workspace to a client of this era, which shows forms or does not."""
    person = Person()
    words = program.command("mcp", "serve", *flags)
    server = StdioServerParameters(
        command=words[0], args=words[1:], env=program.environment, cwd=str(program.workspace)
    )
    asked: Any = person if asks else None
    client: Any = Client(server, mode=mode, elicitation_callback=asked)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as made:
        yield Served(made, portal, person, program)


def verified(program: Program) -> list[LogRecord]:
    """Return the records of the only log, which verifies."""
    (path,) = program.logs()
    done = program.run("audit", "verify", str(path))
    assert done.code == 0, done
    return program.records()


def kinds(records: list[LogRecord], kind: str) -> list[LogRecord]:
    """Return the records of one kind."""
    return [record for record in records if record["kind"] == kind]


class RawClient:
    """A client that is lines: what no client of the SDK sends."""

    def __init__(self, program: Program, *flags: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.process = program.start("mcp", "serve", *flags, stdin=subprocess.PIPE)
        self._read = b""
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": dict(capabilities or {}),
            "clientInfo": {"name": "raw \x1b[2J", "version": "1"},
        }
        self.ask("initialize", hello, identity=0)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: Mapping[str, Any] | bytes) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any], identity: object) -> None:
        """Send a request."""
        self.write({"jsonrpc": "2.0", "id": identity, "method": method, "params": dict(params)})

    def call(self, identity: object, name: str, **arguments: Any) -> None:
        """Send a call of a tool."""
        self.send("tools/call", {"name": name, "arguments": arguments}, identity)

    def cancel(self, identity: object) -> None:
        """Say that a request is wanted no more."""
        self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})

    def read(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.process.stdout is not None
        while b"\n" not in self._read:
            block = os.read(self.process.stdout.fileno(), 65_536)
            assert block, self.process.communicate()
            self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))

    def ask(self, method: str, params: Mapping[str, Any], identity: object) -> dict[str, Any]:
        """Send a request, and return the next message."""
        self.send(method, params, identity)
        return self.read()

    def end(self) -> int:
        """Close our side; return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(120)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # what was not written yet
