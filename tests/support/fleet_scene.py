"""A queue, a batch in it, and workers as real processes on several machines: each machine is a state folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from batch_scene import POLICY, SECONDS, ByContent, repository, until, write_tasks
from program import Done, Program

from harness.plugins.fleet.queue.open_queue import open_queue
from harness.process import procfs

LEASE = 6.0
"""Seconds: short, so that a dead worker is soon noticed. A worker that a busy machine holds up for so long is lost too."""


POLL = 0.1
"""Seconds between two polls for tasks of the queues here."""


class AttemptRow(NamedTuple):
    """An attempt as the queue has it."""

    task: str
    number: int
    worker: str
    began: float
    ended: float | None
    how: str | None


class WorkerProcess:
    """A worker, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes], machine: Path, errors: Path) -> None:
        self.process = process
        self.machine = machine
        """Its state folder."""
        self._errors = errors

    @property
    def said(self) -> str:
        """What it wrote to stderr so far."""
        return self._errors.read_text(errors="replace")

    @property
    def name(self) -> str:
        """What the queue calls it; waits until it says so."""
        until(lambda: "harness: worker " in self.said or self.process.poll() is not None)
        assert "harness: worker " in self.said, self.said
        return self.said.partition("harness: worker ")[2].partition(":")[0]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal; one that has ended gets none."""
        self.process.send_signal(number)

    def end(self, number: signal.Signals | None = None) -> int:
        """Send a signal, if one is given. Return the exit code once the worker has ended."""
        if number is not None:
            self.send(number)
        until(lambda: not self.is_alive)
        return self.process.returncode


class Fleet:
    """A batch of tasks in a queue, and all that works on it."""

    def __init__(
        self, program: Program, folder: Path, queue: str, url: str, player: ByContent, *, poll: float | None = POLL
    ) -> None:
        """Take the queue's address, and the seconds between two polls of its workers (`None`: as users have them)."""
        self.program = program
        self.player = player
        self.queue = queue
        self._poll = poll
        self.folder = folder
        self.repository = repository(folder / "repository")
        self.out = folder / "out"
        self.file = folder / "tasks.jsonl"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self.workers: list[WorkerProcess] = []
        self.url = url
        patience: dict[str, Any] = {"timeout": SECONDS} if queue.startswith("sqlite:") else {}
        self._engine = sa.create_engine(
            queue.replace("postgresql:", "postgresql+psycopg:"), connect_args=patience, pool_pre_ping=True
        )

    def tasks(self, prompts: Mapping[str, str] | Sequence[str], **more: object) -> None:
        """Write tasks: by their ids, or t0, t1 ...; each has `more` besides."""
        given = prompts if isinstance(prompts, Mapping) else {f"t{n}": prompt for n, prompt in enumerate(prompts)}
        cwd = str(self.repository)
        write_tasks(
            self.file, *[dict[str, object](id=key, prompt=text, cwd=cwd, **more) for key, text in given.items()]
        )

    def batch_words(self, *more: str) -> list[str]:
        own = ["batch", str(self.file), "--out", str(self.out), "--policy", str(self.policy)]
        return [*own, "--queue", self.queue, *more]

    def put(self, *more: str) -> Done:
        """Put the tasks in. The first time this makes the queue."""
        with closing(open_queue(self.queue, poll_seconds=self._poll)):
            pass
        done = self.program.run(*self.batch_words(*more))
        assert done.code == 0, done
        return done

    def waiting(self, *more: str) -> subprocess.Popen[bytes]:
        """Start a batch that puts in what is to be done, and waits for the end."""
        return self.program.start(*self.batch_words("--wait", *more))

    def wait(self, *more: str) -> Done:
        """Do the same, to its end."""
        return ended(self.waiting(*more))

    def said(self, action: str, *more: str) -> str:
        """Return what `harness queue ACTION` wrote."""
        return self.program.said("queue", action, "--queue", self.queue, *more)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.said("status", "--json"))
        return found

    @property
    def batch(self) -> str:
        """The name of the batch in the queue."""
        (found,) = self.status()["batches"]
        return str(found["batch"])

    def state(self) -> dict[str, int]:
        """Return how many tasks of the batch are where."""
        (found,) = self.status()["batches"]
        return {name: found[name] for name in ("waiting", "running", "done", "cancelled")}

    def attempts(self, task: str | None = None, which: str = "") -> list[AttemptRow]:
        """Return the attempts at all tasks, or at one, in their order; those alone of which SQL says so."""
        columns = ", ".join(AttemptRow._fields)
        query = f"SELECT {columns} FROM harness_attempts {which} ORDER BY task, number"
        with self._engine.connect() as connection:
            rows = [AttemptRow(*row) for row in connection.execute(sa.text(query))]
        return [row for row in rows if task in (None, row.task)]

    def running(self, task: str | None = None) -> list[AttemptRow]:
        """Return the attempts that are not at their end."""
        return self.attempts(task, "WHERE ended IS NULL")

    def done(self) -> int:
        """Return how many tasks have their result."""
        with self._engine.connect() as connection:
            return int(
                connection.execute(sa.text("SELECT count(*) FROM harness_attempts WHERE how = 'done'")).scalar() or 0
            )

    def silence(self, worker: str) -> None:
        """Set the last heartbeat of a stopped worker far back, as if its lease had passed. Who looks next sees it as lost."""
        with self._engine.begin() as connection:
            aged = sa.text("UPDATE harness_workers SET seen = seen - lease - 1 WHERE name = :name")
            connection.execute(aged, {"name": worker})

    def lose(self, worker: str) -> None:
        """Do the same, and look: the tasks of the worker go back into the queue."""
        self.silence(worker)
        with closing(open_queue(self.queue)) as queue:
            queue.give_back_lost()

    def forget(self, worker: str) -> None:
        """Have the queue know nothing of a worker any more."""
        with self._engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM harness_workers WHERE name = :name"), {"name": worker})

    def note_result(self, task: str, *, number: int, ended: float, result: Mapping[str, object]) -> None:
        """Note a result as a worker does, and that the task is done."""
        identity = {"batch": self.batch, "task": task, "number": number}
        row = {**identity, "ended": ended, "result": json.dumps(result), "cancelled": False}
        columns = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        insert = f"INSERT INTO harness_attempts ({columns}, worker, began, how) VALUES ({values}, 'w', 0, 'done')"
        schema = "" if self.queue.startswith("sqlite:") else "dbos."
        with self._engine.begin() as connection:
            connection.execute(sa.text(insert), row)
            connection.execute(
                sa.text(f"UPDATE {schema}workflow_status SET status = 'SUCCESS' WHERE workflow_uuid = :id"),
                {"id": f"{identity['batch']}:{task}"},
            )

    def has_done(self, count: int) -> bool:
        """Say whether so many tasks have their result."""
        return self.done() >= count

    def worker(
        self,
        *more: str,
        machine: str = "state",
        lease: float = LEASE,
        policy: Path | None = None,
        before: Sequence[str] = (),
    ) -> WorkerProcess:
        """Start a worker on a machine. `before` are words in front of the program."""
        state = self.folder / machine
        state.mkdir(exist_ok=True)
        errors = self.folder / f"worker-{len(self.workers)}.txt"
        words = ["worker", "--queue", self.queue, "--policy", str(policy or self.policy), "--base-url", self.url]
        words += ["--model", "m", "--lease", str(lease), "--out", str(self.folder), *more]
        with errors.open("wb") as file:
            options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": file}
            options["env"] = {**self.program.environment, "XDG_STATE_HOME": str(state)}
            if before:
                command = [*before, *self.program.command(*words)]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=self.program.workspace, **options)
            else:
                process = self.program.start(*words, **options)
        self.workers.append(WorkerProcess(process, state, errors))
        return self.workers[-1]

    def log(self, task: str, number: int) -> Path:
        return self.out / task / "attempts" / str(number) / "log.jsonl"

    def rows(self, name: str = "summary.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def processes(self) -> dict[int, str]:
        """Return the processes that have to do with this fleet, ended ones left out: by their command line or folder."""
        mark, found = str(self.folder), {}
        for number in procfs.numbers():
            try:
                words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                folder = os.readlink(f"/proc/{number}/cwd")
            except OSError:
                continue  # it has ended
            if (mark in words or folder.startswith(mark)) and number != os.getpid():
                found[number] = f"{folder}: {words}"
        return found

    def close(self) -> None:
        """End what is left, also after a test that failed."""
        for worker in self.workers:
            worker.end(signal.SIGKILL)
        self._engine.dispose()


def ended(process: subprocess.Popen[bytes], seconds: float = SECONDS) -> Done:
    """Return what a process came to, and wrote, once it has ended."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"the program hung: {out!r} {err!r}") from None
    return Done(process.returncode, out.decode(), err.decode())


def with_small_disk(state: Path, size: str) -> list[str]:
    """Return words before a program for which the folder `state` lies on a disk of `size`, in memory. Only root can do that."""
    state.mkdir(exist_ok=True)
    code = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", code, str(state)]


def can_mount() -> bool:
    """Say whether `with_small_disk` can work here."""
    words = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def until_running(fleet: Fleet, task: str, number: int | None = None) -> AttemptRow:
    """Return the attempt at a task once its process has written to its log, and it is the one of that number."""
    found: list[AttemptRow] = []

    def is_begun() -> bool:
        found[:] = [row for row in fleet.running(task) if number in (None, row.number)]
        return bool(found) and any(logs_of(fleet, found[0]))

    until(is_begun)
    return found[0]


def logs_of(fleet: Fleet, row: AttemptRow) -> list[Path]:
    """Return the logs of an attempt on the machine that is at it."""
    pattern = f"*/harness-workers/{row.worker}/*/{row.task}/attempts/{row.number}/log.jsonl"
    return [path for path in fleet.folder.glob(pattern) if path.stat().st_size]
