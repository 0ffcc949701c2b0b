"""What a final answer must be: schemas read strictly, answers held against them, nothing fetched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rows import all_rows
from work import assert_linear

from harness.app.run.answer_schema import MAX_ANSWER_CHARACTERS, MAX_DEPTH, MAX_PLACES, AnswerSchema
from harness.errors import UsageError

POINT = {
    "type": "object",
    "required": ["x"],
    "properties": {"x": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}},
    "additionalProperties": False,
}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def made(folder: Path, schema: object) -> AnswerSchema:
    path = folder / "schema.json"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return AnswerSchema(str(path), seconds=1000.0)


FITS = {
    "plain": '{"x": 1}',
    "with blanks": ' \n{"x": 1}\n\n',
    "in a fence": '```\n{"x": 1}\n```',
    "in a fence for JSON": '```json\n{\n  "x": 1}\n```\n',
    "in a fence in capitals": '```JSON\n{"x": 1}\n```',
    "a fence within": '```json\n{"x": 1, "names": ["```", "\\"```"]}\n```',
    "a whole number as 1.0": '{"x": 1.0}',
    "a hostile text": '{"x": 1, "names": ["\\u001b[31m\\ud800"]}',
}
UNFIT = {
    "nothing": ("", "line 1, column 1: Expecting value"),
    "words before": ('Here it is: {"x": 1}', "line 1, column 1: Expecting value"),
    "words behind": ('{"x": 1} done', "line 1, column 10: Extra data"),
    "two values": ('{"x": 1}\n{"x": 2}', "line 2, column 1: Extra data"),
    "two fences": ('```json\n{"x": 1}\n```\n```json\n{"x": 2}\n```', "line 1, column 1: Expecting value"),
    "a fence in words": ('So:\n```json\n{"x": 1}\n```', "line 1, column 1: Expecting value"),
    "a key twice": ('{"x": 1, "x": 2}', 'duplicate key "x"'),
    "NaN": ('{"x": NaN}', "NaN is not a JSON number"),
    "Infinity": ('{"x": -Infinity}', "-Infinity is not a JSON number"),
    "beyond all numbers": ('{"x": 1e999}', "a number is too large"),
    "endless digits": ('{"x": ' + "9" * 10_000 + "}", "too many digits"),
    "endless nesting": ("[" * 500_000, "nested too deeply"),
    "deep nesting": ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} levels"),
    "too long": ('"' + "a" * MAX_ANSWER_CHARACTERS + '"', "1,000,002 characters; at most 1,000,000"),
    "another type": ('{"x": "one"}', "- at /x: 'one' is not of type 'integer'"),
    "something missing": ("{}", "- at the top: 'x' is a required property"),
    "something else": ('{"x": 1, "y": 2}', "('y' was unexpected)"),
    "deep inside": ('{"x": 1, "names": ["a", 2]}', "- at /names/1: 2 is not of type 'string'"),
    "a key with an escape": ('{"x": 1, "\\u001b[31m": 2}', "('\\x1b[31m' was unexpected)"),
}


@all_rows("text", FITS.values(), ids=FITS)
def test_an_answer_that_fits_is_delivered_bare(tmp_path: Path, text: str) -> None:
    check = made(tmp_path, POINT)
    assert check.problem(text) == ""
    bare = check.bare(text)
    assert (json.loads(bare)["x"], bare in text, bare == bare.strip()) == (1, True, True)


@all_rows(("text", "why"), UNFIT.values(), ids=UNFIT)
def test_problem_text_names_the_reason(tmp_path: Path, text: str, why: str) -> None:
    problem = made(tmp_path, POINT).problem(text)
    assert why in problem
    assert len(problem) < 1_000
    assert problem.replace("\n", "").isprintable()


def test_problem_names_the_first_places_and_says_so(tmp_path: Path) -> None:
    check = made(tmp_path, POINT)
    problem = check.problem(json.dumps({"x": 1, "names": [*range(10_000)]}))
    assert (problem.count("\n- at /names/"), problem.endswith("(only the first 10 places are named)")) == (
        MAX_PLACES,
        True,
    )
    assert "only" not in check.problem(json.dumps({"x": 1, "names": [*range(MAX_PLACES)]}))


def test_long_value_is_cut_but_its_problem_is_not(tmp_path: Path) -> None:
    problem = made(tmp_path, POINT).problem(json.dumps({"x": "a" * 100_000}))
    assert problem.endswith("is not of type 'integer' [schema: /properties/x/type]")
    assert len(problem) < 500


def test_problem_describes_the_nearest_alternative(tmp_path: Path) -> None:
    schema = {"anyOf": [{"type": "null"}, POINT]}
    assert "at /x: 'one' is not of type 'integer'" in made(tmp_path, schema).problem('{"x": "one"}')


def test_instructions_contain_the_schema(tmp_path: Path) -> None:
    instructions = made(tmp_path, {**POINT, "title": "Pünkt"}).instructions
    assert json.loads(instructions.split("\n", 1)[1]) == {**POINT, "title": "Pünkt"}


DIALECTS = {
    "2020-12 unnamed": ({"prefixItems": [{"type": "string"}]}, "[1]"),
    "2020-12": (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]},
        "[1]",
    ),
    "2019-09": ({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{"type": "string"}]}, "[1]"),
    "draft 7": ({"$schema": DRAFT_7, "items": [{"type": "string"}]}, "[1]"),
    "draft 7, definitions": (
        {"$schema": DRAFT_7, "definitions": {"s": {"type": "string"}}, "items": {"$ref": "#/definitions/s"}},
        "[1]",
    ),
    "$defs": ({"$defs": {"s": {"type": "string"}}, "items": {"$ref": "#/$defs/s"}}, "[1]"),
    "an anchor": ({"$defs": {"s": {"$anchor": "t", "type": "string"}}, "items": {"$ref": "#t"}}, "[1]"),
    "an identity of its own": (
        {"$id": "https://a.example/s", "$defs": {"t": {"$id": "t", "type": "string"}}, "items": {"$ref": "t"}},
        "[1]",
    ),
    "a dynamic reference": (
        {"$dynamicAnchor": "n", "type": ["array", "string"], "items": {"$dynamicRef": "#n"}},
        "[[1]]",
    ),
    "a list of unlike things": ({"uniqueItems": True}, "[1, 2, 1.0]"),
}


@all_rows(("schema", "unfit"), DIALECTS.values(), ids=DIALECTS)
def test_schema_accepts_an_empty_list_and_rejects_an_unfit_answer(tmp_path: Path, schema: object, unfit: str) -> None:
    check = made(tmp_path, schema)
    assert (check.problem("[]"), check.problem(unfit) != "") == ("", True)


@all_rows("fits", ["[1, true, 0, false]", '[[1], ["1"], {"1": 1}]', "[1, 1.5]", '[{"a": 1}, {"a": true}]'])
def test_values_equal_only_in_python_are_different(tmp_path: Path, fits: str) -> None:
    assert made(tmp_path, {"uniqueItems": True}).problem(fits) == ""


NO_SCHEMAS = {
    "no JSON": ("{", "invalid JSON: line 1, column 2"),
    "a key twice": ('{"type": "object", "type": "array"}', 'invalid JSON: duplicate key "type"'),
    "a list": ("[]", "expected a schema (a JSON object)"),
    "true": ("true", "expected a schema (a JSON object)"),
    "a type that is none": ({"properties": {"a": {"type": "strin"}}}, "invalid schema: at /properties/a/type: "),
    "a pattern that is none": ({"pattern": "("}, "invalid schema: at /pattern: '(' is not a 'regex'"),
    "another dialect": (
        {"$schema": "https://a.example/x"},
        '$schema: "https://a.example/x" is not known; known are https',
    ),
    "a dialect that is no text": ({"$schema": 1}, "$schema: 1 is not known"),
    "an address that is none": ({"$id": "http://[", "$ref": "x"}, "unusable schema: ValueError: Invalid IPv6 URL"),
    "an address within that is none": (
        {"$defs": {"a": {"$id": "http://[", "$ref": "b"}}},
        "unusable schema: ValueError: Invalid IPv6 URL",
    ),
    "a place in a list that is none": ({"$ref": "#/allOf/x", "allOf": [{}]}, "unusable schema: ValueError: "),
    "a pattern too large": ({"pattern": "a{99999999999999999999}"}, "unusable schema: OverflowError: "),
    "a pattern too deep": ({"pattern": "(" * 50_000 + ")" * 50_000}, "or is nested too deeply"),
    "itself without end, not by a reference alone": ({"not": {"not": {"$ref": "#"}}}, "refers to itself without end"),
    "nothing there": ({"$ref": "#/$defs/x"}, '$ref "#/$defs/x" is not in the schema, and no schema is fetched'),
    "itself without end": ({"$ref": "#"}, "refers to itself without end"),
    "each other without end": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        "refers to itself without end",
    ),
    "too deep": ("[" * 100 + "]" * 100, "expected a schema"),
    "deep inside": ('{"not":' * 100 + "{}" + "}" * 100, "nested more than 64 levels deep"),
    "too deep for JSON": ('{"not":' * 20_000 + "{}" + "}" * 20_000, "nested too deeply"),
}


@all_rows(("schema", "why"), NO_SCHEMAS.values(), ids=NO_SCHEMAS)
def test_invalid_schema_is_refused_before_the_run_starts(tmp_path: Path, schema: object, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(tmp_path, schema)
    assert why in str(raised.value)
    assert len(str(raised.value)) < 1_000


@all_rows("name", ["nowhere", ".", "pipe", "bytes"])
def test_unreadable_schema_file_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b'{"title": "\xff"}')
    with pytest.raises(UsageError, match=r"cannot be read|is not UTF-8: byte 11"):
        AnswerSchema(str(tmp_path / name))


@all_rows("where", [("$ref",), ("properties", "a", "$ref"), ("$defs", "unused", "$ref"), ("items", "$dynamicRef")])
def test_schema_references_are_never_fetched(tmp_path: Path, where: tuple[str, ...]) -> None:
    """A reference to a server that would answer is refused when the schema is read, and no connection is made."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        reference: object = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for key in reversed(where):
            reference = {key: reference}
        with pytest.raises(UsageError, match="no schema is fetched"):
            made(tmp_path, reference)
        with pytest.raises(BlockingIOError):  # a connection would stand in the queue by now
            server.accept()


