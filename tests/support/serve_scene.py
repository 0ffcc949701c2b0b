"""`harness serve --stdio` as a process, driven by the client side of the protocol's own Python library."""

from __future__ import annotations

import asyncio
import asyncio.streams
import json
import os
import select
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from acp import Client, RequestError, connect_to_agent, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from process_scene import ENOUGH
from program import LogRecord, Program

from harness.models.scripted import ModelScript

WAITS, FAILS, NONSENSE = "(waits)", "(fails)", "(nonsense)"
"""Answers of an editor: none, an error, and what is no answer."""
Update: TypeAlias = dict[str, Any]


class Question:
    """What an editor was asked."""

    def __init__(self, session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> None:
        self.session = session
        self.call = call
        self.options = {option.option_id: option.name for option in options}
        self.kinds = {option.option_id: option.kind for option in options}
        (content,) = call.content or []
        self.text = content.content.text


class Editor:
    """A client that notes what it is shown, and answers in order; it refuses when no answer is left."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []
        self.updates: list[tuple[str, Update]] = []
        self.records: list[LogRecord] = []
        self.released = asyncio.Event()
        """Lets an answer that waits go on, with a yes."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update.model_dump(mode="json", by_alias=True, exclude_none=True)))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> Any:
        self.questions.append(Question(session_id, tool_call, options))
        answer = self.answers.pop(0) if self.answers else "refuse"
        if answer == FAILS:
            raise RequestError(-32603, "the editor failed")
        if answer == NONSENSE:
            return {"outcome": ["allow"]}
        if answer == WAITS:
            await self.released.wait()
            answer = "allow"
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=answer))

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        assert method == "harness/record"
        self.records.append(params["record"])

    def of_kind(self, kind: str, session: str | None = None) -> list[Update]:
        """Return the updates of a kind, those of one session where it is named."""
        return [one for of, one in self.updates if one["sessionUpdate"] == kind and session in (None, of)]

    def said(self, kind: str = "agent_message_chunk", session: str | None = None) -> str:
        """Return the text of all pieces of a kind."""
        return "".join(one["content"]["text"] for one in self.of_kind(kind, session))

    def calls(self) -> dict[str, Update]:
        """Return the calls as they were shown last, each made of all that was said of it."""
        found: dict[str, Update] = {}
        for one in (*self.of_kind("tool_call"), *self.of_kind("tool_call_update")):
            found[one["toolCallId"]] = {**found.get(one["toolCallId"], {}), **one}
        return found


class Served:
    """The program, and the editor at its other end."""

    def __init__(
        self, program: Program, process: subprocess.Popen[bytes], conn: ClientSideConnection, editor: Editor
    ) -> None:
        self.program = program
        self.process = process
        self.conn = conn
        self.editor = editor

    async def new(self, folder: Path | None = None) -> str:
        return (await self.begun(folder)).session_id

    async def begun(self, folder: Path | None = None) -> NewSessionResponse:
        return await self.conn.new_session(cwd=str(folder or self.program.workspace), mcp_servers=[])

    async def load(self, session: str, folder: Path | None = None) -> LoadSessionResponse:
        cwd = str(folder or self.program.workspace)
        return await self.conn.load_session(cwd=cwd, session_id=session, mcp_servers=[])

    async def ask(self, session: str, text: str = "go") -> PromptResponse:
        return await self.conn.prompt(session_id=session, prompt=[text_block(text)])

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something."""
        async with asyncio.timeout(ENOUGH):
            while not holds():
                assert self.process.poll() is None, "the program ended"
                await asyncio.sleep(0.02)

    async def ended(self) -> int:
        """Return the exit code, when there is one."""
        return await asyncio.to_thread(self.process.wait, ENOUGH)


@asynccontextmanager
async def served(program: Program, editor: Editor | None = None, *flags: str) -> AsyncIterator[Served]:
    """Start the program with these flags, connect to it, and wait for its end, which is 0 unless the block saw another."""
    editor = editor or Editor()
    process = program.start("serve", "--stdio", *flags, stdin=subprocess.PIPE, stderr=None, cwd=program.home)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    conn = connect_to_agent(_as_client(editor), writer, reader)
    try:
        meta: dict[str, Any] = {"harness": {"records": True}}
        info = Implementation(name="editor", version="1.0")
        await conn.initialize(protocol_version=1, client_info=info, **meta)
        yield Served(program, process, conn, editor)
    finally:
        writing.close()
        try:
            code = await asyncio.to_thread(process.wait, ENOUGH)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            await conn.close()
            reading.close()
    assert code in (0, 143), code


def _as_client(editor: Any) -> Client:
    client: Client = editor
    return client


def play(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene to its end."""
    asyncio.run(work())


def model_flags(program: Program, script: ModelScript, rules: str | None = None) -> tuple[str, ...]:
    """Return the flags of a scripted model, and of a policy where one is given."""
    flags = ("--base-url", program.serve(script), "--model", "scripted")
    if rules is None:
        return flags
    path = program.home / "policy.toml"
    path.write_text(rules)
    return (*flags, "--policy", str(path))


async def refused(asked: Awaitable[object]) -> tuple[int, str]:
    """Return the error that a request is answered with."""
    try:
        await asked
    except RequestError as error:
        return error.code, str(error)
    raise AssertionError("it was not refused")


def verified(program: Program) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a log, by its name; nothing where every one verifies and its session has an end."""
    for path in program.logs():
        done = program.run("audit", "verify", str(path))
        last = path.read_text().splitlines()[-1]
        if done.code or '"kind":"session_ended"' not in last.replace('": "', '":"'):
            yield path.name, f"{done.code} {done.out} {done.err} {last}"


class RawClient:
    """The program with lines of JSON, or of anything else."""

    def __init__(self, program: Program, *flags: str) -> None:
        self.process = program.start("serve", "--stdio", *flags, stdin=subprocess.PIPE, stderr=None)
        self._program = program
        self._rest = b""

    def send(self, *messages: object) -> None:
        """Write messages, or bytes as they are."""
        assert self.process.stdin is not None
        for one in messages:
            self.process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, identity: object, method: str, **params: object) -> None:
        """Ask something."""
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    def read(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        assert self.process.stdout is not None
        number = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([number], [], [], ENOUGH)
            assert ready, "nothing came"
            block = os.read(number, 1 << 20)
            if not block:
                assert not self._rest
                return None
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def read_to(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next message of which something holds; those before it are dropped."""
        while (message := self.read()) is not None:
            if holds(message):
                return message
        raise AssertionError("the program wrote its last line")

    def prompt(self, identity: object, text: str = "go") -> str:
        """Begin a session in the workspace, and say something; return its name."""
        self.request(1, "initialize", protocolVersion=1)
        self.request(2, "session/new", cwd=str(self._program.workspace), mcpServers=[])
        session = str(self.read_to(lambda one: one.get("id") == 2)["result"]["sessionId"])
        self.request(identity, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        return session

    def rest(self) -> list[dict[str, Any]]:
        """Return all messages to the end."""
        return [*iter(self.read, None)]

    def hang_up(self) -> int:
        """Close both pipes, and return the exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(ENOUGH)

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Close the input, and return the exit code and all that came until then."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        rest = self.rest()
        return self.hang_up(), rest
