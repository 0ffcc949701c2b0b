"""`harness audit export`: four forms of the same calls, held against what their specifications ask for."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import re
import stat
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forged_logs import DIGEST, Step, decided, done, ended, intended, lines_of, one_call, proposed, started, write
from rows import all_rows

from harness.actions import JsonValue
from harness.app.audit.csv_cell import csv_cell as cell
from harness.app.audit.csv_cell import is_formula
from harness.app.audit.logs import ChosenLogs
from harness.audit.calls import LoggedCall
from harness.log.order import LogRecord
from harness.log.schema import RECORDS
from harness.models.scripted import Reply, call, replies
from harness.plugins.insight.export import EXPORTS, exporter
from harness.plugins.insight.export.row import Export, row

if TYPE_CHECKING:
    from program import Program

Parsed = dict[str, Any]
KEY = b"k" * 32
HOSTILE = "=cmd|' /C calc'!A0\x1b[2J\u202e\x00\ud800\r\n\t\"quoted\",;</style>"


def export_of(*paths: Path, content: bool = False, key: bytes = KEY) -> Export:
    return Export(ChosenLogs([str(path) for path in paths]), key=key, content=content)


def text_of(form: str, export: Export) -> str:
    return "".join(exporter(form)(export))


def lines(form: str, export: Export) -> list[Parsed]:
    return [json.loads(line) for line in text_of(form, export).splitlines()]


def rows(export: Export) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of("csv", export), newline=""), strict=True))


def asked(number: int, answer: str = "yes", by: str = "person") -> tuple[Step, ...]:
    fields: dict[str, JsonValue] = {"call": number, "answer": answer, "by": by, "words": "", "seconds": 2.5}
    return ("approval_asked", {"call": number, "shown_sha256": DIGEST}), ("approval_answered", fields)


def refused(number: int, status: str = "denied", tool: str = "bash") -> Step:
    return "outcome", {"call": number, "tool": tool, "status": status, "content": "Denied."}


def written(number: int, before: str | None) -> tuple[Step, ...]:
    change: Parsed = {"changed_path": "/srv/shop/a.txt", "before_sha256": before, "after_sha256": DIGEST}
    tool = "write_file"
    arguments = '{"path": "a.txt", "content": "x"}'
    return (
        proposed(number, tool, arguments), decided(number, "confirm", tool), *asked(number), intended(number, tool),
        done(number, tool=tool, exit_code=None, **change),
    )  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Calls of every kind and fate: 1 command, 2 and 3 writes, 4 to 6 refused, 7 invalid, 8 not ours, 9 unknown, 10 open."""
    unjudged: dict[str, JsonValue] = {
        "call": 7,
        "tool": "bash",
        "decision": "none",
        "by": "",
        "arguments_sha256": DIGEST,
    }
    reply: dict[str, JsonValue] = {"turn": 1, "text": "well", "calls": 9, "finish_reason": "done", "input_tokens": 70}
    reply |= {"output_tokens": 8, "cached_tokens": 60, "cache_write_tokens": 5, "retries": 1, "ms": 900}
    seventh: Step = ("decision", {**unjudged, "reason": "no JSON"})
    steps: list[Step] = [
        started(model="m-1", policy="ci", user="ann", uid=1000, host="box", server="https://models.example"),
        ("user_message", {"text": "go"}),
        ("model_request", {"turn": 1, "messages": 2}),
        ("error", {"where": "model", "message": "busy", "retry_seconds": 1.0, "attempt": 1, "attempts": 3}),
        ("model_response", reply),
        *one_call(1),
        *written(2, DIGEST),
        *written(3, None),
        proposed(4), decided(4, "deny"), refused(4),
        proposed(5), decided(5, "confirm"), *asked(5, "no"), refused(5),
        proposed(6), decided(6, "block"), refused(6, "blocked"),
        proposed(7, arguments="{"), seventh, refused(7, "invalid"),
        proposed(8, "search", '{"q": 1}'), decided(8, tool="search"), intended(8, "search"),
        done(8, tool="search", status="failed"),
        proposed(9), decided(9), intended(9),
        proposed(10),
        ("model_request", {"turn": 2, "messages": 9}),
        ("error", {"where": "model", "message": "gone", "fault": "connection"}),
    ]  # fmt: skip
    return write(tmp_path / "log.jsonl", lines_of(steps))


