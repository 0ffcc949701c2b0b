"""Content of a queue at one moment, mostly counts, as tables or as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.fleet.queue.queue import NAME_LENGTH, Batch, QueueLimits, RunningRow, TaskState, WorkerRow
from harness.record import Record, field_names
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow, labelled, numbers
from harness.text.amounts import count_of, duration
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.plugins.fleet.queue.dbos_queue import DbosQueue

PACE_SECONDS = 60.0
"""Length of the period for the pace of a batch, in seconds."""
LONGEST = 8
"""Maximum number of running attempts shown, longest first."""
_STATES = TaskState.WAITING, TaskState.RUNNING, TaskState.DONE, TaskState.CANCELLED


class BatchStatus(Record):
    """Progress of a batch."""

    batch: Batch
    states: Mapping[TaskState, int]
    a_minute: int
    """Number of tasks finished in the last PACE_SECONDS."""
    cost: float
    lost: int
    """Number of attempts whose worker was lost."""
    ends: Mapping[str, int]
    """Number of tasks by the reason of their end."""

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The fields, for a program."""
        return {
            "batch": self.batch.name,
            "out": self.batch.out,
            **{state.value: self.states.get(state, 0) for state in _STATES},
            "a_minute": self.a_minute,
            "cost": round(self.cost, 6),
            "budget": self.batch.budget,
            "attempts_lost": self.lost,
            "ends": dict(self.ends),
        }


class QueueStatus(Record):
    """Content of a queue."""

    batches: tuple[BatchStatus, ...]
    running: tuple[RunningRow, ...]
    workers: tuple[WorkerRow, ...]
    orphaned: Mapping[str, int]
    """Number of waiting tasks for each version without a worker."""
    limits: QueueLimits

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The fields, for a program."""
        return {
            "v": 1,
            "batches": [row.as_json for row in self.batches],
            "running": [_fields(row) for row in self.running],
            "workers": [_fields(row) for row in self.workers],
            "without_worker": dict(self.orphaned),
            "limits": _fields(self.limits),
        }

    @property
    def tables(self) -> Iterator[Table]:
        """The tables for people, most urgent first."""
        if self.orphaned:
            notes = (
                (f"{count_of(count, 'task')} for {version}", Tone.WARNING) for version, count in self.orphaned.items()
            )
            yield labelled((("no worker" if not n else "", text, tone) for n, (text, tone) in enumerate(notes)))
        if self.limits.words != "none":
            yield labelled([("limits", self.limits.words, Tone.PLAIN)])
        yield Table(columns=_BATCHES, rows=tuple(TableRow(cells=_batch_cells(status)) for status in self.batches))
        if any(status.ends for status in self.batches):
            rows = (
                (_name(status), reason, str(count))
                for status in self.batches
                for reason, count in sorted(status.ends.items(), key=lambda item: -item[1])
            )
            yield Table(columns=_ENDS, rows=tuple(TableRow(cells=row) for row in rows))
        if self.running:
            rows_of = (
                (duration(row.seconds), str(row.records), str(row.number), row.task, row.worker) for row in self.running
            )
            yield Table(columns=_RUNNING, rows=tuple(TableRow(cells=row) for row in rows_of))
        if self.workers:
            of_workers = (
                (str(worker.jobs), duration(worker.silent), worker.name, worker.version) for worker in self.workers
            )
            yield Table(columns=_WORKERS, rows=tuple(TableRow(cells=row) for row in of_workers))


_BATCHES = (
    Column(name="batch"),
    *(Column(name=state.value, right=True) for state in _STATES[:3]),
    *numbers("cancelled", "a minute", "cost", "budget", "lost"),
    Column(name="results", folds=True, spare=1),
)
_ENDS = Column(name="batch"), Column(name="ended", folds=True), Column(name="tasks", right=True)
# Free text is not in the first column, since a folded cell would begin a line there.
_RUNNING = (
    *(Column(name=name, right=True) for name in ("runs for", "records", "attempt")),
    Column(name="task", folds=True),
    Column(name="worker", folds=True, spare=1),
)
_WORKERS = (
    *(Column(name=name, right=True) for name in ("at once", "heard of")),
    Column(name="worker", folds=True),
    Column(name="takes tasks for", folds=True, spare=1),
)


def status_of(queue: DbosQueue, batch: str | None = None) -> QueueStatus:
    """Return the content of the queue, of one batch or of all. Raises UsageError for an unknown batch."""
    ledger, counts, workers = queue.ledger, queue.counts(), queue.ledger.workers()
    batches = tuple(row for row in ledger.batches() if batch in (None, row.name))
    if batch is not None and not batches:
        raise UsageError(f"no batch {batch} in the queue; `harness queue status` lists all")
    versions = {row.version for row in workers}
    return QueueStatus(
        batches=tuple(_batch_status(queue, row, counts.get(row.name, {})) for row in batches),
        running=tuple(ledger.longest(batch, LONGEST)),
        workers=workers,
        limits=queue.limits(),
        orphaned={name: count for name, count in queue.waiting_for().items() if name not in versions},
    )


def _batch_status(queue: DbosQueue, batch: Batch, states: Mapping[TaskState, int]) -> BatchStatus:
    a_minute, cost, lost = queue.ledger.pace(batch.name, PACE_SECONDS)
    ends = queue.ledger.ends(batch.name)
    return BatchStatus(batch=batch, states=states, a_minute=a_minute, cost=cost, lost=lost, ends=ends)


def _batch_cells(status: BatchStatus) -> tuple[str, ...]:
    cost = f"${status.cost:.2f}" if status.cost else "-"
    budget = f"${status.batch.budget:.2f}" if status.batch.budget is not None else "-"
    states = (str(status.states.get(state, 0)) for state in _STATES)
    return _name(status), *states, str(status.a_minute), cost, budget, str(status.lost), status.batch.out


def _name(status: BatchStatus) -> str:
    """Return the name of a batch, cut to its usual length."""
    return visible_line(status.batch.name, NAME_LENGTH)


def _fields(row: RunningRow | WorkerRow | QueueLimits) -> dict[str, JsonValue]:
    return {name: getattr(row, name) for name in field_names(type(row))}
