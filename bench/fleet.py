"""Measure a queue on PostgreSQL: tasks a second, a worker at rest, and what a task costs the database.

Usage: python bench/fleet.py [--quick] [--before DIR] [PART ...]; parts: through, large, rest, batch, tasks. `--before` is
another checkout, to whose `harness batch` this one's is compared. Starts a server of its own. Prints a table; always exits 0:
a bench measures, it does not judge.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from postgres import Counters, cpu, postgres

from bench import HERE, row

if TYPE_CHECKING:
    from harness.actions import JsonValue
    from harness.plugins.fleet.queue.dbos_queue import DbosQueue
    from harness.plugins.fleet.queue.queue import Done, QueuedTask, TaskAttempt, TaskRow

ROOT = os.path.dirname(HERE)
VERSION = "bench"
BATCH = "b" * 12
WORKERS, JOBS = 4, 16
"""Processes that take empty tasks, and how many each has at once."""
LEASE = 60.0
TABLES = "dbos.workflow_status", "harness_attempts"
PROMPT = "Find out why the third test of the parser fails, mend it, and run all tests of the package. " * 10
RESULT: dict[str, JsonValue] = {
    "exit_code": 0, "how": "ran", "end": "done", "turns": 31, "refused": 0, "files": 2, "cost": 0.41, "seconds": 312.5,
    "tries": 1, "problem": "", "detail": "", "records": 210, "head": "5" * 64, "has_result": True,
}  # fmt: skip
"""Of the size that a worker notes."""
POLICY = 'version = 1\nname = "bench"\n[tools]\ndefault = "deny"\n'
LOOK = """\
import json, resource, sys
from harness.app.main import main
sys.argv[0] = "harness"
main()
used = resource.getrusage(resource.RUSAGE_SELF)
heavy = sorted({"dbos", "sqlalchemy", "psycopg", "fsspec"} & set(sys.modules))
print("", json.dumps({"modules": len(sys.modules), "cpu": used.ru_utime + used.ru_stime, "heavy": heavy}), sep="\\n")
"""
"""Runs the program, and prints what it loaded."""
LOADED = """\
insert into dbos.workflow_status ({columns}) select {values}
from dbos.workflow_status, generate_series(1, {count}) n where workflow_uuid = '{batch}:t0';
insert into harness_attempts (batch, task, number, worker, began, ended, how, cost, result, reason)
select '{batch}', 't' || n, 1, 'w', n, n, 'done', 0.41, '{result}', 'exit 0 done' from generate_series(1, {count} / 2) n;
update dbos.workflow_status set status = 'SUCCESS', output = '1', completed_at = 1
where workflow_uuid in (select '{batch}:t' || n from generate_series(1, {count} / 2) n);
"""
"""Fills the tables with copies of one task, half of them done."""


def queued(count: int, batch: str = BATCH) -> list[QueuedTask]:
    """Return so many tasks of the size of a real one."""
    from harness.plugins.fleet.queue.queue import QueuedTask

    common = {"prompt": PROMPT, "repo": "https://git.example.org/team/service.git", "commit": "a" * 40}
    limits: dict[str, JsonValue] = {"max_turns": 50, "max_cost": 2.0, "model": "m", "policy_sha256": "c" * 64}
    return [
        QueuedTask(batch=batch, task={"id": f"t{number}", **common, **limits}, version=VERSION, group=str(number % 20))
        for number in range(count)
    ]


def opened(url: str) -> DbosQueue:
    from harness.plugins.fleet.queue.open_queue import open_queue

    return open_queue(url)


def take_empty(url: str) -> None:
    """Be a worker whose tasks are nothing, until stdin ends."""
    from harness.plugins.fleet.queue.queue import Done

    queue = opened(url)

    def do(_: QueuedTask, attempt: TaskAttempt) -> Done:
        queue.finish(attempt, "done", RESULT)
        return Done.FINISHED

    queue.join(worker=f"bench-{os.getpid()}", version=VERSION, jobs=JOBS, lease=LEASE)
    queue.take(do)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(LEASE / 6):
            queue.beat({})

    threading.Thread(target=beat, daemon=True).start()
    sys.stdin.read()
    ended.set()
    queue.stop_taking(5)
    queue.leave()
    queue.close()


def through(url: str, count: int) -> None:
    """Put tasks in, and have workers take them, which do nothing: tasks a second, and what each costs the database."""
    from harness.plugins.fleet.queue.queue import Batch, QueueLimits

    queue, counters = opened(url), Counters(url)
    before = {table: counters.size(table) for table in TABLES}
    tasks = queued(count)
    counters.begin()
    queue.put(Batch(name=BATCH, out="/results"), tasks, again=_never)
    row("put: tasks a second", f"{count / counters.seconds():.0f}", "", None, "")
    row("put: statements a task", f"{counters.statements() / count:.2f}", "", None, "")
    row("put: WAL a task", f"{counters.wal() / count:,.0f} B", "", None, "")
    counters.begin()
    held = taken(queue, url)
    row("take and finish: statements a task", f"{counters.statements() / count:.1f}", "", None, "")
    row("take and finish: WAL a task", f"{counters.wal() / count:,.0f} B", "", None, "")
    for table in TABLES:
        rows, size = counters.value(f"select count(*) from {table}"), counters.size(table) - before[table]
        row(f"{table}: rows and bytes a task", f"{rows / count:.2f}", f"{size / count:,.0f} B", None, "")
    row(f"connections of {WORKERS} workers, and of this", f"{held:.0f}", "", None, "")
    limits = {
        "no limit": QueueLimits(),
        "--at-once": QueueLimits(at_once=WORKERS * JOBS),
        "--starts": QueueLimits(starts=100_000, seconds=60),
        "--per-group": QueueLimits(per_group=WORKERS * JOBS),
    }
    for number, (name, of_queue) in enumerate(limits.items()):
        batch = f"{number:012}" if number else BATCH
        if number:
            queue.limit(of_queue)
            queue.put(Batch(name=batch, out="/results"), queued(count // 5, batch), again=_never)
            taken(queue, url, batch)
        pace = counters.value(
            f"select count(*) / (max(ended) - min(began)) from harness_attempts where batch = '{batch}'"
        )
        row(f"{WORKERS} workers of {JOBS}, {name}: tasks a second", f"{pace:.0f}", "50", pace / 50, ">= 1")
    queue.limit(QueueLimits())
    queue.close()


def taken(queue: DbosQueue, url: str, batch: str = BATCH) -> float:
    """Have workers do all tasks of a batch. Return how many connections there were at the end."""
    with workers_at(url, WORKERS):
        while queue.undone(batch):
            time.sleep(0.5)
        return Counters(url).connections()


def large(url: str, count: int) -> None:
    """A batch of so many tasks, half of them done: what reads all of it, and one look for a task."""
    import sqlalchemy as sa

    from harness.plugins.fleet.queue.queue import Batch

    queue, counters = opened(url), Counters(url)
    queue.put(Batch(name=BATCH, out="/results"), queued(1), again=_never)
    queue.join(worker="w", version=VERSION, jobs=1, lease=1e6)
    with counters.engine.begin() as connection:
        found = connection.execute(sa.text(_COLUMNS)).scalars().all()
        values = [f"'{BATCH}:t' || n" if name == "workflow_uuid" else name for name in found]
        given = {"columns": ", ".join(found), "values": ", ".join(values), "count": count, "batch": BATCH}
        connection.exec_driver_sql(LOADED.format(**given, result=json.dumps(RESULT)))
    with counters.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("vacuum analyze"))
    with_budget = Batch(name=BATCH, out="/results", budget=1e9)
    begins = iter(range(count - 10, count))
    reads: dict[str, Callable[[], object]] = {
        "undone: --wait asks it once a second": lambda: queue.undone(BATCH),
        "new results: --wait asks it once a second": lambda: queue.results(BATCH, count),
        "is_idle: --drain asks it every 2 seconds": lambda: queue.is_idle(VERSION),
        "counts and ends: `queue status`": lambda: (queue.counts(), queue.ledger.ends(BATCH)),
        "begin": lambda: queue.ledger.begin(BATCH, f"t{next(begins)}", "w"),
        "results of all: the begin of --wait": lambda: queue.results(BATCH),
        "list: `batch` once more, cancel, retry": lambda: sum(1 for _ in queue.list(BATCH)),
    }
    for name, read in reads.items():
        row(name, f"{1e3 * timed(read):,.1f} ms", f"{count:,} tasks", None, "")
    queue.ledger.note_batch(with_budget)
    row("begin, with a budget", f"{1e3 * timed(reads['begin']):,.1f} ms", f"{count:,} tasks", None, "")
    counters.begin()
    with workers_at(url, 1):
        time.sleep(5)
        looks = "select avg(mean_exec_time) from pg_stat_statements where query ~ 'FOR UPDATE SKIP LOCKED'"
        row("a look for tasks, at the server", f"{counters.value(looks):,.1f} ms", f"{count:,} tasks", None, "")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    row("resident: this process at its most", f"{most / 1e6:,.0f} MB", f"{count:,} tasks", None, "")
    queue.close()


_COLUMNS = (
    "select column_name from information_schema.columns where table_schema = 'dbos' and table_name = 'workflow_status' "
    "and is_generated = 'NEVER'"
)


def timed(read: Callable[[], object]) -> float:
    """Return the seconds of the fastest of three."""
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        read()
        seconds.append(time.monotonic() - began)
    return min(seconds)


def _never(_: TaskRow) -> bool:
    return False


@contextmanager
def workers_at(url: str, count: int) -> Iterator[None]:
    """Have so many processes take empty tasks until the block ends."""
    command = [sys.executable, __file__, "--worker", url]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield
    finally:
        for worker in workers:
            worker.communicate()


def at_rest(url: str, folder: str, seconds: float) -> None:
    """One worker of the program that has nothing to do: CPU, memory, connections, and what it asks the server."""
    policy = os.path.join(folder, "policy.toml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    counters = Counters(url)
    command = [sys.executable, "-m", "harness", "worker", "--queue", url, "--policy", policy, "-j", "4"]
    environment = {**os.environ, "XDG_STATE_HOME": os.path.join(folder, "state")}
    worker = subprocess.Popen([*command, "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], env=environment)
    time.sleep(10 if seconds < 60 else 75)  # in its first minute DBOS looks for schedules each second
    counters.begin()
    began, served = cpu(worker.pid), counters.cpu()
    time.sleep(seconds)
    served = counters.cpu() - served
    used, passed = cpu(worker.pid) - began, counters.seconds()
    memory = memory_of(worker.pid)
    row("at rest: CPU at the server, of a core", f"{served / passed:.2%}", "", None, "")
    row("at rest: CPU of a core", f"{used / passed:.2%}", "1 %", used / passed / 0.01, "<= 1")
    row("at rest: resident", f"{memory['Rss'] / 1e6:.0f} MB", "90 MB", memory["Rss"] / 90e6, "<= 1")
    row("at rest: its share (PSS)", f"{memory['Pss'] / 1e6:.0f} MB", "", None, "")
    row("at rest: statements a second", f"{counters.statements() / passed:.2f}", "", None, "")
    committed = "select sum(calls) from pg_stat_statements where query ~* '^(commit|rollback)'"
    row("at rest: transactions a second", f"{counters.value(committed) / passed:.2f}", "", None, "")
    row("at rest: WAL a second", f"{counters.wal() / passed:,.0f} B", "", None, "")
    row("at rest: connections", f"{counters.connections():.0f}", "", None, "")
    worker.send_signal(signal.SIGTERM)
    worker.wait()


def memory_of(number: int) -> Mapping[str, int]:
    """Return what smaps_rollup says of a process, in bytes."""
    with open(f"/proc/{number}/smaps_rollup", encoding="ascii") as file:
        lines = [line.split() for line in file.readlines()[1:]]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}


def batch_alone(folder: str, before: str | None, runs: int) -> None:
    """`harness batch` without a queue, over tasks that cannot begin: the modules and the CPU of its own process."""
    place = os.path.join(folder, "alone")
    os.mkdir(place)
    policy, tasks = os.path.join(place, "policy.toml"), os.path.join(place, "tasks.jsonl")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    with open(tasks, "w", encoding="utf-8") as file:
        file.write(
            "".join(json.dumps({"id": f"t{n}", "prompt": PROMPT, "cwd": f"{place}/none"}) + "\n" for n in range(3))
        )
    if before:  # as this one is
        subprocess.run([sys.executable, "-m", "compileall", "-q", os.path.join(before, "harness")], check=False)
    trees = {"now": ROOT, **({"before": before} if before else {})}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    for turn in range(runs + 1):
        for name, tree in trees.items():
            words = ["batch", tasks, "--out", os.path.join(place, f"{name}{turn}"), "--policy", policy, "-j", "1", "-q"]
            done = subprocess.run(
                [sys.executable, "-c", LOOK, *words, "--base-url", "http://127.0.0.1:9/v1", "--model", "m"],
                capture_output=True, text=True, check=False, cwd=place,
                env={**os.environ, "PYTHONPATH": tree, "XDG_STATE_HOME": os.path.join(place, "state")},
            )  # fmt: skip
            if turn:
                found[name].append(json.loads(done.stdout.splitlines()[-1]))
    times = {name: statistics.median(one["cpu"] for one in looks) for name, looks in found.items()}
    floor = times.get("before", times["now"])
    for name, looks in found.items():
        modules, heavy = looks[0]["modules"], ", ".join(looks[0]["heavy"]) or "none of a queue or a store"
        took, before_took = f"{times[name] * 1e3:.0f} ms", f"{floor * 1e3:.0f} ms"
        row(f"batch without a queue, {name}: CPU", took, before_took, times[name] / floor, "<= 1.05")
        row("  modules", f"{modules}", "", None, heavy)


def tasks_of_a_batch(folder: str, before: str | None, runs: int) -> None:
    """`harness batch` over tasks of one call each: the CPU of a task with all its processes, and the time of all tasks.

    The CPU is the difference between many tasks and few, so that the start of the batch does not count.
    """
    few, many = 4, 24
    place = os.path.join(folder, "tasks")
    work = os.path.join(place, "work")
    os.makedirs(work)
    policy = os.path.join(place, "policy.toml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY.replace("[tools]", '[tools]\nbash = "auto"'))
    words = [sys.executable, os.path.join(HERE, "server.py"), "1", "true"]
    model = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout is not None
        url = f"http://127.0.0.1:{int(model.stdout.readline())}/v1"
        trees = {"now": ROOT, **({"before": before} if before else {})}
        costs: dict[str, list[float]] = {name: [] for name in trees}
        times: dict[str, list[float]] = {name: [] for name in trees}
        for turn in range(runs):
            for name, tree in trees.items():
                used, began = {}, 0.0
                for count in (few, many):
                    tasks = os.path.join(place, f"{name}{turn}-{count}.jsonl")
                    with open(tasks, "w", encoding="utf-8") as file:
                        file.write(
                            "".join(
                                json.dumps({"id": f"t{n}", "prompt": "Work.", "cwd": work}) + "\n" for n in range(count)
                            )
                        )
                    out = tasks.removesuffix(".jsonl")
                    words = ["batch", tasks, "--out", out, "--policy", policy, "-j", "2", "-q", "--base-url", url]
                    began, at_first = time.monotonic(), _children_cpu()
                    subprocess.run(
                        [sys.executable, "-m", "harness", *words, "--model", "m"],
                        stdout=subprocess.DEVNULL, check=True, cwd=place,
                        env={
                            **os.environ, "PYTHONPATH": tree, "OPENAI_API_KEY": "none",
                            "XDG_STATE_HOME": os.path.join(place, "state"),
                        },
                    )  # fmt: skip
                    used[count] = _children_cpu() - at_first
                costs[name].append((used[many] - used[few]) / (many - few))
                times[name].append(time.monotonic() - began)
        floor = statistics.median(costs.get("before", costs["now"]))
        for name, measured in costs.items():
            cost = statistics.median(measured)
            row(f"a task of a batch, {name}: CPU", f"{cost:.2f} s", f"{floor:.2f} s", cost / floor, "0.15 s")
            row(f"  {many} tasks, two at once", f"{statistics.median(times[name]):.1f} s", "", None, "")
    finally:
        model.communicate()


def _children_cpu() -> float:
    """Return the CPU seconds of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", metavar="DIR")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*")
    given = parser.parse_args()
    if given.worker:
        take_empty(given.worker)
        return
    parts = given.parts or ["through", "rest", "large", "batch", "tasks"]
    with tempfile.TemporaryDirectory() as folder:
        if "batch" in parts:
            batch_alone(folder, given.before, 3 if given.quick else 11)
        if "tasks" in parts:
            tasks_of_a_batch(folder, given.before, 1 if given.quick else 5)
        server = os.path.join(folder, "server")
        os.mkdir(server)
        os.chmod(folder, 0o711)
        if {"through", "rest", "large"} & set(parts):
            with postgres(server) as url:
                if "through" in parts:
                    through(url, 500 if given.quick else 5_000)
                if "large" in parts:
                    large(url.replace("/harness", "/large"), 20_000 if given.quick else 200_000)
                if "rest" in parts:
                    opened(url).close()
                    at_rest(url, folder, 15 if given.quick else 60)


if __name__ == "__main__":
    main()
