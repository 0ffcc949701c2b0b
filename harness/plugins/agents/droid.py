"""Factory Droid. Tried: 0.225.2."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.claude import allow, block, event_of
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent, SettingsFile, refusal
from harness.record import replace

TOOLS: Mapping[str, ForeignTool] = {
    "Execute": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command"},
        ignores=("summary", "timeout", "riskLevel", "riskLevelReason", "fireAndForget"),
        needs=("command",),
    ),
    "Read": ForeignTool(
        kind=ForeignKind.READ,
        takes={"file_path": "path"},
        ignores=("offset", "limit", "image_quality"),
        needs=("path",),
    ),
    "LS": ForeignTool(kind=ForeignKind.LIST, takes={"directory_path": "path"}, ignores=("ignorePatterns",)),
    "Create": ForeignTool(
        kind=ForeignKind.WRITE, takes={"file_path": "path", "content": "content"}, needs=("path", "content")
    ),
    "Edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={"file_path": "path", "old_str": "old_string", "new_str": "new_string", "change_all": "replace_all"},
        needs=("path", "old_string", "new_string"),
    ),
    "Grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"path": "path", "glob_pattern": "glob"},
        ignores=(
            "pattern", "output_mode", "case_insensitive", "type", "context_before", "context_after", "context",
            "line_numbers", "head_limit", "multiline", "fixed_string",
        ),
    ),
    "Glob": ForeignTool(
        kind=ForeignKind.LIST, takes={"folder": "path", "patterns": "glob"}, ignores=("excludePatterns",), needs=("glob",)
    ),
    "FetchUrl": ForeignTool(kind=ForeignKind.FETCH, takes={"url": "url"}, needs=("url",)),
    **dict.fromkeys(
        ("Task", "TaskOutput", "TaskStop", "TodoWrite", "ToolSearch", "AskUser", "ExitSpecMode"),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    event = event_of(fields)
    patterns = event.arguments.get("patterns")
    if not isinstance(patterns, list):
        return event
    return replace(event, arguments={**event.arguments, "patterns": f"{{{','.join(map(str, patterns))}}}"})


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: Droid has `SERVER___TOOL` for that of an MCP server."""
    return named_as_in_policies(call, "___", (), are_all=False)


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    hook: JsonValue = {"type": "command", "command": command, "timeout": 600}
    run: list[JsonValue] = [{"matcher": "*", "hooks": [hook]}]
    return {"hooks": {"PreToolUse": run, "PostToolUse": run, "SessionEnd": [{"hooks": [hook]}]}}


AGENT = GuardedAgent(
    name="droid",
    title="Factory Droid",
    program="droid",
    tools=TOOLS,
    event_of=_event_of,
    policy_name=_policy_name,
    allow=allow,
    deny=refusal,
    block=block,
    # Without a person, it runs a call that a hook wants it to ask about.
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(user=".factory/settings.json", project=".factory/settings.json"),
    off_values={"hooksDisabled": True},
    switch_files=(AgentFile(path=".factory/settings.json", is_user=True),),  # it passes over the key in a project's
    settings_content=_hook_settings,
    project_variables=("FACTORY_PROJECT_DIR",),
    unseen=(
        "a file that the prompt names with @ is sent without a hook",
        "a call that fails has no outcome: Droid tells of none",
        "web search, pictures and connectors run at the provider",
    ),
)
"""The description of Factory Droid."""
