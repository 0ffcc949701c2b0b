"""What a batch writes of all its tasks: the summary, the reports, and what GitHub is told; one task is read at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.cli.state import State
from harness.cli.tasks.outcome import How, Outcome, counted
from harness.cli.tasks.task_folder import LOG, TaskFolder
from harness.errors import LogError, UsageError

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import overload

    from harness.cli.github import Actions
    from harness.cli.reporting import Reports
    from harness.run_reports import Reported

SUMMARY, ROWS = "summary.json", "summary.jsonl"


def check_out(path: str) -> str:
    """Return the folder of a batch, made where it is not there. Raises UsageError."""
    out = os.path.abspath(path)
    try:
        os.makedirs(out, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be made: {error.strerror}") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise UsageError(f"--out: {out} cannot be written")
    return out


def write_summary(out: str, outcomes: Sequence[Outcome], code: int, about: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Write a line for each task, and one object for all; return what went wrong, in words."""
    summary: dict[str, JsonValue] = {
        "v": 1,
        "tasks": len(outcomes),
        "exit_code": code,
        "exit_codes": dict(counted(outcomes)),
        "done_earlier": sum(one.how is How.EARLIER for one in outcomes),
        "cost": sum(one.cost for one in outcomes if one.cost is not None),
        "cost_not_known": sum(one.cost is None for one in outcomes),
        **about,
    }
    rows = (json.dumps(one.as_json, separators=(",", ":")) + "\n" for one in outcomes)
    try:
        _put(os.path.join(out, ROWS), rows)
        _put(os.path.join(out, SUMMARY), iter((json.dumps(summary, indent=2) + "\n",)))
    except OSError as error:
        return (f"the summary cannot be written: {error}",)
    return ()


class BatchReports:
    """The combined reports of a batch, checked before it begins."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str], out: str) -> None:
        """Raises UsageError for a report that cannot be written."""
        self._out = out
        self._with_answer: bool = arguments.report_answer
        self._heads = State.of(environment).heads
        self._reports: Reports | None = None
        self._actions: Actions | None = None
        if arguments.report:
            from harness.cli.reporting import Reports

            self._reports = Reports(arguments.report, with_answer=arguments.report_answer, keep_from=(arguments.tasks,))
        if environment.get("GITHUB_ACTIONS") == "true":
            from harness.cli.github import actions_from

            self._actions = actions_from(environment)

    def write(self, outcomes: Sequence[Outcome], code: int) -> tuple[str, ...]:
        """Write the reports, and tell GitHub; return what went wrong, in words."""
        if self._reports is None and self._actions is None:
            return ()
        runs = _Runs(self._out, outcomes, self._heads)
        problems = []
        if self._reports is not None:
            problems.append(self._reports.write(runs))
        if self._actions is not None:
            problems.append(self._actions.tell_all(runs, code=code, with_answer=self._with_answer))
        return tuple(problem for problem in problems if problem)


if TYPE_CHECKING:
    _RunsOf = Sequence[Reported]
else:
    _RunsOf = Sequence


class _Runs(_RunsOf):
    """The runs of a batch, each read from its log when it is asked for: thousands of them are never in memory."""

    def __init__(self, out: str, outcomes: Sequence[Outcome], heads: str) -> None:
        self._out = out
        self._outcomes = outcomes
        self._heads = heads

    def __len__(self) -> int:
        return len(self._outcomes)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Reported: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Reported]: ...

    def __getitem__(self, index: int | slice) -> Reported | Sequence[Reported]:
        if isinstance(index, slice):
            return _Runs(self._out, self._outcomes[index], self._heads)
        return self._reported(self._outcomes[index])

    def __iter__(self) -> Iterator[Reported]:
        return (self._reported(one) for one in self._outcomes)

    def _reported(self, one: Outcome) -> Reported:
        from harness.cli.reporting import facts_of_log
        from harness.run_reports import Reported
        from harness.run_reports.facts import Facts

        folder = TaskFolder(os.path.join(self._out, one.id))
        result = folder.read_result()
        log = str((result or {}).get("log") or "")
        if one.code is not None and result is not None and os.path.basename(log) == LOG:
            attempt = (folder.read_work() or {}).get("attempt")
            try:
                # By its place: the folder of the batch may have been moved since.
                facts = facts_of_log(folder.log(attempt) if type(attempt) is int else log)
            except LogError as error:
                one_problem = str(error)
            else:
                return Reported(
                    name=one.id,
                    facts=facts,
                    result=result,
                    answer=str(result.get("answer") or ""),
                    heads=self._heads,
                )
        else:
            one_problem = one.problem or "there is no result"
        return Reported(name=one.id, facts=Facts(), result=_without_facts(one, one_problem))


def _without_facts(one: Outcome, problem: str) -> Mapping[str, JsonValue]:
    """Return the result object of a task that has none: reports must not leave it out."""
    from harness.run_reports.facts import Facts
    from harness.run_reports.result import result_object

    return result_object(
        Facts(),
        answer="",
        code=1 if one.code is None else one.code,
        cost=None,
        model="",
        policy="",
        policy_sha256="",
        log="",
        head="",
        records=0,
        end=one.how.value if one.code is None else "failed before it began",
        detail=problem,
    )


def _put(path: str, pieces: Iterator[str]) -> None:
    """Write a file beside its place, and move it there. Raises OSError."""
    made = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(
            os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="ascii"
        ) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)
    except BaseException:
        try:
            os.unlink(made)
        except OSError:
            pass  # it was not made
        raise
