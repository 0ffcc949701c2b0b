"""Claude Code. Tried: 2.1.332."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.claude_files import may_run_commands, own_places
from harness.plugins.agents.event import HookEvent, When, needed, prompt_of, table, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import (
    WHEN,
    AgentFile,
    GuardedAgent,
    HeldStart,
    HookAnswer,
    SettingsFile,
    as_json,
    stopped_prompt,
)

TOOLS: Mapping[str, ForeignTool] = {
    "Bash": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "dangerouslyDisableSandbox": "unconfined"},
        ignores=("description", "timeout", "run_in_background"),
        needs=("command",),
    ),
    "Monitor": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command"},
        ignores=("description", "timeout_ms", "persistent"),
        needs=("command",),
    ),
    "Read": ForeignTool(
        kind=ForeignKind.READ,
        takes={"file_path": "path"},
        ignores=("offset", "limit", "pages", "allow_large"),
        needs=("path",),
    ),
    "Write": ForeignTool(
        kind=ForeignKind.WRITE, takes={"file_path": "path", "content": "content"}, needs=("path", "content")
    ),
    "Edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={
            "file_path": "path",
            "old_string": "old_string",
            "new_string": "new_string",
            "replace_all": "replace_all",
        },
        needs=("path", "old_string", "new_string"),
    ),
    "NotebookEdit": ForeignTool(
        kind=ForeignKind.WRITE,
        takes={"notebook_path": "path", "new_source": "content"},
        ignores=("cell_id", "cell_type", "edit_mode"),
        needs=("path",),
    ),
    "Glob": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path", "pattern": "glob"}),
    "Grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"path": "path", "glob": "glob"},
        ignores=("pattern", "type", "output_mode", "-i", "-n", "-A", "-B", "-C", "head_limit", "multiline", "offset"),
    ),
    "WebFetch": ForeignTool(kind=ForeignKind.FETCH, takes={"url": "url"}, ignores=("prompt", "offset"), needs=("url",)),
    "Skill": ForeignTool(kind=ForeignKind.INWARD, takes={"skill": "skill"}, does_more=may_run_commands),
    **dict.fromkeys(
        (
            "Agent", "Task", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskOutput", "ToolSearch",
            "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "BashOutput", "KillShell", "TaskStop",
            "ListAgents", "ReportFindings", "ScheduleWakeup", "CronList", "CronDelete",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


_CHANGES_FILES = frozenset(("Edit", "NotebookEdit", "Write"))
"""The tools whose changes a user may edit at Claude Code's prompt."""


def event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    """Parse an event of Claude Code, or of an agent with the same event format. Raises EventError."""
    when = WHEN.get(needed(fields, "hook_event_name"), When.BEFORE)
    session = needed(fields, "session_id")
    if when in (When.ENDED, When.SETTINGS):
        return HookEvent(when=when, session=session, cwd=text(fields, "cwd"))
    if when is When.PROMPT:
        prompt, sent_files = prompt_of(fields)
        return HookEvent(when=when, session=session, cwd=needed(fields, "cwd"), prompt=prompt, sent_files=sent_files)
    response = fields.get("tool_response", fields.get("error"))
    tool = needed(fields, "tool_name")
    return HookEvent(
        when=when,
        session=session,
        cwd=needed(fields, "cwd"),
        tool=tool,
        arguments=table(fields, "tool_input"),
        use_id=text(fields, "tool_use_id"),
        mode=text(fields, "permission_mode"),
        subagent=text(fields, "agent_id"),
        transcript=text(fields, "transcript_path"),
        response=response,
        # Of other tools, the response may be a server's own.
        edited=tool in _CHANGES_FILES and isinstance(response, dict) and response.get("userModified") is True,
    )


def _decision(word: str, reason: str = "", **more: JsonValue) -> HookAnswer:
    output: dict[str, JsonValue] = {"hookEventName": "PreToolUse", "permissionDecision": word}
    if reason:
        output["permissionDecisionReason"] = reason
    return as_json({"hookSpecificOutput": {**output, **more}})


def allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    """Return the answer that lets a call run, with its own arguments or with `arguments`."""
    return _decision("allow") if arguments is None else _decision("allow", updatedInput=dict(arguments))


def ask(reason: str, arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    """Return the answer that makes Claude Code ask the user. Its prompt displays the new command and the reason."""
    return _decision("ask", reason) if arguments is None else _decision("ask", reason, updatedInput=dict(arguments))


def _deny(reason: str) -> HookAnswer:
    # It prints this reason alone. Before that of an exit code, it prints "hook error" and our command line.
    return _decision("deny", reason.strip() or "refused by harness")


def block(reason: str) -> HookAnswer:
    """Return the answer that refuses a call, and stops the agent."""
    # `continue: false` alone would let this call run, and stop after it.
    output: dict[str, JsonValue] = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return as_json({"continue": False, "stopReason": reason, "hookSpecificOutput": output})


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    def run(**more: JsonValue) -> list[JsonValue]:
        return [{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 600, **more}]}]

    return {
        "hooks": {
            "PreToolUse": run(onFailure="block"),
            "PostToolUse": run(),
            "PostToolUseFailure": run(),
            "UserPromptSubmit": run(),
            "ConfigChange": run(),
            "SessionEnd": run(),
        }
    }


AGENT = GuardedAgent(
    name="claude",
    title="Claude Code",
    program="claude",
    tools=TOOLS,
    event_of=event_of,
    allow=allow,
    deny=_deny,
    block=block,
    ask=ask,
    asks=lambda event, environment: environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "1",  # noqa: ARG005
    rewrites=lambda event, environment: True,  # noqa: ARG005
    called_by=lambda fields: "cursor" if "cursor_version" in fields else "",
    asks_rewritten=True,
    keeps_folder=True,
    own_places=own_places,
    settings=SettingsFile(
        user=".claude/settings.json", project=".claude/settings.local.json", home_variable="CLAUDE_CONFIG_DIR"
    ),
    off_values={"disableAllHooks": True},
    switch_files=(
        AgentFile(path=".claude/settings.json", is_user=True),
        AgentFile(path=".claude/settings.json"),
        AgentFile(path=".claude/settings.local.json", is_read_above=True),
    ),
    hook_files=(
        AgentFile(path=".claude/settings.json"),
        AgentFile(path=".claude/settings.local.json", is_read_above=True),
        AgentFile(path=".claude/plugins/cache/*/*/*/hooks/hooks.json", is_user=True),
    ),
    held_start=lambda content: HeldStart(words=("--settings", json.dumps({"disableAllHooks": False, **content}))),
    off_words=("--bare", "--safe-mode"),
    settings_content=_hook_settings,
    project_variables=("CLAUDE_PROJECT_DIR",),
    stop_prompt=stopped_prompt,
    sends_files=True,
    sent_folders=ForeignKind.LIST,
    unseen=(
        "commands in a skill or slash command (`!`) run without a hook; `disableSkillShellExecution` ends that",
        "`--bare` and CLAUDE_CODE_SIMPLE=1 run no hooks at all",
        "web search runs at the provider",
    ),
)
"""The description of Claude Code."""
