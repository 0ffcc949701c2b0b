"""Observers: they hear everything in order, one end for each run, and nothing that they do changes a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
from clocks import HOUR, Clock
from process_scene import wait_until
from rows import all_rows

from harness.errors import ModelError
from harness.files.workspace import Workspace
from harness.gate.approval import deny_all
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.loop.agent import Agent
from harness.loop.observers import MAX_WAITING, PARTING_SECONDS, Observer, Observers
from harness.messages import FinishReason, Message, ModelResponse, RunResult, StopReason, ToolCall, Usage
from harness.model import ToolSpec
from harness.policy.loader import parse_policy
from harness.tools import builtin_tools


class Speaking:
    """A model that says what the test gives it, word by word, or raises it."""

    name = "speaking"

    def __init__(self, *answers: str | BaseException) -> None:
        self._answers = iter(answers)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: object,
        seconds: float | None = None,
    ) -> ModelResponse:
        answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        for word in answer.split():
            on_text(word)
        return ModelResponse(text=answer, tool_calls=(), finish_reason=FinishReason.DONE, usage=Usage())


class Hearing(Observer):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def text(self, delta: str) -> None:
        self.heard.append(f"text {delta}")

    def record(self, record: LogRecord) -> None:
        self.heard.append(f"record {record['kind']}")

    def output(self, printed: str) -> None:
        self.heard.append(f"output {printed}")

    def end(self, result: RunResult) -> None:
        self.heard.append(f"end {result.stop.value}")


class Raising(Observer):
    """Fails at everything, in the ways in which programs fail."""

    def text(self, delta: str) -> None:
        raise SystemExit(delta)

    def record(self, record: LogRecord) -> None:
        raise KeyboardInterrupt

    def end(self, result: RunResult) -> None:
        raise RuntimeError(result.stop)


class Blocked(Hearing):
    """Hears nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def text(self, delta: str) -> None:
        self.let.wait()
        super().text(delta)


def agent(path: Path, observers: Observers, *answers: str | BaseException) -> Agent:
    policy = parse_policy(b'version = 1\nname = "p"\n', "p.toml")
    log = ActionLog.open(str(path / "log.jsonl"))
    tools = builtin_tools(Workspace(str(path)))
    return Agent(model=Speaking(*answers), tools=tools, policy=policy, approver=deny_all, log=log, observers=observers)


def patiently(*observers: Observer) -> Observers:
    """Return observers whose end is waited for up to the end: by their clock each look is an hour before the last one."""
    return Observers(observers, monotonic=Clock(-HOUR))


BEGIN = ["record session_started", "record user_message", "record model_request"]


def test_observer_receives_everything_in_order_with_the_end_last(tmp_path: Path) -> None:
    hearing = Hearing()
    assert agent(tmp_path, patiently(hearing), "a b").run("go").stop is StopReason.COMPLETED
    assert hearing.heard == [
        *BEGIN, "text a", "text b", "record model_response", "record session_ended", "end completed",
    ]  # fmt: skip


@all_rows(
    ("answer", "end"),
    [
        pytest.param(ModelError("no"), "end model_error", id="a failed model"),
        pytest.param(KeyboardInterrupt(), "end interrupted", id="an interrupt"),
    ],
)
def test_each_end_is_reported_once(tmp_path: Path, answer: BaseException, end: str) -> None:
    hearing = Hearing()
    agent(tmp_path, patiently(hearing), answer).run("go")
    assert [heard for heard in hearing.heard if heard.startswith("end")] == [end]
    assert hearing.heard[-1] == end


def test_an_unexpected_exception_is_an_end_too(tmp_path: Path) -> None:
    hearing = Hearing()
    with pytest.raises(GeneratorExit):
        agent(tmp_path, patiently(hearing), GeneratorExit()).run("go")
    assert hearing.heard[-1] == "end internal_error"


def test_two_runs_are_two_ends(tmp_path: Path) -> None:
    hearing = Hearing()
    made = agent(tmp_path, patiently(hearing), "a", "b")
    session = made.start()
    made.run("one", session)
    made.run("two", session)
    made.end(session)
    assert hearing.heard.count("end completed") == 2


def test_raising_observer_has_no_effect(tmp_path: Path) -> None:
    hearing = Hearing()
    result = agent(tmp_path, patiently(Raising(), hearing), "a b").run("go")
    assert (result.stop, hearing.heard[-1]) == (StopReason.COMPLETED, "end completed")


def test_blocked_observer_does_not_delay_the_run(tmp_path: Path) -> None:
    """The run and the other observer are done; the end waits only so long for one that would never hear it."""
    blocked, hearing = Blocked(), Hearing()
    result = agent(tmp_path, Observers([hearing, blocked]), "a b").run("go")
    assert result.stop is StopReason.COMPLETED
    assert wait_until(lambda: hearing.heard[-1:] == ["end completed"])
    assert wait_until(lambda: blocked.heard == BEGIN)
    blocked.let.set()


