"""The interface of a queue: five functions and their values. `dbos_queue` implements it on DBOS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.errors import HarnessError
from harness.record import Record

NAME_LENGTH = 12
"""Length of a batch's name, in hexadecimal digits."""
MAX_BROKEN = 3
"""A task that its worker did not survive, or could not do, so often is not tried again."""


class QueueAwayError(HarnessError):
    """The queue could not be reached."""


class WorkerLostError(HarnessError):
    """The worker is taken for lost: it begins nothing."""


class QueuedTask(Record):
    """One task of a batch, as the queue holds it."""

    batch: str
    task: Mapping[str, JsonValue]
    """Fields of the task file's line, and the source of its files."""
    version: str
    """Version that a worker needs: version of the harness, digest of the policy, digest of the settings."""
    priority: int = 0
    """Lower ones come first."""
    group: str = "-"
    """Tasks of one group share the limit of groups."""

    @property
    def name(self) -> str:
        """Its id within the batch."""
        return str(self.task["id"])

    @property
    def sha256(self) -> str:
        """The digest of the task. A bundle counts by its commit, since git may make another file of it."""
        left_out = ("bundle", "sha256") if "bundle" in self.task else ()
        requested = {name: value for name, value in self.task.items() if name not in left_out}
        return digest_of(json.dumps(requested, sort_keys=True).encode())


class Batch(Record):
    """Tasks that were put together, and where their results go."""

    name: str
    out: str
    """The folder or URL of the results."""
    budget: float | None = None
    """Budget in dollars for all tasks: none starts once it is spent. `None` for no bound."""


class QueueLimits(Record):
    """Limits for all tasks of a queue together. `None` for no limit."""

    at_once: int | None = None
    per_group: int | None = None
    starts: int | None = None
    """Maximum number of starts ..."""
    seconds: float | None = None
    """... in so many seconds."""

    @property
    def words(self) -> str:
        """The limits, for a person."""
        parts = (
            f"{self.at_once} at once" if self.at_once else "",
            f"{self.per_group} of a group" if self.per_group else "",
            f"{self.starts} starts in {self.seconds:g} s" if self.starts else "",
        )
        return ", ".join(part for part in parts if part) or "none"


class TaskAttempt(Record):
    """One try at a task by one worker."""

    batch: str
    task: str
    number: int
    """From 1; no two attempts at a task have the same."""
    out: str
    """Place of its batch's results."""
    is_won: bool = False
    """Whether it gave the task's result already, and only the publishing may be missing."""


class Growth(Record):
    """Progress of a running attempt's log."""

    records: int
    head: str


class TaskState(Enum):
    """State of a task."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown effect"
    """The worker was lost each time, so the effect of the task is unknown."""
    CANCELLED = "cancelled"
    BROKEN = "without result"
    """It ended without a result: its row is unreadable, or was changed by hand."""


class TaskRow(Record):
    """A task as the queue knows it now."""

    batch: str
    task: str
    state: TaskState
    version: str
    sha256: str
    """Digest of the task."""
    group: str
    result: Mapping[str, JsonValue]
    """Result of the attempt that counts. Empty without one."""


class TaskResult(Record):
    """Result of a task: the attempt that counts, and its own report."""

    task: str
    number: int
    end_time: float
    result: Mapping[str, JsonValue]
    lost: int
    """Earlier attempts whose worker was lost. What they did is not known."""


class RunningRow(Record):
    """An attempt that is not at its end."""

    batch: str
    task: str
    number: int
    worker: str
    seconds: float
    records: int
    head: str
    """Last reported head of its log. Empty before the first report."""


class WorkerRow(Record):
    """A worker that is alive, as far as the queue knows."""

    name: str
    version: str
    jobs: int
    silent: float
    """Seconds since its last heartbeat."""


class Beaten(Record):
    """The queue's answer to a worker's heartbeat."""

    is_alive: bool
    """Whether it is still taken for alive. If not, others do its tasks."""
    cancelled: frozenset[tuple[str, str]] = frozenset()
    """Batch and task of each running attempt that is to be ended."""


class Done(Enum):
    """A worker's report about a task that it took."""

    FINISHED = "finished"
    BACK = "back"
    """It goes back into the queue unharmed, for any worker."""
    LOST = "lost"
    """The worker was taken for lost: the task is others'."""


Do: TypeAlias = Callable[[QueuedTask, TaskAttempt], Done]


class Queue(Protocol):
    """The interface for workers and batches. Every method except `beat` waits while the queue cannot be reached."""

    def put(self, batch: Batch, tasks: Sequence[QueuedTask], again: Callable[[TaskRow], bool]) -> int:
        """Put tasks in that are not there, and those done ones again of which `again` says so. Return how many.

        Raises UsageError, and puts nothing in, where a task of that name is another one.
        """

    def take(self, do: Do) -> None:
        """Take tasks from now on, each on a thread of its own, until `stop_taking`."""

    def beat(self, running: Mapping[tuple[str, str], Growth]) -> Beaten:
        """Say that this worker lives, and how far its logs got. Raises QueueAwayError."""

    def finish(self, attempt: TaskAttempt, end: str, result: Mapping[str, JsonValue] | None = None) -> bool:
        """Note how an attempt ended, with its result if it has one. Return whether that counts: another may have been first."""

    def list(self, batch: str | None = None) -> Iterable[TaskRow]:
        """Return the tasks of one batch, or all."""
