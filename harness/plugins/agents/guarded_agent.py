"""The description of one agent in its own file: its tools, its events, the forms of its answers, its settings, the
actions that it lets pass.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from harness.actions import JsonValue
from harness.plugins.agents.event import HookEvent, When
from harness.plugins.agents.foreign_call import NAMES, ForeignCall, ForeignKind, ForeignTool, unknown
from harness.record import Record


class HookAnswer(Record):
    """The output of a hook, in the form that its agent obeys."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


REFUSED = 2
"""The exit code that every agent takes for a refusal; Codex, Gemini and Qwen run the call where stderr is empty."""


def refusal(text: str) -> HookAnswer:
    """Return a refusal that all agents obey: nothing on stdout, the reason on stderr, exit code 2."""
    return HookAnswer(stderr=f"{text.strip() or 'refused by harness'}\n", code=REFUSED)


def as_json(value: JsonValue) -> HookAnswer:
    """Return an answer in JSON: one object, in one write, without a byte in front of it."""
    return HookAnswer(stdout=json.dumps(value))


class SettingsFile(Record):
    """The settings files in which an agent looks for hooks, and their form."""

    user: str
    """Relative to the home folder."""
    project: str
    """Relative to the workspace; empty where a project has none."""
    home_variable: str = ""
    """The variable that names another place for the user's folder (`CODEX_HOME`); the first part of `user` is that folder."""
    is_plugin: bool = False
    """Whether it is a program text of its own (`wanted` under the key `text`), and not JSON that others write to as well."""


class GuardedAgent(Record):
    """One agent that a hook of ours guards. A new agent is one file that makes one of these, and a row in `AGENTS`."""

    name: str
    """Name that the person types: `claude`."""
    title: str
    """Name that its maker uses: `Claude Code`."""
    program: str
    """The command that starts it."""
    tools: Mapping[str, ForeignTool]
    """The agent's tools by name."""
    event_of: Callable[[Mapping[str, JsonValue]], HookEvent]
    """Reads an event. Raises EventError."""
    allow: Callable[[Mapping[str, JsonValue] | None], HookAnswer]
    """Lets a call run: as it is, or with these arguments instead of its own."""
    deny: Callable[[str], HookAnswer]
    block: Callable[[str], HookAnswer]
    """Refuses, and stops the agent as far as it lets itself be stopped."""
    settings: SettingsFile
    settings_content: Callable[[str], Mapping[str, JsonValue]]
    """Takes the command line of our hook, and returns the required content of the settings file."""
    ask: Callable[[str, Mapping[str, JsonValue] | None], HookAnswer] | None = None
    """Lets the agent ask the person, for this reason, and run the call as it is, or with these arguments; None where it cannot
    ask."""
    asks: Callable[[HookEvent, Mapping[str, str]], bool] = lambda event, environment: False  # noqa: ARG005
    """Returns whether the agent has a person to ask, by the event and the hook's environment."""
    rewrites: Callable[[HookEvent, Mapping[str, str]], bool] = lambda event, environment: False  # noqa: ARG005
    """Returns whether it accepts another command instead of the one that it wants to run."""
    asks_rewritten: bool = False
    """Whether it takes one also where it asks."""
    keeps_folder: bool = False
    """Whether the next command begins in the folder that one went to (`cd`)."""
    project_variables: Sequence[str] = ()
    """Variables of the hook's environment that name the agent's workspace, the first one first."""
    unseen: Sequence[str] = ()
    """Actions that the agent carries out without asking its hooks, a sentence each."""

    patches_in_shell: bool = False
    """Whether it takes a command that is only `apply_patch` with a here-document for a patch, and carries it out itself."""

    def call_of(self, event: HookEvent) -> ForeignCall:
        """Return the call of an event in our words."""
        tool = self.tools.get(event.tool)
        call = unknown(event.tool, event.arguments) if tool is None else tool.read(event.tool, event.arguments)
        return _patch_in(call) if self.patches_in_shell and call.kind is ForeignKind.SHELL else call


def _patch_in(call: ForeignCall) -> ForeignCall:
    """Return a command that the agent takes for a patch as that, and any other as it is."""
    from harness.plugins.agents.patches import here_document

    here_patch = here_document(str(call.arguments["command"]))
    if here_patch is None:
        return call
    patch, folder = here_patch
    cwd = os.path.join(str(call.arguments.get("cwd", "")), folder)
    return ForeignCall(
        kind=ForeignKind.PATCH,
        tool=NAMES[ForeignKind.PATCH],
        arguments={"patch": patch, **({"cwd": cwd} if cwd else {})},
    )


AGENTS: Mapping[str, str] = {name: name for name in ("claude", "codex", "gemini", "qwen", "copilot", "opencode")}
"""The agents that can be guarded, and the module of each in this room, which holds it as `AGENT`."""


def agent_named(name: str) -> GuardedAgent:
    """Return the agent of that name, its module loaded. Raises KeyError."""
    agent = import_module(f"harness.plugins.agents.{AGENTS[name]}").AGENT
    if not isinstance(agent, GuardedAgent):
        raise TypeError(f"{name}: expected a GuardedAgent, got {type(agent).__name__}")
    return agent


WHEN: Mapping[str, When] = {
    "PreToolUse": When.BEFORE,
    "PostToolUse": When.AFTER,
    "PostToolUseFailure": When.FAILED,
    "SessionEnd": When.ENDED,
}
"""The events of Claude Code, whose names others have taken over."""
