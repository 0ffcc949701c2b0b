"""The words that say what a field of JSON or TOML may hold, and what is said of values that do not fit."""

from __future__ import annotations

import json
import re

import pytest
from rows import all_rows

from harness.text.fields import Fields, Parts, check_of

PARTS: Parts = {"point": {"x": "whole", "y?": "whole"}, "even": lambda value: "" if value % 2 == 0 else "must be even"}
TABLE = r"""
text    "a\n"
text    1    must be a string, not a number
text    null    must be a string, not null
text of at most 2 characters    "ab"
text of at most 2 characters    "abc"    must be a string of at most 2 characters
filled    "a\nb"
filled    " \n"    must not be empty
filled    []    must be a string, not a list
line    "a b"
line    " "    must not be empty, and on one line
line    "a\nb"    must not be empty, and on one line
whole    1000000000000000000000000000000
whole    1.0    must be a whole number, not a decimal number
whole    true    must be a whole number, not true or false
whole from 1 to 3    1
whole from 1 to 3    3
whole from 1 to 3    0    must be a whole number from 1 to 3
whole from 1 to 3    "2"    must be a whole number from 1 to 3, not a string
count    0
count    -1    must be a whole number of at least 0
number above 0, at most 10    0.5
number above 0, at most 10    10
number above 0, at most 10    0    must be a number above 0, at most 10
number above 0, at most 10    10.5    must be a number above 0, at most 10
number above 0, at most 10    NaN    must be a number above 0, at most 10
number above 0, at most 10    Infinity    must be a number above 0, at most 10
flag    false
flag    0    must be true or false, not a number
digest    "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
digest    "0A"    must be a SHA-256 digest: 64 hexadecimal digits in lower case
one of auto deny    "deny"
one of auto deny    "denny"    unknown 'denny'; did you mean deny?
one of auto deny    "x"    unknown 'x'; known: auto, deny
one of auto deny    {}    must be a string, not an object
list of text    []
list of text    "a"    must be a list of strings, such as ["a", "b"]
list of text    ["a", 1]    number 2: must be a string, not a number
list of count|null    null
list of count|null    1    must be a list, not a number
list of count|null    [null]    number 1: must be a whole number of at least 0, not null
object of count    {"a": 1}
object of count    []    must be an object, not a list
object of count    {"a": "b"}    'a': must be a whole number of at least 0, not a string
even    2
even    3    must be even
list of point    [{"x": 1}, {"y": 2, "x": 1}]
list of point    [{"x": 1}, 5]    number 2: must be an object (x), not a number
list of point    [{"y": 1}]    number 1: lacks the field x
list of point    [{"x": 1, "yy": 2}]    number 1: has the unknown field 'yy'; did you mean y?
list of point    [{"x": "1"}]    number 1: x: must be a whole number, not a string
"""


@all_rows("line", TABLE.strip().splitlines())
def test_value_is_checked_by_its_type(line: str) -> None:
    word, value, problem = re.split(" {4}", f"{line}    ")[:3]
    assert check_of(word, PARTS)(json.loads(value)) == problem


def test_an_open_table_takes_fields_of_any_name() -> None:
    assert Fields({"a": "text"}, is_open=True).problem({"a": "", "b": 1}) == ""


def test_unknown_type_is_an_error_of_the_program() -> None:
    with pytest.raises(KeyError):
        check_of("txt")
