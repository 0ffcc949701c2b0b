"""The tables of batches, workers and attempts: one attempt at a task counts, and what is lost is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest
from sqlalchemy.exc import DBAPIError

from harness.actions import JsonValue
from harness.plugins.fleet.queue.ledger import BROKEN, DONE, LOST, FleetLedger, engine_of
from harness.plugins.fleet.queue.queue import Batch, Growth, QueueAwayError, TaskAttempt

FAR = 1e6
RESULT: dict[str, JsonValue] = {
    "exit_code": 0,
    "how": "ran",
    "end": "completed",
    "cost": 0.25,
    "has_result": True,
    "records": 9,
    "head": "ab",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[FleetLedger]:
    engine = engine_of(f"sqlite:///{tmp_path}/queue.db")
    ledger = FleetLedger(engine)
    ledger.make()
    ledger.note_batch(Batch(name="b", out="/out"))
    for worker in ("w", "v", "w0", "w1", "w2", "w3"):
        ledger.join(worker, "v1", 1, FAR)
    yield ledger
    engine.dispose()


def begun(ledger: FleetLedger, task: str = "t", worker: str = "w") -> TaskAttempt:
    attempt = ledger.begin("b", task, worker)
    assert attempt is not None
    return attempt


def test_each_attempt_has_its_number(ledger: FleetLedger) -> None:
    first, second = begun(ledger), begun(ledger, worker="v")
    assert [(one.number, one.out, one.is_won) for one in (first, second)] == [(1, "/out", False), (2, "/out", False)]


def test_one_of_several_simultaneous_ends_counts(ledger: FleetLedger) -> None:
    attempts = [begun(ledger, worker=f"w{n}") for n in range(4)]
    ready, counted = Barrier(len(attempts)), list[TaskAttempt]()

    def finish(attempt: TaskAttempt) -> None:
        ready.wait()
        if ledger.finish(attempt, DONE, RESULT):
            counted.append(attempt)

    threads = [Thread(target=finish, args=(attempt,)) for attempt in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (counts,) = counted
    (result,) = ledger.results("b", 0.0)
    assert (result.task, result.number, result.result) == ("t", counts.number, RESULT)
    assert begun(ledger) == TaskAttempt(batch="b", task="t", number=counts.number, out="/out", is_won=True)


def test_repeated_finish_has_no_effect(ledger: FleetLedger) -> None:
    """An answer of the data base may be lost on the way: then the same is said again."""
    attempt = begun(ledger)
    assert [ledger.finish(attempt, DONE, RESULT) for _ in range(2)] == [True, True]
    assert not ledger.finish(attempt, BROKEN, None)


def test_a_worker_that_is_silent_is_lost_with_its_attempts_and_no_other(ledger: FleetLedger) -> None:
    ledger.join("silent", "v1", 2, -1.0)  # its lease is over at once
    ledger.join("well", "v1", 4, FAR)
    lost, kept = begun(ledger, "x", "silent"), begun(ledger, "y", "well")
    assert ledger.reap() == ("silent",)
    assert ledger.reap() == ()  # whoever was told gives its tasks back
    assert "silent" not in [one.name for one in ledger.workers()]
    beaten = {
        name: ledger.beat(name, {("b", "y"): Growth(records=3, head="cd")}).is_alive for name in ("silent", "well")
    }
    assert beaten == {"silent": False, "well": True}
    assert not ledger.finish(lost, DONE, RESULT)
    (row,) = ledger.longest("b", 9)
    assert (row.task, row.number, row.records, row.head) == ("y", kept.number, 3, "cd")


def test_greatest_job_count_of_live_workers_is_returned(ledger: FleetLedger) -> None:
    for name, jobs, lease in (("a", 2, FAR), ("b", 8, FAR), ("c", 16, -1.0)):
        ledger.join(name, "v", jobs, lease)
    ledger.reap()
    assert ledger.most_jobs() == 8
    ledger.leave("b")
    assert ledger.most_jobs() == 2


def lose(ledger: FleetLedger, how: str, times: int) -> None:
    for _ in range(times):
        assert ledger.finish(begun(ledger), how, None)


@pytest.mark.parametrize(("how", "ends_as"), [(LOST, "unknown effect"), (BROKEN, "not done")])
def test_a_task_is_given_up_after_three_workers(ledger: FleetLedger, how: str, ends_as: str) -> None:
    lose(ledger, how, 3)
    assert ledger.begin("b", "t", "w") is None
    (result,) = ledger.results("b", 0.0)
    assert (result.number, result.result["how"], result.result["exit_code"]) == (4, ends_as, None)
    assert ledger.ends("b") == {ends_as: 1}
    # Once a person wants it again, the count begins anew.
    ledger.within(lambda connection: ledger.set_aside(connection, "b", "t"))
    assert begun(ledger).number == 5


def test_cancelled_task_of_a_lost_worker_is_not_repeated(ledger: FleetLedger) -> None:
    attempt = begun(ledger)
    ledger.cancel("b", "t")
    ledger.finish(attempt, LOST, None)
    assert ledger.begin("b", "t", "w") is None
    assert ledger.ends("b") == {"cancelled": 1}


def test_attempts_not_begun_or_given_back_do_not_count(ledger: FleetLedger) -> None:
    lose(ledger, "ended with its worker", 5)
    assert begun(ledger).number == 6


def test_spent_budget_stops_new_attempts(ledger: FleetLedger) -> None:
    ledger.note_batch(Batch(name="b", out="/out", budget=0.4))
    ledger.note_batch(Batch(name="other", out="/other"))
    ledger.note_batch(Batch(name="b", out="/out"))  # a second start that says nothing of it lifts no budget
    for task in ("x", "y"):
        assert ledger.finish(begun(ledger, task), DONE, RESULT)
    assert ledger.begin("b", "z", "w") is None
    assert ledger.results("b", 0.0)[-1].result["problem"] == "the budget of the batch, $0.40, is used up"
    assert ledger.begin("other", "z", "w") is not None
    assert (ledger.ends("b"), ledger.pace("b", FAR)) == ({"exit 0 completed": 2, "exit 4 limit": 1}, (3, 0.5, 0))


def test_running_attempt_learns_of_its_cancellation(ledger: FleetLedger) -> None:
    begun(ledger, "x"), begun(ledger, "y")
    ledger.cancel("b", "x")
    assert ledger.beat("w", {}).cancelled == {("b", "x")}


def test_results_of_a_batch_are_listed(ledger: FleetLedger) -> None:
    lose(ledger, LOST, 2)
    ledger.finish(begun(ledger), DONE, RESULT)
    begun(ledger, "open")
    ledger.finish(begun(ledger, "back"), "not begun", None)
    assert ledger.known_results("b") == {"t": RESULT, "open": None}
    assert [(one.number, one.lost) for one in ledger.results("b", 0.0)] == [(3, 2)]


def test_unreachable_queue_is_reported_once_and_retried(tmp_path: Path) -> None:
    path, told = tmp_path / "gone" / "queue.db", list[str]()
    engine = engine_of(f"sqlite:///{path}")
    waits = iter((False, False, True))
    ledger = FleetLedger(engine, is_gone=lambda: next(waits), away=told.append)
    with pytest.raises(QueueAwayError, match="unable to open database file"):
        ledger.batches()
    assert told == ["unable to open database file"]
    path.parent.mkdir()
    with pytest.raises(DBAPIError, match="no such table"):  # that does not pass
        FleetLedger(engine).batches()
    engine.dispose()
