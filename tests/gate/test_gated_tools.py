"""Tools behind a gate for the agent of another library: one session, one call at a time, shut for good after a halt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from process_scene import alive, sleep_token, wait_until
from rows import all_rows

from harness.actions import Action
from harness.errors import GateError, LogError
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver, ScriptedAnswers, deny_all
from harness.gate.gate import Gate
from harness.gate.gated_tools import GatedTools
from harness.gate.registry import ToolRegistry
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict
from harness.tools import builtin_tools

token = pytest.fixture(sleep_token)

POLICY = parse_policy(
    b"""
version = 1
name = "embedded"
[tools]
bash = "confirm"
read_file = "auto"
write_file = "deny"
[limits]
refusals = 3
""",
    "embedded.toml",
)


class Place:
    """A workspace, a log outside of it, and gates on both."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        (self.workspace / "a.txt").write_text("one\n")
        self.path = str(folder / "log.jsonl")

    @contextmanager
    def gate(self, approver: Approver = deny_all) -> Iterator[GatedTools]:
        log = ActionLog.open(self.path)
        tools = builtin_tools(Workspace(str(self.workspace)))
        try:
            with GatedTools(tools=tools, policy=POLICY, approver=approver, log=log) as gate:
                yield gate
        finally:
            log.close()

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [dict(record) for record in read_log(self.path) if record["kind"] == kind]

    @property
    def end(self) -> tuple[str, int]:
        """The stop word of the last session, after its log was verified."""
        found = verify(self.path)
        assert (found.problem, found.open_sessions, found.unknown_calls) == ("", (), ())
        return self.records("session_ended")[-1]["stop"], len(found.sessions)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_call_returns_its_result_and_the_block_is_one_session(place: Place) -> None:
    with place.gate(ScriptedAnswers(["y", "n: not today"])) as gate:
        read = gate.call("read_file", {"path": "a.txt"}, call_id="c1")
        asked = gate.call("bash", '{"command": "echo hi > b.txt"}')
        told_no = gate.call("bash", {"command": "rm a.txt"})
        denied = gate.call("write_file", {"path": "c.txt", "content": "x"})
        unknown = gate.call("fly", {})
        assert gate.halted == ""
    assert ("one" in read.content, read.call_id) == (True, "c1")
    assert [
        one.status.value for one in (read, asked, told_no, denied, unknown)
    ] == "ok ok denied denied invalid".split()
    assert "not today" in told_no.content
    assert sorted(path.name for path in place.workspace.iterdir()) == ["a.txt", "b.txt"]
    assert place.end == ("completed", 1)
    (started,) = place.records("session_started")
    assert started["workspace"] == str(place.workspace)


def test_the_gate_stays_shut_after_a_hard_block(place: Place) -> None:
    with place.gate(ScriptedAnswers(["y", "y"])) as gate:
        assert gate.call("bash", {"command": "rm -rf /"}).status is ResultStatus.BLOCKED
        assert "blocked" in gate.halted.lower()
        later = gate.call("read_file", {"path": "a.txt"})
        assert (later.status, "halted earlier" in later.content) == (ResultStatus.NOT_RUN, True)
    assert place.end == ("blocked", 1)


def test_a_person_who_stops_the_turn_shuts_the_gate(place: Place) -> None:
    def stop(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.STOP, by="person")

    with place.gate(stop) as gate:
        gate.call("bash", {"command": "touch b.txt"})
        assert gate.halted == "a person stopped it at a question"
        assert gate.call("bash", {"command": "touch b.txt"}).status is ResultStatus.NOT_RUN
    assert place.end == ("interrupted", 1)


def test_the_limit_of_refusals_shuts_the_gate(place: Place) -> None:
    with place.gate() as gate:
        for name in "abc":
            assert gate.call("bash", {"command": f"touch {name}"}).status is ResultStatus.DENIED
        assert gate.halted == "3 calls were refused (refusals = 3)"
    assert place.end == ("limit", 1)


def test_the_third_refusal_of_the_same_call_shuts_the_gate(place: Place) -> None:
    with place.gate() as gate:
        for _ in range(2):
            assert gate.call("write_file", {"path": "b", "content": ""}).status is ResultStatus.DENIED
            gate.call("read_file", {"path": "a.txt"})
        assert gate.halted == ""
        gate.call("write_file", {"path": "b", "content": ""})
        assert gate.halted == "the same call was refused 3 times"
    assert place.end == ("limit", 1)