COLUMNS = (
    "log session call turn step time ended call_id tool summary decision decided_by reason source rule rule_file rule_line "
    "layer policy policy_sha256 asked answer answered_by answer_words waited_seconds edited_from edited_to fate status "
    "duration_ms exit_code error_code output_bytes truncated changed_path before_sha256 after_sha256 network "
    "confinement arguments_hmac arguments_characters mode workspace model user host harness unjudged"
).split()
"""Whoever reads exports relies on these, in this order: new ones come at the end."""


def test_the_columns_stay(log: Path) -> None:
    header = text_of("csv", export_of(log, content=True)).split("\r\n", maxsplit=1)[0].split(",")
    assert header == [*COLUMNS, "arguments", "content"]


FATES = ["ran", "ran", "ran", "refused", "refused", "refused", "invalid", "ran", "unknown", "open"]


def test_every_form_contains_every_call(log: Path) -> None:
    assert [found["fate"] for found in rows(export_of(log))] == FATES
    flat = lines("jsonl", export_of(log))
    assert [found["fate"] for found in flat] == FATES
    assert [found["call"] for found in flat] == list(range(1, 11))
    assert len(lines("ocsf", export_of(log))) == 10
    spans = spans_of(export_of(log))
    assert len([span for span in spans if str(span["name"]).startswith("execute_tool")]) == 10
    for form in EXPORTS:
        assert text_of(form, export_of(log)) == text_of(form, export_of(log))


def test_one_line_of_each_has_the_same_names_in_the_same_order(log: Path) -> None:
    header = text_of("csv", export_of(log)).split("\r\n", maxsplit=1)[0].split(",")
    assert [list(found) for found in lines("jsonl", export_of(log))] == [header] * 10
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in header)
    assert not {"arguments", "content"} & set(header)
    with_content = lines("jsonl", export_of(log, content=True))[0]
    assert (with_content["arguments"], with_content["content"]) == ('{"command": "ls -l"}', "total 0")
    assert not any(
        isinstance(value, dict | list) for found in lines("jsonl", export_of(log)) for value in found.values()
    )


def unjudged(reason: str, tool: str, arguments: str, **more: JsonValue) -> Step:
    fields: dict[str, JsonValue] = {
        "why": reason,
        "tool": tool,
        "arguments": arguments,
        "id": "c1",
        "seen_by": "claude",
    }
    return "ran_unjudged", {**fields, "status": "ok", "content": "done", "stops": True, **more}


def test_a_call_that_ran_and_was_not_allowed_is_an_alert_in_every_form(tmp_path: Path) -> None:
    command, path = json.dumps({"command": "cat .env"}), json.dumps({"file_path": ".env"})
    steps = [started(), *one_call(1), unjudged("changed", "Bash", command, call=1), unjudged("unknown", "Read", path)]
    export = export_of(write(tmp_path / "log.jsonl", lines_of(steps)))
    assert [(found["call"], found["tool"], found["fate"], found["unjudged"]) for found in rows(export)] == [
        ("1", "bash", "ran", ""),
        ("1", "Bash", "ran", "changed"),
        ("", "Read", "ran", "unknown"),
    ]
    assert [found["call"] for found in lines("jsonl", export)] == [1, 1, None]
    events = lines("ocsf", export)
    assert [(event["severity"], event["is_alert"]) for event in events] == [
        ("Informational", False),
        ("Critical", True),
        ("Critical", True),
    ]
    assert [event["class_name"] for event in events] == ["Process Activity", "Process Activity", "API Activity"]
    assert events[1]["process"]["cmd_line"] == "cat .env"
    assert events[1]["message"] == "a call of Bash that was not allowed"
    assert len({event["metadata"]["uid"] for event in events}) == 3
    spans = [span for span in spans_of(export) if str(span["name"]).startswith("execute_tool")]
    assert [attributes_of(span).get("harness.unjudged") for span in spans] == [None, "changed", "unknown"]
    assert len({span["spanId"] for span in spans}) == 3
    assert not export.troubles


def test_digests_of_arguments_leave_only_under_the_key(log: Path) -> None:
    wanted = "hmac-sha256:" + hmac.new(KEY, DIGEST.encode(), hashlib.sha256).hexdigest()
    assert lines("jsonl", export_of(log))[0]["arguments_hmac"] == wanted
    assert lines("jsonl", export_of(log, key=b""))[0]["arguments_hmac"] is None
    for form in EXPORTS:
        assert '"arguments_sha256"' not in text_of(form, export_of(log))
    plain = lines_of([started(policy_sha256="1" * 64), proposed(1), refused(1, "invalid"), ended()])
    for form in EXPORTS:
        assert DIGEST not in text_of(form, export_of(write(log.parent / "one.jsonl", plain)))


