"""Outcomes of tasks, and the output of a batch: its progress, a table with a row for each task, and one exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Self, TextIO

from harness.actions import JsonValue
from harness.record import Record, replace
from harness.session.exits import Exit
from harness.terminal.console import Console, Look
from harness.terminal.long_work import LongWork
from harness.terminal.tables import Column, Table, TableRow, numbers
from harness.text.amounts import count_of, short_count
from harness.text.visible import visible_line

MAX_ROWS = 200
"""Maximum number of rows.

With more tasks, only those with an exit code other than 0 are shown; the rest are counted.
"""
MAX_DETAIL = 2_000
_WORST_FIRST = (
    Exit.LOG, Exit.BLOCKED, Exit.INTERNAL, Exit.USAGE, Exit.MODEL, Exit.NO_ANSWER, Exit.LIMIT, Exit.REFUSED, Exit.DONE,
)  # fmt: skip
"""Exit codes from worst to best: an unreliable log, a run that the policy stopped, then unfinished work."""


class TaskEnd(Enum):
    """Kind of a task's outcome in this batch."""

    RAN = "ran"
    EARLIER = "earlier"
    """The task was done before this batch began."""
    NOT_DONE = "not done"
    """The process of the task was killed at every try."""
    CANNOT_BEGIN = "cannot begin"
    """The fields of the task are invalid here, or its process cannot be started."""
    UNKNOWN = "unknown effect"
    """The worker was lost at every try, so the effect of the task is unknown."""
    CANCELLED = "cancelled"
    NOT_RUN = "not run"
    """The batch ended before the task ended."""


class TaskOutcome(Record):
    """The end of one task."""

    id: str
    place: int
    task_end: TaskEnd
    code: int | None = None
    """Exit code of the task's run. `None` if it has none."""
    end: str = ""
    turns: int = 0
    refused: int = 0
    """Number of refused and blocked calls."""
    changed: int = 0
    """Number of files in the task's patch."""
    cost: float | None = None
    seconds: float = 0.0
    """Total time of the task's processes in this batch, in seconds."""
    tries: int = 0
    """Number of the task's processes in this batch."""
    problem: str = ""
    detail: str = ""
    """Reason for the end of the run, from the run's result."""

    @property
    def end_words(self) -> str:
        """The exit code, or else the kind of outcome, as short text."""
        return self.task_end.value if self.code is None else f"exit {int(self.code)}"

    @property
    def problem_text(self) -> str:
        """Detail and problem as one text. Empty without either."""
        return "; ".join(part for part in (self.detail, self.problem) if part)

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The row of the task in the summary."""
        return {
            "id": self.id,
            "how": self.task_end.value,
            "exit_code": self.code,
            "end": self.end,
            "turns": self.turns,
            "refused": self.refused,
            "files": self.changed,
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
            "tries": self.tries,
            "problem": self.problem,
            "detail": self.detail,
        }


def with_result(outcome: TaskOutcome, result: Mapping[str, JsonValue], work: Mapping[str, JsonValue]) -> TaskOutcome:
    """Return the outcome with the figures of the task's result."""

    changes, cost = work.get("changes"), result.get("cost")
    kept_folder = work.get("kept")
    return replace(
        outcome,
        end=str(result.get("end") or ""),
        turns=count_in(result.get("turns")),
        refused=count_in(result.get("refused")) + count_in(result.get("blocked")),
        changed=count_in(changes.get("files")) if isinstance(changes, Mapping) else 0,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
        problem=outcome.problem or (f"its folder is kept: {kept_folder}" if kept_folder else ""),
        detail=visible_line(str(result.get("detail") or ""), MAX_DETAIL),
    )


def worst(outcomes: Iterable[TaskOutcome]) -> Exit:
    """Return the exit code of a batch: the worst of its tasks.

    A task that was given up counts as an internal error. A task that did not run counts only if it has an exit code.
    """
    tried = [
        outcome.code for outcome in outcomes if outcome.task_end is not TaskEnd.NOT_RUN or outcome.code is not None
    ]
    codes = {Exit.INTERNAL if code not in _WORST_FIRST else Exit(code) for code in tried}
    return next((code for code in _WORST_FIRST if code in codes), Exit.DONE)


def by_exit_code(outcomes: Sequence[TaskOutcome]) -> dict[str, int]:
    """Return the number of tasks for each exit code, which is a string of digits, or `none` for tasks without one."""
    counts = Counter("none" if outcome.code is None else str(int(outcome.code)) for outcome in outcomes)
    return dict(sorted(counts.items()))


