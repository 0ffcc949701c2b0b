"""Stopping an agent from elsewhere: another thread, or a task of an event loop, while it waits for a model or a command."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from agent_scene import DONE, Playing, Step, reply
from fault_server import FaultServer, Wait, until_close
from in_flight import all_over, exchanges
from process_scene import alive, sleep_token, wait_until

from harness.actions import Action
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver, deny_all
from harness.log.action_log import ActionLog
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.messages import StopReason, ToolCall
from harness.model import Model
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict
from harness.tools import builtin_tools

token = pytest.fixture(sleep_token)

POLICY = parse_policy(
    b'version = 1\nname = "stopping"\n[tools]\nbash = "auto"\nread_file = "confirm"\n', "stopping.toml"
)


class Scene:
    """An agent in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = ActionLog.open(str(folder / "log.jsonl"))

    def agent(self, model: Model, approver: Approver = deny_all) -> Agent:
        (self.folder / "work").mkdir()
        tools = builtin_tools(Workspace(str(self.folder / "work")))
        return Agent(model=model, tools=tools, policy=POLICY, approver=approver, log=self.log)

    def playing(self, *script: Step) -> Agent:
        return self.agent(Playing(script))

    def check_log(self) -> None:
        found = verify(self.log.path)
        assert (found.problem, found.open_sessions, found.unknown_calls) == ("", (), ())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.check_log()
    made.log.close()


def bash(command: str) -> ToolCall:
    return ToolCall(id="c1", name="bash", arguments=f'{{"command": "{command}"}}')


def test_stop_ends_a_running_command_and_the_run(scene: Scene, token: str) -> None:
    agent = scene.playing(reply(bash(f"sleep {token}")))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(agent.run, "wait")
        assert wait_until(lambda: bool(alive(token)))
        agent.stop()
        result = running.result(timeout=60)
    assert (result.stop, result.detail) == (StopReason.INTERRUPTED, f"interrupted during bash: sleep {token}")
    assert alive(token) == []


def test_stop_gives_up_a_request_to_the_model(scene: Scene) -> None:
    with FaultServer([], afterwards=until_close(Wait(seconds=1000))) as server:
        agent = scene.agent(OpenAIChat("m", Endpoint(base_url=server.url, api_key="sk-nobody")))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(agent.run, "answer")
            assert wait_until(lambda: exchanges() > 0)
            agent.stop()
            result = running.result(timeout=60)
    assert (result.stop, result.detail) == (StopReason.INTERRUPTED, "interrupted while the model was answering")
    assert all_over()


def test_a_task_stops_a_run_without_an_exception(scene: Scene, token: str) -> None:
    agent = scene.playing(reply(bash(f"sleep {token}")), DONE)

    async def program() -> list[StopReason]:
        running = asyncio.create_task(agent.run_async("wait"))
        while not alive(token):
            await asyncio.sleep(0.01)
        agent.stop()
        first = await running
        return [first.stop, (await agent.run_async("go on")).stop]

    assert asyncio.run(program()) == [StopReason.INTERRUPTED, StopReason.COMPLETED]


def test_stop_ends_a_question_of_a_run_in_an_event_loop(scene: Scene) -> None:
    asked, never = Event(), Event()

    def wait(action: Action, verdict: Verdict) -> Approval:
        asked.set()
        never.wait()
        return Approval(answer=Answer.YES, by="person")

    call = ToolCall(id="c1", name="read_file", arguments='{"path": "x"}')
    agent = scene.agent(Playing([reply(call)]), approver=wait)

    async def program() -> StopReason:
        running = asyncio.create_task(agent.run_async("wait"))
        await asyncio.to_thread(asked.wait)
        agent.stop()
        return (await running).stop

    try:
        assert asyncio.run(program()) is StopReason.INTERRUPTED
    finally:
        never.set()


def test_a_cancelled_task_waits_for_the_end_of_its_run(scene: Scene, token: str) -> None:
    agent = scene.playing(reply(bash(f"sleep {token}")))

    async def program() -> None:
        running = asyncio.create_task(agent.run_async("wait"))
        while not alive(token):
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(program())
    assert agent.run_now is not None
    assert (agent.run_now.result.stop, alive(token)) == (StopReason.INTERRUPTED, [])


def test_an_agent_that_runs_refuses_a_second_run(scene: Scene, token: str) -> None:
    agent = scene.playing(reply(bash(f"sleep {token}")), DONE)

    async def program() -> StopReason:
        running = asyncio.create_task(agent.run_async("wait"))
        while not alive(token):
            await asyncio.sleep(0.01)
        with pytest.raises(RuntimeError, match="the agent is running: make another one"):
            await agent.run_async("at once")
        agent.stop()
        return (await running).stop

    assert asyncio.run(program()) is StopReason.INTERRUPTED
    assert agent.run("go on").stop is StopReason.COMPLETED


def test_a_second_agent_on_a_log_in_use_ends_before_it_writes(scene: Scene, token: str) -> None:
    agent = scene.playing(reply(bash(f"sleep {token}")))
    tools = builtin_tools(Workspace(str(scene.folder / "work")))
    other = Agent(model=Playing([DONE]), tools=tools, policy=POLICY, approver=deny_all, log=scene.log)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(agent.run, "wait")
        assert wait_until(lambda: bool(alive(token)))
        count = scene.log.count
        refused = other.run("at once")
        assert (refused.stop, scene.log.count) == (StopReason.LOG_ERROR, count)
        assert "has an open session" in refused.detail
        agent.stop()
        assert running.result(timeout=60).stop is StopReason.INTERRUPTED
    assert other.run("now").stop is StopReason.COMPLETED


def test_a_prompt_of_another_type_is_a_sentence(scene: Scene) -> None:
    agent = scene.playing(DONE)
    with pytest.raises(TypeError, match="prompt must be text, not None"):
        agent.run(None)  # type: ignore[arg-type]
    assert scene.log.count == 0
    assert agent.run("one").stop is StopReason.COMPLETED


def test_stop_between_two_runs_ends_the_next_one(scene: Scene) -> None:
    agent = scene.playing(DONE, DONE)
    assert agent.run("one").stop is StopReason.COMPLETED
    agent.stop()
    assert agent.run("two").stop is StopReason.INTERRUPTED
    assert agent.run("three").stop is StopReason.COMPLETED


def test_stop_by_the_approver_runs_nothing(scene: Scene) -> None:
    def approver(action: Action, verdict: Verdict) -> Approval:
        agent.stop()
        return Approval(answer=Answer.YES, by="person")

    read = ToolCall(id="c1", name="read_file", arguments='{"path": "a.txt"}')
    agent = scene.agent(Playing([reply(read)]), approver)
    assert agent.run("read").stop is StopReason.INTERRUPTED
    assert scene.log.counts == {}  # the session ended
