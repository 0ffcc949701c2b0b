"""Background commands at the prompt: their number, /jobs, and the line about an end that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Start, prompts

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

POLICY = 'version = 1\n[tools]\nbash = "auto"\njob = "auto"\n'
DONE = Reply(text="Done.")


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def begin(name: str, command: str) -> Reply:
    return Reply(calls=(call("bash", command=command, background=True, name=name),))


def test_jobs_are_counted_listed_stopped_and_told_of(program: Program, start: Start) -> None:
    path = program.home / "policy.toml"
    path.write_text(POLICY)
    begun = (
        begin("dies", "until test -e go; do sleep 0.05; done; exit 3"),
        begin("dev", "echo ready; exec sleep 100000"),
    )
    prompt = start(replies(*begun, DONE, DONE), "--policy", str(path))
    prompt.ask("go", "Done.")
    prompt.wait_for("started in the background as dev")
    prompt.wait_for("2 jobs")
    prompt.type("/jobs dev")
    prompt.wait_for("| ready")
    prompt.wait_for("dev is running, ")
    (program.workspace / "go").touch()
    prompt.wait_for("~ dies ended in the background: exit 3")  # nobody pressed a key
    prompt.wait_for("1 job ")
    prompt.type("/jobs stop dev")
    prompt.wait_for("dev ended: stopped by the person")
    prompt.type("/jobs nobody")
    prompt.wait_for("No command runs in the background as 'nobody'. The names of this session: dies, dev.")
    prompt.ask("and?", "Done.")
    assert prompt.leave() == 0
    ends = [(record["name"], record["by"]) for record in program.records() if record["kind"] == "job_ended"]
    assert ends == [("dies", "itself"), ("dev", "person")]
    told = [record["text"] for record in program.records() if record.get("by") == "harness"]
    assert [str(text).partition(",")[2].partition(",")[0] for text in told] == [
        " dies ended: exit code 3",
        " dev ended: stopped by the person",
    ]
    assert program.run("audit", "verify", str(program.logs()[0])).code == 0


def test_jobs_go_on_in_the_session_that_continues_this_one(program: Program, start: Start) -> None:
    path = program.home / "policy.toml"
    path.write_text(POLICY)
    prompt = start(replies(begin("dev", "echo ready; exec sleep 100000"), DONE), "--policy", str(path))
    prompt.ask("go", "Done.")
    prompt.type("/fork")
    prompt.type("/jobs")
    prompt.wait_for("dev is running, ")
    assert prompt.leave() == 0
    end_rows = prompt.text().partition("~ ended with the session: dev\n")[2]
    assert "`harness -c` with the same flags goes on with this conversation\n" in end_rows
    assert "head:" not in end_rows
    records = program.records()
    (end,) = [record for record in records if record["kind"] == "job_ended"]
    assert (end["by"], end["session"]) == ("session", records[-1]["session"])
    assert (end["of_session"], end["call"]) == (records[0]["session"], 1)
    assert records[0]["session"] != records[-1]["session"]
