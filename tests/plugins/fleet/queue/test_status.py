"""What `harness queue status` shows: read by counting, as tables for a person, as one object for a program."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.actions import JsonValue
from harness.app.command_line import parser_for
from harness.errors import UsageError
from harness.plugins.fleet.queue.dbos_queue import DbosQueue
from harness.plugins.fleet.queue.ledger import DONE
from harness.plugins.fleet.queue.queue import Batch, Growth, QueuedTask, TaskState
from harness.plugins.fleet.queue.queued_batch import is_tried_again
from harness.plugins.fleet.queue.status import status_of
from harness.plugins.fleet.queue.version import version_of
from harness.terminal.tables import plain

BATCH = Batch(name="0123456789ab", out="/results", budget=9.0)


def queued(name: str, **fields: object) -> QueuedTask:
    task = {"id": name, "prompt": "x", **fields}
    return QueuedTask(batch=BATCH.name, task=task, version="v1", group="g")  # type: ignore[arg-type]


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[DbosQueue]:
    queue = DbosQueue(f"sqlite:///{tmp_path}/queue.db")
    yield queue
    queue.close()


def test_an_empty_queue_shows_no_batch(queue: DbosQueue) -> None:
    status = status_of(queue)
    assert (status.batches, status.running, status.workers, dict(status.orphaned)) == ((), (), (), {})
    with pytest.raises(UsageError, match="no batch x in the queue"):
        status_of(queue, "x")


def test_status_lists_states_pace_cost_longest_tasks_and_reasons(queue: DbosQueue) -> None:
    assert queue.put(BATCH, [queued(f"t{n}") for n in range(5)], lambda _: False) == 5
    assert queue.put(BATCH, [queued("t0")], lambda _: False) == 0
    queue.ledger.join("host-1", "v2", 3, 1e6)
    for task in ("t0", "t1"):
        attempt = queue.ledger.begin(BATCH.name, task, "host-1")
        assert attempt is not None
        queue.finish(attempt, DONE, {"exit_code": 7, "end": "completed", "how": "ran", "cost": 1.5})
    queue.ledger.join("gone", "v2", 1, -1.0)
    lost = queue.ledger.begin(BATCH.name, "t2", "gone")
    assert lost is not None
    assert queue.ledger.reap() == ("gone",)
    queue.ledger.begin(BATCH.name, "t2", "host-1")
    queue.beat({})  # no worker of ours: nothing is noted
    queue.ledger.beat("host-1", {(BATCH.name, "t2"): Growth(records=7, head="ab")})
    status = status_of(queue, BATCH.name)
    told = json.loads(json.dumps(status.as_json))
    assert told["batches"] == [
        {
            "batch": BATCH.name, "out": "/results", "waiting": 5, "running": 0, "done": 0, "cancelled": 0, "a_minute": 2,
            "cost": 3.0, "budget": 9.0, "attempts_lost": 1, "ends": {"exit 7 completed": 2},
        }
    ]  # fmt: skip
    (running,) = told["running"]
    assert (running["task"], running["number"], running["worker"], running["records"]) == ("t2", 2, "host-1", 7)
    assert told["without_worker"] == {"v1": 5}  # the one worker that lives is of another version
    lines = [line for table in status.tables for line in plain(table)]
    assert lines[0].split(maxsplit=2)[2] == "5 tasks for v1"
    assert lines[1].split()[:4] == ["batch", "waiting", "running", "done"]
    assert any(line.split() == [BATCH.name, "exit", "7", "completed", "2"] for line in lines)


def test_the_state_of_each_task(queue: DbosQueue) -> None:
    queue.put(BATCH, [queued("done"), queued("gone"), queued("out"), queued("left")], lambda _: False)
    queue.ledger.join("w", "v1", 1, 1e6)
    results: dict[str, dict[str, JsonValue]] = {
        "done": {"exit_code": 0, "how": "ran"},
        "gone": {"exit_code": None, "how": "unknown effect"},
    }
    for task, result in results.items():
        attempt = queue.ledger.begin(BATCH.name, task, "w")
        assert attempt is not None
        queue.finish(attempt, DONE, result)
    queue.cancel([row for row in queue.list(BATCH.name) if row.task == "out"])
    states = {row.task: row.state for row in queue.list()}
    assert states == {
        "done": TaskState.DONE, "gone": TaskState.UNKNOWN, "out": TaskState.CANCELLED, "left": TaskState.WAITING
    }  # fmt: skip


def test_cancelled_task_is_queued_again_for_the_new_version(queue: DbosQueue) -> None:
    queue.put(BATCH, [queued("t")], lambda _: False)
    queue.cancel(list(queue.list(BATCH.name)))
    (row,) = queue.list(BATCH.name)
    assert queue.retry(row, "v2")
    assert not queue.retry(row, "v3"), "it waits already"
    (row,) = queue.list(BATCH.name)
    assert (row.state, row.version, row.group) == (TaskState.WAITING, "v2", "g")


def test_a_bundle_counts_by_its_commit_and_another_prompt_is_another_task() -> None:
    one, same = (queued("t", bundle=f"{n}.bundle", sha256=n, commit="c") for n in ("a", "b"))
    other = queued("t", bundle="a.bundle", sha256="a", commit="d")
    assert one.sha256 == same.sha256 != other.sha256
    assert queued("t", archive="a.tar", sha256="a").sha256 != queued("t", archive="b.tar", sha256="b").sha256


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://x/y", "invalid address"),
        ("queue.db", "invalid address"),
        ("sqlite://", "invalid address"),
        ("sqlite:////nowhere/at/all/q.db", "no such folder: /nowhere/at/all"),
        ("postgresql://me:secret@127.0.0.1:1/x", "no password in the address"),
        ("postgresql://127.0.0.1:1/x?password=secret", "no password in the address"),
        ("postgresql://me@127.0.0.1:1/x", "postgresql://me@127.0.0.1:1/x cannot be opened: connection failed"),
    ],
)
def test_unusable_queue_is_reported_without_its_password(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as raised:
        DbosQueue(url)
    assert "secret" not in str(raised.value)


def test_looking_at_a_queue_does_not_create_it(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    with pytest.raises(UsageError, match="no such queue"):
        DbosQueue(f"sqlite:///{path}", make=False)
    assert not path.exists()
    DbosQueue(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o077 == 0


def planted(queue: DbosQueue, path: Path, **columns: object) -> None:
    """Write into the row of the one task, as somebody may who can write to the database."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, value in columns.items():
            connection.execute(f"UPDATE workflow_status SET {name} = ?", (value,))