def test_leaving_the_block_ends_a_question_of_another_thread(place: Place) -> None:
    asked, never = Event(), Event()

    def wait(action: Action, verdict: Verdict) -> Approval:
        asked.set()
        never.wait()
        return Approval(answer=Answer.YES, by="person")

    with ThreadPoolExecutor(1) as pool:
        with place.gate(wait) as gate:
            running = pool.submit(gate.call, "bash", {"command": "touch late"})
            assert asked.wait(60)
        result = running.result(timeout=60)
    never.set()
    assert (result.status, "before an answer came" in result.content) == (ResultStatus.DENIED, True)
    assert not (place.workspace / "late").exists()
    assert [record["answer"] for record in place.records("approval_answered")] == ["stop"]
    assert place.end == ("interrupted", 1)


def test_an_approver_that_fails_on_another_thread_shuts_the_gate(place: Place) -> None:
    def fail(action: Action, verdict: Verdict) -> Approval:
        raise OSError("the line is down")

    with ThreadPoolExecutor(1) as pool, place.gate(fail) as gate:
        running = pool.submit(gate.call, "bash", {"command": "touch b.txt"})
        with pytest.raises(GateError, match="the line is down"):
            running.result(timeout=60)
    assert place.end == ("gate_error", 1)


def test_a_failing_approver_shuts_the_gate(place: Place) -> None:
    def fail(action: Action, verdict: Verdict) -> Approval:
        raise OSError("the line is down")

    with place.gate(fail) as gate:
        with pytest.raises(GateError, match="the line is down"):
            gate.call("bash", {"command": "touch b.txt"})
        assert gate.call("read_file", {"path": "a.txt"}).status is ResultStatus.NOT_RUN
    assert place.end == ("gate_error", 1)


def test_an_exception_in_the_block_ends_the_session(place: Place) -> None:
    with pytest.raises(ZeroDivisionError), place.gate():
        _ = 1 / 0
    assert place.end == ("internal_error", 1)


def test_stop_from_another_thread_ends_a_running_command(place: Place, token: str) -> None:
    with ThreadPoolExecutor(1) as pool, place.gate(ScriptedAnswers(["y"])) as gate:
        running = pool.submit(gate.call, "bash", {"command": f"sleep {token}"})
        assert wait_until(lambda: bool(alive(token)))
        gate.stop()
        assert running.result(timeout=60).status is ResultStatus.INTERRUPTED
        assert alive(token) == []
        assert gate.call("read_file", {"path": "a.txt"}).status is ResultStatus.NOT_RUN
    assert place.end == ("interrupted", 1)


def test_calls_of_several_threads_run_one_after_the_other(place: Place) -> None:
    with ThreadPoolExecutor(4) as pool, place.gate(ScriptedAnswers(["y"] * 8)) as gate:
        results = list(pool.map(lambda name: gate.call("bash", {"command": f"touch {name}"}), "abcdefgh"))
    assert {result.status for result in results} == {ResultStatus.OK}
    assert place.end == ("completed", 1)


def test_a_log_holds_several_sessions(place: Place) -> None:
    for _ in range(2):
        with place.gate() as gate:
            gate.call("read_file", {"path": "a.txt"})
    assert place.end == ("completed", 2)


def test_a_second_block_on_one_log_is_refused_before_it_writes(place: Place) -> None:
    log = ActionLog.open(place.path)
    tools = builtin_tools(Workspace(str(place.workspace)))
    first, second = (GatedTools(tools=tools, policy=POLICY, approver=deny_all, log=log) for _ in range(2))
    with first:
        count = log.count
        with pytest.raises(LogError, match="has an open session"), second:
            pass
        assert log.count == count
        assert first.call("read_file", {"path": "a.txt"}).status is ResultStatus.OK
    with second:
        with pytest.raises(LogError, match="with GatedTools"):
            first.call("read_file", {"path": "a.txt"})
        assert second.call("read_file", {"path": "a.txt"}).status is ResultStatus.OK
    log.close()
    assert place.end == ("completed", 2)


