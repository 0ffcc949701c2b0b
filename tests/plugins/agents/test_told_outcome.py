"""What the log says where an agent tells of a call that was not allowed so, and what follows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hook_process import Hooked
from hook_scene import HookScene, word_of
from program import Program
from rows import all_rows

from harness.app.run.facts import RunFacts
from harness.app.run.reported import ReportedRun
from harness.plugins.reports.sarif import report
from harness.policy.loader import load_policy
from harness.record import replace
from harness.sandbox import enforces, probe

ROWS = [
    tuple(part.strip() for part in line.split("|"))
    for line in Path(__file__).with_name("told.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
COMMANDS = frozenset(("command", "args"))


def sent(agent: str, when: str, tool: str, arguments: Mapping[str, Any], scene: HookScene, use: str = "c1") -> bytes:
    """Return an event in the form of an agent; `when` is `before` or `after`."""
    after = when == "after"
    where = str(scene.workspace)
    match agent:
        case "opencode":
            fields = {
                "when": when,
                "tool": tool,
                "sessionID": "S",
                "callID": use,
                "args": arguments,
                "directory": where,
            }
        case "copilot":
            fields = {"sessionId": "S", "cwd": where, "toolName": tool, "toolArgs": arguments}
            fields |= {"toolResult": {"resultType": "success"}} if after else {}
        case _:
            tools = "Tool" if agent == "gemini" else "ToolUse"
            name = f"After{tools}" if after else f"Before{tools}"
            name = name if agent == "gemini" else f"{'Post' if after else 'Pre'}{tools}"
            fields = {
                "session_id": "S",
                "transcript_path": str(scene.transcript),
                "cwd": where,
                "hook_event_name": name,
                "tool_name": tool,
                "tool_input": arguments,
                **({"tool_use_id": use} if agent != "gemini" else {}),
                **({"tool_response": {}} if after else {}),
            }
    return json.dumps(fields).encode()


def ours(stdout: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments in an answer of ours, or `arguments` if it has none."""
    answer = json.loads(stdout or "{}")
    inner = answer.get("hookSpecificOutput", {})
    found: Mapping[str, Any] = (
        answer.get("modifiedArgs")
        or answer.get("args")
        or inner.get("updatedInput")
        or inner.get("tool_input")
        or arguments
    )
    return found


def parsed(text: str) -> tuple[str, dict[str, Any]]:
    tool, _, arguments = text.partition(" ")
    return tool, json.loads(arguments)


@all_rows("agent,asked,told,why", ROWS, ids=" ".join)
def test_outcome_of_another_call_than_the_allowed_one_is_noticed(
    agent: str, asked: str, told: str, why: str, tmp_path: Path
) -> None:
    scene = HookScene(tmp_path, load_policy("default"), agent=agent)
    (scene.workspace / "f.txt").write_text("alpha\n")
    (scene.workspace / ".env").write_text("X=1\n")
    tool, arguments = parsed(asked)
    reply = scene.send(sent(agent, "before", tool, arguments, scene))
    if told == "same" and why == "changed" and not enforces(probe()):
        pytest.skip("no walls: the command stays as it is")
    told_tool, told_arguments = parsed(told) if told not in ("same", "ours") else (tool, arguments)
    if told == "ours":
        told_arguments = dict(ours(reply.stdout, arguments))
    assert scene.send(sent(agent, "after", told_tool, told_arguments, scene)).stdout == ""
    records = scene.records()
    found = [record for record in records if record["kind"] == "ran_unjudged"]
    assert [record["why"] for record in found] == ([why] if why else [])
    assert "Nothing was done" not in json.dumps(records)
    following = scene.send(sent(agent, "before", tool, {**arguments}, scene, use="c2"))
    stopped = "harness did not allow" in f"{following.stdout}{following.stderr}"
    assert stopped == bool(why)
    if found:
        assert (found[0]["call"], json.loads(str(found[0]["arguments"])), found[0]["stops"]) == (
            1,
            told_arguments,
            True,
        )


