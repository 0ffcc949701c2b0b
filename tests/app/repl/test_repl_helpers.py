"""Helpers at the prompt: a question says which of them asks, /cost and /context show them, and Ctrl-C ends both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from git_scene import run_git
from repl_scene import Prompt, Start, prompts
from screen_scene import CTRL_C
from task_server import TaskServer

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

POLICY = 'version = 1\n[tools]\ndelegate = "auto"\nread_file = "auto"\nbash = "confirm"\n'
DONE = Reply(text="Done.")
WRITES = Reply(calls=(call("delegate", task="tidy\x1b[2J up", policy="same"),))
READS = Reply(calls=(call("delegate", task="look around"),))
MAKES = Reply(calls=(call("bash", command="touch made"),))


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def named(program: Program) -> tuple[str, str]:
    (program.workspace / "a.txt").write_text("old\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        assert run_git(program.workspace, *words).returncode == 0
    path = program.home / "policy.toml"
    path.write_text(POLICY)
    return "--policy", str(path)


def asked(prompt: Prompt) -> None:
    prompt.wait_for("bash asks for helper 1 (tidy\\x1b[2J up)")
    prompt.wait_keys()


def test_question_of_a_helper_is_marked_and_its_cost_shown(program: Program, start: Start) -> None:
    prompt = start(replies(WRITES, MAKES, DONE, Reply(text="All done.")), *named(program))
    prompt.type("go")
    asked(prompt)
    prompt.send("y")
    prompt.wait_for("All done.")
    prompt.wait_prompt()
    assert not (program.workspace / "made").exists()
    prompt.say("/cost", "of these helper 1 (tidy\\x1b[2J up): 400 tokens in, 40 out")
    prompt.say("/context", "helper 1 (tidy\\x1b[2J up) had a conversation of its own: 220 tokens at its last reply")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


def test_ctrl_c_at_a_question_of_a_helper_ends_both(program: Program, start: Start) -> None:
    prompt = start(replies(WRITES, MAKES, DONE), *named(program))
    prompt.type("go")
    asked(prompt)
    prompt.send(CTRL_C)
    prompt.wait_count("tokens in, ", 1)
    assert len(program.players[0].requests) == 2
    prompt.ask("hello", "Done.")
    assert prompt.leave() == 0
    ends = [record["stop"] for record in program.records() if record["kind"] == "session_ended"]
    assert ends == ["interrupted", "completed"]
    assert [record["status"] for record in program.records() if record["kind"] == "outcome"] == [
        "denied",
        "interrupted",
    ]


def test_one_of_several_helpers_asks_while_the_others_wait(program: Program, start: Start) -> None:
    """All three are at work when it asks; what the others do meanwhile is not shown before the answer."""
    (program.home / "other.txt").write_text("plum\n")
    reads = Reply(calls=(call("read_file", path=str(program.home / "other.txt")),))
    tasks = ("one", "two", "three")
    three = Reply(calls=tuple(call("delegate", task=task) for task in tasks))
    server = TaskServer(
        {
            "go": (three, DONE),
            "one": (Reply(text="1."),),
            "two": (reads, Reply(text="2.")),
            "three": (Reply(text="3."),),
        },
        together=tasks,
    )
    url = program.serving(server)
    prompt = start(replies(), "--base-url", url, *named(program))
    prompt.type("go")
    prompt.wait_for("read_file asks for helper 2 (two)")
    prompt.wait_keys()
    shown = prompt.unwrapped()
    prompt.send("y")
    prompt.wait_for("Done.")
    prompt.wait_prompt()
    assert prompt.unwrapped().count("helper 2  + read_file") == 1
    assert "helper 2  + read_file" not in shown
    assert prompt.leave() == 0
    outcomes = [(one["tool"], one["status"]) for one in program.records() if one["kind"] == "outcome"]
    assert sorted(map(str, outcomes)) == sorted(map(str, [("read_file", "ok"), *[("delegate", "ok")] * 3]))
    assert program.run("audit", "verify").code == 0


def test_plan_mode_limits_helpers_to_reading(program: Program, start: Start) -> None:
    prompt = start(replies(WRITES, READS, Reply(text="Nothing there."), Reply(text="Is it so?")), *named(program))
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.type("go")
    prompt.wait_for("Is it so?")
    prompt.wait_prompt()
    assert "Plan mode is on: helpers only read." in prompt.unwrapped()
    assert prompt.leave() == 0
    assert [record["status"] for record in program.records() if record["kind"] == "outcome"] == ["denied", "ok"]
