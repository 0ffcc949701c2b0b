"""Add, find and remove the entries in an agent's settings that call our hook.

Our entries are recognized by their command line. INVARIANT: all other text stays as it is, also comments.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.files import atomic
from harness.plugins.agents import toml_hooks
from harness.plugins.agents.guarded_agent import GuardedAgent
from harness.plugins.agents.hook_line import hook_line, is_ours
from harness.plugins.agents.json_text import edited, without_comments
from harness.record import Record
from harness.safe_files import read_regular
from harness.text.strict_json import NotJsonError, is_deeper, read_one
from harness.text.visible import visible_line

MOST_BYTES = 8 * 1024 * 1024
"""Maximum size of a settings file."""
MOST_DEPTH = 100
"""Maximum nesting of a settings file."""
_COMMANDS = ("command", "bash")
"""Keys of a settings entry that may hold its command line."""
_PLUGIN_COMMAND = re.compile(r"^(?:const COMMAND = (?=.*;$)| *\"command\": )(\".*\");?$", re.MULTILINE)


class Installed(Record):
    """Our hook in the settings of an agent."""

    command: str
    program: str
    """Path of the program that the hook starts."""
    policy: str
    """Policies that the command line names, joined by `and`. Empty if it names none."""
    complete: bool
    """Whether installing the same command line again would change nothing."""


class SettingsChange(Record):
    """The current and the new content of a settings file; `None` for a missing file."""

    path: str
    """Resolved path of the file."""
    before: bytes | None
    after: bytes | None

    @property
    def changes(self) -> bool:
        """Whether the new content differs from the current one."""
        return self.before != self.after


def settings_path(agent: GuardedAgent, environment: Mapping[str, str], project: str | None) -> str:
    """Return the path of an agent's settings file: the user's for `None`, else that of the folder `project`.

    Raises UsageError if HOME is not an absolute path, and for a project whose agent takes no hooks from one.
    """
    if project is not None:
        if not agent.settings.project:
            raise UsageError(f"{agent.title} takes no hooks from a project: leave `--project` out")
        return os.path.join(project, agent.settings.project)
    return user_path(agent, environment, agent.settings.user)


def user_path(agent: GuardedAgent, environment: Mapping[str, str], path: str) -> str:
    """Return the absolute path of an agent's file in the home folder. Raises UsageError if HOME is not an absolute path."""
    first = agent.settings.home or path.partition("/")[0]
    rest = path.removeprefix(f"{first}/")
    folder = environment.get(agent.settings.home_variable, "") if agent.settings.home_variable else ""
    if os.path.isabs(folder):
        return os.path.join(folder, rest)
    home = environment.get("HOME", "")
    if not os.path.isabs(home):
        raise UsageError("HOME is not an absolute path, so the agent's settings cannot be found")
    return os.path.join(home, first, rest)


def installation(agent: GuardedAgent, path: str, command: str) -> SettingsChange:
    """Return the change that makes the agent call this command line. Raises UsageError for a file we must not change."""
    path, before = _file_content(path)
    hook_settings = agent.settings_content(command)
    if agent.settings.is_plugin:
        _check_plugin(agent, path, before)
        return SettingsChange(path=path, before=before, after=str(hook_settings["text"]).encode())
    if agent.settings.is_toml:
        return SettingsChange(path=path, before=before, after=_toml_with_ours(agent, path, before, command))
    settings = _read(agent, path, before, command)
    after = _written(settings, _with_ours(settings, hook_settings, agent.name), before)
    return SettingsChange(path=path, before=before, after=after)


def removal(agent: GuardedAgent, path: str) -> SettingsChange:
    """Return the change that removes our hook. Raises UsageError for a file that we must not change."""
    path, before = _file_content(path)
    if before is None:
        return SettingsChange(path=path, before=None, after=None)
    if agent.settings.is_plugin:
        _check_plugin(agent, path, before)
        return SettingsChange(path=path, before=before, after=None)
    if agent.settings.is_toml:
        return SettingsChange(path=path, before=before, after=_toml_with_ours(agent, path, before, "") or None)
    settings = _read(agent, path, before, "")
    rest = _without_ours(settings, agent.name)
    if rest == settings:
        return SettingsChange(path=path, before=before, after=before)
    after = _written(settings, rest, before)
    is_ours = not rest.keys() - {"version"} and after.strip() != b"{}"  # an installation writes no `{}` in one piece
    return SettingsChange(path=path, before=before, after=None if is_ours else after)