@all_rows(
    ("text", "wanted"),
    [
        ("plain", '"plain"'),
        ("", '""'),
        ("=1+1", '"\'=1+1"'),
        ("+1", '"\'+1"'),
        ("-1", '"\'-1"'),
        ("@SUM(A1)", '"\'@SUM(A1)"'),
        ("  =1", '"\'  =1"'),
        ("\t=1", '"\'\\t=1"'),
        ("\rx", '"\'\\x0dx"'),
        ("\n=1", '"\'\\n=1"'),
        ("\uff1d1", '"\'\uff1d1"'),
        ("\uff0b1", '"\'\uff0b1"'),
        ("\uff0d1", '"\'\uff0d1"'),
        ("\uff20x", '"\'\uff20x"'),
        ("\u3000=1", '"\'\\u3000=1"'),
        ("\xa0=1", '"\'\\xa0=1"'),
        ('a"b,c', '"a""b,c"'),
        ("two\r\nlines", '"two\\x0d\\nlines"'),
        ("\u202edcba", '"\\u202edcba"'),
        ("\ud800", '"\\ud800"'),
        ("a=1", '"a=1"'),
    ],
)
def test_a_cell_is_neither_a_formula_nor_the_end_of_a_row(text: str, wanted: str) -> None:
    assert cell(text) == wanted


def test_other_cells() -> None:
    assert [cell(value) for value in (None, True, False, -9, 2.5)] == ["", "true", "false", "-9", "2.5"]
    assert not is_formula("")


@pytest.mark.forges_logs
@all_rows("content", [True, False])
@all_rows("shape", ["text", "list", "object"])
@all_rows("form", sorted(EXPORTS))
def test_hostile_values_are_exported_as_far_as_possible(tmp_path: Path, form: str, shape: str, content: bool) -> None:
    """ASCII or without control characters, one line a call, and what was of the wrong type is counted."""
    value: JsonValue = {"text": HOSTILE, "list": [HOSTILE], "object": {HOSTILE: HOSTILE}}[shape]  # type: ignore[assignment]
    steps = [(kind, {name.removesuffix("?"): value for name in fields}) for kind, fields in RECORDS.items()]
    path = write(tmp_path / "hostile.jsonl", lines_of([*steps, *one_call(7)], session=HOSTILE))
    export = export_of(path, content=content)
    text = text_of(form, export)
    assert export.troubles
    if form == "csv":
        assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f\u202e\ud800-\udfff]", text)
        found = rows(export_of(path, content=content))
        assert len(found) == 3
        assert not [v for one in found for v in one.values() if v.lstrip()[:1] in tuple("=+-@\t")]
        return
    assert text.isascii()
    assert len(text.splitlines()) >= 1
    for line in text.splitlines():
        json.dumps(json.loads(line, parse_constant=pytest.fail), ensure_ascii=False).encode("utf-8")


@pytest.mark.forges_logs
@all_rows("form", sorted(EXPORTS))
@all_rows("number", ["1e999", "NaN", "9" * 400, "-1", "1.5", "true", "null", '{"a":' * 900 + "1" + "}" * 900])
def test_odd_numbers_are_exported_as_valid_json(tmp_path: Path, form: str, number: str) -> None:
    odd = [
        re.sub(
            rb'"(mono_ns|turn|step|duration_ms|exit_code|line|output_bytes|seq)":\d+', rb'"\1":' + number.encode(), line
        )
        for line in lines_of([started(), ("model_request", {"turn": 1, "messages": 1}), *one_call(1), ended()])
    ]
    text = text_of(form, export_of(write(tmp_path / "odd.jsonl", odd)))
    assert "NaN" not in text
    assert "Infinity" not in text


