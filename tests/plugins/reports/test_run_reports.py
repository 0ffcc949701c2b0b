"""What is told of an unattended run: facts of its log, and the result object, held against another reading of the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forged_logs import DIGEST, decided, ended, intended, lines_of, one_call, proposed, started, write
from jsonschema import Draft202012Validator
from report_scene import OTHER, THIRD, Step, gathered, odd_records, outcome, refused_call, told, written
from rows import all_rows

from harness.actions import JsonValue
from harness.app.run.facts import MOST_CALLS, MOST_NOTES, ReportedFile, RunFacts, facts_of_log
from harness.app.run.reported import ReportedRun
from harness.app.run.result import RESULT_SCHEMA
from harness.app.run.unquoted import record_of
from harness.models.scripted import Reply, call, replies
from harness.session.shipped_plugins import report_form

if TYPE_CHECKING:
    from program import Program


def test_file_changed_by_several_calls_is_listed_once() -> None:
    facts = gathered(
        started(), *written(1, "/srv/shop/a", None, OTHER), *written(2, "/srv/shop/b", DIGEST, OTHER),
        *written(3, "/srv/shop/a", OTHER, THIRD), ended(),
    )  # fmt: skip
    assert facts.changed == (
        ReportedFile(path="/srv/shop/a", before_sha256=None, after_sha256=THIRD, calls=(1, 3)),
        ReportedFile(path="/srv/shop/b", before_sha256=DIGEST, after_sha256=OTHER, calls=(2,)),
    )


@all_rows(
    ("steps", "statuses"),
    [
        pytest.param(one_call(1), ["ok"], id="ran"),
        pytest.param((proposed(1), decided(1), intended(1)), ["unknown"], id="begun, and no end is known"),
        pytest.param((proposed(1), decided(1)), ["open"], id="never begun"),
        pytest.param((*refused_call(1), *one_call(2)), ["denied", "ok"], id="refused, and one that ran"),
        pytest.param(refused_call(1, "blocked", "block"), ["blocked"], id="blocked"),
        pytest.param((proposed(1), outcome(1, "not_run", "Not run: dry run")), ["not_run"], id="not run"),
    ],
)
def test_each_call_has_its_row(steps: Sequence[Step], statuses: list[str]) -> None:
    assert [row.status for row in gathered(started(), *steps).calls] == statuses


@all_rows(
    ("advice", "toml", "why"),
    [
        ({"call": 1, "toml": "[[rule]]\nid = 1\n"}, "[[rule]]\nid = 1\n", ""),
        ({"call": 1, "why": "rule push denies it"}, "", "rule push denies it"),
        ({"call": 2, "toml": "[[rule]]"}, "", ""),
        ({"call": [1], "toml": {}}, "", ""),
        ({"call": 1, "toml": "x" * 9_000}, "", "a rule is in the log; it is too long to be shown"),
    ],
)
def test_advice_is_attached_to_its_refusal(advice: Mapping[str, JsonValue], toml: str, why: str) -> None:
    (refused,) = gathered(started(), *refused_call(1), ("advice", advice)).refused
    assert (refused.advice_toml, refused.advice_why) == (toml, why)


def test_refusal_names_its_rule_and_place() -> None:
    answered: Step = ("approval_answered", {"call": 1, "answer": "nobody", "by": "nobody", "words": "", "seconds": 0})
    facts = gathered(started(), proposed(1), decided(1, "confirm"), answered, outcome(1, "denied"))
    (one,) = facts.refused
    assert (one.number, one.tool, one.summary, one.status, one.decision) == (1, "bash", "ls -l", "denied", "confirm")
    assert (one.rule, one.file, one.line, one.layer, one.answered_by) == ("readers", "ci.toml", 12, "given", "nobody")
    assert (facts.denied_count, facts.blocked_count, facts.decisions["confirm"]) == (1, 0, 1)


@all_rows(
    ("tool", "arguments", "write", "touched"),
    [
        ("write_file", '{"path": "src/a b.py"}', [], "src/a b.py"),
        ("write_file", '{"path": "../out"}', [], ""),
        ("write_file", '{"path": "/etc/passwd"}', [], ""),
        ("write_file", '{"path": "/srv/shop/x/../y"}', [], "y"),
        ("write_file", '{"path": 7}', [], ""),
        ("write_file", "[[[", [], ""),
        ("bash", '{"path": "x"}', ["/srv/shop/made"], "made"),
        ("bash", "{}", ["/srv/shop/a", "/srv/shop/b"], ""),
        ("bash", "{}", [7], ""),
        ("bash", "{}", "/srv", ""),
        ("bash", "{}", ["/srv/shop"], ""),
    ],
)
def test_file_of_a_refusal_is_relative_to_the_workspace(
    tool: str, arguments: str, write: JsonValue, touched: str
) -> None:
    kind, fields = decided(1, "deny", tool)
    steps: tuple[Step, ...] = (proposed(1, tool, arguments), (kind, {**fields, "effects": {"write": write}}))
    (one,) = gathered(started(), *steps, outcome(1, "denied")).refused
    assert one.touched == touched


def test_counts_come_from_the_records_and_a_difference_is_reported() -> None:
    steps = (started(), *one_call(1), *refused_call(2))
    counted = {"calls": 2, "decision_auto": 1, "status_ok": 1, "decision_deny": 1, "status_denied": 1}
    same, other = gathered(*steps, ended(counts={**counted})), gathered(*steps, ended(counts={**counted, "calls": 1}))
    assert (same.counts, len(same.errors), other.counts, len(other.errors)) == (counted, 0, counted, 1)


def test_only_the_first_session_counts() -> None:
    facts = gathered(started(model="one"), *one_call(1))
    for step in (started(model="two"), *one_call(2)):
        facts.record({"kind": step[0], "session": "another", **step[1]})
    assert (facts.started.model, facts.counts["calls"], facts.session) == ("one", 1, "s")


def test_entries_beyond_the_limits_are_counted() -> None:
    calls = [step for number in range(1, MOST_CALLS + 4) for step in refused_call(number)]
    changes = [step for n in range(MOST_CALLS + 2) for step in written(n + 90_000, f"/srv/{n}", None, OTHER)]
    limits: list[Step] = [("limit", {"limit": f"l{n}", "last_action": ""}) for n in range(MOST_NOTES + 1)]
    facts = gathered(started(), *calls, *changes, *limits, ended())
    assert (len(facts.calls), facts.calls_left_out) == (2 * MOST_CALLS, 2)
    assert (len(facts.refused), facts.refused_left_out) == (MOST_CALLS, 3)
    assert (len(facts.changed), facts.changed_left_out) == (MOST_CALLS, 2)
    assert (len(facts.limits), facts.notes_left_out) == (MOST_NOTES, 1)
    result = told(facts)
    left_out = {"refusals": 3, "files_changed": 2, "notes": 1, "odd_records": 0}
    assert (result["refused"], result["left_out"]) == (MOST_CALLS + 3, left_out)


def test_calls_without_an_end_are_kept_to_a_bound_too() -> None:
    """Only a forged log holds so many."""
    facts = gathered(started(), *map(proposed, range(MOST_CALLS + 5)))
    assert ({one.status for one in facts.calls}, len(facts.calls), facts.calls_left_out) == ({"open"}, MOST_CALLS, 5)


def test_refusal_after_thousands_of_calls_has_its_row() -> None:
    calls = [step for number in range(1, MOST_CALLS + 3) for step in one_call(number)]
    facts = gathered(started(), *calls, *refused_call(20_000), ended())
    assert (facts.calls[-1].status, len(facts.calls), facts.calls_left_out) == ("denied", MOST_CALLS + 1, 2)


@all_rows("seed", range(30))
def test_odd_records_never_end_a_report(seed: int) -> None:
    """Neither the gathering, nor any form, nor leaving out of a record what the model wrote."""
    facts = RunFacts()
    for record in odd_records(seed, 300):
        facts.record(record)
        assert record_of(record).keys() <= record.keys()
    result = told(facts, answer="\ud800```</x>")
    assert json.loads(json.dumps(result)) == result
    run = ReportedRun(name="\ud800|<t>", facts=facts, result=result)
    pages = [
        "".join(report_form(form).write([run, run], with_answer=True)).encode("utf-8")
        for form in ("md", "junit", "sarif")
    ]
    assert [page[:3] for page in pages] == [b"## ", b"<?x", b"{\n "]


def test_invalid_records_are_counted() -> None:
    facts = gathered(started())
    for odd in (7, "x", None, [1]):
        facts.record(odd)  # type: ignore[arg-type]
    assert facts.odd == 4


def test_the_schema_of_the_result_is_one_and_takes_no_unknown_field() -> None:
    Draft202012Validator.check_schema(dict(RESULT_SCHEMA))
    validator = Draft202012Validator(dict(RESULT_SCHEMA))
    facts = gathered(
        started(dry_run=True), *refused_call(1), ("advice", {"call": 1, "why": "no"}), *written(2, "/srv/a", None, OTHER),
        ("error", {"where": "model", "message": "gone", "fault": "server"}),
        ("diverged", {"request": 1, "message": 2, "role": "tool", "tool": "", "recorded": "a", "now": "b"}), ended(),
    )  # fmt: skip
    result = told(facts, cost=0.25, code=7)
    assert [error.message for error in validator.iter_errors(result)] == []
    assert not validator.is_valid({**result, "more": 1})
    assert not validator.is_valid({**result, "exit_code": "7"})


@pytest.fixture
def ran(program: Program) -> Program:
    """A run with calls of every end: allowed, denied by a rule and by default, not valid, and two changes of a file."""
    script = replies(
        Reply(
            text="look",
            calls=(
                call("bash", command="ls; echo 'a`|b'"),
                call("bash", command="touch x"),
                call("read_file", path=".env"),
                call("write_file", path="a.txt", content="hi\n"),
                call("nope", x=1),
            ),
        ),
        Reply(text="and", calls=(call("edit_file", path="a.txt", old_string="hi", new_string="ho"),)),
        Reply(text="finished"),
    )
    done_ = program.run("run", "go", "--base-url", program.serve(script), "--policy", "ci")
    assert done_.code == 7, done_.err
    return program


def test_the_result_agrees_with_another_reading_of_the_log(ran: Program) -> None:
    """Read here from the lines alone, without anything of the package."""
    (log,) = ran.logs()
    lines = log.read_bytes().splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    by_kind = {kind: [one for one in records if one["kind"] == kind] for kind in {one["kind"] for one in records}}
    decisions = {one["call"]: one for one in by_kind["decision"]}
    refused = [one for one in by_kind["outcome"] if one["status"] in ("denied", "blocked")]
    changed: dict[str, list[dict[str, Any]]] = {}
    for one in by_kind["outcome"]:
        if "changed_path" in one:
            changed.setdefault(one["changed_path"], []).append(one)
    (end,) = by_kind["session_ended"]

    facts = facts_of_log(str(log))
    result: Any = told(
        facts, log=str(log), head=hashlib.sha256(lines[-1]).hexdigest(), records=len(lines), code=7, answer="finished"
    )
    assert [error.message for error in Draft202012Validator(dict(RESULT_SCHEMA)).iter_errors(result)] == []
    assert (facts.is_ended, result["end"], result["turns"]) == (True, end["stop"], len(by_kind["model_request"]))
    assert result["usage"] == {name: end[name] for name in ("input_tokens", "output_tokens")}
    assert facts.counts == end["counts"]
    assert result["decisions"] == {
        name: sum(one["decision"] == name for one in decisions.values())
        for name in ("auto", "confirm", "deny", "block")
    }
    assert [
        (one["call"], one["rule"], one["file"], one["line"], one["status"], one["reason"]) for one in result["refusals"]
    ] == [
        (one["call"], *(decisions[one["call"]][name] for name in ("rule", "file", "line")), one["status"],
         decisions[one["call"]]["reason"])
        for one in refused
    ]  # fmt: skip
    assert len(refused) == 2
    assert result["files_changed"] == [
        {
            "path": path,
            "before_sha256": ones[0]["before_sha256"],
            "after_sha256": ones[-1]["after_sha256"],
            "calls": [one["call"] for one in ones],
        }
        for path, ones in changed.items()
    ]
    (left,) = result["files_changed"]
    assert left["after_sha256"] == hashlib.sha256((ran.workspace / "a.txt").read_bytes()).hexdigest()
    assert left["calls"] == [4, 6]


@pytest.mark.forges_logs
def test_the_facts_of_a_log_are_those_of_its_last_session(tmp_path: Path) -> None:
    first = lines_of((started(model="one"), *one_call(1), ended()), session="a" * 12)
    second = lines_of((started(model="two"), *refused_call(1), *one_call(2)), session="b" * 12, after=first)
    path = write(tmp_path / "log.jsonl", [*first, *second])
    facts = facts_of_log(str(path))
    assert (facts.started.model, facts.counts["calls"], facts.is_ended, facts.odd) == ("two", 2, False, 0)


@pytest.mark.forges_logs
def test_invalid_line_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [*lines_of((started(), *one_call(1))), b"garbled"])
    facts = facts_of_log(str(path))
    assert (facts.counts["calls"], facts.odd, facts.is_ended) == (1, 1, False)


def test_the_schema_of_the_result_can_be_printed(program: Program) -> None:
    assert json.loads(program.run("schema", "result").out) == json.loads(json.dumps(RESULT_SCHEMA))
    assert json.loads(program.run("schema", "log").out)["$id"].startswith("urn:harness:action-log")