def installed(agent: GuardedAgent, path: str) -> Installed | None:
    """Return our hook in the settings, or `None` if it is missing. Raises UsageError for invalid settings."""
    path, before = _file_content(path)
    if before is None:
        return None
    if agent.settings.is_plugin:
        found_line = _PLUGIN_COMMAND.search(before.decode(errors="replace"))
        commands = [] if found_line is None else [str(json.loads(found_line[1]))]
    elif agent.settings.is_toml:
        _toml_with_ours(agent, path, before, "")  # which refuses an invalid file
        commands = [str(hook.get("command")) for hook in toml_hooks.hooks_in(before.decode())]
    else:
        commands = list(_commands(_read(agent, path, before, ""), agent.name))
    for command in commands:
        line = hook_line(command, agent.name)
        if line is not None:
            return Installed(
                command=command,
                program=line.program,
                policy=" and ".join(line.policies),
                complete=not installation(agent, path, line.text).changes,
            )
    return None


def write(change: SettingsChange, *, private: bool) -> None:
    """Apply a change atomically. Missing folders of a `private` file are created for the owner only.

    Raises UsageError if the file cannot be written, or differs from `before`.
    """
    folder, name = os.path.split(change.path)

    def check() -> None:
        if _file_content(change.path)[1] != change.before:
            raise UsageError(
                f"another program changed {visible_line(change.path, 1_000)}: the file was not changed; try again"
            )

    try:
        os.makedirs(folder, mode=0o700 if private else 0o777, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if change.after is None:
                check()
                os.unlink(name, dir_fd=descriptor)
            else:
                present = None if change.before is None else os.lstat(change.path)
                atomic.replace(descriptor, name, change.after, present=present, check=check)
        finally:
            os.close(descriptor)
    except (OSError, atomic.NotKeptError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{visible_line(change.path, 1_000)}: cannot be written: {reason}") from None


def _file_content(path: str) -> tuple[str, bytes | None]:
    """Return the real path of a settings file, and its content; `None` if it is missing.

    Raises UsageError unless it is a regular file that the user owns, of at most MOST_BYTES.
    """
    display_path = visible_line(path, 1_000)
    real = os.path.realpath(path)
    try:
        status = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise UsageError(f"{display_path} is a link to nothing: mend it first") from None
        return real, None
    except OSError as error:
        raise UsageError(f"{display_path}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise UsageError(f"{display_path} is not a regular file that you own: it is left as it is")
    if status.st_size > MOST_BYTES:
        raise UsageError(f"{display_path} has more than {MOST_BYTES:,} bytes: it is left as it is")
    try:
        return real, read_regular(real)
    except OSError as error:
        raise UsageError(f"{display_path}: {error.strerror}") from None


def _toml_with_ours(agent: GuardedAgent, path: str, before: bytes | None, command: str) -> bytes:
    """Return the TOML settings with our hooks for `command`; without them if it is empty.

    Raises UsageError, with the text to add by hand, if the settings are invalid.
    """
    ours = toml_hooks.tables(agent.settings_content(command)["hooks"]) if command else []
    try:
        return toml_hooks.with_hooks((before or b"").decode(), ours, lambda line: is_ours(line, agent.name)).encode()
    except ValueError as error:
        problem = f"{visible_line(path, 1_000)} is left as it is: {visible_line(str(error), 1_000)}"
        if command:
            problem += f". Add this by hand:\n{toml_hooks.as_toml(ours)}"
        raise UsageError(problem) from None


def _check_plugin(agent: GuardedAgent, path: str, before: bytes | None) -> None:
    match = None if before is None else _PLUGIN_COMMAND.search(before.decode(errors="replace"))
    if before is not None and (match is None or not is_ours(str(json.loads(match[1])), agent.name)):
        raise UsageError(f"{visible_line(path, 1_000)} is not a plugin of harness: it is left as it is")


def _read(agent: GuardedAgent, path: str, before: bytes | None, command: str) -> dict[str, JsonValue]:
    """Parse the settings as an object. Raises UsageError, with the text to add by hand, if they are invalid."""
    if before is None:
        return {}
    try:
        text = before.decode("utf-8-sig") or "{}"
        value = read_one(without_comments(text) if agent.settings.has_comments else text)
        hooks = value.get("hooks", {}) if isinstance(value, dict) else None
        if (
            isinstance(value, dict)
            and not is_deeper(value, MOST_DEPTH)
            and isinstance(hooks, dict)
            and all(isinstance(hook, list) for hook in hooks.values())
        ):
            return value
        reason = "`hooks` is not what it should be"
    except UnicodeDecodeError:
        reason = "it is no UTF-8"
    except NotJsonError as error:
        comments = "" if agent.settings.has_comments else f" ({agent.title} reads no comments)"
        reason = f"it is not valid JSON{comments}: {error}"
    problem = f"{visible_line(path, 1_000)} is left as it is: {reason}"
    if command:
        problem += f". Add this by hand:\n{json.dumps(dict(agent.settings_content(command)), indent=2)}"
    raise UsageError(problem)


def _written(value: Mapping[str, JsonValue], new: Mapping[str, JsonValue], before: bytes | None) -> bytes:
    """Return the settings file `before` with the value `new` instead of `value`."""
    text = "" if before is None else before.decode("utf-8-sig")
    if not text.strip():
        return f"{json.dumps(new, indent=2, ensure_ascii=False)}\n".encode()
    mark = codecs.BOM_UTF8 if before is not None and before.startswith(codecs.BOM_UTF8) else b""
    return mark + edited(text, dict(value), dict(new)).encode()


def _is_our_entry(entry: JsonValue, agent: str) -> bool:
    return isinstance(entry, dict) and any(is_ours(entry.get(name), agent) for name in _COMMANDS)


def _inner(entry: JsonValue) -> list[JsonValue] | None:
    """Return the hooks of a group with a matcher; `None` for an entry that is a hook itself."""
    inner = entry.get("hooks") if isinstance(entry, dict) else None
    return inner if isinstance(inner, list) else None


def _commands(settings: Mapping[str, JsonValue], agent: str) -> list[str]:
    commands: list[str] = []
    for entries in _events(settings).values():
        for entry in entries:
            hooks = _inner(entry)
            for hook in [entry] if hooks is None else hooks:
                if isinstance(hook, dict) and _is_our_entry(hook, agent):
                    commands += [str(hook[name]) for name in _COMMANDS if is_ours(hook.get(name), agent)]
    return commands


def _events(settings: Mapping[str, JsonValue]) -> dict[str, list[JsonValue]]:
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return {}
    return {name: entries for name, entries in hooks.items() if isinstance(entries, list)}


def _with_ours(
    settings: Mapping[str, JsonValue], hook_settings: Mapping[str, JsonValue], agent: str
) -> dict[str, JsonValue]:
    """Return settings with our entries. They replace our existing entries, or are appended to the others."""
    merged: dict[str, JsonValue] = {
        **{name: value for name, value in hook_settings.items() if name != "hooks"},
        **settings,
    }
    events = _events(settings)
    merged_events: dict[str, JsonValue] = {}
    for name, entries in events.items():
        ours = _events(hook_settings).get(name, [])
        entries_left = _updated(entries, agent, ours)
        if entries_left or not entries:
            merged_events[name] = entries_left
    for name, ours in _events(hook_settings).items():
        if name not in merged_events:
            merged_events[name] = list(ours)
    return {**merged, "hooks": merged_events}


def _without_ours(settings: Mapping[str, JsonValue], agent: str) -> dict[str, JsonValue]:
    remaining: dict[str, JsonValue] = {}
    for name, entries in _events(settings).items():
        entries_left = _updated(entries, agent, [])
        if entries_left or not entries:
            remaining[name] = entries_left
    if remaining or not _events(settings):
        return {**settings, "hooks": remaining} if "hooks" in settings else dict(settings)
    return {name: value for name, value in settings.items() if name != "hooks"}


def _updated(entries: Sequence[JsonValue], agent: str, ours: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the entries of an event without our old entries. `ours` replaces the first of them, or is appended."""
    entries_left: list[JsonValue] = []
    waiting = list(ours)

    def take_place() -> None:
        entries_left.extend(waiting)
        waiting.clear()

    for entry in entries:
        inner = _inner(entry)
        if inner is None:
            if _is_our_entry(entry, agent):
                take_place()
            else:
                entries_left.append(entry)
            continue
        remaining = [hook for hook in inner if not _is_our_entry(hook, agent)]
        if len(remaining) < len(inner):
            if remaining and isinstance(entry, dict):
                entries_left.append({**entry, "hooks": remaining})
            take_place()
        else:
            entries_left.append(entry)
    take_place()
    return entries_left
