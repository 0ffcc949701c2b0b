"""Gemini CLI. Tried: 0.61.0."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When, needed, prompt_of, table, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent, HookAnswer, SettingsFile, as_json

_WAITS = "wait_for_previous"
"""An argument of every tool: whether the call starts after the other calls of its turn."""

TOOLS: Mapping[str, ForeignTool] = {
    "run_shell_command": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "dir_path": "cwd"},
        ignores=("description", "is_background", "delay_ms", _WAITS),
        needs=("command",),
    ),
    "read_file": ForeignTool(
        kind=ForeignKind.READ,
        takes={"file_path": "path"},
        ignores=("start_line", "end_line", _WAITS),
        needs=("path",),
    ),
    "list_directory": ForeignTool(
        kind=ForeignKind.READ,
        takes={"dir_path": "path"},
        ignores=("ignore", "file_filtering_options", _WAITS),
        needs=("path",),
    ),
    "write_file": ForeignTool(
        kind=ForeignKind.WRITE,
        takes={"file_path": "path", "content": "content"},
        ignores=(_WAITS,),
        needs=("path", "content"),
    ),
    "replace": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={
            "file_path": "path",
            "old_string": "old_string",
            "new_string": "new_string",
            "allow_multiple": "replace_all",
        },
        ignores=("instruction", _WAITS),
        needs=("path", "old_string", "new_string"),
    ),
    "glob": ForeignTool(
        kind=ForeignKind.LIST,
        takes={"dir_path": "path", "pattern": "glob"},
        ignores=("case_sensitive", "respect_git_ignore", "respect_gemini_ignore", _WAITS),
    ),
    "grep_search": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"dir_path": "path", "include_pattern": "glob"},
        ignores=(
            "pattern", "exclude_pattern", "names_only", "case_sensitive", "fixed_strings", "context",
            "after", "before", "no_ignore", "max_matches_per_file", "total_max_matches", _WAITS,
        ),
    ),
    **dict.fromkeys(
        (
            "invoke_agent", "write_todos", "update_topic", "ask_user", "enter_plan_mode", "exit_plan_mode", "complete_task",
            "list_background_processes", "read_background_output", "get_internal_docs", "activate_skill",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
    "web_fetch": ForeignTool(
        kind=ForeignKind.FETCH, takes={"prompt": "text", "url": "url"}, ignores=(_WAITS,)
    ),
}  # fmt: skip

_WHEN: Mapping[str, When] = {
    "BeforeTool": When.BEFORE,
    "AfterTool": When.AFTER,
    "BeforeAgent": When.PROMPT,
    "SessionEnd": When.ENDED,
}


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when = _WHEN.get(needed(fields, "hook_event_name"), When.BEFORE)
    session = needed(fields, "session_id")
    if when is When.ENDED:
        return HookEvent(when=when, session=session, cwd=text(fields, "cwd"))
    if when is When.PROMPT:
        prompt, sent_files = prompt_of(fields)
        return HookEvent(when=when, session=session, cwd=needed(fields, "cwd"), prompt=prompt, sent_files=sent_files)
    response = fields.get("tool_response")
    if when is When.AFTER and isinstance(response, dict) and response.get("error"):
        when = When.FAILED
    return HookEvent(
        when=when,
        session=session,
        cwd=needed(fields, "cwd"),
        tool=_tool_of(fields),
        arguments=table(fields, "tool_input"),
        transcript=text(fields, "transcript_path"),
        response=response,
    )


def _tool_of(fields: Mapping[str, JsonValue]) -> str:
    """Return the name of the tool. An MCP tool gets the name that policies use, since `mcp_srv_tool` is ambiguous."""
    if "mcp_context" not in fields:
        return needed(fields, "tool_name")
    server = table(fields, "mcp_context")
    return f"mcp__{needed(server, 'server_name')}__{needed(server, 'tool_name')}"


def _own_places(event: HookEvent, environment: Mapping[str, str]) -> Sequence[str]:  # noqa: ARG001 - as for all agents
    """Return the outputs of the session, beside the folder `chats` of its transcript, and the person's skills."""
    project, mark, _ = event.transcript.rpartition("/chats/")
    folder, temporary = os.path.split(os.path.dirname(project))
    if not mark or temporary != "tmp" or "/" in event.session:
        return ()
    return os.path.join(project, "tool-outputs", f"session-{event.session}"), os.path.join(folder, "skills")


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    # Gemini reads only refusals and rewritten calls. An empty answer allows the call.
    if arguments is None:
        return HookAnswer()
    output: JsonValue = {"hookEventName": "BeforeTool", "tool_input": dict(arguments)}
    return as_json({"decision": "allow", "hookSpecificOutput": output})


def _deny(reason: str) -> HookAnswer:
    # Before the reason of an exit code, it prints twice that the hook failed.
    return as_json({"decision": "deny", "reason": reason.strip() or "refused by harness"})


def _block(reason: str) -> HookAnswer:
    return as_json({"decision": "deny", "reason": reason, "continue": False, "stopReason": reason})


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    hook: JsonValue = {"type": "command", "name": "harness", "command": command, "timeout": 600_000}
    run: list[JsonValue] = [{"matcher": ".*", "hooks": [hook]}]
    return {
        "hooks": {
            "BeforeTool": run,
            "AfterTool": run,
            "BeforeAgent": [{"hooks": [hook]}],
            "SessionEnd": [{"hooks": [hook]}],
        }
    }


AGENT = GuardedAgent(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    tools=TOOLS,
    event_of=_event_of,
    allow=_allow,
    deny=_deny,
    block=_block,
    # It supports `ask`, but waits forever if no user is there.
    rewrites=lambda event, environment: True,  # noqa: ARG005
    own_places=_own_places,
    settings=SettingsFile(user=".gemini/settings.json", project=".gemini/settings.json", has_comments=True),
    off_values={"hooksConfig.enabled": False, "hooksConfig.disabled": ["harness"]},
    switch_files=(AgentFile(path=".gemini/settings.json", is_user=True), AgentFile(path=".gemini/settings.json")),
    hook_files=(AgentFile(path=".gemini/extensions/*/hooks/hooks.json", is_user=True),),
    settings_content=_hook_settings,
    project_variables=("GEMINI_PROJECT_DIR",),
    stop_prompt=_deny,
    sends_files=True,
    unseen=(
        "a call of a subagent looks like one of its own",
        "web search runs at the provider",
    ),
)
"""The description of Gemini CLI."""
