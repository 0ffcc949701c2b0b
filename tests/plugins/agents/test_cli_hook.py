"""`harness hook install`, `uninstall`, `status`: as a person types them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from places import ROOT
from program import Program
from rows import all_rows
from screen_scene import CTRL_C, PlayedTerminal

from harness.errors import UsageError
from harness.plugins.agents.commands.codex_trust import AppServer, own_hooks
from harness.plugins.agents.guarded_agent import AGENTS


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
    assert not settings.exists()
    done = program.run("hook", "uninstall", "claude", "--yes")
    assert done.code == 0
    assert "no hook" in done.out


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
    assert len(json.loads((home / "trusted.json").read_text())) == 3
    status = program.run("hook", "status", "codex").out
    assert "9.9.9" in status
    assert status.splitlines()[1].split()[:5] == ["codex", "9.9.9", "yes", "no", "yes"]
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


def test_status_describes_the_hook_of_each_agent(program: Program) -> None:
    program.environment["PATH"] = "/nowhere"
    program.run("hook", "install", "opencode", "--yes")
    lines = program.run("hook", "status").out.splitlines()
    rows = {line.split()[0]: line for line in lines}
    assert list(rows)[1 : 1 + len(AGENTS)] == list(AGENTS)
    assert rows["opencode"].split()[1:5] == ["not", "found", "yes", "no"]
    assert rows["claude"].split()[1:5] == ["not", "found", "no", "no"]
    assert ("--bare" in rows["claude"], "--pure" in rows["opencode"]) == (False, True)  # of what is guarded alone
    (program.home / ".claude").mkdir()
    (program.home / ".claude" / "settings.json").write_text("{")
    done = program.run("hook", "status", "claude")
    assert (done.code, "left as it is" in done.err) == (0, True)
    assert done.out.splitlines()[1].split()[1:4] == ["not", "found", "?"]


@all_rows(
    "old,new,said",
    [
        ("hook claude", "hook claude", "yes"),
        (sys.executable, "/nowhere/python", "its program is gone"),
        ('"onFailure": "block"', '"onFailure": "allow"', "in part"),
        ("hook claude", "hook nobody", "no"),
    ],
    fresh=True,
)
def test_status_names_problems_of_a_hook(old: str, new: str, said: str, program: Program) -> None:
    settings = program.home / ".claude" / "settings.json"
    assert program.run("hook", "install", "claude", "--yes").code == 0
    settings.write_text(settings.read_text().replace(old, new))
    row = program.run("hook", "status", "claude").out.splitlines()[1]
    assert f"  {said}" in row, row


@all_rows(
    "words,said",
    [
        (["hook", "install"], "AGENT"),
        (["hook", "install", "emacs"], "emacs"),
        (["hook", "status", "--yes"], "--yes"),
        (["hook", "fix"], "install, check, status, uninstall"),
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
