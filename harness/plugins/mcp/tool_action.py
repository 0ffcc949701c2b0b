"""A call of a server's tool as the Action that is judged: what is sent, and at first use all that the server says of it."""

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
"""Maximum number of characters of the arguments in a question. A longer call cannot be approved at a terminal, since
it is not shown whole.
"""


class JudgedTool(Record):
    """A tool as it was when a call of it was judged."""

    server: str
    description: ToolDescription
    is_first: bool
    """Whether no one has seen the tool yet: then the approver of this call has seen it now."""
    way_to_pin: str
    """Advice on the command by which a person looks at it."""

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
        """Return the action of a call; `also` is sent in addition to the arguments, `texts` are the texts among the
        arguments.
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
    """Return the current state of a tool. Raises ToolError for one that may not be used: not listed, or changed."""
    description, is_seen = catalog.usable(tool)
    way = catalog.way_to_pin(tool)
    return JudgedTool(server=catalog.server, description=description, is_first=not is_seen, way_to_pin=way)


def check_is_as_judged(catalog: ToolCatalog, judged_tool: JudgedTool) -> None:
    """Raise ToolError if a tool differs from the judged one: a question may have been open for long.

    A first yes, by any approver, counts for this session.
    """
    now, is_seen = catalog.usable(judged_tool.description.name)
    if now.sha256 != judged_tool.description.sha256:
        raise ToolError("The server changed this tool while the call waited for its approval. The call was not sent.")
    if judged_tool.is_first and not is_seen:
        catalog.note_yes(now)


def keep_seen(catalog: ToolCatalog, judged_tool: JudgedTool) -> None:
    """Keep that a person saw a tool as it was judged, and still is. Raises ToolError."""
    check_is_as_judged(catalog, judged_tool)
    if judged_tool.is_first:
        catalog.pin(judged_tool.description)
