"""`harness policy test`: check a policy against a file of cases, one JSON object per line. No call is run."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from harness.actions import Decision, JsonValue
from harness.app.policy.judged_call import CallReader
from harness.app.policy.plugin import EXAMPLE_CASE
from harness.errors import ToolError, UsageError
from harness.files.workspace import Workspace
from harness.paths import short_place
from harness.policy.loader import DECISION_WORDS
from harness.policy.verdict import Verdict, evaluate
from harness.record import Record
from harness.session.exits import Exit
from harness.session.policies import PolicyInForce
from harness.session.state import current_folder
from harness.terminal.console import Console, FinishedOutput
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_line
from harness.text.visible import visible_line

_DECISION = f"one of {' '.join(DECISION_WORDS)}"
CASE: Mapping[str, str] = {
    "id": "filled",
    "tool": "filled",
    "args": "arguments",
    "cwd?": "filled",
    "expect?": _DECISION,
    "at_least?": _DECISION,
}
FAILED = 1
"""Exit code if an expectation fails or a call cannot be judged. An invalid file gives exit code 2."""


class PolicyCase(Record):
    """One line of a file of cases."""

    line: int
    id: str
    tool: str
    args: JsonValue
    """Arguments as the model would send them."""
    cwd: str | None = None
    """The workspace, as in the flag `--cwd`. Relative paths start at that flag's folder."""
    expect: Decision | None = None
    at_least: Decision | None = None


class Judged(Record):
    """Result of a case."""

    case: PolicyCase
    verdict: Verdict | None
    """The decision on the call. `None` if it could not be judged."""
    problem: str = ""

    @property
    def ok(self) -> bool | None:
        """Whether the expectation is met. `None` without an expectation; False for a call that could not be judged."""
        if self.verdict is None:
            return False
        if self.case.expect is None and self.case.at_least is None:
            return None
        decision = self.verdict.decision
        return self.case.expect in (None, decision) and decision >= (self.case.at_least or Decision.AUTO)


def test_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Judge every case, report the results, and return the exit code. Raises UsageError or PolicyError."""
    cases = read_cases(arguments.cases)
    reader = CallReader(environment)
    policies = PolicyInForce(arguments.policy, environment)
    folder = arguments.cwd or current_folder()
    if not os.path.isdir(folder):
        raise UsageError(f"the workspace is not an existing folder: {folder}")
    results = [_judge(case, reader, policies, folder, environment) for case in cases]
    if arguments.json:
        sys.stdout.write("".join(f"{line}\n" for line in _json_lines(results)))
    else:
        _tell(results, FinishedOutput(environment))
    return FAILED if any(each.ok is False for each in results) else Exit.DONE


def read_cases(path: str) -> tuple[PolicyCase, ...]:
    """Return the cases in a file of JSON lines. Blank lines are skipped.

    Raises UsageError if the file cannot be read, has no case, or has an invalid line or key. The error names the line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    cases: dict[str, PolicyCase] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            case = _case(line, number)
        except ValueError as error:
            raise UsageError(f"{path}:{number}: {error}") from None
        if case.id in cases:
            raise UsageError(f"{path}:{number}: the id {case.id!r} is taken by line {cases[case.id].line}")
        cases[case.id] = case
    if not cases:
        raise UsageError(f"{path}: holds no case")
    return tuple(cases.values())


def _case(line: bytes, number: int) -> PolicyCase:
    """Return the case in one line. Raises ValueError with a description of the problem."""
    try:
        table = read_line(line)
    except NotJsonError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"is not an object, such as {EXAMPLE_CASE}")  # noqa: TRY004
    # Invalid `args` are accepted here. They make the case fail when it is judged.
    if problem := Fields(CASE, {"arguments": lambda _: ""}).problem(table):
        raise ValueError(problem)
    fields: dict[str, Any] = table
    fields |= {key: DECISION_WORDS[fields[key]] for key in ("expect", "at_least") if key in fields}
    return PolicyCase(line=number, **fields)


def _judge(
    case: PolicyCase, reader: CallReader, policies: PolicyInForce, folder: str, environment: Mapping[str, str]
) -> Judged:
    try:
        if not isinstance(case.args, dict):
            raise ToolError("args must be an object")  # noqa: TRY301 - one of several ways not to be a call
        workspace = Workspace.even_if_gone(os.path.join(folder, case.cwd or ""), environment.get("HOME"))
        action = reader.action(case.tool, json.dumps(case.args), workspace)
    except (ToolError, UsageError) as error:
        return Judged(case=case, verdict=None, problem=str(error))
    return Judged(case=case, verdict=evaluate(policies.at(workspace), action))


def _expected(case: PolicyCase) -> str:
    expected = [] if case.expect is None else [case.expect.word]
    return " and ".join(expected if case.at_least is None else [*expected, f"at least {case.at_least.word}"])


_COLUMNS = (
    Column(name="case", folds=True),
    Column(name="decision"),
    Column(name="decided by", folds=True),
    Column(name="came out", folds=True, toned=True),
)
_TONES = {True: Tone.GOOD, False: Tone.BAD, None: Tone.PLAIN}


def _tell(results: Sequence[Judged], console: Console) -> None:
    """Write a row for each case, and the summary."""
    rows = (TableRow(cells=(visible_line(each.case.id, 60), *_cells(each)), tone=_TONES[each.ok]) for each in results)
    console.table(Table(columns=_COLUMNS, rows=tuple(rows), headed=console.width > 0))
    count = _count(results)
    summary = f"{count['cases']} cases: {count['ok']} ok, {count['failed']} failed"
    console.line(f"{summary}, {count['unchecked']} without an expectation" if count["unchecked"] else summary)


def _cells(result: Judged) -> tuple[str, str, str]:
    """Return the cells for the decision, the deciding rule and the result."""
    if result.verdict is None:
        return "-", "-", visible_line(f"FAILED line {result.case.line}: {result.problem}", 1000)
    by = visible_line(short_place(result.verdict.deciding.by), 200)
    word = result.verdict.decision.word
    if result.ok is None:
        return word, by, "-"
    return word, by, "ok" if result.ok else f"FAILED line {result.case.line}: expected {_expected(result.case)}"


def _count(all_results: Sequence[Judged]) -> dict[str, int]:
    results = [each.ok for each in all_results]
    return {
        "cases": len(results),
        "ok": results.count(True),
        "failed": results.count(False),
        "unchecked": results.count(None),
    }


def _json_lines(results: Sequence[Judged]) -> list[str]:
    return [*(json.dumps(_as_json(each)) for each in results), json.dumps({"summary": _count(results)})]


def _as_json(result: Judged) -> dict[str, JsonValue]:
    case, verdict = result.case, result.verdict
    return {
        "id": case.id,
        "line": case.line,
        "tool": case.tool,
        "decision": None if verdict is None else verdict.decision.word,
        "by": None if verdict is None else verdict.deciding.by,
        "reason": None if verdict is None else verdict.deciding.reason,
        "expect": None if case.expect is None else case.expect.word,
        "at_least": None if case.at_least is None else case.at_least.word,
        "ok": result.ok,
        "error": result.problem or None,
    }
