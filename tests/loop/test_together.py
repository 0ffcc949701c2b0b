"""Calls of one reply that run at once: who may, in which order all is told, and what else stops them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from agent_scene import DONE, Playing, answering, reply
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT
from process_scene import ENOUGH
from sizes import examples
from together_scene import TOOLS, Together, deed, groups

from harness import ActionLog, Agent, Limits, Workspace, builtin_tools, deny_all, load_policy
from harness.gate.approval import Approval
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.messages import Role, StopReason, ToolCall
from harness.tools.command_walls import CommandWalls


@pytest.mark.parametrize("ends", list(permutations((1, 2, 3))), ids=str)
@pytest.mark.parametrize("together", [2, 3, 8])
def test_parallel_calls_are_recorded_in_the_order_of_the_reply(
    tmp_path: Path, ends: Sequence[int], together: int
) -> None:
    """The turnstile lets none out before as many are inside as may be."""
    calls = [deed(1, "reads"), deed(2, "reads", "fail"), deed(3, "reads", "crash")]
    scene = Together(str(tmp_path / "log.jsonl"), reply(*calls), DONE, together=together)
    scene.order([[f"reads{number}" for number in ends]], together)
    assert scene.play().stop is StopReason.COMPLETED
    assert scene.results() == [
        "did work 1", "Error: It did not work.", "Error: the tool reads crashed: RuntimeError: a bug",
    ]  # fmt: skip
    assert scene.kinds("decision", "intent", "outcome") == [
        f"{kind} {number}" for kind in ("decision", "intent", "outcome") for number in (1, 2, 3)
    ]


DEEDS = st.tuples(
    st.sampled_from((*("reads",) * 6, *TOOLS[1:])), st.sampled_from(("work", "work", "fail", "crash", "exit", "cannot"))
)


@settings(max_examples=examples(60), deadline=None)
@given(
    replies=st.lists(st.lists(DEEDS, min_size=1, max_size=6), min_size=1, max_size=3),
    together=st.integers(2, 5),
    shuffle=st.randoms(use_true_random=False),
)
def test_parallel_calls_are_logged_as_if_sequential(
    replies: list[list[tuple[str, str]]], together: int, shuffle: object
) -> None:
    """The history and the records of each call are the same; the log has its grammar, and outcomes are in call order."""
    numbers = iter(range(1, 100))
    script = [[deed(next(numbers), tool, do) for tool, do in one] for one in replies]
    with tempfile.TemporaryDirectory() as folder:
        scenes = []
        for most in (1, together):
            path = os.path.join(folder, f"{most}.jsonl")
            scene = Together(path, *(reply(*one) for one in script), DONE, together=most)
            orders = [list(group) for one in script for group in groups(one)]
            for order in orders:
                shuffle.shuffle(order)  # type: ignore[attr-defined]
            scene.order(orders, most)
            scene.play()
            scenes.append(scene)
        alone, beside = scenes
        assert beside.results() == alone.results()
        assert beside.per_call() == alone.per_call()
        assert beside.kinds("outcome") == alone.kinds("outcome")
        assert sorted(beside.floor.ran) == sorted(alone.floor.ran)


def test_writing_or_asked_call_runs_alone_and_in_order(tmp_path: Path) -> None:
    calls = [
        deed(1, "reads"), deed(2, "reads"), deed(3, "asked"), deed(4, "reads"), deed(5, "reads"), deed(6, "writes"),
        deed(7, "reads"), deed(8, "alone"), deed(9, "reads"),
    ]  # fmt: skip
    scene = Together(str(tmp_path / "log.jsonl"), reply(*calls), DONE, together=4)
    scene.order([["reads2", "reads1"], ["reads5", "reads4"]], 4)
    scene.play()
    assert [one[-1] for one in scene.kinds("intent", "outcome")] == list("121233454566778899")
    assert scene.results() == [f"did work {number}" for number in range(1, 10)]


def test_group_is_judged_after_the_calls_before_it(tmp_path: Path) -> None:
    """What a call writes may change what the next ones mean."""
    calls = [
        deed(1, "reads", "later closed"), deed(2, "writes"), deed(3, "reads"),
        deed(4, "reads", "later closed"), deed(5, "reads"),
    ]  # fmt: skip
    scene = Together(str(tmp_path / "log.jsonl"), reply(*calls), DONE, together=4)
    scene.play()
    statuses = [result.partition(" ")[0] for result in scene.results()]
    assert statuses == ["did", "did", "did", "Denied", "did"]


def test_a_hard_block_among_them_lets_none_run(tmp_path: Path) -> None:
    calls = [deed(1, "reads"), deed(2, "reads"), deed(3, "halted"), deed(4, "reads")]
    scene = Together(str(tmp_path / "log.jsonl"), reply(*calls), together=4)
    assert scene.play().stop is StopReason.BLOCKED
    assert scene.floor.ran == []
    assert [result.partition(" ")[0] for result in scene.results()] == ["Not", "Not", "Blocked", "Not"]


def test_a_stop_at_a_question_between_two_groups_ends_the_second(tmp_path: Path) -> None:
    calls = [deed(1, "reads"), deed(2, "reads"), deed(3, "asked"), deed(4, "reads"), deed(5, "reads")]
    path = str(tmp_path / "log.jsonl")
    scene = Together(
        path, reply(*calls), together=4, approver=answering(lambda: Approval(answer=Answer.STOP, by="person"))
    )
    assert scene.play().stop is StopReason.INTERRUPTED
    assert sorted(scene.floor.ran) == ["reads1", "reads2"]


def test_calls_run_alone_with_a_done_marker(tmp_path: Path) -> None:
    """Any call may be the last, and none behind that runs."""
    scene = Together(
        str(tmp_path / "log.jsonl"), reply(deed(1, "reads"), deed(2, "reads")), DONE, together=4, done_marker="DONE"
    )
    scene.play()
    assert scene.kinds("intent", "outcome") == ["intent 1", "outcome 1", "intent 2", "outcome 2"]


def test_interrupt_ends_running_and_waiting_calls_of_a_group(tmp_path: Path) -> None:
    """Two may run at once; the third and fourth have an intent, and are not begun."""
    calls = [deed(number, "reads", "wait") for number in (1, 2, 3, 4)]
    scene = Together(str(tmp_path / "log.jsonl"), reply(*calls, deed(5, "writes")), together=2)
    inside = threading.Barrier(3)

    def strike() -> None:
        inside.wait(ENOUGH)
        scene.interrupt.note()

    def come_in(identity: str) -> None:
        inside.wait(ENOUGH)

    scene.floor.on_body = come_in
    striking = threading.Thread(target=strike)
    striking.start()
    result = scene.play()
    striking.join()
    assert result.stop is StopReason.INTERRUPTED
    assert result.detail == "interrupted during reads: wait 1"
    assert [line.partition(";")[0].partition(":")[0] for line in scene.results()] == [
        "Interrupted by the person", "Interrupted by the person", "Error", "Error", "Not run",
    ]  # fmt: skip
    assert scene.kinds("outcome") == [f"outcome {number}" for number in (1, 2, 3, 4, 5)]


def test_a_body_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    """A file of a server that is gone: it only reads, and the person waits no longer."""
    seconds = iter(range(0, 1_000_000, 5))
    scene = Together(
        str(tmp_path / "log.jsonl"),
        reply(deed(1, "reads", "hang"), deed(2, "reads")),
        together=2,
        monotonic=lambda: next(seconds),
    )
    scene.floor.on_body = lambda identity: scene.interrupt.note() if identity == "reads1" else None
    assert scene.play().stop is StopReason.INTERRUPTED
    assert scene.results()[0].startswith("Interrupted by the person")
    scene.floor.release.set()


def test_the_limit_of_time_holds_for_all_of_a_group(tmp_path: Path) -> None:
    """Two run until it is over; the third has its intent and is not begun, and what comes behind has none."""
    now = [0.0]
    scene = Together(
        str(tmp_path / "log.jsonl"),
        reply(deed(1, "reads"), deed(2, "reads"), deed(3, "reads"), deed(4, "writes")),
        together=2,
        limits=Limits(max_seconds=10),
        monotonic=lambda: now[0],
    )
    inside = threading.Barrier(2)

    def late(identity: str) -> None:
        inside.wait(ENOUGH)
        now[0] = 11.0

    scene.floor.on_body = late
    assert scene.play().stop is StopReason.LIMIT
    assert sorted(scene.floor.ran) == ["reads1", "reads2"]
    assert [result.partition(":")[0] for result in scene.results()] == ["did work 1", "did work 2", "Error", "Not run"]


COMMANDS = CommandWalls(Workspace("/")).confines
confined = pytest.mark.skipif(not COMMANDS, reason="this kernel confines no command, so that each runs alone")


class Printed:
    """What a screen is told, with what was in the log then."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, text: str) -> None:
        self.told.append(text)


