"""The path of each line: passed on byte for byte, judged, or refused.

These lines are refused (json_rpc.py has the reasons):

- a line that is not a message, a batch, or a message with an invalid ID: dropped. The side that waits gets an error: the
  sender of a request, or the requester of an answer. Without a readable ID, no side gets an error;
- a request with the ID of an open request: dropped, since an error would count as the answer to the open request;
- an answer without a request, an answer to a call that was not sent yet, a call without an ID: dropped;
- a call with an invalid name of a tool: an error. A call that the gate refuses: a result with the reason for the model,
  marked with `isError`. After a hard block every later call is refused.

All refusals are in the log.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.actions import Action, Decision, ToolUse
from harness.errors import UsageError
from harness.messages import ToolCall
from harness.plugins.mcp.judging import CallJudge
from harness.plugins.mcp.server_calls import ServerCall, server_call
from harness.plugins.mcp.sides import OpenRequests, Peer, Sides
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.policy.verdict import evaluate
from harness.process.json_rpc import (
    CALL_TOOL,
    LIST_TOOLS,
    RefusedLine,
    RpcCode,
    RpcKind,
    RpcMessage,
    changed_line,
    error_line,
    id_text,
    read_message,
)
from harness.tool_kinds import server_tool

CANCELLED = "notifications/cancelled"
CHANGED = "notifications/tools/list_changed"


class Traffic:
    """Takes each line of both sides."""

    def __init__(self, sides: Sides, catalog: ToolCatalog, judge: CallJudge, note: Callable[[str], None]) -> None:
        """Connect the two sides. `note` records dropped lines."""
        self._sides = sides
        self._catalog = catalog
        self._judge = judge
        self._note = note

    # -- from the client

    def from_client(self, line: bytes) -> None:
        """Handle a line from the client. Raises LogError."""
        message = read_message(line)
        if isinstance(message, RefusedLine):
            sides = self._sides
            self._refuse(message, "client", (sides.client, sides.of_client), (sides.server, sides.of_server))
            return
        match message.kind:
            case RpcKind.REQUEST:
                self._asked_by_client(message)
            case RpcKind.NOTIFICATION if message.method == CALL_TOOL:
                self._note("the client called a tool without an id: dropped")
            case RpcKind.NOTIFICATION if message.method == CANCELLED:
                self._cancelled(message)
            case RpcKind.NOTIFICATION:
                self._sides.server.write(line)
            case RpcKind.RESPONSE if self._sides.of_server.pop(message.id) is None:
                self._note(f"the client answered {message.id}, which the server did not ask: dropped")
            case RpcKind.RESPONSE:
                self._sides.server.write(line)

    def _asked_by_client(self, message: RpcMessage) -> None:
        call = server_call(message) if message.method == CALL_TOOL else None
        if isinstance(call, str):
            self._note(f"a call of the client's was refused: {call}")
            if self._sides.of_client.get(message.id) is None:
                self._sides.client.write(error_line(message.id, RpcCode.PARAMS, f"Refused: {call}."))
            return
        if problem := self._sides.of_client.add(message.id, call or message.method):
            self._note(f"a {message.method} of the client's was dropped: {problem}")
        elif call is None:
            self._sides.server.write(message.line)
        else:
            self._judge.take(call)

    def _cancelled(self, message: RpcMessage) -> None:
        """Pass on the cancellation of a request, unless it is a call that was not sent to the server yet."""
        call = self._sides.of_client.cancel(id_text(message.params.get("requestId")))
        with self._sides.server.lock:
            if isinstance(call, ServerCall):
                call.cancel()
            if not isinstance(call, ServerCall) or call.is_sent:
                self._sides.server.write_alone(message.line)

    def _refuse(
        self,
        refused: RefusedLine,
        whose: str,
        sender: tuple[Peer, OpenRequests],
        other: tuple[Peer, OpenRequests],
    ) -> None:
        """Drop a line, and fail the requests that it made or answered."""
        self._note(f"a line of the {whose}'s was refused: {refused.reason}")
        peer, opened = sender
        for identity in refused.asks:
            if opened.get(identity) is None:
                peer.write(error_line(identity, refused.code, f"Refused: {refused.reason}."))
        peer, opened = other
        for identity in refused.answers:
            call = opened.get(identity)
            reason = f"The {whose}'s answer was refused: {refused.reason}"
            if isinstance(call, ServerCall):
                if call.is_sent:
                    opened.pop(identity)
                    call.fail(reason)
            elif call is not None:
                opened.pop(identity)
                peer.write(error_line(identity, RpcCode.INTERNAL, f"{reason}."))

    # -- from the server

    def from_server(self, line: bytes) -> None:
        """Handle a line from the server. Raises LogError."""
        message = read_message(line)
        if isinstance(message, RefusedLine):
            sides = self._sides
            self._refuse(message, "server", (sides.server, sides.of_server), (sides.client, sides.of_client))
            return
        match message.kind:
            case RpcKind.RESPONSE:
                self._answered_by_server(message)
            case RpcKind.REQUEST:
                if problem := self._sides.of_server.add(message.id, message.method):
                    self._note(f"a {message.method} of the server's was dropped: {problem}")
                else:
                    self._sides.client.write(line)
            case RpcKind.NOTIFICATION:
                if message.method == CHANGED:
                    self._catalog.changed()
                elif message.method == CANCELLED:
                    self._sides.of_server.cancel(id_text(message.params.get("requestId")))
                self._sides.client.write(line)

    def _answered_by_server(self, message: RpcMessage) -> None:
        if self._judge.own_answer(message):
            return
        call = self._sides.of_client.get(message.id)
        if isinstance(call, ServerCall) and not call.is_sent:
            self._note(f"the server answered {message.id}, a call that was not sent to it: dropped")
            return
        self._sides.of_client.pop(message.id)
        if call is None:
            self._note(f"the server answered {message.id}, which nobody asked: dropped")
        elif isinstance(call, ServerCall):
            call.take_answer(message)
        else:
            self._sides.client.write(self._tool_list(message) if call == LIST_TOOLS else message.line)

    def _tool_list(self, message: RpcMessage) -> bytes:
        """Return the answer to the client's request for the list of tools, without tools that may not be used."""
        result = message.fields.get("result")
        if "error" in message.fields:
            return message.line
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            self._note("the server's list of tools was refused: it is no list")
            return error_line(message.id, RpcCode.INTERNAL, "The server's list of tools was refused: it is no list.")
        try:
            listed_tools = self._catalog.take(tools, self._is_refused)
        except UsageError as error:
            self._note(f"the server's list of tools was refused: {error}")
            return error_line(message.id, RpcCode.INTERNAL, f"The server's list of tools was refused: {error}.")
        for problem in listed_tools.left_out:
            self._note(f"left out of the list of tools: {problem}")
        if len(listed_tools.tools) == len(tools):
            return message.line
        return changed_line(message, "result", {**result, "tools": list(listed_tools.tools)})

    def _is_refused(self, tool: str) -> bool:
        """Return whether the policy refuses every call of a tool, whatever the approver answers."""
        name = server_tool(self._catalog.server, tool)
        call = ToolCall(id="", name=name, arguments="{}")
        action = Action(
            call=call,
            tool=name,
            arguments={},
            facets=(ToolUse(tool=name),),
            summary=name,
            preview=name,
            request=None,
        )
        return evaluate(self._judge.gate.policy, action).decision >= Decision.DENY
