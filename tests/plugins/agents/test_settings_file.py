"""Our hook in the settings of an agent: beside what others wrote there, once, and out again."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from rows import all_rows

from harness.errors import UsageError
from harness.plugins.agents.guarded_agent import AGENTS, agent_named
from harness.plugins.agents.hook_line import hook_command
from harness.plugins.agents.settings_file import (
    SettingsChange,
    installation,
    installed,
    removal,
    settings_path,
    write,
)
from harness.policy.built_in import PROTECTED_NAMES
from harness.session.asked_call import quoted

PROGRAM = "'/opt/my tools/harness'"
IN_JSON = [
    name for name in AGENTS if not agent_named(name).settings.is_plugin and not agent_named(name).settings.is_toml
]


def command(agent: str, policy: str = "") -> str:
    return hook_command(PROGRAM, agent, [policy] if policy else [])


def test_several_policies_are_named_and_read_back() -> None:
    line = hook_command(PROGRAM, "claude", ["ci", "/my policies/a.toml"])
    assert line.startswith(f"{PROGRAM} hook claude --policy ci --policy '/my policies/a.toml' ")


def install(agent: str, path: Path, policy: str = "") -> SettingsChange:
    change = installation(agent_named(agent), str(path), command(agent, policy))
    if change.changes:
        write(change, private=True)
    return change


def remove(agent: str, path: Path) -> SettingsChange:
    change = removal(agent_named(agent), str(path))
    if change.changes:
        write(change, private=True)
    return change


@all_rows("agent", list(AGENTS))
def test_installed_hook_is_found_and_removed_completely(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "settings"
    assert installed(agent_named(agent), str(path)) is None
    assert not remove(agent, path).changes
    assert install(agent, path, "/p/it's.toml").changes
    assert path.parent.stat().st_mode & 0o077 == 0
    found = installed(agent_named(agent), str(path))
    assert found is not None
    assert (found.policy, found.complete) == ("/p/it's.toml", True)
    assert not install(agent, path, "/p/it's.toml").changes
    assert install(agent, path).changes  # another command line takes its place
    found = installed(agent_named(agent), str(path))
    assert found is not None
    assert (found.policy, found.complete) == ("", True)
    assert path.read_text().count("hook " + agent) == path.read_text().count("exit 2")
    assert remove(agent, path).after is None
    assert not path.exists()


@all_rows("agent", IN_JSON)
def test_entries_of_others_stay_unchanged(agent: str, tmp_path: Path) -> None:
    wanted = agent_named(agent).settings_content("theirs")
    events = wanted["hooks"]
    assert isinstance(events, dict)
    first = next(iter(events))
    before = {"z": [1, 2.5, None], "hooks": {"Other": [], first: events[first]}, "a": "\u00e9 \u2028"}
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(before, indent=4, ensure_ascii=False))
    path.chmod(0o640)
    install(agent, path)
    text = path.read_text()
    held = json.loads(text)
    assert [name for name in held if name != "version"] == ["z", "hooks", "a"]
    assert held["hooks"]["Other"] == []
    assert held["hooks"][first][0] == events[first][0]  # type: ignore[index]
    assert len(held["hooks"][first]) == 2
    assert "\n    " in text
    assert "\u00e9 \u2028" in text
    assert not text.endswith("\n")
    assert path.stat().st_mode & 0o777 == 0o640
    remove(agent, path)
    after = json.loads(path.read_text())
    after.pop("version", None)
    assert after == before
    assert path.stat().st_mode & 0o777 == 0o640


@all_rows("agent", [name for name in IN_JSON if "version" not in agent_named(name).settings_content("")])
@all_rows("text", ['{"a":1}', "{}", '\ufeff{\r\n\t"a": [\r\n\t]}', '{\n   "hooks": {"Other": [ ]}, "a": 1}\n'])
def test_uninstalled_file_is_the_same_byte_for_byte(agent: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(text.encode())
    install(agent, path)
    assert install(agent, path, "ci").changes  # another command line
    remove(agent, path)
    assert path.read_bytes() == text.encode()


COMMENTED = """\
// mine
{
  "theme": "x", /* y */ "hooks": { // none yet
  } // the end
}
"""


@all_rows("agent", IN_JSON)
def test_comments_stay_if_the_agent_reads_them(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(COMMENTED)
    if not agent_named(agent).settings.has_comments:
        with pytest.raises(UsageError, match="reads no comments"):
            install(agent, path)
        return
    install(agent, path)
    assert all(comment in path.read_text() for comment in ("// mine", "/* y */", "// none yet", "// the end"))
    found = installed(agent_named(agent), str(path))
    assert found is not None
    assert found.complete
    remove(agent, path)
    assert ("// the end" in path.read_text(), "harness" in path.read_text()) == (True, False)


def test_session_end_hook_of_codex_has_a_short_timeout(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    install("codex", path)
    held = json.loads(path.read_text())["hooks"]
    seconds = {event: entry["hooks"][0]["timeout"] for event, (entry,) in held.items()}
    assert "harness approve" in held["PreToolUse"][0]["hooks"][0]["statusMessage"]
    assert seconds == {"PreToolUse": 600, "PostToolUse": 600, "UserPromptSubmit": 600, "SessionEnd": 3}


def test_own_hook_is_repaired_in_place(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    install("claude", path)
    held = json.loads(path.read_text())
    ours = held["hooks"]["PreToolUse"][0]
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "harness-like hook claude"}]}
    both = {"matcher": "Bash", "hooks": [theirs["hooks"][0], {"type": "command", "command": "harness hook claude"}]}
    held["hooks"] = {"PreToolUse": [both, theirs, ours, ours]}
    path.write_text(json.dumps(held))
    found = installed(agent_named("claude"), str(path))
    assert found is not None
    assert not found.complete
    install("claude", path)
    held = json.loads(path.read_text())
    assert held["hooks"]["PreToolUse"] == [{**both, "hooks": both["hooks"][:1]}, ours, theirs]
    assert set(held["hooks"]) == {
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "ConfigChange",
        "SessionEnd",
    }


@all_rows(
    "line,ours",
    [
        ("harness hook claude", True),
        ("/a/harness hook claude --policy /p.toml", True),
        ("'/a b/harness' hook claude --policy 'it'\\''s' END", True),
        ("/usr/bin/python3 -m harness hook claude", True),
        ("/usr/bin/python3 -I -S /venv/harness/__main__.py hook claude --policy p", True),
        ("/usr/bin/python3 -I -S '/my venv/harness/__main__.py' hook claude", True),
        ("/usr/bin/python3 -I -S /venv/other/__main__.py hook claude", False),
        ("'/usr/my python' -m harness hook claude END", True),
        ("harness hook claude EARLIER", True),
        ("harness hook claude || true", False),
        ("harness hook claude || exit 2", False),
        ("harness hook claude END; true", False),
        ("harness hook claude END\n", False),
        ("harness hook claude --policy p;true END", False),
        ("harness hook claude --policy $(x) END", False),
        ("x;/a/harness hook claude END", False),
        ("harness hook codex", False),
        ("harness hook claude; rm x", False),
        ("echo harness hook claude", False),
        ("/a/harnessed hook claude", False),
        ("harness run", False),
        ("a" * 50_000, False),
        ("a'b" * 20_000, False),
        ("", False),
    ],
)
def test_a_hook_is_ours_by_its_command_line(line: str, ours: bool, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    earlier = "|| { [ $? -eq 2 ] || echo harness: the hook failed >&2; exit 2; }"
    line = line.replace("END", command("claude").partition(" hook claude ")[2]).replace("EARLIER", earlier)
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": line}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    assert (installed(agent_named("claude"), str(path)) is not None) is ours
    assert removal(agent_named("claude"), str(path)).changes is ours


@all_rows(
    "text,why",
    [
        ('{"a": 1, // a comment\n "b": 2}', "comment"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": 1, "a": 2}', "duplicate"),
        ("[]", "`hooks`"),
        ('{"hooks": []}', "`hooks`"),
        ('{"hooks": {"PreToolUse": {}}}', "`hooks`"),
        (b"\xff", "UTF-8"),
    ],
)
def test_invalid_settings_file_is_left_alone_with_advice(text: str | bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    with pytest.raises(UsageError, match=why) as refused:
        install("claude", path)
    assert '"onFailure": "block"' in str(refused.value)
    with pytest.raises(UsageError, match=why):
        remove("claude", path)
    assert path.read_bytes() == data


def test_an_empty_file_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for text in (b"", b'\xef\xbb\xbf{"a": 1}'):
        path.write_bytes(text)
        install("claude", path)
        assert "PreToolUse" in json.loads(path.read_bytes())["hooks"]


def test_a_link_is_followed_to_a_file_and_stays_a_link(tmp_path: Path) -> None:
    kept, path = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    kept.write_text("{}")
    path.symlink_to(kept)
    assert install("claude", path).path == str(kept)
    assert path.is_symlink()
    assert "hook claude" in kept.read_text()
    kept.unlink()
    with pytest.raises(UsageError, match="link to nothing"):
        install("claude", path)


def test_special_settings_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b" " * (8 * 1024 * 1024 + 1))
    for name in ("pipe", "folder", "large"):
        with pytest.raises(UsageError, match="left as it is"):
            install("claude", tmp_path / name)


def test_foreign_plugin_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "harness.js"
    path.write_text("export const Mine = async () => ({});\n")
    for act in (install, remove):
        with pytest.raises(UsageError, match="not a plugin of harness"):
            act("opencode", path)
    assert installed(agent_named("opencode"), str(path)) is None
    path.write_text('{"version": "v1", "hooks": [{"action": {"command": "mine"}}]}')
    with pytest.raises(UsageError, match="not a plugin of harness"):
        install("kiro", path)


TOML = """\
# mine
default_model = "k2"  # of all
[[hooks]]
event = "Stop"
command = "beep"
[models.k2]
provider = 'x'"""


def test_toml_settings_keep_their_text(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TOML)
    install("kimi", path)
    assert path.read_text().startswith(f'{TOML}\n\n[[hooks]]\nevent = "PreToolUse"\n')
    install("kimi", path, "/p/my.toml")
    hooks = tomllib.loads(path.read_text())["hooks"]
    assert [hook["event"] for hook in hooks] == [
        "Stop",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionEnd",
    ]
    assert {"--policy" in hook["command"] for hook in hooks[1:]} == {True}
    remove("kimi", path)
    assert path.read_text() == f"{TOML}\n"
    path.write_text(f"{TOML}\n\n")
    install("kimi", path)
    remove("kimi", path)
    assert path.read_text() == f"{TOML}\n\n"


@all_rows(
    "text,why",
    [
        ("a = ", "Invalid value"),
        ('hooks = "x"', "`hooks`"),
        ("hooks = []", "namespace"),
        ('text = """\n[[hooks]]\ncommand = "harness hook kimi"\n[x]\n"""', "cannot be changed"),
        (b"\xff", "utf-8"),
    ],
)
def test_toml_settings_that_cannot_be_changed_are_left_alone(text: str | bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    with pytest.raises(UsageError, match=why) as refused:
        install("kimi", path)
    assert 'event = "PreToolUse"' in str(refused.value)
    assert path.read_bytes() == data


def test_file_changed_during_the_installation_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    change = installation(agent_named("claude"), str(path), command("claude"))
    path.write_text('{"a": 1}')
    with pytest.raises(UsageError, match="another program changed"):
        write(change, private=True)
    assert path.read_text() == '{"a": 1}'
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]


@all_rows(
    "agent,environment,path",
    [
        ("claude", {"HOME": "/h"}, "/h/.claude/settings.json"),
        ("claude", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("codex", {"HOME": "/h"}, "/h/.codex/hooks.json"),
        ("codex", {"HOME": "/h", "CODEX_HOME": "/c"}, "/c/hooks.json"),
        ("codex", {"HOME": "/h", "CODEX_HOME": ""}, "/h/.codex/hooks.json"),
        ("qwen", {"HOME": "/h", "QWEN_HOME": "/q"}, "/q/settings.json"),
        ("copilot", {"HOME": "/h", "COPILOT_HOME": "/c"}, "/c/hooks/harness.json"),
        ("opencode", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/opencode/plugin/harness.js"),
        ("opencode", {"HOME": "/h"}, "/h/.config/opencode/plugin/harness.js"),
        ("pi", {"HOME": "/h", "PI_CODING_AGENT_DIR": "/p"}, "/p/extensions/harness.js"),
        ("crush", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/crush/crush.json"),
        ("kiro", {"HOME": "/h", "KIRO_HOME": "/k"}, "/k/hooks/harness.json"),
        ("kimi", {"HOME": "/h", "KIMI_CODE_HOME": "/k"}, "/k/config.toml"),
        ("pi", {"HOME": "/h"}, "/h/.pi/agent/extensions/harness.js"),
    ],
)
def test_settings_path_depends_on_agent_and_environment(agent: str, environment: dict[str, str], path: str) -> None:
    assert settings_path(agent_named(agent), environment, None) == path


def test_settings_path_needs_home_or_a_workspace() -> None:
    with pytest.raises(UsageError, match="HOME"):
        settings_path(agent_named("claude"), {}, None)
    with pytest.raises(UsageError, match="no hooks from a project"):
        settings_path(agent_named("kimi"), {"HOME": "/h"}, "/w")
    assert settings_path(agent_named("claude"), {}, "/w") == "/w/.claude/settings.local.json"


@all_rows(
    "does,code,said",
    [
        ("exit 0", 0, ""),
        ("echo refused >&2; exit 2", 2, "refused\n"),
        ("exit 1", 2, "harness failed\n"),
        ("kill -KILL $$", 2, "harness failed\n"),
        (None, 2, "harness failed\n"),
    ],
)
def test_failing_program_is_a_refusal(does: str | None, code: int, said: str, tmp_path: Path) -> None:
    program = tmp_path / "it's harness"
    if does is not None:
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o700)
    line = hook_command(quoted(str(program)), "codex")
    wanted = json.dumps(dict(agent_named("codex").settings_content(line)))
    in_sh = json.loads(wanted)["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    for one in (line, in_sh):
        done = subprocess.run(["/bin/sh", "-c", one], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr.endswith(said)
        assert ("harness failed" in done.stderr) is ("harness failed" in said)


@all_rows("name", list(AGENTS))
def test_settings_of_each_agent_are_protected_from_commands(name: str) -> None:
    settings = agent_named(name).settings
    for path in filter(None, (settings.user, settings.project)):
        assert path.partition("/")[0] in PROTECTED_NAMES | {".github"}
