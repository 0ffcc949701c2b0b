"""`harness audit stats`: counts by rule, by tool and in all, over sessions of the real agent and over lines that are none."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import CALLS, Call, own_policy, session
from rows import all_rows

from harness.actions import JsonValue
from harness.audit.calls import MOST_IN_FLIGHT
from harness.log.action_log import ActionLog
from harness.model import Prices
from harness.plugins.insight.stats import MOST_ROWS, OTHERS, Statistics, Waits, statistics_of
from harness.text.amounts import short_count

if TYPE_CHECKING:
    from program import Program

Row = Mapping[str, JsonValue]


@pytest.fixture
def log(program: Program) -> Path:
    path = program.home / "log.jsonl"
    session(path, program.workspace, own_policy(program.home), CALLS)
    return path


def told(program: Program, *words: str) -> tuple[dict[str, Row], dict[str, Row], Row]:
    """Return the rows by rule, the rows by tool, and the total."""
    done = program.run("audit", "stats", *words, "--json")
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    rules = {row["by"].partition(" (")[0]: row for row in rows if row["row"] == "rule"}
    return rules, {row["tool"]: row for row in rows if row["row"] == "tool"}, rows[-1]


def test_each_rule_has_a_row_of_decisions_and_answers(program: Program, log: Path) -> None:
    rules, _, _ = told(program, str(log))
    default = rules["default for bash"]
    assert {name: default[name] for name in ("calls", "auto", "asked", "denied", "blocked")} == {
        "calls": 5, "auto": 0, "asked": 5, "denied": 0, "blocked": 0,
    }  # fmt: skip
    assert {name: default[name] for name in ("yes", "no", "nobody", "stop", "edit", "unanswered")} == {
        "yes": 3, "no": 1, "nobody": 1, "stop": 0, "edit": 0, "unanswered": 0,
    }  # fmt: skip
    # Only a person's answers are timed: 0.5, 3 and 9 seconds; a yes in half a second was hardly read.
    assert (default["wait_median"], default["wait_p90"], default["quick_yes"]) == (3.0, 9.0, 1)
    assert (rules["rule publish"]["asked"], rules["rule publish"]["yes"]) == (1, 1)
    assert (rules["rule secrets"]["denied"], rules["rule secrets"]["rule"]) == (1, "secrets")
    assert (rules["built-in delete-tree"]["blocked"], rules["built-in delete-tree"]["rule"]) == (1, None)
    assert rules["model of ls, readers"]["auto"] == 1
    assert rules["default for write_file"]["source"] == "default"


def test_parts_are_counted_where_another_decided_the_call(program: Program, log: Path) -> None:
    """The model of cat let the command through; the rule for its operand decided the call."""
    rules, _, _ = told(program, str(log))
    cat = rules["model of cat, readers"]
    assert (cat["facets"], cat["calls"], rules["rule secrets"]["facets"]) == (1, 0, 1)


def test_a_row_for_each_tool_and_the_total(program: Program, log: Path) -> None:
    _, tools, total = told(program, str(log))
    assert (tools["bash"]["calls"], tools["bash"]["failed"], tools["bash"]["denied"]) == (9, 4 + 1, 3)
    assert (tools["bash"]["blocked"], tools["write_file"]["ok"]) == (1, 1)
    assert (tools["no_such_tool"]["calls"], tools["no_such_tool"]["invalid"]) == (1, 1)
    assert {name: total[name] for name in ("logs", "sessions", "prompts", "turns", "requests", "calls", "undecided")} == {
        "logs": 1, "sessions": 1, "prompts": 1, "turns": 12, "requests": 12, "calls": 12, "undecided": 1,
    }  # fmt: skip
    assert (total["input_tokens"], total["output_tokens"], total["unknown"], total["left_out"]) == (1200, 120, 0, 0)


def test_cost_comes_from_the_replies_and_is_never_guessed(program: Program, log: Path) -> None:
    """By the prices that were configured then; of a session without prices it is unknown, and counted."""
    total = told(program, str(log))[2]
    assert (total["cost"], total["cost_unknown"]) == (None, 12)
    assert "120 out, cost unknown" in program.run("audit", "stats", str(log)).out
    priced = program.home / "priced.jsonl"
    prices = Prices(input=2.0, output=10.0)
    session(priced, program.workspace, own_policy(program.home), [Call("bash", "ls")] * 3, prices=prices)
    total = told(program, str(priced))[2]
    assert (total["cost"], total["cost_unknown"]) == (0.000944, 0)  # 307 tokens in, 33 out
    assert "33 out, $0.0009" in program.run("audit", "stats", str(priced)).out
    both = program.run("audit", "stats", str(log), str(priced)).out
    assert "$0.0009 and 12 replies of unknown cost" in both


def test_tables_fit_and_have_labels(program: Program, log: Path) -> None:
    out = program.run("audit", "stats", str(log)).out
    assert max(map(len, out.splitlines())) <= 100
    assert "default for bash (own.toml:7)" in out
    assert "1 logs, " in out
    assert "candidate for auto" in out


def test_logs_are_counted_together_and_one_session_alone(program: Program, log: Path) -> None:
    second = session(log, program.workspace, own_policy(program.home), [Call("bash", "ls")])
    copy = program.home / "copy.jsonl"
    copy.write_bytes(log.read_bytes())
    assert told(program, str(log))[2]["calls"] == 13
    assert told(program, str(log), str(copy))[2]["calls"] == 26
    assert told(program, str(log), "--session", second[:9])[2]["calls"] == 1


def test_a_call_without_an_end_is_unknown(program: Program, log: Path) -> None:
    """The log as a crash leaves it: it ends behind an intent, in a torn line."""
    lines = log.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"kind":"intent"' in line)
    log.write_bytes(b"".join([*lines[: last + 1], lines[last + 1][:50]]))
    _, tools, total = told(program, str(log))
    assert (total["unknown"], tools["write_file"]["unknown"], total["torn"], total["left_out"]) == (1, 1, 1, 0)
    assert "LEFT OUT: 1 torn lines" in program.run("audit", "stats", str(log)).out


def test_invalid_lines_are_counted_and_set_the_exit_code(program: Program, log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:5], b"[1]\n", b"no json\n", b'{"kind":"outcome"}\n', b"\xff\n", *lines[5:]]))
    done = program.run("audit", "stats", str(log), "--json")
    total = json.loads(done.out.splitlines()[-1])
    assert (done.code, total["left_out"], total["calls"]) == (1, 4, 12)
    assert "BROKEN at line 6" in done.err


ODD: list[JsonValue] = [
    None, True, 0, -1, 1.5, 10**400, "x", "\udc80", [], [[]], {}, {"a": {"b": []}}, "\x1b[2J",
]  # fmt: skip


@all_rows("value", ODD)
def test_statistics_survive_any_value_in_any_field(program: Program, value: JsonValue) -> None:
    """A log of another program, or one that was tampered with, may hold anything anywhere."""
    kinds = {
        "call_proposed": ("call", "tool"),
        "decision": ("call", "decision", "by", "facets", "facet_count", "rule", "line", "source"),
        "approval_answered": ("call", "answer", "by", "seconds"),
        "intent": ("call", "tool"),
        "outcome": ("call", "tool", "status", "duration_ms", "output_bytes"),
        "model_response": ("input_tokens", "purpose", "cost"),
        "error": ("retry_seconds", "output_tokens", "cost"),
        "session_started": ("model",),
    }
    good: dict[str, JsonValue] = {"call": 1, "tool": "bash", "decision": "confirm", "by": "rule", "answer": "yes"}
    lines = []
    for kind, names in kinds.items():
        for name in names:
            about = {**good, "masked": value, "mono_ns": value, name: value}
            lines.append({**about, "kind": kind, "session": "s", "time": value if isinstance(value, str) else "2026"})
    path = program.home / "odd.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = program.run("audit", "stats", str(path))
    assert (done.code, "Traceback" in done.err, "internal" in done.err, "\x1b" in done.out) == (1, False, False, False)
    assert json.loads(program.run("audit", "stats", str(path), "--json").out.splitlines()[-1])["records"] == len(lines)


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Ten times the calls, ten times the rules that nobody has: the same memory, but for a row a rule up to a bound."""
    peaks = []
    for count in (500, 3_000):
        path = tmp_path / f"{count}.jsonl"
        log = ActionLog.open(str(path))
        log.append("session_started", {"harness": "test"})
        with path.open("ab") as file:
            for call in range(count):
                for kind in ("call_proposed", "decision", "intent", "outcome"):
                    record = {"kind": kind, "session": "s", "time": "t", "call": call, "tool": "bash", "status": "ok"}
                    file.write(json.dumps({**record, "decision": "auto", "by": f"rule {call % 50}"}).encode() + b"\n")
        log.close()
        tracemalloc.start()
        found = statistics_of([str(path)])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (found.totals["calls"], len(found.rules)) == (count, 50)
    assert peaks[1] < 1.5 * peaks[0]


