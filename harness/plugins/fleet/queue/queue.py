"""The interface of a queue: five methods and their types. `dbos_queue` implements it on DBOS."""

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
"""Maximum number of attempts at a task that are lost with their worker or fail to run."""


class QueueAwayError(HarnessError):
    """Raised if the queue cannot be reached."""


class WorkerLostError(HarnessError):
    """Raised if a worker that counts as lost begins an attempt."""


class QueuedTask(Record):
    """One task of a batch in the queue."""

    batch: str
    task: Mapping[str, JsonValue]
    """Fields of the task file's line, and the source of its files."""
    version: str
    """Version that a worker needs: version of the harness, digest of the policy, digest of the settings."""
    priority: int = 0
    """Priority. Tasks with lower numbers are taken first."""
    group: str = "-"
    """Name of the task's group. `QueueLimits.per_group` applies to each group."""

    @property
    def name(self) -> str:
        """ID of the task within the batch."""
        return str(self.task["id"])

    @property
    def sha256(self) -> str:
        """Digest of the task. It covers a bundle's commit, not its file, since git may write different files for it."""
        left_out = ("bundle", "sha256") if "bundle" in self.task else ()
        requested = {name: value for name, value in self.task.items() if name not in left_out}
        return digest_of(json.dumps(requested, sort_keys=True).encode())


class Batch(Record):
    """Tasks that were added together, and the place of their results."""

    name: str
    out: str
    """The folder or URL of the results."""
    budget: float | None = None
    """Budget for all tasks in dollars. No task starts once it is spent. `None` for no limit."""


class QueueLimits(Record):
    """Limits for all tasks of a queue together. `None` for no limit."""

    at_once: int | None = None
    per_group: int | None = None
    starts: int | None = None
    """Maximum number of starts within `seconds`."""
    seconds: float | None = None
    """Period for `starts`, in seconds."""

    @property
    def words(self) -> str:
        """The limits as text for people."""
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
    """Number of the attempt, from 1. Unique among the attempts at a task."""
    out: str
    """Place of the batch's results."""
    is_won: bool = False
    """Whether this attempt gave the task's result already, so that only its publication may be missing."""


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
    """The worker was lost at every attempt, so the effect of the task is unknown."""
    CANCELLED = "cancelled"
    BROKEN = "without result"
    """The task ended without a result, since its row is unreadable or was changed by hand."""


class TaskRow(Record):
    """A task and its present state in the queue."""

    batch: str
    task: str
    state: TaskState
    version: str
    sha256: str
    """Digest of the task."""
    group: str
    result: Mapping[str, JsonValue]
    """Result of the task. Empty without one."""


class TaskResult(Record):
    """Result of a task, with the attempt that gave it."""

    task: str
    number: int
    end_time: float
    result: Mapping[str, JsonValue]
    lost: int
    """Number of attempts whose worker was lost. Their effects are unknown."""


class RunningRow(Record):
    """A running attempt."""

    batch: str
    task: str
    number: int
    worker: str
    seconds: float
    records: int
    head: str
    """Last reported head of the attempt's log. Empty before the first report."""


class WorkerRow(Record):
    """A worker that does not count as lost."""

    name: str
    version: str
    jobs: int
    silent: float
    """Seconds since its last heartbeat."""


class Beaten(Record):
    """The queue's answer to a worker's heartbeat."""

    is_alive: bool
    """Whether the worker still holds its lease. If not, its tasks are reassigned."""
    cancelled: frozenset[tuple[str, str]] = frozenset()
    """Batch and task of each running attempt that the worker must end."""


class Done(Enum):
    """A worker's report about a task that it took."""

    FINISHED = "finished"
    BACK = "back"
    """The task goes back into the queue for any worker."""
    LOST = "lost"
    """The worker counts as lost, so other workers run the task."""


Do: TypeAlias = Callable[[QueuedTask, TaskAttempt], Done]


class Queue(Protocol):
    """The interface for workers and batches. Every method except `beat` waits while the queue cannot be reached."""

    def put(self, batch: Batch, tasks: Sequence[QueuedTask], again: Callable[[TaskRow], bool]) -> int:
        """Add new tasks, and run those finished tasks again for which `again` returns true. Return the number of both.

        Raises UsageError, and adds no task, if the queue has a different task with the name of one of them.
        """

    def take(self, do: Do) -> None:
        """Take tasks from now on until `stop_taking`, and call `do` for each on its own thread."""

    def beat(self, running: Mapping[tuple[str, str], Growth]) -> Beaten:
        """Send a heartbeat with the progress of the logs of running attempts. Raises QueueAwayError."""

    def finish(self, attempt: TaskAttempt, end: str, result: Mapping[str, JsonValue] | None = None) -> bool:
        """Record the end of an attempt, with its result if it has one.

        Return whether this end was recorded. False, for example, if another attempt gave the result first.
        """

    def list(self, batch: str | None = None) -> Iterable[TaskRow]:
        """Return the tasks of one batch, or of all batches."""
