"""Hooks of the configuration where another program wants a call: another agent, a client of an MCP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hook_process import Hooked, is_refusal
from mcp_scene import McpScene, call, tool
from program import Program
from rows import all_rows
from run_scene import written

CONFIRMS = """echo '{"decision": "confirm", "reason": "look"}'"""


def configure(program: Program, body: str, *, event: str = "before-call") -> Path:
    """Declare a hook in the user's own file; return its program."""
    path = program.home / "check.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    folder = Path(program.environment["XDG_CONFIG_HOME"]) / "harness"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f'[[hook]]\nid = "check"\nevent = "{event}"\ncommand = ["{path}"]\nseconds = 60\n'
    )
    return path


@pytest.fixture
def hooked(program: Program) -> Hooked:
    return Hooked(program)


@all_rows(
    ("body", "refused", "said"),
    {
        "nothing": ("true", False, ""),
        "a deny": ("echo not here >&2; exit 2", True, "Denied by hook check ("),
        "a crash": ("exit 1", True, "the hook gave no answer: exit code 1"),
        "a block": ("""echo '{"decision": "block", "reason": "stop"}'""", True, "Blocked by hook check ("),
        "an allow": ("""echo '{"decision": "allow"}'""", False, ""),
    },
    fresh=True,
)
def test_a_call_of_another_agent_passes_the_hooks(program: Program, body: str, refused: bool, said: str) -> None:
    hooked = Hooked(program)
    configure(program, body)
    done = hooked.hook(hooked.event(command="ls"))
    assert (is_refusal(done) or '"deny"' in done.out) == refused, done
    assert said in done.out + done.err
    assert [record["kind"] for record in hooked.records()].count("hook_answered") == 1


def test_question_of_the_agent_includes_the_reason_of_the_hook(hooked: Hooked) -> None:
    configure(hooked.program, CONFIRMS)
    done = hooked.hook(hooked.event(command="ls"))
    said = json.loads(done.out)["hookSpecificOutput"]
    assert said["permissionDecision"] == "ask"
    assert "look (hook check (" in said["permissionDecisionReason"]
    assert [record["kind"] for record in hooked.records()].count("hook_answered") == 1


def test_a_configuration_that_is_not_understood_refuses_the_call(hooked: Hooked) -> None:
    configure(hooked.program, "true", event="PreToolUse")
    done = hooked.hook(hooked.event(command="ls"))
    assert is_refusal(done)
    assert "event: unknown 'PreToolUse'" in done.out + done.err


def test_a_hook_that_a_trusted_project_brings_itself_refuses_the_call(hooked: Hooked) -> None:
    folder = hooked.program.workspace / ".harness"
    written(folder / "check.sh", "#!/bin/sh\n")
    written(folder / "config.toml", '[[hook]]\nid = "h"\nevent = "before-call"\ncommand = [".harness/check.sh"]\n')
    assert hooked.program.run("policy", "trust", ".harness/config.toml").code == 0
    done = hooked.hook(hooked.event(command="ls"))
    assert is_refusal(done)
    assert ".harness/check.sh is in the workspace" in done.out + done.err


def test_a_call_of_an_mcp_client_passes_the_hooks(program: Program) -> None:
    configure(program, "grep -q secret && { echo not that >&2; exit 2; }; true")
    read = tool("read")
    with McpScene(program, pinned=[read], tools=[[read]]).start() as scene:
        allowed, refused = (
            scene.ask(call(number, "read", path=path)) for number, path in enumerate(("a", "secret"), 1)
        )
        scene.end()
    assert allowed["result"].get("isError", False) is False
    assert refused["result"]["isError"] is True
    assert "Denied by hook check (" in refused["result"]["content"][0]["text"]
    assert [answer for kind, answer in _answers(scene) if kind == "hook_answered"] == ["nothing", "deny"]


def _answers(scene: McpScene) -> list[tuple[object, object]]:
    return [(record["kind"], record.get("answer")) for record in scene.verified()]
