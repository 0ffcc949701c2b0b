"""Kiro, the editor from 1.0 and its CLI from 3.0. From its documents, not tried.

They do not say what the arguments of each tool are called. The names here are those that other programs saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import GuardedAgent, SettingsFile, allow_unchanged, in_sh, refusal
from harness.record import replace
from harness.tool_kinds import server_tool

_SHELL = ForeignTool(
    kind=ForeignKind.SHELL,
    takes={"command": "command", "cwd": "cwd"},
    ignores=("summary", "timeout"),
    needs=("command",),
)
_READ = ForeignTool(
    kind=ForeignKind.READ, takes={"path": "path"}, ignores=("start_line", "end_line", "summary"), needs=("path",)
)
_WRITE = ForeignTool(
    kind=ForeignKind.WRITE,
    takes={"path": "path", "file_text": "content", "text": "content", "content": "content"},
    ignores=("summary",),
    needs=("path", "content"),
)
_REPLACE = ForeignTool(
    kind=ForeignKind.EDIT,
    takes={
        "path": "path",
        "old_str": "old_string",
        "oldStr": "old_string",
        "new_str": "new_string",
        "newStr": "new_string",
        "replace_all": "replace_all",
    },
    ignores=("summary",),
    needs=("path", "old_string", "new_string"),
)
TOOLS: Mapping[str, ForeignTool] = {
    **dict.fromkeys(("shell", "execute_bash"), _SHELL),
    **dict.fromkeys(("read_file", "read", "fs_read"), _READ),
    **dict.fromkeys(("write", "fs_write", "fsWrite"), _WRITE),
    "str_replace": _REPLACE,
}
_WHEN: Mapping[str, When] = {
    "pretooluse": When.BEFORE,
    "posttooluse": When.AFTER,
    "userpromptsubmit": When.PROMPT,
}


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    # Its documents write `preToolUse` in events, and `PreToolUse` in settings.
    when = _WHEN.get(needed(fields, "hook_event_name").casefold(), When.BEFORE)
    session, cwd = needed(fields, "session_id"), needed(fields, "cwd")
    if when is When.PROMPT:
        return HookEvent(when=when, session=session, cwd=cwd, prompt=text(fields, "prompt"))
    tool, arguments = _call_of(needed(fields, "tool_name"), table(fields, "tool_input"))
    return HookEvent(
        when=when,
        session=session,
        cwd=cwd,
        tool=tool,
        arguments=arguments,
        use_id=text(fields, "tool_use_id"),
        response=fields.get("tool_response"),
    )


def _call_of(tool: str, arguments: Mapping[str, JsonValue]) -> tuple[str, Mapping[str, JsonValue]]:
    """Return the tool and the arguments of a call in the forms that `TOOLS` has. Other forms stay as they are."""
    known_tool, operations = TOOLS.get(tool), arguments.get("operations")
    if known_tool is _WRITE and arguments.get("command") in ("create", "str_replace"):
        rest = {name: value for name, value in arguments.items() if name != "command"}
        return (tool if arguments["command"] == "create" else "str_replace"), rest
    if known_tool is _READ and len(arguments) == 1 and isinstance(operations, list) and len(operations) == 1:
        (operation,) = operations
        if isinstance(operation, dict) and operation.get("mode") == "Line":
            return tool, {name: value for name, value in operation.items() if name != "mode"}
    return tool, arguments


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: Kiro has `@SERVER/TOOL` for that of an MCP server."""
    server, mark, tool = call.tool.removeprefix("@").partition("/")
    return replace(call, tool=server_tool(server, tool)) if mark and call.tool.startswith("@") else call


def _hook_file(command: str) -> Mapping[str, JsonValue]:
    hooks: list[JsonValue] = [
        {
            "name": f"harness {trigger}",
            "trigger": trigger,
            "action": {"type": "command", "command": in_sh(command)},
            "timeout": 600,
        }
        for trigger in ("PreToolUse", "PostToolUse", "UserPromptSubmit")
    ]
    return {"text": json.dumps({"version": "v1", "hooks": hooks}, indent=2) + "\n"}


AGENT = GuardedAgent(
    name="kiro",
    title="Kiro",
    program="kiro-cli",
    tools=TOOLS,
    event_of=_event_of,
    policy_name=_policy_name,
    allow=partial(allow_unchanged, "Kiro"),
    deny=refusal,
    block=refusal,
    settings=SettingsFile(
        user=".kiro/hooks/harness.json", project=".kiro/hooks/harness.json", home_variable="KIRO_HOME", is_plugin=True
    ),
    settings_content=_hook_file,
    documents="https://kiro.dev/docs/hooks",
    unseen=(
        "its CLI before 3.0 reads no such file: its hooks are in the settings of each of its agents",
        "a call that fails has no outcome, and a session no end",
        "a file that the prompt names",
        "`operations` of a read, but for a single one of mode `Line`: such a call asks as a whole",
        "a hook that fails lets the call run, but by exit code 2: ours always has that",
    ),
)
"""The description of Kiro."""
