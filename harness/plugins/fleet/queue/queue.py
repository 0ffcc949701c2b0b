"""What a queue is to the rest: five functions, and the values that they take and give. `dbos_queue` has them on DBOS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.errors import HarnessError
from harness.record import Record

if TYPE_CHECKING:
    from typing import TypeAlias

NAME_LENGTH = 12
"""Of a batch, in hexadecimal digits."""
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
    """What the line of the task file says, and where its files lie."""
    version: str
    """What a worker must be to take it: version of the harness, digest of the policy, digest of the settings."""
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
        """The digest of what is asked. A bundle counts by its commit: git may make another file of it."""
        import json

        left_out = ("bundle", "sha256") if "bundle" in self.task else ()
        asked = {name: value for name, value in self.task.items() if name not in left_out}
        return digest_of(json.dumps(asked, sort_keys=True).encode())


class Batch(Record):
    """Tasks that were put together, and where their results go."""

    name: str
    out: str
    """The folder or URL of the results."""
    budget: float | None = None
    """In dollars, for all tasks: none is started once so much was spent. None sets no bound."""


class QueueLimits(Record):
    """What holds for all tasks of a queue together. None: no limit."""

    at_once: int | None = None
    per_group: int | None = None
    starts: int | None = None
    """So many starts ..."""
    seconds: float | None = None
    """... in so many seconds."""

    @property
    def words(self) -> str:
        """What holds, for a person."""
        told = (
            f"{self.at_once} at once" if self.at_once else "",
            f"{self.per_group} of a group" if self.per_group else "",
            f"{self.starts} starts in {self.seconds:g} s" if self.starts else "",
        )
        return ", ".join(one for one in told if one) or "none"


class TaskAttempt(Record):
    """One try at a task by one worker."""

    batch: str
    task: str
    number: int
    """From 1; no two attempts at a task have the same."""
    out: str
    """Where the results of its batch go."""
    is_won: bool = False
    """Whether it gave the task's result already, and only the publishing may be missing."""


class Growth(Record):
    """How far the log of a running attempt got."""

    records: int
    head: str


class TaskState(Enum):
    """Where a task is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown effect"
    """Its workers were lost each time: what it did is not known."""
    CANCELLED = "cancelled"
    BROKEN = "without result"
    """It came to an end and left no result: its row cannot be read, or somebody wrote into it."""


class TaskRow(Record):
    """A task as the queue knows it now."""

    batch: str
    task: str
    state: TaskState
    version: str
    sha256: str
    """Of what was asked."""
    group: str
    result: Mapping[str, JsonValue]
    """What the attempt that counts came to; empty where there is none."""


class TaskResult(Record):
    """What a task came to: the attempt that counts, and what it says of itself."""

    task: str
    number: int
    ended: float
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
    """Of its log, as it was told last; empty before the first time."""


class WorkerRow(Record):
    """A worker that is alive, as far as the queue knows."""

    name: str
    version: str
    jobs: int
    silent: float
    """Seconds since it was heard of."""


class Beaten(Record):
    """What the queue answers a worker that says that it lives."""

    is_alive: bool
    """Whether it is still taken for alive. If not, others do its tasks."""
    cancelled: frozenset[tuple[str, str]] = frozenset()
    """Batch and task of each running attempt that is to be ended."""


class Done(Enum):
    """What a worker says of a task that it took."""

    FINISHED = "finished"
    BACK = "back"
    """It goes back into the queue unharmed, for any worker."""
    LOST = "lost"
    """The worker was taken for lost: the task is others'."""


if TYPE_CHECKING:
    Do: TypeAlias = Callable[[QueuedTask, TaskAttempt], Done]


class Queue(Protocol):
    """What workers and batches need of a queue. All of it waits while the queue cannot be reached, but for `beat`."""

    def put(self, batch: Batch, tasks: Sequence[QueuedTask], again: Callable[[TaskRow], bool]) -> int:
        """Put tasks in that are not there, and those done ones again of which `again` says so. Return how many.

        Raises UsageError, and puts nothing in, where a task of that name is another one.
        """

    def take(self, do: Do) -> None:
        """Take tasks from now on, each on a thread of its own, until `stop_taking`."""

    def beat(self, running: Mapping[tuple[str, str], Growth]) -> Beaten:
        """Say that this worker lives, and how far its logs got. Raises QueueAwayError."""

    def finish(self, attempt: TaskAttempt, how: str, result: Mapping[str, JsonValue] | None = None) -> bool:
        """Note how an attempt ended, with its result if it has one. Return whether that counts: another may have been first."""

    def list(self, batch: str | None = None) -> Iterable[TaskRow]:
        """Return the tasks of one batch, or all."""
