"""What the tasks of a batch came to: a row each, one table, one exit code; made of results, and it reads none itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.text_lines import counted, short_count, table
from harness.record import Record
from harness.text.visible import visible_line

MAX_ROWS = 200
"""Of more tasks, those with another exit code than 0 are shown, and the rest counted."""
MAX_DETAIL = 2_000
_WORST_FIRST = (
    Exit.LOG, Exit.BLOCKED, Exit.INTERNAL, Exit.USAGE, Exit.MODEL, Exit.NO_ANSWER, Exit.LIMIT, Exit.REFUSED, Exit.DONE,
)  # fmt: skip
"""A record that cannot be relied on is worst, then what the policy stopped; then what was not done, and how."""


class TaskEnd(Enum):
    """How a task came to its outcome in this batch."""

    RAN = "ran"
    EARLIER = "earlier"
    """It was done before this batch began."""
    NOT_DONE = "not done"
    """Its process was killed, each time."""
    CANNOT_BEGIN = "cannot begin"
    """What it asks for makes no sense here, or its process cannot be started."""
    NOT_RUN = "not run"
    """The batch was ended before, or while it was run."""


class TaskOutcome(Record):
    """What one task came to."""

    id: str
    place: int
    how: TaskEnd
    code: int | None = None
    """The exit code of its run; None where there is none."""
    end: str = ""
    turns: int = 0
    refused: int = 0
    """Refused and blocked calls."""
    changed: int = 0
    """Files in its patch."""
    cost: float | None = None
    seconds: float = 0.0
    """In this batch, all its processes together."""
    tries: int = 0
    """How many processes were started for it in this batch."""
    problem: str = ""
    detail: str = ""
    """Why its run ended as it did, in the run's own words."""

    @property
    def why(self) -> str:
        """What went wrong, in words; nothing where nothing did."""
        return "; ".join(part for part in (self.detail, self.problem) if part)

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The row as a line of the summary holds it."""
        return {
            "id": self.id,
            "how": self.how.value,
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
    """Return the outcome with what the result of the task says."""
    from harness.record import replace

    changes, cost = work.get("changes"), result.get("cost")
    kept = work.get("kept")
    return replace(
        outcome,
        end=str(result.get("end") or ""),
        turns=_count(result.get("turns")),
        refused=_count(result.get("refused")) + _count(result.get("blocked")),
        changed=_count(changes.get("files")) if isinstance(changes, Mapping) else 0,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
        problem=outcome.problem or (f"its folder is kept: {kept}" if kept else ""),
        detail=visible_line(str(result.get("detail") or ""), MAX_DETAIL),
    )


def worst(outcomes: Iterable[TaskOutcome]) -> Exit:
    """Return the exit code of a batch. What was given up counts as an internal error; what it never came to, not at all."""
    tried = [one.code for one in outcomes if one.how is not TaskEnd.NOT_RUN]
    codes = {Exit.INTERNAL if code not in _WORST_FIRST else Exit(code) for code in tried}
    return next((code for code in _WORST_FIRST if code in codes), Exit.DONE)


def by_exit_code(outcomes: Sequence[TaskOutcome]) -> dict[str, int]:
    """Return how many tasks came to which exit code, as texts; `none` where there is none."""
    found = Counter("none" if one.code is None else str(int(one.code)) for one in outcomes)
    return dict(sorted(found.items()))


def lines_of(outcomes: Sequence[TaskOutcome]) -> list[str]:
    """Return the lines of the table, and one that counts."""
    shown = [one for one in outcomes if one.how is not TaskEnd.NOT_RUN]
    if len(shown) > MAX_ROWS:
        shown = [one for one in shown if one.code != Exit.DONE][:MAX_ROWS]
    headings = ("task", "exit", "end", "turns", "refused", "files", "cost", "seconds", "tries", "")
    lines = table(headings, [_row(one) for one in shown]) if shown else []
    not_run = sum(one.how is TaskEnd.NOT_RUN for one in outcomes)
    if not_run:
        lines.append(f"({counted(not_run, 'task')} not run to the end: the batch was ended before)")
    if len(shown) + not_run < len(outcomes):
        lines.append(f"({len(outcomes) - len(shown) - not_run} more are in the summary)")
    counts = by_exit_code(outcomes).items()
    codes = ", ".join(
        f"{count} {'without one' if code == 'none' else f'with exit code {code}'}" for code, count in counts
    )
    ran = sum(one.how is not TaskEnd.EARLIER and one.tries > 0 for one in outcomes)
    earlier = sum(one.how is TaskEnd.EARLIER for one in outcomes)
    lines.append(f"{counted(len(outcomes), 'task')}: {codes or 'none'}; {ran} run now, {earlier} done earlier")
    problems = [f"{one.id}: {visible_line(one.why, 500)}" for one in shown if one.why]
    return [*lines, *problems[:MAX_ROWS]]


def _row(one: TaskOutcome) -> tuple[str, ...]:
    return (
        one.id,
        "-" if one.code is None else str(int(one.code)),
        visible_line(one.end or one.how.value, 40),
        str(one.turns),
        str(one.refused),
        short_count(one.changed),
        "-" if one.cost is None else f"${one.cost:.4f}",
        f"{one.seconds:.1f}",
        str(one.tries),
        "earlier" if one.how is TaskEnd.EARLIER else "",
    )


def _count(value: JsonValue) -> int:
    return value if type(value) is int and value >= 0 else 0
