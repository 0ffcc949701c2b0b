"""The queue on DBOS Transact (docs.dbos.dev). DBOS stores the tasks in its tables, and its threads take them.

Read `queue` first.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Semaphore
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos import Queue as DatabaseQueue
from sqlalchemy.exc import DBAPIError

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.fleet.queue.ledger import FleetLedger, engine_of, first_line
from harness.plugins.fleet.queue.queue import (
    NAME_LENGTH,
    Batch,
    Beaten,
    Do,
    Done,
    Growth,
    QueueAwayError,
    QueuedTask,
    QueueLimits,
    TaskAttempt,
    TaskResult,
    TaskRow,
    TaskState,
    WorkerLostError,
)

APPLICATION = "harness"
TASK = "task"
"""Name of the only DBOS workflow, which runs one task."""
POLL_SECONDS = 1.0
"""Seconds between two polls for tasks, in a queue whose maker names no other."""
REST_SECONDS = 3600.0
"""Seconds between two polls for internal tasks of DBOS. There are none here."""
AT_ONCE = 500
"""Maximum number of tasks that one transaction adds."""
SLOT_SECONDS = 10.0
"""Seconds that a task waits for a free slot in a busy worker before it goes back into the queue.

Workers can get more tasks than they have slots: DBOS has one limit per worker for the whole queue, which is the largest
number of slots of any worker.
"""
CONNECTIONS = 4
"""Maximum number of database connections of DBOS in a worker. Its threads share them."""
CLIENT_CONNECTIONS = 2
_AT_THE_SERVER = (
    "-c idle_in_transaction_session_timeout=10000 -c tcp_keepalives_idle=20 -c tcp_keepalives_interval=10 "
    "-c tcp_keepalives_count=3"
)
"""Server settings for disconnected clients: their locks end after 10 s, and their connections after 50 s."""
_STATES = {
    "ENQUEUED": TaskState.WAITING,
    "DELAYED": TaskState.WAITING,
    "PENDING": TaskState.RUNNING,
    "CANCELLED": TaskState.CANCELLED,
}

_OPEN = "ENQUEUED", "DELAYED", "PENDING"
"""DBOS statuses of waiting and running tasks."""


class _HandedBack(BaseException):
    """Raised to end the workflow of a task that went back into the queue.

    It is not an Exception, since DBOS would record that as the outcome of the task.
    """


class DbosQueue:
    """The queue at a database, `sqlite:///FILE` or `postgresql://...`."""

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        make: bool = True,
        poll_seconds: float | None = None,
        is_gone: Callable[[], bool] = lambda: False,
        away: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the queue at `url`, for the tasks of the API key named `key`. Raises UsageError if that fails.

        With `make`, a missing queue is created. Its workers poll for tasks every `poll_seconds`, or by default every
        POLL_SECONDS. While the database cannot be reached, calls are repeated, and `away` gets the reason. Once
        `is_gone` returns true, they raise QueueAwayError instead.
        """
        self._url = _checked(url, make)
        self._name = f"{APPLICATION}-{key}" if key else APPLICATION
        self._poll_seconds = poll_seconds or POLL_SECONDS
        self._worker = ""
        _quiet()
        _refuse_pickles()
        try:
            self._engine = engine_of(self._url)
            self.ledger = FleetLedger(self._engine, is_gone=is_gone, away=away)
            self.is_new = make and not self.ledger.is_there()
            if make:
                DBOS.migrate(self._url)
                self.ledger.make()
            self._client = DBOSClient(
                system_database_url=self._url,
                serializer=DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                system_database_pool_size=CLIENT_CONNECTIONS,
            )
            self._queue()
        except (DBAPIError, OSError) as error:
            raise UsageError(f"--queue: {url} cannot be opened: {first_line(error)}") from None
        schema = None if self._engine.dialect.name == "sqlite" else "dbos"
        columns = (
            "workflow_uuid", "name", "status", "queue_name", "application_version", "executor_id", "owner_xid",
            "started_at_epoch_ms", "attributes", "queue_partition_key",
        )  # fmt: skip
        self._tasks = sa.table("workflow_status", *(sa.column(name) for name in columns), schema=schema)

    def put(self, batch: Batch, tasks: Sequence[QueuedTask], again: Callable[[TaskRow], bool]) -> int:
        """Add tasks; see `Queue.put`."""
        rows = {row.task: row for row in self.list(batch.name)}
        for task in tasks:
            if task.name in rows and rows[task.name].sha256 != task.sha256:
                raise UsageError(f"task {task.name} is in the queue with other contents: name another --out")
        self.ledger.note_batch(batch)
        new = [task for task in tasks if task.name not in rows]
        for start in range(0, len(new), AT_ONCE):
            self.ledger.within(partial(self._enqueue, tasks=new[start : start + AT_ONCE]))
        repeated = [task for task in tasks if task.name in rows and again(rows[task.name])]
        return len(new) + sum(self.retry(rows[task.name], task.version) for task in repeated)

    def _enqueue(self, connection: sa.Connection, tasks: Iterable[QueuedTask]) -> None:
        for task in tasks:
            options: EnqueueOptions = {
                "workflow_name": TASK,
                "queue_name": self._name,
                "workflow_id": _id(task.batch, task.name),
                "app_version": task.version,
                "queue_partition_key": task.group,
                "attributes": {"sha256": task.sha256},
            }
            if task.priority:  # for DBOS, a missing priority means 0
                options["priority"] = task.priority
            self._client.enqueue_in_transaction(connection, options, task.batch, dict(task.task))

    def retry(self, row: TaskRow, version: str) -> bool:
        """Put a finished task into the queue again, for workers of `version`. Return False if it is not finished."""
        identity = _id(row.batch, row.task)
        query = sa.select(self._tasks.c.status).where(self._tasks.c.workflow_uuid == identity)
        if self.ledger.within(lambda connection: connection.execute(query).scalar()) in _OPEN:
            return False
        self.ledger.within(lambda connection: self.ledger.set_aside(connection, row.batch, row.task))
        self._client.rewind_workflow(
            identity, application_version=version, queue_name=self._name, queue_partition_key=row.group
        )
        return True

    def cancel(self, rows: Sequence[TaskRow]) -> None:
        """Cancel waiting tasks, and ask the workers to end running ones. A worker does so at its next heartbeat."""
        for row in rows:
            if row.state is TaskState.RUNNING:
                self.ledger.cancel(row.batch, row.task)
        self._client.cancel_workflows([_id(row.batch, row.task) for row in rows if row.state is TaskState.WAITING])

    def limit(self, limits: QueueLimits) -> None:
        """Set the limits of the queue. They apply to all its workers from their next poll on."""
        queue = self._queue()
        max_jobs, now = self.ledger.most_jobs(), queue.global_concurrency
        is_lower = limits.at_once is not None and (now is None or limits.at_once < now)
        if not is_lower:
            queue.set_global_concurrency(limits.at_once)
        # DBOS refuses a limit per worker or group that is above the limit of the queue.
        queue.set_worker_concurrency(_lower(max_jobs, limits.at_once))
        queue.set_partition_concurrency(_lower(limits.per_group, limits.at_once))
        if is_lower:
            queue.set_global_concurrency(limits.at_once)
        queue.set_limiter(
            {"limit": limits.starts, "period": limits.seconds} if limits.starts and limits.seconds else None
        )

    def limits(self) -> QueueLimits:
        """Return the limits of the queue."""
        queue = self._queue()
        pace = queue.limiter
        return QueueLimits(
            at_once=queue.global_concurrency,
            per_group=queue.partition_concurrency,
            starts=pace["limit"] if pace else None,
            seconds=pace["period"] if pace else None,
        )

    def _queue(self) -> DatabaseQueue:
        """Return DBOS's object for the queue. Creates the queue if it does not exist."""
        return self._client.register_queue(
            self._name,
            polling_interval_sec=self._poll_seconds,
            on_conflict="never_update",
            application_name=APPLICATION,
        )

    def join(self, *, version: str, jobs: int, lease: float, worker: str) -> None:
        """Register as a worker with `jobs` slots. It counts as lost after `lease` seconds without a heartbeat."""
        self._worker, self._version = worker, version
        self._slots = Semaphore(jobs)
        self.ledger.join(worker, version, jobs, lease)

    def take(self, do: Do) -> None:
        """Take tasks; see `Queue.take`."""
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": self._url,
            "application_version": self._version,
            "executor_id": self._worker,
            "serializer": DBOSPortableJSONSerializer(),
            "run_migrations": False,
            "sys_db_pool_size": CONNECTIONS,
            "log_level": "CRITICAL",
            "use_listen_notify": False,
        }
        if self._engine.dialect.name == "sqlite":
            config["system_database_engine"] = self._engine
        _still(DBOS(config=config))

        @DBOS.workflow(name=TASK, max_recovery_attempts=None)
        def task(batch: str, fields: dict[str, Any]) -> int:
            return self._do(QueuedTask(batch=batch, task=fields, version=self._version), do)

        self._share()  # before the launch, since otherwise the first poll would take all waiting tasks
        DBOS.listen_queues([self._name])
        DBOS.launch()

    def _share(self) -> None:
        """Set the limit per worker, of which DBOS has only one, to the largest number of slots of any worker."""
        queue, max_jobs = self._queue(), -1
        while max_jobs != (max_jobs := self.ledger.most_jobs() or 1):  # another worker may join at the same time
            queue.set_worker_concurrency(_lower(max_jobs, queue.global_concurrency))

    def _do(self, queued: QueuedTask, do: Do) -> int:
        """Run a task on a thread of DBOS. Return the number of the attempt, or 0 if none was made."""
        identity = _id(queued.batch, queued.name)
        if not self._slots.acquire(timeout=SLOT_SECONDS):
            self._give_back(self._worker, identity)
            raise _HandedBack
        try:
            if not self._is_held(identity):
                raise _HandedBack  # the task was cancelled or reassigned while it waited for a slot
            try:
                attempt = self.ledger.begin(queued.batch, queued.name, self._worker)
            except WorkerLostError:
                raise _HandedBack from None  # other workers detect that the task has no worker
            if attempt is None:
                return 0
            done = do(queued, attempt)
            if done is Done.BACK:
                self._give_back(self._worker, identity)
            if done is not Done.FINISHED:
                raise _HandedBack
            return attempt.number
        finally:
            self._slots.release()

    def stop_taking(self, seconds: float) -> None:
        """Take no more tasks, and wait for the running ones, for about `seconds` at most."""
        DBOS.destroy(workflow_completion_timeout_sec=max(1, int(seconds)))

    def leave(self) -> None:
        """Return this worker's tasks to the queue, and unregister the worker. Raises QueueAwayError."""
        self._give_back(self._worker)
        self.ledger.leave(self._worker)
        self._share()

    def beat(self, running: Mapping[tuple[str, str], Growth]) -> Beaten:
        """Send a heartbeat; see `Queue.beat`."""
        try:
            return self.ledger.beat(self._worker, running)
        except DBAPIError as error:
            raise QueueAwayError(first_line(error)) from None

    def give_back_lost(self) -> None:
        """Return the tasks of lost workers to the queue. Raises QueueAwayError."""
        try:
            unknown = [name for name in self._holders() - self.ledger.known_workers() if self.ledger.reap_unknown(name)]
            lost = *self.ledger.reap(), *unknown
            for name in lost:
                self._give_back(name)
                self.ledger.leave(name)
            if lost:
                self._share()
        except DBAPIError as error:
            raise QueueAwayError(first_line(error)) from None

    def finish(self, attempt: TaskAttempt, end: str, result: Mapping[str, JsonValue] | None = None) -> bool:
        """Record the end of an attempt; see `Queue.finish`."""
        return self.ledger.finish(attempt, end, result)

    def close(self) -> None:
        """Close the database connections."""
        self._client.destroy()
        self._engine.dispose()

    def _rows(self, batch: str) -> Iterator[TaskRow]:
        tasks = self._tasks.c
        query = sa.select(
            tasks.workflow_uuid, tasks.status, tasks.application_version, tasks.attributes, tasks.queue_partition_key
        ).where(tasks.workflow_uuid.startswith(f"{batch}:", autoescape=True), tasks.name == TASK)
        results = self.ledger.known_results(batch)
        for identity, status, version, attributes, group in self.ledger.within(
            lambda connection: connection.execute(query.order_by(tasks.workflow_uuid)).all()
        ):
            task = identity.partition(":")[2]
            result = results.get(task)
            noted = json.loads(attributes) if isinstance(attributes, str) else attributes or {}
            yield TaskRow(
                batch=batch,
                task=task,
                state=_state(status, result, is_begun=task in results),
                version=version or "",
                sha256=str(noted.get("sha256") or ""),
                group=group or "-",
                result=result or {},
            )

    def results(self, batch: str, since: float = 0.0) -> Sequence[TaskResult]:
        """Return the results of a batch after `since`, a time by the queue's clock, oldest first."""
        return self.ledger.results(batch, since)

    def undone(self, batch: str) -> int:
        """Return the number of waiting and running tasks of a batch. The database counts the rows."""
        query = sa.select(sa.func.count()).where(
            self._tasks.c.workflow_uuid.startswith(f"{batch}:", autoescape=True),
            self._tasks.c.status.in_(_OPEN),
        )
        return int(self.ledger.within(lambda connection: connection.execute(query)).scalar() or 0)

    def counts(self) -> Mapping[str, Mapping[TaskState, int]]:
        """Return the number of tasks for each batch and state, according to DBOS."""
        batch = sa.func.substr(self._tasks.c.workflow_uuid, 1, NAME_LENGTH)
        query = sa.select(batch, self._tasks.c.status, sa.func.count()).where(self._tasks.c.name == TASK)
        rows = self.ledger.within(
            lambda connection: connection.execute(query.group_by(batch, self._tasks.c.status)).all()
        )
        counts: dict[str, dict[TaskState, int]] = {}
        for name, status, count in rows:
            of_batch, state = counts.setdefault(name, {}), _STATES.get(status, TaskState.DONE)
            of_batch[state] = of_batch.get(state, 0) + count
        return counts

    def waiting_for(self) -> Mapping[str, int]:
        """Return the number of waiting tasks for each version."""
        version = self._tasks.c.application_version
        query = sa.select(version, sa.func.count()).where(
            self._tasks.c.name == TASK, self._tasks.c.status.in_(("ENQUEUED", "DELAYED"))
        )
        rows = self.ledger.within(lambda connection: connection.execute(query.group_by(version)).all())
        return {str(name): int(count) for name, count in rows}

    def is_idle(self, version: str) -> bool:
        """Return whether the queue has no waiting or running task for `version`."""
        query = sa.select(self._tasks.c.workflow_uuid).where(
            self._tasks.c.queue_name == self._name,
            self._tasks.c.status.in_(_OPEN),
            self._tasks.c.application_version == version,
        )
        return self.ledger.within(lambda connection: connection.execute(query.limit(1)).scalar()) is None

    def _holders(self) -> frozenset[str]:
        """Return the names of the workers that have tasks, according to DBOS."""
        conditions = (
            self._tasks.c.name == TASK,
            self._tasks.c.status == "PENDING",
            self._tasks.c.executor_id.is_not(None),
        )
        query = sa.select(self._tasks.c.executor_id).where(*conditions).distinct()
        return frozenset(self.ledger.within(lambda connection: connection.execute(query).scalars().all()))

    def _is_held(self, identity: str) -> bool:
        """Return whether a task is assigned to this worker, according to DBOS."""
        conditions = self._tasks.c.executor_id == self._worker, self._tasks.c.status == "PENDING"
        query = sa.select(self._tasks.c.workflow_uuid).where(self._tasks.c.workflow_uuid == identity, *conditions)
        return self.ledger.within(lambda connection: connection.execute(query).first()) is not None

    def _give_back(self, worker: str, identity: str | None = None) -> None:
        """Return all tasks of a worker to the queue, or only the task `identity`.

        Tasks that were cancelled or reassigned are not changed.
        """
        conditions = [self._tasks.c.executor_id == worker, self._tasks.c.status == "PENDING"]
        if identity is not None:
            conditions.append(self._tasks.c.workflow_uuid == identity)
        change = sa.update(self._tasks).where(*conditions)
        back = change.values(status="ENQUEUED", owner_xid=None, started_at_epoch_ms=None)  # as DBOS recovers its own
        self.ledger.within(lambda connection: connection.execute(back))

    def list(self, batch: str | None = None) -> Iterator[TaskRow]:
        """Yield the tasks of one batch, or all."""
        for row in self.ledger.batches():
            if batch in (None, row.name):
                yield from self._rows(row.name)


