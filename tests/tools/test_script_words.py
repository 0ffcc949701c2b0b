"""The words of a script that is declared as a tool: what a placeholder becomes, and what none may become."""

from __future__ import annotations

import json

import pytest
from rows import all_rows

from harness import ToolError
from harness.tools.script_declaration import declared
from harness.tools.script_words import command_words

TYPES = {"a": "string", "b": "string", "n": "integer", "x": "number", "on": "boolean", "many": "array"}


def words(argv: str, arguments: str) -> list[str]:
    line = argv.split(" ")
    types = {name: {"type": kind, "required": False} for name, kind in TYPES.items() if f"{{{name}" in argv}
    table = {"name": "t", "description": "It is tried.", "argv": line, "arguments": types}
    return list(command_words(declared(table).argv, json.loads(arguments)))


FILLED = r"""
cat {a}                 | {"a": "x.txt"}                  | cat x.txt
cat {a}                 | {"a": "a b"}                    | cat "a b"
cat {a}                 | {"a": ""}                       | cat ""
cat {a}                 | {"a": "$(id); rm -rf / `x` *"}  | cat "$(id); rm -rf / `x` *"
cat {a}                 | {"a": "{b}"}                    | cat {b}
cat {a} {b}             | {"a": "{b}", "b": "y"}          | cat {b} y
cat {a}.txt             | {"a": "x"}                      | cat x.txt
cat {a}/{b}             | {"a": "x", "b": "y"}            | cat x/y
cat --name={a}          | {"a": "--force"}                | cat --name=--force
cat -n{a}               | {"a": "-f"}                     | cat -n-f
cat -- {a}              | {"a": "-rf"}                    | cat -- -rf
cat -- {a} {b}          | {"a": "-r", "b": "-f"}          | cat -- -r -f
cat -- {many...}        | {"many": ["-r", "x"]}           | cat -- -r x
cat {many...}           | {"many": ["x", "a b", ""]}      | cat x "a b" ""
cat {many...}           | {"many": []}                    | cat
cat {many...} {a}       | {"a": "y"}                      | cat y
cat {a} {b}             | {"b": "y"}                      | cat y
cat --to={a} {b}        | {"b": "y"}                      | cat y
cat {a}/{b}             | {"a": "x"}                      | cat
cat {n} {on}            | {"n": 3, "on": true}            | cat 3 true
cat {x}                 | {"x": 1.5}                      | cat 1.5
awk {{a}}               | {"a": "x"}                      | awk {x}
"""
REFUSED = r"""
cat {a}                 | {"a": "-rf"}
cat {a}                 | {"a": "--help"}
cat {a}                 | {"a": "-"}
cat {a}.txt             | {"a": "-rf"}
cat {a}{b}              | {"a": "", "b": "-x"}
cat {many...}           | {"many": ["x", "-rf"]}
cat {n}                 | {"n": -1}
cat {x}                 | {"x": -0.5}
cat -- x {a}            | {"a": "-rf"}
xargs -- grep {a}       | {"a": "-rf"}
cat -- {a}.txt {b}      | {"a": "x", "b": "-rf"}
cat -- {a}.txt          | {"a": "-rf"}
"""


def rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split(" | ")) for line in text.strip().split("\n")]


@all_rows(("argv", "arguments", "expected"), rows(FILLED))
def test_placeholder_is_filled_in(argv: str, arguments: str, expected: str) -> None:
    cells = [cell.replace("\1", " ") for cell in _spaced(expected).split(" ")]
    assert words(argv, arguments) == cells


def _spaced(text: str) -> str:
    """Return words with the blanks in quotes kept apart, and the quotes taken away."""
    parts = text.split('"')
    return "".join(part.replace(" ", "\1") if number % 2 else part for number, part in enumerate(parts))


@all_rows(("argv", "arguments"), rows(REFUSED))
def test_value_cannot_become_an_option(argv: str, arguments: str) -> None:
    with pytest.raises(ToolError, match="would be read as an option"):
        words(argv, arguments)


@all_rows(
    ("value", "why"),
    [("x" * 120_001, "too long"), ("a\0b", "NUL"), ("é" * 60_001, "too long")],
)
def test_value_that_does_not_fit_a_word_is_refused(value: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        words("cat {a}", json.dumps({"a": value}))


def test_all_words_together_have_a_bound() -> None:
    with pytest.raises(ToolError, match="too long"):
        words("cat {many...}", json.dumps({"many": ["x" * 110_000] * 10}))
