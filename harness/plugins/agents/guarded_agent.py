"""`GuardedAgent`: the description of one agent, with its tools, events, answers, settings, and actions without a hook.

Each agent has its own module with such a description.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.plugins.agents.event import HookEvent, When
from harness.plugins.agents.foreign_call import NAMES, ForeignCall, ForeignKind, ForeignTool, unknown
from harness.record import Record


class HookAnswer(Record):
    """The output of a hook in the agent's form: stdout, stderr and exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


REFUSED = 2
"""Exit code that means a refusal to every agent. Codex, Gemini and Qwen run the call nevertheless if stderr is empty."""


def refusal(text: str) -> HookAnswer:
    """Return a refusal that all agents obey: empty stdout, the reason on stderr, exit code 2."""
    return HookAnswer(stderr=f"{text.strip() or 'refused by harness'}\n", code=REFUSED)


def allow_unchanged(title: str, arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    """Return the permission of an agent that runs a call as it sent it. Raises ValueError for other `arguments`."""
    if arguments is not None:
        raise ValueError(f"{title} takes no other arguments from a hook")
    return HookAnswer()


def as_json(value: JsonValue) -> HookAnswer:
    """Return an answer whose stdout is one JSON value, without any other byte."""
    return HookAnswer(stdout=json.dumps(value))


def in_sh(command: str) -> str:
    """Return a command line that runs `command` in sh, for an agent whose own shell may not be compatible with sh."""
    return "/bin/sh -c '" + command.replace("'", "'\\''") + "'"


def stopped_prompt(reason: str) -> HookAnswer:
    """Return the answer that stops a prompt in Claude Code, and in agents with the same form."""
    return as_json({"decision": "block", "reason": reason.strip() or "refused by harness"})


class SettingsFile(Record):
    """Paths and format of the settings files that declare an agent's hooks."""

    user: str
    """Path of the user's file, relative to the home folder."""
    project: str
    """Path of a project's file, relative to the workspace. Empty if projects have none."""
    home_variable: str = ""
    """Environment variable that replaces `home` in `user` (`CODEX_HOME`). Empty if there is none."""
    home: str = ""
    """The front of `user` that `home_variable` replaces. Empty for its first part."""
    has_comments: bool = False
    """Whether the agent reads a file with comments."""
    is_toml: bool = False
    """Whether the file is TOML, with a list of tables `hooks`, and not JSON."""
    is_plugin: bool = False
    """Whether all of the file is ours (key `text` of the content): a plugin program, or hooks that no other program shares."""


class AgentFile(Record):
    """A settings file of an agent, besides the one with our hook."""

    path: str
    """Path relative to the home folder, or else to the folder in which the agent starts. It may be a glob pattern."""
    is_user: bool = False
    is_read_above: bool = False
    """Whether the agent also reads the file in the folders above, up to the top of the repository."""


class HeldStart(Record):
    """A start of an agent whose settings no project can override, so that its hooks stay on."""

    words: Sequence[str] = ()
    """First arguments of the agent."""
    settings: Mapping[str, JsonValue] = {}
    """Settings that `settings_variable` makes the strongest of all."""
    settings_variable: str = ""
    """Environment variable with the path of such a settings file. Empty if the words suffice."""
    settings_file: str = ""
    """Path of that file if the variable is not set."""


class GuardedAgent(Record):
    """One agent that our hook guards. To add an agent, create a module with such a record, and a row in `AGENTS`."""

    name: str
    """Name for the command line: `claude`."""
    title: str
    """Name that its maker uses: `Claude Code`."""
    program: str
    """Command that starts the agent."""
    tools: Mapping[str, ForeignTool]
    """The agent's tools by name."""
    event_of: Callable[[Mapping[str, JsonValue]], HookEvent]
    """Converts a parsed event to the common form. Raises EventError."""
    allow: Callable[[Mapping[str, JsonValue] | None], HookAnswer]
    """Returns the answer that lets a call run, with its own arguments (`None`) or with the given ones."""
    deny: Callable[[str], HookAnswer]
    block: Callable[[str], HookAnswer]
    """Returns the answer that refuses a call for a reason and, if the agent supports that, stops the agent."""
    settings: SettingsFile
    settings_content: Callable[[str], Mapping[str, JsonValue]]
    """Returns the required content of the settings file, for the command line of our hook."""
    fail: Callable[[str], HookAnswer] = refusal
    """Returns the answer that refuses an event of any kind, for an event that could not be judged."""
    off_values: Mapping[str, JsonValue] = {}
    """Settings by dotted key that turn hooks off. A list turns off the hooks that it names."""
    switch_files: Sequence[AgentFile] = ()
    """Files that may have such settings. A later file overrides an earlier one."""
    hook_files: Sequence[AgentFile] = ()
    """More files that may have hooks before a call."""
    off_words: Sequence[str] = ()
    """Arguments of the agent that turn hooks off, or leave them out."""
    held_start: Callable[[Mapping[str, JsonValue]], HeldStart] | None = None
    """Returns the start with hooks that stay on, for our content of its settings. `None` if the agent has no such start."""
    ask: Callable[[str, Mapping[str, JsonValue] | None], HookAnswer] | None = None
    """Returns the answer that makes the agent ask the user, from a reason and, optionally, new arguments. `None` if the agent
    cannot ask."""
    asks: Callable[[HookEvent, Mapping[str, str]], bool] = lambda event, environment: False  # noqa: ARG005
    """Returns whether the agent has a user to ask, by the event and the hook's environment."""
    rewrites: Callable[[HookEvent, Mapping[str, str]], bool] = lambda event, environment: False  # noqa: ARG005
    """Returns whether the agent accepts a replacement for the command of a call."""
    called_by: Callable[[Mapping[str, JsonValue]], str] = lambda fields: ""  # noqa: ARG005
    """Returns the name of another agent that runs the hooks of this one too, by its event. Empty for an event of its own."""
    asks_rewritten: bool = False
    """Whether the agent also accepts a replacement in an answer that makes it ask."""
    keeps_folder: bool = False
    """Whether the agent's shell keeps its folder between commands, so that `cd` has a lasting effect."""
    waits: bool = True
    """Whether the agent waits for a hook for as long as a person takes to answer."""
    tells_refusals: bool = False
    """Whether the agent tells of a call that a hook refused as of one that failed."""
    project_variables: Sequence[str] = ()
    """Variables of the hook's environment that may name the agent's workspace, in order of precedence."""
    stop_prompt: Callable[[str], HookAnswer] = refusal
    """Returns the answer that stops a prompt for a reason."""
    sends_files: bool = False
    """Whether the agent sends the files that a prompt names with `@`, also those that its event does not name."""
    sent_folders: ForeignKind = ForeignKind.SEARCH
    """Kind of call that sending a folder amounts to: all files in it, or only their names."""
    unseen: Sequence[str] = ()
    """Actions that the agent carries out without asking its hooks, a sentence each."""

    documents: str = ""
    """Address of the documents that this description was taken from. Empty for an agent that was tried."""

    own_places: Callable[[HookEvent, Mapping[str, str]], Sequence[str]] = lambda event, environment: ()  # noqa: ARG005
    """Returns the agent's files and folders that belong to the session of an event (absolute): its results and notes.

    They are read like the workspace. No credentials and no settings are among them."""
    policy_name: Callable[[ForeignCall, HookEvent, Mapping[str, str]], ForeignCall] = (
        lambda call, event, environment: call  # noqa: ARG005
    )
    """Returns a call with the name that policies have for its tool, if the agent has another for tools of MCP servers."""
    patches_in_shell: bool = False
    """Whether the agent treats a command that is only `apply_patch` with a here-document as a patch, and applies it itself."""

    def call_of(self, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:
        """Translate the call of an event; `environment` is that of the hook."""
        tool = self.tools.get(event.tool)
        if tool is None:
            return self.policy_name(unknown(event.tool, event.arguments), event, environment)
        call = tool.read(event)
        return _patch_in(call) if self.patches_in_shell and call.kind is ForeignKind.SHELL else call

    def folder_of(self, event: HookEvent, environment: Mapping[str, str]) -> str:
        """Return the folder of the agent's project, or else its current one; `environment` is that of the hook."""
        folders = (environment.get(name, "") for name in self.project_variables)
        return next(filter(os.path.isabs, folders), event.cwd)

    def substance_of(self, event: HookEvent) -> str:
        """Return a digest of what the call of an event does. An agent may change other arguments without an alarm.

        Arguments that say nothing (`null`, `false`, an empty text) count as left out.
        """
        tool = self.tools.get(event.tool)
        arguments: Mapping[str, JsonValue] = event.arguments
        if tool is not None:
            arguments = {tool.takes[name]: value for name, value in arguments.items() if name in tool.takes}
        weighty = {name: value for name, value in arguments.items() if value not in (None, False, "")}
        return digest_of(json.dumps([event.tool, weighty], sort_keys=True).encode())


def _patch_in(call: ForeignCall) -> ForeignCall:
    """Return a patch if the agent would treat the command of `call` as one; else return `call` unchanged."""
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


AGENTS: Mapping[str, str] = {
    name: name
    for name in (
        "claude",
        "codex",
        "gemini",
        "qwen",
        "copilot",
        "opencode",
        "pi",
        "kimi",
        "droid",
        "cline",
        "cursor",
        "windsurf",
        "crush",
        "goose",
        "kiro",
    )
}
"""The module of each supported agent in this package. The module defines the description as `AGENT`."""


def agent_named(name: str) -> GuardedAgent:
    """Import the agent with this name. Raises KeyError."""
    agent = import_module(f"harness.plugins.agents.{AGENTS[name]}").AGENT
    if not isinstance(agent, GuardedAgent):
        raise TypeError(f"{name}: expected a GuardedAgent, got {type(agent).__name__}")
    return agent


WHEN: Mapping[str, When] = {
    "PreToolUse": When.BEFORE,
    "PostToolUse": When.AFTER,
    "PostToolUseFailure": When.FAILED,
    "UserPromptSubmit": When.PROMPT,
    "ConfigChange": When.SETTINGS,
    "SessionEnd": When.ENDED,
}
"""Event names of Claude Code. Some other agents use the same names."""
