"""The one tool for Claude Code's `--permission-prompt-tool`: what it answers, and that an answer alone lets nothing run."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_scene import HookScene
from process_scene import wait_until
from program import Program
from rows import all_rows
from sandbox_scene import needs_walls
from tool_client import Served, kinds, served

from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.plugins.agents.permission_prompt import ClaudePrompt
from harness.policy.loader import load_policy
from harness.record import replace
from harness.sandbox import enforces, probe
from harness.session.state import State
from harness.session.waiting import WaitingList

CONFINES = enforces(probe())
ROWS = [
    [part.strip() for part in f"{line} ".split(" | ")]
    for line in Path(__file__).with_name("permission_prompt.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
TOUCH = {"tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "toolu_1"}
LOOK = {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_2"}
REMOVE = {"tool_name": "Bash", "input": {"command": "rm -rf /"}}


def _no_pause(seconds: float) -> None:
    pass


@all_rows("arguments,word,part", ROWS, ids=lambda row: row[0])
def test_each_call_gets_the_answer_of_its_row(arguments: str, word: str, part: str, tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    for name, text in ((".env", "X=1\n"), ("f.txt", "alpha\n"), ("sub/g.txt", "")):
        (scene.workspace / name).parent.mkdir(exist_ok=True)
        (scene.workspace / name).write_text(text)
    listened = replace(scene.parts, ask=lambda asked, policy: WaitingList(str(tmp_path / "none")).ask(asked))
    prompt = ClaudePrompt(str(scene.workspace), "S", lambda pause: listened)
    written = arguments.replace('"/w', f'"{scene.workspace}')
    text, latch = prompt.answer(written, "", _no_pause)
    said = json.loads(text)
    given = json.loads(written).get("input")
    if word in ("run", "allow"):
        assert said["behavior"] == "allow"
        rewritten = word == "run" and CONFINES
        assert ("exec --ticket" in str(said["updatedInput"])) == rewritten
        assert rewritten or said["updatedInput"] == given
        assert "&& cd -- " not in str(said["updatedInput"])  # the folder of its shell is not ours to know
    else:
        assert said == {
            "behavior": "deny",
            "message": said["message"],
            **({"interrupt": True} if word == "block" else {}),
        }
        assert part in said["message"]
    assert bool(latch) == (word == "block")
    if latch:
        assert json.loads(prompt.answer(json.dumps(LOOK), latch, _no_pause)[0])["message"] == latch
    prompt.end()
    assert [record["kind"] for record in scene.records()][-1:] in (["session_ended"], [])


@pytest.fixture
def client(program: Program) -> Iterator[Served]:
    """A client that has the tool beside the others."""
    with served(program, "--permission-prompt", asks=False) as made:
        yield made


def _asked(client: Served, arguments: dict[str, Any]) -> dict[str, Any]:
    said = client.call("approve", **arguments)
    assert not said.is_error
    return dict(json.loads(said.text))


@needs_walls
def test_a_command_that_may_run_runs_by_its_ticket_once(program: Program, client: Served) -> None:
    line = _asked(client, LOOK)["updatedInput"]["command"]
    assert not any(one["kind"] == "outcome" for path in program.logs() for one in _records(path))
    runs = [
        subprocess.run(
            ["bash", "-c", line], cwd=program.workspace, env=program.environment, capture_output=True, check=False
        )
        for _ in range(2)
    ]
    assert runs[0].returncode == 0
    assert runs[1].returncode != 0
    assert b"the ticket" in runs[1].stderr or b"no such ticket" in runs[1].stderr


def test_a_block_of_either_kind_is_the_end_of_both(program: Program, client: Served) -> None:
    assert _asked(client, LOOK)["behavior"] == "allow"
    assert _asked(client, REMOVE)["interrupt"]
    assert _asked(client, LOOK)["behavior"] == "deny"
    said = client.call("bash", command="ls")
    assert said.is_error
    assert "an earlier call was a hard block" in said.text


def test_permission_prompt_is_answered_at_another_terminal(program: Program) -> None:
    waiting = WaitingList(State.of(program.environment).waiting)

    def answer() -> None:
        assert wait_until(lambda: bool(waiting.all()))
        (one,) = waiting.all()
        assert one.question is not None
        assert one.question.agent == "Claude Code"
        waiting.answer(one, Approval(answer=Answer.YES, by="person"))

    with waiting.listening(), served(program, "--permission-prompt", asks=False) as client:
        thread = threading.Thread(target=answer)
        thread.start()
        assert _asked(client, TOUCH)["behavior"] == "allow"
        thread.join()
    assert not (program.workspace / "x").exists()  # an answer runs nothing
    logs = [_records(path) for path in program.logs()]
    assert sorted(str(log[0]["mode"]) for log in logs) == ["hook", "mcp serve"]
    for log in logs:
        assert len(kinds(log, "session_ended")) == 1
    for path in program.logs():
        assert program.run("audit", "verify", str(path)).code == 0


def test_permission_tool_is_offered_on_request_only(client: Served) -> None:
    offered = client.tools()["approve"]
    assert set(client.tools()) == {"bash", "read_file", "write_file", "edit_file", "approve"}
    assert offered.annotations is not None
    assert not offered.annotations.read_only_hint


def _records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
