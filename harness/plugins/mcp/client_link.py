"""The link to an MCP client over the standard streams. Uses the official SDK (extra `mcp`), which is imported here.

The SDK handles the protocol, in its own thread and event loop. Our code reads the lines, as strictly as the proxy does,
so that each judged line can be read in only one way.

The two eras of the protocol send a question to the client differently. In the older era, the question is a request
(`elicitation/create`), while the client waits for the result of its call. In the later era (2026-07-28), the question
is the result of the call. The client then calls again with the answer and a token from us; the call stays open until
then.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import threading
from _thread import start_new_thread
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from harness import __version__
from harness.model import ToolSpec
from harness.plugins.mcp.question_form import FormAnswer, FormEnd, QuestionForm
from harness.plugins.mcp.served_call import CallNews, CallResult, ServedCall, ServedClient
from harness.plugins.mcp.tool_server import ASKS_SECONDS, MOST_NAME, Arrival, ServerStop
from harness.process.json_rpc import LineSplitter, RefusedLine, error_line, read_message
from harness.record import Record
from harness.text.visible import visible_line
from harness.tool_kinds import Does, tool_kind

MOST_WAITING = 200
"""Maximum number of calls of one client that wait or run at the same time."""
BLOCK_BYTES = 1 << 16
_QUESTION = "question"
_FORM_ENDS = {end.value: end for end in (FormEnd.SENT, FormEnd.REFUSED, FormEnd.CLOSED)}


class OfferedTool(Record):
    """A tool in the list for the client."""

    spec: ToolSpec
    changes: bool = True
    """Whether it may change anything."""
    reaches: bool = True
    """Whether it may reach anything beyond the files of the workspace."""

    @classmethod
    def of(cls, spec: ToolSpec) -> OfferedTool:
        """Return the tool of the registry with `spec`. Its effects follow from its kind."""
        kind = tool_kind(spec.name)
        return cls(spec=spec, changes=kind.does is not Does.READS, reaches=not kind.is_of_files)

    def as_sdk_tool(self) -> types.Tool:
        """Return the tool as the SDK's type."""
        return types.Tool(
            name=self.spec.name,
            description=self.spec.description,
            input_schema=dict(self.spec.parameters),
            annotations=types.ToolAnnotations(
                read_only_hint=not self.changes, destructive_hint=self.changes, open_world_hint=self.reaches
            ),
        )


class _Asked(Record):
    """An open call, and its news for the protocol's thread."""

    call: ServedCall
    news: asyncio.Queue[CallNews]


