"""What the model wrote stands in no report that did not ask for it, wherever the log quotes it; log and JSON have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forged_logs import ended, started
from report_scene import Step, gathered, told
from rows import all_rows

from harness.actions import JsonValue
from harness.app.run.answer_schema import AnswerSchema
from harness.app.run.facts import RunFacts
from harness.app.run.reported import ReportedRun
from harness.app.run.unquoted import LEFT_OUT, message_of, problem_of, record_of
from harness.errors import ModelError
from harness.models.chat_reply import ChatReply
from harness.models.reply_body import ReplyBody
from harness.models.scripted import Raw, Reply, replies, say
from harness.session.shipped_plugins import report_form
from harness.shipped import REPORTS

if TYPE_CHECKING:
    from program import Program

SCHEMA = {
    "type": "object",
    "properties": {
        "a/b]": {"type": "integer"},
        "n": {"enum": [1]},
        "s": {"pattern": "^(a+)+$"},
        "m": {"multipleOf": 0.5},
    },
    "additionalProperties": {"maxLength": 2},
    "required": ["n"],
}
UNFIT = {
    "no JSON": ("Zebra", "it is not one JSON value and nothing else"),
    "a key twice": ('{"Zebra": 1, "Zebra": 2}', "it is not one JSON value and nothing else"),
    "another type": ('["Zebra"]', "it does not fit the schema: /type"),
    "a value": ('{"n": "Zebra"}', "it does not fit the schema: /properties/n/enum"),
    "a key": ('{"n": 1, "Zebra": "long"}', "it does not fit the schema: /additionalProperties/maxLength"),
    "a key with an escape": ('{"n": 1, "a/b]": "Zebra"}', "it does not fit the schema: /properties/a~1b)/type"),
    "two places": (
        '{"n": "Zebra", "Zebra": "Zebra"}',
        "it does not fit the schema: /additionalProperties/maxLength, /properties/n/enum",
    ),
    "a place of its own": (
        '{"n": 1, "Zebra": "x\\n- at the top: y [schema: /Zebra]"}',
        "it does not fit the schema: /additionalProperties/maxLength",
    ),
    "a number": ('{"n": 1, "m": 1' + "0" * 400 + "}", "it cannot be held against the schema"),
    "no end": (
        json.dumps({"n": 1, "s": "a" * 40 + "!"}),
        "Holding it against the schema took more than 0.2 seconds: a pattern in it finds no end.",
    ),
}


@all_rows(("answer", "why"), UNFIT.values(), ids=UNFIT)
def test_unfit_answer_is_reported_by_its_schema_places(tmp_path: Path, answer: str, why: str) -> None:
    (tmp_path / "s").write_text(json.dumps(SCHEMA))
    seconds = 0.2 if "finds no end" in why else 120.0
    problem = AnswerSchema(str(tmp_path / "s"), seconds=seconds).problem(answer)
    places = why.partition(": ")[2].split(", ")
    found = problem_of(problem)
    assert (found.partition(": ")[0], sorted(found.partition(": ")[2].split(", "))) == (
        why.partition(": ")[0],
        sorted(places),
    )


def test_unknown_problem_text_is_replaced() -> None:
    odd = (
        "",
        "Zebra",
        "It does not fit the schema",
        "It does not fit the schema:\n- Zebra",
        "Holding it against Zebra",
    )
    assert {problem_of(text) for text in odd} == {"it is not what was asked for"}


REPLIES = {
    "an event that is no JSON": b'data: {"Zebra\n\n',
    "an event that is no object": b'data: ["Zebra"]\n\n',
    "neither stream nor JSON": b'{"Zebra": }',
    "JSON that is no reply": b'{"Zebra": 1}',
    "no stream": b"Zebra said so\n",
    "a key twice": b'data: {"Zebra": 1, "Zebra": 2}\n\n',
}


def taken(body: bytes) -> None:
    reader = ReplyBody(ChatReply())
    reader.feed(body + b"data: {}\n\n" if body.startswith(b"data") else body)
    reader.end()
    reader.response(frozenset())


@all_rows("body", REPLIES.values(), ids=REPLIES)
def test_reply_error_is_reported_without_the_reply(body: bytes) -> None:
    with pytest.raises(ModelError, match="Zebra") as raised:
        taken(body)
    shown = message_of(str(raised.value))
    assert ("Zebra" in shown, shown.endswith("(what came stands in the log)")) == (False, True)


KEPT = ("Incorrect API key provided.", "The answer is a web page, not a reply; check the base URL: <html>", "")


@all_rows("message", KEPT)
def test_error_without_a_reply_is_reported_in_full(message: str) -> None:
    assert message_of(message) == message


def diverged(role: str, request: int) -> Step:
    fields: dict[str, JsonValue] = {
        "request": request,
        "message": 2,
        "role": role,
        "tool": "",
        "recorded": "R",
        "now": "N",
    }
    return "diverged", fields


@all_rows(
    ("role", "request_", "is_told"),
    [
        ("tool", 2, True),
        ("tools", 1, True),
        ("user", 1, True),
        ("user", 3, False),
        ("assistant", 2, False),
        ("odd", 1, False),
    ],
)
def test_divergence_omits_text_of_the_model(role: str, request_: int, is_told: bool) -> None:
    fields = dict(diverged(role, request_)[1])
    assert ("now" in record_of({"kind": "diverged", **fields})) is is_told
    facts = gathered(started(), diverged(role, request_), ended())
    for form in ("md", "junit", "sarif"):
        run = ReportedRun(name="", facts=facts, result=told(facts))
        without, whole = ("".join(report_form(form).write([run], with_answer=one)) for one in (False, True))
        assert ("now N" in without, "now N" in whole) == (is_told, True), form


def quoting(problem: str) -> RunFacts:
    steps: Sequence[Step] = (
        started(),
        ("answer_checked", {"fits": False, "problem": problem}),
        ("error", {"where": "model", "message": "The answer is no event stream: Zebra", "fault": "reply"}),
        diverged("assistant", 2),
        ended(stop="unfit", detail=f"the answer is still not what was asked for: {problem}"),
    )
    return gathered(*steps)


@all_rows("form", ["md", "junit", "sarif"])
@all_rows("in_result", [False, True])
def test_forms_quote_the_model_only_on_request(tmp_path: Path, form: str, in_result: bool) -> None:
    (tmp_path / "s").write_text(json.dumps(SCHEMA))
    facts = quoting(AnswerSchema(str(tmp_path / "s")).problem('{"n": "Zebra"}'))
    result = told(facts, code=5, answer="Zebra", **({} if in_result else {"end": "", "detail": ""}))
    run = ReportedRun(name="", facts=facts, result=result)
    without, whole = ("".join(report_form(form).write([run], with_answer=one)) for one in (False, True))
    assert ("Zebra" in without, whole.count("Zebra") > 2) == (False, True)
    assert "/properties/n/enum" in without.replace("&#47;", "/")
    assert "the answer is still not what was asked for" in without
    assert json.dumps(told(facts)).count("Zebra") == 3  # detail, errors, answer_problem


def test_unfit_answer_is_left_out_of_every_report(program: Program, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "object"}')
    words = [word for form in REPORTS for word in ("--report", f"{form}:{tmp_path}/r.{form}")]
    url = program.serve(replies(Reply(text="[0, "), say('["Zebra"]')))
    schema = str(tmp_path / "s.json")
    done = program.run("run", "go", "--base-url", url, "--output-schema", schema, "--output", "json", *words)
    assert (done.code, "Zebra" in json.loads(done.out)["detail"]) == (5, True), done.err
    pages = {form: (tmp_path / f"r.{form}").read_text() for form in REPORTS}
    assert [form for form, page in pages.items() if "Zebra" in page] == []
    assert [form for form, page in pages.items() if "/type" not in page] == []
    assert LEFT_OUT in pages["html"]


def test_a_reply_that_cannot_be_read_is_quoted_in_no_report(program: Program, tmp_path: Path) -> None:
    words = [word for form in REPORTS for word in ("--report", f"{form}:{tmp_path}/r.{form}")]
    url = program.serve(replies(Raw(body=b'data: {"Zebra\n\ndata: {}\n\n')))
    done = program.run("run", "go", "--base-url", url, "--output", "json", *words)
    assert (done.code, "Zebra" in json.loads(done.out)["errors"][0]["message"]) == (6, True), done.err
    pages = {form: (tmp_path / f"r.{form}").read_text() for form in REPORTS}
    assert [form for form, page in pages.items() if "Zebra" in page] == []
    assert [form for form, page in pages.items() if "an event that is not valid JSON" not in page] == []
