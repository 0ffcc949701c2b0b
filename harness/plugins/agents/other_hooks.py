"""Hooks of others that an agent runs before a call, beside ours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.files.repository import work_top
from harness.plugins.agents.agent_files import paths_of, read_settings
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent
from harness.plugins.agents.hook_line import is_ours, is_written_by_us
from harness.plugins.agents.settings_file import installed
from harness.record import Record
from harness.text.visible import visible_line

MEANING = "it can change a command after our verdict, or answer our question"
"""Effect of such a hook, if it ends after ours or allows a call."""
_ANSWERS = ("PermissionRequest", "permissionRequest")
"""Events whose hooks answer a question that we let the agent ask."""
_COMMANDS = ("command", "bash", "url", "prompt", "type")
"""Keys of a hook that say what it runs, the best first."""


class OtherHook(Record):
    """One hook of others."""

    path: str
    """Absolute path of the file that declares it."""
    event: str
    """Name of its event. Empty for a plugin."""
    command: str

    @property
    def words(self) -> str:
        """The file, the event and the command, safe to show."""
        return visible_line("  ".join(filter(None, (self.path, self.event, self.command))), 300)


def other_hooks(agent: GuardedAgent, environment: Mapping[str, str], folder: str) -> list[OtherHook]:
    """Return the hooks of others if the agent starts in `folder`. Files that cannot be read are passed over."""
    hooks: dict[OtherHook, None] = {}
    top = work_top(os.path.realpath(folder), environment.get("HOME", ""))
    for file in _files(agent):
        for path in paths_of(agent, file, environment, folder):
            if agent.settings.is_plugin:
                if not os.path.basename(path).startswith("harness."):
                    hooks[OtherHook(path=path, event="", command="")] = None
                continue
            try:
                settings = read_settings(path, has_comments=agent.settings.has_comments)
            except UsageError:
                continue
            for hook in _hooks_in(agent, path, settings):
                is_known = (
                    is_ours(hook.command, agent.name)
                    if file.is_user
                    else is_written_by_us(hook.command, agent.name, top)
                )
                if not is_known:
                    hooks[hook] = None
    return list(hooks)


def hooks_of_ours(agent: GuardedAgent, environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the policies that our hooks name, by the files that declare them, if the agent starts in `folder`.

    Files that cannot be read are passed over.
    """
    policies: dict[str, str] = {}
    top = work_top(os.path.realpath(folder), environment.get("HOME", ""))
    for file in _files(agent):
        for path in paths_of(agent, file, environment, folder):
            with suppress(UsageError):
                hook = installed(agent, path)
                if hook is not None and (file.is_user or is_written_by_us(hook.command, agent.name, top)):
                    policies[os.path.realpath(path)] = hook.policy
    return policies


def _files(agent: GuardedAgent) -> Iterator[AgentFile]:
    for path, is_user in ((agent.settings.user, True), (agent.settings.project, False)):
        if path:
            yield AgentFile(path=f"{os.path.dirname(path)}/*" if agent.settings.is_plugin else path, is_user=is_user)
    yield from agent.hook_files


def _hooks_in(agent: GuardedAgent, path: str, settings: Mapping[str, JsonValue]) -> Iterator[OtherHook]:
    declared = settings.get("hooks")
    for event in (_before_event(agent), *_ANSWERS):
        if isinstance(declared, dict):
            entries = _objects(declared.get(event))
        else:  # a list whose entries name their events
            entries = [entry for entry in _objects(declared) if entry.get("event") == event]
        for entry in entries:
            for hook in _objects(entry["hooks"]) if "hooks" in entry else [entry]:
                command = next((str(hook[name]) for name in _COMMANDS if name in hook), "")
                yield OtherHook(path=path, event=event, command=command)


def _before_event(agent: GuardedAgent) -> str:
    """Return the agent's name of the event before a call: the first in our settings."""
    events = agent.settings_content("")["hooks"]
    return next(iter(events)) if isinstance(events, dict) else str(_objects(events)[0]["event"])


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