def test_of_blocks_of_several_threads_on_one_log_one_is_open_at_a_time(place: Place) -> None:
    log = ActionLog.open(place.path)
    at_once = Barrier(4)

    def work(_: int) -> str:
        tools = builtin_tools(Workspace(str(place.workspace)))
        at_once.wait()
        try:
            with GatedTools(tools=tools, policy=POLICY, approver=deny_all, log=log) as gate:
                return gate.call("read_file", {"path": "a.txt"}).status.value
        except LogError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    log.close()
    done = results.count("ok")
    assert done >= 1
    assert all(result == "ok" or "has an open session" in result for result in results)
    assert place.end == ("completed", done)


def test_leaving_the_block_stops_a_call_of_another_thread_and_keeps_its_outcome(place: Place, token: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        with place.gate(ScriptedAnswers(["y"])) as gate:
            running = pool.submit(gate.call, "bash", {"command": f"sleep {token}"})
            assert wait_until(lambda: bool(alive(token)))
        assert running.result(timeout=60).status is ResultStatus.INTERRUPTED
    assert alive(token) == []
    assert place.end == ("interrupted", 1)


def test_a_closed_log_shuts_the_gate(place: Place) -> None:
    log = ActionLog.open(place.path)
    gate = GatedTools(tools=builtin_tools(Workspace(str(place.workspace))), policy=POLICY, approver=deny_all, log=log)
    closed = f"the action log is closed: {place.path}"
    gate.__enter__()
    log.close()
    assert gate.halted == closed
    with pytest.raises(LogError, match=closed):
        gate.__exit__(None, None, None)


@all_rows(
    ("name", "arguments", "call_id", "sentence"),
    [
        pytest.param("bash", {"command": "ls"}, 3, "call_id must be text, not an int", id="number"),
        pytest.param("bash", {"command": "ls"}, None, "call_id must be text, not None", id="no ID"),
        pytest.param(None, {}, "", "name must be text, not None", id="no name"),
        pytest.param("bash", None, "", "arguments must be a mapping or text, not None", id="no arguments"),
        pytest.param("bash", ["ls"], "", "arguments must be a mapping or text, not a list", id="list"),
        pytest.param(
            "bash",
            {"command": {"ls"}},
            "",
            "arguments must be JSON: Object of type set is not JSON serializable",
            id="set",
        ),
    ],
)
def test_an_invalid_call_is_a_sentence_and_writes_nothing(
    name: Any, arguments: Any, call_id: Any, sentence: str, place: Place
) -> None:
    with place.gate() as gate:
        with pytest.raises(TypeError, match=sentence):
            gate.call(name, arguments, call_id=call_id)
        assert gate.halted == ""
    assert place.records("call_proposed") == []
    assert place.end[0] == "completed"


@all_rows(
    "fields",
    [
        pytest.param({"by": "nobody"}, id="nobody"),
        pytest.param({"by": "robot"}, id="unknown"),
        pytest.param({"by": ""}, id="empty"),
        pytest.param({"by": 3}, id="number"),
        pytest.param({"by": ["person"]}, id="list"),
        pytest.param({"by": "person", "days": "3"}, id="days"),
        pytest.param({"by": "person", "may_retry": "no"}, id="may_retry"),
    ],
)
def test_an_invalid_approval_runs_nothing(fields: dict[str, Any], place: Place) -> None:
    def answer(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.YES, **fields)

    with place.gate(answer) as gate, pytest.raises(GateError, match="no valid Approval"):
        gate.call("bash", {"command": "touch b.txt"})
    assert not (place.workspace / "b.txt").exists()
    assert place.end[0] == "gate_error"


def test_a_call_outside_of_the_block_asks_nobody_and_leaves_a_whole_log(place: Place) -> None:
    approver = ScriptedAnswers(["y"])
    log = ActionLog.open(place.path)
    tools = builtin_tools(Workspace(str(place.workspace)))
    bare = Gate(tools=ToolRegistry(tools), policy=POLICY, approver=approver, log=log)
    with pytest.raises(LogError, match="no session is open"):
        bare.call(bare.propose(ToolCall(id="1", name="bash", arguments=json.dumps({"command": "touch b"}))))
    gate = GatedTools(tools=tools, policy=POLICY, approver=approver, log=log)
    with pytest.raises(LogError, match="with GatedTools"):
        gate.call("bash", {"command": "touch b"})
    assert (approver.asked, log.count, (place.workspace / "b").exists()) == ([], 0, False)
    log.close()
    with place.gate(approver) as gate:
        assert gate.call("bash", {"command": "touch b"}).status is ResultStatus.OK
    assert place.end == ("completed", 1)
