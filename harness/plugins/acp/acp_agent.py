"""The agent's side of the Agent Client Protocol: dispatches each request of the client to its session.

The main thread reads, and never waits for a session or for the client. INVARIANT: every session gets an end record in
its log, no matter how the client ended.
"""

from __future__ import annotations

import os
import select
import traceback
from _thread import start_new_thread
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from acp import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    AuthenticateRequest,
    AuthEnvVar,
    AuthMethodAgent,
    CancelNotification,
    CloseSessionRequest,
    EnvVarAuthMethod,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    LoadSessionRequest,
    McpCapabilities,
    NewSessionRequest,
    PromptCapabilities,
    PromptRequest,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionListCapabilities,
    SetSessionModeRequest,
    TerminalAuthMethod,
)
from pydantic import BaseModel, ValidationError

from harness import __version__
from harness.actions import JsonValue
from harness.app.commands.mode import Mode
from harness.errors import HarnessError, NoModelError
from harness.messages import RunResult, StopReason
from harness.plugins.acp.client_servers import ClientServer, can_serve
from harness.plugins.acp.client_wire import (
    AUTH_REQUIRED,
    NO_SUCH_SESSION,
    UNKNOWN_METHOD,
    ClientAnswer,
    ClientWire,
    RefusedRequest,
)
from harness.plugins.acp.served_session import ServedSession, session_arguments
from harness.plugins.acp.stored_sessions import listed_sessions
from harness.process.json_rpc import LineSplitter, RefusedLine, RpcCode, RpcKind, RpcMessage, read_message
from harness.session.config.provider import endpoint_of
from harness.session.config.settings import settings_from
from harness.session.state import State, current_folder
from harness.terminal.console import complain
from harness.text.visible import visible_line

BLOCK_BYTES = 1 << 16
NUDGE_MILLISECONDS = 50
END_SECONDS = 0.05
"""Interval in seconds between checks whether a session has ended."""
HURRIED = 2
"""Number of signals after which the program no longer waits for its sessions."""
DRAIN_SECONDS = 2.0
"""Maximum seconds to wait at the end until the client has read the last messages."""
MOST_SESSIONS = 100
"""Maximum number of open sessions."""
MOST_NAME = 200
AUTH_METHODS: list[EnvVarAuthMethod | TerminalAuthMethod | AuthMethodAgent] = [
    AuthMethodAgent(
        id="configured",
        name="A model of your configuration",
        description="Name a provider and a model in config.toml, or start your editor with a key in its environment.",
    ),
    EnvVarAuthMethod(
        id="openai", name="A key for OpenAI", type="env_var", vars=[AuthEnvVar(name="OPENAI_API_KEY", label="API key")]
    ),
]
"""The ways to a model. `configured` checks again when the client says that its user is ready."""

_Params = TypeVar("_Params", bound=BaseModel)