# From github.com/ocsf/ocsf-schema: events/base_event.json, events/system/{system,process_activity,file_activity}.json,
# events/application/api_activity.json, dictionary.json and the objects of those names.
BASE = "activity_id category_uid class_uid metadata severity_id time type_uid".split()
CLASSES = {
    1007: (1, (*BASE, "actor", "device", "process"), range(1, 6)),
    1001: (1, (*BASE, "actor", "device", "file"), range(1, 15)),
    6003: (6, (*BASE, "actor", "api", "src_endpoint"), range(1, 5)),
}
ENUMS = {
    "severity_id": (0, 1, 2, 3, 4, 5, 6, 99),
    "status_id": (0, 1, 2, 99),
    "action_id": (0, 1, 2, 3, 4, 99),
    "disposition_id": (*range(28), 99),
}
OBJECTS = {
    "metadata": (("product", "version"), ()),
    "metadata.product": ((), ("name", "uid")),
    "device": (("type_id",), ("hostname", "ip", "name", "uid")),
    "actor": ((), ("process", "user", "session", "app_name", "app_uid")),
    "process": ((), ("pid", "uid", "cpid")),
    "file": (("name", "type_id"), ()),
    "file_result": (("name", "type_id"), ()),
    "api": (("operation",), ()),
    "api.request": (("uid",), ()),
    "src_endpoint": ((), ("ip", "uid", "name", "hostname")),
    "policy": ((), ("name", "uid", "type")),
    "firewall_rule": ((), ("name", "uid")),
}
"""What each object must have, and of what it must have at least one."""


def check_ocsf(event: Parsed) -> None:
    """Assert what the published schema requires of an event, in as far as it is listed above."""
    uid = event["class_uid"]
    assert isinstance(uid, int)
    category, required, activities = CLASSES[uid]
    assert event["category_uid"] == category
    assert not set(required) - event.keys()
    assert event["activity_id"] in (0, 99, *activities)
    assert event["type_uid"] == uid * 100 + int(str(event["activity_id"]))
    for name, values in ENUMS.items():
        assert event[name] in values, name
    for name in ("time", "start_time", "end_time", "duration"):
        assert isinstance(event.get(name, 0), int), name
    for path, (needed, one_of) in OBJECTS.items():
        found: Any = event
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None:
            assert isinstance(found, dict)
            assert not set(needed) - found.keys(), path
            assert not one_of or set(one_of) & found.keys(), path
    for name in ("file", "file_result"):
        file = event.get(name)
        hashes = file.get("hashes", []) if isinstance(file, dict) else []
        assert isinstance(hashes, list)
        assert all(
            isinstance(one, dict) and one["algorithm_id"] == 3 and len(str(one["value"])) == 64 for one in hashes
        )
    metadata = event["metadata"]
    assert isinstance(metadata, dict)
    assert re.fullmatch(r"1\.\d+\.\d+", str(metadata["version"]))
    assert isinstance(event["unmapped"], dict)


def test_ocsf_events_have_the_required_fields(log: Path) -> None:
    events = lines("ocsf", export_of(log))
    for event in events:
        check_ocsf(event)
    told = [
        (event["class_uid"], event["activity_id"], event["action_id"], event["disposition_id"], event["status_id"])
        for event in events
    ]
    assert told == [
        (1007, 1, 1, 1, 1),
        (1001, 3, 1, 8, 1),
        (1001, 1, 1, 8, 1),
        (1007, 1, 2, 2, 2),
        (1007, 1, 2, 26, 2),
        (1007, 1, 2, 2, 2),
        (1007, 1, 2, 25, 2),
        (6003, 99, 1, 1, 2),
        (1007, 1, 1, 1, 0),
        (1007, 1, 0, 0, 0),
    ]
    assert [event["is_alert"] for event in events] == [False] * 5 + [True, False, False, True, False]


def test_an_ocsf_event_in_full(log: Path) -> None:
    first, second = lines("ocsf", export_of(log))[:2]
    assert first["process"] == {
        "uid": "0123456789ab:1",
        "name": "bash",
        "cmd_line": "ls -l",
        "created_time": 1714557607000,
    }
    assert (first["time"], first["timezone_offset"], first["exit_code"]) == (1714557605000, 0, 0)
    assert first["firewall_rule"] == {
        "uid": "readers",
        "name": "readers",
        "type": "policy rule",
        "desc": "readers (ci.toml:12)",
    }
    assert first["policy"] == {
        "name": "ci",
        "uid": DIGEST,
        "desc": "readers (ci.toml:12)",
        "version": f"sha256:{DIGEST[:12]}",
    }
    assert first["actor"] == {"app_name": "harness", "app_uid": "0123456789ab", "user": {"name": "ann", "uid": "1000"}}
    assert first["device"] == {"hostname": "box", "type_id": 0, "type": "Unknown"}
    assert "authorizations" not in first
    assert second["authorizations"] == [{"decision": "allowed", "policy": second["policy"]}]
    assert second["file"] == {
        "name": "a.txt",
        "path": "/srv/shop/a.txt",
        "type_id": 1,
        "type": "Regular File",
        "hashes": [{"algorithm_id": 3, "algorithm": "SHA-256", "value": DIGEST}],
    }


