"""The harness's own tables in the database of the queue: batches, workers and attempts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError

from harness.actions import JsonValue
from harness.plugins.fleet.queue.queue import (
    MAX_BROKEN,
    Batch,
    Beaten,
    Growth,
    QueueAwayError,
    RunningRow,
    TaskAttempt,
    TaskResult,
    WorkerLostError,
    WorkerRow,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

T = TypeVar("T")

DONE, LATE, LOST, BROKEN, RETRIED = "done", "late", "lost", "broken", "retried"
"""Ends of an attempt: gave the result; finished after another attempt; worker lost; failed to run; result discarded for
a retry.
"""
AGAIN_SECONDS = 1.0
"""Seconds between two attempts to reach the database."""
REAP_SECONDS = 30.0
"""Seconds that a worker gets to return the tasks of a lost worker. After that, another worker returns them."""

_TABLES = sa.MetaData()
_BATCHES = sa.Table(
    "harness_batches",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("out", sa.Text, nullable=False),
    sa.Column("budget", sa.Float),
)
_WORKERS = sa.Table(
    "harness_workers",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("jobs", sa.Integer, nullable=False),
    sa.Column("lease", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("is_lost", sa.Boolean, nullable=False),
)
_ATTEMPTS = sa.Table(
    "harness_attempts",
    _TABLES,
    sa.Column("batch", sa.Text, primary_key=True),
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("worker", sa.Text, nullable=False, index=True),
    sa.Column("began", sa.Float, nullable=False),
    sa.Column("ended", sa.Float),
    sa.Column("how", sa.Text),
    sa.Column("records", sa.Integer),
    sa.Column("head", sa.Text),
    sa.Column("cost", sa.Float),
    sa.Column("result", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("cancelled", sa.Boolean, nullable=False, server_default=sa.false()),
    # INVARIANT: only one attempt at a task gives its result, even if several end at the same time.
    sa.Index(
        "harness_attempts_done",
        "batch",
        "task",
        unique=True,
        sqlite_where=sa.text(f"how = '{DONE}'"),
        postgresql_where=sa.text(f"how = '{DONE}'"),
    ),
    sa.Index(
        "harness_attempts_results",
        "batch",
        "ended",
        sqlite_where=sa.text(f"how = '{DONE}'"),
        postgresql_where=sa.text(f"how = '{DONE}'"),
    ),
    sa.Index(
        "harness_attempts_running",
        "began",
        sqlite_where=sa.text("ended IS NULL"),
        postgresql_where=sa.text("ended IS NULL"),
    ),
)


def engine_of(url: str, connections: int = 2) -> Engine:
    """Return an engine for the database at `url` with a maximum number of live connections."""
    parsed = sa.make_url(url)
    is_postgres = parsed.get_backend_name() == "postgresql"
    if is_postgres:
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(parsed, pool_size=connections, max_overflow=0, pool_timeout=None, pool_pre_ping=True)
    if is_postgres:
        return engine

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Take the write lock at once, so that two transactions cannot both count rows before they write.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class FleetLedger:
    """Reads and writes the three tables. Most methods are one transaction, which is repeated during an outage."""

    def __init__(
        self,
        engine: Engine,
        *,
        is_gone: Callable[[], bool] = lambda: False,
        away: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use `engine`. `away` gets the reason why the database cannot be reached, once per outage.

        Once `is_gone` returns true, transactions are not repeated and raise QueueAwayError.
        """
        self._engine = engine
        self._is_gone = is_gone
        self._away = away
        is_postgres = engine.dialect.name == "postgresql"
        self._now: sa.ColumnElement[float] = (
            sa.literal_column("extract(epoch from clock_timestamp())", sa.Float)
            if is_postgres
            else sa.literal_column("(julianday('now') - 2440587.5) * 86400.0", sa.Float)
        )

    def is_there(self) -> bool:
        """Return whether the tables exist. False if the database cannot be reached."""
        try:
            return sa.inspect(self._engine).has_table(_BATCHES.name)
        except DBAPIError:
            return False

    def make(self) -> None:
        """Make the missing tables."""
        for may_retry in (True, True, False):
            try:
                _TABLES.create_all(self._engine)
            except DBAPIError:
                if not may_retry:
                    raise
                time.sleep(AGAIN_SECONDS)  # another process may make them at the same time
            else:
                return

    def within(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, which is repeated during an outage of the database. Return its result.

        Raises QueueAwayError during an outage once `is_gone` returns true, and DBAPIError for a permanent failure.
        """
        is_told = False
        while True:
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                is_away = error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError))
                if not is_away or "no such table" in str(error.orig):  # an OperationalError in SQLite, but permanent
                    raise
                reason = first_line(error)
            if self._is_gone():
                raise QueueAwayError(reason)
            if not is_told:
                is_told = True
                self._away(reason)
            time.sleep(AGAIN_SECONDS)

    def note_batch(self, batch: Batch) -> None:
        """Store a batch, or the new budget of a known one. A budget of `None` leaves the stored one unchanged."""

        def write(connection: Connection) -> None:
            is_it = _BATCHES.c.name == batch.name
            if batch.budget is not None:
                connection.execute(sa.update(_BATCHES).where(is_it).values(budget=batch.budget))
            if connection.execute(sa.select(_BATCHES.c.name).where(is_it)).first() is None:
                connection.execute(sa.insert(_BATCHES).values(name=batch.name, out=batch.out, budget=batch.budget))

        self.within(write)

    def batches(self) -> tuple[Batch, ...]:
        """Return all batches."""
        rows = self.within(lambda connection: connection.execute(sa.select(_BATCHES).order_by(_BATCHES.c.name)).all())
        return tuple(Batch(name=row.name, out=row.out, budget=row.budget) for row in rows)

    def begin(self, batch: str, task: str, worker: str) -> TaskAttempt | None:
        """Return a new attempt at a task, or the attempt that gave its result. `None` if the task is given up.

        A task is given up if it was cancelled, if MAX_BROKEN attempts were lost or failed to run, or if the budget is
        used up. This is recorded as an attempt with the result of the task. Raises WorkerLostError if the worker counts
        as lost.
        """
        while True:
            try:
                return self.within(lambda connection: self._begin_attempt(connection, batch, task, worker))
            except IntegrityError:
                continue  # another worker began an attempt with this number

    def _begin_attempt(self, connection: Connection, batch: str, task: str, worker: str) -> TaskAttempt | None:
        # Lock the worker's row until the attempt is written, so that `reap` either sees the attempt or is first.
        is_it = _WORKERS.c.name == worker, _WORKERS.c.is_lost == sa.false()
        if connection.execute(sa.select(_WORKERS.c.name).where(*is_it).with_for_update(read=True)).first() is None:
            raise WorkerLostError(worker)
        of_batch = connection.execute(sa.select(_BATCHES).where(_BATCHES.c.name == batch)).one()
        rows = connection.execute(sa.select(_ATTEMPTS).where(_is_of(batch, task))).all()
        for row in rows:
            if row.how == DONE:
                result = json.loads(row.result or "{}")
                if not result.get("has_result"):  # no files to publish
                    return None
                return TaskAttempt(batch=batch, task=task, number=row.number, out=of_batch.out, is_won=True)
        number = max((row.number for row in rows), default=0) + 1
        new = {"batch": batch, "task": task, "number": number, "worker": worker, "began": self._now}
        if given_up := self._given_up(connection, rows, of_batch):
            new |= {"ended": self._now, "how": DONE, "result": json.dumps(given_up), "reason": reason_of(given_up)}
        connection.execute(sa.insert(_ATTEMPTS).values(**new))
        return None if given_up else TaskAttempt(batch=batch, task=task, number=number, out=of_batch.out)

    def _given_up(self, connection: Connection, rows: Sequence[Any], batch: Any) -> dict[str, JsonValue]:
        last = max((row.number for row in rows if row.how == RETRIED), default=0)
        broken = [row for row in rows if row.how in (LOST, BROKEN) and row.number > last]
        if any(row.cancelled and row.number > last for row in rows):
            return {"exit_code": None, "how": "cancelled", "problem": "it was cancelled"}
        if len(broken) >= MAX_BROKEN:
            lost = sum(row.how == LOST for row in broken)
            problem = f"its worker was lost {lost} times" if lost else "no worker could do it"
            return {
                "exit_code": None,
                "how": "unknown effect" if lost else "not done",
                "problem": f"{problem}; see its attempts",
            }
        if batch.budget is None:
            return {}
        spent = connection.execute(sa.select(sa.func.sum(_ATTEMPTS.c.cost)).where(_ATTEMPTS.c.batch == batch.name))
        if (spent.scalar() or 0.0) < batch.budget:
            return {}
        problem = f"the budget of the batch, ${batch.budget:.2f}, is used up"
        return {"exit_code": 4, "how": "not run", "end": "limit", "problem": problem}

    def finish(self, attempt: TaskAttempt, end: str, result: Mapping[str, JsonValue] | None) -> bool:
        """Record the end of an attempt. Return whether the record has this end.

        It has another end if the attempt was ended before, or if another attempt gave the result first.
        """
        cost = (result or {}).get("cost")
        values: dict[str, Any] = {"ended": self._now, "cost": cost}
        if result is not None:
            values |= {"result": json.dumps(result), "reason": reason_of(result)}
        growth = {key: result[key] for key in ("records", "head") if result and result.get(key)}
        is_it = sa.and_(_is_of(attempt.batch, attempt.task), _ATTEMPTS.c.number == attempt.number)

        def note_end(end: str) -> bool:
            change = sa.update(_ATTEMPTS).where(is_it, _ATTEMPTS.c.ended.is_(None)).values(how=end, **values, **growth)
            return bool(self.within(lambda connection: connection.execute(change)).rowcount)

        try:
            if note_end(end):
                return True
        except IntegrityError:
            note_end(LATE)
            return False
        # The end may be recorded already, by a transaction whose confirmation was lost in an outage.
        row = self.within(lambda connection: connection.execute(sa.select(_ATTEMPTS.c.how).where(is_it)).scalar())
        return row == end

    def set_aside(self, connection: Connection, batch: str, task: str) -> None:
        """Discard the result of a task, so that it can be run again."""
        connection.execute(sa.update(_ATTEMPTS).where(_is_of(batch, task), _ATTEMPTS.c.how == DONE).values(how=RETRIED))

    def cancel(self, batch: str, task: str) -> None:
        """Mark the running attempt at a task as cancelled."""
        change = sa.update(_ATTEMPTS).where(_is_of(batch, task), _ATTEMPTS.c.ended.is_(None)).values(cancelled=True)
        self.within(lambda connection: connection.execute(change))

    def join(self, worker: str, version: str, jobs: int, lease: float) -> None:
        """Store a worker with `jobs` slots. It counts as lost after `lease` seconds without a heartbeat."""
        values = {"name": worker, "version": version, "jobs": jobs, "lease": lease, "seen": self._now, "is_lost": False}
        self.within(lambda connection: connection.execute(sa.insert(_WORKERS).values(**values)))

    def most_jobs(self) -> int | None:
        """Return the largest number of slots of any worker. `None` without workers."""
        query = sa.select(sa.func.max(_WORKERS.c.jobs)).where(_WORKERS.c.is_lost == sa.false())
        limit = self.within(lambda connection: connection.execute(query).scalar())
        return None if limit is None else int(limit)

    def leave(self, worker: str) -> None:
        """Remove a worker that has no tasks left."""
        self.within(lambda connection: connection.execute(sa.delete(_WORKERS).where(_WORKERS.c.name == worker)))

    def beat(self, worker: str, running: Mapping[tuple[str, str], Growth]) -> Beaten:
        """Record the heartbeat of a worker, and the progress of its logs. Not repeated. Raises DBAPIError."""
        with self._engine.begin() as connection:
            change = sa.update(_WORKERS).where(_WORKERS.c.name == worker, _WORKERS.c.is_lost == sa.false())
            if not connection.execute(change.values(seen=self._now)).rowcount:
                return Beaten(is_alive=False)
            mine = [_ATTEMPTS.c.worker == worker, _ATTEMPTS.c.ended.is_(None)]
            for (batch, task), growth in running.items():
                grown = sa.update(_ATTEMPTS).where(_is_of(batch, task), *mine)
                connection.execute(grown.values(records=growth.records, head=growth.head))
            query = sa.select(_ATTEMPTS.c.batch, _ATTEMPTS.c.task).where(*mine, _ATTEMPTS.c.cancelled == sa.true())
            return Beaten(
                is_alive=True, cancelled=frozenset((row.batch, row.task) for row in connection.execute(query))
            )

    def reap(self) -> tuple[str, ...]:
        """Mark workers as lost whose last heartbeat is older than their lease.

        Return the lost workers whose tasks the caller must return to the queue.
        """
        is_silent = sa.and_(_WORKERS.c.is_lost == sa.false(), _WORKERS.c.seen + _WORKERS.c.lease < self._now)
        is_left = sa.and_(_WORKERS.c.is_lost == sa.true(), _WORKERS.c.seen + REAP_SECONDS < self._now)

        # A worker in the middle of a heartbeat has locked its row. Skip such rows instead of waiting for them.
        silent = sa.select(_WORKERS.c.name).where(sa.or_(is_silent, is_left)).with_for_update(skip_locked=True)
        with self._engine.begin() as connection:
            names = tuple(connection.execute(silent).scalars())
            if names:
                change = sa.update(_WORKERS).where(_WORKERS.c.name.in_(names))
                connection.execute(change.values(is_lost=True, seen=self._now))
                self._end_attempts_of(connection, names)
        return names

    def reap_unknown(self, worker: str) -> bool:
        """Store an unknown worker as lost. Return whether the caller must return its tasks; false if another one does.

        Such a worker was marked as lost and removed, and took one more task before it noticed that.
        """
        values = {"name": worker, "version": "", "jobs": 0, "lease": 0.0, "seen": self._now, "is_lost": True}
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(_WORKERS).values(**values))
                self._end_attempts_of(connection, [worker])
        except IntegrityError:
            return False
        return True

    def _end_attempts_of(self, connection: Connection, workers: Sequence[str]) -> None:
        change = sa.update(_ATTEMPTS).where(_ATTEMPTS.c.worker.in_(workers), _ATTEMPTS.c.ended.is_(None))
        connection.execute(change.values(ended=self._now, how=LOST))

    def known_workers(self) -> frozenset[str]:
        """Return the names of all workers, including lost ones that still have tasks."""
        return frozenset(self.within(lambda connection: connection.execute(sa.select(_WORKERS.c.name)).scalars().all()))

    def ends(self, batch: str) -> Mapping[str, int]:
        """Return the number of tasks of a batch by the reason of their end (see `reason_of`)."""
        query = sa.select(_ATTEMPTS.c.reason, sa.func.count()).where(
            _ATTEMPTS.c.batch == batch, _ATTEMPTS.c.how == DONE
        )
        rows = self.within(lambda connection: connection.execute(query.group_by(_ATTEMPTS.c.reason)).all())
        return {str(reason): int(count) for reason, count in rows}

    def pace(self, batch: str, seconds: float) -> tuple[int, float, int]:
        """Return three figures of a batch: tasks finished in the last `seconds`, cost so far, and lost attempts."""
        is_done = _ATTEMPTS.c.how == DONE
        query = sa.select(
            sa.func.count(sa.case((sa.and_(is_done, _ATTEMPTS.c.ended > self._now - seconds), 1))),
            sa.func.coalesce(sa.func.sum(_ATTEMPTS.c.cost), 0.0),
            sa.func.count(sa.case((_ATTEMPTS.c.how == LOST, 1))),
        ).where(_ATTEMPTS.c.batch == batch)
        row = self.within(lambda connection: connection.execute(query).one())
        return int(row[0]), float(row[1]), int(row[2])

    def longest(self, batch: str | None, max_rows: int) -> Sequence[RunningRow]:
        """Return the attempts that have been running longest, at most `max_rows`. `batch`: `None` for all batches."""
        query = sa.select(_ATTEMPTS, (self._now - _ATTEMPTS.c.began).label("seconds")).where(
            _ATTEMPTS.c.ended.is_(None)
        )
        if batch is not None:
            query = query.where(_ATTEMPTS.c.batch == batch)
        rows = self.within(
            lambda connection: connection.execute(query.order_by(_ATTEMPTS.c.began).limit(max_rows)).all()
        )
        return tuple(
            RunningRow(
                batch=row.batch, task=row.task, number=row.number, worker=row.worker, seconds=float(row.seconds),
                records=row.records or 0, head=row.head or "",
            )
            for row in rows
        )  # fmt: skip

    def workers(self) -> tuple[WorkerRow, ...]:
        """Return the workers that are alive."""
        query = sa.select(_WORKERS, (self._now - _WORKERS.c.seen).label("silent")).where(
            _WORKERS.c.is_lost == sa.false()
        )
        rows = self.within(lambda connection: connection.execute(query.order_by(_WORKERS.c.name)).all())
        return tuple(
            WorkerRow(name=row.name, version=row.version, jobs=row.jobs, silent=float(row.silent)) for row in rows
        )

    def known_results(self, batch: str) -> Mapping[str, Mapping[str, JsonValue] | None]:
        """Return the results of a batch by task.

        The value is `None` for a task with a running attempt and no result.
        """
        query = sa.select(_ATTEMPTS.c.task, _ATTEMPTS.c.result).where(_ATTEMPTS.c.batch == batch)
        query = query.where(sa.or_(_ATTEMPTS.c.how == DONE, _ATTEMPTS.c.ended.is_(None)))
        rows = self.within(lambda connection: connection.execute(query).all())
        open_ones = {row.task: None for row in rows if row.result is None}
        return {**open_ones, **{row.task: json.loads(row.result) for row in rows if row.result is not None}}

    def results(self, batch: str, since: float) -> Sequence[TaskResult]:
        """Return the results of a batch after the time `since`, oldest first."""
        other = _ATTEMPTS.alias()
        is_lost = sa.and_(other.c.batch == batch, other.c.task == _ATTEMPTS.c.task, other.c.how == LOST)
        lost = sa.select(sa.func.count()).select_from(other).where(is_lost).scalar_subquery()
        query = sa.select(_ATTEMPTS, lost.label("lost")).where(
            _ATTEMPTS.c.batch == batch, _ATTEMPTS.c.how == DONE, _ATTEMPTS.c.ended > since
        )
        rows = self.within(lambda connection: connection.execute(query.order_by(_ATTEMPTS.c.ended)).all())
        return tuple(
            TaskResult(
                task=row.task, number=row.number, end_time=row.ended, result=json.loads(row.result), lost=row.lost
            )
            for row in rows
        )


def first_line(error: BaseException) -> str:
    """Return the first line of the database's message."""
    origin = getattr(error, "orig", None) or error
    return next(iter(str(origin).strip().splitlines()), type(origin).__name__)


def reason_of(result: Mapping[str, JsonValue]) -> str:
    """Return a short reason for the end of a task: `exit 4 limit`, `unknown effect`."""
    code, end, end_name = (result.get(key) for key in ("exit_code", "end", "how"))
    return f"exit {code} {end or end_name}" if code is not None else str(end_name)


def _is_of(batch: str, task: str) -> sa.ColumnElement[bool]:
    return sa.and_(_ATTEMPTS.c.batch == batch, _ATTEMPTS.c.task == task)