def test_task_that_ended_without_a_result_can_be_retried(queue: DbosQueue, tmp_path: Path) -> None:
    queue.put(BATCH, [queued("t")], lambda _: False)
    planted(queue, tmp_path / "queue.db", status="SUCCESS")
    (row,) = queue.list(BATCH.name)
    assert (row.state, is_tried_again(row), queue.retry(row, "v1")) == (TaskState.BROKEN, True, True)


def test_only_tasks_of_a_lost_worker_are_given_back(queue: DbosQueue, tmp_path: Path) -> None:
    """Else a task that another took meanwhile, or that was cancelled, would be done by two, or done at all."""
    queue.put(BATCH, [queued("t")], lambda _: False)
    for name, lease in (("gone", -1.0), ("other", 1e6)):
        queue.ledger.join(name, "v1", 1, lease)
    planted(queue, tmp_path / "queue.db", status="PENDING", executor_id="other")
    queue.give_back_lost()
    assert not queue.is_idle("v1")
    assert queue.counts() == {BATCH.name: {TaskState.RUNNING: 1}}
    queue.ledger.join("gone", "v1", 1, -1.0)
    planted(queue, tmp_path / "queue.db", executor_id="gone")
    queue.give_back_lost()
    assert queue.counts() == {BATCH.name: {TaskState.WAITING: 1}}


class Planted:
    """Makes a file when it is read out of a pickle."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (self._path,)


def test_pickles_are_never_read(queue: DbosQueue, tmp_path: Path) -> None:
    """Who can write to the database would run code in each worker, and where somebody retries."""
    queue.put(BATCH, [queued("t")], lambda _: False)
    trap = tmp_path / "trap"
    text = base64.b64encode(pickle.dumps(Planted(str(trap)))).decode()
    version = version_of(parser_for("worker").parse_args(["--queue", "q"]))

    def plant(status: str) -> None:
        planted(queue, tmp_path / "queue.db", serialization="py_pickle", status=status, application_version=version)
        with closing(sqlite3.connect(tmp_path / "queue.db")) as connection, connection:
            for table, column in (("workflow_input", "inputs"), ("workflow_output", "output")):
                into = f"INSERT OR REPLACE INTO {table} (workflow_uuid, {column}, retention_timestamp) VALUES (?, ?, 0)"
                connection.execute(into, (f"{BATCH.name}:t", text))

    plant("SUCCESS")
    (row,) = queue.list(BATCH.name)
    assert queue.retry(row, version)
    plant("ENQUEUED")
    words = ["-m", "harness", "worker", "--queue", f"sqlite:///{tmp_path}/queue.db", "--drain"]
    words += ["--base-url", "http://127.0.0.1:1/v1"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    subprocess.run([sys.executable, *words], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert not trap.exists()
    (row,) = queue.list(BATCH.name)
    assert row.state is TaskState.BROKEN
