"""The gate's tool for what a server offers: a call becomes the Action that is judged, and its judged bytes go to the server."""

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
from harness.policy.grant_offers import WallsHere
from harness.policy.policy import Policy
from harness.policy.tool_arguments import tool_arguments
from harness.process.json_rpc import RpcMessage, changed_line
from harness.record import Record
from harness.tool_kinds import server_tool

MOST_LOGGED = 30_000
"""Characters of a result that the log keeps."""
_MOST_LOOKED_AT = 200_000
"""Maximum number of characters in which secrets are masked before the result is cut to that."""
UNCONFINED = "none: a server runs as its client started it"
_ANYTHING: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": True}
"""The server checks the arguments itself."""


class CallRequest(Record):
    """The line to send, with the call and the tool that it was judged by."""

    call: ServerCall
    line: bytes
    judged_tool: JudgedTool


class Unwalled:
    """The walls of calls of a server: none."""

    confines = False
    level = UNCONFINED

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:  # noqa: ARG002 - as CallWalls has it
        """Return that no program can be granted."""
        return WallsHere(root="", confines=False, missing="nothing confines a server")

    def in_words(self, effects: Effects) -> str:  # noqa: ARG002 - as CallWalls has it
        """Return that nothing holds it."""
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
        """Create the tool from its name at its server, the catalog of all tools, and the calls in progress, by id.

        `send` sends the line of a call, and raises ToolError if sending is over. The thread steps out of `turn`
        during the wait for the answer; `redact` masks secrets.
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
        """Return the action: what is sent, and at first use all that the server says of the tool.

        Raises ToolError for a tool that is not to be used: not listed, or changed.
        """
        server_call = self._calls[call.id]
        tool_judged = judged_tool(self._catalog, self._tool)
        line = server_call.message.line
        if call.arguments != server_call.arguments:  # changed at the question
            line = changed_line(
                server_call.message, "params", {**server_call.message.params, "arguments": dict(arguments)}
            )
        also = {name: value for name, value in server_call.message.params.items() if name not in JUDGED}
        request = CallRequest(call=server_call, line=line, judged_tool=tool_judged)
        texts = tool_arguments(arguments, self._workspace)
        return tool_judged.action(call, arguments, request, also=also, texts=texts)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - nothing confines a server
        """Send what was judged, and wait for the answer. Raises ToolError, where nothing was sent, or no answer came."""
        request = action.request
        if not isinstance(request, CallRequest):
            raise TypeError("another tool prepared this call")
        check_is_as_judged(self._catalog, request.judged_tool)
        call = request.call
        self._send(call, request.line)  # in the turn: calls are sent in the order in which they were judged
        with self._turn.stepped_out():
            call.wait()
        if call.answer is not None:
            return output_of(call.answer, self._redact)
        if call.is_cancelled:
            content = "The client cancelled this call; what it had begun may be done in part."
            return ToolOutput(content=content, status=ResultStatus.INTERRUPTED, output_bytes=0)
        raise ToolError(f"{call.lost}; what the call had begun may be done in part.")

    def keep_seen(self, action: Action) -> None:
        """Keep that a person saw the tool as it was judged. Raises ToolError."""
        if isinstance(action.request, CallRequest):
            keep_seen(self._catalog, action.request.judged_tool)


def output_of(answer: RpcMessage, redact: Callable[[str], str]) -> ToolOutput:
    """Return the log's version of an answer: its texts, bounded, secrets masked before they are cut."""
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
