"""Windsurf, by its hooks of Cascade. From its documents, not tried."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import GuardedAgent, SettingsFile, allow_unchanged, in_sh, refusal
from harness.tool_kinds import server_tool

_ACTIONS = ("run_command", "read_code", "write_code", "mcp_tool_use")
"""Actions with hooks before and after them: `pre_run_command`, `post_run_command` and so on."""

TOOLS: Mapping[str, ForeignTool] = {
    "run_command": ForeignTool(
        kind=ForeignKind.SHELL, takes={"command_line": "command", "cwd": "cwd"}, needs=("command", "cwd")
    ),
    # The path may be a folder, all of which is read then.
    "read_code": ForeignTool(kind=ForeignKind.SEARCH, takes={"file_path": "path"}, needs=("path",)),
    "write_code": ForeignTool(kind=ForeignKind.EDIT, takes={"file_path": "path", "edits": "edits"}, needs=("path",)),
}


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when, _, tool = needed(fields, "agent_action_name").partition("_")
    session, tool_info = needed(fields, "trajectory_id"), table(fields, "tool_info")
    if tool == "user_prompt":
        return HookEvent(when=When.PROMPT, session=session, prompt=text(tool_info, "user_prompt"))
    arguments = tool_info
    if tool == "mcp_tool_use":
        tool = server_tool(needed(tool_info, "mcp_server_name"), needed(tool_info, "mcp_tool_name"))
        arguments = table(tool_info, "mcp_tool_arguments")
    return HookEvent(
        when=When.AFTER if when == "post" else When.BEFORE,
        session=session,
        # An event has no folder but that of a command, which the model chose. A hook starts in the top folder of the workspace.
        cwd="",
        tool=tool,
        arguments=arguments,
        response=tool_info.get("mcp_result"),
    )


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    hook: Mapping[str, JsonValue] = {"command": in_sh(command), "show_output": True}
    events = (*(f"{when}_{action}" for when in ("pre", "post") for action in _ACTIONS), "pre_user_prompt")
    return {"hooks": {event: [dict(hook)] for event in events}}


AGENT = GuardedAgent(
    name="windsurf",
    title="Windsurf",
    program="windsurf",
    tools=TOOLS,
    event_of=_event_of,
    allow=partial(allow_unchanged, "Windsurf"),
    deny=refusal,
    block=refusal,
    waits=False,  # its documents name no time that a hook has
    settings=SettingsFile(user=".codeium/windsurf/hooks.json", project=".windsurf/hooks.json"),
    settings_content=_hook_settings,
    sends_files=True,
    documents="https://docs.windsurf.com/windsurf/cascade/hooks",
    unseen=(
        "searches, web pages and the browser have no hook",
        "calls have no names, and one that fails has no outcome",
        "a command that failed counts as done",
        "a new file counts as edited",
    ),
)
"""The description of Windsurf."""
