"""The gate's tool for a tool of the proxy's server: prepares the Action to judge, and sends the judged bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import Action, Effects, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.tool import Arguments, ToolOutput
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.plugins.mcp.server_calls import JUDGED, GateTurn, ServerCall
from harness.plugins.mcp.tool_action import JudgedTool, check_is_as_judged, judged_tool, keep_seen
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.plugins.mcp.tool_results import compact, texts_of
from harness.policy.policy import Policy
from harness.policy.tool_arguments import tool_arguments
from harness.policy.walls_here import WallsHere
from harness.process.json_rpc import RpcMessage, changed_line
from harness.record import Record
from harness.tool_kinds import server_tool

MOST_LOGGED = 30_000
"""Maximum number of characters of a result in the log."""
_MOST_LOOKED_AT = 200_000
"""Maximum number of characters of a result in which secrets are masked. The result is cut to MOST_LOGGED after that."""
UNCONFINED = "none: a server runs as its client started it"
_ANYTHING: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": True}
"""Schema that accepts any arguments, since the server checks them itself."""


class CallRequest(Record):
    """The line to send, with its call and the tool's description at the time of judging."""

    call: ServerCall
    line: bytes
    judged_tool: JudgedTool


class Unwalled:
    """Walls for calls of a server that is not confined."""

    confines = False
    level = UNCONFINED

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:  # noqa: ARG002 - as CallWalls has it
        """Return that no program can be granted."""
        return WallsHere(root="", confines=False, missing="nothing confines a server")

    def in_words(self, effects: Effects) -> str:  # noqa: ARG002 - as CallWalls has it
        """Return that the server is not confined."""
        return UNCONFINED


class ServerTool:
    """One tool of a server, for the gate."""

    def __init__(
        self,
        tool: str,
        catalog: ToolCatalog,
        calls: Mapping[str, ServerCall],
        *,
        workspace: Workspace,
        send: Callable[[ServerCall, bytes], None],
        turn: GateTurn,
        redact: Callable[[str], str],
    ) -> None:
        """Create the tool. `tool` is its name at the server, and `calls` are the calls in progress, by ID.

        `send` sends the line of a call, and raises ToolError if that is no longer possible. The thread releases `turn`
        while it waits for the answer. `redact` masks secrets.
        """
        self.spec = ToolSpec(name=server_tool(catalog.server, tool), description="", parameters=_ANYTHING)
        self.walls = Unwalled()
        self._tool = tool
        self._catalog = catalog
        self._calls = calls
        self._workspace = workspace
        self._send = send
        self._turn = turn
        self._redact = redact

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the line to send and, at first use, the server's complete description of the tool.

        Raises ToolError if the tool is not listed or was changed.
        """
        server_call = self._calls[call.id]
        tool_judged = judged_tool(self._catalog, self._tool)
        line = server_call.message.line
        if call.arguments != server_call.arguments:  # edited at the approval prompt
            line = changed_line(
                server_call.message, "params", {**server_call.message.params, "arguments": dict(arguments)}
            )
        also = {name: value for name, value in server_call.message.params.items() if name not in JUDGED}
        request = CallRequest(call=server_call, line=line, judged_tool=tool_judged)
        texts = tool_arguments(arguments, self._workspace)
        return tool_judged.action(call, arguments, request, also=also, texts=texts)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - nothing confines a server
        """Send the judged line, and wait for the answer. Raises ToolError if it was not sent or got no answer."""
        request = action.request
        if not isinstance(request, CallRequest):
            raise TypeError("another tool prepared this call")
        check_is_as_judged(self._catalog, request.judged_tool)
        call = request.call
        self._send(call, request.line)  # while it holds the turn, so that calls are sent in the order of judging
        with self._turn.stepped_out():
            call.wait()
        if call.answer is not None:
            return output_of(call.answer, self._redact)
        if call.is_cancelled:
            content = "The client cancelled this call; what it had begun may be done in part."
            return ToolOutput(content=content, status=ResultStatus.INTERRUPTED, output_bytes=0)
        raise ToolError(f"{call.lost}; what the call had begun may be done in part.")

    def keep_seen(self, action: Action) -> None:
        """Store that the user saw the judged description of the tool. Raises ToolError."""
        if isinstance(action.request, CallRequest):
            keep_seen(self._catalog, action.request.judged_tool)


def output_of(answer: RpcMessage, redact: Callable[[str], str]) -> ToolOutput:
    """Return an answer for the log: its texts, with secrets masked, then cut to MOST_LOGGED."""
    error, result = answer.fields.get("error"), answer.fields.get("result")
    failed = error is not None or (isinstance(result, dict) and result.get("isError") is True)
    result_text = f"error: {compact(error)}" if error is not None else texts_of(result)
    content = redact(result_text[:_MOST_LOOKED_AT])[:MOST_LOGGED]
    return ToolOutput(
        content=content,
        status=ResultStatus.FAILED if failed else ResultStatus.OK,
        output_bytes=len(answer.line),
        truncated=len(result_text) > len(content) and len(result_text) > MOST_LOGGED,
    )
