"""A table `[[tool]]`: what it declares, and what is wrong with it, the key first."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from rows import all_rows

from harness.tools.script_declaration import declared

GOOD = """
name = "lint"
description = " Checks one file. "
argv = ["ruff", "check", "--select={rules}", "{path}", "--", "{more...}"]
reads = ["{path}", "{more...}"]
writes = ["build/", "out/{path}.txt"]
network = true
seconds = 60
env = ["CI"]
[arguments.path]
type = "string"
description = "The file."
minLength = 1
[arguments.rules]
type = "string"
enum = ["E", "F"]
required = false
[arguments.more]
type = "array"
required = false
maxItems = 9
items = { type = "string", maxLength = 100 }
"""


def table(**changed: Any) -> dict[str, object]:
    return {**tomllib.loads(GOOD), **changed}


def test_table_is_parsed_into_a_declaration() -> None:
    found = declared(table())
    assert (found.name, found.description, found.argv[0]) == ("lint", "Checks one file.", "ruff")
    assert (found.reads, found.writes) == (("{path}", "{more...}"), ("build/", "out/{path}.txt"))
    assert (found.network, found.seconds, found.env) == (True, 60, ("CI",))
    assert found.schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file.", "minLength": 1},
            "rules": {"type": "string", "enum": ["E", "F"]},
            "more": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 100}},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_minimal_table_has_defaults() -> None:
    found = declared({"name": "t", "description": "x", "argv": ["true"]})
    assert (found.reads, found.writes, found.network, found.seconds, found.env) == ((), (), False, None, ())
    assert found.schema["properties"] == {}


STRING = {"type": "string"}


@all_rows(
    ("changed", "problem"),
    [
        ({"name": ""}, "name: "),
        ({"name": "a b"}, "name: must begin with a letter"),
        ({"name": "1"}, "name: must begin with a letter"),
        ({"name": "a" * 53}, "name: must begin with a letter"),
        ({"name": "l\u0456nt"}, "name: must begin with a letter"),
        ({"description": " "}, "description: "),
        ({"argv": "ruff check"}, "argv: must be a list of strings"),
        ({"argv": []}, "argv: must name a program"),
        ({"argv": [""]}, "argv: must name a program"),
        ({"argv": ["{path}"]}, "argv: the program must be a fixed word"),
        ({"argv": ["bin/{path}"]}, "argv: the program must be a fixed word"),
        ({"argv": ["ruff", "{pth}"]}, "argv: {pth} names no argument; did you mean path?"),
        ({"argv": ["ruff", "{path...}"]}, "argv: a value of type string is written {path}"),
        ({"argv": ["ruff", "{more}"]}, "argv: a value of type array is written {more...}"),
        ({"argv": ["ruff", "-{more...}"]}, "argv: {more...} must be a word by itself"),
        ({"argv": ["ruff", "a\0"]}, "argv: a word cannot hold NUL"),
        ({"argv": ["ruff"] * 201}, "argv: has more than 200 words"),
        ({"reads": ["{pth}"]}, "reads: {pth} names no argument"),
        ({"writes": ["/"]}, "writes: / would mean everything"),
        ({"writes": ["~"]}, "writes: ~ would mean everything"),
        ({"writes": ["../x"]}, "writes: ../x must not hold .."),
        ({"writes": ["src/*.py"]}, "writes: src/*.py is a pattern; patterns are not understood here; name a folder"),
        ({"network": "no"}, "network: must be true or false"),
        ({"seconds": 0}, "seconds: must be a number above 0"),
        ({"env": ["A B"]}, "env: 'A B' is not a variable"),
        ({"env": ["LD_PRELOAD"]}, "env: 'LD_PRELOAD' is not a variable that can be passed on"),
        ({"env": ["BASH_ENV"]}, "env: 'BASH_ENV' is not a variable"),
        ({"shell": True}, "has the unknown field 'shell'"),
        ({"arguments": {"path": STRING}}, "argv: {rules} names no argument"),
        ({"argv": ["a"], "reads": [], "writes": [], "arguments": {"path": STRING}}, "arguments: no word of argv holds {path}"),
        ({"arguments": {"a b": STRING}}, "arguments: 'a b' must hold letters"),
        ({"arguments": {"path": {"type": "object"}}}, "arguments: 'path': type: unknown 'object'"),
        ({"arguments": {"path": {}}}, "arguments: 'path': lacks the field type"),
        ({"arguments": {"path": {"type": "string", "minimum": 1}}}, "arguments: path: minimum does not apply"),
        ({"arguments": {"path": {"type": "string", "pattern": "x"}}}, "arguments: 'path': has the unknown field 'pattern'"),
        ({"arguments": {"path": {"type": "array", "items": {"type": "integer"}}}}, "arguments: 'path': items: type: unknown"),
    ],
)  # fmt: skip
def test_invalid_table_is_refused(changed: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        declared(table(**changed))
    assert str(raised.value).startswith(problem)
