"""Helpers through the whole program: what they are given, what comes back, what they count, and what a hostile one gets."""

from __future__ import annotations

from typing import Any

from program import Program
from rows import all_rows
from run_scene import flags_of

from harness.log.verify import verify
from harness.models.scripted import Reply, call, replies, say
from policies import AUTO

HELPERS = AUTO.replace("[tools]\n", '[tools]\ndelegate = "auto"\n')


def delegate(task: str = "Look at a.txt", **more: Any) -> Reply:
    return Reply(calls=(call("delegate", task=task, **more),))


def bash(command: str) -> Reply:
    return Reply(calls=(call("bash", command=command),))


def read(path: str) -> Reply:
    return Reply(calls=(call("read_file", path=path),))


def asked(program: Program) -> list[Any]:
    """Return the requests that the model got."""
    return [request for player in program.players for request in player.requests]


def statuses(program: Program) -> list[tuple[object, object]]:
    return [(one["tool"], one["status"]) for one in program.records() if one["kind"] == "outcome"]


def run(program: Program, *script: Reply, rules: str = HELPERS, flags: tuple[str, ...] = ()) -> Any:
    url = program.serve(replies(*script))
    ended = program.run("run", "go", *flags_of(program, url, rules), *flags)
    (log,) = program.logs()
    assert verify(str(log)).problem == ""
    return ended


def test_a_helper_begins_afresh_and_its_answer_comes_back(program: Program) -> None:
    (program.workspace / "a.txt").write_text("the word is plum\n")
    ended = run(program, delegate(), read("a.txt"), say("It is plum."), say("Plum, says the helper."))
    assert ended.code == 0, ended.err
    parent, first, _, last = asked(program)
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "Look at a.txt"
    assert "You are a helper" in first["messages"][0]["content"]
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert "delegate" in {tool["function"]["name"] for tool in parent["tools"]}
    assert "delegate" not in offered
    assert "read_file" in offered
    told = last["messages"][-1]["content"]
    assert told.startswith("[helper 1: completed; turns: 2")
    assert told.endswith("It is plum.")
    assert statuses(program) == [("read_file", "ok"), ("delegate", "ok")]
    starts = [one for one in program.records() if one["kind"] == "session_started"]
    assert [one.get("parent") for one in starts] == [None, starts[0]["session"]]
    assert (starts[1]["parent_call"], starts[1]["helper"], starts[1]["mode"]) == (1, 1, "helper")
    ends = [one for one in program.records() if one["kind"] == "session_ended"]
    assert [one["session"] for one in ends] == [starts[1]["session"], starts[0]["session"]]


HOSTILE = {
    "it writes": (Reply(calls=(call("write_file", path="new", content="x"),)), "denied"),
    "it writes by a command": (bash("echo x > new"), "denied"),
    "it runs what may do anything": (bash('python3 -c \'open("new", "w")\''), "denied"),
    "it fills the disk": (bash("head -c 100000000 /dev/zero > new"), "denied"),
    "it asks for helpers": (delegate("and you another"), "invalid"),
    "it reads what nobody may": (read("/etc/shadow"), "denied"),
}


@all_rows("wanted, status", HOSTILE, fresh=True)
def test_a_helper_that_reads_gets_no_more_than_that(program: Program, wanted: Reply, status: str) -> None:
    before = sorted(path.name for path in program.workspace.iterdir())
    ended = run(program, delegate(), wanted, say("I could not."), say("Well."))
    assert statuses(program)[0] == (wanted.calls[0].name, status), ended.err
    assert statuses(program)[1] == ("delegate", "ok")
    assert sorted(path.name for path in program.workspace.iterdir()) == before
