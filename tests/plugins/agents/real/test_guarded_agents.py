"""The installed agents behind our gate: `harness hook install`, then a scripted model that wants what it may and may not have.

Skipped, and says so, where HARNESS_AGENTS names no folder (see test_agents.py).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from agent_calls import CODE_MODE, INNER_CODE, SHELL, code_deeds, deeds
from agent_rig import BEFORE, FOLDER, SERVER, AgentRig
from broken_hook import BROKEN, POLICY, TABLE, guarded, rows_of, runs_broken
from places import ROOT
from rows import all_rows

from harness.messages import ToolCall
from harness.models.scripted import call
from harness.plugins.agents.commands.agent_starts import PlayedPlace
from harness.plugins.agents.guarded_agent import agent_named
from harness.record import replace

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_AGENTS names no folder: no agent is played"),
]
WALLED = frozenset(BEFORE) - {"qwen", "kimi"}
"""Agents that take another command in the place of the one that they want to run."""


def records(rig: AgentRig) -> list[dict[str, Any]]:
    """Return the records of all logs of this home, each verified; not every agent tells that its session has ended."""
    done = rig.harness("audit", "verify", "--all")
    assert done.returncode == 0 or done.stdout.startswith("OPEN: "), done
    assert not any(line.startswith(("BROKEN", "UNREADABLE")) for line in done.stdout.splitlines()), done
    logs = sorted((rig.home / ".local/state/harness/sessions").glob("*/*.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


@all_rows("agent", tuple(BEFORE), ids=tuple(BEFORE))
def test_only_permitted_calls_run(agent: str, tmp_path: Path) -> None:
    rig = guarded(agent, tmp_path)
    shell = SHELL[agent]
    own = deeds(agent, rig.workspace)
    edits = [own[name] for name in ("read", "edit", "write", "subagent") if name in own]
    steps: list[tuple[ToolCall, ...]] = [
        (shell("echo said"),),
        (shell("cd sub && pwd"),),
        (shell("git push"),),
        (shell("touch asked.txt"),),
        *edits,
        (shell("echo at"), shell("echo once"), shell("git push --force")),
        (shell("rm -rf ~"),),
        (shell("touch after.txt; echo after"),),
    ]
    played = rig.play(steps, inner=((shell("echo inner"),), (shell("git push"),)))
    said = played.results
    assert "said" in said["call_0-0-0"]
    assert str(rig.workspace / "sub") in said["call_0-1-0"]
    assert "nothing is pushed from here" in said["call_0-2-0"]
    assert "confirm by default" in said["call_0-3-0"]
    at_once = 4 + len(edits)
    assert "at" in said[f"call_0-{at_once}-0"]
    assert "once" in said[f"call_0-{at_once}-1"]
    assert "nothing is pushed from here" in said[f"call_0-{at_once}-2"]
    if "subagent" in own:
        assert "inner" in said["call_1-0-0"]
        assert "nothing is pushed from here" in said["call_1-1-0"]
    if "edit" in own:
        assert (rig.workspace / "f.txt").read_text().startswith("ALPHA")
    assert sorted(path.name for path in rig.workspace.iterdir() if path.name != ".git") == ["f.txt", "sub"]
    assert "after" not in said.get(f"call_0-{at_once + 2}-0", "").splitlines()
    outcomes = [record for record in records(rig) if record["kind"] == "outcome" and record["status"] == "ok"]
    seen = {record.get("seen_by", "") for record in outcomes}
    assert ("harness exec" in seen) == (agent in WALLED)


KEYS = {"GITHUB_TOKEN": "Gh4xT0keN9vQ2mLp7RsZ", "DB_PASSWORD": "correct-horse-battery"}
ASK_FOR_KEYS = (
    "printenv GITHUB_TOKEN",
    "env",
    'echo "$DB_PASSWORD $FROM_DOTENV"',
    "awk 'BEGIN{print ENVIRON[\"GITHUB_TOKEN\"]}'",
    'cat <<< "$GITHUB_TOKEN"',
    "cat settings",
    "git remote -v",
)
"""Commands that would show a key to the model. The last two read it from files."""


@all_rows("agent", tuple(BEFORE), ids=tuple(BEFORE))
def test_no_key_of_the_environment_reaches_the_model(agent: str, tmp_path: Path) -> None:
    rig = guarded(agent, tmp_path, Path(ROOT, "policies", "default.toml").read_text())
    rig.variables = KEYS
    (rig.workspace / ".env").write_text("FROM_DOTENV=s3cr3t-of-a-file\n")  # Gemini and Qwen take it up
    (rig.workspace / "settings").write_text(f"login {KEYS['DB_PASSWORD']}\n")
    address = f"https://u:{KEYS['GITHUB_TOKEN']}@example.org/x.git"
    subprocess.run(["git", "remote", "add", "o", address], cwd=rig.workspace, check=True)
    commands = ASK_FOR_KEYS if agent in WALLED else ASK_FOR_KEYS[:-2]  # nothing of ours masks what Qwen runs
    said = rig.play([(SHELL[agent](command),) for command in (*commands, "ls")]).results
    assert "settings" in said[f"call_0-{len(commands)}-0"]
    for number, command in enumerate(commands):
        shown = said[f"call_0-{number}-0"]
        assert not [value for value in (*KEYS.values(), "s3cr3t-of-a-file") if value in shown], (command, shown)


MCP_RULE = """[[rule]]
id = "place"
decision = "deny"
tool = ["mcp__place__*"]
reason = "nothing is asked there"
"""


@all_rows("agent", ["copilot", "opencode"])
@all_rows("rule,said", [(MCP_RULE, "nothing is asked there"), ("", "hi")], ids=["denied", "allowed"])
def test_tool_of_a_server_has_one_name_in_policies(agent: str, rule: str, said: str, tmp_path: Path) -> None:
    rig = guarded(agent, tmp_path, POLICY + rule)
    if agent == "copilot":
        rig.write(".copilot/mcp-config.json", {"mcpServers": {"place": {"type": "local", "tools": ["*"], **SERVER}}})
    else:
        server = {"type": "local", "command": [SERVER["command"], *SERVER["args"]]}
        rig.write(".config/opencode/opencode.json", {"mcp": {"place": server}})
    played = rig.play([deeds(agent, rig.workspace)["mcp"]])
    assert said in played.results["call_0-0-0"]
    (tool,) = {record["tool"] for record in records(rig) if record["kind"] == "call_proposed"}
    assert tool == "mcp__place__echo"


def test_claude_reads_its_own_outputs_unasked_and_no_skill_runs_commands_unasked(tmp_path: Path) -> None:
    policy = POLICY.replace('default = "auto"', 'default = "confirm"').replace('"pwd"]', '"pwd", "seq"]')
    rig = guarded("claude", tmp_path, policy)
    for name, text in (("plain", "Say less."), ("busy", "First !`touch ran-by-a-skill`")):
        skill = rig.workspace / ".claude" / "skills" / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(f"---\nname: {name}\ndescription: Speak well.\n---\n{text}\n")
    long = call("Bash", command="seq 1 60000", description="d")
    first = rig.play([(long,), (call("Skill", skill="busy"),), (call("ListAgents"),)])
    assert not (rig.workspace / "ran-by-a-skill").exists()
    assert "confirm by default" in first.results["call_0-1-0"]
    assert "confirm by default" not in first.results["call_0-2-0"]
    (path,) = (rig.home / ".claude/projects").glob("*/*/tool-results/*")
    own = rig.play([(call("Read", file_path=str(path)),)])  # it belongs to another session
    assert "outside the workspace" in own.results["call_0-0-0"]
    memory = path.parents[2] / "memory" / "MEMORY.md"
    memory.parent.mkdir(exist_ok=True)
    memory.write_text("remembered\n")
    (rig.workspace / ".claude/skills/busy/SKILL.md").write_text("Say more.")
    again = rig.play([(call("Read", file_path=str(memory)),), (call("Skill", skill="plain"),)])
    assert "remembered" in again.results["call_0-0-0"]
    assert "confirm by default" not in again.results["call_0-1-0"]


def test_calls_of_a_codex_program_are_judged_one_by_one(tmp_path: Path) -> None:
    rig = guarded("codex", tmp_path)
    own = code_deeds()
    asked = call("exec", input="text(await tools.exec_command({cmd: 'git push'}))")
    played = rig.play([own["two"], (asked,), own["subagent"], own["wait"]], inner=INNER_CODE, more=CODE_MODE)
    assert "one" in played.results["call_0-0-0"]
    assert "two" in played.results["call_0-0-1"]
    assert "nothing is pushed from here" in played.results["call_0-1-0"]
    assert "inner" in played.results["call_1-0-0"]


@all_rows("sandbox", ["workspace-write", "read-only"])
def test_codex_runs_permitted_commands_in_its_own_sandbox(sandbox: str) -> None:
    # Not below the folder for temporary files: there Codex makes no sandbox.
    with tempfile.TemporaryDirectory(prefix=".codex-", dir=ROOT) as folder:
        rig = guarded("codex", Path(folder))
        own = rig.start.arguments

        def arguments(place: PlayedPlace) -> tuple[str, ...]:
            return tuple(sandbox if word == "danger-full-access" else word for word in own(place))

        rig.start = replace(rig.start, arguments=arguments)
        played = rig.play([(SHELL["codex"]("echo said"),), (SHELL["codex"]("git push"),)])
        assert "said" in played.results["call_0-0-0"]
        assert "nothing is pushed from here" in played.results["call_0-1-0"]
        outcomes = [record["seen_by"] for record in records(rig) if record["kind"] == "outcome" and "seen_by" in record]
        assert outcomes == ["codex"]


SWITCHED_OFF = {
    "claude": (".claude/settings.local.json", '{"disableAllHooks": true}'),
    "codex": (".codex/config.toml", "[features]\nhooks = false\n"),
    "copilot": (".github/copilot/settings.json", '{"disableAllHooks": true}'),
    "gemini": (".gemini/settings.json", '{"hooksConfig": {"enabled": false}} // of the project'),
    "qwen": (".qwen/settings.json", '{"disableAllHooks": true}'),
}
"""A file of a project that turns all hooks off."""


@all_rows("agent", tuple(SWITCHED_OFF), ids=tuple(SWITCHED_OFF))
def test_project_that_turns_hooks_off_is_seen_and_overridden(agent: str, tmp_path: Path) -> None:
    rig = guarded(agent, tmp_path)
    path, content = SWITCHED_OFF[agent]
    (rig.workspace / path).parent.mkdir(parents=True)
    (rig.workspace / path).write_text(content)
    status, check = rig.harness("hook", "status", agent), rig.harness("hook", "check", agent)
    assert (status.returncode, check.returncode) == (1, 1)
    assert f"{rig.workspace / path}: " in status.stdout
    assert "it ran, without our walls" in check.stdout
    rig.start_by(f"{rig.program} -I -m harness hook run {agent}")
    played = rig.play([(SHELL[agent]("echo said"),), (SHELL[agent]("touch asked.txt"),)])
    assert not (rig.workspace / "asked.txt").exists()
    if agent_named(agent).held_start is None:
        assert (played.run.code, f"{rig.workspace / path}: " in played.run.stderr) == (2, True)
        return
    assert "said" in played.results["call_0-0-0"]
    decisions = [record["summary"] for record in records(rig) if record["kind"] == "decision"]
    assert decisions == ["echo said", "touch asked.txt"]


@all_rows("agent, fault", [(agent, fault) for agent in BEFORE for fault in BROKEN])
def test_calls_run_past_a_broken_hook_as_documented(agent: str, fault: str, tmp_path: Path) -> None:
    assert runs_broken(agent, fault, tmp_path) == (fault in rows_of(TABLE)[agent])
