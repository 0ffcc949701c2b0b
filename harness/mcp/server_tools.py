"""The gate's tool for what a server offers: a call becomes the Action that is judged, and its judged bytes go to the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.actions import SUMMARY_CHARACTERS, Action, Effects, JsonValue, ToolUse
from harness.errors import ToolError
from harness.gate.tool import Arguments, ToolOutput
from harness.mcp.json_rpc import RpcMessage, changed_line
from harness.mcp.server_calls import JUDGED, GateTurn, ServerCall
from harness.mcp.tool_catalog import ToolCatalog
from harness.mcp.tool_description import ToolDescription
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.policy.grant_offers import WallsHere
from harness.policy.policy import Policy
from harness.record import Record
from harness.text.visible import visible, visible_line
from harness.tool_kinds import server_tool

MOST_SHOWN = 200_000
"""Characters of the arguments that a question shows; what it does not show whole nobody can say yes to at a terminal."""
MOST_LOGGED = 30_000
"""Characters of a result that the log keeps."""
_MOST_LOOKED_AT = 200_000
"""Of which secrets are masked before it is cut to that."""
UNCONFINED = "none: a server runs as its client started it"
_ANYTHING: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": True}
"""The server checks the arguments itself."""


class CallRequest(Record):
    """What is sent, and what it was judged by."""

    call: ServerCall
    line: bytes
    description: ToolDescription
    is_first: bool
    """Whether nobody has seen the tool yet: then whoever says yes has seen it now."""


class Unwalled:
    """What holds calls of a server: nothing."""

    confines = False
    level = UNCONFINED

    def here(self, policy: Policy, tool: str) -> WallsHere:  # noqa: ARG002 - as CallWalls has it
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
        send: Callable[[ServerCall, bytes], None],
        turn: GateTurn,
        redact: Callable[[str], str],
    ) -> None:
        """Take the tool's name at its server, what is known of all, and the calls on their way, by id.

        `send` sends the line of a call, and raises ToolError where that is not to be any more. `turn` is stepped out of
        while the answer is waited for; `redact` masks secrets.
        """
        self.spec = ToolSpec(name=server_tool(catalog.server, tool), description="", parameters=_ANYTHING)
        self.walls = Unwalled()
        self._tool = tool
        self._catalog = catalog
        self._calls = calls
        self._send = send
        self._turn = turn
        self._redact = redact

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action: what is sent, and at first use all that the server says of the tool.

        Raises ToolError for a tool that is not to be used: not listed, or changed.
        """
        own = self._calls[call.id]
        description, is_seen = self._catalog.usable(self._tool)
        server, shown = self._catalog.server, json.dumps(dict(arguments), indent=2, ensure_ascii=False)
        also = {name: value for name, value in own.message.params.items() if name not in JUDGED}
        parts = [f"tool {self._tool} of the MCP server {server}, with", visible(shown[:MOST_SHOWN])]
        if also:
            told = json.dumps(also, indent=2, ensure_ascii=False)
            parts += ["sent with it:", visible(told[:MOST_SHOWN])]
            shown = max(shown, told, key=len)
        if not is_seen:
            parts += ["", "It is new here. This is all that its server says of it:", description.text.rstrip("\n")]
        unseen = f"nobody has seen yet what the server says of {self._tool}; {self._catalog.way_to_pin(self._tool)}"
        line = own.message.line
        if call.arguments != own.arguments:  # changed at the question
            line = changed_line(own.message, "params", {**own.message.params, "arguments": dict(arguments)})
        return Action(
            call=call,
            tool=call.name,
            arguments=arguments,
            facets=(ToolUse(tool=call.name, unseen="" if is_seen else unseen),),
            summary=visible_line(f"{server} {self._tool} {call.arguments}", SUMMARY_CHARACTERS - 50),
            preview="\n".join(parts),
            shown_whole=len(shown) <= MOST_SHOWN,
            request=CallRequest(call=own, line=line, description=description, is_first=not is_seen),
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - nothing confines a server
        """Send what was judged, and wait for the answer. Raises ToolError, where nothing was sent, or no answer came."""
        request = action.request
        if not isinstance(request, CallRequest):
            raise TypeError("another tool prepared this call")
        now, _ = self._catalog.usable(self._tool)  # a question may have stood for long
        if now.sha256 != request.description.sha256:
            raise ToolError("The server changed this tool while somebody was asked about it; nothing was sent.")
        if request.is_first:
            self._catalog.pin(now)
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


def output_of(answer: RpcMessage, redact: Callable[[str], str]) -> ToolOutput:
    """Return what the log keeps of an answer: its texts, bounded, secrets masked before they are cut."""
    error, result = answer.fields.get("error"), answer.fields.get("result")
    failed = error is not None or (isinstance(result, dict) and result.get("isError") is True)
    said = f"error: {_compact(error)}" if error is not None else _texts(result)
    content = redact(said[:_MOST_LOOKED_AT])[:MOST_LOGGED]
    return ToolOutput(
        content=content,
        status=ResultStatus.FAILED if failed else ResultStatus.OK,
        output_bytes=len(answer.line),
        truncated=len(said) > len(content) and len(said) > MOST_LOGGED,
    )


def _texts(result: JsonValue) -> str:
    """Return the texts of a result, and of what is no text a word that it is there."""
    blocks = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(blocks, list):
        return _compact(result)
    said = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        text = block.get("text") if isinstance(block, dict) else None
        said.append(text if kind == "text" and isinstance(text, str) else _without_data(block))
    if "structuredContent" in result:
        said.append(f"structured: {_compact(result['structuredContent'])}")
    return "\n".join(said)


def _without_data(block: JsonValue) -> str:
    data = block.get("data") if isinstance(block, dict) else None
    if isinstance(block, dict) and isinstance(data, str):
        block = {**block, "data": f"({len(data)} characters)"}
    return _compact(block)


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
