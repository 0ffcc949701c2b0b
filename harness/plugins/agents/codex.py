"""Codex CLI. Tried: 0.171.0."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.plugins.agents.claude import allow, event_of
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import (
    AgentFile,
    GuardedAgent,
    HeldStart,
    HookAnswer,
    SettingsFile,
    in_sh,
    refusal,
    stopped_prompt,
)

TOOLS: Mapping[str, ForeignTool] = {
    "Bash": ForeignTool(kind=ForeignKind.SHELL, takes={"command": "command"}, needs=("command",)),
    "apply_patch": ForeignTool(kind=ForeignKind.PATCH, takes={"command": "patch"}, needs=("patch",)),
    "view_image": ForeignTool(kind=ForeignKind.READ, takes={"path": "path"}, ignores=("detail",), needs=("path",)),
    **dict.fromkeys(
        (
            "update_plan",
            "tool_search",
            "collaborationspawn_agent",
            "collaborationwait_agent",
            "spawn_agent",
            "wait_agent",
            "request_user_input",
            "get_goal",
            "create_goal",
            "update_goal",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}

WAITS = "harness judges this call; it may wait for an answer at `harness approve`"
"""The words that Codex shows while our hook works. Codex trusts exactly the entry that has them."""
MOST_OF_TRANSCRIPT = 4 * 1024 * 1024
"""Number of bytes at the end of a transcript that are searched."""


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    # Codex does not support an allow without new arguments; an empty answer has the same effect.
    return HookAnswer() if arguments is None else allow(arguments)


def _has_no_sandbox(event: HookEvent, environment: Mapping[str, str]) -> bool:  # noqa: ARG001 - the signature in GuardedAgent
    """Return whether commands run without Codex's own sandbox. Inside it, `harness exec` could not record outcomes.

    The last `turn_context` in the transcript states it. Codex writes that before the first call of a turn.
    """
    try:
        with open(event.transcript, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_OF_TRANSCRIPT))
            lines = file.read().splitlines()
    except OSError:
        return False
    for line in reversed(lines):
        if b'"turn_context"' in line:
            try:
                record = json.loads(line)
                if record["type"] == "turn_context":
                    return bool(record["payload"]["sandbox_policy"] == {"type": "danger-full-access"})
            except (ValueError, KeyError, TypeError, RecursionError):
                return False
    return False


def _own_places(event: HookEvent, environment: Mapping[str, str]) -> Sequence[str]:  # noqa: ARG001 - likewise
    """Return the folder of skills beside the folder `sessions` of the transcript. Empty for another path."""
    folder, mark, _ = event.transcript.rpartition("/sessions/")
    return (os.path.join(folder, "skills"),) if mark else ()


def _hook_settings(command: str) -> Mapping[str, JsonValue]:
    def run(seconds: int, **more: JsonValue) -> list[JsonValue]:
        hook: dict[str, JsonValue] = {"type": "command", "command": in_sh(command), "timeout": seconds, **more}
        return [{"matcher": ".*", "hooks": [hook]}]

    # At every start, Codex warns about a SessionEnd hook with a timeout above three seconds.
    return {
        "hooks": {
            "PreToolUse": run(600, statusMessage=WAITS),
            "PostToolUse": run(600),
            "UserPromptSubmit": run(600),
            "SessionEnd": run(3),
        }
    }


AGENT = GuardedAgent(
    name="codex",
    title="Codex CLI",
    program="codex",
    tools=TOOLS,
    event_of=event_of,
    allow=_allow,
    deny=refusal,
    block=refusal,
    rewrites=_has_no_sandbox,
    own_places=_own_places,
    patches_in_shell=True,
    stop_prompt=stopped_prompt,
    settings=SettingsFile(user=".codex/hooks.json", project=".codex/hooks.json", home_variable="CODEX_HOME"),
    off_values={"features.hooks": False, "features.codex_hooks": False},
    switch_files=(
        AgentFile(path=".codex/config.toml", is_user=True),
        AgentFile(path=".codex/config.toml", is_read_above=True),
    ),
    hook_files=(
        AgentFile(path=".codex/config.toml", is_user=True),
        AgentFile(path=".codex/config.toml", is_read_above=True),
    ),
    held_start=lambda content: HeldStart(words=("-c", "features.hooks=true")),  # noqa: ARG005
    off_words=("--disable",),
    settings_content=_hook_settings,
    unseen=(
        "a hook that Codex does not trust is skipped without a word",
        "input to a shell that is still running (`write_stdin`)",
        "a patch in a here-document has no outcome: Codex tells of none",
        "web search runs at the provider",
    ),
)
"""The description of Codex CLI."""
