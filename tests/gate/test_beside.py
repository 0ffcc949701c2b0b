"""Bodies that run at once: all that can go wrong around them leaves none of them running, and nothing unrecorded."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_scene import DONE, Violation, reply
from process_scene import ENOUGH, wait_until
from rows import all_rows
from together_scene import Together, deed

from harness.actions import Effects, Enforcement, WallsLevel
from harness.gate.beside import KEPT_CHARACTERS, Beside, on_gates_thread
from harness.gate.tool import Attempt, Neighbour, ToolOutput
from harness.interrupt import Interrupt, Interrupted
from harness.log.reader import read_log
from harness.messages import StopReason, ToolCall
from harness.record import replace

READER = Effects(read=(), write=(), network=False, unasked=True)


@all_rows(
    ("effects", "looks"),
    [
        pytest.param(READER, True, id="reads"),
        pytest.param(replace(READER, read=None), True, id="reads what nobody knows"),
        pytest.param(replace(READER, write=None), False, id="writes what nobody knows"),
        pytest.param(replace(READER, write=("/w/a",), named_paths=("/w/a",)), False, id="writes a file"),
        pytest.param(replace(READER, write=("/dev/null",)), False, id="writes nowhere, with a temporary folder"),
        pytest.param(replace(READER, granted=(".",)), False, id="may write besides"),
        pytest.param(replace(READER, network=True), False, id="reaches the network"),
        pytest.param(replace(READER, hosts=("example.org",)), False, id="reaches a host"),
        pytest.param(replace(READER, enforcement=Enforcement.OFF), False, id="unconfined"),
    ],
)
def test_calls_without_writes_or_network_only_look(effects: Effects, looks: bool) -> None:
    assert (effects.level is WallsLevel.READER) is looks


def test_log_failure_ends_running_calls(tmp_path: Path) -> None:
    """The second waits until it is asked to stop, which nobody does but the gate that cannot write the first one's outcome."""
    scene = Together(
        str(tmp_path / "log.jsonl"), reply(deed(1, "reads"), deed(2, "reads", "wait"), deed(3, "writes")), together=2
    )
    scene.floor.on_body = lambda identity: scene.log.close() if identity == "reads1" and beside() else None

    def beside() -> bool:
        return wait_until(lambda: len(scene.floor.running) == 2)

    result = scene.agent.run("go")
    assert result.stop is StopReason.LOG_ERROR
    assert (sorted(scene.floor.ran), scene.floor.running) == (["reads1", "reads2"], set())


def test_unexpected_errors_are_raised_after_all_attempts_end(tmp_path: Path) -> None:
    scene = Together(str(tmp_path / "log.jsonl"), reply(deed(1, "reads"), deed(2, "reads", "wait")), together=2)

    def fail(identity: str) -> None:
        if identity == "reads1":
            wait_until(lambda: len(scene.floor.running) == 2)
            raise Violation("its own")

    scene.floor.on_body = fail
    with pytest.raises(Violation, match="its own"):
        scene.agent.run("go")
    assert scene.floor.running == set()
    assert [record["call"] for record in read_log(scene.path) if record["kind"] == "intent"] == [1, 2]


