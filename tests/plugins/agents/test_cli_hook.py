"""`harness hook install`, `uninstall`, `status`: as a person types them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hook_process import finished
from places import ROOT
from program import Program
from rows import all_rows
from screen_scene import CTRL_C, PlayedTerminal

from harness.errors import UsageError
from harness.plugins.agents.commands.agent_starts import tried_version
from harness.plugins.agents.commands.codex_trust import AppServer, own_hooks
from harness.plugins.agents.guarded_agent import AGENTS, agent_named
from harness.plugins.agents.hook_line import hook_command


def with_codex(program: Program, fails: str = "") -> Path:
    """Put a program named codex in the PATH, and return where its home is."""
    folder = program.home / "bin"
    folder.mkdir()
    codex = folder / "codex"
    codex.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{ROOT}/tests/support/fake_codex.py' \"$@\"\n")
    codex.chmod(0o700)
    program.environment |= {"PATH": f"{folder}:/usr/bin:/bin", "FAKE_CODEX": fails}
    return program.home / ".codex"


def test_hook_install_without_a_person_needs_yes(program: Program) -> None:
    settings = program.home / ".claude" / "settings.json"
    done = program.run("hook", "install", "claude")
    assert done.code == 2
    assert '+        "matcher": "*",' in done.out
    assert "--yes" in done.err
    assert not settings.exists()
    done = program.run("hook", "install", "claude", "--yes")
    assert done.code == 0
    assert "installed" in done.out
    assert "not seen: " in done.out
    (run,) = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    assert " hook claude || {" in run["hooks"][0]["command"]
    written = settings.read_bytes()
    done = program.run("hook", "install", "claude")
    assert (done.code, settings.read_bytes()) == (0, written)
    assert "already" in done.out
    done = program.run("hook", "uninstall", "claude")
    assert (done.code, settings.read_bytes()) == (2, written)
    assert program.run("hook", "uninstall", "claude", "--yes").code == 0
    assert not settings.parent.exists()
    done = program.run("hook", "uninstall", "claude", "--yes")
    assert done.code == 0
    assert "no hook" in done.out


def test_a_faulty_settings_file_stops_no_other_agent(program: Program) -> None:
    """Both ways; the exit code tells of it."""
    folder = program.home / "bin"
    folder.mkdir()
    for name in ("claude", "gemini", "opencode"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o700)
    program.environment["PATH"] = str(folder)
    faulty = program.home / ".claude" / "settings.json"
    faulty.parent.mkdir()
    faulty.write_text("{")
    done = program.run("hook", "install", "--all", "--yes")
    gemini = program.home / ".gemini" / "settings.json"
    assert (done.code, "Claude Code: " in done.err, gemini.exists()) == (2, True, True), done
    assert "Gemini CLI: the hook is installed" in done.out
    assert "opencode: the hook is installed" in done.out
    done = program.run("hook", "uninstall", "--all", "--yes")
    assert (done.code, "Claude Code: " in done.err, gemini.exists(), faulty.read_text()) == (2, True, False, "{"), done
    faulty.unlink()
    assert program.run("hook", "uninstall", "--all", "--yes").code == 0
    assert program.run("hook", "uninstall", "--yes").code == 2


@all_rows("agent", ["pi", "claude"], fresh=True)
def test_check_shows_first_why_an_agent_cannot_start(agent: str, program: Program) -> None:
    folder = program.home / "bin"
    folder.mkdir()
    (folder / agent).write_text("#!/bin/sh\necho 'Error: no Node 22' >&2\necho ' at main.js:1' >&2\nexit 3\n")
    (folder / agent).chmod(0o700)
    program.environment["PATH"] = f"{folder}:/usr/bin:/bin"
    done = program.run("hook", "check", agent)
    before, _, after = done.out.partition("ended with 3, and our hook was asked about no call:\n")
    assert (done.code, after.startswith("  Error: no Node 22\n   at main.js:1\n")) == (1, True), done
    assert "not asked" not in before


def test_the_policy_is_named_so_that_it_is_found_from_anywhere(program: Program) -> None:
    (program.workspace / "p.toml").write_text("version = 1\n")
    settings = program.workspace / ".gemini" / "settings.json"
    done = program.run("hook", "install", "gemini", "--project", "--policy", "p.toml", "--yes")
    assert done.code == 0
    assert f"--policy {shlex.quote(str(program.workspace / 'p.toml'))} || " in settings.read_text()
    done = program.run("hook", "status", "gemini")
    assert (done.code, f"{program.workspace}/p.toml" in done.out) == (0, True)
    assert program.run("hook", "install", "gemini", "--policy", "readonly", "--yes").code == 0
    assert "--policy readonly || " in (program.home / ".gemini" / "settings.json").read_text()
    done = program.run("hook", "install", "qwen", "--policy", "missing.toml", "--yes")
    assert (done.code, "missing.toml" in done.err) == (2, True)
    assert not (program.home / ".qwen").exists()


@all_rows("fails", ["", "noisy"], fresh=True)
def test_codex_is_let_to_trust_the_hook_by_itself(fails: str, program: Program) -> None:
    home = with_codex(program, fails)
    done = program.run("hook", "install", "codex", "--yes")
    assert (done.code, "Codex trusts it" in done.out) == (0, True), done
    events = agent_named("codex").settings_content("")["hooks"]
    assert isinstance(events, dict)
    assert len(json.loads((home / "trusted.json").read_text())) == len(events)
    status = program.run("hook", "status", "codex").out
    assert "9.9.9" in status
    assert f"codex: its tools are known as of {tried_version('codex')}: others ask" in status
    assert status.splitlines()[1].split() == ["codex", "9.9.9", "user", "as", "for", "the", "prompt", "on"]
    (home / "trusted.json").unlink()
    status = program.run("hook", "status", "codex").out
    assert "/hooks" in status
    done = program.run("hook", "install", "codex")  # nothing to write, but trust is missing
    assert (done.code, "Codex trusts it" in done.out) == (0, True)


def test_untrusted_codex_hook_is_reported(program: Program) -> None:
    home = with_codex(program, "refuses")
    done = program.run("hook", "install", "codex", "--yes")
    assert (done.code, "/hooks" in done.err) == (2, True)
    assert (home / "hooks.json").exists()
    program.environment["PATH"] = "/nowhere"
    done = program.run("hook", "install", "codex")
    assert (done.code, "/hooks" in done.err) == (2, True)
    assert "not in PATH" in done.out


def test_status_has_a_short_line_for_each_agent(program: Program) -> None:
    program.environment["PATH"] = "/nowhere"
    program.run("hook", "install", "opencode", "--yes")
    done = program.run("hook", "status")
    lines = done.out.splitlines()
    rows = {line.split()[0]: line for line in lines}
    assert list(rows)[1 : len(AGENTS) + 1] == list(AGENTS)
    assert rows["opencode"].split()[1:] == ["not", "found", "user", "as", "for", "the", "prompt", "on"]
    assert rows["claude"].split()[1:] == ["not", "found", "-", "-", "-"]
    assert (done.code, max(map(len, lines)) <= 80) == (0, True)
    (program.home / ".claude").mkdir()
    (program.home / ".claude" / "settings.json").write_text("{")
    done = program.run("hook", "status", "claude")
    assert (done.code, "left as it is" in done.out) == (1, True)
    assert done.out.splitlines()[1].split()[-1] == "unknown"


@all_rows("kind", ["a broken link", "no program", "a program that fails"], fresh=True)
def test_status_tells_an_agent_that_does_not_start_from_one_that_is_missing(kind: str, program: Program) -> None:
    folder = program.home / "bin"
    folder.mkdir()
    file = folder / "claude"
    if kind == "a broken link":
        file.symlink_to("/nowhere/claude")
    else:
        file.write_text("#!/nowhere/node\n" if kind == "no program" else "#!/bin/sh\nexit 1\n")
        file.chmod(0o755)
    program.environment["PATH"] = str(folder)
    row = program.run("hook", "status", "claude").out.splitlines()[1]
    assert row.split()[1:4] == ["does", "not", "start"]


@all_rows(
    "old,new,state,code",
    [
        ("hook claude", "hook claude", "on", 0),
        (sys.executable, "/nowhere/python", "broken", 1),
        ('"onFailure": "block"', '"onFailure": "allow"', "in part", 1),
        ('{\n  "hooks"', '{"disableAllHooks": true, "hooks"', "OFF", 1),
        ("hook claude", "hook nobody", "-", 0),
    ],
    fresh=True,
)
def test_status_names_problems_of_a_hook(old: str, new: str, state: str, code: int, program: Program) -> None:
    settings = program.home / ".claude" / "settings.json"
    assert program.run("hook", "install", "claude", "--yes").code == 0
    settings.write_text(settings.read_text().replace(old, new))
    done = program.run("hook", "status", "claude")
    assert (done.code, done.out.splitlines()[1].endswith(f"  {state}")) == (code, True), done
    assert ("claude: " in done.out) is (code == 1)


def test_project_that_turns_hooks_off_is_named_with_its_other_hooks(program: Program) -> None:
    program.run("hook", "install", "claude", "--yes")
    theirs = {"hooks": [{"type": "command", "command": "rtk hook"}]}
    project = program.workspace / ".claude" / "settings.json"
    project.parent.mkdir()
    project.write_text(json.dumps({"disableAllHooks": True, "hooks": {"PreToolUse": [theirs]}}))
    for words in (["status", "claude"], ["install", "claude"]):
        done = program.run("hook", *words)
        assert f"its hooks are off here: {project}: disableAllHooks = true" in done.out, done
        assert "`harness hook run claude` overrides it" in done.out
        assert f"  {project}  PreToolUse  rtk hook" in done.out
    assert program.run("hook", "status").code == 1


def test_two_hooks_of_ours_are_named_with_their_policies(program: Program) -> None:
    program.run("hook", "install", "claude", "--yes")
    done = program.run("hook", "install", "claude", "--project", "--yes")
    assert "2 hooks of harness with one policy: " in done.out
    done = program.run("hook", "status", "claude")
    assert (done.code, "2 hooks of harness with one policy: " in done.out) == (0, True)
    done = program.run("hook", "install", "claude", "--project", "--policy", "readonly", "--yes")
    assert "each call is refused; remove one" in done.out
    local = program.workspace / ".claude" / "settings.local.json"
    local.rename(local.with_name("settings.json"))  # the file that a clone brings
    done = program.run("hook", "status", "claude")
    assert (done.code, f"{local.with_name('settings.json')} (readonly)" in done.out) == (1, True)
    assert done.out.splitlines()[1].endswith("  refuses")
    program.run("hook", "install", "gemini", "--yes")
    done = finished(program.start("hook", "status", "gemini", cwd=program.home))
    assert (done.code, done.out.splitlines()[1].split()[-6:]) == (0, ["user", "as", "for", "the", "prompt", "on"])
    assert "2 hooks" not in done.out


def agent_in_path(program: Program, *names: str) -> None:
    """Put programs in the PATH that print their arguments, and the file that QWEN_CODE_SYSTEM_SETTINGS_PATH names."""
    folder = program.home / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(
            '#!/bin/sh\nfor word; do echo "$word"; done\ncat "${QWEN_CODE_SYSTEM_SETTINGS_PATH:-/dev/null}"\nexit 7\n'
        )
        (folder / name).chmod(0o700)
    program.environment["PATH"] = f"{folder}:/usr/bin:/bin"


def test_agent_is_not_started_by_a_hook_of_a_project_that_looks_like_ours(program: Program) -> None:
    agent_in_path(program, "claude")
    for command, code in ((f"{program.workspace}/harness", 2), ("/usr/bin/harness", 7)):
        settings = agent_named("claude").settings_content(hook_command(command, "claude"))
        path = program.workspace / ".claude" / "settings.local.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))
        assert program.run("hook", "run", "claude").code == code, command


def test_agents_are_started_with_settings_that_a_project_cannot_override(program: Program) -> None:
    agent_in_path(program, "claude", "qwen", "gemini")
    done = program.run("hook", "run", "claude")
    assert (done.code, "hook install claude" in done.err) == (2, True)
    for agent in ("claude", "qwen", "gemini"):
        assert program.run("hook", "install", agent, "--yes").code == 0
    done = program.run("hook", "run", "claude", "-p", "--help", "--", "x")
    flag, settings, *words = done.out.splitlines()
    assert (done.code, flag, words) == (7, "--settings", ["-p", "--help", "--", "x"])
    own = json.loads((program.home / ".claude" / "settings.json").read_text())
    assert json.loads(settings) == {"disableAllHooks": False, **own}
    for word in ("--settings={}", "--settings", "--bare"):
        done = program.run("hook", "run", "claude", "-p", word)
        assert (done.code, f"{word.partition('=')[0]} turns its hooks off" in done.err) == (2, True)
    program.run("hook", "install", "codex", "--yes")
    (program.home / "bin" / "codex").symlink_to("claude")
    assert program.run("hook", "run", "codex", "exec").out.splitlines() == ["-c", "features.hooks=true", "exec"]
    assert "features.hooks turns" in program.run("hook", "run", "codex", "exec", "-c", "features.hooks=false").err
    system = program.home / "system.json"
    system.write_text('{"a": 1, // of the administrator\n "disableAllHooks": true}')
    for variables in ({}, {"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(system)}):
        program.environment |= variables
        done = program.run("hook", "run", "qwen", "-p")
        word, text = done.out.splitlines()
        assert (done.code, word, json.loads(text)) == (
            7,
            "-p",
            {**({"a": 1} if variables else {}), "disableAllHooks": False},
        )
    system.write_text("{")
    assert program.run("hook", "run", "qwen").code == 2
    assert program.run("hook", "run", "gemini", "-y").out.splitlines()[0] == "-y"
    project = program.workspace / ".gemini" / "settings.json"
    project.parent.mkdir()
    project.write_text('{"hooksConfig": {"enabled": false}}')
    done = program.run("hook", "run", "gemini")
    assert (done.code, f"{project}: hooksConfig.enabled = false" in done.err) == (2, True)


def test_all_agents_in_path_get_the_hook(program: Program) -> None:
    program.environment["PATH"] = "/nowhere"
    done = program.run("hook", "install", "--all", "--yes")
    assert (done.code, "no agent" in done.err) == (2, True)
    agent_in_path(program, "claude", "gemini")
    done = program.run("hook", "install", "--all", "--yes")
    assert (done.code, done.out.count("the hook is installed: ")) == (0, 2)
    assert (program.home / ".gemini" / "settings.json").exists()
    assert not (program.home / ".qwen").exists()
    done = program.run("hook", "install", "claude", "--all")
    assert (done.code, "--all" in done.err) == (2, True)


@all_rows(
    "words,said",
    [
        (["hook", "install"], "--all"),
        (["hook", "install", "emacs"], "emacs"),
        (["hook", "status", "--yes"], "--yes"),
        (["hook", "fix"], "install, check, run, status, uninstall"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: list[str], said: str, program: Program) -> None:
    done = program.run(*words)
    assert (done.code, said in done.err) == (2, True)


def test_silent_app_server_is_given_up(program: Program) -> None:
    with_codex(program, "silent")
    codex = str(program.home / "bin" / "codex")
    server = AppServer(codex, program.environment, str(program.workspace), seconds=0.2)
    with pytest.raises(UsageError, match="does not answer initialize"):
        server.__enter__()
    with pytest.raises(UsageError, match="cannot be started"):
        AppServer("/nowhere/codex", program.environment, str(program.workspace)).__enter__()


def test_only_our_hooks_of_that_file_are_trusted(program: Program) -> None:
    home = with_codex(program)
    home.mkdir()
    hook = {"matcher": ".*", "hooks": [{"type": "command", "command": one} for one in ("ours", "theirs")]}
    (home / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    with AppServer(str(program.home / "bin" / "codex"), program.environment, str(program.workspace)) as server:
        seen = server.hooks()
        assert [one.command for one in seen] == ["ours", "theirs"]
        ours = own_hooks(seen, str(home / "hooks.json"), "ours")
        assert own_hooks(seen, str(home / "other.json"), "ours") == []
        server.trust(ours)
        assert [one.trust for one in server.hooks()] == ["trusted", "untrusted"]


@pytest.mark.terminal
@all_rows("keys,code,written", [("y", 0, True), ("n", 2, False), (CTRL_C, 2, False)], fresh=True)
def test_user_reviews_the_change_and_answers(keys: str, code: int, written: bool, program: Program) -> None:
    settings = program.home / ".copilot" / "hooks" / "harness.json"
    with PlayedTerminal(
        program.command("hook", "install", "copilot"),
        cwd=program.workspace,
        environment=program.environment,
        lines=60,
    ) as terminal:
        terminal.wait_question("settings")
        terminal.wait_keys()
        assert '+   "hooks": {' in terminal.text()
        assert not settings.exists()
        terminal.send(keys)
        assert terminal.exit_code() == code
    assert settings.exists() is written
