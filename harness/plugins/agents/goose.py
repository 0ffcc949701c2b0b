"""Goose, its CLI and its desktop program. From its documents, not tried."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import WHEN, AgentFile, GuardedAgent, SettingsFile, allow_unchanged, refusal

TOOLS: Mapping[str, ForeignTool] = {
    "shell": ForeignTool(
        kind=ForeignKind.SHELL, takes={"command": "command"}, ignores=("timeout_secs",), needs=("command",)
    ),
    "write": ForeignTool(
        kind=ForeignKind.WRITE, takes={"path": "path", "content": "content"}, needs=("path", "content")
    ),
    "edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={"path": "path", "before": "old_string", "after": "new_string"},
        needs=("path", "old_string", "new_string"),
    ),
    "tree": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path"}, ignores=("depth",)),
    "read_image": ForeignTool(
        kind=ForeignKind.READ,
        takes={"source": "path"},
        ignores=("crop",),
        needs=("path",),
        does_more=lambda event: ":" in str(event.arguments.get("source")),  # an address
    ),
}


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when = WHEN.get(needed(fields, "event"), When.BEFORE)
    session = needed(fields, "session_id")
    if when is When.ENDED:
        return HookEvent(when=when, session=session)
    if when is When.PROMPT:
        # It has no folder. A hook starts in that of Goose.
        return HookEvent(when=when, session=session, prompt=text(fields, "message"))
    return HookEvent(
        when=when,
        session=session,
        cwd=needed(fields, "working_dir"),
        # Its documents have this prefix; in its code, the tools of this extension have none.
        tool=needed(fields, "tool_name").removeprefix("developer__"),
        arguments=table(fields, "tool_input"),
        use_id=text(fields, "tool_call_id"),
        response=fields.get("tool_output"),
    )


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: Goose has `EXTENSION__TOOL` for that of an MCP server."""
    return named_as_in_policies(call, "__", (), are_all=False)


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    def run(**more: JsonValue) -> list[JsonValue]:
        return [{"hooks": [{"type": "command", "command": command, "timeout": 600, **more}]}]

    return {
        "hooks": {
            "PreToolUse": run(on_failure="block"),
            "PostToolUse": run(),
            "PostToolUseFailure": run(),
            "UserPromptSubmit": run(),
            "SessionEnd": run(),
        }
    }


AGENT = GuardedAgent(
    name="goose",
    title="Goose",
    program="goose",
    tools=TOOLS,
    event_of=_event_of,
    policy_name=_policy_name,
    allow=partial(allow_unchanged, "Goose"),
    deny=refusal,
    block=refusal,
    settings=SettingsFile(
        user=".agents/plugins/harness/hooks/hooks.json", project=".agents/plugins/harness/hooks/hooks.json"
    ),
    off_values={"disabledPlugins": ["harness"]},
    switch_files=(
        AgentFile(path=".config/goose/settings.json", is_user=True),
        AgentFile(path=".config/goose/settings.json"),
        AgentFile(path=".config/goose/settings.local.json"),
    ),
    hook_files=(
        AgentFile(path=".agents/plugins/*/hooks/hooks.json", is_user=True),
        AgentFile(path=".agents/plugins/*/hooks/hooks.json"),
    ),
    settings_content=_hook_settings,
    documents="https://block.github.io/goose/docs/guides/context-engineering/hooks",
    unseen=(
        "a prompt is logged; no hook can stop it",
        "a project's plugin named `harness` takes the place of yours",
        "`plugins` in its `config.yaml` can switch ours off",
        "its documents do not say whether calls of a subagent have hooks",
    ),
)
"""The description of Goose."""