def tell(outcomes: Sequence[TaskOutcome], console: Console) -> None:
    """Write the table, then a line of counts, then the problems."""
    rows = [outcome for outcome in outcomes if outcome.task_end is not TaskEnd.NOT_RUN]
    if len(rows) > MAX_ROWS:
        rows = [outcome for outcome in rows if outcome.code != Exit.DONE][:MAX_ROWS]
    if rows:
        console.table(Table(columns=_COLUMNS, rows=tuple(TableRow(cells=_row(outcome)) for outcome in rows)))
    lines = []
    not_run = sum(outcome.task_end is TaskEnd.NOT_RUN for outcome in outcomes)
    if not_run:
        lines.append(f"({count_of(not_run, 'task')} not run to the end: the batch was ended before)")
    if len(rows) + not_run < len(outcomes):
        lines.append(f"({len(outcomes) - len(rows) - not_run} more are in the summary)")
    counts = by_exit_code(outcomes).items()
    codes = ", ".join(
        f"{count} {'without one' if code == 'none' else f'with exit code {code}'}" for code, count in counts
    )
    ran = sum(outcome.task_end is not TaskEnd.EARLIER and outcome.tries > 0 for outcome in outcomes)
    earlier = sum(outcome.task_end is TaskEnd.EARLIER for outcome in outcomes)
    lines.append(f"{count_of(len(outcomes), 'task')}: {codes or 'none'}; {ran} run now, {earlier} done earlier")
    problems = [f"{outcome.id}: {visible_line(outcome.problem_text, 500)}" for outcome in rows if outcome.problem_text]
    for line in (*lines, *problems[:MAX_ROWS]):
        console.line(line)


_COLUMNS = (
    Column(name="task", folds=True),
    *(Column(name=name, right=True) for name in ("exit", "end", "turns", "refused")),
    *numbers("files", "cost"),
    *(Column(name=name, right=True) for name in ("seconds", "tries")),
    Column(name="", leaves=True),
)


def _row(outcome: TaskOutcome) -> tuple[str, ...]:
    return (
        outcome.id,
        "-" if outcome.code is None else str(int(outcome.code)),
        visible_line(outcome.end or outcome.task_end.value, 40),
        str(outcome.turns),
        str(outcome.refused),
        short_count(outcome.changed),
        "-" if outcome.cost is None else f"${outcome.cost:.4f}",
        f"{outcome.seconds:.1f}",
        str(outcome.tries),
        "earlier" if outcome.task_end is TaskEnd.EARLIER else "",
    )


def count_in(value: JsonValue) -> int:
    """Return a count from a result, or 0 if `value` is not a count."""
    return value if type(value) is int and value >= 0 else 0


class Progress:
    """Shows the number of finished tasks: a live line at a terminal, otherwise a line for each finished task."""

    def __init__(self, stream: TextIO, total: int, look: Look, *, quiet: bool) -> None:
        """Write to `stream`. With `quiet`, write only problems."""
        self._total = total
        self._quiet = quiet
        self._is_live = look.repaints and not quiet
        self._running = self._elsewhere = 0
        self._work = LongWork(stream, look if self._is_live else Look(), total, self._words)
        self.done = 0
        self.failed = 0
        """Number of finished tasks with an exit code other than 0."""

    def __enter__(self) -> Self:
        self._work.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._work.__exit__(*raised)

    def tell(self, line: str) -> None:
        """Write a permanent line, also with `quiet`."""
        try:
            self._work.tell(f"harness: {visible_line(line, 2_000)}")
        except (OSError, ValueError):
            self._quiet = True  # the stream is closed; exit code and summary have the same facts

    def count_finished(self, name: str, end: str, seconds: float, *, failed: bool, reason: str = "") -> None:
        """Count a finished task. Without a terminal, print its end and the reason."""
        self.done += 1
        self.failed += failed
        self._work.step()
        if not self._quiet and not self._is_live:
            text = f"{name}: {end}, {seconds:.1f} s ({self.done} of {self._total})"
            self.tell(f"{text}: {reason}" if reason else text)

    def now(self, running: int, elsewhere: int = 0) -> None:
        """Update the number of tasks that run here, and in other processes."""
        self._running, self._elsewhere = running, elsewhere

    def _words(self) -> str:
        parts = [f"{self.done:,} of {self._total:,} tasks", f"{self._running} running"]
        if self._elsewhere:
            parts.append(f"{self._elsewhere} elsewhere")
        if self.failed:
            parts.append(f"{self.failed} not with exit code 0")
        return ", ".join(parts)
