"""Calls as a log tells of them: reading, joining, and what each question makes of the records, without a program."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from rows import all_rows

from harness.actions import JsonValue
from harness.app.audit.list import sessions_of
from harness.app.audit.show import CallFilter
from harness.audit.calls import CALL_KINDS, Fate, Joiner, LoggedCall, logged_calls, number, text, word
from harness.audit.logged_changes import (
    FileOnDisk,
    FoundChanges,
    Image,
    LoggedChange,
    OnDisk,
    changed_files,
    file_on_disk,
    found_changes,
    undone_paths,
)
from harness.log.order import LogRecord
from harness.log.reader import records
from harness.plugins.insight.questions import (
    LoggedRefusal,
    OpenSession,
    RefusalCounts,
    Refuser,
    UnknownCall,
    open_ends,
    questions,
    refusals,
)
from harness.plugins.insight.stats import QuestionCount

Fields = dict[str, JsonValue]
OF_CALLS = ("call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome")


def record(kind: str, call: JsonValue = 1, session: str = "s", **fields: JsonValue) -> LogRecord:
    return {"kind": kind, "session": session, "time": "2024-05-01T10:00:00.000000Z", "call": call, **fields}


def write(path: Path, lines: Sequence[str]) -> str:
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def line(**fields: JsonValue) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


# reading


def test_only_lines_of_the_wanted_kinds_are_parsed(tmp_path: Path) -> None:
    """A text that spells a kind is no kind; an object that has one is sorted out."""
    wanted = line(kind="intent", session="s", time="t", z=1)
    spelled = line(kind="user_message", session="s", text='"kind":"intent","', time="t")
    nested = line(facets=[{"kind": "intent", "z": 1}], kind="decision", session="s", time="t")
    path = write(tmp_path / "log", [wanted, spelled, nested])
    assert [one["kind"] for one in records(path, {"intent"})] == ["intent"]
    assert [one["kind"] for one in records(path)] == ["intent", "user_message", "decision"]


@all_rows(
    "bad",
    [
        pytest.param("x", id="no JSON"),
        pytest.param("[1]", id="no object"),
        pytest.param('{"kind":"intent","session":1,"time":""}', id="a session that is no text"),
        pytest.param('{"kind":"intent","session":"s"}', id="no time"),
        pytest.param('{"kind":"intent","session":"s","time":"","x":' + "[" * 100_000 + "]" * 100_000 + "}", id="deep"),
        pytest.param(
            '{"kind":"intent","session":"s","time":"","x":' + "9" * 5_000 + "}", id="a number that is too long"
        ),
        pytest.param('{"kind":"intent","session":"é","time":""}', id="not ASCII"),
    ],
)
def test_reading_stops_at_an_invalid_record_and_names_its_line(tmp_path: Path, bad: str) -> None:
    good = line(kind="intent", session="s", time="t", z=1)
    path = write(tmp_path / "log", [good, bad, good])
    stops: list[int] = []
    assert len(list(records(path, {"intent"}, stopped=stops.append))) == 1
    assert stops == [2]


def test_torn_last_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line(kind="limit", session="s", time="t") + "\n" + '{"kind":"lim')
    stops: list[int] = []
    assert len(list(records(str(path), stopped=stops.append))) == 1
    assert stops == [2]


@all_rows(("raw", "read"), [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("1e999", "1e999"), ("1.5", 1.5)])
def test_number_beyond_json_becomes_text(tmp_path: Path, raw: str, read: JsonValue) -> None:
    path = write(tmp_path / "log", [f'{{"kind":"limit","session":"s","time":"","x":{raw}}}'])
    (one,) = records(path)
    assert one["x"] == read


@all_rows(
    ("value", "as_number", "as_word"),
    [
        (1, 1, "1"),
        (2.5, 2.5, "2.5"),
        ("7", None, "7"),
        (True, None, "true"),
        (None, None, ""),
        ([1], None, "(not a text)"),
        ({}, None, "(not a text)"),
        (10**400, None, str(10**400)),
        (float("nan"), None, "nan"),
        (float("inf"), None, "inf"),
    ],
)
def test_a_value_of_any_make(value: JsonValue, as_number: float | None, as_word: str) -> None:
    assert (number({"x": value}, "x"), word(value), text({"x": value}, "x")) == (
        as_number,
        as_word,
        value if isinstance(value, str) else "",
    )


# joining


@all_rows(
    ("kinds", "status", "fate"),
    [
        (OF_CALLS, "ok", Fate.RAN),
        (OF_CALLS, "crashed", Fate.RAN),
        (("call_proposed", "decision", "outcome"), "denied", Fate.REFUSED),
        (("call_proposed", "decision", "outcome"), "blocked", Fate.REFUSED),
        (("call_proposed", "decision", "outcome"), "invalid", Fate.INVALID),
        (("call_proposed", "decision", "outcome"), "not_run", Fate.NOT_RUN),
        (("call_proposed", "decision", "intent"), "", Fate.UNKNOWN),
        (("call_proposed", "decision", "approval_asked"), "", Fate.OPEN),
        (("intent",), "", Fate.UNKNOWN),
    ],
)
def test_the_fate_of_a_call(kinds: Sequence[str], status: str, fate: Fate) -> None:
    made = [record(kind, status=status) if kind == "outcome" else record(kind) for kind in kinds]
    (call,) = logged_calls("log", made)
    assert (call.fate, call.number, [one["kind"] for one in call.records]) == (fate, "1", list(kinds))


def test_calls_of_interleaved_sessions_do_not_mix() -> None:
    made = [record("session_started", session=name, user=name) for name in "ab"]
    made += [record(kind, session=name) for kind in ("call_proposed", "decision", "outcome") for name in "ab"]
    assert [(call.session, call.user, len(call.records)) for call in logged_calls("log", made)] == [
        ("a", "a", 3),
        ("b", "b", 3),
    ]


@all_rows("odd", [None, [], {}, "x", 1.5, True])
def test_a_call_number_of_any_make_is_a_key(odd: JsonValue) -> None:
    (call,) = logged_calls("log", [record("call_proposed", odd), record("outcome", odd, status="ok")])
    assert call.number == word(odd)


def test_remaining_calls_of_a_session_are_yielded_once() -> None:
    joiner = Joiner("log")
    for name in "ab":
        assert joiner.take(record("intent", session=name)) is None
    assert [call.session for call in joiner.rest("a")] == ["a"]
    assert [call.session for call in joiner.rest()] == ["b"]
    assert list(joiner.rest()) == []


class Counted(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    compared: ClassVar[int] = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, str(other))


def test_open_ends_are_found_in_linear_time() -> None:
    count = 400
    names = [Counted(f"{number:012x}") for number in range(count)]
    made = [record(kind, session=name) for name in names for kind in ("session_started", "intent")]
    made += [record("session_ended", session=name) for name in names[: count // 2]]
    Counted.compared = 0
    assert len(list(open_ends("log", made))) == count + count // 2
    assert Counted.compared <= 20 * count


# questions


def asked(
    answers: Sequence[tuple[str, float]], *, by: str = "person", log: str = "log", mono: bool = True
) -> list[LoggedCall]:
    """Return calls that were answered at these seconds."""
    calls = []
    for place, (answer, at) in enumerate(answers):
        more: Fields = {"mono_ns": int(at * 1e9)} if mono else {}
        time = f"2024-05-01T10:00:{at:09.6f}Z"
        answered: Fields = {"answer": answer, "by": by, "seconds": 1.0, **more, "time": time}
        calls.append(
            LoggedCall(
                log=log,
                session="s",
                number=str(place),
                started={},
                asked={"time": time, **more},
                answered={**record("approval_answered"), **answered},
            )
        )
    return calls


@all_rows(
    ("answers", "marked"),
    [
        pytest.param([("yes", 0), ("yes", 5), ("yes", 10)], "111", id="just within"),
        pytest.param([("yes", 0), ("yes", 5), ("yes", 10.5)], "000", id="just not"),
        pytest.param([("yes", 0), ("yes", 1)], "00", id="two are none"),
        pytest.param([("yes", 0), ("no", 1), ("yes", 2), ("stop", 3), ("yes", 4)], "10101", id="others between"),
        pytest.param([("yes", n * 4) for n in range(6)], "111111", id="one after another, each in some ten seconds"),
        pytest.param([("yes", 0), ("yes", 1), ("yes", 2), ("yes", 40)], "1110", id="and one later"),
        pytest.param([("yes", 0), ("yes", 9), ("yes", 10), ("yes", 11)], "1111", id="windows overlap"),
        pytest.param([("no", 0), ("no", 1), ("no", 2)], "000", id="no is no burst"),
    ],
)
@all_rows("mono", [True, False])
def test_bursts(answers: Sequence[tuple[str, float]], marked: str, mono: bool) -> None:
    found = list(questions(asked(answers, mono=mono)))
    assert "".join(str(int(one.in_burst)) for one in found) == marked
    assert [one.call.number for one in found] == [str(n) for n in range(len(answers))]


def test_bursts_are_of_people_and_of_one_log() -> None:
    quick = [("yes", 0.0), ("yes", 1.0), ("yes", 2.0)]
    assert not any(one.in_burst for one in questions(asked(quick, by="script")))
    two = asked(quick[:2]) + asked(quick[2:], log="other")
    assert not any(one.in_burst for one in questions(two))


@all_rows(("seconds", "by", "typed", "quick"), [
    (0.999, "person", False, True), (1.0, "person", False, False), (0.1, "script", False, False),
    (0.0, "nobody", False, False), ("0", "person", False, False), (None, "person", False, False), (0.2, "hook", False, True),
    (0.0, "person", True, False), (0.1, "client", False, False), (0.1, "approver", False, False),
])  # fmt: skip
def test_under_one_second(seconds: JsonValue, by: str, typed: bool, quick: bool) -> None:
    answered = record("approval_answered", answer="yes", by=by, seconds=seconds)
    proposed = record("call_proposed", **({"by": "person"} if typed else {}))
    call = LoggedCall(
        log="l",
        session="s",
        number="1",
        started={},
        proposed=proposed,
        asked=record("approval_asked"),
        answered=answered,
    )
    assert call.is_quick is quick
    counted = QuestionCount()
    counted.take(call)
    assert counted.quick == quick


# refusals


def refused(
    told: str, *, facet: str = "cat .env", reason: str = "No.", answer: str = "", decision: str = "deny"
) -> LoggedRefusal:
    call = LoggedCall(
        log="l",
        session="s",
        number="1",
        started={},
        decision=record("decision", decision=decision, reason=reason, facets=[{"facet": facet}]),
        answered=record("approval_answered", answer=answer, by="person") if answer else {},
        outcome=record("outcome", status="denied", content=told),
    )
    return LoggedRefusal(call=call)


DETOUR = " Do not retry this call as it is, and do not get at what was refused another way."


@all_rows(
    ("told", "facet", "hint"),
    [
        (f"Denied by rule x (f:1): No. Part: cat .env. Hint: Ask.{DETOUR}", "cat .env", "Ask."),
        ("Blocked by rule x (f:1): No. Part: cat .env. Hint: Ask. The run stops here.", "cat .env", "Ask."),
        (f"Denied by rule x (f:1): No. Part: cat .env.{DETOUR}", "cat .env", ""),
        (f"Denied by rule x (f:1): No. Part: a. Hint: evil.{DETOUR}", "a. Hint: evil", ""),
        (f"Denied by rule x (f:1): No. Part: a. Hint: evil. Hint: Ask.{DETOUR}", "a. Hint: evil", "Ask."),
        (f"Denied by rule x (f:1): No. Part: `cat .env`. Hint: Ask.{DETOUR}", "cat .env", "Ask."),
        ("Blocked by rule x (f:1): No. Part: `rm ..`. The run stops here.", "rm ..", ""),
        (f"Denied by rule x (f:1): No. Part: `a`. Hint: evil`. Hint: Ask.{DETOUR}", "a`. Hint: evil", "Ask."),
        ("what is this", "cat .env", ""),
        ("", "", ""),
    ],
)
def test_hint_is_taken_from_the_refusal_text(told: str, facet: str, hint: str) -> None:
    assert refused(told, facet=facet).hint == hint


@all_rows(
    ("answer", "decision", "refuser"),
    [
        ("", "deny", Refuser.POLICY),
        ("", "block", Refuser.POLICY),
        ("no", "confirm", Refuser.PERSON),
        ("stop", "confirm", Refuser.PERSON),
        ("nobody", "confirm", Refuser.NOBODY),
        ("edit", "confirm", Refuser.EDIT),
        ("", "auto", Refuser.UNSAID),
        ("maybe", "confirm", Refuser.UNSAID),
    ],
)
def test_refuser_follows_from_decision_and_answer(answer: str, decision: str, refuser: Refuser) -> None:
    assert refused("", answer=answer, decision=decision).refuser is refuser


def test_calls_that_did_not_run_are_counted_by_reason() -> None:
    made = [
        record("outcome", call, status=status)
        for call, status in enumerate(("denied", "blocked", "invalid", "not_run", "ok", "failed"))
    ]
    counts = RefusalCounts()
    assert len(list(refusals(logged_calls("log", made), counts, invalid=False))) == 2
    assert (sum(counts.refused.values()), counts.invalid, counts.never_came) == (2, 1, 1)


# endings


def test_open_ends_are_found() -> None:
    made = [
        record("session_started", session="a"),
        record("intent", 1, "a"),
        record("call_proposed", 2, "a"),
        record("session_started", session="b"),
        record("intent", 1, "b"),
        record("session_ended", session="b"),
    ]
    unknown_b, unknown_a, session = open_ends("log", made)
    assert isinstance(unknown_a, UnknownCall)
    assert isinstance(unknown_b, UnknownCall)
    assert isinstance(session, OpenSession)
    assert (unknown_b.call.session, unknown_a.call.session, session.started["session"]) == ("b", "a", "a")
    assert [call.number for call in session.not_begun] == ["2"]


@all_rows(
    ("effects", "paths"),
    [
        ({"write": ["/a"], "granted": ["."]}, ["/a", "."]),
        ({"write": [], "granted": []}, []),
        ({"write": None, "granted": ["."]}, None),
        ("odd", None),
        ({"write": [1, "/a"], "granted": "odd"}, ["/a"]),
    ],
)
def test_unknown_call_lists_its_writable_paths(effects: JsonValue, paths: list[str] | None) -> None:
    (one,) = open_ends("log", [record("intent", effects=effects)])
    assert isinstance(one, UnknownCall)
    assert one.could_write == paths


# changes

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def change(call: int, before: str | None, after: str, *, time: str = "1", session: str = "s") -> list[LogRecord]:
    mode = None if before is None else 0o644
    made: Fields = {"path": "/w/a", "before_sha256": before, "after_sha256": after, "before_mode": mode}
    told: Fields = {"changed_path": "/w/a", "before_sha256": before, "after_sha256": after}
    outcome = record("outcome", call, session, tool="write_file", status="ok", **told)
    return [
        record("decision", call, session, decision="auto", by="rule x (f:1)"),
        record("intent", call, session, tool="write_file", change=made),
        {**outcome, "time": time},
    ]


def changes_of(*made: list[LogRecord], undone: Sequence[tuple[str, str, str]] = (), kept: bool = True) -> FoundChanges:
    every = (one for some in made for one in some)
    return found_changes(logged_calls("log", every), is_kept=lambda sha256, workspace: kept, undone=undone)


@all_rows(
    ("made", "now", "undone", "on_disk"),
    [
        ([change(1, A, B)], B, (), OnDisk.AS_LEFT),
        ([change(1, A, B)], A, (), OnDisk.AS_BEFORE),
        ([change(1, A, B), change(2, B, C)], A, (), OnDisk.AS_BEFORE),
        ([change(1, A, B)], C, (), OnDisk.CHANGED),
        ([change(1, A, B)], None, (), OnDisk.GONE),
        ([change(1, None, B)], None, (), OnDisk.GONE),
        ([change(1, None, B)], None, (("s", "1", "/w/a"),), OnDisk.AS_BEFORE),
        ([change(1, A, B), change(2, B, A)], A, (), OnDisk.AS_LEFT),
    ],
)
def test_changed_file_is_compared_with_the_disk(
    made: list[list[LogRecord]], now: str | None, undone: Sequence[tuple[str, str, str]], on_disk: OnDisk
) -> None:
    found = changes_of(*made, undone=undone)
    (file,) = changed_files(found.changes, lambda _: FileOnDisk(sha256=now))
    assert file.on_disk is on_disk


def test_changes_are_ordered_by_time_and_log() -> None:
    """Two logs by time; within a session as the log has them, also where its clock went back."""
    found = changes_of(
        change(1, A, B, time="2024-01-01T10"), change(2, B, C, time="2024-01-01T08"),
        change(1, C, A, time="2024-01-01T09", session="t"),
    )  # fmt: skip
    (file,) = changed_files(found.changes, lambda _: FileOnDisk(sha256=None))
    assert [one.place for one in file.changes] == [("t", "1"), ("s", "1"), ("s", "2")]


def test_undoable_changes_need_an_image() -> None:
    created, kept = (changes_of(change(1, before, B)).changes[0] for before in (None, A))
    (lost,) = changes_of(change(1, A, B), kept=False).changes
    told: list[tuple[Image, bool, bool | None]] = [(c.image, not c.why_not, c.created) for c in (created, kept, lost)]
    assert told == [(Image.NONE, True, True), (Image.KEPT, True, False), (Image.MISSING, False, False)]


@all_rows(
    "odd",
    [[], 3, "x", {"path": []}, {"path": "../a", "before_sha256": None, "after_sha256": A, "before_mode": None}, {}],
)
def test_a_change_that_makes_no_sense_cannot_be_undone(odd: JsonValue) -> None:
    made = record("intent", tool="write_file", change=odd)
    (one,) = changes_of([made]).changes
    assert isinstance(one, LoggedChange)
    assert one.why_not != ""


def test_commands_that_could_write_are_named() -> None:
    def ran(call: int, write: JsonValue) -> list[LogRecord]:
        effects: Fields = {"write": write, "granted": [], "enforcement": "landlock"}
        return [record("intent", call, tool="bash", effects=effects), record("outcome", call, status="ok")]

    found = changes_of(ran(1, []), ran(2, ["/a"]), ran(3, None))
    assert ([one.fields["call"] for one in found.commands], found.changes) == ([2, 3], ())


def test_undone_paths_are_the_restored_ones() -> None:
    results: tuple[JsonValue, ...] = ("restored", "removed", "refused", [])
    made = [record("restored", 2, of_session="s", path="/w/a", result=result) for result in results]
    assert list(undone_paths(made)) == [("s", "2", "/w/a"), ("s", "2", "/w/a")]


# what lies on the disk


def test_look(tmp_path: Path) -> None:
    plain, folder, pipe, link = (tmp_path / name for name in ("plain", "folder", "pipe", "link"))
    plain.write_bytes(b"one\n")
    folder.mkdir()
    os.mkfifo(pipe)
    link.symlink_to(plain)
    assert file_on_disk(str(plain)).sha256 == "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
    assert file_on_disk(str(tmp_path / "none")) == FileOnDisk()
    assert file_on_disk(str(plain / "below")) == FileOnDisk()
    for path in (folder, pipe, link):
        assert file_on_disk(str(path)) == FileOnDisk(problem="not a regular file")
    for odd in ("relative", "/nul\0", "/\ud800", "/" + "x" * 5_000):
        assert file_on_disk(odd).problem != ""


# filters and sessions


def judged(**fields: JsonValue) -> LoggedCall:
    return LoggedCall(log="l", session="s", number="1", started={}, decision={**record("decision"), **fields})


@all_rows(
    ("wanted", "fields", "takes"),
    [
        ({"path": "b/c"}, {"effects": {"write": ["/a/b/c.txt"]}}, True),
        ({"path": "b/c"}, {"effects": {"read": ["/a/b"], "write": [["b/c"]]}}, False),
        ({"path": "x"}, {"facets": [{"facet": "read x", "kind": "PathAccess"}]}, True),
        ({"path": "read"}, {"facets": [{"facet": "read x", "kind": "PathAccess"}]}, False),
        ({"path": "x"}, {"facets": [{"facet": "echo x", "kind": "Command"}]}, False),
        ({"rule": "tests"}, {"rule": "tests"}, True),
        ({"rule": "built-in"}, {"by": "built-in delete-tree"}, True),
        ({"rule": "tests"}, {"by": "default", "facets": [{"by": "rule tests (f:1)"}]}, True),
        ({"rule": "tests"}, {"by": [], "facets": 3}, False),
        ({"answer": "unanswered"}, {}, False),
        ({"since": "2024-05-01T10:00:00.000000Z", "until": "2024-05-01T10:00:00.000000Z"}, {}, True),
        ({"since": "2024-05-01T10:00:00.000001Z"}, {}, False),
        ({}, {}, True),
    ],
)
def test_filters(wanted: dict[str, str], fields: Fields, takes: bool) -> None:
    chosen = CallFilter(**wanted)
    assert (chosen.takes(judged(**fields)), chosen.is_set) == (takes, bool(wanted))


def test_sessions_are_counted_apart(tmp_path: Path) -> None:
    def put(kind: str, session: str, **more: JsonValue) -> str:
        return line(kind=kind, session=session, time="t", v=1, **more)

    path = write(
        tmp_path / "log",
        [
            put("session_started", "a"),
            put("session_started", "b"),
            *(put("call_proposed", name) for name in "aab"),
            put("outcome", "a", status="ok", content='"status":"denied"'),
            put("outcome", "a", status="denied"),
            put("approval_asked", "b"),
            put("session_ended", "b", stop="completed"),
        ],
    )
    assert [(one.calls, one.question_count, one.refused, one.state) for one in sessions_of(path)] == [
        (2, 0, 1, "open"),
        (1, 1, 0, "ended"),
    ]
    assert {"session_started", "outcome"} <= CALL_KINDS
