"""Judges the calls of one client by the gate, in the order of their arrival.

Several threads judge calls, one call at a time. While a call waits for the user or for the server's answer, its thread
releases the turn, so that the next call is judged (see `GateTurn`).
"""

from __future__ import annotations

import json
import os
import queue
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Mapping

from harness.actions import Action, JsonValue
from harness.errors import HarnessError, ToolError, UsageError
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.call_checks import CallChecks
from harness.gate.gate import Gate
from harness.gate.registry import ToolRegistry
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.plugins.mcp.server_calls import GateTurn, ServerCall
from harness.plugins.mcp.server_tools import ServerTool
from harness.plugins.mcp.sides import Sides
from harness.plugins.mcp.tool_catalog import MOST_TOOLS, ToolCatalog
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.process.json_rpc import LIST_TOOLS, RpcCode, RpcMessage, error_line, request_line, result_line
from harness.tool_kinds import server_tool

MOST_AT_ONCE = 32
"""Maximum number of calls that wait for an approval or run at the same time. Further calls queue."""
LIST_SECONDS = 30.0
"""Seconds that the server gets to list its tools for the proxy."""
MOST_PAGES = 100
STEP_SECONDS = 0.002
_ERA = "io.modelcontextprotocol/protocolVersion"
"""Key in `_meta` that marks requests of the later era (2026-07-28)."""
_PROGRESS = "progressToken"


