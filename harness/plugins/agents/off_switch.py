"""Settings with which the user, or a project, turns an agent's hooks off: ours too, without a message.

Claude Code tells of settings that change during a session, and obeys a hook that refuses them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.agent_files import paths_of, read_settings
from harness.plugins.agents.agent_session import AgentSession
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent, HookAnswer
from harness.record import Record
from harness.session.asked_call import HookParts
from harness.text.visible import visible_line


class OffSwitch(Record):
    """A setting that turns an agent's hooks off."""

    file: AgentFile
    path: str
    """Absolute path of the file."""
    key: str
    """Dotted key of the setting."""
    value: JsonValue

    @property
    def words(self) -> str:
        """The file and the setting, safe to show."""
        return visible_line(f"{self.path}: {self.key} = {json.dumps(self.value)}", 1_000)

    @property
    def minimal_file(self) -> str:
        """Content of a file that has only this setting."""
        if self.path.endswith(".toml"):
            return f"{self.key} = {json.dumps(self.value)}\n"
        value = self.value
        for key in reversed(self.key.split(".")):
            value = {key: value}
        return json.dumps(value)


def off_switches(agent: GuardedAgent, environment: Mapping[str, str], folder: str) -> list[OffSwitch]:
    """Return the settings that turn off the hooks of an agent that starts in `folder`.

    Raises UsageError for a file that cannot be read: it may be such a file.
    """
    switches: dict[str, OffSwitch] = {}
    for file in agent.switch_files:
        for path in paths_of(agent, file, environment, folder):
            settings = read_settings(path, has_comments=agent.settings.has_comments)
            for key, off_value in agent.off_values.items():
                value = _value_at(settings, key)
                if isinstance(off_value, list):  # the lists of all files count together
                    names = [name for name in value if name in off_value] if isinstance(value, list) else []
                    if names:
                        switches[f"{key} {path}"] = OffSwitch(file=file, path=path, key=key, value=names)
                elif value == off_value and isinstance(value, bool):
                    switches[key] = OffSwitch(file=file, path=path, key=key, value=value)
                elif isinstance(value, bool):
                    switches.pop(key, None)
    return list(switches.values())


def kept_on(agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts) -> HookAnswer:
    """Return an empty answer to changed settings, or one that refuses them because they turn our hook off.

    Refused settings have no effect in this session. Raises LogError and UsageError.
    """
    switches = off_switches(agent, parts.environment, agent.folder_of(event, parts.environment))
    if not switches:
        return HookAnswer()
    words = f"{agent.title} keeps its hooks until it ends; {switches[0].words} turns them off"
    if session.is_begun:
        session.log.append("error", {"where": "settings", "message": words}, sync=True)
    return agent.fail(words)


def _value_at(settings: Mapping[str, JsonValue], key: str) -> JsonValue:
    value: JsonValue = dict(settings)
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
