"""The gate's tool for a tool of a configured server.

Its calls are judged like those of the proxy, and sent by the SDK. Their results are bounded in length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from harness.actions import Action, Effects, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.tool import Arguments, ToolOutput
from harness.limits import Limits, strictest
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.plugins.mcp.configured_server import ConfiguredServer
from harness.plugins.mcp.pending_call import CallOutcome
from harness.plugins.mcp.server_walls import ServerWalls
from harness.plugins.mcp.tool_action import JudgedTool, check_is_as_judged, judged_tool, keep_seen
from harness.plugins.mcp.tool_description import ToolDescription
from harness.plugins.mcp.tool_results import texts_of
from harness.policy.tool_arguments import tool_arguments
from harness.process.capture import Capture, OutputFolder, result_characters
from harness.record import Record
from harness.text.visible import visible
from harness.tool_kinds import server_tool

MOST_DESCRIPTION = 1_024
"""Maximum length of a description in characters. Some models accept no more."""
MOST_NAME = 64
"""Maximum length of a tool's name in characters. Some models accept no more."""
MOST_SCHEMA = 30_000
"""Maximum length of the schema of a tool's arguments in characters, so that it does not fill the context window."""
LIST_SECONDS = 20.0
"""Seconds to wait for the new list after a change, before a call is judged."""
LEAST_SECONDS = 0.1


class CallSender(Protocol):
    """Sends calls to servers."""

    def call(self, server: str, tool: str, arguments: Mapping[str, JsonValue], seconds: float) -> CallOutcome:
        """Send a call, and wait at most `seconds` for its end. Raises ToolError if it was not sent."""
        ...


class ConnectedRequest(Record):
    """The contents of one call to send."""

    judged_tool: JudgedTool
    arguments: Mapping[str, JsonValue]
    seconds: float