class AcpAgent:
    """One client, and its sessions."""

    def __init__(
        self, arguments: Namespace, environment: Mapping[str, str], source: int, target: int, wake: tuple[int, int]
    ) -> None:
        """`source` and `target` are the client's file descriptors to read and to write. `wake` is a pipe that wakes `run`."""
        self._arguments = arguments
        self._environment = environment
        self._source = source
        self._waking, self._wake = wake
        self._wire = ClientWire(target, self._wake_up)
        self._client = ""
        self._records: bool = arguments.records
        self._is_begun = False
        self._stopped = 0
        self._sessions: dict[str, ServedSession] = {}
        self._all: list[ServedSession] = []
        self._requests: Mapping[str, Callable[[RpcMessage], Mapping[str, JsonValue] | None]] = {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/list": self._list,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/close": self._close,
        }

    def stop(self) -> None:
        """Make `run` end. From the HURRIED call on, it does not wait for the sessions. Signal handlers may call this."""
        self._stopped += 1
        self._wake_up()

    def _wake_up(self) -> None:
        """Wake `run`, so that it checks whether to end. Any thread may call this."""
        try:
            os.write(self._wake, b"x")
        except OSError:
            pass  # the pipe is full, or `run` has ended

    def run(self) -> str:
        """Serve the client until it closes its side, or until `stop`. Return the first log problem, or an empty string."""
        try:
            self._read()
        finally:
            problem = self._end()
        return problem

    def _read(self) -> None:
        lines = LineSplitter()
        waiting = select.poll()
        waiting.register(self._source, select.POLLIN)
        waiting.register(self._waking, select.POLLIN)
        while not self._is_over:
            stopping = any(session.is_stopping for session in self._all)
            ready = {number for number, _ in waiting.poll(NUDGE_MILLISECONDS if stopping else None)}
            for session in self._all:
                session.nudge()
            if self._source not in ready or self._is_over:
                continue
            block = _block_from(self._source)
            if not block:
                break
            for line in lines.add(block):
                self._take(line)

    @property
    def _is_over(self) -> bool:
        return self._stopped > 0 or self._wire.is_gone

    def _end(self) -> str:
        reason = "the program was told to end" if self._stopped else "the client closed its side"
        stop = StopReason.INTERRUPTED if self._stopped else StopReason.COMPLETED
        self._wire.close()
        for session in self._all:
            session.end(RunResult(stop=stop, text="", detail=reason))
        for session in self._all:
            while not session.is_over(END_SECONDS) and self._stopped < HURRIED:
                session.nudge()
        self._wire.drain(DRAIN_SECONDS)
        return next((session.log_problem for session in self._all if session.log_problem), "")

    # Messages

    def _take(self, line: bytes) -> None:
        message = read_message(line)
        if isinstance(message, RefusedLine):
            self._refuse(message)
        elif message.kind is RpcKind.RESPONSE:
            self._wire.take_answer(message)
        elif message.kind is RpcKind.REQUEST:
            self._answer(message.id, lambda: self._answer_to(message))
        elif message.method == "session/cancel":
            self._cancel(message)

    def _refuse(self, refused: RefusedLine) -> None:
        for identity in refused.asks or (() if refused.answers else ("null",)):
            self._wire.error(identity, RefusedRequest(refused.code, f"the line was refused: {refused.reason}"))
        for identity in refused.answers:
            self._wire.settle(identity, ClientAnswer(problem=f"the client's answer was refused: {refused.reason}"))

    def _answer_to(self, message: RpcMessage) -> Mapping[str, JsonValue] | None:
        """Handle a request and return the answer; `None` if a session's thread answers. Raises RefusedRequest."""
        if message.method == "initialize":
            return self._initialize(message)
        handle = self._requests.get(message.method)
        if handle is None:
            raise RefusedRequest(UNKNOWN_METHOD, f"there is no method {visible_line(message.method, MOST_NAME)}")
        if not self._is_begun:
            raise RefusedRequest(RpcCode.REQUEST, "initialize comes first")
        return handle(message)

    def _answer(self, identity: str, work: Callable[[], Mapping[str, JsonValue] | None]) -> None:
        """Answer a request with the result of `work`, or with its error. Runs in any thread."""
        try:
            result = work()
        except RefusedRequest as refused:
            self._wire.error(identity, refused)
        except NoModelError as error:
            self._wire.error(identity, RefusedRequest(AUTH_REQUIRED, str(error)))
        except HarnessError as error:
            self._wire.error(identity, RefusedRequest(RpcCode.INTERNAL, str(error)))
        except Exception as error:  # noqa: BLE001 - the client gets a bug as an error, and the other sessions continue
            problem = f"internal error: {type(error).__name__}: {error}"
            complain(problem)
            if self._environment.get("HARNESS_DEBUG"):
                traceback.print_exc()
            self._wire.error(identity, RefusedRequest(RpcCode.INTERNAL, problem))
        else:
            if result is not None:
                self._wire.result(identity, result)

    def _initialize(self, message: RpcMessage) -> Mapping[str, JsonValue]:
        request = _read(InitializeRequest, message)
        if request.client_info is not None:
            self._client = visible_line(f"{request.client_info.name} {request.client_info.version}", MOST_NAME)
        fields = (request.field_meta or {}).get("harness")
        self._records = self._records or (isinstance(fields, dict) and fields.get("records") is True)
        self._is_begun = True
        return _fields(
            InitializeResponse(
                protocol_version=PROTOCOL_VERSION,
                agent_info=Implementation(name="harness", title="harness", version=__version__),
                auth_methods=AUTH_METHODS,
                agent_capabilities=AgentCapabilities(
                    load_session=True,
                    prompt_capabilities=PromptCapabilities(image=self._sees(), audio=False, embedded_context=True),
                    mcp_capabilities=McpCapabilities(http=can_serve(), sse=False),
                    session_capabilities=SessionCapabilities(
                        list=SessionListCapabilities(),
                        close=SessionCloseCapabilities(),
                        additional_directories=SessionAdditionalDirectoriesCapabilities(),
                    ),
                ),
            )
        )

    def _authenticate(self, message: RpcMessage) -> Mapping[str, JsonValue]:
        """Return an empty answer if there is a model now. Raises NoModelError, and other errors of the settings."""
        _read(AuthenticateRequest, message)
        endpoint_of(settings_from(self._arguments, self._environment, current_folder()), self._environment)
        return {}

    def _sees(self) -> bool:
        """Return whether the model of new sessions accepts pictures. False if the settings are invalid."""
        try:
            return settings_from(self._arguments, self._environment, current_folder()).pictures.value
        except HarnessError:
            return False  # the error is reported when a session begins

    # Sessions

    def _new(self, message: RpcMessage) -> None:
        request = _read(NewSessionRequest, message)
        self._open(message.id, request, "")

    def _load(self, message: RpcMessage) -> None:
        request = _read(LoadSessionRequest, message)
        if request.session_id in self._sessions:
            raise RefusedRequest(RpcCode.REQUEST, "this session is open here already")
        self._open(message.id, request, request.session_id)

    def _open(self, identity: str, request: NewSessionRequest | LoadSessionRequest, name: str) -> None:
        """Begin a session on its own thread, which answers the request. Raises RefusedRequest."""
        folders = request.additional_directories or []
        for key, folder in [("cwd", request.cwd), *(("additionalDirectories", folder) for folder in folders)]:
            if not os.path.isabs(folder) or not os.path.isdir(folder):
                raise RefusedRequest(
                    RpcCode.PARAMS, f"{key} is no folder by its absolute path: {visible_line(folder, 1_000)}"
                )
        self._all = [served for served in self._all if not served.is_over(0)]
        if len(self._all) >= MOST_SESSIONS:
            raise RefusedRequest(RpcCode.REQUEST, f"{MOST_SESSIONS} sessions are open; close one")
        session = ServedSession(
            session_arguments(self._arguments, request.cwd, folders),
            self._environment,
            self._wire,
            client=self._client,
            records=self._records,
        )
        self._all.append(session)
        if name:
            self._sessions[name] = session
        session.take(lambda: self._answer(identity, lambda: self._opened(session, name, request.mcp_servers)))
        session.take(session.send_first_updates)

    def _opened(self, session: ServedSession, name: str, servers: Sequence[ClientServer]) -> Mapping[str, JsonValue]:
        try:
            answer = session.open(name, servers)
        except BaseException:
            self._sessions.pop(name, None)
            session.end(RunResult(stop=StopReason.INTERNAL_ERROR, text=""))
            raise
        self._sessions[str(answer["sessionId"])] = session
        return answer

    def _list(self, message: RpcMessage) -> None:
        request = _read(ListSessionsRequest, message)

        def work() -> Mapping[str, JsonValue]:
            sessions = listed_sessions(State.of(self._environment), request.cwd)
            return {"sessions": [_fields(session) for session in sessions]}

        start_new_thread(self._answer, (message.id, work))  # there may be many logs

    def _prompt(self, message: RpcMessage) -> None:
        request = _read(PromptRequest, message)
        session = self._session(request.session_id)
        self._begin(message.id, session, lambda: session.prompt(request.prompt))

    def _set_mode(self, message: RpcMessage) -> None:
        request = _read(SetSessionModeRequest, message)
        session = self._session(request.session_id)
        if request.mode_id not in [mode.value for mode in Mode]:
            raise RefusedRequest(RpcCode.PARAMS, f"there is no mode {visible_line(request.mode_id, MOST_NAME)}")

        def work() -> Mapping[str, JsonValue]:
            session.set_mode(request.mode_id)
            return {}

        self._begin(message.id, session, work)

    def _begin(self, identity: str, session: ServedSession, work: Callable[[], Mapping[str, JsonValue]]) -> None:
        """Run `work` on a session's thread, and answer with its result. Raises RefusedRequest if the session is busy."""
        if not session.begins():
            raise RefusedRequest(
                RpcCode.REQUEST, "a prompt of this session runs: one at a time; session/cancel ends it"
            )

        def then_done() -> Mapping[str, JsonValue]:
            try:
                return work()
            finally:
                session.is_done()

        session.take(lambda: self._answer(identity, then_done))

    def _close(self, message: RpcMessage) -> Mapping[str, JsonValue]:
        request = _read(CloseSessionRequest, message)
        self._session(request.session_id).end(RunResult(stop=StopReason.COMPLETED, text="", detail="closed"))
        del self._sessions[request.session_id]
        return {}

    def _cancel(self, message: RpcMessage) -> None:
        try:
            session = self._sessions.get(CancelNotification.model_validate(message.params).session_id)
        except ValidationError:
            return
        if session is not None:
            session.cancel()

    def _session(self, name: str) -> ServedSession:
        session = self._sessions.get(name)
        if session is None or session.is_over(0):
            raise RefusedRequest(NO_SUCH_SESSION, f"no session {visible_line(name, MOST_NAME)} is open here")
        return session


def _read(shape: type[_Params], message: RpcMessage) -> _Params:
    """Parse the parameters of a request. Raises RefusedRequest."""
    try:
        return shape.model_validate(message.params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise RefusedRequest(RpcCode.PARAMS, visible_line(f"{location}: {first['msg']}", 500)) from None


def _fields(shape: BaseModel) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = shape.model_dump(mode="json", by_alias=True, exclude_none=True)
    return fields


def _block_from(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, BLOCK_BYTES)
    except OSError:
        return b""