def spans_of(export: Export) -> list[Parsed]:
    """Return the spans of all requests, each request checked on the way."""
    spans: list[Parsed] = []
    for request in lines("otlp", export):
        assert list(request) == ["resourceSpans"]
        (of_resource,) = request["resourceSpans"]
        assert set(of_resource) == {"resource", "scopeSpans"}
        (of_scope,) = of_resource["scopeSpans"]
        assert of_scope["spans"], "the protocol wants no empty requests"
        attributes_of(of_resource["resource"])
        spans += of_scope["spans"]
    return spans


def attributes_of(span: Parsed) -> Parsed:
    """Return the attributes, with the JSON encoding of each value checked (64-bit numbers are texts)."""
    found: Parsed = {}
    for attribute in span["attributes"]:
        assert isinstance(attribute, dict)
        assert set(attribute) == {"key", "value"}
        ((kind, value),) = attribute["value"].items()
        match kind:
            case "stringValue" | "intValue":
                assert isinstance(value, str)
                assert kind == "stringValue" or re.fullmatch(r"-?\d+", value)
            case "boolValue":
                assert isinstance(value, bool)
            case "doubleValue":
                assert isinstance(value, int | float)
            case _:
                assert kind == "arrayValue"
        assert attribute["key"] not in found
        found[str(attribute["key"])] = value
    return found


