"""Rows of text as models: the same `Program` as if it were written out."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import Act
from harness.programs.options import read_command
from harness.programs.program import Program, Style
from harness.programs.rows import Rows

TABLE = """
daemon = the socket of a daemon
common = -v|--verbose -o|--output=WRITE
# A remark
one/two : looks : READ... : common -q
three : changes net words : TEXT...
four : gap : it may do anything
five : looks : - : -V|--version:info
five (alone), list : looks needs=daemon : - : common
five remote add : runs net posix :
    COMMAND... : common -x
"""


def test_a_row_is_a_model() -> None:
    rows = Rows(TABLE)
    assert sorted(rows) == ["five", "four", "one", "three", "two"]
    assert rows["one"] is rows["two"]
    assert rows["one"] == Program(operands="READ...", options="-v|--verbose -o|--output=WRITE -q")
    assert rows["three"] == Program(act=Act.CHANGES, network=True, style=Style.TEXT, operands="TEXT...")
    assert read_command(rows["four"], ["four", "x"]).gap == "it may do anything"


def test_rows_of_subcommands_are_models_of_one_program() -> None:
    five = Rows(TABLE)["five"]
    assert (five.options, sorted(five.subcommands)) == ("-V|--version:info", ["", "list", "remote add"])
    assert five.subcommands[""].needs == "the socket of a daemon"
    assert five.subcommands["remote add"] == Program(
        act=Act.RUNS,
        network=True,
        style=Style.POSIX,
        operands="COMMAND...",
        options="-v|--verbose -o|--output=WRITE -x",
    )


@all_rows(
    "row",
    [
        "a : eats : READ...",
        "a : looks : READ... : -x : y",
        "a : looks arguments : READ...",
        "a/b : looks : -\na : looks : -",
    ],
)
def test_a_row_that_is_not_well_formed_is_an_error(row: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Rows(row)["a"]
