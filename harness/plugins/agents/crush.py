"""Crush. From its documents, not tried."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent, HookAnswer, SettingsFile, as_json, refusal
from harness.record import replace

_FILE: Mapping[str, str] = {"file_path": "path"}

TOOLS: Mapping[str, ForeignTool] = {
    "bash": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "working_dir": "cwd"},
        ignores=("description", "run_in_background", "auto_background_after"),
        needs=("command",),
    ),
    "view": ForeignTool(kind=ForeignKind.READ, takes=_FILE, ignores=("offset", "limit"), needs=("path",)),
    "ls": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path"}, ignores=("ignore", "depth")),
    "glob": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path", "pattern": "glob"}),
    "grep": ForeignTool(
        kind=ForeignKind.SEARCH, takes={"path": "path", "include": "glob"}, ignores=("pattern", "literal_text")
    ),
    "write": ForeignTool(kind=ForeignKind.WRITE, takes={**_FILE, "content": "content"}, needs=("path", "content")),
    "edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={**_FILE, "old_string": "old_string", "new_string": "new_string", "replace_all": "replace_all"},
        needs=("path", "old_string", "new_string"),
    ),
    "multiedit": ForeignTool(kind=ForeignKind.EDIT, takes={**_FILE, "edits": "edits"}, needs=("path",)),
    "fetch": ForeignTool(
        kind=ForeignKind.FETCH, takes={"url": "url"}, ignores=("format", "timeout"), needs=("url",)
    ),
    **dict.fromkeys(
        (
            "todos", "job_output", "job_kill", "crush_info", "crush_logs", "question", "lsp_diagnostics",
            "lsp_references", "lsp_definition", "lsp_symbols", "lsp_call_hierarchy",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    if needed(fields, "event") != "PreToolUse":
        raise EventError("event is not PreToolUse")
    return HookEvent(
        when=When.BEFORE,
        session=needed(fields, "session_id"),
        cwd=needed(fields, "cwd"),
        tool=needed(fields, "tool_name"),
        arguments=table(fields, "tool_input"),
    )


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: Crush has `mcp_SERVER_TOOL` for that of an MCP server."""
    if not call.tool.startswith("mcp_"):
        return call
    return named_as_in_policies(replace(call, tool=call.tool.removeprefix("mcp_")), "_", (), are_all=False)


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    return as_json({"decision": "allow", **({} if arguments is None else {"updated_input": dict(arguments)})})


def _block(reason: str) -> HookAnswer:
    return as_json({"decision": "deny", "halt": True, "reason": reason})


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    # It refuses to start with an event that it does not know, and older versions know this one alone.
    return {"hooks": {"PreToolUse": [{"name": "harness", "command": command, "timeout": 600}]}}


AGENT = GuardedAgent(
    name="crush",
    title="Crush",
    program="crush",
    tools=TOOLS,
    event_of=_event_of,
    policy_name=_policy_name,
    allow=_allow,
    deny=refusal,
    block=_block,
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(user=".config/crush/crush.json", project="crush.json", home_variable="XDG_CONFIG_HOME"),
    hook_files=(
        AgentFile(path="crush.json", is_read_above=True),
        AgentFile(path=".crush.json", is_read_above=True),
    ),
    settings_content=_hook_settings,
    documents="https://github.com/charmbracelet/crush/tree/main/docs/hooks",
    unseen=(
        "calls of its subagents have no hook: a call of `agent` or `agentic_fetch` asks by default",
        "commands outside our walls run in a shell of its own, not in bash",
        "outcomes of calls that it runs itself, and the end of a session",
        "`CRUSH_GLOBAL_CONFIG` moves its settings",
        "a project's `crushrc` runs as Bash when it starts, and a project's hook may change a call after ours",
        "a file that the prompt names with @",
    ),
)
"""The description of Crush."""
