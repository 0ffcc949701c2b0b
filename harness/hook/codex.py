"""Codex CLI. Tried: 0.169.0."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.hook.claude import allow, event_of
from harness.hook.event import HookEvent
from harness.hook.foreign_call import ForeignKind, ForeignTool
from harness.hook.guarded_agent import GuardedAgent, HookAnswer, SettingsFile, refusal

TOOLS: Mapping[str, ForeignTool] = {
    "Bash": ForeignTool(kind=ForeignKind.SHELL, takes={"command": "command"}, needs=("command",)),
    "apply_patch": ForeignTool(kind=ForeignKind.PATCH, takes={"command": "patch"}, needs=("patch",)),
    "view_image": ForeignTool(kind=ForeignKind.READ, takes={"path": "path"}, ignores=("detail",), needs=("path",)),
    **dict.fromkeys(("update_plan", "tool_search"), ForeignTool(kind=ForeignKind.INWARD)),
}


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    # An allow without new arguments is "unsupported" there; silence says the same.
    return HookAnswer() if arguments is None else allow(arguments)


def _has_no_sandbox(event: HookEvent, environment: Mapping[str, str]) -> bool:  # noqa: ARG001 - as GuardedAgent has it
    """Say whether commands run without Codex's own sandbox: in it `harness exec` could not write what they came to."""
    return event.mode == "bypassPermissions"


def _wanted(command: str) -> Mapping[str, JsonValue]:
    # The person's own shell starts it, which may be none that reads this line as sh does.
    in_sh = "/bin/sh -c '" + command.replace("'", "'\\''") + "'"
    run: list[JsonValue] = [{"matcher": ".*", "hooks": [{"type": "command", "command": in_sh, "timeout": 600}]}]
    return {"hooks": {"PreToolUse": run, "PostToolUse": run, "SessionEnd": run}}


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
    patches_in_shell=True,
    settings=SettingsFile(user=".codex/hooks.json", project=".codex/hooks.json", home_variable="CODEX_HOME"),
    wanted=_wanted,
    unseen=(
        "a hook that Codex does not trust is skipped without a word",
        "what is typed into a shell that runs on (`write_stdin`)",
        "a patch in a here-document has no outcome: Codex tells of none",
        "web search runs at the provider",
    ),
)
"""What is known of Codex CLI."""
