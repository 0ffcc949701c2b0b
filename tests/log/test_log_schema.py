"""The schema of the log's records: one table, in two languages that say the same, and that nothing can bring down."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_census import Census, PrintedSchema
from log_scene import DIGEST, filled, forged
from rows import all_rows
from sizes import examples

from harness.actions import JsonValue
from harness.errors import LogError
from harness.log.schema import OPEN_KINDS, RECORDS, VERSION, json_schema, problem
from harness.log.verify import verify
from harness.log.vocabulary import (
    ANSWERS,
    DECISIONS,
    DID_NOT_RUN,
    HOOK_ANSWERS,
    HOOK_EVENTS,
    PLACES_ANSWERS,
    RAN,
    STATUSES,
)

if TYPE_CHECKING:
    from pathlib import Path

    from program import Program

SCHEMA = json_schema()
PRINTED = PrintedSchema()
COMMON: Mapping[str, JsonValue] = {
    "v": VERSION, "seq": 0, "time": "2026-01-01T00:00:00.000000Z", "mono_ns": 0, "session": "0123456789ab", "prev": DIGEST,
}  # fmt: skip


def record(kind: str, fields: Mapping[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """Return a good record of a kind, with `fields` in it."""
    return {**COMMON, "kind": kind, **filled(kind, fields or {})}


def without(kind: str, name: str) -> dict[str, JsonValue]:
    made = record(kind)
    del made[name]
    return made


# --- the schema itself -----------------------------------------------------------------------------------------------


def test_the_program_prints_the_schema_and_it_is_a_json_schema(program: Program) -> None:
    done = program.run("schema", "log")
    printed = json.loads(done.out)
    assert (done.code, done.err, printed) == (0, "", SCHEMA)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_each_kind_has_its_alternative() -> None:
    """And no record fits another: its `kind` is that of one alternative alone."""
    assert [choice["$ref"] for choice in SCHEMA["oneOf"]] == [f"#/$defs/{kind}" for kind in RECORDS]  # type: ignore[index,union-attr,call-overload]
    for kind in RECORDS:
        assert PRINTED.whole.is_valid(record(kind)), kind
        assert problem(record(kind)) == "", kind
        alternative = SCHEMA["$defs"][kind]  # type: ignore[index,call-overload]
        assert alternative["properties"]["kind"] == {"const": kind}  # type: ignore[index,call-overload]
        assert "kind" in alternative["required"]  # type: ignore[index,call-overload,operator]


def test_every_reference_leads_somewhere() -> None:
    references: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                references.add(value["$ref"])
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(SCHEMA)
    parts = SCHEMA["$defs"]
    assert isinstance(parts, dict)
    assert references == {f"#/$defs/{part}" for part in parts}, "a part that is not there, or that nobody uses"


@all_rows(
    ("made", "words"),
    [
        (record("user_message", {"kind": "other"}), "is of the unknown kind 'other'"),
        (record("user_message", {"kind": None}), "is of a kind that is no text"),
        (without("user_message", "text"), "lacks the field text"),
        (without("intent", "policy_sha256"), "lacks the field policy_sha256"),
        (without("outcome", "session"), "lacks the field session"),
        (record("user_message", {"text": 1}), "does not fit its kind: text: must be a string, not a number"),
        (record("user_message", {"seq": -1}), "seq: must be a whole number of at least 0"),
        (record("user_message", {"seq": True}), "seq: must be a whole number of at least 0, not true or false"),
        (record("user_message", {"more": 1}), "has the unknown field 'more'"),
        (record("outcome", {"exit_code": "0"}), "exit_code: must be a whole number, not a string"),
        (record("outcome", {"status": "fine"}), "status: unknown 'fine'; did you mean failed?"),
        (record("outcome", {"after_sha256": DIGEST.upper()}), "after_sha256: must be a SHA-256 digest"),
        (record("outcome", {"after_sha256": DIGEST + "\n"}), "after_sha256: must be a SHA-256 digest"),
        (record("decision", {"facets": [{}]}), "facets: number 1: lacks the field facet"),
        (record("decision", {"facets": {}}), "facets: must be a list"),
        (record("decision", {"effects": []}), "effects: must be an object (network, unasked"),
        (record("intent", {"change": {"path": "x"}}), "change: lacks the field before_sha256"),
        (record("session_started", {"masked": {"known": -1}}), "masked: 'known': must be a whole number of at least 0"),
        (record("session_ended", {"counts": {"calls": 1.5}}), "counts: 'calls': must be a whole number of at least 0"),
        (record("approval_answered", {"seconds": "soon"}), "seconds: must be a number, not"),
        (record("approval_answered", {"seconds": True}), "seconds: must be a number, not"),
    ],
)
def test_record_problem_is_found_by_check_and_schema(made: dict[str, JsonValue], words: str) -> None:
    found = problem(made)
    assert words in found
    assert not PRINTED.fits(made)
    assert not PRINTED.whole.is_valid(made)


def test_only_the_first_record_of_a_session_takes_fields_of_any_name() -> None:
    for kind in RECORDS:
        made = record(kind, {"deployment": {"of": ["anything"]}})
        assert (problem(made) == "", PRINTED.fits(made)) == (kind in OPEN_KINDS,) * 2, kind


# --- the two agree ---------------------------------------------------------------------------------------------------

LEAVES: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    # 5.0 is an integer to JSON Schema, which knows one kind of number, and none to the table: that is no disagreement
    # about logs, in which no whole number is written like that.
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    st.text(max_size=8),
    st.sampled_from([DIGEST, DIGEST + "\n", "D" * 64, "ok", "auto", "yes", "\ud800", "\u0660" * 64]),
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EFFECTS: st.SearchStrategy[JsonValue] = st.fixed_dictionaries(
    {
        "network": st.booleans(),
        "unasked": st.booleans(),
        "granted": st.lists(st.text(max_size=4), max_size=2),
        "enforcement": st.text(max_size=4),
        "read": st.none() | st.lists(st.text(max_size=4), max_size=2),
        "write": st.none() | st.lists(st.text(max_size=4), max_size=2),
    },
    optional={"read_count": st.integers(0), "write_count": st.integers(0), "named": st.lists(st.text(max_size=4))},
)
PLACE_STATES: st.SearchStrategy[JsonValue] = st.fixed_dictionaries(
    {
        "kind": st.text(max_size=4),
        "mode": st.integers(0, 0o7777),
        "size": st.integers(0),
        "sha256": st.none() | st.just(DIGEST),
    }
)
TEXTS: st.SearchStrategy[JsonValue] = st.text(max_size=4)
COUNTS: st.SearchStrategy[JsonValue] = st.integers(0, 9)
FLAGS: st.SearchStrategy[JsonValue] = st.booleans()
PATH_STATES: st.SearchStrategy[JsonValue] = st.none() | st.fixed_dictionaries(
    {"kind": TEXTS},
    optional={
        **dict.fromkeys(("target", "unkept"), TEXTS),
        **dict.fromkeys(("mode", "size"), COUNTS),
        **dict.fromkeys(("sha256", "keyed_digest"), st.just(DIGEST)),
    },
)
PLAIN: Mapping[str, st.SearchStrategy[JsonValue]] = {
    "text": st.text(max_size=12),
    "count": st.integers(0, 2**70),
    "whole": st.integers(-(2**70), 2**70),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "json": LEAVES,
    "digest": st.text("0123456789abcdef", min_size=64, max_size=64),
    "effects": EFFECTS,
    "policy_file": st.fixed_dictionaries(
        {
            "layer": st.text(max_size=4),
            "path": st.text(max_size=4),
            "sha256": st.just(DIGEST),
            "trusted": st.booleans(),
        },
        optional={"text": st.text(max_size=4)},
    ),
    "facet": st.fixed_dictionaries({name: st.text(max_size=4) for name in ("facet", "kind", "decision", "by")}),
    "change": st.fixed_dictionaries(
        {
            "path": st.text(max_size=4),
            "before_sha256": st.none() | st.just(DIGEST),
            "after_sha256": st.just(DIGEST),
            "before_mode": st.none() | st.integers(0, 0o777),
        }
    ),
    "connection": st.fixed_dictionaries(
        {
            "host": st.text(max_size=4),
            "port": st.integers(0, 65535),
            "allowed": st.booleans(),
            "times": st.integers(0),
            "sent": st.integers(0),
            "received": st.integers(0),
        },
        optional={"address": st.text(max_size=4), "why_not": st.text(max_size=4)},
    ),
    "place": st.fixed_dictionaries(
        {
            "path": st.text(max_size=4),
            "how": st.text(max_size=4),
            "before": st.none() | PLACE_STATES,
            "after": st.none() | PLACE_STATES,
            "is_kept": st.booleans(),
        }
    ),
    "asked_field": st.fixed_dictionaries({"name": st.text(max_size=4)}, optional={"value": st.text(max_size=4)}),
    "picture": st.fixed_dictionaries(
        {"sha256": st.just(DIGEST), "media_type": st.text(max_size=4)}
        | {name: st.integers(0, 9_000) for name in ("width", "height", "size")}
    ),
    "told_tool": st.fixed_dictionaries({name: st.text(max_size=4) for name in ("name", "description", "parameters")}),
    "agent_call": st.fixed_dictionaries(
        {name: st.text(max_size=4) for name in ("tool", "mode", "subagent", "cwd")} | {"event_sha256": st.just(DIGEST)}
    ),
    "unmoved_place": st.fixed_dictionaries({name: st.text(max_size=4) for name in ("path", "why")}),
    "message": st.fixed_dictionaries({"role": st.text(max_size=4), "content": st.text(max_size=4)}),
    "asked": st.fixed_dictionaries(
        {
            "question": st.text(max_size=4),
            "answer": st.sampled_from("yes no stop halt nobody".split()),
            "by": st.text(max_size=4),
            "words": st.text(max_size=4),
            "seconds": st.floats(0, 1e6),
        }
    ),
    "file_changes": st.fixed_dictionaries(
        dict.fromkeys(("added", "changed", "removed", "modes", "links", "began_ns", "ended_ns"), COUNTS),
        optional={
            "paths": st.lists(st.fixed_dictionaries({"path": TEXTS, "before": PATH_STATES, "after": PATH_STATES})),
            "list_sha256": st.just(DIGEST),
            "left_out": st.lists(
                st.fixed_dictionaries({"path": TEXTS, "reason": TEXTS, "size": COUNTS, "is_changed": FLAGS})
            ),
            "problem": TEXTS,
            "history_changed": FLAGS,
        },
    ),
    "origin": st.fixed_dictionaries({"session": st.text(max_size=4), "records": st.integers(0)}),
}


def strategy_for(word: str) -> st.SearchStrategy[JsonValue]:
    """Return what makes good values of a type of the table."""
    if word.endswith("|null"):
        return st.none() | strategy_for(word.removesuffix("|null"))
    if word.startswith("one of "):
        return st.sampled_from(word.split()[2:])
    if word.startswith("list of "):
        return st.lists(strategy_for(word.removeprefix("list of ")), max_size=3)
    if word.startswith("object of "):
        return st.dictionaries(st.text(max_size=8), strategy_for(word.removeprefix("object of ")), max_size=3)
    return PLAIN[word]


@st.composite
def good_records(draw: st.DrawFn) -> dict[str, JsonValue]:
    """Make a record that fits, with any of the fields that its kind may have."""
    kind = draw(st.sampled_from(list(RECORDS)))
    made: dict[str, JsonValue] = {**COMMON, "kind": kind}
    for name, word in RECORDS[kind].items():
        if not name.endswith("?") or draw(st.booleans()):
            made[name.removesuffix("?")] = draw(strategy_for(word))
    if draw(st.booleans()):
        made["masked"] = draw(strategy_for("object of count"))
    return made


@st.composite
def spoiled_records(draw: st.DrawFn) -> dict[str, JsonValue]:
    """Make a record of which one to three fields are gone, new, or hold anything at all, somewhere in their depth too."""
    made: dict[str, JsonValue] = json.loads(json.dumps(draw(good_records())))
    for _ in range(draw(st.integers(1, 3))):
        place: dict[str, JsonValue] | list[JsonValue] = made
        while draw(st.booleans()):
            items = place.values() if isinstance(place, dict) else place
            inner = [item for item in items if isinstance(item, dict | list) and item]
            if not inner:
                break
            place = draw(st.sampled_from(inner))
        if isinstance(place, list):
            place[draw(st.integers(0, len(place) - 1))] = draw(VALUES)
            continue
        name = draw(st.sampled_from([*place, "more", ""]) if place else st.just("more"))
        if name in place and draw(st.booleans()):
            del place[name]
        elif place is not made or name != "v":  # its value is not the table's to check
            place[name] = draw(VALUES)
    return made


@settings(max_examples=examples(800), deadline=None)
@given(good_records())
def test_every_record_that_the_table_describes_fits_both(made: dict[str, JsonValue]) -> None:
    assert problem(made) == ""
    assert PRINTED.fits(made)


@settings(max_examples=examples(1200), deadline=None)
@given(spoiled_records())
def test_the_table_and_the_json_schema_agree_on_spoiled_records(made: dict[str, JsonValue]) -> None:
    found = problem(made)
    assert (found == "") == PRINTED.fits(made), found
    assert len(found) < 500


def test_spoiled_records_are_of_both_sorts() -> None:
    """What the two agree on is not only that everything is wrong."""
    found: set[bool] = set()

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(spoiled_records())
    def look(made: dict[str, JsonValue]) -> None:
        found.add(problem(made) == "")

    look()
    assert found == {True, False}


# --- hostile records -------------------------------------------------------------------------------------------------


def deep(levels: int, *, of: str) -> JsonValue:
    value: JsonValue = "bottom"
    for _ in range(levels):
        value = [value] if of == "lists" else {"x": value}
    return value


HOSTILE: Mapping[str, Callable[[], JsonValue]] = {
    "deep lists": lambda: deep(100_000, of="lists"),
    "deep objects": lambda: deep(100_000, of="objects"),
    "8 MB": lambda: "x" * 8_000_000,
    "a long key": lambda: {"k" * 1_000_000: 1},
    "many keys": lambda: {str(number): number for number in range(50_000)},
    "a surrogate": lambda: "\ud800",
    "a huge number": lambda: 10**4000,
    "not a number": lambda: math.nan,
    "infinity": lambda: -math.inf,
    "nothing": lambda: None,
}


@all_rows("made", HOSTILE)
def test_schema_check_survives_any_value_with_a_short_message(made: Callable[[], JsonValue]) -> None:
    """In each field of each kind, as a kind, and as the name of a field."""
    value = made()
    for kind in RECORDS:
        for name in (*COMMON, "kind", "masked", "more", *RECORDS[kind]):
            assert len(problem(record(kind, {name.removesuffix("?"): value}))) < 500
    name = value if isinstance(value, str) else "x"
    assert len(problem(record("user_message", {name: 1}))) < 500
    assert problem(record("user_message", {"kind": value})) != ""


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.text(max_size=12) | st.sampled_from(list(COMMON)), VALUES, max_size=8))
def test_the_check_is_total(made: dict[str, JsonValue]) -> None:
    assert problem(made) != ""
    assert len(problem(made)) < 500
    assert not PRINTED.fits(made)


@pytest.mark.forges_logs
@all_rows("made", HOSTILE)
def test_hostile_record_breaks_the_log_at_its_line(tmp_path: Path, made: Callable[[], JsonValue]) -> None:
    """Whatever stands in a record of a log whose chain is right: verify says at which line it is, or takes it."""
    value = made()
    path = tmp_path / "log.jsonl"
    try:
        lines = forged([("session_started", {}), ("user_message", {"text": value}), ("session_ended", {})])
    except RecursionError:
        levels = "[" * 100_000 + "]" * 100_000
        lines = forged([("session_started", {}), ("user_message", {"text": "x"}), ("session_ended", {})])
        lines[1] = lines[1].replace(b'"text":"x"', b'"text":' + levels.encode())
    path.write_bytes(b"".join(lines))
    try:
        found = verify(str(path))
    except LogError as error:  # pragma: no cover - what must not happen, told in full
        raise AssertionError(f"a log that can be read was refused: {error}") from None
    assert found.broken_line == (None if isinstance(value, str) else 2)
    assert len(found.problem) < 500


# --- every record that the suite writes ------------------------------------------------------------------------------


@pytest.mark.forges_logs
def test_census_finds_unfit_records(tmp_path: Path) -> None:
    """The check that runs after each test: it sees a record that does not fit, and none beyond a break of the chain."""
    good = forged([("session_started", {}), ("user_message", {}), ("session_ended", {})])
    bad = forged([("session_started", {}), ("user_message", {"text": 1}), ("session_ended", {})])
    cut = [good[0], b"{}\n", bad[1], good[2]]
    torn = [*good[:2], bad[1][:-1]]
    for name, lines in (("good", good), ("bad", bad), ("cut", cut), ("torn", torn), ("other", [b"{}\n"])):
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "folder").mkdir()
    census = Census()
    assert [problem.rpartition("/")[2] for problem in census.problems(str(tmp_path))] == [
        "bad.jsonl:2: does not fit its kind: text: must be a string, not a number",
    ]
    assert (census.logs, census.records) == (4, 3 + 2 + 1 + 2)
    assert "tried on 8" in census.told()


def test_the_fixture_is_there_and_counts(request: pytest.FixtureRequest) -> None:
    """The census belongs to every test with a folder of its own."""
    assert "every_record_fits_the_schema" in request.fixturenames


def test_the_words_of_records_are_these() -> None:
    """A log of an older version has these words: a value that is renamed or dropped makes a new version."""
    ran, did_not_run = "ok failed timeout interrupted crashed", "invalid denied blocked not_run"
    assert " ".join(DECISIONS) == "auto confirm deny block"
    assert " ".join(ANSWERS) == "yes no stop halt edit nobody"
    assert " ".join(PLACES_ANSWERS) == "put_back keep revoke nobody"
    assert (" ".join(RAN), " ".join(DID_NOT_RUN), " ".join(STATUSES)) == (ran, did_not_run, f"{ran} {did_not_run}")
    assert " ".join(HOOK_EVENTS) == "before-call after-call session-start session-end before-answer"
    assert " ".join(HOOK_ANSWERS) == "nothing confirm deny block"
