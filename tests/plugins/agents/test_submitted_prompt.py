"""The prompt of a person to an agent: what of it is in the log, and which files it must not name."""

from __future__ import annotations

import json
from pathlib import Path

from hook_scene import HookScene, word_of
from rows import all_rows

from harness.plugins.agents.guarded_agent import HookAnswer
from harness.policy.loader import load_policy

ROWS = [
    tuple(part.strip() for part in f"{line} ".split(" |"))
    for line in Path(__file__).with_name("prompts.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
EVENTS = {"gemini": "BeforeAgent"}


def _scene(folder: Path, agent: str) -> HookScene:
    scene = HookScene(folder, load_policy("default"), agent=agent)
    (scene.workspace / "sub").mkdir()
    for name in ("f.txt", "with blank.txt", ".env"):
        (scene.workspace / name).write_text("X=1\n")
    (scene.workspace / "link").symlink_to(".env")
    return scene


def _sent(scene: HookScene, prompt: str) -> HookAnswer:
    where = str(scene.workspace)
    if scene.agent.name == "copilot":
        return scene.send(json.dumps({"sessionId": "S", "cwd": where, "prompt": prompt}).encode())
    event = EVENTS.get(scene.agent.name, "UserPromptSubmit")
    return scene.send(
        json.dumps({"session_id": "S", "cwd": where, "hook_event_name": event, "prompt": prompt}).encode()
    )


@all_rows("agent,prompt,reads,stopped", ROWS, ids=" ".join)
def test_prompt_is_logged_and_its_files_are_judged_as_reads(
    agent: str, prompt: str, reads: str, stopped: str, tmp_path: Path
) -> None:
    scene = _scene(tmp_path, agent)
    reply = _sent(scene, prompt.replace("\\n", "\n"))
    if stopped:
        assert json.loads(reply.stdout)["decision"] in ("block", "deny")
        assert json.loads(reply.stdout)["reason"].startswith("Denied")
    else:
        assert reply == HookAnswer()
    records = scene.records()
    calls = [json.loads(str(record["arguments"])) for record in records if record["kind"] == "call_proposed"]
    assert ", ".join(call["path"] for call in calls) == reads
    said = [record["text"] for record in records if record["kind"] == "user_message"]
    assert said == ([prompt.partition("\\n")[0]] if prompt else [])
    statuses = [record["status"] for record in records if record["kind"] == "outcome"]
    assert len(statuses) == len(calls)
    assert ("denied" in statuses) == bool(stopped)


def test_call_after_a_prompt_is_in_the_same_session(tmp_path: Path) -> None:
    scene = _scene(tmp_path, "claude")
    _sent(scene, "Mend @f.txt")
    assert word_of(scene.event("PreToolUse", "Read", {"file_path": "f.txt"})) == "allow"
    kinds = [record["kind"] for record in scene.records()]
    assert kinds.count("session_started") == 1
    assert [record["call"] for record in scene.records() if record["kind"] == "call_proposed"] == [1, 2]


def test_prompt_that_cannot_be_judged_is_stopped(tmp_path: Path) -> None:
    scene = _scene(tmp_path, "claude")
    many = " ".join(f"@sub/{number}" for number in range(31))
    for number in range(31):
        (scene.workspace / "sub" / str(number)).touch()
    assert "30 is the most" in _sent(scene, many).stdout
