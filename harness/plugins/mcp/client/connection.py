"""The connection to one server, with the SDK: connects, reads the list of tools after each change, calls, disconnects.

Each step has a deadline. Results are not checked against the server's own schema as the SDK does it, since a pattern in
that schema could keep this process busy forever.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from harness import __version__
from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.connected_tool import MOST_SCHEMA
from harness.plugins.mcp.elicitation import form_of
from harness.plugins.mcp.pending_call import AwaitedCall, CallOutcome
from harness.plugins.mcp.tool_catalog import MOST_TOOLS
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

LIST_SECONDS = 20.0
LEAVE_SECONDS = 3.0
"""Seconds to disconnect from a server."""
LIST_PAUSE_SECONDS = 1.0
"""Minimum seconds between two readings of a list, even if the server announces more changes."""
MOST_PAGES = 100
MOST_LIST_CHARACTERS = 8_000_000
MOST_ROUNDS = 10
"""Maximum number of rounds of questions in one call (2026-07-28)."""
MOST_SAID = 20
NAME = types.Implementation(name="harness", version=__version__)
"""The name of this client for servers."""
PAUSE_SECONDS = 0.2
"""Seconds between two rounds of a call without a question."""

_ANY_RESULT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
Transport = Callable[[Callable[[str, bool], None]], "AbstractAsyncContextManager[TransportStreams]"]
"""Connects to a server. Its argument is called when no further message will arrive, as `Connection.note_end` is."""


class Connection:
    """The connection to one server. All methods run in the thread of the event loop."""

    def __init__(self, server: ConfiguredServer, transport: Transport, *, asks: bool) -> None:
        """Make a connection over `transport`. `asks`: the server may ask the user."""
        self.server = self._server = server
        self._transport = transport
        self._asks = asks
        self._client: Client | None = None
        self._lost = ""
        """Reason why no further message will arrive."""
        self._may_come_back = False
        self._changed = anyio.Event()
        self._over = anyio.Event()
        self._calls: list[SentCall] = []
        self._asking = anyio.Lock()
        self._scope = anyio.CancelScope()
        """Scope of the whole connection, with the deadline of the present step."""

    async def keep(self) -> None:
        """Connect, and stay connected until `stop` is called or the server ends.

        Does not raise errors that the server causes; they become the reason of `ConfiguredServer.over`.
        """
        server, reason, scope = self._server, "", self._scope
        scope.deadline = anyio.current_time() + server.declaration.start_seconds
        try:
            with scope:
                async with self._connected() as client:
                    self._client = client
                    await self._read_list()
                    server.ready()
                    scope.deadline = math.inf
                    await self._follow(client)
                    scope.deadline = anyio.current_time() + LEAVE_SECONDS
            if scope.cancelled_caught and not self._over.is_set():
                reason = f"it did not answer within {self._server.declaration.start_seconds:g} seconds"
        except Exception as error:  # noqa: BLE001 - a server that fails must not affect the others
            reason = self._words_of(error)
        finally:
            self._client = None
        if self._lost or reason:
            code = f"it ended with exit code {server.exit_code}" if self._lost and server.exit_code is not None else ""
            last = f"the last that it said: {server.last_words}" if server.last_words else ""
            account = "; ".join(part for part in (self._lost or reason, code, last) if part)
            if not (self._lost and self._may_come_back and server.begin_again(account)):
                server.over(account)

    def stop(self) -> None:
        """Disconnect. A connection that is not ready yet is cancelled at once."""
        self._over.set()
        if self._client is None or not self._server.settled.is_set():
            self._scope.cancel()

    def note_end(self, reason: str, may_come_back: bool) -> None:
        """Note that no further message will arrive, for `reason`. A server that ended by itself may be started again."""
        if not self._over.is_set():
            self._lost, self._may_come_back = reason, may_come_back
            self.server.is_listed.clear()  # new calls wait until the server has been started again, or is gone
        self._over.set()

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], seconds: float, waiting: AwaitedCall) -> None:
        """Call a tool, and pass its outcome to `waiting`.

        A cancellation of this task cancels the call at the server.
        """
        scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        opened = SentCall(scope, waiting)
        self._calls.append(opened)
        result, error = None, ""
        try:
            with scope:
                result = await self._answer(tool, dict(arguments))
        except Exception as fault:  # noqa: BLE001 - the error becomes the outcome of the call
            error = self._lost or self._words_of(fault)
        finally:
            self._calls.remove(opened)
        notes = tuple(opened.questions)
        late = scope.cancelled_caught
        waiting.finish(CallOutcome(result=result, error=error, timed_out=late, questions=notes))

    def _words_of(self, error: BaseException) -> str:
        """Return a description of an error, safe to show."""
        return visible_line(self._server.redact(words_of(error)), 2_000)

    # -- connecting

    def _connected(self) -> Client:
        return Client(
            self._transport(self.note_end),
            mode="auto",
            cache=None,
            client_info=NAME,
            elicitation_callback=self._elicited if self._asks else None,
            sampling_callback=None,
            list_roots_callback=None,
            message_handler=self._heard,
        )

    async def _follow(self, client: Client) -> None:
        """Read the list again when it changes, until the end."""
        async with anyio.create_task_group() as tasks:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tasks.start_soon(self._listen, client)
            tasks.start_soon(self._read_again)
            await self._over.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Listen for changes of the list, in the way of the protocol's later era."""
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._list_changed()
        except Exception:  # noqa: BLE001, S110 - without events, calls of removed tools fail with an error
            pass

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._list_changed()

    def _list_changed(self) -> None:
        self._server.is_listed.clear()
        self._server.catalog.changed()
        self._changed.set()

    async def _read_again(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                with anyio.fail_after(LIST_SECONDS):
                    await self._read_list()
            except Exception as error:  # noqa: BLE001 - its tools are withheld until the list can be read
                self._server.note(f"its list of tools changed, and cannot be read: {self._words_of(error)}")
            self._server.is_listed.set()
            await anyio.sleep(LIST_PAUSE_SECONDS)

    async def _read_list(self) -> None:
        """Read the complete list of tools into the catalog. Raises UsageError, and the errors of the SDK."""
        server, definitions, cursor, size = self._server, list[JsonValue](), None, 0
        began_at = server.catalog.changes
        for _ in range(MOST_PAGES):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await self._session.send_request(request, _ANY_RESULT)
            tools = page["tools"]
            size += len(json.dumps(tools))
            definitions += tools
            cursor = page.get("nextCursor")
            if size > MOST_LIST_CHARACTERS or len(definitions) > MOST_TOOLS:
                raise UsageError(
                    f"the server lists more than {MOST_TOOLS} tools, or describes them at too great a length"
                )
            if not isinstance(cursor, str):
                break
        else:
            raise UsageError(f"the server's list of tools has more than {MOST_PAGES} pages")
        server.unfit = unfit_schemas(definitions)
        for problem in server.catalog.take_whole(definitions, began_at).left_out:
            server.note(f"left out: {problem}")

    @property
    def _session(self) -> Any:
        if self._client is None:
            raise UsageError(self._server.reason or "it is not connected")
        return self._client.session

    # -- a call

    async def _answer(self, tool: str, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the result of a call.

        If the server asks questions first (2026-07-28), put them to the user, and repeat the call with the answers.
        """
        responses: dict[str, Any] | None = None
        state: str | None = None
        for _ in range(MOST_ROUNDS):
            raw = await self._sent(tool, arguments, responses, state)
            if raw.get("resultType") != "input_required":
                return raw
            required = types.InputRequiredResult.model_validate(raw, by_name=False)
            state, responses = required.request_state, {}
            for key, request in (required.input_requests or {}).items():
                context = ClientRequestContext(session=self._session, request_id=key)
                response = await self._session.dispatch_input_request(context, request)
                if isinstance(response, types.ErrorData):
                    raise MCPError.from_error_data(response)
                responses[key] = response
            if not responses:
                responses = None
                await anyio.sleep(PAUSE_SECONDS)
        raise UsageError(f"the server asked for input more than {MOST_ROUNDS} times in one call")

    async def _sent(
        self, tool: str, arguments: dict[str, JsonValue], responses: dict[str, Any] | None, state: str | None
    ) -> dict[str, Any]:
        params = types.CallToolRequestParams(
            name=tool, arguments=arguments, input_responses=responses, request_state=state
        )
        request = types.CallToolRequest(params=params)
        try:
            return dict(await self._session.send_request(request, _ANY_RESULT))
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH:
                raise
        await self._session.list_tools()  # tells the SDK which arguments to send in headers
        return dict(await self._session.send_request(request, _ANY_RESULT))

    # -- questions of the server

    async def _elicited(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as the SDK has it
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Have the user asked by the thread that waits for the running call. Decline without a running call."""
        opened = self._calls[-1] if self._calls else None
        message = visible_line(self._server.redact(params.message), 200)
        if isinstance(params, types.ElicitRequestURLParams):
            return self._declined(opened, message, "it wants a page to be opened")
        form = form_of(params.message, params.requested_schema)
        if isinstance(form, str):
            return self._declined(opened, message, form)
        if opened is None:
            return self._declined(opened, message, "it asks while no call of it runs")
        if len(opened.questions) >= MOST_SAID or self._asking.statistics().locked:
            return self._declined(opened, message, "it asks too much at a time")
        async with self._asking:
            with opened.paused():
                answer = await anyio.to_thread.run_sync(opened.waiting.await_answer, form, abandon_on_cancel=True)
        opened.say(f'The server asked the person: "{message}"; {answer.words}.')
        content = None if answer.content is None else {**answer.content}
        return types.ElicitResult(action=answer.action, content=content)  # type: ignore[arg-type]

    def _declined(self, opened: SentCall | None, message: str, reason: str) -> types.ElicitResult:
        self._server.note(f'it wanted to ask you "{message}", and was refused: {reason}')
        if opened is not None:
            opened.say(f'The server wanted to ask the person: "{message}"; refused: {reason}.')
        return types.ElicitResult(action="decline")


def unfit_schemas(tools: Sequence[JsonValue]) -> dict[str, str]:
    """Return the problems of invalid argument schemas, by name of the tool.

    A model's provider would refuse every request with such a schema.
    """
    from jsonschema import Draft202012Validator, SchemaError

    unfit = {}
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not isinstance(schema, dict) or len(json.dumps(schema)) > MOST_SCHEMA:
            continue  # the tool is left out for another reason
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            unfit[name] = f"{name}: the schema of its arguments is none: {error.message[:200]}"
        except RecursionError:
            unfit[name] = f"{name}: the schema of its arguments is nested too deeply"
    return unfit


class SentCall:
    """A sent call without an answer."""

    def __init__(self, scope: anyio.CancelScope, waiting: AwaitedCall) -> None:
        """Create the call. `scope` cancels it at its deadline. `waiting` receives its questions and its outcome."""
        self._scope = scope
        self.waiting = waiting
        self.questions: list[str] = []

    def say(self, text: str) -> None:
        """Store a sentence about a question of the server to the user."""
        if len(self.questions) <= MOST_SAID:
            self.questions.append(text)

    def paused(self) -> _Pause:
        """Return a `with` block that suspends the call's deadline, while the user answers a question."""
        return _Pause(self._scope)


class _Pause:
    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._seconds_left = 0.0

    def __enter__(self) -> None:
        self._seconds_left = self._scope.deadline - anyio.current_time()
        self._scope.deadline = math.inf

    def __exit__(self, *_: object) -> None:
        self._scope.deadline = anyio.current_time() + self._seconds_left


def keep_sdk_quiet() -> None:
    """Keep the SDK's log, which quotes a server's messages, off the terminal."""
    logger = logging.getLogger("mcp")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def words_of(error: BaseException) -> str:
    """Return a description of an error, or of the first error of a group. It may contain text of the server."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case MCPError():
            text = f"it answered with an error: {error.error.message} ({error.error.code})"
            closed = (error.code, error.error.message) == (types.CONNECTION_CLOSED, "Connection closed")
            text = "the connection is closed" if closed else text
        case ValidationError():
            text = f"its answer does not fit the protocol: {error.errors()[0]['msg']}" if error.errors() else ""
        case UsageError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error}"
    return text
