"""GitHub Copilot CLI. Tried: 1.0.102."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.files.repository import folders_up
from harness.plugins.agents.event import HookEvent, When, needed, parse, table, text
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import (
    AgentFile,
    GuardedAgent,
    HookAnswer,
    SettingsFile,
    as_json,
    stopped_prompt,
)
from harness.regex import regex
from harness.safe_files import read_small

_OWN_SERVER = "github-mcp-server"
"""Name of the MCP server that it brings along."""
_MOST_BYTES = 1_000_000
"""Maximum size of a file that declares MCP servers."""
_LEAVES_DATABASE = regex(r"(?i)attach|detach|vacuum|pragma|extension|readfile|writefile|edit|tokenizer")
"""Matches SQL that may read or write a file besides the database of the session."""

TOOLS: Mapping[str, ForeignTool] = {
    "bash": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command"},
        ignores=("description", "shellId", "mode", "detach", "initial_wait"),
        needs=("command",),
    ),
    "view": ForeignTool(
        kind=ForeignKind.READ,
        takes={"path": "path"},
        ignores=("view_range", "forceReadLargeFiles"),
        needs=("path",),
    ),
    "create": ForeignTool(
        kind=ForeignKind.WRITE, takes={"path": "path", "file_text": "content"}, needs=("path", "content")
    ),
    "edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={"path": "path", "old_str": "old_string", "new_str": "new_string"},
        needs=("path", "old_string", "new_string"),
    ),
    "glob": ForeignTool(kind=ForeignKind.LIST, takes={"paths": "path", "pattern": "glob"}),
    "grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"paths": "path", "glob": "glob"},
        ignores=("pattern", "output_mode", "type", "-i", "-A", "-B", "-C", "-n", "head_limit", "multiline"),
    ),
    "web_fetch": ForeignTool(
        kind=ForeignKind.FETCH, takes={"url": "url"}, ignores=("max_length", "start_index", "raw"), needs=("url",)
    ),
    "sql": ForeignTool(
        kind=ForeignKind.INWARD,
        takes={"query": "query"},
        does_more=lambda event: _LEAVES_DATABASE.search(str(event.arguments.get("query"))) is not None,
    ),
    **dict.fromkeys(
        (
            "task", "read_bash", "stop_bash", "list_bash", "read_agent", "list_agents", "write_agent", "report_intent",
            "update_todo", "ask_user", "exit_plan_mode", "fetch_copilot_cli_documentation",
            "skill",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    # Its events do not state their kind.
    subagent = text(fields, "agentId")
    # A subagent has a separate session. It is mapped to its parent's, so that a block stops both.
    session = (text(fields, "parentAgentId") if subagent else "") or needed(fields, "sessionId")
    if "prompt" in fields and "toolName" not in fields:
        prompt = text(fields, "prompt")
        return HookEvent(when=When.PROMPT, session=session, cwd=needed(fields, "cwd"), prompt=prompt)
    if "toolName" not in fields:
        if "reason" not in fields:
            needed(fields, "toolName")
        return HookEvent(when=When.ENDED, session=session, cwd=text(fields, "cwd"))
    when = When.AFTER if "toolResult" in fields else When.FAILED if "error" in fields else When.BEFORE
    return HookEvent(
        when=when,
        session=session,
        cwd=needed(fields, "cwd"),
        tool=needed(fields, "toolName"),
        arguments=_arguments(fields),
        subagent=subagent,
        response=fields.get("toolResult", fields.get("error")),
    )


def _arguments(fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the arguments of a call. Older versions send them as JSON text. A list of one path becomes that path."""
    raw_arguments = fields.get("toolArgs")
    arguments = dict(parse(raw_arguments.encode()) if isinstance(raw_arguments, str) else table(fields, "toolArgs"))
    paths = arguments.get("paths")
    if isinstance(paths, list) and len(paths) == 1:
        arguments["paths"] = paths[0]
    return arguments


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:
    """Return a call with the policy's name of its tool: Copilot has `SERVER-TOOL` for that of an MCP server."""
    home = environment.get("COPILOT_HOME") or os.path.join(environment.get("HOME", ""), ".copilot")
    files = [os.path.join(home, "mcp-config.json")]
    files += [os.path.join(folder, ".mcp.json") for folder in folders_up(os.path.realpath(event.cwd))]
    servers = {_OWN_SERVER, *(name for path in files for name in _servers_in(path))}
    return named_as_in_policies(call, "-", servers, are_all=False)


