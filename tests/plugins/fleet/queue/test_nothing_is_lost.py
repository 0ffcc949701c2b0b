"""Nothing is lost, and nothing counts twice: whatever is killed, stopped or full while a queue is worked on."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from batch_scene import POLICY, SECONDS, add_gate, git, serving, until
from fleet_scene import (
    AttemptRow,
    Fleet,
    WorkerProcess,
    can_mount,
    ended,
    logs_of,
    until_running,
    with_small_disk,
)
from postgres_server import PostgresServer
from program import Done, Program
from sizes import proof_size

from harness.plugins.fleet.queue.open_queue import open_queue
from harness.plugins.fleet.queue.queue import WorkerLostError

COUNT = proof_size("FLEET_TASKS", 12, full=1000)
KILLS = max(2, COUNT // 25)
LEASE = float(proof_size("FLEET_LEASE", 4, full=15))
"""Seconds: short, so that a worker that goes on after a stop soon hears that it was lost."""
MACHINES = "one", "two"
WORKERS = 4
HELD = "bash python3 s.py"
"""What a task does that goes on until its gate is there."""
STEPS = "write f {0}\nbash sleep 0.3\nwrite g {0}"


class Base:
    """The data base of a queue, which can be away for a while."""

    def __init__(self, url: str, away: Callable[[], None], is_free: Callable[[], bool]) -> None:
        self.url = url
        self.away = away
        """Take it away for some seconds."""
        self.is_free = is_free
        """Say whether nobody holds it up."""


def sqlite_base(folder: Path) -> Base:
    path = folder / "queue.db"

    def away() -> None:
        with closing(sqlite3.connect(path, timeout=SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(2.0)
            connection.execute("ROLLBACK")

    def is_free() -> bool:
        try:
            with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        return True

    return Base(f"sqlite:///{path}", away, is_free)


def postgres_base(server: PostgresServer, name: str) -> Base:
    url = server.url(name)

    def away() -> None:
        server.stop()
        time.sleep(2.0)
        server.start()

    def is_free() -> bool:
        held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(10):
                row = connection.execute(held).fetchone()
                if row is not None and not row[0]:
                    return True
                time.sleep(0.1)
        return False

    return Base(url, away, is_free)


@pytest.fixture(params=["sqlite", "postgres"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    """The data base of a queue, of either kind."""
    if request.param == "sqlite":
        return sqlite_base(tmp_path)
    return postgres_base(request.getfixturevalue("postgres"), "proof")


class Proof:
    """Four workers on two machines, and what befalls them."""

    def __init__(self, fleet: Fleet, base: Base) -> None:
        self.fleet = fleet
        self.base = base
        self.up: list[WorkerProcess] = []
        self.stopped: list[tuple[WorkerProcess, AttemptRow]] = []
        self.logs: list[AttemptRow] = []
        """Attempts whose log must be there at the end."""

    def keep_up(self) -> None:
        """Have four workers that are alive. One that a busy machine kept from saying so has ended by itself."""
        self.up = [worker for worker in self.up if worker.is_alive]
        while len(self.up) + len(self.stopped) < WORKERS:
            machine = MACHINES[len(self.fleet.workers) % len(MACHINES)]
            self.up.append(self.fleet.worker("-j", "1", machine=machine, lease=LEASE))

    def until(self, happened: Callable[[], object]) -> None:
        """Wait for what must happen, with four workers."""
        end = time.monotonic() + SECONDS
        while not happened():
            assert time.monotonic() < end, (self.fleet.attempts(), [worker.said for worker in self.up])
            self.keep_up()
            time.sleep(0.1)

    def waited(self, batch: subprocess.Popen[bytes]) -> Done:
        """Return what a batch that waits comes to. From one result to the next there is an end to patience."""
        count = -1
        while batch.poll() is None and count < (now := self.fleet.done()):
            count = now
            self.until(partial(self._goes_on, batch, count))
        return ended(batch)

    def _goes_on(self, batch: subprocess.Popen[bytes], count: int) -> bool:
        return batch.poll() is not None or self.fleet.done() > count

    def one_at_work(self) -> tuple[WorkerProcess, AttemptRow]:
        """Return a worker that is in the middle of a task, unless it is the third attempt: no task loses three workers."""
        found: list[tuple[WorkerProcess, AttemptRow]] = []

        def is_there() -> bool:
            for row in self.fleet.running():
                worker = next((one for one in self.up if f"worker {row.worker}:" in one.said), None)
                if worker is not None and row.number < 3 and logs_of(self.fleet, row):
                    found.append((worker, row))
                    break
            return bool(found)

        self.until(is_there)
        return found[0]

    def kill_one(self) -> None:
        worker, row = self.one_at_work()
        worker.end(signal.SIGKILL)
        self.fleet.silence(row.worker)
        self.up.remove(worker)
        self.logs.append(row)
        self.keep_up()

    def stop_one(self) -> None:
        """Stop a worker, but not while it holds up the data base: then all would wait for it."""
        while True:
            worker, row = self.one_at_work()
            worker.send(signal.SIGSTOP)
            if self.base.is_free() and worker.is_alive:
                break
            worker.send(signal.SIGCONT)
        self.up.remove(worker)
        self.stopped.append((worker, row))
        self.logs.append(row)

    def wake_zombies(self) -> None:
        """Let the stopped ones go on, once the queue gave their tasks to others."""
        zombies = {(row.task, row.number) for _, row in self.stopped}

        def are_lost() -> bool:
            return not zombies & {(row.task, row.number) for row in self.fleet.running()}

        for name in {row.worker for _, row in self.stopped}:
            self.fleet.silence(name)
        self.until(are_lost)
        woken, self.stopped = self.stopped, []
        for worker, _ in woken:
            worker.send(signal.SIGCONT)
        for worker, row in woken:
            assert worker.end() == 1, worker.said
            assert "others do it" in worker.said or f"{row.task}: attempt {row.number} came too late" in worker.said


@pytest.fixture
def proof(program: Program, tmp_path: Path, base: Base) -> Iterator[Proof]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player):
        fleet = Fleet(program, tmp_path, base.url, url, player, poll=None)
        yield Proof(fleet, base)
        fleet.close()


def test_every_task_has_one_result_and_every_log_is_whole(proof: Proof) -> None:
    fleet = proof.fleet
    fleet.tasks([STEPS.format(n) for n in range(COUNT)])
    fleet.put()
    other = fleet.folder / "other.toml"
    other.write_text(POLICY.replace('name = "batch"', 'name = "other"'))
    stranger = fleet.worker("-j", "4", policy=other, machine="stranger", lease=SECONDS)
    if can_mount():
        full = fleet.worker("-j", "1", machine="full", before=with_small_disk(fleet.folder / "full", "100k"))
        assert full.end() == 1, full.said
        assert "nothing more is taken, since t" in full.said
    assert fleet.done() == 0
    waiting = fleet.waiting("-q")
    proof.stop_one()
    proof.stop_one()
    for kill in range(KILLS):
        enough = COUNT * kill // (KILLS + 2)
        proof.until(partial(fleet.has_done, enough))
        proof.kill_one()
        if kill == KILLS // 2:
            proof.base.away()
        if kill == 1:
            proof.wake_zombies()
    done = proof.waited(waiting)
    while "unknown effect" in done.out:
        # Where the machine was so busy that a task lost its workers three times, a person would do the same.
        done = proof.waited(fleet.waiting("-q"))
    assert done.code == 0, done
    for worker in (*proof.up, stranger):
        worker.send(signal.SIGTERM)
    lost = [worker for worker in proof.up if worker.end() != 0]
    assert all("others do it" in worker.said for worker in lost)
    assert stranger.end() == 0
    assert "harness: 0 tasks brought to an end" in stranger.said
    # What killed workers left, the next one of the machine gives in.
    for last in [fleet.worker("--drain", machine=machine, lease=SECONDS) for machine in MACHINES]:
        assert last.end() == 0, last.said
        assert "stays" not in last.said
        assert list((last.machine / "harness-workers").iterdir()) == []
    check_results(fleet)
    check_attempts(fleet)
    check_rest(fleet)
    assert [row for row in proof.logs if not fleet.log(row.task, row.number).exists()] == []


def check_results(fleet: Fleet) -> None:
    """Each task has one result; each log is the one that the queue was told of."""
    assert [(row["id"], row["exit_code"]) for row in fleet.rows()] == [(f"t{n}", 0) for n in range(COUNT)]
    for n in range(COUNT):
        patch = (fleet.out / f"t{n}" / "changes.patch").read_text()
        assert (patch.count(f"+{n}\n"), patch.count("diff --git")) == (2, 2)
    heads = fleet.out / "heads.jsonl"
    works = {n: json.loads((fleet.out / f"t{n}" / "work.json").read_text()) for n in range(COUNT)}
    counted = [str(fleet.log(f"t{n}", work["attempt"])) for n, work in works.items()]
    assert set(counted) <= {json.loads(line)["file"] for line in heads.read_text().splitlines()}
    verified = fleet.program.run("audit", "verify", "--heads", str(heads), *counted)
    assert verified.code == 0, verified.out[-2000:]
    # The log of an attempt that was killed is open (exit code 3), and not broken.
    verified = fleet.program.run("audit", "verify", "--heads", str(heads), str(fleet.out))
    assert verified.code in (0, 3), verified.out[-2000:]


def check_attempts(fleet: Fleet) -> None:
    """One attempt at each task counts, and none began before the one before it was at its end."""
    attempts = fleet.attempts()
    assert sorted(row.task for row in attempts if row.how == "done") == sorted(f"t{n}" for n in range(COUNT))
    assert {row.how for row in attempts} <= {"done", "lost", "late", "broken", "not begun", "retried"}
    for before, after in pairwise(attempts):
        if before.task == after.task:
            assert after.number == before.number + 1
            assert before.ended is not None
            assert after.began >= before.ended


def check_rest(fleet: Fleet) -> None:
    """No process, no worktree, no row is left."""
    status = fleet.status()
    assert (status["running"], status["workers"], status["without_worker"]) == ([], [], {})
    assert fleet.state() == {"waiting": 0, "running": 0, "done": COUNT, "cancelled": 0}
    assert fleet.processes() == {}
    mirrors = [path for machine in MACHINES for path in (fleet.folder / machine).glob("harness/mirrors/*.git")]
    assert mirrors
    for path in (*mirrors, fleet.repository):
        assert git(path, "worktree", "list").count("\n") == 1


def test_a_task_that_its_workers_do_not_survive_is_given_up(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks({"deadly": HELD})
    fleet.put()
    waiting = fleet.waiting()
    while not fleet.done():
        worker = fleet.worker("-j", "1", lease=SECONDS)
        name = worker.name

        def is_deadly(worker: WorkerProcess = worker, name: str = name) -> bool:
            rows = [row for row in fleet.running("deadly") if row.worker == name]
            return any(logs_of(fleet, row) for row in rows) or not worker.is_alive or fleet.done() > 0

        until(is_deadly)
        if fleet.done():
            worker.end(signal.SIGTERM)
        else:
            worker.end(signal.SIGKILL)
            fleet.silence(name)
    done = ended(waiting)
    assert done.code == 1, done
    (row,) = fleet.rows()
    assert (row["how"], row["exit_code"]) == ("unknown effect", None)
    assert row["problem"].startswith("its worker was lost 3 times; see its attempts")
    assert [(row.number, row.how) for row in fleet.attempts()] == [(1, "lost"), (2, "lost"), (3, "lost"), (4, "done")]
    assert fleet.status()["batches"][0]["ends"] == {"unknown effect": 1}
    # A person who looked at the logs says that it is to be done again.
    gate.touch()
    fleet.said("retry", fleet.batch)
    assert fleet.worker("--drain", lease=SECONDS).end() == 0
    done = fleet.wait()
    assert done.code == 0, done
    assert [path.name for path in sorted((fleet.out / "deadly" / "attempts").iterdir())] == ["1", "2", "3", "5"]
    assert fleet.processes() == {}


def test_tasks_of_a_forgotten_worker_are_done_by_others(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    add_gate(fleet.repository, gate)
    fleet.tasks([HELD])
    fleet.put()
    zombie = fleet.worker(lease=30.0)  # it beats every five seconds
    until_running(fleet, "t0")
    # It was silent for so long that others did its tasks and forgot it. Then it took this one, before it saw that.
    fleet.forget(zombie.name)
    assert zombie.end() == 1
    assert "others do it" in zombie.said
    gate.touch()
    worker = fleet.worker(lease=SECONDS)
    until(fleet.done)
    assert worker.end(signal.SIGTERM) == 0, worker.said
    assert [(row.number, row.how) for row in fleet.attempts()] == [(1, "lost"), (2, "done")]
    assert fleet.status()["workers"] == []


def test_result_noted_late_is_reported(fleet: Fleet) -> None:
    fleet.tasks(["write f 1", "write f 2"])
    fleet.put()
    fleet.said("limit", "--at-once", "1", "--starts", "1/1000")
    waiting = fleet.waiting()
    worker = fleet.worker("-j", "1", lease=SECONDS)
    until(fleet.done)
    worker.send(signal.SIGTERM)
    (done,) = [row for row in fleet.attempts() if row.how == "done"]
    assert waiting.stderr is not None
    while f"harness: {done.task}: exit 0".encode() not in waiting.stderr.readline():
        pass  # the batch saw this one
    assert worker.end() == 0
    # Its transaction began before, and came to its end after: the time is an earlier one.
    (other,) = {"t0", "t1"} - {done.task}
    fleet.note_result(other, number=9, ended=done.began, result={"how": "cannot begin", "exit_code": 2})
    assert (ended(waiting).code, [row["exit_code"] for row in fleet.rows()].count(2)) == (2, 1)


def test_attempt_does_not_begin_for_a_lost_worker(fleet: Fleet) -> None:
    fleet.tasks(["write f 1"])
    fleet.put()
    queue = open_queue(fleet.queue)
    try:
        queue.ledger.join("silent", "version", 1, 0.0)
        until(lambda: "silent" in queue.ledger.reap())
        for worker in ("unknown", "silent"):
            with pytest.raises(WorkerLostError):
                queue.ledger.begin(fleet.batch, "t0", worker)
        queue.ledger.join("alive", "version", 1, SECONDS)
        attempt = queue.ledger.begin(fleet.batch, "t0", "alive")
        assert attempt is not None
        assert attempt.number == 1
    finally:
        queue.close()