@all_rows("schema", [{"enum": [{"$ref": "nowhere"}]}, {"properties": {"$ref": {"type": "string"}}}])
def test_data_that_looks_like_a_reference_is_ignored(tmp_path: Path, schema: object) -> None:
    assert made(tmp_path, schema).problem('{"$ref": "nowhere"}') == ""


def test_a_schema_of_itself_takes_an_answer_of_any_depth_that_is_allowed(tmp_path: Path) -> None:
    tree = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}
    check = made(tmp_path, tree)
    assert check.problem("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH) == ""
    assert check.problem("[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH) != ""


def test_number_too_large_for_the_library_does_not_fit_the_schema(tmp_path: Path) -> None:
    problem = made(tmp_path, {"multipleOf": 0.5}).problem("1" + "0" * 400)
    assert problem == "It cannot be held against the schema: OverflowError: int too large to convert to float."


def test_too_deep_answer_is_reported_as_a_problem(tmp_path: Path) -> None:
    """The schema goes twenty-five levels down for each level of the answer: more than there is room for."""
    tree: object = {"items": {"$ref": "#"}}
    for _ in range(25):
        tree = {"allOf": [tree]}
    assert isinstance(tree, dict)
    check = made(tmp_path, tree)
    assert check.problem("[[[[1]]]]") == ""
    problem = check.problem("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert problem == "It is nested too deeply to be held against the schema."


def test_a_long_list_of_unlike_objects_is_compared(tmp_path: Path) -> None:
    check = made(tmp_path, {"uniqueItems": True})
    items = [{"a": number} for number in range(60_000)]
    assert check.problem(json.dumps(items, separators=(",", ":"))) == ""
    assert "item 60000 stands in the list" in check.problem(json.dumps([*items, items[-1]], separators=(",", ":")))


def test_a_list_of_unlike_objects_is_compared_in_steps_as_many_as_it_is_long(tmp_path: Path) -> None:
    check = made(tmp_path, {"uniqueItems": True})
    assert_linear(lambda size: json.dumps([{"a": number} for number in range(size)]), check.problem, 500)


WITHOUT_IT = """
import sys
sys.modules["jsonschema"] = None
from harness.app.run.answer_schema import AnswerSchema
from harness.errors import UsageError
try:
    AnswerSchema(sys.argv[1])
except UsageError as error:
    print(error)
"""


def test_missing_library_error_names_the_install_command(tmp_path: Path) -> None:
    """In a process of its own, to which the library is not there."""
    (tmp_path / "s").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_IT, str(tmp_path / "s")], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "--output-schema needs a library that is not installed: pip install 'permission-harness[schema]'\n"
    )


def test_a_pattern_that_finds_no_end_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "string", "pattern": "^(a+)+$"}')
    check = AnswerSchema(str(path), seconds=0.2)
    problem = check.problem('"' + "a" * 40 + '!"')
    assert problem == "Holding it against the schema took more than 0.2 seconds: a pattern in it finds no end."
    patient = AnswerSchema(str(path), seconds=1000.0)  # the run has less time than that
    assert patient.problem('"' + "a" * 40 + '!"', 0.3) == problem.replace("0.2", "0.3")
    assert patient.problem('"aaa"') == ""
