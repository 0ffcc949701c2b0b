"""Tools from outside come and go between the requests of a run, and the log says what the model was told of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_scene import DONE, POLICY, Playing, Probe, call, reply

from harness.gate.approval import ScriptedAnswers
from harness.interrupt import Interrupt
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.loop.agent import Agent
from harness.loop.offered_tools import OutsideTools
from harness.messages import StopReason
from harness.policy.loader import parse_policy

NAMES = ("free", "asked", "refused", "halted")


def probe(path: str, name: str, ran: list[str]) -> Probe:
    return Probe(name, path, ran, Interrupt(), lambda do: do)


def agent(path: str, model: Playing, ran: list[str], news: Iterator[OutsideTools | None]) -> Agent:
    return Agent(
        model=model,
        tools=[probe(path, "asked", ran)],
        policy=parse_policy(POLICY, "t.toml", extra_tools=NAMES),
        approver=ScriptedAnswers([]),
        log=ActionLog.open(path),
        more_tools=lambda: next(news),
    )


def test_tool_is_offered_from_its_arrival_until_its_removal(tmp_path: Path) -> None:
    path, ran = str(tmp_path / "log.jsonl"), list[str]()
    news = iter(
        [
            None,
            OutsideTools(tools=[probe(path, "free", ran)], notes=["the server x could not be started"]),
            OutsideTools(tools=[]),
            None,
        ]
    )
    model = Playing([reply(call(1, "free")), reply(call(2, "free")), reply(call(3, "free")), DONE])
    result = agent(path, model, ran, news).run("go")
    assert result.stop is StopReason.COMPLETED
    outcomes = [record["status"] for record in read_log(path) if record["kind"] == "outcome"]
    assert outcomes == ["invalid", "ok", "invalid"]
    changes = [record for record in read_log(path) if record["kind"] == "tools_changed"]
    assert [record["tools"] for record in changes] == [["asked", "free"], ["asked"]]
    assert [record["notes"] for record in changes] == [["the server x could not be started"], []]
    told = [[(one["name"], json.loads(one["parameters"])["required"]) for one in record["told"]] for record in changes]  # type: ignore[call-overload,index,union-attr,arg-type]
    assert told == [[("free", ["do"])], []]


def test_a_tool_from_outside_cannot_take_the_name_of_another(tmp_path: Path) -> None:
    path, ran = str(tmp_path / "log.jsonl"), list[str]()
    news = iter([OutsideTools(tools=[probe(path, "asked", ran)])])
    with pytest.raises(ValueError, match="two tools are named asked"):
        agent(path, Playing([DONE]), ran, news).run("go")
