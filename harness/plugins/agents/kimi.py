"""Kimi Code. Tried: 2.1.0."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.actions import JsonValue
from harness.plugins.agents.claude import event_of
from harness.plugins.agents.event import HookEvent, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import GuardedAgent, SettingsFile, allow_unchanged, in_sh, refusal
from harness.record import replace

TOOLS: Mapping[str, ForeignTool] = {
    "Bash": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "cwd": "cwd"},
        ignores=("description", "timeout", "run_in_background", "disable_timeout"),
        needs=("command",),
    ),
    "Read": ForeignTool(
        kind=ForeignKind.READ,
        takes={"path": "path"},
        ignores=("line_offset", "column_offset", "n_lines", "max_chars"),
        needs=("path",),
    ),
    "Write": ForeignTool(
        kind=ForeignKind.WRITE,
        takes={"path": "path", "content": "content"},
        ignores=("mode",),
        needs=("path", "content"),
    ),
    "Edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={"path": "path", "old_string": "old_string", "new_string": "new_string", "replace_all": "replace_all"},
        needs=("path", "old_string", "new_string"),
    ),
    "Glob": ForeignTool(
        kind=ForeignKind.LIST,
        takes={"path": "path", "pattern": "glob"},
        ignores=("head_limit", "offset", "include_ignored", "include_dirs"),
    ),
    "Grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"path": "path", "glob": "glob"},
        ignores=(
            "pattern", "type", "output_mode", "-i", "-n", "-A", "-B", "-C", "head_limit", "offset", "multiline",
            "include_ignored",
        ),
    ),
    "FetchURL": ForeignTool(kind=ForeignKind.FETCH, takes={"url": "url"}, needs=("url",)),
    **dict.fromkeys(
        (
            "Agent", "AgentSwarm", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill", "TodoList", "TaskList",
            "TaskOutput", "TaskStop", "WaitFor", "CreateGoal", "GetGoal", "UpdateGoal", "SetGoalBudget", "CronList",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    parts = fields.get("prompt")
    if isinstance(parts, list):
        texts = [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]
        fields = {**fields, "prompt": "\n".join(texts)}
    response = fields.get("tool_output", fields.get("error"))
    return replace(event_of(fields), use_id=text(fields, "tool_call_id"), response=response)


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionEnd")
    return {"hooks": [{"event": event, "command": in_sh(command), "timeout": 600} for event in events]}


AGENT = GuardedAgent(
    name="kimi",
    title="Kimi Code",
    program="kimi",
    tools=TOOLS,
    event_of=_event_of,
    allow=partial(allow_unchanged, "Kimi Code"),
    deny=refusal,
    block=refusal,
    tells_refusals=True,
    settings=SettingsFile(user=".kimi-code/config.toml", project="", home_variable="KIMI_CODE_HOME", is_toml=True),
    settings_content=_hook_settings,
    unseen=(
        "a fault in any hook of its settings, such as an unknown event, turns all hooks off",
        "a call of a subagent looks like one of its own",
        "it does not wait for the hooks after a call, and print mode has no end: outcomes may be missing",
    ),
)
"""The description of Kimi Code."""
