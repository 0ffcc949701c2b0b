"""JSON that is read strictly: what each of its readers takes, refuses, and says of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rows import all_rows
from work import assert_linear

from harness.actions import JsonValue
from harness.errors import ToolError
from harness.gate.arguments import parse_arguments
from harness.log.reader import parse_line
from harness.model import ToolSpec
from harness.models.cassette import MalformedError, read_header
from harness.text.strict_json import NotJsonError, is_deeper, read_line, read_one

REFUSED = {
    "nothing": ("", "column 1: Expecting value"),
    "two values": ("1 2", "column 3: Extra data"),
    "torn": ('{"a": ', "column 7: Expecting value"),
    "a key twice": ('{"a": 1, "a": 1}', 'duplicate key "a"'),
    "a key twice, written otherwise": ('{"a": 1, "\\u0061": 1}', 'duplicate key "a"'),
    "a key twice, inside": ('[{"b": {"\\u202e": 1, "\\u202e": 2}}]', 'duplicate key "\\u202e"'),
    "NaN": ("[NaN]", "NaN is not a JSON number"),
    "Infinity": ("[-Infinity]", "-Infinity is not a JSON number"),
    "a number that is too large": ("[1e400]", "a number is too large"),
    "endless digits": ("9" * 10_000, "a number has too many digits"),
    "endless nesting": ("[" * 200_000, "nested too deeply"),
}


@all_rows(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_text_without_a_single_value_is_refused_with_the_place(text: str, why: str) -> None:
    with pytest.raises(NotJsonError) as of_line:
        read_line(text.encode())
    assert str(of_line.value) == why
    with pytest.raises(NotJsonError) as of_text:
        read_one(text)
    assert str(of_text.value) == (f"line 1, {why}" if why.startswith("column") else why)


def test_places_are_those_of_a_text_and_of_a_line() -> None:
    with pytest.raises(NotJsonError, match=r"^line 2, column 3: Expecting value"):
        read_one("[1,\n  ]")
    with pytest.raises(NotJsonError, match=r"^byte 2 is not UTF-8"):
        read_line(b'["\xff"]')


VALUES: tuple[JsonValue, ...] = (None, True, -1, 2**70, 0.5, "\ud800\x00", [], {}, {"": [{"a": [None]}]})


@all_rows("value", VALUES)
def test_a_value_is_read_as_it_was_written(value: JsonValue) -> None:
    text = f" {json.dumps(value)}\n"
    assert (read_one(text), read_line(text.encode())) == (value, value)


def taken_by_log(text: str) -> bool:
    common = '"v": 1, "seq": 0, "kind": "k", "time": "", "session": "", "prev": "", "mono_ns": 0'
    return parse_line(f'{{{common}, "x": {text or " "}}}'.encode()) is not None


def taken_by_tool(text: str) -> bool:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    try:
        parse_arguments(f'{{"x": {text or " "}}}', ToolSpec(name="t", description="", parameters=schema))
    except ToolError:
        return False
    return True


def taken_by_cassette(text: str) -> bool:
    line = f'{{"cassette": 1, "harness": "1", "model": "m", "api": "", "workspace": {text or " "}}}'
    try:
        read_header(line.encode())
    except MalformedError as error:
        return "invalid JSON" not in str(error)
    return True


@all_rows("taken", [taken_by_log, taken_by_tool, taken_by_cassette])
def test_readers_refuse_the_same_texts(taken: Callable[[str], bool]) -> None:
    took = {name for name, (text, _) in REFUSED.items() if taken(text)}
    # The log's own words can hold no such number; one that somebody else wrote is told of, not refused.
    assert took == ({"a number that is too large"} if taken is taken_by_log else set())
    assert taken("7")


@all_rows(
    ("value", "depth"), [(1, 0), ([], 1), ([1], 1), ({"a": []}, 2), ([[], [[{}]]], 4), ({"a": {}, "b": [[1]]}, 3)]
)
def test_nesting_depth_is_measured(value: JsonValue, depth: int) -> None:
    assert [is_deeper(value, most) for most in range(6)] == [most < depth for most in range(6)]


def test_duplicate_key_is_found_in_linear_time() -> None:
    def text(count: int) -> str:
        return "{" + ",".join(f'"{number}": 0' for number in range(count)) + f', "{count - 1}": 1}}'

    def refused(text: str) -> None:
        with pytest.raises(NotJsonError, match=r'duplicate key "\d+"'):
            read_one(text)

    assert_linear(text, refused, 1_000)
    with pytest.raises(NotJsonError, match='duplicate key "199999"'):
        read_one(text(200_000))
