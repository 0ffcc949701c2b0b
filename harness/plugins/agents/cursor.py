"""Cursor, the editor and its CLI. From its documents, not tried."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, SettingsFile, as_json, in_sh

_PATH: Mapping[str, str] = {"path": "path", "file_path": "path"}
"""Cursor's names for a file: the one that its model uses, and the one of its documents."""

TOOLS: Mapping[str, ForeignTool] = {
    "Shell": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "working_directory": "cwd", "required_permissions": "unconfined"},
        ignores=("description", "timeout", "block_until_ms", "notify_on_output"),
        needs=("command",),
    ),
    "Read": ForeignTool(kind=ForeignKind.READ, takes=_PATH, ignores=("offset", "limit"), needs=("path",)),
    "Write": ForeignTool(
        kind=ForeignKind.WRITE,
        takes={**_PATH, "contents": "content", "content": "content"},
        needs=("path", "content"),
    ),
    "StrReplace": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={**_PATH, "old_string": "old_string", "new_string": "new_string", "replace_all": "replace_all"},
        needs=("path", "old_string", "new_string"),
    ),
    "Glob": ForeignTool(kind=ForeignKind.LIST, takes={"target_directory": "path", "glob_pattern": "glob"}),
    "Grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"path": "path", "glob": "glob"},
        ignores=("pattern", "type", "output_mode", "-i", "-A", "-B", "-C", "head_limit", "multiline", "offset"),
    ),
    "WebFetch": ForeignTool(kind=ForeignKind.FETCH, takes={"url": "url"}, needs=("url",)),
    **dict.fromkeys(
        ("Task", "TodoWrite", "AskQuestion", "SwitchMode", "CreatePlan", "Await"),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}

_WHEN: Mapping[str, When] = {
    "preToolUse": When.BEFORE,
    "postToolUse": When.AFTER,
    "postToolUseFailure": When.FAILED,
    "beforeSubmitPrompt": When.PROMPT,
    "sessionEnd": When.ENDED,
}


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when = _WHEN.get(needed(fields, "hook_event_name"), When.BEFORE)
    session = text(fields, "conversation_id") or needed(fields, "session_id")
    if when is When.ENDED:
        return HookEvent(when=when, session=session, cwd=_folder(fields))
    if when is When.PROMPT:
        attached = fields.get("attachments")
        files = [
            str(file.get("file_path", file.get("filePath", "")))
            for file in (attached if isinstance(attached, list) else [])
            if isinstance(file, dict) and file.get("type") == "file"
        ]
        prompt = text(fields, "prompt")
        return HookEvent(when=when, session=session, cwd=_folder(fields), prompt=prompt, sent_files=files)
    return HookEvent(
        when=when,
        session=session,
        cwd=_folder(fields) or needed(fields, "cwd"),
        tool=needed(fields, "tool_name"),
        arguments=table(fields, "tool_input"),
        use_id=text(fields, "tool_use_id"),
        subagent=text(fields, "parent_tool_call_id"),
        response=fields.get("tool_output", fields.get("error_message")),
    )


def _folder(fields: Mapping[str, JsonValue]) -> str:
    """Return the folder of a call: its own, or else the first of the workspace. Empty if there is none."""
    roots = fields.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    return text(fields, "cwd") or (first if isinstance(first, str) else "")


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    return as_json({"permission": "allow", **({} if arguments is None else {"updated_input": dict(arguments)})})


def _deny(reason: str) -> HookAnswer:
    # Its documents do not say that the model reads the reason of a refusal by exit code.
    reason = reason.strip() or "refused by harness"
    return as_json({"permission": "deny", "user_message": reason, "agent_message": reason})


def _stop_prompt(reason: str) -> HookAnswer:
    return as_json({"continue": False, "user_message": reason.strip() or "refused by harness"})


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    hook: Mapping[str, JsonValue] = {"command": in_sh(command), "timeout": 600}
    # The CLI passes over the whole file for one name of an event that it does not know.
    return {
        "version": 1,
        "hooks": {
            "preToolUse": [{**hook, "failClosed": True}],
            "postToolUse": [dict(hook)],
            "postToolUseFailure": [dict(hook)],
            "beforeSubmitPrompt": [{**hook, "failClosed": True}],
            "sessionEnd": [dict(hook)],
        },
    }


AGENT = GuardedAgent(
    name="cursor",
    title="Cursor",
    program="cursor-agent",
    tools=TOOLS,
    event_of=_event_of,
    allow=_allow,
    deny=_deny,
    block=_deny,
    # Before a tool, it accepts an `ask` and does not ask.
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(user=".cursor/hooks.json", project=".cursor/hooks.json"),
    settings_content=_hook_settings,
    tells_refusals=True,
    stop_prompt=_stop_prompt,
    sends_files=True,
    project_variables=("CURSOR_PROJECT_DIR",),
    documents="https://cursor.com/docs/hooks",
    unseen=(
        "the completions of Tab",
        "its CLI passes over all hooks of the file if one entry names an event that it does not know",
        "an MCP tool has no server's name: policies name it `MCP:TOOL`",
        "a cloud agent has the hooks of the project alone, and runs none in its first, read-only turns",
        "hooks of a project count only where its folder is trusted",
    ),
)
"""The description of Cursor."""