def test_calls_without_an_end_are_kept_to_a_bound() -> None:
    found = Statistics()
    for call in range(MOST_IN_FLIGHT + 10):
        found.enter({"session": f"s{call % 3}", "time": "", "call": call, "kind": "call_proposed", "tool": "bash"})
    found.end_log()
    assert (found.totals["calls"], found.totals["left_out"]) == (MOST_IN_FLIGHT, 10)


def test_rules_beyond_the_limit_are_counted_in_one_row() -> None:
    found = Statistics()
    for call in range(MOST_ROWS + 10):
        about: Row = {"session": "s", "time": "", "call": call, "decision": "auto", "by": f"rule {call}"}
        found.enter({**about, "kind": "decision"})
        found.enter({**about, "kind": "outcome"})
    found.end_log()
    assert (len(found.rules), found.rules[OTHERS].calls) == (MOST_ROWS + 1, 10)


@all_rows(
    ("seconds", "share", "expected"),
    [
        ([], 0.5, None),
        ([2.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([*map(float, range(1, 11))], 0.9, 9.0),
        ([0.0014], 0.5, 0.001),
        ([1234.567], 0.5, 1230.0),
        ([float("nan"), float("inf"), -1.0, 1e300], 0.5, None),
    ],
)
def test_the_median_is_that_of_the_times_to_three_digits(
    seconds: list[float], share: float, expected: float | None
) -> None:
    waits = Waits()
    for each in seconds:
        waits.add(each)
    assert waits.quantile(share) == expected


@all_rows(
    ("count", "shown"), [(0, "0"), (99_999, "99999"), (100_000, "100k"), (9_999_999, "9999k"), (10_000_000, "10M")]
)
def test_large_counts_are_short(count: int, shown: str) -> None:
    assert short_count(count) == shown


def test_the_time_a_session_took_is_by_the_monotonic_clock_else_by_the_dates() -> None:
    found = Statistics()
    for mono, time in ((5_000_000_000, "2026-01-01T00:00:00Z"), (7_500_000_000, "2020-01-01T00:00:00Z")):
        found.enter({"kind": "limit", "session": "a", "time": time, "mono_ns": mono})
    for time in ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:01:00.500000Z", "not a date"):
        found.enter({"kind": "limit", "session": "b" if time[0] == "2" else "c", "time": time})
    found.end_log()
    assert found.wall_seconds == 2.5 + 60.5


def record(kind: str, call: int, **fields: JsonValue) -> str:
    return json.dumps({"kind": kind, "session": "s", "time": "t", "call": call, **fields}) + "\n"


def test_every_answer_has_a_column(program: Program) -> None:
    """Also a stop, an edit and a question that nobody answered: what a person refused must be seen."""
    path = program.home / "log.jsonl"
    answers = ("yes", "no", "stop", "stop", "edit", "edit", "edit", "nobody", "")
    rows = [record("decision", n, decision="confirm", by="default for bash") for n, _ in enumerate(answers)]
    rows += [
        record("approval_answered", n, answer=answer, by="person", seconds=2)
        for n, answer in enumerate(answers)
        if answer
    ]
    path.write_text("".join(rows))
    out = program.run("audit", "stats", str(path)).out.splitlines()
    place = next(n for n, line in enumerate(out) if line.startswith("asked by"))
    assert out[place].split()[2:] == ["ask", "yes", "no", "stop", "edit", "nobody", "unanswered", "wait", "p90", "<1s"]
    assert out[place + 1].split()[3:10] == ["9", "1", "1", "2", "3", "1", "1"]


def test_rules_have_unique_names_in_the_tables(program: Program) -> None:
    """Two policies with a rule of one id in one line; the table cuts what tells them apart."""
    path = program.home / "log.jsonl"
    names = [f"rule publish-to-everywhere (/a/long/way/to/{folder}/the/place/own.toml:23)" for folder in "ab"]
    path.write_text("".join(record("decision", n, decision="auto", by=by) for n, by in enumerate([*names, *names])))
    out = program.run("audit", "stats", str(path)).out.splitlines()
    shown = [line.partition("  ")[0] for line in out if "publish" in line]
    assert len(shown[:2]) == len(set(shown[:2])) == 2
    assert [line for line in out if line.startswith(("[1] ", "[2] "))][2:] == [
        f"[1] {names[0]}",
        f"[2] {names[1]}",
    ]
