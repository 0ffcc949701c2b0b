"""What is kept of a reply to be given back with it."""

from __future__ import annotations

import json

from rows import all_rows

from harness.actions import JsonValue
from harness.models.chat_echo import ECHO_CHARACTERS, Echo, given_back

KEPT: dict[str, tuple[list[dict[str, JsonValue]], dict[str, JsonValue]]] = {
    "text is put together": ([{"r": "a"}, {"r": "b"}], {"r": "ab"}),
    "other fields are not kept": ([{"r": "a", "x": "b"}], {"r": "a"}),
    "parts without index are a list": (
        [{"r": [{"text": "a"}]}, {"r": [{"text": "b"}, 1]}],
        {"r": [{"text": "a"}, {"text": "b"}, 1]},
    ),
    "parts of one index are one": (
        [{"r": [{"index": 0, "text": "a"}]}, {"r": [{"index": 0, "text": "b", "signature": None}]}],
        {"r": [{"index": 0, "text": "ab", "signature": None}]},
    ),
    "what is no text is replaced, and null replaces nothing": (
        [{"r": [{"index": 0, "data": "a", "id": 1}]}, {"r": [{"index": 0, "data": "b", "id": None}]}],
        {"r": [{"index": 0, "data": "b", "id": 1}]},
    ),
    "another type is another part": (
        [{"r": [{"index": 0, "type": "a", "text": "x"}]}, {"r": [{"index": 0, "type": "b", "text": "y"}]}],
        {"r": [{"index": 0, "type": "a", "text": "x"}, {"index": 0, "type": "b", "text": "y"}]},
    ),
}


@all_rows(("deltas", "expected"), KEPT)
def test_pieces_are_put_together(deltas: list[dict[str, JsonValue]], expected: dict[str, JsonValue]) -> None:
    echo = Echo(("r",))
    for delta in deltas:
        echo.add(delta)
    text = echo.text([])
    assert json.loads(text) == {"api": "chat", "reasoning": expected}
    assert given_back(text, ("r",)) == (expected, [])
    assert given_back(text, ()) == ({}, [])


@all_rows("value", [None, "", [], 0, 7, True, {"a": 1}])
def test_field_that_is_neither_text_nor_parts_is_ignored(value: JsonValue) -> None:
    echo = Echo(("r",))
    echo.add({"r": value})
    assert echo.text([None, None]) == ""


def test_signatures_are_kept_by_the_place_of_their_call() -> None:
    text = Echo(()).text([None, {"s": 1}])
    assert given_back(text, ()) == ({}, [None, {"s": 1}])


def test_too_long_echo_is_dropped() -> None:
    echo = Echo(("r",))
    for _ in range(5):
        echo.add({"r": "x" * (ECHO_CHARACTERS // 4)})
    assert echo.text([]) == ""


def test_too_deep_echo_is_dropped() -> None:
    deep: JsonValue = 1
    for _ in range(60):
        deep = [deep]
    assert Echo(()).text([{"a": deep}]) == ""
    assert Echo(()).text([{"a": [[1]]}]) != ""


def test_many_small_pieces_of_a_part_cost_no_more_than_their_length() -> None:
    echo = Echo(("r",))
    for _ in range(100_000):
        echo.add({"r": [{"index": 0, "text": "x" * 10}]})
    assert len(json.loads(echo.text([]))["reasoning"]["r"][0]["text"]) == 1_000_000