class CallJudge:
    """Takes calls, judges each by the gate, and sends the results to the client."""

    def __init__(  # noqa: PLR0913 - one caller
        self,
        sides: Sides,
        catalog: ToolCatalog,
        *,
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        workspace: Workspace,
        turn: GateTurn,
        note: Callable[[str], None],
        fail: Callable[[Exception], None],
        checks: CallChecks,
    ) -> None:
        """Create the judge.

        All writers of the log share `turn`. `note` records dropped lines, and `fail` ends the proxy.
        """
        self._sides = sides
        self._catalog = catalog
        self._workspace = workspace
        self._turn = turn
        self._note = note
        self._fail = fail
        self._approver = approver
        self._redact = log.redactor.redact
        self.gate = Gate(
            policy=policy,
            approver=deny_all if approver is deny_all else self._asking,
            log=log,
            tools=ToolRegistry(()),
            checks=checks,
        )
        self.latch = ""
        """Reason to refuse every further call. Empty before the first hard block."""
        self._over = ""
        """Reason to send no further call. Empty before `close`."""
        self._own_queues: dict[str, queue.SimpleQueue[RpcMessage | None]] = {}
        """Queues for the answers to the proxy's own requests, by ID of the request."""
        self._own_id = f"harness-{os.urandom(6).hex()}"
        self._waiting: queue.SimpleQueue[ServerCall | None] = queue.SimpleQueue()
        self._order = allocate_lock()
        """Lock of the thread that takes the next call, held until that call has its turn."""
        self._threads = self._idle = self._count = self._asking_count = 0
        self._hands = allocate_lock()
        """Lock for `_threads` and `_idle`."""
        self._busy: dict[str, ServerCall] = {}
        """Calls without an end, by ID."""
        self._tools: dict[str, ServerTool] = {}
        self._more_threads()

    def take(self, call: ServerCall) -> None:
        """Queue a call for judging."""
        self._busy[call.id] = call
        self._waiting.put(call)

    def own_answer(self, message: RpcMessage) -> bool:
        """Take an answer of the server if it belongs to a request of the proxy itself. Return whether it does."""
        answers = self._own_queues.pop(json.loads(message.id), None)
        if answers is not None:
            answers.put(message)
        return answers is not None

    def close(self, reason: str) -> None:
        """Send no further calls to the server. Waiting calls are not run, for this reason."""
        self._over = reason
        self._waiting.put(None)

    def await_ends(self, seconds: float) -> None:
        """Wait at most `seconds` for the ends of all calls, except those at an approval prompt.

        A prompt that is open cannot be withdrawn.
        """
        for answers in tuple(self._own_queues.values()):
            answers.put(None)
        end = time.monotonic() + seconds
        while len(self._busy) > self._asking_count and time.monotonic() < end:
            time.sleep(STEP_SECONDS)

    def end(self) -> None:
        """Judge no further calls, and record ends of the open ones. Raises LogError."""
        self._turn.keep()
        self.gate.end_open_calls("the proxy ended")

    def answer_rest(self) -> None:
        """Send the client an error for each unanswered call."""
        for call in tuple(self._busy.values()):
            self._sides.client.write(error_line(call.id, RpcCode.INTERNAL, "The proxy ended before anybody answered."))

    def _more_threads(self) -> None:
        """Start a thread if none is idle and the maximum is not reached."""
        with self._hands:
            if self._idle or self._threads == MOST_AT_ONCE:
                return
            self._threads += 1
            self._idle += 1
        start_new_thread(self._work, ())

    def _work(self) -> None:
        try:
            self._judge_calls()
        except Exception as error:  # noqa: BLE001 - a fault of the proxy itself
            self._fail(error)

    def _judge_calls(self) -> None:
        while (call := self._next_call()) is not None:
            try:
                result = self._judge(call)
            except Exception as error:  # noqa: BLE001 - no call may run after a failure of the gate
                self._sides.client.write(
                    error_line(call.id, RpcCode.INTERNAL, f"The proxy failed: {fault_words(error)}")
                )
                self._forget(call)
                self._fail(error)
                return
            finally:
                self._turn.give()
                if not call.is_sent:
                    self._sides.of_client.pop(call.id)
            self._answer(call, result)
            self._forget(call)
            with self._hands:
                self._idle += 1

    def _forget(self, call: ServerCall) -> None:
        if self._busy.get(call.id) is call:  # after the answer, the client may have used the ID for another call
            del self._busy[call.id]

    def _next_call(self) -> ServerCall | None:
        """Wait for the next call, then acquire the turn to judge it. Return `None` at the end."""
        with self._order:
            call = self._waiting.get()
            if call is None:
                self._waiting.put(None)
                return None
            with self._hands:
                self._idle -= 1
            self._more_threads()
            if not self._over and self._catalog.is_unknown(call.tool):
                self._read_list(call)
            self._turn.take()
            return call

    def _judge(self, call: ServerCall) -> ToolResult:
        """Judge and run a call by the gate, and return its result.

        Raises LogError and GateError, which end the proxy.
        """
        self._count += 1
        self._offer(call.tool)
        name = server_tool(self._catalog.server, call.tool)
        pending = self.gate.propose(ToolCall(id=call.id, name=name, arguments=call.arguments), step=self._count)
        if call.is_cancelled:
            return self.gate.skip(pending, "the client cancelled it.")
        if self._over:
            return self.gate.skip(pending, f"{self._over}.")
        if self.latch:
            return self.gate.skip(pending, self.latch)
        result = self.gate.call(pending).result
        if result.status is ResultStatus.BLOCKED:
            self.latch = f"an earlier call was a hard block, and nothing runs after it. It was told: {result.content}"
        return result

    def _offer(self, name: str) -> None:
        """Offer the tool of a call to the gate, even if the server does not list it."""
        if name in self._tools:
            return
        if len(self._tools) > MOST_TOOLS:  # a model can invent any number of names
            used = {call.tool for call in tuple(self._busy.values())}
            self._tools = {used_name: tool for used_name, tool in self._tools.items() if used_name in used}
        self._tools[name] = ServerTool(
            name,
            self._catalog,
            self._busy,
            workspace=self._workspace,
            send=self._send,
            turn=self._turn,
            redact=self._redact,
        )
        self.gate.tools = ToolRegistry(tuple(self._tools.values()))

    def _asking(self, action: Action, verdict: Verdict) -> Approval:
        self._asking_count += 1
        try:
            with self._turn.stepped_out():
                return self._approver(action, verdict)
        finally:
            self._asking_count -= 1

    def _send(self, call: ServerCall, line: bytes) -> None:
        """Send the line of a call. Raises ToolError if the call was cancelled or the proxy is ending."""
        with self._sides.server.lock:
            if call.is_cancelled:
                raise ToolError("The client cancelled this call before it was sent.")
            if self._over or self._sides.server.is_gone:
                raise ToolError("The proxy is ending, so the call was not sent.")
            call.is_sent = True
            self._sides.server.write_alone(line)

    def _answer(self, call: ServerCall, result: ToolResult) -> None:
        """Send the client the server's own line, or an error result with the reason for its absence."""
        if call.answer is not None:
            self._sides.client.write(call.answer.line)
        elif not call.is_cancelled:
            self._sides.client.write(result_line(call.id, refusal(call, result.content)))

    def _read_list(self, call: ServerCall) -> None:
        """Read the server's list of tools for a tool that is unknown so far. A failure is only noted."""
        began_at, tools_so_far, cursor = self._catalog.changes, list[JsonValue](), None
        meta = call.message.params.get("_meta")
        meta_fields = (
            {name: value for name, value in meta.items() if name != _PROGRESS} if isinstance(meta, dict) else {}
        )
        for page in range(MOST_PAGES):
            name = f"{self._own_id}-{began_at}-{page}-{os.urandom(3).hex()}"
            params: dict[str, JsonValue] = {} if cursor is None else {"cursor": cursor}
            answer = self._ask_server(name, LIST_TOOLS, {**params, **({"_meta": meta_fields} if meta_fields else {})})
            result = None if answer is None else answer.fields.get("result")
            tools = result.get("tools") if isinstance(result, dict) else None
            if not isinstance(result, dict) or not isinstance(tools, list):
                self._note("the server did not list its tools when the proxy asked")
                return
            tools_so_far += tools
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                break
        try:
            listed_tools = self._catalog.take_whole(tools_so_far, began_at)
        except UsageError as error:
            self._note(str(error))
            return
        for problem in listed_tools.left_out:
            self._note(f"taken away: {problem}")

    def _ask_server(self, identity: str, method: str, params: Mapping[str, JsonValue]) -> RpcMessage | None:
        """Send a request of the proxy itself, and return the server's answer. `None` without one."""
        answers: queue.SimpleQueue[RpcMessage | None] = queue.SimpleQueue()
        self._own_queues[identity] = answers
        self._sides.server.write(request_line(json.dumps(identity), method, params))
        try:
            return answers.get(timeout=LIST_SECONDS)
        except queue.Empty:
            return None
        finally:
            self._own_queues.pop(identity, None)


def refusal(call: ServerCall, text: str) -> dict[str, JsonValue]:
    """Return an error result with the reason, for the model."""
    content: list[JsonValue] = [{"type": "text", "text": text}]
    meta = call.message.params.get("_meta")
    result: dict[str, JsonValue] = {"content": content, "isError": True}
    return {**result, "resultType": "complete"} if isinstance(meta, dict) and _ERA in meta else result


def fault_words(fault: Exception) -> str:
    """Return a readable description of the fault that ended a proxy."""
    return str(fault) if isinstance(fault, HarnessError) else f"internal error: {type(fault).__name__}: {fault}"
