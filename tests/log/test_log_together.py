"""Many runs in one state folder, and clocks that are set: nothing lost, nothing mixed, and the order stays right."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from log_auditor import audited
from log_scene import append_filled
from log_world import World, eventful
from places import ROOT
from rows import all_rows
from sizes import proof_size

from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.messages import StopReason
from harness.models.scripted import Reply, call, replies, say

if TYPE_CHECKING:
    from program import Program

RUNS = proof_size("RUNS", 6, full=16)
CALLS = 5
HOUR = 3600.0

POLICY = """
version = 1
[tools]
bash = "deny"
[[rule]]
id = "echo"
decision = "auto"
argv = ["echo", "..."]
"""


def test_concurrent_runs_keep_their_logs_intact(program: Program) -> None:
    """Many processes of the program: as many logs, each whole, each against its own head, each of its own run alone."""
    policy = program.home / "policy.toml"
    policy.write_text(POLICY)
    running = []
    for number in range(RUNS):
        script = replies(
            *(Reply(calls=(call("bash", command=f"echo run{number:02d} call{place}"),)) for place in range(CALLS)),
            say(f"run{number:02d} is done"),
        )
        arguments = ("run", f"go run{number:02d}", "--base-url", program.serve(script), "--policy", str(policy))
        running.append(program.start(*arguments))
    told = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * RUNS, told
    assert sorted(out for out, _ in told) == [f"run{number:02d} is done\n".encode() for number in range(RUNS)]
    logs = program.logs()
    assert len(logs) == RUNS
    seen = [check_one(path) for path in logs]
    assert sorted(seen) == [f"run{number:02d}" for number in range(RUNS)]
    check_heads(program, logs)
    done = program.run("audit", "verify", "--all", "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, len(found)) == (0, RUNS), done.out
    assert {one["verdict"] for one in found} == {"whole"}
    listed = [json.loads(line) for line in program.run("audit", "list", "--json").out.splitlines()]
    assert len(listed) == RUNS


def check_one(path: Path) -> str:
    """Return which run a log is of; it holds all of that one, and nothing of any other."""
    audit = audited(str(path))
    assert (audit.breaches, audit.unknown, audit.open, len(audit.sessions)) == ([], set(), set(), 1)
    mentioned = {f"run{number:02d}" for number in range(RUNS) if f"run{number:02d}" in path.read_text()}
    assert len(mentioned) == 1
    outcomes = [record for record in audit.records if record["kind"] == "outcome"]
    (name,) = mentioned
    assert [record["content"].split("\n")[0] for record in outcomes] == [
        f"{name} call{place}" for place in range(CALLS)
    ]
    return name


def check_heads(program: Program, logs: list[Path]) -> None:
    """Every line of the heads file is whole, and the last one of each log is its end."""
    notes = [json.loads(line) for line in (program.state / "harness" / "heads.jsonl").read_text().splitlines()]
    last = {note["file"]: note for note in notes}
    assert set(last) == {str(path) for path in logs}
    for path in logs:
        audit, note = audited(str(path)), last[str(path)]
        assert (note["closed"], note["records"], note["head"]) == (True, len(audit.records), audit.head)


def test_a_second_run_on_the_same_log_is_refused_and_leaves_it_as_it_is(program: Program) -> None:
    """One writer: exit 8, and the first goes on."""
    path = program.home / "one.jsonl"
    log = ActionLog.open(str(path))
    append_filled(log, [("session_started", {})])
    before = path.read_bytes()
    done = program.run("run", "go", "--base-url", program.serve(replies(say("done"))), "--log", str(path))
    assert (done.code, "in use by another process" in done.err, path.read_bytes()) == (8, True, before)
    append_filled(log, [("session_ended", {})])
    log.close()
    assert (verify(str(path)).problem, verify(str(path)).records) == ("", 2)


# --- clocks ----------------------------------------------------------------------------------------------------------


def stepping(steps: dict[int, float]) -> Callable[[], float]:
    """Return a clock that is set by so many seconds before its so manieth reading."""

    def readings() -> Iterator[float]:
        now, number = 1_700_000_000.0, 0
        while True:
            number += 1
            now += 0.01 + steps.get(number, 0.0)
            yield now

    clock = readings()
    return lambda: next(clock)


STEPS: dict[str, dict[int, float]] = {
    "an hour forward": {20: HOUR},
    "an hour back": {20: -HOUR},
    "back and forth": {10: HOUR, 30: -2 * HOUR, 45: HOUR},
    "at every record": {number: (-1) ** number * HOUR for number in range(1, 70)},
    "before 1970": {5: -1_700_003_600.0},
}


@all_rows("steps", STEPS.values(), ids=STEPS)
def test_a_clock_that_is_set_in_the_middle_of_a_run_changes_no_order(tmp_path: Path, steps: dict[int, float]) -> None:
    """The records stand in the order in which they were written, the monotonic clock agrees, and verify finds nothing."""
    world = eventful(str(tmp_path), clock=stepping(steps))
    assert world.play().stop is StopReason.COMPLETED
    head = world.log.head
    world.log.close()
    found, audit = verify(world.path, head), audited(world.path)
    assert (found.problem, found.records, found.head, found.passed_head) == ("", len(audit.records), head, True)
    assert (audit.breaches, audit.unknown, audit.open) == ([], set(), set())
    ticks = [record["mono_ns"] for record in audit.records]
    times = [record["time"] for record in audit.records]
    assert ticks == sorted(ticks)
    assert (times == sorted(times)) == (min(steps.values()) > 0), "the clock was not set back"


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["an hour forward", "an hour back"])
def test_shown_run_keeps_its_order_despite_clock_jumps(program: Program, tmp_path: Path, step: float) -> None:
    """`show` in the order of the file; `verify` finds nothing; no duration is negative."""
    world = eventful(str(tmp_path / "world"), clock=stepping({20: step}))
    world.play()
    head = world.log.head
    world.log.close()
    done = program.run("audit", "verify", world.path, "--head", head)
    assert done.code == 0, done.out
    shown = [json.loads(line) for line in program.run("audit", "show", world.path, "--json").out.splitlines()]
    calls = [record["call"] for record in shown if record.get("kind") == "call_proposed"]
    assert calls == sorted(calls)
    assert len(calls) == 12
    for question in ("show", "approvals", "stats", "files", "unknown", "denied"):
        done = program.run("audit", question, world.path)
        assert (done.code, done.err) == (0, "")
        assert not any(word.startswith("-") and word[1:2].isdigit() for word in done.out.split()), done.out


def test_backward_monotonic_clock_is_found(tmp_path: Path) -> None:
    """Which no system's does: records were put into another order, and their hashes made right."""
    ticks = iter([10, 20, 19])
    log = ActionLog.open(str(tmp_path / "log.jsonl"), monotonic_ns=lambda: next(ticks))
    append_filled(log, [("session_started", {}), ("user_message", {}), ("session_ended", {})])
    log.close()
    found = verify(log.path)
    assert (found.broken_line, found.problem) == (
        3, "was written before the one before it, by the monotonic clock of its session",
    )  # fmt: skip


def test_sessions_of_one_file_may_come_from_different_boots(tmp_path: Path) -> None:
    """The monotonic clock begins anew with each: only within a session it says something."""
    path = ""
    for start in (10**15, 5):
        ticks = itertools.count(start)
        world = World(str(tmp_path), [], monotonic_ns=lambda ticks=ticks: next(ticks))
        assert world.play().stop is StopReason.COMPLETED
        world.log.close()
        path = world.path
    assert (verify(path).problem, audited(path).breaches) == ("", [])
    assert min(record["mono_ns"] for record in read_log(path) if isinstance(record["mono_ns"], int)) == 5


def test_the_bench_of_the_log_runs_and_its_long_log_is_whole(tmp_path: Path) -> None:
    """Small, so that only what it prints is looked at, and not the figures."""
    root = Path(ROOT)
    command = [sys.executable, str(root / "bench" / "log.py"), "--calls", "5", "--megabytes", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()[1:]]
    assert "two synced records, judged" in rows
    assert any(row.startswith("verify, 1 MB") for row in rows)
    assert "NOT WHOLE" not in done.stdout