def test_a_keyboard_interrupt_of_pythons_own_handler_ends_all(tmp_path: Path) -> None:
    """A library's user has no Interrupt: the exception comes between any two steps of the waiting thread."""
    scene = Together(str(tmp_path / "log.jsonl"), reply(deed(1, "reads", "wait"), deed(2, "reads", "wait")), together=2)

    def strike() -> None:
        wait_until(lambda: len(scene.floor.running) == 2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    striking = threading.Thread(target=strike)
    striking.start()
    try:
        assert scene.play().stop is StopReason.INTERRUPTED
    finally:
        striking.join()
        signal.signal(signal.SIGINT, before)
    assert all(result.startswith("Interrupted by the person") for result in scene.results())


def test_calls_run_one_by_one_if_threads_are_missing(tmp_path: Path) -> None:
    scene = Together(str(tmp_path / "log.jsonl"), reply(deed(1, "reads"), deed(2, "reads")), DONE, together=2)
    scene.order([["reads1"], ["reads2"]], 1)
    before = threading.stack_size(1 << 46)  # more than any machine's addresses
    try:
        scene.play()
    finally:
        threading.stack_size(before)
    assert scene.floor.ran == ["reads1", "reads2"]
    assert scene.results() == ["did work 1", "did work 2"]


def test_output_before_its_turn_is_kept_within_bounds() -> None:
    """The first is told at once; of the second the end is kept until the first is over."""
    shown: list[str] = []
    second_printed = threading.Event()

    def run(place: int, neighbour: Neighbour) -> Attempt:
        with Attempt(ToolCall(id="c", name="t", arguments="{}"), lambda: 0.0) as attempt:
            if place == 0:
                second_printed.wait(ENOUGH)
                neighbour.in_turn(shown.append, "first")
            else:
                for number in range(1_000):
                    neighbour.in_turn(shown.append, f"{number:<100}")
                second_printed.set()
        return attempt

    with Beside(2, run, limit=2, interrupt=Interrupt(), monotonic=lambda: 0.0) as beside:
        for place in (0, 1):
            beside.wait_for(place)
    assert shown[0] == "first"
    assert shown[-1].strip() == "999"
    assert sum(map(len, shown[1:])) == KEPT_CHARACTERS // 100 * 100


def one_body(work: Callable[[Neighbour], object]) -> Callable[[int, Neighbour], Attempt]:
    """Return what runs a body that does nothing but `work`."""

    def run(place: int, neighbour: Neighbour) -> Attempt:
        with Attempt(ToolCall(id="c", name="t", arguments="{}"), lambda: 0.0) as attempt:
            attempt.is_started = True
            attempt.take(ToolOutput(content=repr(work(neighbour))))
        return attempt

    return run


def content_of(attempt: Attempt | None) -> str:
    assert attempt is not None
    return attempt.result(str).content


def test_body_can_call_on_the_waiting_thread_undisturbed() -> None:
    block: list[str] = []

    @contextmanager
    def undisturbed() -> Iterator[None]:
        block.append("begins")
        yield
        block.append("ends")

    def ask() -> bool:
        block.append("asks")
        return threading.current_thread() is threading.main_thread()

    def fail() -> None:
        raise ValueError("of its own")

    def body(neighbour: Neighbour) -> object:
        with pytest.raises(ValueError, match="of its own"):
            on_gates_thread(fail)
        return on_gates_thread(ask)

    with Beside(
        1, one_body(body), limit=1, interrupt=Interrupt(), monotonic=lambda: 0.0, undisturbed=undisturbed
    ) as beside:
        assert content_of(beside.wait_for(0)) == "True"
    assert block[-3:] == ["begins", "asks", "ends"]
    assert on_gates_thread(threading.current_thread) is threading.main_thread()


def test_stopped_body_asks_no_question() -> None:
    asked: list[int] = []

    def body(neighbour: Neighbour) -> object:
        neighbour.stop_all()
        with pytest.raises(Interrupted):
            on_gates_thread(lambda: asked.append(1))
        return neighbour.stops()

    with Beside(1, one_body(body), limit=1, interrupt=Interrupt(), monotonic=lambda: 0.0) as beside:
        assert content_of(beside.wait_for(0)) == "1"
    assert asked == []


def test_the_second_interrupt_is_counted(tmp_path: Path) -> None:
    """Once ends a command, twice kills it at once."""
    interrupt = Interrupt()
    interrupt.note()  # an earlier one, of another turn
    counted: list[int] = []
    twice = threading.Event()

    def run(place: int, neighbour: Neighbour) -> Attempt:
        with Attempt(ToolCall(id="c", name="t", arguments="{}"), lambda: 0.0) as attempt:
            counted.append(neighbour.stops())
            twice.wait(ENOUGH)
            counted.append(neighbour.stops())
        return attempt

    with Beside(1, run, limit=1, interrupt=interrupt, monotonic=lambda: 0.0) as beside:
        assert wait_until(lambda: counted == [0])
        interrupt.note()
        interrupt.note()
        twice.set()
        beside.wait_for(0)
    assert counted == [0, 2]