class ClientLink:
    """The link to one client, from its first line to its last."""

    def __init__(
        self,
        tools: Sequence[OfferedTool],
        instructions: str,
        *,
        forms: bool,
        take: Callable[[Arrival], None],
        wake: Callable[[], None],
        streams: tuple[int, int],
    ) -> None:
        """Create the link. `streams` are the file descriptors to read from and to write to.

        `forms` permits questions to clients that show forms. `take` receives each arrival. `wake` is called when a call
        is cancelled.
        """
        self._tools = [tool.as_sdk_tool() for tool in tools]
        self._instructions = instructions
        self._forms = forms
        self._take = take
        self._wake = wake
        self._source, self._sink = streams
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._written = threading.Event()
        self._is_known = False
        """Whether the client has been reported to `take`."""
        self._has_left = False
        """Whether the client closed its side."""
        self._waiting = 0
        self._open_questions: dict[str, _Asked] = {}
        """Calls of the later era whose question is not answered, by the token that the repeated call must contain."""

    def start(self) -> None:
        """Start the threads that read and write."""
        start_new_thread(self._write, ())
        start_new_thread(self._run, ())

    def close(self, seconds: float) -> None:
        """Wait at most `seconds` until the queued lines are written."""
        self._out.put(None)
        self._written.wait(seconds)

    # -- the protocol's thread

    def _run(self) -> None:
        _keep_sdk_quiet()
        try:
            anyio.run(self._serve)
        except Exception as error:  # noqa: BLE001 - the client cannot be served without the protocol
            os.write(2, f"harness: the protocol failed: {visible_line(repr(error), 500)}\n".encode())
            self._take(ServerStop.FAULT)
        else:
            self._take(ServerStop.CLIENT)

    async def _serve(self) -> None:
        server: Server[Any] = Server(
            "harness",
            version=__version__,
            instructions=self._instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        server.middleware = [self._note_client]
        to_sdk, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, from_sdk = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()

        def pass_on(message: SessionMessage) -> None:
            asyncio.run_coroutine_threadsafe(to_sdk.send(message), loop).result()

        def end() -> None:
            loop.call_soon_threadsafe(to_sdk.close)

        async def write_out() -> None:
            async for message in from_sdk:
                fields = message.message.model_dump(by_alias=True, exclude_unset=True)
                self._out.put(json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n")

        async with read, from_sdk, anyio.create_task_group() as tasks:
            tasks.start_soon(write_out)
            start_new_thread(self._read, (pass_on, end))
            await server.run(read, write, server.create_initialization_options())

    async def _note_client(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Report the client's identity before its first request is answered."""
        if not self._is_known and ctx.request_id is not None:
            self._is_known = True
            self._take(_client_of(ctx))
        return await call_next(ctx)

    async def _list(self, ctx: Any, params: object) -> types.ListToolsResult:  # noqa: ARG002 - as the SDK calls it
        return types.ListToolsResult(tools=self._tools)

    async def _call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        open_call = self._asked_before(params) if params.request_state is not None else self._asked_now(ctx, params)
        if open_call is None:
            return _result(CallResult(text="Not run: nobody waits for this answer any more.", is_error=True))
        if isinstance(open_call, str):
            return _result(CallResult(text=f"Not run: {open_call}", is_error=True))
        self._waiting += 1
        try:
            while True:
                news = await open_call.news.get()
                if isinstance(news, CallResult):
                    return _result(news)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    word = os.urandom(16).hex()
                    self._open_questions[word] = open_call
                    return types.InputRequiredResult(input_requests={_QUESTION: _request(news)}, request_state=word)
                open_call.call.take_answer(await _elicited(ctx, news))
        except asyncio.CancelledError:
            if self._has_left:
                # The SDK cancels its calls before it ends. Such a call must not count as cancelled by the client.
                self._take(ServerStop.CLIENT)
            else:
                open_call.call.cancel()
                self._wake()
            raise
        finally:
            self._waiting -= 1

    def _asked_now(self, ctx: Any, params: types.CallToolRequestParams) -> _Asked | str:
        """Pass a new call on, and return it, or return the reason why it is refused."""
        if self._waiting >= MOST_WAITING:
            return f"{MOST_WAITING} calls of this client wait already."
        news: asyncio.Queue[CallNews] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def take(new: CallNews) -> None:
            news.put_nowait(new)
            if isinstance(new, CallResult):  # the call has ended, and needs no answer any more
                self._open_questions = {
                    word: open_call for word, open_call in self._open_questions.items() if open_call.news is not news
                }

        def tell(new: CallNews) -> None:
            try:
                loop.call_soon_threadsafe(take, new)
            except RuntimeError:
                pass  # the loop is closed: the client is gone

        call = ServedCall(
            params.name, _text_of(params), _client_of(ctx), asks=self._forms and _shows_forms(ctx), tell=tell
        )
        self._take(call)
        return _Asked(call=call, news=news)

    def _asked_before(self, params: types.CallToolRequestParams) -> _Asked | None:
        """Return the open call that `params` repeats with an answer to its question.

        `None` if it repeats no open call.
        """
        open_call = self._open_questions.pop(params.request_state or "", None)
        if open_call is None:
            return None
        if (open_call.call.name, open_call.call.arguments) != (params.name, _text_of(params)):
            open_call.call.take_answer(FormAnswer(end=FormEnd.FAILED))
            return None
        open_call.call.take_answer(_answer_from((params.input_responses or {}).get(_QUESTION)))
        return open_call

    # -- the threads that read and write

    def _read(self, pass_on: Callable[[SessionMessage], None], end: Callable[[], None]) -> None:
        lines = LineSplitter()
        try:
            while block := os.read(self._source, BLOCK_BYTES):
                for line in lines.add(block):
                    message = self._message_of(line)
                    if message is not None:
                        pass_on(message)
        except (OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # either side ended; `end` below informs the other one
        self._has_left = True
        try:
            end()
        except RuntimeError:
            pass  # the loop has ended

    def _message_of(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line.

        If it is invalid or ambiguous, send an error to the client and return `None`.
        """
        message = read_message(line)
        if not isinstance(message, RefusedLine):
            try:
                return SessionMessage(
                    types.jsonrpc_message_adapter.validate_python(dict(message.fields), by_name=False)
                )
            except ValidationError:
                message = RefusedLine(
                    reason="it is no message of MCP", asks=(message.id,) if message.method and message.id else ()
                )
        for identity in message.asks:
            self._out.put(error_line(identity, message.code, f"The line is refused: {message.reason}"))
        return None

    def _write(self) -> None:
        try:
            while (line := self._out.get()) is not None:
                while line:
                    line = line[os.write(self._sink, line) :]
        except OSError:
            self._take(ServerStop.CLIENT)
        finally:
            self._written.set()


def _keep_sdk_quiet() -> None:
    """Keep the SDK's log off the terminal, since it contains unescaped text of the client."""
    for name in ("mcp", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _client_of(ctx: Any) -> ServedClient:
    """Return the client with the name from its handshake, or from its request in the later era."""
    client_info: object = ctx.params.get("clientInfo") if ctx.method == "initialize" and ctx.params else None
    if client_info is None and ctx.session.client_params is not None:
        client_info = ctx.session.client_params.client_info.model_dump()
    if not isinstance(client_info, Mapping):
        return ServedClient()
    name, version = (str(client_info.get(key) or "") for key in ("name", "version"))
    return ServedClient(name=visible_line(name, MOST_NAME), version=visible_line(version, MOST_NAME))


def _shows_forms(ctx: Any) -> bool:
    """Return whether the client declares that it shows forms. `{}` also declares it, as in older versions."""
    capabilities = ctx.session.client_capabilities
    offered = None if capabilities is None else capabilities.elicitation
    return offered is not None and (offered.form is not None or offered.url is None)


def _text_of(params: types.CallToolRequestParams) -> str:
    """Return the arguments of a call as JSON text."""
    text = json.dumps(params.arguments or {}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which the parser of the arguments reports
        return json.dumps(params.arguments or {})
    return text


def _result(result: CallResult) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=result.text)], is_error=result.is_error)


def _request(form: QuestionForm) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema))


async def _elicited(ctx: Any, form: QuestionForm) -> FormAnswer:
    """Send the question to the client, which waits for its call, and return the answer."""
    with anyio.move_on_after(ASKS_SECONDS):
        try:
            return _answer_from(await ctx.session.elicit_form(form.message, form.schema, ctx.request_id))
        except MCPError as error:
            is_closed = error.error.code == types.CONNECTION_CLOSED
            return FormAnswer(end=FormEnd.CALL_GONE if is_closed else FormEnd.FAILED)
        except (ValidationError, ValueError):
            return FormAnswer(end=FormEnd.FAILED)
    return FormAnswer(end=FormEnd.LATE)


def _answer_from(result: object) -> FormAnswer:
    if not isinstance(result, types.ElicitResult):
        return FormAnswer(end=FormEnd.FAILED)
    return FormAnswer(end=_FORM_ENDS[result.action], filled=result.content or {})
