"""Two hooks of ours before one agent, as processes: one answer by one policy, and no call by two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hook_process import Hooked, exec_words, finished
from program import Program
from rows import all_rows

from harness.sandbox import enforces, probe

OPEN = 'version = 1\n[tools]\nbash = "auto"\nread_file = "auto"\n'
CLOSED = 'version = 1\n[tools]\nbash = "deny"\nread_file = "deny"\n'
SAID = "Two hooks of harness judge this session, by different policies: "


@pytest.fixture
def hooked(program: Program) -> Hooked:
    (program.home / "open.toml").write_text(OPEN)
    (program.home / "same.toml").write_text(OPEN)
    (program.home / "closed.toml").write_text(CLOSED)
    return Hooked(program)


def flags(hooked: Hooked, name: str) -> list[str]:
    """Return the arguments of the hook with one policy; of the user's hook without any for an empty name."""
    return ["--policy", str(hooked.program.home / f"{name}.toml")] if name else []


def kinds(hooked: Hooked, kind: str) -> list[object]:
    return [record.get("content", record.get("text")) for record in hooked.records() if record["kind"] == kind]


@all_rows(
    "first,second", [("open", "closed"), ("closed", "open"), ("", "closed"), ("closed", ""), ("", "open")], fresh=True
)
def test_call_judged_by_two_policies_is_refused(first: str, second: str, hooked: Hooked) -> None:
    data = hooked.event(command="ls")
    allowed = hooked.hook(data, *flags(hooked, first))
    for again in (second, second, first):
        done = hooked.hook(data, *flags(hooked, again))
        said = json.loads(done.out)["hookSpecificOutput"]
        assert (said["permissionDecision"], SAID in said["permissionDecisionReason"]) == ("deny", True)
        assert "harness hook status" in said["permissionDecisionReason"]
    assert len(kinds(hooked, "call_proposed")) == 1
    (outcome,) = kinds(hooked, "outcome")
    if first != "closed":
        assert SAID in str(outcome)
        if "updatedInput" in allowed.out:
            assert hooked.exec(exec_words(allowed)).code != 0
    assert hooked.outcomes()[1][0] in ("failed", "denied", "refused", "not_run")


@all_rows("command", ["ls", "touch x", "cat .env"], fresh=True)
def test_second_hook_with_the_same_policy_repeats_the_answer(command: str, hooked: Hooked) -> None:
    data = hooked.event(command=command)
    first = hooked.hook(data)
    assert hooked.hook(data) == first
    assert len(kinds(hooked, "call_proposed")) == 1
    if "updatedInput" in first.out and "deny" not in first.out:
        words = exec_words(first)
        assert hooked.exec(words).code == 0
        assert hooked.exec(words).code != 0


def test_hooks_side_by_side_judge_each_call_once(hooked: Hooked) -> None:
    processes = [hooked.start(*flags(hooked, name)) for _ in range(4) for name in ("open", "same")]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(hooked.event(use_id=f"c{number // 2}"))
        process.stdin.close()
        process.stdin = None
    answers = [finished(process) for process in processes]
    assert all(answers[number] == answers[number + 1] for number in range(0, 8, 2))
    assert len(kinds(hooked, "call_proposed")) == 4


def test_call_of_another_content_or_after_the_outcome_is_judged(hooked: Hooked) -> None:
    use = {"tool_name": "Read", "use_id": "c1"}
    hooked.hook(hooked.event(**use, tool_input={"file_path": "f.txt"}))
    hooked.hook(hooked.event(**use, tool_input={"file_path": "g.txt"}))
    assert len(kinds(hooked, "call_proposed")) == 2
    for _ in range(2):
        hooked.hook(hooked.event("PostToolUse", **use, tool_input={"file_path": "g.txt"}, tool_response="x"))
    assert kinds(hooked, "outcome") == ["x"]
    hooked.hook(hooked.event(**use, tool_input={"file_path": "g.txt"}))
    assert len(kinds(hooked, "call_proposed")) == 3


def test_two_hooks_record_once_that_something_ran_unjudged(hooked: Hooked) -> None:
    hooked.hook(hooked.event(use_id="c1"))
    for _ in range(2):
        hooked.hook(hooked.event("PostToolUse", use_id="c9", command="touch x", tool_response={}))
    assert len(kinds(hooked, "ran_unjudged")) == 1
    for _ in range(2):
        hooked.hook(hooked.event("SessionEnd"))
    assert len(kinds(hooked, "session_ended")) == 1


def test_prompt_is_recorded_once_by_two_hooks_and_stopped_by_two_policies(hooked: Hooked) -> None:
    data = hooked.event("UserPromptSubmit", prompt="go on")
    for name in ("open", "same", "same", "open", "open"):
        assert hooked.hook(data, *flags(hooked, name)).out == ""
    assert kinds(hooked, "user_message") == ["go on"] * 3
    done = hooked.hook(data, *flags(hooked, "closed"))
    assert json.loads(done.out)["decision"] == "block"
    assert SAID in json.loads(done.out)["reason"]


def test_session_of_an_agent_without_names_of_calls_stops(hooked: Hooked) -> None:
    fields = {"session_id": "S", "cwd": str(hooked.workspace), "hook_event_name": "BeforeTool"}
    data = json.dumps({**fields, "tool_name": "run_shell_command", "tool_input": {"command": "ls"}}).encode()

    def asked(name: str) -> str:
        process = hooked.program.start("hook", "gemini", *flags(hooked, name), stdin=-1)
        return str(finished(process, data).out)

    asked("open")
    for name in ("closed", "open"):
        said = json.loads(asked(name))
        assert (said["decision"], SAID in said["reason"]) == ("deny", True)
    assert not [*Path(hooked.program.state).glob("harness/agents/gemini-*/tickets/*")]
    if enforces(probe()):
        assert SAID in str(kinds(hooked, "outcome")[0])