def _checked(url: str, make: bool) -> str:
    """Return the address with timeouts for dead connections. With `make`, create a missing SQLite file.

    Raises UsageError for an invalid address, and for a missing SQLite file without `make`.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # ValueError: the port is not a number
        raise UsageError("--queue: invalid address; expected sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    if parsed.password or "password" in parsed.query:
        raise UsageError(
            "--queue: no password in the address, since every user of the machine can read a command line: set PGPASSWORD or "
            "write it into ~/.pgpass"
        )
    match parsed.get_backend_name():
        case "sqlite" if parsed.database and parsed.database != ":memory:":
            folder = os.path.dirname(os.path.abspath(parsed.database))
            if not os.path.isdir(folder):
                raise UsageError(f"--queue: no such folder: {folder}")
            if not os.path.exists(parsed.database):
                if not make:
                    raise UsageError(f"--queue: no such queue: {os.path.abspath(parsed.database)}")
                # Other users must not read the tasks.
                os.close(os.open(parsed.database, os.O_CREAT | os.O_RDWR, 0o600))
            return url
        case "postgresql":
            bounds = {
                "connect_timeout": "10",
                "keepalives_idle": "10",
                "keepalives_interval": "5",
                "keepalives_count": "3",
                "tcp_user_timeout": "20000",
                "options": _AT_THE_SERVER,
            }
            return parsed.update_query_dict({**bounds, **parsed.query}).render_as_string(hide_password=False)
        case _:
            raise UsageError("--queue: invalid address; expected sqlite:///FILE or postgresql://USER@HOST/NAME")


def _still(dbos: DBOS) -> None:
    """Disable two threads of DBOS that poll the database once a second for delays and deadlines, which tasks do not have.

    They make half of the queries of an idle worker (bench/fleet.py). Call this before the launch.
    """
    with suppress(AttributeError):  # another version of DBOS, which then only makes more queries
        dbos._background_jobs_stop_event.set()  # noqa: SLF001 - there is no setting for it
        dbos._registry.get_internal_queue()._polling_interval_sec = REST_SECONDS  # noqa: SLF001 - nor for this


def _refuse_pickles() -> None:
    """Make DBOS refuse pickles and read only JSON.

    A row names its own format, so that anyone who can write rows could run code here with a pickle. Raises UsageError
    for a version of DBOS without the known deserializer.
    """
    try:
        from dbos._serialization import DefaultSerializer
    except ImportError:
        raise UsageError("--queue: this version of DBOS is not known; install one from 3.4 on, below 4") from None

    def deserialize(_self: object, _text: str) -> object:
        raise ValueError("a pickle is not read")

    DefaultSerializer.deserialize = deserialize  # type: ignore[method-assign, assignment]


def _state(status: str, result: Mapping[str, JsonValue] | None, *, is_begun: bool) -> TaskState:
    """Return the state of a task, from its status in DBOS and its result.

    `is_begun`: an attempt is open, or gave the result.
    """
    if result is not None:
        return TaskState.UNKNOWN if result.get("how") == TaskState.UNKNOWN.value else TaskState.DONE
    state = _STATES.get(status, TaskState.BROKEN)
    return (
        TaskState.WAITING if state is TaskState.RUNNING and not is_begun else state
    )  # a worker took it, but did not begin


def _quiet() -> None:
    """Disable DBOS's log on stderr, since the callers report problems."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.CRITICAL + 1)


def _lower(first: int | None, second: int | None) -> int | None:
    return min((limit for limit in (first, second) if limit is not None), default=None)


def _id(batch: str, task: str) -> str:
    return f"{batch}:{task}"