def test_text_is_dropped_for_a_slow_observer_but_records_are_kept() -> None:
    blocked = Blocked()
    hub = patiently(blocked)
    for _ in range(MAX_WAITING + 50):
        hub.text("x")
    for number in range(20):
        hub.record({"kind": f"k{number}"})
    assert 0 < hub.dropped <= 50
    blocked.let.set()
    hub.end(RunResult(stop=StopReason.COMPLETED, text=""))
    assert blocked.heard[-21:] == [*(f"record k{number}" for number in range(20)), "end completed"]


def test_output_is_passed_on_and_the_thread_ends_when_closed() -> None:
    before = set(threading.enumerate())
    hearing = Hearing()
    hub = patiently(hearing)
    hub.output("line")
    hub.close()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert hearing.heard == ["output line"]


def test_an_agent_on_the_same_log_is_not_overheard(tmp_path: Path) -> None:
    """Each hears its own sessions only."""
    hearing = Hearing()
    first = agent(tmp_path, patiently(hearing), "a")
    first.run("go")
    heard = len(hearing.heard)
    policy = parse_policy(b'version = 1\nname = "p"\n', "p.toml")
    Agent(
        model=Speaking("b"),
        tools=builtin_tools(Workspace(str(tmp_path))),
        policy=policy,
        approver=deny_all,
        log=first.log,
    ).run("go")
    assert len(hearing.heard) == heard


class Vandal(Observer):
    """Changes what it is given."""

    def record(self, record: LogRecord) -> None:
        for value in record.values():
            if isinstance(value, list):
                value.append("EVIL")
        cast("dict[str, object]", record).clear()


def test_observer_cannot_change_records_of_the_log_or_of_others(tmp_path: Path) -> None:
    hearing = Hearing()
    made = agent(tmp_path, patiently(Vandal(), hearing), "a")
    made.run("go")
    assert "EVIL" not in (tmp_path / "log.jsonl").read_text()
    assert hearing.heard[:3] == BEGIN


def test_waiting_text_is_bounded_by_its_size() -> None:
    blocked = Blocked()
    hub = Observers([blocked])
    for _ in range(30):
        hub.text("x" * 1_000_000)
    assert hub.dropped >= 18
    blocked.let.set()


def test_late_observer_is_not_waited_for_again() -> None:
    """By the clock there would be a year for it, which it takes."""
    blocked, clock = Blocked(), Clock(PARTING_SECONDS)
    hub = Observers([blocked], monotonic=clock)
    hub.text("x")
    hub.end(RunResult(stop=StopReason.COMPLETED, text=""))
    clock.step = -24 * 365 * HOUR
    hub.end(RunResult(stop=StopReason.COMPLETED, text=""))
    blocked.let.set()


class Calling:
    """A model that asks for one command, and is done."""

    name = "calling"

    def __init__(self, command: str) -> None:
        call = ToolCall(id="c1", name="bash", arguments=json.dumps({"command": command}))
        self._replies = [
            ModelResponse(text="", tool_calls=(call,), finish_reason=FinishReason.DONE, usage=Usage()),
            ModelResponse(text="done", tool_calls=(), finish_reason=FinishReason.DONE, usage=Usage()),
        ]

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: object,
        on_retry: object,
        seconds: float | None = None,
    ) -> ModelResponse:
        return self._replies.pop(0)


def test_command_output_is_observed_between_intent_and_outcome(tmp_path: Path) -> None:
    hearing = Hearing()
    hub = patiently(hearing)
    (tmp_path / "w").mkdir()
    Agent(
        model=Calling("echo one; echo two"),
        tools=builtin_tools(Workspace(str(tmp_path / "w")), on_output=hub.output),
        policy=parse_policy(b'version = 1\nname = "p"\n[tools]\nbash = "auto"\n', "p.toml"),
        approver=deny_all,
        log=ActionLog.open(str(tmp_path / "log.jsonl")),
        observers=hub,
    ).run("go")
    heard = "|".join(hearing.heard)
    begun, ended = heard.index("record intent"), heard.index("record outcome")
    assert begun < heard.index("output one") < heard.index("two") < ended
    assert hearing.heard[-1] == "end completed"


def test_the_wait_at_the_end_is_for_all_of_them_together() -> None:
    """The clock is looked at when the wait begins, and for what is left of it before each observer."""
    stuck = [Blocked(), Blocked(), Blocked()]
    looks = iter([0.0, PARTING_SECONDS - 0.1, PARTING_SECONDS, PARTING_SECONDS])
    hub = Observers(stuck, monotonic=lambda: next(looks))
    hub.text("x")
    hub.end(RunResult(stop=StopReason.COMPLETED, text=""))
    assert list(looks) == []
    for one in stuck:
        one.let.set()
