"""The Action to judge for a call of a server's tool.

It shows the arguments and, at first use, the server's complete description of the tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.actions import SUMMARY_CHARACTERS, Action, JsonValue, ToolArgument, ToolBounds, ToolUse
from harness.errors import ToolError
from harness.gate.tool import Arguments
from harness.messages import ToolCall
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.plugins.mcp.tool_description import ToolDescription
from harness.record import Record
from harness.text.visible import visible, visible_line

MOST_SHOWN = 200_000
"""Maximum number of characters of the arguments at an approval prompt.

A longer call is not shown completely, and cannot be approved at a terminal.
"""


class JudgedTool(Record):
    """State of a tool at the time when a call of it was judged."""

    server: str
    description: ToolDescription
    is_first: bool
    """Whether the tool's description was not seen before. The prompt for this call then shows it."""
    way_to_pin: str
    """Advice on the command with which the user can review the tool."""

    def action(
        self,
        call: ToolCall,
        arguments: Arguments,
        request: object,
        *,
        also: Mapping[str, JsonValue] | None = None,
        texts: tuple[ToolArgument, ...] = (),
        bounds: ToolBounds | None = None,
        seconds: float | None = None,
    ) -> Action:
        """Return the action of a call.

        `also` is sent in addition to the arguments. `texts` are the strings among the arguments.
        """
        tool = self.description.name
        arguments_text = json.dumps(dict(arguments), indent=2, ensure_ascii=False)
        parts = [f"tool {tool} of the MCP server {self.server}, with", visible(arguments_text[:MOST_SHOWN])]
        if also:
            also_text = json.dumps(dict(also), indent=2, ensure_ascii=False)
            parts += ["sent with it:", visible(also_text[:MOST_SHOWN])]
            arguments_text = max(arguments_text, also_text, key=len)
        unseen = hint = ""
        if self.is_first:
            text = self.description.text.rstrip("\n")
            parts += [
                "",
                "It is new here, and your yes keeps this as seen. This is all that its server says of it:",
                text,
            ]
            unseen, hint = f"nobody has seen yet what the server says of {tool}", f"A{self.way_to_pin[1:]}."
        use = ToolUse(
            tool=call.name,
            unseen=unseen,
            hint=hint,
            arguments=texts,
            says_reads=self.description.says("readOnlyHint"),
            says_destroys=self.description.says("destructiveHint"),
            bounds=bounds,
        )
        return Action(
            call=call,
            tool=call.name,
            arguments=arguments,
            facets=(use,),
            summary=visible_line(f"{self.server} {tool} {call.arguments}", SUMMARY_CHARACTERS - 50),
            preview="\n".join(parts),
            shown_whole=len(arguments_text) <= MOST_SHOWN,
            request=request,
            seconds=seconds,
        )


def judged_tool(catalog: ToolCatalog, tool: str) -> JudgedTool:
    """Return the current state of a tool. Raises ToolError if it is not listed or was changed."""
    description, is_seen = catalog.usable(tool)
    way = catalog.way_to_pin(tool)
    return JudgedTool(server=catalog.server, description=description, is_first=not is_seen, way_to_pin=way)


def check_is_as_judged(catalog: ToolCatalog, judged_tool: JudgedTool) -> None:
    """Raise ToolError if a tool was changed since it was judged, for example during a long approval prompt.

    After the first approval, by any approver, the tool counts as seen in this session.
    """
    now, is_seen = catalog.usable(judged_tool.description.name)
    if now.sha256 != judged_tool.description.sha256:
        raise ToolError("The server changed this tool while the call waited for its approval. The call was not sent.")
    if judged_tool.is_first and not is_seen:
        catalog.note_yes(now)


def keep_seen(catalog: ToolCatalog, judged_tool: JudgedTool) -> None:
    """Store that the user saw the judged description of a tool.

    Raises ToolError, also if the tool was changed since.
    """
    check_is_as_judged(catalog, judged_tool)
    if judged_tool.is_first:
        catalog.pin(judged_tool.description)
