"""Qwen Code. Tried: 0.24.4."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.plugins.agents.claude import TOOLS as OF_CLAUDE
from harness.plugins.agents.claude import event_of
from harness.plugins.agents.event import HookEvent, needed, table
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import (
    AgentFile,
    GuardedAgent,
    HeldStart,
    HookAnswer,
    SettingsFile,
    allow_unchanged,
    as_json,
    stopped_prompt,
)
from harness.record import replace

_THROUGH = "tool_call"
"""A tool that calls another tool, named in its arguments."""

TOOLS: Mapping[str, ForeignTool] = {
    "run_shell_command": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "directory": "cwd"},
        ignores=("description", "is_background", "timeout"),
        needs=("command",),
    ),
    "read_file": ForeignTool(
        kind=ForeignKind.READ,
        takes={"file_path": "path"},
        ignores=("offset", "limit", "pages"),
        needs=("path",),
    ),
    "list_directory": ForeignTool(
        kind=ForeignKind.READ,
        takes={"path": "path"},
        ignores=("ignore", "file_filtering_options"),
        needs=("path",),
    ),
    "write_file": ForeignTool(
        kind=ForeignKind.WRITE,
        takes={"file_path": "path", "content": "content"},
        ignores=("record_as_artifact",),
        needs=("path", "content"),
    ),
    "edit": OF_CLAUDE["Edit"],
    "notebook_edit": OF_CLAUDE["NotebookEdit"],
    "glob": OF_CLAUDE["Glob"],
    "grep_search": ForeignTool(
        kind=ForeignKind.SEARCH, takes={"path": "path", "glob": "glob"}, ignores=("pattern", "limit")
    ),
    "web_fetch": ForeignTool(
        kind=ForeignKind.FETCH, takes={"url": "url"}, ignores=("prompt", "format"), needs=("url",)
    ),
    **dict.fromkeys(
        (
            "agent", "todo_write", "tool_search", "ask_user_question", "enter_plan_mode", "exit_plan_mode", "list_agents",
            "get_goal", "update_goal", "task_create", "task_update", "task_list", "task_stop", "structured_output", "skill",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    event = event_of(fields)
    if event.tool != _THROUGH:
        return event
    return replace(event, tool=needed(event.arguments, "name"), arguments=table(event.arguments, "arguments"))


def _own_places(event: HookEvent, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the large results of the project, by the digest of its path, and the person's skills."""
    folder, mark, _ = event.transcript.rpartition("/projects/")
    if not mark:
        return ()
    project = environment.get("QWEN_PROJECT_DIR") or event.cwd
    return os.path.join(folder, "tmp", digest_of(project.encode())), os.path.join(folder, "skills")


def _deny(reason: str) -> HookAnswer:
    return _decision("deny", reason.strip() or "refused by harness", decision="deny")


def _ask(reason: str, arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    if arguments is not None:
        raise ValueError("Qwen Code takes no other arguments from a hook")
    return _decision("ask", reason)


def _decision(word: str, reason: str, **more: JsonValue) -> HookAnswer:
    # The `allow` of any other hook voids a decision, and an exit code. It does not void `continue: false`, which Qwen reads
    # only then: so the call does not run, and the turn goes on.
    output: JsonValue = {
        "hookEventName": "PreToolUse",
        "permissionDecision": word,
        "permissionDecisionReason": reason,
    }
    return as_json({**more, "reason": reason, "continue": False, "stopReason": reason, "hookSpecificOutput": output})


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    hook: JsonValue = {"type": "command", "name": "harness", "command": command, "timeout": 600}
    run: list[JsonValue] = [{"matcher": ".*", "hooks": [hook]}]
    end_hooks: list[JsonValue] = [{"hooks": [hook]}]
    return {
        "hooks": {
            "PreToolUse": run,
            "PostToolUse": run,
            "PostToolUseFailure": run,
            "UserPromptSubmit": end_hooks,
            "SessionEnd": end_hooks,
        }
    }


AGENT = GuardedAgent(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    tools=TOOLS,
    event_of=_event_of,
    allow=partial(allow_unchanged, "Qwen Code"),
    deny=_deny,
    block=_deny,
    fail=_deny,
    ask=_ask,
    asks=lambda event, environment: True,  # noqa: ARG005 - without a user, it refuses
    own_places=_own_places,
    settings=SettingsFile(
        user=".qwen/settings.json", project=".qwen/settings.json", home_variable="QWEN_HOME", has_comments=True
    ),
    off_values={"disableAllHooks": True},
    switch_files=(AgentFile(path=".qwen/settings.json", is_user=True), AgentFile(path=".qwen/settings.json")),
    hook_files=(AgentFile(path=".qwen/extensions/*/hooks/hooks.json", is_user=True),),
    held_start=lambda content: HeldStart(  # noqa: ARG005
        settings={"disableAllHooks": False},
        settings_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
        settings_file="/etc/qwen-code/settings.json",
    ),
    off_words=("--bare", "--safe-mode"),
    settings_content=_hook_settings,
    project_variables=("QWEN_PROJECT_DIR",),
    stop_prompt=stopped_prompt,
    sends_files=True,
    unseen=(
        "it runs its commands itself: no walls of ours are around them, and nothing masks their output",
        "without --yolo and without a person its own rules refuse a call before our hook can ask",
    ),
)
"""The description of Qwen Code."""
