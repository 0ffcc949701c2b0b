"""What turns an agent's hooks off in a folder, by the table off_switches.txt, and which other hooks run there."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hook_process import Hooked
from hook_scene import HookScene
from program import Program
from rows import all_rows

from harness.errors import UsageError
from harness.plugins.agents.guarded_agent import AGENTS, agent_named
from harness.plugins.agents.hook_line import hook_command
from harness.plugins.agents.off_switch import off_switches
from harness.plugins.agents.other_hooks import other_hooks
from harness.plugins.agents.settings_file import installation, settings_path, write
from harness.policy.loader import load_policy

TABLE = Path(__file__).with_name("off_switches.txt")


class Folders(NamedTuple):
    """The home, a repository and a folder below its top."""

    home: Path
    top: Path
    here: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home)}

    def write(self, place: str, path: str, content: str) -> Path:
        file: Path = getattr(self, place) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def words(self, text: str) -> str:
        """Return a text with the names of the folders in place of their paths."""
        for name in ("here", "top", "home"):
            text = text.replace(f"{getattr(self, name)}/", f"{name} ")
        return text


def folders(folder: Path) -> Folders:
    made = Folders(folder / "home", folder / "top", folder / "top" / "sub" / "here")
    for path in (made.home, made.here, made.top / ".git"):
        path.mkdir(parents=True)
    return made


def rows() -> list[tuple[str, list[str], list[str]]]:
    found: list[tuple[str, list[str], list[str]]] = []
    for line in TABLE.read_text().splitlines():
        if line.startswith("    = "):
            found[-1][2].append(line.removeprefix("    = "))
        elif line.startswith("    "):
            found[-1][1].append(line.strip())
        elif line and not line.startswith("#"):
            found.append((line, [], []))
    return found


def switches(agent: str, place: Folders) -> Iterator[str]:
    try:
        found = off_switches(agent_named(agent), place.environment, str(place.here))
    except UsageError:
        yield "unreadable"
        return
    for switch in found:
        data = tomllib.loads(switch.minimal_file) if switch.path.endswith(".toml") else json.loads(switch.minimal_file)
        for key in switch.key.split("."):
            data = data[key]
        assert data == switch.value
        yield place.words(switch.words)
    if not found:
        yield "on"


@all_rows(("agent", "files", "expected"), rows())
def test_settings_turn_hooks_off_as_the_table_says(
    agent: str, files: list[str], expected: list[str], tmp_path: Path
) -> None:
    place = folders(tmp_path)
    for file in files:
        name, path, content = file.split(" ", 2)
        place.write(name, path, content.replace("\\n", "\n"))
    assert list(switches(agent, place)) == expected


@all_rows(
    ("content", "kept"),
    [
        ('{"disableAllHooks": true}', "keeps its hooks until it ends"),
        ('{"disableAllHooks": false, "env": {}}', ""),
    ],
)
def test_hooks_stay_on_when_settings_change_during_a_session(content: str, kept: str, tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"), environment={"HOME": str(tmp_path / "home")})
    scene.event("PreToolUse", "Read", {"file_path": "f.txt"})
    settings = scene.workspace / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(content)
    reply = scene.event("ConfigChange", source="project_settings", file_path=str(settings))
    assert (reply.code, kept in reply.stderr) == (2 if kept else 0, True)
    told = [str(record["message"]) for record in scene.records() if record["kind"] == "error"]
    assert told == ([f"Claude Code {kept}; {settings}: disableAllHooks = true turns them off"] if kept else [])


def test_settings_that_cannot_be_read_are_refused_during_a_session(program: Program) -> None:
    hooked = Hooked(program)
    settings = hooked.workspace / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"disableAll')
    reply = hooked.hook(hooked.event("ConfigChange"))
    assert (reply.code, "may turn hooks off" in reply.err) == (2, True)


def test_pipe_in_place_of_settings_is_unreadable(tmp_path: Path) -> None:
    place = folders(tmp_path)
    (place.here / ".claude" / "settings.json").mkdir(parents=True)
    assert list(switches("claude", place)) == ["unreadable"]


COMMAND = {"type": "command", "command": "rtk hook", "bash": "rtk hook"}
GROUP = [{"matcher": "*", "hooks": [COMMAND]}]
BEFORE = "PreToolUse  rtk hook"


@all_rows(
    ("agent", "place", "path", "content", "words"),
    [
        ("claude", "here", ".claude/settings.json", {"hooks": {"PreToolUse": GROUP}}, BEFORE),
        ("claude", "here", ".claude/settings.local.json", {"hooks": {"PreToolUse": GROUP}}, BEFORE),
        ("claude", "top", ".claude/settings.local.json", {"hooks": {"PreToolUse": GROUP}}, BEFORE),
        ("claude", "top", ".claude/settings.json", {"hooks": {"PreToolUse": GROUP}}, ""),
        ("claude", "here", ".claude/settings.json", {"hooks": {"PermissionRequest": GROUP}}, "PermissionRequest  rtk hook"),
        ("claude", "here", ".claude/settings.json", {"hooks": {"Stop": GROUP}}, ""),
        ("claude", "home", ".claude/plugins/cache/m/p/1/hooks/hooks.json", {"hooks": {"PreToolUse": GROUP}}, BEFORE),
        ("gemini", "home", ".gemini/extensions/x/hooks/hooks.json", {"hooks": {"BeforeTool": GROUP}}, "BeforeTool  rtk hook"),
        ("copilot", "top", ".github/hooks/x.json", {"version": 1, "hooks": {"preToolUse": [COMMAND]}}, "preToolUse  rtk hook"),
        ("copilot", "home", ".copilot/hooks/x.json", {"hooks": {"preToolUse": [COMMAND]}}, "preToolUse  rtk hook"),
        ("codex", "top", ".codex/config.toml", '[[hooks.PreToolUse]]\nhooks = [{command = "a"}]', "PreToolUse  a"),
        ("opencode", "here", ".opencode/plugin/x.ts", "", " "),
        ("cline", "here", ".clinerules/hooks/PreToolUse", "", " "),
        ("cline", "home", "Documents/Cline/Plugins/x.js", "", " "),
        ("kimi", "home", ".kimi-code/config.toml", '[[hooks]]\nevent = "PreToolUse"\ncommand = "a"', "PreToolUse  a"),
        ("claude", "here", ".claude/settings.json", "{", ""),
        ("claude", "here", ".claude/settings.json", {"hooks": {"PreToolUse": [1, {"hooks": 2}, {}]}}, "PreToolUse"),
        ("claude", "here", ".claude/settings.json", {"hooks": [GROUP]}, ""),
    ],
)  # fmt: skip
def test_other_hooks_before_a_call_are_listed(
    agent: str, place: str, path: str, content: object, words: str, tmp_path: Path
) -> None:
    made = folders(tmp_path)
    ours = settings_path(agent_named(agent), made.environment, None)
    write(installation(agent_named(agent), ours, hook_command("harness", agent)), private=True)
    file = made.write(place, path, content if isinstance(content, str) else json.dumps(content))
    hooks = other_hooks(agent_named(agent), made.environment, str(made.here))
    assert [hook.words for hook in hooks] == ([f"{file}  {words}".rstrip()] if words else [])


@all_rows(
    "command",
    [
        "HERE/harness hook claude END",
        "./harness hook claude END",
        "'/usr/bin/python3' -I -S HERE/harness/__main__.py hook claude END",
        "/usr/bin/python3 -m harness hook claude END",
        "touch${IFS}x;/usr/bin/harness hook claude END",
        "/usr/bin/harness hook claude || touch x",
    ],
)
def test_hook_of_a_project_that_looks_like_ours_is_another_one(command: str, tmp_path: Path) -> None:
    made = folders(tmp_path)
    end = hook_command("", "claude").partition(" hook claude ")[2]
    command = command.replace("HERE", str(made.here)).replace("END", end)
    hooks = [{"hooks": [{"type": "command", "command": command}]}]
    made.write("here", ".claude/settings.json", json.dumps({"hooks": {"PreToolUse": hooks}}))
    found = other_hooks(agent_named("claude"), made.environment, str(made.here))
    assert [hook.command for hook in found] == [command]


def test_our_hook_is_not_another_one(tmp_path: Path) -> None:
    made = folders(tmp_path)
    for name in AGENTS:
        agent = agent_named(name)
        for project in (None, str(made.here)) if agent.settings.project else (None,):
            path = settings_path(agent, made.environment, project)
            write(installation(agent, path, hook_command("harness", name)), private=True)
        assert other_hooks(agent, made.environment, str(made.here)) == [], name
