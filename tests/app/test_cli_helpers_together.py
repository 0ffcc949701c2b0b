"""Several helpers of one reply at once: they only read; results, limits, a block and an interrupt hold as for one."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from program import Program
from run_scene import flags_of, wait_until
from task_server import TaskServer

from harness.log.verify import verify
from harness.models.scripted import Reply, call, say
from policies import AUTO

HELPERS = AUTO.replace("[tools]\n", '[tools]\ndelegate = "auto"\n')
THREE = Reply(calls=tuple(call("delegate", task=task) for task in ("one", "two", "three")))
TASKS = {"one", "two", "three"}


def read(path: str) -> Reply:
    return Reply(calls=(call("read_file", path=path),))


def run(program: Program, server: TaskServer, *flags: str, rules: str = HELPERS) -> Any:
    ended = program.run("run", "go", *flags_of(program, program.serving(server), rules), *flags)
    (log,) = program.logs()
    assert verify(str(log)).problem == ""
    return ended


def told(server: TaskServer) -> list[str]:
    """Return the results of calls that the model read last."""
    messages: Any = server.players["go"].requests[-1]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_parallel_helpers_return_results_in_call_order(program: Program) -> None:
    """The first answers wait until all three have asked."""
    (program.workspace / "a.txt").write_text("plum\n")
    answers = {task: (read("a.txt"), say(f"{task} says plum.")) for task in TASKS}
    server = TaskServer({"go": (THREE, say("All say plum.")), **answers}, together=TASKS)
    ended = run(program, server)
    assert ended.code == 0, ended.err
    assert [text.partition(";")[0] for text in told(server)] == [f"[helper {n}: completed" for n in (1, 2, 3)]
    assert [text.rpartition("\n")[2] for text in told(server)] == [
        "one says plum.", "two says plum.", "three says plum.",
    ]  # fmt: skip
    helpers = json.loads(ended.out)["helpers"]
    assert sorted((one["task"], one["end"], one["turns"]) for one in helpers) == [
        (task, "completed", 2) for task in sorted(TASKS)
    ]
    records = program.records()
    starts = {one["session"]: one for one in records if one["kind"] == "session_started"}
    numbers = {(one["parent_call"], one["helper"]) for one in starts.values() if "parent" in one}
    assert numbers == {(1, 1), (2, 2), (3, 3)}
    parent = next(name for name, one in starts.items() if "parent" not in one)
    of_parent = [f"{one['kind']} {one['call']}" for one in records if "call" in one and one["session"] == parent]
    assert [one for one in of_parent if one.startswith("outcome")] == ["outcome 1", "outcome 2", "outcome 3"]
    assert all(f"helper {number}  completed, 2 requests" in ended.err for number in (1, 2, 3))


def test_three_helpers_get_a_quarter_of_the_remaining_limits_each(program: Program) -> None:
    reads = tuple(read(f"{number}.txt") for number in range(9))
    server = TaskServer({"go": (THREE, say("Well.")), **dict.fromkeys(TASKS, reads)}, together=TASKS)
    ended = run(program, server, "--max-turns", "13")
    assert ended.code == 0, ended.err
    assert all("3 requests were made (turns = 3)" in text for text in told(server))
    assert json.loads(ended.out)["turns"] == 11


def test_refusals_of_helpers_are_counted_and_reported(program: Program) -> None:
    """Each gets a quarter of the refusals that are left, and at least one; together they end the run."""
    writes = tuple(Reply(calls=(call("write_file", path=f"{n}.txt", content="x"),)) for n in range(9))
    rules = f"{HELPERS}[limits]\nrefusals = 3\n"
    server = TaskServer({"go": (THREE, say("Well.")), **dict.fromkeys(TASKS, writes)}, together=TASKS)
    ended = run(program, server, rules=rules)
    assert ended.code == 4, ended.err
    result = json.loads(ended.out)
    assert (result["refused"], result["decisions"]["deny"], result["calls"]) == (3, 3, 6)
    assert "3 calls were refused (refusals = 3)" in result["detail"]
    assert {(one["helper"], one["call"]) for one in result["refusals"]} == {(1, 1), (2, 1), (3, 1)}


def test_a_block_in_one_halts_all(program: Program) -> None:
    """One waits for a model that never answers; the second is begun, and blocked; the third was answered before."""
    blocks = HELPERS + '[[rule]]\nid = "no"\ndecision = "block"\nargv = ["rm"]\nreason = "No rm."\n'
    removes = Reply(calls=(call("bash", command="rm -rf x"),))
    server = TaskServer(
        {"go": (THREE,), "two": (removes,), "three": (say("Three."),)}, together={"two", "three"}, silent="one"
    )
    ended = run(program, server, rules=blocks)
    assert ended.code == 3, ended.err
    assert json.loads(ended.out)["detail"].startswith("in helper 2: ")
    ends = {str(one["stop"]) for one in program.records() if one["kind"] == "session_ended"}
    assert ends >= {"blocked", "interrupted"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_ends_all(program: Program, number: signal.Signals, code: int) -> None:
    """One waits for its model, one for a command; what is written down of both has its end."""
    waits = Reply(calls=(call("bash", command="cat pipe"),))
    os.mkfifo(program.workspace / "pipe")
    server = TaskServer({"go": (THREE,), "two": (waits,), "three": (say("Three."),)}, silent="one")
    process = program.start("run", "go", *flags_of(program, program.serving(server), f"{HELPERS}readers = true\n"))
    wait_until(server.reached_silence.is_set, process)
    wait_until(lambda: _reads(program.workspace / "pipe"), process)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == code
    records = program.records()
    assert sorted(str(one["stop"]) for one in records if one["kind"] == "session_ended")[-3:] == ["interrupted"] * 3
    parent = next(one["session"] for one in records if one["kind"] == "session_started")
    statuses = [one["status"] for one in records if one["kind"] == "outcome" and one["session"] == parent]
    assert statuses[:2] == ["interrupted"] * 2
    (log,) = program.logs()
    assert verify(str(log)).problem == ""


def _reads(pipe: Any) -> bool:
    """Say whether somebody reads a pipe (fifo(7): ENXIO); it is not closed again, so that the reader waits."""
    try:
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    return True


def test_a_recording_has_them_one_after_the_other_and_is_played_again(program: Program) -> None:
    """A cassette has one order."""
    answers = {task: (say(f"{task} it is."),) for task in TASKS}
    server = TaskServer({"go": (THREE, say("Well.")), **answers})
    cassette = str(program.home / "helpers.json")
    assert run(program, server, "--record", cassette).code == 0
    ends = told(server)
    again = program.run("run", "go", *flags_of(program, "http://127.0.0.1:9/v1", HELPERS), "--replay", cassette)
    assert again.code == 0, again.err
    assert json.loads(again.out)["diverged"] == []
    assert [text.rpartition("\n")[2] for text in ends] == ["one it is.", "two it is.", "three it is."]