def test_call_that_was_never_judged_is_noticed(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    assert word_of(scene.event("PreToolUse", "Read", {"file_path": "f.txt"})) == "allow"
    scene.event("PostToolUse", "Bash", {"command": "touch x"}, use_id="c9", tool_response={})
    last = scene.records()[-1]
    assert (last["kind"], last["why"], last["tool"]) == ("ran_unjudged", "unknown", "Bash")
    assert "call" not in last


def test_call_that_ran_before_any_was_judged_begins_the_log(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    scene.event("PostToolUse", "TodoWrite", {"todos": []}, tool_response={})
    assert scene.records() == []
    scene.event("PostToolUse", "Bash", {"command": "touch x"}, tool_response={})
    last = scene.records()[-1]
    assert (last["kind"], last["why"], last["tool"], last["stops"]) == ("ran_unjudged", "unknown", "Bash", False)
    assert word_of(scene.event("PreToolUse", "Read", {"file_path": "f.txt"}, use_id="c2")) == "allow"


def test_outcome_after_the_end_of_its_session_begins_no_other(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    scene.event("PreToolUse", "Read", {"file_path": "f.txt"})
    scene.event("SessionEnd")
    scene.event("PostToolUse", "Read", {"file_path": "f.txt"}, tool_response="x")
    assert scene.records()[-1]["kind"] == "session_ended"


def test_call_that_was_replaced_is_not_said_to_have_never_begun(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    scene.event("PreToolUse", "Bash", {"command": "ls"})
    scene.event("PostToolUse", "Bash", {"command": "cat .env"}, tool_response={})
    scene.event("SessionEnd")
    kinds = [str(record["kind"]) for record in scene.records()]
    assert kinds[-4:] == ["intent", "ran_unjudged", "outcome", "session_ended"]
    outcome = scene.records()[-2]
    assert outcome["content"] == "It did not run: the agent ran something else in its place."
    assert scene.records()[-1]["stop"] == "blocked"


def test_call_without_a_name_is_not_said_to_be_replaced_by_another(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"), agent="gemini")
    (scene.workspace / "f.txt").write_text("alpha\n")
    read = ("read_file", {"file_path": "f.txt"})
    scene.send(sent("gemini", "before", *read, scene))
    scene.send(sent("gemini", "after", "read_file", {"file_path": "other.txt"}, scene))
    scene.send(sent("gemini", "after", *read, scene))
    ends = [(record["call"], record["status"]) for record in scene.records() if record["kind"] == "outcome"]
    assert ends == [(1, "ok")]


def test_outcome_of_a_name_that_comes_again_is_that_of_the_last_call(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    for name in ("f.txt", "g.txt"):
        assert word_of(scene.event("PreToolUse", "Read", {"file_path": name})) == "allow"
    scene.event("PostToolUse", "Read", {"file_path": "g.txt"}, tool_response="x")
    assert [record["call"] for record in scene.records() if record["kind"] == "outcome"] == [2]


def test_session_goes_on_where_the_person_only_wants_a_warning(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    scene.parts = replace(scene.parts, stops_unjudged=lambda workspace: False)
    scene.event("PreToolUse", "Bash", {"command": "ls"})
    scene.event("PostToolUse", "Bash", {"command": "cat .env"}, tool_response={})
    assert word_of(scene.event("PreToolUse", "Read", {"file_path": "f.txt"}, use_id="c2")) == "allow"
    (found,) = (record for record in scene.records() if record["kind"] == "ran_unjudged")
    assert found["stops"] is False


def test_configuration_says_whether_the_session_stops(program: Program) -> None:
    hooked = Hooked(program)
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[agents]\nunjudged = "warn"\n')
    config.chmod(0o600)
    hooked.words("ls")
    hooked.hook(hooked.event("PostToolUse", command="cat .env", tool_response={}))
    hooked.words("ls", use_id="c2")


def test_broken_configuration_hides_no_call_that_was_not_allowed(program: Program) -> None:
    hooked = Hooked(program)
    hooked.words("ls")
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[agents\n")
    hooked.hook(hooked.event("PostToolUse", command="cat .env", tool_response={}))
    assert [record["stops"] for record in hooked.records() if record["kind"] == "ran_unjudged"] == [True]


def test_reports_name_a_call_that_was_not_allowed(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    scene.event("PreToolUse", "Bash", {"command": "ls"})
    scene.event("PostToolUse", "Bash", {"command": "cat .env"}, tool_response={})
    facts = RunFacts()
    for record in scene.records():
        facts.record(record)
    run = ReportedRun(name="", facts=facts, result={"end": "completed"})
    (told,) = json.loads("".join(report([run], with_answer=False)))["runs"]
    notes = [note["message"]["text"] for note in told["invocations"][0]["toolExecutionNotifications"]]
    assert any(note.startswith("ran, and was not allowed: Bash ") and "cat .env" in note for note in notes)


def test_change_by_the_person_at_the_prompt_is_theirs(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"))
    edit = {"file_path": str(scene.workspace / "new.txt"), "content": "x"}
    assert word_of(scene.event("PreToolUse", "Write", edit)) == "ask"
    (scene.workspace / "new.txt").write_text("mine")
    scene.event("PostToolUse", "Write", {**edit, "content": "mine"}, tool_response={"userModified": True})
    assert [record["kind"] for record in scene.records()][-2:] == ["intent", "outcome"]


def test_server_that_claims_such_a_change_hides_no_other_call(tmp_path: Path) -> None:
    """The response of a server's tool is the server's own."""
    scene = HookScene(tmp_path, load_policy("default"))
    assert word_of(scene.event("PreToolUse", "mcp__srv__act", {"note": "x"})) == "ask"
    scene.event("PostToolUse", "mcp__srv__act", {"note": "other"}, tool_response={"userModified": True})
    assert [record["kind"] for record in scene.records()].count("ran_unjudged") == 1


def test_audit_says_first_that_something_ran_unjudged(program: Program, tmp_path: Path) -> None:
    hooked = Hooked(program)
    hooked.words("ls")
    hooked.hook(hooked.event("PostToolUse", command="cat .env", tool_response={}))
    refused = hooked.hook(hooked.event(command="ls", use_id="c2"))
    assert "did not allow" in refused.out
    hooked.hook(hooked.event("SessionEnd"))
    (log,) = program.logs()
    shown = program.run("audit", "show", str(log))
    assert shown.err.startswith(f"harness: {log}: 1 call ran that harness did not allow")
    assert (
        "claude ran another call than the one that was allowed (call 1); the session was stopped: "
        'Bash {"command": "cat .env"}' in shown.out
    )
    verified = program.run("audit", "verify", str(log))
    assert (verified.code, verified.out.splitlines()[0][:10]) == (3, "UNJUDGED: ")
    assert "Not proved: " in verified.out
    assert "that all that ran was judged: 1 call ran unjudged" in verified.out
    page = tmp_path / "page.html"
    assert program.run("audit", "report", str(log), "-o", str(page)).code == 0
    assert "<strong>!! 1 call</strong> of another agent ran, and was not allowed" in page.read_text()
    assert "?? 1 call" not in page.read_text()
    chosen = program.run("audit", "show", "--tool", "Bash", str(log)).out
    assert "!! claude ran another call than the one that was allowed (call 1); the session was stopped: Bash" in chosen
    assert len(program.run("audit", "show", "--tool", "Bash", "--json", str(log)).out.splitlines()) == 1
    others = program.run("audit", "diff", str(log), str(log)).out
    assert "3 calls are the same" in others
    assert "NOT ALLOWED: 1 calls that another agent ran" in program.run("audit", "stats", str(log)).out


@all_rows("event, runs", [("PostToolUseFailure", False), ("PostToolUse", True)])
def test_an_agent_may_tell_of_a_refusal_as_of_a_failure(event: str, runs: bool, tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"), agent="kimi")
    (scene.workspace / ".env").write_text("X=1\n")
    scene.event("PreToolUse", "Read", {"path": ".env"}, tool_call_id="c1")
    scene.event(event, "Read", {"path": ".env"}, tool_call_id="c1")
    assert ("ran_unjudged" in [record["kind"] for record in scene.records()]) == runs
