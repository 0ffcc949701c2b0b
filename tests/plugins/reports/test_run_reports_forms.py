"""The forms of reports: each holds against what is published of its format, and nothing of a log gets out of its place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from forged_logs import DIGEST, decided, ended, one_call, proposed, started
from jsonschema import Draft4Validator
from markdown_it import MarkdownIt
from report_scene import (
    SCHEMAS,
    Step,
    a_run,
    gathered,
    hostile_run,
    odd_records,
    outcome,
    refused_call,
    run_of,
    text_of,
    told,
)
from rows import all_rows

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts, facts_of_log
from harness.app.run.reported import ReportedRun
from harness.app.run.unquoted import LEFT_OUT
from harness.models.scripted import Reply, call, replies
from harness.plugins.reports.markdown import MOST_BYTES, code, fenced
from harness.plugins.reports.sarif import MOST_RESULTS
from harness.session.shipped_plugins import report_form

if TYPE_CHECKING:
    import xmlschema
    from program import Program


# Markdown


def alive(page: str) -> set[str]:
    """Return what of a page is more than text: the tokens that Markdown makes of it, and the HTML that it lets through."""
    found = set()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(page):
        for one in token.children or (token,):
            if one.type in ("html_block", "html_inline"):
                found |= set(re.findall(r"<[^>]*>?", one.content))
            elif one.type not in ("text", "softbreak", "inline", "fence") and not one.type.endswith("_close"):
                found.add(one.type)
    return found


SHOWN = {
    "<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>", "heading_open", "paragraph_open", "table_open",
    "thead_open", "tbody_open", "tr_open", "th_open", "td_open", "bullet_list_open", "list_item_open", "strong_open",
}  # fmt: skip


def outside_fences(page: str) -> str:
    fences = [one for one in MarkdownIt("commonmark").parse(page) if one.type == "fence" and one.map]
    lines = page.split("\n")
    inside = {number for one in fences for number in range(*(one.map or (0, 0)))}
    return "\n".join(line for number, line in enumerate(lines) if number not in inside)


@all_rows("runs", [1, 3])
def test_log_text_is_inert_in_markdown(runs: int) -> None:
    """No link, image, HTML, mention, issue, autolink, emphasis, emoji or heading but those of the report itself."""
    page = text_of("md", [hostile_run()] * runs, with_answer=True)
    assert alive(page) <= SHOWN
    bare = outside_fences(page)
    assert "octocat" in bare
    spans = re.findall("(?s)<code>(.*?)</code>", bare)
    assert [
        one for one in spans if not re.fullmatch(r"(&#[0-9]+;|[A-Za-z0-9 .,/=+()%;'-])+", one) or "www." in one
    ] == []
    assert [char for char in page if char != "\n" and not char.isprintable()] == []
    assert bare.count("<details>") == bare.count("</details>") == 2 * runs


def test_markdown_table_rows_have_as_many_cells_as_the_header() -> None:
    page = text_of("md", [hostile_run()])
    widths = [line.count("|") for line in page.split("\n") if line.startswith("|")]
    assert sorted(set(widths)) == [3, 5, 8]
    assert MarkdownIt("commonmark", {"html": True}).enable("table").render(page).count("<table>") == 3


def test_issue_marks_and_commits_appear_in_code_only() -> None:
    """GitHub links them in all other text."""
    page = outside_fences(text_of("md", [hostile_run()]))
    rest = re.sub("(?s)<code>.*?</code>", "", page)
    assert ("octocat" in rest, "heading" in rest, "evil" in rest, re.search("[0-9a-f]{7}", rest)) == (
        False,
        False,
        False,
        None,
    )


@all_rows("end", ["www.evil.example", "GH-1", "https://e", "x/y#1"])
def test_foreign_end_of_a_run_is_shown_as_code(end: str) -> None:
    page = text_of("md", [run_of(gathered(started(), ended(stop=end)), end=end)])
    assert (end in page.replace(code(f"ended: {end}"), ""), code(f"ended: {end}") in page) == (False, True)
    assert "## harness: completed (exit code 0)\n" in text_of("md", [run_of(gathered(started(), ended()))])


@all_rows("text", ["", "a", "```", "a\n````\nb", "~~~", "`" * 50, "\r```\r", "\u2028```"])
def test_text_cannot_close_its_fenced_block(text: str) -> None:
    page = f"{fenced(text, 'toml', 100)}\nafter\n"
    tokens = [token.type for token in MarkdownIt("commonmark").parse(page)]
    assert tokens == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_cut_text_is_marked() -> None:
    assert "2 more characters are left out" in fenced("abcde", "text", 3)
    assert code("x" * 300, 200).endswith("x...(+100 characters)</code>")


def test_answer_is_reported_on_request_only() -> None:
    for form in ("md", "junit", "sarif"):
        without, whole = (text_of(form, [a_run()], with_answer=one) for one in (False, True))
        assert ("The answer." in without, "The answer." in whole) == (False, True), form


def test_markdown_explains_each_refusal_and_what_would_allow_it() -> None:
    page = text_of("md", [a_run()])
    assert "## harness: completed" not in page
    assert "stopped at a limit, 1 denied, 1 blocked (exit code 7)" in page
    assert "| <code>2</code> | <code>bash</code> | <code>ls -l</code> | denied | <code>readers</code> | " in page
    assert "```toml\n[[rule]]\nid = 'x'\n```" in page
    assert "Call <code>3</code>: no rule is proposed: <code>rule push denies it</code>" in page
    assert "2 requests were made" in page
    assert "| <code>a.py</code> | none | <code>eeeeeeeeeeee</code> | <code>5</code> |" in page
    assert "Commands begun: 1. What commands changed is not recorded file by file." in page
    assert "| cost | $0.5000 |" in page
    assert f"head <code>{DIGEST}</code>" in page


BEGINNINGS = {
    "a plan": ({"plan": True}, ("Plan mode", '"plan" value="true"', '"plan": true')),
    "a dry run": ({"dry_run": True}, ("Dry run", '"dry_run" value="true"', '"dryRun": true')),
    "a commit": ({"git_head": "ab" * 20}, ("<code>abababababab</code>", f'"{"ab" * 20}"', f'"commit": "{"ab" * 20}"')),
    "the harness": ({"harness": "9.8.7"}, ("<code>9.8.7</code>", '"harness" value="9.8.7"', '"harness": "9.8.7"')),
}


@all_rows(("fields", "shown"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_each_form_contains_the_start_of_the_run(fields: Mapping[str, JsonValue], shown: tuple[str, str, str]) -> None:
    for form, words in zip(("md", "junit", "sarif"), shown, strict=True):
        with_it, without = (text_of(form, [run_of(gathered(started(**more)))]) for more in (fields, {"harness": ""}))
        assert (words in with_it, words in without) == (True, False), form


def test_markdown_report_fits_a_step_summary() -> None:
    steps = [step for number in range(1, 900) for step in refused_call(number)]
    rules: list[Step] = [("advice", {"call": n, "toml": f"{n} " * 1_300}) for n in range(1, 900)]
    facts = gathered(started(), *steps, *rules)
    page = text_of("md", [run_of(facts, name=f"t{n}") for n in range(3)])
    assert (len(page.encode()) <= MOST_BYTES, "The rest of this report is left out" in page) == (True, True)
    alone = text_of("md", [run_of(gathered(started(), *steps))])
    assert "699 more refusals are not listed here; the log has them." in alone


@all_rows("runs", [1, 2])
def test_markdown_report_can_end_after_any_block(runs: int) -> None:
    """What follows is then a paragraph of its own: in no table, no list, no fence, and in nothing that is folded away."""
    some = [hostile_run(), a_run("b")] if runs == 2 else [a_run()]
    blocks = list(report_form("md").write(some, with_answer=True))
    assert len(blocks) > 15
    for count in range(1, len(blocks) + 1):
        page = "".join(blocks[:count])
        shown = outside_fences(page)
        assert shown.count("<details>") == shown.count("</details>"), blocks[count - 1]
        tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(f"{page}\nEnd.\n")
        assert [(one.type, one.level, one.content) for one in tokens[-3:]] == [
            ("paragraph_open", 0, ""),
            ("inline", 1, "End."),
            ("paragraph_close", 0, ""),
        ], blocks[count - 1]


def test_report_on_many_runs_begins_with_the_failures() -> None:
    good = run_of(gathered(started(), *one_call(1), ended()), name="good", code=0)
    page = text_of("md", [good, a_run("bad", code_=4)])
    assert "## harness: 1 of 2 runs done, nothing refused" in page
    assert page.index("| <code>bad</code> | 4 |") < page.index("| <code>good</code> | 0 |")
    assert page.index("### <code>bad</code>") < page.index("### <code>good</code>")


def test_log_without_an_end_is_reported_in_every_form() -> None:
    unended, nothing = run_of(gathered(started(), *one_call(1)), end=""), run_of(RunFacts(), end="")
    for form in ("md", "junit", "sarif"):
        assert "The log has no end of this session" in text_of(form, [unended])
        assert "There is no session in the log" in text_of(form, [nothing])


# JUnit


@pytest.fixture(scope="module")
def junit_schema() -> xmlschema.XMLSchema:
    import xmlschema

    return xmlschema.XMLSchema(os.path.join(SCHEMAS, "junit-10.xsd"))


def odd_run(seed: int) -> list[ReportedRun]:
    facts = RunFacts()
    for record in odd_records(seed, 200):
        facts.record(record)
    return [run_of(facts, name="\ud800", answer="\ud800]]>")]


EVERY_RUN: dict[str, Callable[[], list[ReportedRun]]] = {
    "a run": lambda: [a_run()],
    "runs": lambda: [a_run("a"), a_run("b", code_=0)],
    "none": list,
    "hostile": lambda: [hostile_run()],
    "no log": lambda: [run_of(RunFacts())],
    **{f"odd {seed}": partial(odd_run, seed) for seed in range(8)},
}


@all_rows("name", list(EVERY_RUN))
def test_junit_fits_the_schema_that_jenkins_publishes(name: str, junit_schema: xmlschema.XMLSchema) -> None:
    page = text_of("junit", EVERY_RUN[name](), with_answer=True)
    junit_schema.validate(page)
    root = ET.fromstring(page.encode("utf-8"))
    for suite in root.iter("testsuite"):
        cases = suite.findall("testcase")
        counted = [sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")]
        assert [int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")] == [
            len(cases),
            *counted,
        ]


def test_the_schema_of_junit_would_find_a_mistake(junit_schema: xmlschema.XMLSchema) -> None:
    page = text_of("junit", [a_run()])
    assert not junit_schema.is_valid(page.replace("<testcase ", "<testcasus ", 1))
    assert not junit_schema.is_valid(page.replace(' failures="', ' mistakes="', 1))


def test_each_call_is_a_case_and_the_run_one_more() -> None:
    root = ET.fromstring(text_of("junit", [a_run(code_=4)]))
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "1 bash: ls -l": [],
        "2 bash: ls -l": ["failure"],
        "3 bash: ls -l": ["error"],
        '4 bash: {"command": "ls -l"}': ["skipped"],
        "5 write_file: ls -l": [],
        "run": ["error", "system-out"],
    }
    failure = next(root.iter("failure"))
    assert (failure.attrib["type"], "readers (ci.toml:12)" in str(failure.text)) == ("readers", True)


# SARIF


@pytest.fixture(scope="module")
def sarif_schema() -> Draft4Validator:
    with open(os.path.join(SCHEMAS, "sarif-2.1.0-rtm.5.json"), encoding="utf-8") as file:
        return Draft4Validator(json.load(file), format_checker=Draft4Validator.FORMAT_CHECKER)


@all_rows("name", list(EVERY_RUN))
def test_sarif_fits_its_published_schema(name: str, sarif_schema: Draft4Validator) -> None:
    page = text_of("sarif", EVERY_RUN[name](), with_answer=True)
    report = json.loads(page)
    assert (page.isascii(), [f"{e.json_path}: {e.message[:200]}" for e in sarif_schema.iter_errors(report)]) == (
        True,
        [],
    )
    for run in report["runs"]:
        rules = run["tool"]["driver"]["rules"]
        assert len({rule["id"] for rule in rules}) == len(rules)
        # Of what the validator of SARIF's authors warns: SARIF1001 (a name that only says the id again), SARIF2005.
        assert [rule for rule in rules if rule.get("name") == rule["id"]] == []
        assert run["tool"]["driver"]["informationUri"]
        # And what GitHub's code scanning wants (GH2012).
        assert all(rule["fullDescription"]["text"] and rule["help"]["text"] for rule in rules)
        assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
        for one in (
            *run["results"],
            *(note for i in run["invocations"] for note in i.get("toolExecutionNotifications", [])),
        ):
            assert re.findall(r"[\[\]{}\n]", one["message"]["text"]) == []
        for location in (place for one in run["results"] for place in one["locations"]):
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"(file://)?[A-Za-z0-9._~/%-]+", uri), uri


def test_the_schema_of_sarif_would_find_a_mistake(sarif_schema: Draft4Validator) -> None:
    report = json.loads(text_of("sarif", [a_run()]))
    assert sarif_schema.is_valid(report)
    report["runs"][0]["results"][0]["level"] = "bad"
    assert not sarif_schema.is_valid(report)


def test_a_result_of_sarif_names_rule_place_and_advice() -> None:
    (run,) = json.loads(text_of("sarif", [a_run(code_=3)]))["runs"]
    denied, blocked = run["results"]
    assert (denied["level"], blocked["level"], denied["ruleId"]) == ("warning", "error", "readers")
    assert denied["message"]["text"] == "bash was denied by readers (ci.toml:12): It only reads. Call: ls -l"
    (place,) = denied["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "ci.toml"}, "region": {"startLine": 12}}
    assert (denied["properties"]["advice"], blocked["properties"]["adviceWhy"]) == (
        "[[rule]]\nid = 'x'",
        "rule push denies it",
    )
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (3, False)
    assert invocation["properties"]["logHead"] == DIGEST


@all_rows(
    ("file", "workspace", "uri", "base"),
    [
        ("/srv/shop/ci/p 1.toml", "/srv/shop", "ci/p%201.toml", "%SRCROOT%"),
        ("/srv/shop-evil/p.toml", "/srv/shop", "file:///srv/shop-evil/p.toml", None),
        ("/p.toml", "/", "p.toml", "%SRCROOT%"),
        ("javascript:x", "/srv/shop", "javascript%3Ax", None),
        ("//evil.example/x", "", "file:////evil.example/x", None),
    ],
)
def test_a_place_in_a_policy_is_an_address_that_leads_nowhere_else(
    file: str, workspace: str, uri: str, base: str | None
) -> None:
    kind, fields = decided(1, "deny")
    facts = gathered(started(workspace=workspace), proposed(1), (kind, {**fields, "file": file}), outcome(1, "denied"))
    (result,) = json.loads(text_of("sarif", [run_of(facts)]))["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (artifact["uri"], artifact.get("uriBaseId")) == (uri, base)


def test_result_file_is_a_relative_address() -> None:
    arguments = json.dumps({"path": "a:b/x y#?%[é].py"})
    kind, fields = decided(1, "deny", "write_file")
    facts = gathered(started(), proposed(1, "write_file", arguments), (kind, fields), outcome(1, "denied"))
    (result,) = json.loads(text_of("sarif", [run_of(facts)]))["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "a%3Ab/x%20y%23%3F%25%5B%C3%A9%5D.py", "uriBaseId": "%SRCROOT%"}


def test_sarif_limits_its_results_and_counts_the_rest() -> None:
    steps = [step for number in range(1, 3_000) for step in refused_call(number)]
    facts = gathered(started(), *steps, ended())
    (run,) = json.loads(text_of("sarif", [run_of(facts, name=name) for name in "ab"]))["runs"]
    assert (len(run["results"]), run["properties"]["resultsLeftOut"]) == (MOST_RESULTS, 998)
    notes = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert "998 more refusals are not listed here; the logs have them." in notes
    assert (run["results"][0]["provenance"], run["results"][-1]["provenance"]) == (
        {"invocationIndex": 0},
        {"invocationIndex": 1},
    )


def test_fingerprint_of_a_refusal_is_the_same_in_another_run_or_folder() -> None:
    prints = set()
    for number, file in ((1, "/a/ci.toml"), (7, "/b/ci.toml")):
        kind, fields = decided(number, "deny")
        changed = {**fields, "rule": None, "file": file, "by": f"default for bash ({file}:12)"}
        facts = gathered(started(), proposed(number), (kind, changed), outcome(number, "denied"))
        (result,) = json.loads(text_of("sarif", [run_of(facts)]))["runs"][0]["results"]
        prints.add(result["partialFingerprints"]["refusal/v1"])
    assert len(prints) == 1


# HTML


def test_the_page_of_html_is_that_of_the_audit_without_the_models_words(program: Program) -> None:
    script = replies(Reply(text="Zebra one", calls=(call("bash", command="touch x"),)), Reply(text="Zebra two"))
    assert program.run("run", "go", "--base-url", program.serve(script), "--policy", "ci").code == 7
    (log,) = program.logs()
    heads = str(program.state / "harness" / "heads.jsonl")
    facts = facts_of_log(str(log))
    run = ReportedRun(name="nightly", facts=facts, result=told(facts, log=str(log)), heads=heads)
    without, whole = (text_of("html", [run], with_answer=one) for one in (False, True))
    assert ("Zebra" in without, LEFT_OUT in without, "Zebra two" in whole) == (False, True, True)
    assert "touch x" in without
    assert "<title>What the harness did: nightly</title>" in without
    assert Path(log).read_bytes().count(b"Zebra") == 2