class ConnectedTool:
    """One tool of a configured server."""

    def __init__(
        self,
        server: ConfiguredServer,
        description: ToolDescription,
        calls: CallSender,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        outputs: OutputFolder | None = None,
    ) -> None:
        """Create the tool.

        `calls` sends its calls. The complete text of a result that is cut is stored in `outputs`.
        """
        self._server = server
        self._description = description
        self._calls = calls
        self._workspace = workspace
        self._limits = limits
        self._outputs = outputs
        self.walls = ServerWalls(server.held_by, confines=server.is_walled)
        self.spec = ToolSpec(
            name=server_tool(server.name, description.name),
            description=_for_models(description),
            parameters=_schema_of(description),
            is_checked=False,
        )

    def under(self, limits: Limits) -> ConnectedTool:
        """Return the same tool with `limits` in addition to its own. The strictest apply."""
        return ConnectedTool(
            self._server,
            self._description,
            self._calls,
            self._workspace,
            limits=strictest((self._limits, limits)),
            outputs=self._outputs,
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the call to send and, at first use, the server's complete description of the tool.

        Raises ToolError if the server has ended, or if the tool was removed or changed.
        """
        server = self._server
        server.is_listed.wait(LIST_SECONDS)
        if server.reason:
            raise ToolError(f"The MCP server {server.name} is gone: {server.reason}.")
        judgement = judged_tool(server.catalog, self._description.name)
        request = ConnectedRequest(
            judged_tool=judgement, arguments=dict(arguments), seconds=self._seconds(server.declaration.seconds)
        )
        return judgement.action(
            call,
            arguments,
            request,
            texts=tool_arguments(arguments, self._workspace),
            bounds=server.declaration.bounds if server.is_walled else None,  # bounds count only if walls enforce them
            seconds=request.seconds,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Send the judged call, and wait for the answer. Raises ToolError if it was not sent or got no answer."""
        return self.run_for(action, effects, None)

    def run_for(self, action: Action, effects: Effects, seconds: float | None) -> ToolOutput:  # noqa: ARG002 - its walls stand
        """Do as `run`, but wait at most `seconds`, the time left for the run."""
        request = action.request
        if not isinstance(request, ConnectedRequest):
            raise TypeError(f"the action was not prepared by {self.spec.name}")
        self._server.is_listed.wait(LIST_SECONDS)  # the approval prompt may have been open for long
        check_is_as_judged(self._server.catalog, request.judged_tool)
        limit = request.seconds if seconds is None else max(min(request.seconds, seconds), LEAST_SECONDS)
        outcome = self._calls.call(self._server.name, self._description.name, request.arguments, limit)
        notes = "".join(f"\n[{visible(note)}]" for note in outcome.questions)
        if outcome.timed_out:
            content = (
                f"[timed out after {limit:g} s; the call was cancelled at the server, and may be done in part]{notes}"
            )
            return ToolOutput(content=content, status=ResultStatus.TIMEOUT)
        if outcome.result is None:
            raise ToolError(
                f"The call failed at the MCP server {self._server.name}: {outcome.error}; what it had begun may be done in "
                f"part.{notes}"
            )
        return self._output(outcome.result, notes)

    def keep_seen(self, action: Action) -> None:
        """Store that the user saw the judged description of the tool. Raises ToolError."""
        if isinstance(action.request, ConnectedRequest):
            keep_seen(self._server.catalog, action.request.judged_tool)

    def _output(self, result: Mapping[str, JsonValue], notes: str) -> ToolOutput:
        """Return the output for the model: the texts of the result, bounded like the output of a command."""
        spill = self._outputs.spill() if self._outputs is not None else None
        capture = Capture(result_characters(self._limits), spill)
        try:
            capture.add(texts_of(dict(result)).encode("utf-8", "replace"))
            text = capture.readable()
        finally:
            if spill is not None:
                spill.close()
        failed = result.get("isError") is True
        hint = f"\n[confined: {self._server.held_by}; the failure may come from that]"
        return ToolOutput(
            content=f"{text.text or '(nothing)'}{notes}{hint if failed and self._server.is_walled else ''}",
            status=ResultStatus.FAILED if failed else ResultStatus.OK,
            output_bytes=capture.total,
            truncated=text.truncated,
        )

    def _seconds(self, declared: float) -> float:
        maximum = self._limits.command_seconds
        return declared if maximum is None else min(declared, maximum)


def offer_problem(server: str, description: ToolDescription) -> str:
    """Return the reason why a tool cannot be offered to a model, or an empty string."""
    name = server_tool(server, description.name)
    if len(name) > MOST_NAME:
        return f"{description.name}: {name} is longer than the {MOST_NAME} characters that models take"
    if "." in name or "/" in name:
        return f"{description.name}: models take no dot and no slash in a name"
    schema = description.definition.get("inputSchema")
    if not isinstance(schema, dict):
        return f"{description.name}: it says nothing of its arguments"
    text = json.dumps(schema, ensure_ascii=False)
    if len(text) > MOST_SCHEMA:
        return f"{description.name}: what it says of its arguments has more than {MOST_SCHEMA} characters"
    if not is_plain(schema):
        return f"{description.name}: what it says of its arguments holds what is no text"
    return ""


def is_plain(value: JsonValue) -> bool:
    """Return whether the texts of a value contain no NUL and no lone surrogate, so that every program can read them."""
    text = json.dumps(value, ensure_ascii=False)
    return "\\u0000" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _for_models(description: ToolDescription) -> str:
    """Return the description for a model, cut to MOST_DESCRIPTION, with invisible characters made visible."""
    text_field = description.definition.get("description")
    text = visible(text_field) if isinstance(text_field, str) else ""
    return text if len(text) <= MOST_DESCRIPTION else f"{text[: MOST_DESCRIPTION - 4]} ..."


def _schema_of(description: ToolDescription) -> Mapping[str, JsonValue]:
    """Return the server's schema, completed to an object with properties, as models require."""
    declared_schema = description.definition.get("inputSchema")
    schema = declared_schema if isinstance(declared_schema, dict) else {}
    properties = schema.get("properties")
    return {**schema, "type": "object", "properties": properties if isinstance(properties, dict) else {}}
