"""`harness audit stats`: tables of decisions by rule, answers by people, and results and durations by tool."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.app.audit.logs import BROKEN, chosen_logs
from harness.errors import UsageError
from harness.log.vocabulary import ANSWERS
from harness.paths import short_place
from harness.plugins.insight.stats import Statistics, statistics_of
from harness.terminal.console import Console, FinishedOutput, complain
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow, numbers
from harness.text.amounts import short_count
from harness.text.visible import visible_line

_RULES = (Column(name="decided by", folds=True), *numbers("parts", "calls", "auto", "ask", "deny", "block"))
_QUESTIONS = (
    Column(name="asked by", folds=True),
    *numbers("ask", "yes", "no", "stop", "edit", "nobody", "unanswered", "wait", "p90", "<1s"),
)
_TOOLS = (
    Column(name="tool", folds=True),
    *numbers(
        "calls", "ok", "failed", "timeout", "cut off", "refused", "invalid", "not run", "unknown", "secs", "bytes"
    ),
)
_NOTES = (
    "parts: of calls, such as a command or a file; a call is counted where its decision was made",
    "stop: Ctrl-C, or a halt; edit: another call in its place; nobody: none was there",
    "unanswered: the log has no answer",
    "<1s: a person's answers, of any kind, that came in under a second: hardly read",
    "wait, p90: seconds until a person answered: the median, and what 9 of 10 did not exceed",
    "often yes: a candidate for auto (see `harness policy suggest`); often no: one for deny",
)


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Count the records, write tables or JSON objects, and return the exit code. Raises HarnessError."""
    if arguments.sql and not arguments.sql.isspace() and os.path.exists(arguments.sql):
        raise UsageError(f"--sql takes a query, and {arguments.sql} is a file: name the logs before --sql")
    chosen = chosen_logs(arguments, environment)
    code = chosen.tell_standing()
    console = FinishedOutput(environment)
    if arguments.sql:
        from harness.plugins.insight.commands.sql import answer_query

        left_out = answer_query(chosen.paths, chosen.session, arguments.sql, None if arguments.json else console)
        if left_out:
            complain(f"LEFT OUT: {left_out} lines that are no records; see `harness audit verify`")
        return BROKEN if left_out else code
    statistics = statistics_of(chosen.paths, chosen.session)
    if statistics.totals["left_out"]:
        code = BROKEN
    rows = tuple(statistics.rows())
    if arguments.json:
        sys.stdout.writelines(f"{json.dumps(row)}\n" for row in rows)
        return code
    _tell(statistics, rows, console)
    return code


def _tell(statistics: Statistics, rows: Sequence[Mapping[str, JsonValue]], console: Console) -> None:
    """Write the tables, the meaning of their columns, and the totals."""
    rules = [row for row in rows if row["row"] == "rule"]
    names = _names([str(row["by"]) for row in rules])
    asking = [row for row in rules if any(_integer(row[name]) for name in ("asked", *ANSWERS))]
    tables = (
        (_RULES, [_rule_cells(row, names[str(row["by"])]) for row in rules]),
        (_QUESTIONS, [_question_cells(row, names[str(row["by"])]) for row in asking]),
        (_TOOLS, [_tool_cells(row) for row in rows if row["row"] == "tool"]),
    )
    for columns, cells in tables:
        if cells:
            console.table(Table(columns=columns, rows=tuple(TableRow(cells=tuple(row)) for row in cells)))
            console.line("")
    for line in (*_NOTES, *_numbered(names), "") if rules else ("Nothing was decided.", ""):
        console.line(line, Tone.QUIET)
    for line in _total_lines(statistics):
        console.line(line)


def _names(rules: Sequence[str]) -> dict[str, str]:
    """Return a display name for each rule: without the folder of its file, and numbered if two would be equal.

    Lines below the tables explain the numbers.
    """
    display_names: dict[str, str] = {}
    count: Counter[str] = Counter(_cell(by) for by in rules)
    numbers: Counter[str] = Counter()
    for by in rules:
        name = _cell(by)
        numbers[name] += 1
        display_names[by] = f"[{numbers[name]}] {name}" if count[name] > 1 else name
    return display_names


def _cell(by: str) -> str:
    """Return a rule's name as the tables show it."""
    return visible_line(short_place(by) or "(nothing)", 300)


def _numbered(names: Mapping[str, str]) -> list[str]:
    """Return the lines that give the full name of each numbered rule."""
    return [
        visible_line(f"{display_name.partition(' ')[0]} {by}", 5_000)
        for by, display_name in names.items()
        if display_name != _cell(by)
    ]


def _rule_cells(row: Mapping[str, JsonValue], by: str) -> list[str]:
    return [by, *(_count(row[name]) for name in ("facets", "calls", "auto", "asked", "denied", "blocked"))]


def _question_cells(row: Mapping[str, JsonValue], by: str) -> list[str]:
    waits = [_seconds(row[name]) for name in ("wait_median", "wait_p90")]
    stops = short_count(_integer(row["stop"]) + _integer(row["halt"]))
    before, after = ("asked", "yes", "no"), ("edit", "nobody", "unanswered")
    counts = [*(_count(row[name]) for name in before), stops, *(_count(row[name]) for name in after)]
    return [by, *counts, *waits, _count(row["quick"])]


def _tool_cells(row: Mapping[str, JsonValue]) -> list[str]:
    cut_off = _integer(row["interrupted"]) + _integer(row["crashed"])
    refused = _integer(row["denied"]) + _integer(row["blocked"])
    return [
        str(row["tool"]) or "(nameless)",
        *(_count(row[name]) for name in ("calls", "ok", "failed", "timeout")),
        *map(short_count, (cut_off, refused)),
        *(_count(row[name]) for name in ("invalid", "not_run", "unknown")),
        _seconds(_integer(row["duration_ms"]) / 1000),
        short_count(_integer(row["output_bytes"])),
    ]


def _total_lines(statistics: Statistics) -> list[str]:
    total = statistics.totals
    summary = f"{total['sessions']} sessions, {total['prompts']} prompts, {total['turns']} turns"
    requests = f"{total['requests']} requests, {total['retries']} tried again, {total['errors']} errors"
    words = [
        f"{total['logs']} logs, {total['records']} records, {summary}, {statistics.wall_seconds:.0f} seconds",
        f"{total['calls']} calls, {total['undecided']} of them never judged, {total['unknown']} unknown: they may have run",
        f"{requests}, {total['input_tokens']} tokens in, {total['output_tokens']} out, {statistics.cost.words}",
        f"{total['masked']} secrets masked",
    ]
    if total["unjudged"]:
        words.append(f"NOT ALLOWED: {total['unjudged']} calls that another agent ran; see `harness audit show`")
    if total["torn"] or total["left_out"]:
        bad = f"LEFT OUT: {total['torn']} torn lines at the end of logs, {total['left_out']} other lines that are no records"
        words.append(f"{bad}; see `harness audit verify`")
    if total["cut_facets"]:
        words.append(f"LEFT OUT: parts of {total['cut_facets']} calls that have more of them than the log lists")
    return words


def _count(value: JsonValue) -> str:
    return short_count(_integer(value))


def _integer(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _seconds(value: JsonValue) -> str:
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.1f}" if value < 100 else short_count(round(value))