def run_commands(folder: Path, commands: Sequence[str], together: int) -> tuple[list[str], Printed]:
    """Run commands by the default policy as one reply, and return what the model reads of each."""
    printed = Printed()
    calls = [
        ToolCall(id=f"c{number}", name="bash", arguments=f'{{"command": "{command}", "timeout_s": 60}}')
        for number, command in enumerate(commands)
    ]
    log = ActionLog.open(str(folder / "log.jsonl"))
    agent = Agent(
        model=Playing([reply(*calls), DONE]),
        tools=builtin_tools(Workspace(str(folder / "w")), on_output=printed),
        policy=load_policy(os.path.join(ROOT, "policies", "default.toml")),
        approver=deny_all,
        log=log,
        together=together,
    )
    session = agent.start()
    result = agent.run("go", session)
    agent.end(session, result)
    assert verify(str(folder / "log.jsonl")).problem == ""
    return [one.content for one in session.messages if one.role is Role.TOOL], printed


@confined
def test_reading_commands_run_in_parallel_and_are_shown_in_order(tmp_path: Path) -> None:
    """Each waits for a pipe whose writer opens the last one first: one after the other they would never end."""
    work = tmp_path / "w"
    work.mkdir()
    for name in "abc":
        os.mkfifo(work / name)

    def feed() -> None:
        files = [open(work / name, "w") for name in "cba"]  # noqa: SIM115 - each open waits for its reader
        for file, name in zip(files, "cba", strict=True):
            file.write(f"from {name}\n")
            file.close()

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    results, printed = run_commands(tmp_path, ["cat a", "cat b", "cat c"], 3)
    feeding.join(ENOUGH)
    assert [result.partition("\n")[0] for result in results] == ["from a", "from b", "from c"]
    assert "".join(printed.told) == "from a\nfrom b\nfrom c\n"