def test_otlp_spans_are_as_the_protocol_encodes_them(log: Path) -> None:
    spans = spans_of(export_of(log))
    ids = [str(span["spanId"]) for span in spans]
    assert len(set(ids)) == len(ids)
    assert {span["traceId"] for span in spans} == {spans[0]["traceId"]}
    (root,) = [span for span in spans if "parentSpanId" not in span]
    assert root["name"] == "invoke_agent harness"
    for span in spans:
        assert re.fullmatch("[0-9a-f]{32}", str(span["traceId"]))
        assert re.fullmatch("[0-9a-f]{16}", str(span["spanId"]))
        assert span.get("parentSpanId", root["spanId"]) == root["spanId"]
        start, stop = span["startTimeUnixNano"], span["endTimeUnixNano"]
        assert isinstance(start, str)
        assert isinstance(stop, str)
        assert 0 < int(start) <= int(stop)
        assert span["kind"] in (1, 3)
        error = attributes_of(span).get("error.type")
        assert span.get("status") == ({"code": 2, "message": error} if error else None)
        assert {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.conversation.id"} <= attributes_of(span).keys()


def test_spans_contain_usage_errors_and_open_sessions(log: Path) -> None:
    spans = spans_of(export_of(log))
    chats = [attributes_of(span) for span in spans if str(span["name"]).startswith("chat")]
    assert [chat.get("error.type") for chat in chats] == [None, "connection"]
    assert chats[0]["gen_ai.usage.input_tokens"] == "70"
    assert chats[0]["gen_ai.usage.output_tokens"] == "8"
    assert chats[0]["gen_ai.usage.cache_read.input_tokens"] == "60"
    assert chats[0]["gen_ai.usage.cache_creation.input_tokens"] == "5"
    assert chats[0]["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "done"}]}
    assert chats[0]["gen_ai.request.model"] == "m-1"
    calls = [attributes_of(span) for span in spans if str(span["name"]).startswith("execute_tool")]
    assert [one.get("error.type") for one in calls] == [
        None, None, None, "denied", "denied", "blocked", "invalid", "failed", "unknown", "no_end",
    ]  # fmt: skip
    assert calls[0]["gen_ai.tool.name"] == "bash"
    assert calls[0]["gen_ai.tool.call.id"] == "c1"
    assert calls[0]["harness.decision"] == "auto"
    assert (calls[0]["harness.rule"], calls[0]["harness.rule_line"]) == ("readers", "12")
    assert calls[1]["harness.answered_by"] == "person"
    (root,) = [attributes_of(span) for span in spans if str(span["name"]).startswith("invoke_agent")]
    assert root["harness.session_open"] is True


def test_otlp_holds_contents_only_on_request(log: Path) -> None:
    without, with_content = text_of("otlp", export_of(log)), text_of("otlp", export_of(log, content=True))
    for secret in ("ls -l", "a.txt", "total 0", "It only reads", "well"):
        assert secret not in without, secret
        assert secret in with_content, secret


def test_requests_stay_small(tmp_path: Path) -> None:
    steps = [step for number in range(1, 251) for step in one_call(number)]
    path = write(tmp_path / "log.jsonl", lines_of([started(), *steps, ended()]))
    counts = [len(request["resourceSpans"][0]["scopeSpans"][0]["spans"]) for request in lines("otlp", export_of(path))]
    assert (sum(counts), max(counts)) == (251, 100)


class OneCall:
    """One call, without a log."""

    paths = ()

    def __init__(self, found: LoggedCall) -> None:
        self.found = found

    def records(self, kinds: Iterable[str] | None = None) -> Iterator[tuple[str, LogRecord]]:
        return iter(())

    def calls(self) -> Iterator[LoggedCall]:
        yield self.found


def test_a_call_of_which_hardly_anything_is_known() -> None:
    """No record at all: every field is there and empty, and it is counted."""
    empty = LoggedCall(log="x", session="s", number="?", started={})
    logs = OneCall(empty)
    export = Export(logs, key=KEY)
    assert {name for name, value in row(empty, export).items() if value} == {"log", "session", "call", "fate"}
    assert export.troubles["a call without its proposal"] == 1
    assert {form: len(text_of(form, Export(logs)).splitlines()) for form in EXPORTS} == {
        "csv": 2, "jsonl": 1, "ocsf": 1, "otlp": 1,
    }  # fmt: skip


@all_rows("form", sorted(EXPORTS))
def test_memory_does_not_grow_with_the_log(tmp_path: Path, form: str) -> None:
    peaks = []
    for count in (200, 450) if form == "otlp" else (30, 250):  # many calls of OTLP are one piece
        steps = [step for number in range(1, count + 1) for step in one_call(number, "x" * 4_000)]
        path = write(tmp_path / f"{count}.jsonl", lines_of([started(), *steps, ended()]))
        del steps
        tracemalloc.start()
        for _ in exporter(form)(export_of(path, content=True)):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000


@pytest.fixture
def ran(program: Program) -> Program:
    script = replies(
        Reply(text="look", calls=(call("bash", command="ls"), call("bash", command="touch x"))), Reply(text="finished")
    )
    assert program.run("run", "go", "--base-url", program.serve(script)).code == 7
    return program


@all_rows("form", sorted(EXPORTS))
def test_the_program_exports_to_a_file_and_to_stdout(ran: Program, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out.txt"
    to_file = ran.run("audit", "export", "--to", form, "-o", str(out))
    to_stdout = ran.run("audit", "export", "--to", form)
    assert (to_file.code, to_file.out, to_stdout.code, to_stdout.err) == (0, "", 0, "")
    assert out.read_bytes().decode() == to_stdout.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    key = (ran.state / "harness" / "redaction_key").read_bytes()
    sha256 = hashlib.sha256(b'{"command": "ls"}').hexdigest()
    assert "hmac-sha256:" + hmac.new(key, sha256.encode(), hashlib.sha256).hexdigest() in to_stdout.out
    assert sha256 not in to_stdout.out


def test_broken_log_is_exported_and_reported_as_broken(ran: Program) -> None:
    log = ran.logs()[0]
    log.write_text(log.read_text().replace("touch x", "touch y"))
    done_ = ran.run("audit", "export", "--to", "jsonl", str(log))
    assert (done_.code, "BROKEN" in done_.err, len(done_.out.splitlines())) == (1, True, 2)


def test_odd_fields_are_counted_on_stderr(ran: Program, tmp_path: Path) -> None:
    log = tmp_path / "odd.txt"
    log.write_text(re.sub(r'"turn":\d', '"turn":"first"', ran.logs()[0].read_text()))
    done_ = ran.run("audit", "export", "--to", "csv", str(log))
    assert "2 times: turn is no whole number; exported as far as it goes" in done_.err


def test_an_export_never_writes_over_a_log(ran: Program) -> None:
    log = ran.home / "copy.txt"
    log.write_bytes(ran.logs()[0].read_bytes())
    done_ = ran.run("audit", "export", "--to", "csv", str(log), "-o", str(log))
    assert (done_.code, "never written over" in done_.err) == (2, True)
    assert log.read_bytes() == ran.logs()[0].read_bytes()


def test_an_unknown_form_names_the_known_ones(program: Program) -> None:
    done_ = program.run("audit", "export", "--to", "xml")
    assert done_.code == 2
    assert all(form in done_.err for form in EXPORTS)
