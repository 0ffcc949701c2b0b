"""`harness audit report`: what the page says, that nothing of a log gets out of its place, and where it is written."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import subprocess
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forged_logs import (
    DIGEST,
    Step,
    a_session,
    decided,
    done,
    ended,
    head_of,
    intended,
    lines_of,
    one_call,
    proposed,
    started,
    write,
)
from rows import all_rows

from harness.actions import JsonValue
from harness.app.audit.logs import ChosenLogs
from harness.audit.findings import NotedHead, evidence_of, findings_of, judge_log
from harness.errors import UsageError
from harness.log.clocks import nanoseconds, seconds_between
from harness.log.heads_file import HeadsFile, KnownHead
from harness.log.reader import finite, whole_number
from harness.log.schema import RECORDS, json_schema
from harness.log.verify import Verification
from harness.models.scripted import Reply, call, replies
from harness.plugins.insight.commands.export import write_view
from harness.plugins.insight.report import CHARACTERS, TIMELINE_CALLS, report
from harness.plugins.insight.report.page import looked_at
from harness.plugins.insight.report.style import STYLE, content_policy
from harness.record import replace
from harness.session.state import State
from harness.text.amounts import duration

if TYPE_CHECKING:
    from program import Program

TAGS = frozenset(
    "html head meta title style body main h1 h2 h3 p nav ul li a code pre strong span div details summary dl dt dd small "
    "table caption thead tbody tr th td br".split()
)
ATTRIBUTES = frozenset(
    "lang charset http-equiv content name class id href tabindex role aria-label aria-hidden scope data-head open".split()
)
VOID = frozenset(("meta", "br"))
HOSTILE = (
    '"\'><{mark} {mark}="1"><script>{mark}()</script><img src=x onerror={mark}()></style></title></pre></svg>]]>-->'
    "&lt;{mark}&gt;&#60;{mark}&#62;javascript:{mark}\x1b[2J\u202e\u200b\x00\ud800=cmd|' \u2028end"
)


def hostile(mark: str) -> str:
    return HOSTILE.replace("{mark}", mark)


MARKS = {
    f"{kind}.{name.removesuffix('?')}": f"zq{place:03d}"
    for place, (kind, name) in enumerate((kind, name) for kind, fields in RECORDS.items() for name in fields)
}
"""A mark for each field, so short that it is not cut."""


class Page(HTMLParser):
    """A page taken apart: tags in balance, and what stands in elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.style = ""
        self.headings: list[int] = []
        self._pieces: list[str] = []
        self.feed(html)
        self.close()
        assert self.stack == []
        self.text = "".join(self._pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack and self.stack.pop() == tag, (tag, self.getpos())  # noqa: PT018 - one fact

    def handle_data(self, data: str) -> None:
        if self.stack[-1:] == ["style"]:
            self.style += data
        else:
            self._pieces.append(data)

    def values_of(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


def page_of(
    *paths: Path, full: bool = False, title: str = "", session: str = "", most_calls: int = TIMELINE_CALLS
) -> str:
    logs = ChosenLogs([str(path) for path in paths], session)
    standing = [judge_log(str(path), HeadsFile("")) for path in paths]
    return "".join(report(logs, standing, title=title, only=session, full=full, most_calls=most_calls))


def check_harmless(html: str) -> Page:
    """Assert that a page is well-formed and holds nothing that loads or runs; return it."""
    html.encode("utf-8")  # no lone surrogate
    page = Page(html)
    assert page.tags <= TAGS
    assert {name for _, name, _ in page.attributes} <= ATTRIBUTES
    assert page.style == STYLE
    assert all(value.startswith("#") for value in page.values_of("href"))
    assert not re.search(r"@import|url\(|expression|</", STYLE)
    assert not set(page.text) & {chr(code) for code in (*range(9), 11, 12, *range(14, 32), 127, 0x202E, 0x200B, 0x2028)}
    assert len(page.values_of("id")) == len(set(page.values_of("id")))
    return page


@pytest.fixture
def ran(program: Program) -> Program:
    """A run with calls that ran, one that the policy denied, and a reply with hostile words."""
    script = replies(
        Reply(text="look <b>\x1b[2J", calls=(call("bash", command="ls"), call("bash", command="touch x"))),
        Reply(text="finished"),
    )
    assert program.run("run", "go <i>there</i>", "--base-url", program.serve(script)).code == 7
    return program


def test_page_describes_the_run(ran: Program, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done_ = ran.run("audit", "report", "-o", str(out), "--title", "What <happened>")
    page = check_harmless(out.read_text())
    told = " ".join(page.text.split())
    assert (done_.code, stat.S_IMODE(out.stat().st_mode), list(tmp_path.glob("*.tmp"))) == (0, 0o600, [])
    for words in (
        "What <happened>",
        "A report on 1 action log with 1 session, 2 calls",
        "None: every call that was begun has an end",
        "WHOLE",
        str(ran.logs()[0]),
        "The head is the one that was noted when the log was closed",
        "Refused (1)",
        "touch x",
        "default for bash",
        "go <i>there</i>",
        "look <b>\\x1b[2J",
        "the text has this digest",
    ):
        assert words in told, words
    assert page.headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in zip(page.headings, page.headings[1:], strict=False))
    assert page.values_of("lang") == ["en"]
    scopes = [value for tag, name, value in page.attributes if tag == "th" and name == "scope"]
    assert set(scopes) == {"col", "row"}
    assert len(scopes) == len(re.findall(r"<th\b", out.read_text()))
    bars = re.findall(r'<div class="bar"([^>]*)>', out.read_text())
    assert bars
    assert all(re.fullmatch(r' role="img" aria-label="[^"]+"', attributes) for attributes in bars)


def test_striking_records_come_first_with_prompt_and_answer(ran: Program) -> None:
    """A run in which something was refused is no green page; the lists of what to look at come before all else."""
    html = ran.run("audit", "report", "-o", "-").out
    told = " ".join(check_harmless(html).text.split())
    first = told[: told.index("Unknown calls")]
    assert "Nothing stands out" not in told
    for words in ("x 1 call refused", "go <i>there</i>", "finished"):
        assert words in first, words
    headings = re.findall(r"<h2[^>]*>([A-Za-z, ]+?)(?: \(\d+\))?</h2>", html)
    assert headings == [
        "Unknown calls", "Refused", "Questions and approvals", "Outside, network", "Sessions", "Figures", "Files changed",
        "Commands that could write", "Files read", "What was looked at", "Charts", "Policies in force", "Time line",
    ]  # fmt: skip


STANDS_OUT = [
    pytest.param({}, "", id="nothing"),
    pytest.param({"read": ["/srv/shop/a"]}, "", id="inside"),
    pytest.param({"read": ["/etc/passwd"]}, "! 1 call outside the workspace", id="a read outside"),
    pytest.param({"write": None, "granted": ["~/.cache"]}, "! 1 call outside the workspace", id="a grant outside"),
    pytest.param({"network": True}, "! 1 call could reach the network", id="the network"),
]


@pytest.mark.forges_logs
@all_rows(("reach", "words"), STANDS_OUT)
def test_calls_leaving_the_workspace_are_highlighted_and_listed(
    tmp_path: Path, reach: dict[str, JsonValue], words: str
) -> None:
    effects: dict[str, JsonValue] = {"network": False, "unasked": True, "granted": [], "enforcement": "where possible"}
    effects |= {"read": [], "write": [], **reach}
    judged_as, run_as = ((kind, {**fields, "effects": effects}) for kind, fields in (decided(1), intended(1)))
    steps = [started(workspace="/srv/shop"), proposed(1), judged_as, run_as, done(1)]
    lines = lines_of([*steps, ended()])
    log = write(tmp_path / "log.jsonl", lines)
    found = judge_log(str(log), HeadsFile(""), given_head=head_of(lines))
    told = " ".join(check_harmless("".join(report(ChosenLogs([str(log)]), [found]))).text.split())
    first = told[: told.index("Unknown calls")]
    assert ("Nothing stands out" in first, words in first) == (not words, True)
    section = told[told.index(" Outside, network ") : told.index(" Sessions ")]
    for path in [*reach.get("read", []), *reach.get("granted", [])] if words else []:  # type: ignore[misc]
        assert str(path) in section


@pytest.mark.forges_logs
def test_many_logs_are_a_table(tmp_path: Path) -> None:
    """With what proves what once, and what is wrong with one in its row."""
    paths = [write(tmp_path / f"{name}.jsonl", lines_of(a_session(), session=name * 12)) for name in "abcdefgh"]
    paths[3].write_bytes(paths[3].read_bytes().replace(b"It only reads.", b"It only writes"))
    html = page_of(*paths)
    told = " ".join(check_harmless(html).text.split())
    assert (html.count("Not proved:"), told.count("BROKEN at line ")) == (2, 1)
    assert len(re.findall(r'<td data-head="log"', html)) == len(paths)


def test_cells_have_labels_on_a_narrow_page(ran: Program) -> None:
    """At 390 pixels a row is a card: each cell stands below the one before, with its column's name."""
    html = ran.run("audit", "report", "-o", "-").out
    lists = re.findall(r'<table class="list">.*?</table>', html, re.DOTALL)
    assert len(lists) >= 3
    for one in lists:
        heads = re.findall(r'<th scope="col">(.*?)</th>', one)
        for row in re.findall(r"<tr>(.*?)</tr>", one.partition("<tbody>")[2], re.DOTALL):
            assert re.findall(r'<t[dh] data-head="(.*?)"', row) == heads
    assert ".list tbody th::before{content:attr(data-head)" in STYLE


def test_the_page_is_the_same_when_it_is_made_again(ran: Program) -> None:
    pages = [ran.run("audit", "report", "-o", "-").out for _ in range(2)]
    assert pages[0] == pages[1]
    assert pages[0].startswith("<!DOCTYPE html>")
    last = max(str(record["time"]) for record in ran.records())
    assert f"the last record is of <strong>{last}</strong>" in " ".join(pages[0].split("\n"))


def test_content_policy_forbids_loading_and_running() -> None:
    policy = content_policy()
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert f'content="{policy}"' in "".join(report(ChosenLogs([]), []))


# Fields that no page shows: what the harness needs to join and check records, and what is only in the log's raw form.
UNSHOWN = frozenset(
    "approval_asked.by approval_answered.opens "
    "call_proposed.id call_proposed.arguments_sha256 decision.tool decision.source decision.arguments_sha256 decision.rule "
    "decision.default_of intent.tool intent.arguments_sha256 intent.policy_sha256 intent.preview_sha256 intent.change "
    "outcome.tool model_response.client model_response.echo "
    "model_response.purpose".split()
)


def hostile_steps(shape: str) -> Iterator[Step]:
    """Yield a record of every kind; every field holds hostile text with a mark of its own, in a text, a list or an object."""
    for kind, fields in RECORDS.items():
        values: dict[str, JsonValue] = {}
        for name in (field.removesuffix("?") for field in fields):
            text = hostile(MARKS[f"{kind}.{name}"])
            values[name] = text if shape == "text" else [text, {text: text}] if shape == "list" else {text: [text]}
        if "call" in values:
            values["call"] = hostile("zqcall")  # one call, or its records would not be told together
        yield kind, values


@pytest.mark.forges_logs
@all_rows("shape", ["text", "list", "object"])
@all_rows("full", [True, False])
def test_hostile_text_stays_in_its_field(tmp_path: Path, shape: str, full: bool) -> None:
    steps = sorted(hostile_steps(shape), key=lambda step: step[0] == "session_ended")
    lines = lines_of(steps, session=hostile("zqsession"))
    time = json.dumps(hostile("zqtime")).encode()
    lines = [re.sub(rb'"2024-05-01T10:00:\d\d.000000Z"', lambda _: time, line) for line in lines]
    path = write(tmp_path / "hostile.jsonl", lines)
    page = check_harmless(page_of(path, full=full, title=hostile("zqtitle")))
    assert not [tag for tag in page.tags if "zq" in tag]
    assert not [name for _, name, _ in page.attributes if "zq" in name]
    if full:  # what stands in a field where it should not is shown as it is
        assert [name for name, mark in MARKS.items() if mark not in page.text and not name.endswith(".call")] == []


def marked(schema: JsonValue, definitions: dict[str, JsonValue], mark: str) -> JsonValue:
    """Return a value that fits a JSON Schema, with hostile text wherever a text may stand."""
    assert isinstance(schema, dict)
    if "$ref" in schema:
        return marked(definitions[str(schema["$ref"]).rpartition("/")[2]], definitions, mark)
    if "const" in schema:
        return schema["const"]
    for several in ("enum", "anyOf"):
        if isinstance(options := schema.get(several), list):
            return options[0] if several == "enum" else marked(options[0], definitions, mark)
    match schema["type"]:
        case "string":
            return digest_of(mark) if "pattern" in schema else hostile(mark)
        case "array":
            return [marked(schema["items"], definitions, mark)]
        case "object":
            properties = schema.get("properties", {})
            assert isinstance(properties, dict)
            return {name: marked(inner, definitions, mark) for name, inner in properties.items()}
        case "boolean":
            return True
        case _:
            return 1


def digest_of(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()


@pytest.mark.forges_logs
def test_every_text_and_digest_of_a_valid_log_is_shown_or_known_not_to_be(tmp_path: Path) -> None:
    """A field that is new in the schema must be shown, or added to UNSHOWN on purpose."""
    definitions = json_schema()["$defs"]
    assert isinstance(definitions, dict)
    steps: list[Step] = []
    told: set[str] = set()
    for kind, fields in RECORDS.items():
        values: dict[str, JsonValue] = {}
        for name in (field.removesuffix("?") for field in fields):
            kind_schema = definitions[kind]
            assert isinstance(kind_schema, dict)
            properties = kind_schema["properties"]
            assert isinstance(properties, dict)
            values[name] = marked(properties[name], definitions, MARKS[f"{kind}.{name}"])
            written = json.dumps(values[name])
            if MARKS[f"{kind}.{name}"] in written or digest_of(MARKS[f"{kind}.{name}"]) in written:
                told.add(f"{kind}.{name}")
        steps.append((kind, values))
    page = check_harmless(page_of(write(tmp_path / "log.jsonl", lines_of(steps)), full=True))
    assert "This record " not in page.text
    assert not [tag for tag in page.tags if "zq" in tag]
    hidden = {name for name in told if MARKS[name] not in page.text and digest_of(MARKS[name]) not in page.text}
    assert hidden == UNSHOWN


@pytest.mark.forges_logs
def test_connections_and_pictures_are_listed(tmp_path: Path) -> None:
    allowed: dict[str, JsonValue] = {
        "host": "example.org",
        "port": 443,
        "allowed": True,
        "times": 2,
        "sent": 10,
        "received": 99,
        "address": "1.2.3.4",
    }
    refused: JsonValue = {
        "host": "<b>evil</b>",
        "port": 80,
        "allowed": False,
        "times": 1,
        "sent": 0,
        "received": 0,
        "why_not": "no rule",
    }
    picture: dict[str, JsonValue] = {
        "sha256": "ab" * 32,
        "media_type": "image/png",
        "width": 3,
        "height": 2,
        "size": 70,
    }
    steps: tuple[tuple[str, Mapping[str, JsonValue]], ...] = (
        started(),
        ("user_message", {"text": "see", "pictures": [picture]}),
        proposed(1),
        decided(1),
        intended(1),
        done(1, connections=[allowed, refused], connection_count=3, pictures=[{**picture, "width": 4}]),
        ended(),
    )
    page = check_harmless(page_of(write(tmp_path / "log.jsonl", lines_of(steps))))
    told = " ".join(page.text.split())
    for words in (
        "connections of commands with network by host",
        "example.org:443",
        "1.2.3.4",
        "<b>evil</b>:80",
        "x refused no rule",
        "10 / 99",
        "pictures that the model was shown",
        "session 1, prompt",
        "image/png, 3 x 2 pixels, 70 bytes",
        "image/png, 4 x 2 pixels, 70 bytes",
    ):
        assert words in told, words
    plain = page_of(write(tmp_path / "plain.jsonl", lines_of([started(), *one_call(1), ended()])))
    assert "connections of commands" not in plain
    assert "pictures that the model" not in plain


@pytest.mark.forges_logs
@all_rows("depth", [50, 900])
def test_deep_values_are_shown_or_reported_as_too_deep(tmp_path: Path, depth: int) -> None:
    lines = lines_of([started(), *one_call(1), ended()])
    deep = b'{"a":' * depth + b"[]" + b"}" * depth
    lines = [line.replace(b'"It only reads."', deep).replace(b'"turn":1', b'"turn":' + deep) for line in lines]
    check_harmless(page_of(write(tmp_path / "deep.jsonl", lines), full=True))


@pytest.mark.forges_logs
def test_lists_are_whole_and_texts_are_cut_with_their_count(tmp_path: Path) -> None:
    long = "x" * (CHARACTERS + 1234)
    path = write(tmp_path / "long.jsonl", lines_of([started(), *one_call(1, long), ended()]))
    cut, full = page_of(path), page_of(path, full=True)
    assert "1,234 more characters are left out here" in cut
    assert long not in cut
    assert long in full
    assert "left out" not in Page(full).text


def asked(number: int, answer: str, seconds: JsonValue, by: str = "person", words: str = "") -> tuple[Step, ...]:
    fields: dict[str, JsonValue] = {"call": number, "answer": answer, "by": by, "words": words, "seconds": seconds}
    return ("approval_asked", {"call": number, "shown_sha256": DIGEST}), ("approval_answered", fields)


def refused(number: int, status: str = "denied") -> Step:
    return "outcome", {"call": number, "tool": "bash", "status": status, "content": "Denied."}


@pytest.mark.forges_logs
def test_each_end_of_a_call_is_shown_with_alarming_ones_first(tmp_path: Path) -> None:
    unjudged: Step = ("decision", {"call": 7, "decision": "none", "by": "", "reason": "bad", "tool": "x"})
    steps: list[Step] = [
        started(policy="ci"),
        *one_call(1),
        proposed(2), decided(2, "confirm"), *asked(2, "yes", 0.4), intended(2), done(2, status="failed"),
        proposed(3), decided(3, "confirm"), *asked(3, "no", 7.5, words="not today"), refused(3),
        proposed(4), decided(4, "confirm"), *asked(4, "nobody", 0.0, by="nobody"), refused(4),
        proposed(5), decided(5, "confirm"), *asked(5, "yes", 0.0, by="script"), intended(5), done(5),
        proposed(6), decided(6, "block"), refused(6, "blocked"),
        proposed(7), unjudged, refused(7, "invalid"),
        proposed(8), decided(8), intended(8),
        proposed(9), decided(9, "deny"), intended(9), done(9),
        proposed(10),
    ]  # fmt: skip
    page = Page(page_of(write(tmp_path / "log.jsonl", lines_of(steps))))
    told = " ".join(page.text.split())
    first = told[: told.index("Unknown calls")]
    for words in (
        "?? 1 call ran, and nothing in the log allows it",
        "? 1 call begun, end not known",
        "# 1 call blocked",
        "! 1 answer by a person came in under a second: hardly read; 1 of them yes",
        "BROKEN: 1 of 1 log did not verify",
        "! 1 session never said that it ended",
    ):
        assert words in first, words
    for words in (
        "Refused (3)",
        "Questions and approvals (4)",
        "person, after 7.5",
        "nobody was there to ask",
        "not today",
        "0.40 s ! under 1 s",
        "1 by a person, 1 otherwise",
    ):
        assert words in told, words
    assert told.count("! under 1 s") == 2  # in the list and in the time line; not for the script, nor for nobody
    bar = re.findall(r'<div class="bar".*?</div>', page_of(tmp_path / "log.jsonl"))[0]
    assert "1 ran without a human, 2 ran after a yes, 2 refused, 1 blocked" in bar


@pytest.mark.forges_logs
def test_each_standing_that_occurs_has_a_part_of_its_bar_that_can_be_seen(tmp_path: Path) -> None:
    """However small its share is. The figures stand beside the bar, and in its name."""
    steps = [step for number in range(1, 301) for step in one_call(number)]
    steps += [proposed(301), decided(301, "deny"), refused(301)]
    page = page_of(write(tmp_path / "log.jsonl", lines_of([started(), *steps, ended()])))
    check_harmless(page)
    bars = re.findall(r'<div class="bar" role="img" aria-label="([^"]*)">(.*?)</div>', page)
    of_all = [parts for words, parts in bars if words == "300 ran without a human, 1 refused"]
    assert len(of_all) == 4  # in all, by session, by tool, by rule
    for parts in of_all:
        assert re.findall(r'class="f-([a-z]+) w(\d+)"', parts) == [("unasked", "100"), ("refused", "1")]


@pytest.mark.forges_logs
@all_rows(("answers", "burst"), [(["yes", "yes", "yes"], 3), (["yes", "yes"], 0)])
def test_burst_of_approvals_is_highlighted(tmp_path: Path, answers: list[str], burst: int) -> None:
    steps = [started()]
    for number, answer in enumerate(answers, start=1):
        steps += [
            proposed(number),
            decided(number, "confirm"),
            *asked(number, answer, 2.0),
            intended(number),
            done(number),
        ]
    told = " ".join(Page(page_of(write(tmp_path / "log.jsonl", lines_of([*steps, ended()])))).text.split())
    assert told.count("! burst") == burst
    assert ("! 3 approvals by a person came in bursts" in told) is bool(burst)


@pytest.mark.forges_logs
@all_rows("known", [True, False])
def test_page_is_green_only_if_the_head_is_known(tmp_path: Path, known: bool) -> None:
    lines = lines_of(a_session())
    log = write(tmp_path / "log.jsonl", lines)
    found = judge_log(str(log), HeadsFile(""), given_head=head_of(lines) if known else None)
    html = "".join(report(ChosenLogs([str(log)]), [found]))
    assert ('<p class="whole"><strong>Nothing stands out' in html) is known
    assert ("But 1 log</strong> had no head" in html or "But 1 log had no head" in html) is not known


@pytest.mark.forges_logs
def test_stopped_run_is_not_described_as_going_on(tmp_path: Path) -> None:
    steps = [started(), proposed(1), decided(1, "confirm"), *asked(1, "stop", 5.0), refused(1)]
    log = write(tmp_path / "log.jsonl", lines_of([*steps, ended(stop="interrupted")]))
    told = " ".join(Page(page_of(log)).text.split())
    assert "the run went on" not in told
    assert "1 of them by a stop, which ended the run" in told


@pytest.mark.forges_logs
def test_cut_time_line_counts_the_omitted_calls_and_marks_none_unknown(tmp_path: Path) -> None:
    """Also where the cut falls between the records of calls that are answered later."""
    most, count = 50, 80
    steps = [step for number in range(1, count + 1) for step in one_call(number)]
    early = [proposed(count + 1), decided(count + 1), intended(count + 1)]
    path = write(tmp_path / "many.jsonl", lines_of([started(), *early, *steps, done(count + 1), ended()]))
    page = Page(page_of(path, most_calls=most))
    told = " ".join(page.text.split())
    assert f"shows the first {most} calls; 31 calls and" in told
    assert "Unknown." not in told
    assert f"with 1 session, {count + 1:,} calls" in told
    whole_page = Page(page_of(path, full=True)).text
    assert "left out" not in whole_page
    assert f"call {count} " in whole_page
    assert f"call {count} " not in page.text


def test_fitting_time_line_is_not_marked_as_cut(tmp_path: Path) -> None:
    steps = [step for number in range(1, 51) for step in one_call(number)]
    path = write(tmp_path / "fits.jsonl", lines_of([started(), *steps, ended()]))
    assert "left out" not in Page(page_of(path, most_calls=50)).text


@pytest.mark.forges_logs
def test_interleaved_sessions_are_shown_in_log_order(tmp_path: Path) -> None:
    one = lines_of([started(), proposed(1), decided(1)], session="a" * 12)
    two = lines_of([started(), *one_call(1), ended()], session="b" * 12)
    rest = lines_of([intended(1), done(1, "of the first"), ended()], session="a" * 12)
    page = Page(page_of(write(tmp_path / "both.jsonl", [*one, *two, *rest])))
    told = " ".join(page.text.split())
    assert (
        told.index("Session 1: aaaaaaaaaaaa ")
        < told.index("Session 2: bbbbbbbbbbbb")
        < told.index("aaaaaaaaaaaa (goes on)")
    )
    assert "Unknown." not in told
    only = Page(page_of(tmp_path / "both.jsonl", session="b" * 12)).text
    assert "aaaaaaaaaaaa" not in only
    assert "Told is only what belongs to session bbbbbbbbbbbb" in only


@pytest.mark.forges_logs
def test_broken_log_and_unread_lines_are_reported_first(program: Program, tmp_path: Path) -> None:
    lines = lines_of([started(), *one_call(1), *one_call(2), ended()])
    path = write(tmp_path / "broken.jsonl", [*lines[:6], b"no record", *lines[6:]])
    done_ = program.run("audit", "report", str(path), "-o", "-")
    assert done_.code == 1
    assert "BROKEN" in done_.err
    told = " ".join(Page(done_.out).text.split())
    assert "BROKEN at line 7" in told
    assert "it is not a record" in told
    assert "Line 7 is no record: from there on this log is LEFT OUT" in told


@all_rows(
    ("found", "known", "state", "words"),
    [
        pytest.param({}, None, "NO HEAD", "No head to compare with", id="no head"),
        pytest.param({}, {"records": 5, "head": "h"}, "WHOLE", "noted when the log was closed", id="whole"),
        pytest.param({}, {"records": 5, "head": "h", "closed": False}, "NO HEAD", "The log went on", id="open head"),
        pytest.param({}, {"records": 4, "head": "g"}, "ADDED: 1 records from line 5", "anyone may have", id="went on"),
        pytest.param({"missed": 9}, {"records": 9, "head": "g"}, "BROKEN", "a tail is missing", id="cut"),
        pytest.param({"missed": 3}, {"records": 3, "head": "g"}, "BROKEN", "it was rewritten", id="other log"),
        pytest.param(
            {"broken_line": 4, "problem": "is bad"}, None, "BROKEN", "at line 4 (byte 0): it is bad", id="broken"
        ),
        pytest.param({"torn": True, "torn_bytes": 9}, None, "OPEN", "torn (9 bytes", id="torn"),
        pytest.param({"unknown_calls": ("s:1",)}, None, "OPEN", "call 1 was begun", id="unknown"),
        pytest.param({"records": 0}, None, "OPEN", "nothing was proved", id="empty"),
    ],
)
def test_page_agrees_with_verify(
    found: dict[str, object], known: dict[str, Any] | None, state: str, words: str
) -> None:
    noted = None
    if known is not None:
        noted = NotedHead(known_head=KnownHead(**known, noted={known["records"]: frozenset((known["head"],))}))
    verification = replace(Verification(records=5, head="h"), **found)
    findings = findings_of("x", evidence_of(noted, None, None), verification)
    (box,) = looked_at([findings], {"x": 7}, []).boxes
    told = "".join(span.text for spans in box.lines for span in spans)
    assert state in told
    assert words in told
    assert "Line 7 is no record: from there on this log is LEFT OUT" in told
    assert all(one in told for one in (*findings.lines, findings.proved, findings.not_proved))


@pytest.mark.forges_logs
def test_log_that_grows_during_the_report_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", lines_of([started(), *one_call(1), ended()]))
    html = "".join(report(ChosenLogs([str(path)]), [], grown=lambda: [str(path)]))
    assert "Written to while this page was made:" in Page(html).text


class Tree:
    """A place to write to, with a log and a state folder beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = write(folder / "log.jsonl", lines_of([started(), ended()]))
        self.state = State(state=str(folder / "state"), config=str(folder / "config"))

    def write(self, output: str, pieces: Sequence[str] = ("new",)) -> None:
        write_view(pieces, output, logs=[str(self.log)], state=self.state)


@all_rows(
    ("name", "words"),
    [
        ("log.jsonl", "is or holds records of an action log"),
        ("link", "is or holds records of an action log"),
        ("other.txt", "is or holds records of an action log"),
        ("state/heads.jsonl", "harness's own files"),
        ("config/policy.toml", "harness's own files"),
        ("folder", "not a regular file"),
        ("missing/page.html", "cannot be written"),
        ("log.jsonl.torn", "belongs to an action log"),
        ("log.jsonl.torn.2", "belongs to an action log"),
        ("log.jsonl.head", "belongs to an action log"),
        ("log.jsonl.head.sig", "belongs to an action log"),
        ("gone.jsonl.torn", "belongs to an action log"),
        ("plain.head", "belongs to an action log"),
        ("broken first.txt", "holds records"),
        ("torn first.jsonl", "holds records"),
        ("garbled.jsonl", "holds records"),
        ("notes.txt", "holds records"),
    ],
)
def test_report_never_overwrites_a_record(tmp_path: Path, name: str, words: str) -> None:
    tree = Tree(tmp_path)
    (tmp_path / "link").symlink_to(tree.log)
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.txt").write_bytes(tree.log.read_bytes())
    (tmp_path / "log.jsonl.torn").write_bytes(b"\0" * 50)
    (tmp_path / "broken first.txt").write_bytes(b"garbage\n" + tree.log.read_bytes())
    (tmp_path / "torn first.jsonl").write_bytes(tree.log.read_bytes()[30:])
    (tmp_path / "garbled.jsonl").write_bytes(b"\0" * 50)
    (tmp_path / "notes.txt").write_text(json.dumps({"file": "/x.jsonl", "head": "0" * 64}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(UsageError, match=words):
        write_view(["new"], str(tmp_path / name), logs=[str(tree.log), str(tmp_path / "plain")], state=tree.state)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_an_earlier_view_is_written_over(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    target = tmp_path / "calls.jsonl"
    for text in ('{"log":"/x.jsonl","content":"\\"prev\\":\\"' + "0" * 64 + '\\""}\n', "new\n"):
        tree.write(str(target), [text])
        assert target.read_text() == text


def test_a_page_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    target = tmp_path / "page.html"
    tree.write(str(target), ["old"])

    def failing() -> Iterator[str]:
        yield "half"
        assert target.read_text() == "old"
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_view(failing(), str(target), logs=[], state=tree.state)
    assert (target.read_text(), sorted(path.name for path in tmp_path.iterdir())) == ("old", ["log.jsonl", "page.html"])
    tree.write(str(target), ["neu \ud800"])
    assert target.read_text() == "neu \\ud800"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.forges_logs
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    peaks = []
    for count in (30, 230):
        steps = [step for number in range(1, count + 1) for step in one_call(number, "x" * 6_000)]
        path = write(tmp_path / f"{count}.jsonl", lines_of([started(), *steps, ended()]))
        logs = ChosenLogs([str(path)])
        standing = [judge_log(str(path), HeadsFile(""))]
        del steps
        tracemalloc.start()
        for _ in report(logs, standing, full=True):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 700_000


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    digits = colour.lstrip("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@all_rows("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    """Text at 4.5:1 on each ground that it may stand on, what is drawn at 3:1."""
    names = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", STYLE.split("prefers-color-scheme:dark")[scheme]))
    grounds = [names[name] for name in ("paper", "panel", "alarm-panel", "good-panel")]
    for name in ("ink", "quiet", "link", "alarm"):
        assert min(_contrast(names[name], ground) for ground in grounds) >= 4.5, name
    for name in ("unasked", "approved", "refused", "blocked", "never", "unknown", "unaccounted", "line"):
        assert _contrast(names[name], names["paper"]) >= 3, name


@all_rows(
    ("text", "wanted"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-02-29T12:30:45.123456Z", 1709209845123456000),
        ("2024-02-29T12:30:45.123456789Z", 1709209845123456789),
        ("2024-03-01T00:00:00+01:00", 1709247600000000000),
        ("2100-03-01T00:00:00Z", 4107542400000000000),
        ("1969-12-31T23:59:59Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("2024-13-01T00:00:00Z", None),
        ("2024-02-29 12:30:45", None),
        ("x" * 1000, None),
        (17, None),
        (None, None),
    ],
)
def test_timestamps(text: JsonValue, wanted: int | None) -> None:
    assert nanoseconds(text) == wanted


def test_the_monotonic_clock_counts_where_both_have_it() -> None:
    early, late = {"time": "2024-01-01T10:00:00Z"}, {"time": "2024-01-01T09:00:00Z"}
    assert seconds_between(early, late) == 0
    assert seconds_between({**early, "mono_ns": 5}, {**late, "mono_ns": 2_500_000_005}) == 2.5
    assert seconds_between(late, early) == 3600
    assert seconds_between({}, early) is None
    assert (whole_number(True), whole_number(10**30), finite(float("nan")), finite(10**30), finite(float("inf"))) == (
        None,
    ) * 5
    assert [duration(seconds) for seconds in (0.04, 12.3, 59.7, 3725, 90061)] == [
        "0.0 s",
        "12 s",
        "1 min 0 s",
        "1 h 2 min",
        "1 d 1 h",
    ]


@pytest.mark.forges_logs
def test_a_real_browser_shows_the_page_without_scripts(tmp_path: Path) -> None:
    """What a browser makes of a hostile page holds no element but ours; nothing is fetched: it has no network to fetch from."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no chromium on this machine: the page was only read by html.parser")
    lines = lines_of(list(hostile_steps("text")))
    page = tmp_path / "page.html"
    page.write_text(page_of(write(tmp_path / "hostile.jsonl", lines), full=True))
    done_ = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/profile",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        timeout=120,
        check=False,
    )
    dom = done_.stdout.decode()
    assert "</html>" in dom, done_.stderr[-500:]
    found = {tag.lower() for tag in re.findall(r"<([a-zA-Z][^\s>/]*)", dom)}
    assert found <= TAGS