def _servers_in(path: str) -> tuple[str, ...]:
    """Return the names of the servers that a file declares. Empty if it is missing or not understood."""
    try:
        declared = json.loads(read_small(path, _MOST_BYTES) or b"{}")["mcpServers"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return tuple(declared) if isinstance(declared, dict) else ()


def _decision(word: str, reason: str = "", **more: JsonValue) -> HookAnswer:
    output: dict[str, JsonValue] = {"permissionDecision": word}
    if reason:
        output["permissionDecisionReason"] = reason
    return as_json({**output, **more})


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    return _decision("allow") if arguments is None else _decision("allow", modifiedArgs=dict(arguments))


def _deny(reason: str) -> HookAnswer:
    # It also obeys an exit code, but then ignores the reason.
    return _decision("deny", reason.strip() or "refused by harness")


def _fail(reason: str) -> HookAnswer:
    # A refusal of a call and of a prompt in one, since the event may be either.
    reason = reason.strip() or "refused by harness"
    refused = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return as_json({**refused, "decision": "block", "reason": reason})


def _ask(reason: str, arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    if arguments is not None:
        raise ValueError("GitHub Copilot CLI runs what it asked about as it was")
    return _decision("ask", reason)


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    run: list[JsonValue] = [{"type": "command", "bash": command, "timeoutSec": 600}]
    return {
        "version": 1,
        "hooks": {
            "preToolUse": run,
            "postToolUse": run,
            "postToolUseFailure": run,
            "userPromptSubmitted": run,
            "sessionEnd": run,
        },
    }


_SHARED_FILES = (
    AgentFile(path=".copilot/settings.json", is_user=True),
    AgentFile(path=".claude/settings.json", is_read_above=True),
    AgentFile(path=".claude/settings.local.json", is_read_above=True),
    AgentFile(path=".github/copilot/settings.json", is_read_above=True),
    AgentFile(path=".github/copilot/settings.local.json", is_read_above=True),
)
"""Settings that are not only about hooks, the strongest last."""

AGENT = GuardedAgent(
    name="copilot",
    title="GitHub Copilot CLI",
    program="copilot",
    tools=TOOLS,
    event_of=_event_of,
    allow=_allow,
    deny=_deny,
    block=_deny,
    fail=_fail,
    ask=_ask,
    asks=lambda event, environment: True,  # noqa: ARG005 - without a user, it refuses
    rewrites=lambda event, environment: True,  # noqa: ARG005
    policy_name=_policy_name,
    settings=SettingsFile(
        user=".copilot/hooks/harness.json", project=".github/hooks/harness.json", home_variable="COPILOT_HOME"
    ),
    off_values={"disableAllHooks": True},
    switch_files=_SHARED_FILES,
    hook_files=(
        *_SHARED_FILES,
        AgentFile(path=".copilot/hooks/*.json", is_user=True),
        AgentFile(path=".github/hooks/*.json", is_read_above=True),
    ),
    settings_content=_hook_settings,
    project_variables=("COPILOT_PROJECT_DIR",),
    stop_prompt=stopped_prompt,
    sends_files=True,
    unseen=(
        "a command that it asks the person about is run by itself, without walls and masks of ours",
        "hooks of a project count only where its folder is trusted",
        "hooks of calls at once wait for each other, and one that waits too long lets its call run",
        "web search runs at the provider",
    ),
)
"""The description of GitHub Copilot CLI."""
