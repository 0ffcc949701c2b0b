"""Texts that no person writes: each is read in work that grows with its length, and never raises.

By default the sizes are a part of the whole; `HARNESS_FULL=1` takes all (tests/support/sizes.py).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples, proof_size, spread
from work import assert_linear, lines_run

from harness.actions import Command, Facet, Opaque, PathAccess
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.shell.facets import read_commands
from harness.shell.loose_words import MAX_PATHS, loose_commands
from harness.shell.parser import MAX_CHARACTERS
from harness.tools.bash import MAX_COMMAND_BYTES, BashTool


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("noise")
    (folder / "a.txt").touch()
    return Workspace(str(folder), str(folder))


def assert_facets(facets: tuple[Facet, ...]) -> None:
    assert facets
    for each in facets:
        assert isinstance(each, Command | PathAccess | Opaque)
        assert not isinstance(each, Command) or each.argv


@settings(max_examples=examples(300))
@given(text=st.text())
def test_any_text_is_read(disk: Workspace, text: str) -> None:
    assert_facets(read_commands(text, disk))


@settings(max_examples=examples(300))
@given(data=st.binary())
def test_any_bytes_are_read(disk: Workspace, data: bytes) -> None:
    assert_facets(read_commands(data.decode("utf-8", "surrogateescape"), disk))


@settings(max_examples=examples(500))
@given(text=st.text(alphabet="ok'\"\\$`;&|<>(){}*?[]~#!= \n\t-/.:@A1\r\0\u00a0"))
def test_any_text_of_shell_characters_is_read(disk: Workspace, text: str) -> None:
    assert_facets(read_commands(text, disk))


WORDS = (
    "if then elif else fi for while until do done case esac in { } [[ ]] ( ) ; ;; & && || | |& ! time function coproc select "
    'eval cd export read unset set exit break bash sh -c -exec {} \\; env xargs find $A "$A" $(ok) `ok` <(ok) > >> < <<E E '
    "<<< ok x = A=1 'x * $((1)) ${A} ~ # $@ [c-a]* [a--]*"
).split()


@settings(max_examples=examples(500))
@given(words=st.lists(st.sampled_from([*WORDS, "\n"]), max_size=40), blank=st.sampled_from([" ", "\n", " \\\n"]))
def test_any_words_of_the_shell_are_read(disk: Workspace, words: list[str], blank: str) -> None:
    assert_facets(read_commands(blank.join(words), disk))


LONG = {
    "one word": lambda count: "a" * count,
    "words": lambda count: "a " * (count // 2),
    "quotes": lambda count: "'" * count,
    "double quotes": lambda count: '"' * count,
    "backslashes": lambda count: "\\" * count,
    "continued lines": lambda count: "\\\n" * (count // 2),
    "commands": lambda count: "a;" * (count // 2),
    "pipes": lambda count: "a|" * (count // 2),
    "line breaks": lambda count: "\n" * count,
    "open parentheses": lambda count: "(" * count,
    "open substitutions": lambda count: "$(" * (count // 2),
    "open backquotes": lambda count: "`" * count,
    "open parameters": lambda count: "${" * (count // 2),
    "nested parameters": lambda count: "${a:-" * (count // 5),
    "open braces": lambda count: "{ " * (count // 2),
    "open conditions": lambda count: "if " * (count // 3),
    "open loops": lambda count: "for a in b; do " * (count // 15),
    "loops": lambda count: "for a in b; do c; done; " * (count // 24),
    "redirections": lambda count: "<" * count,
    "targets": lambda count: ">a " * (count // 3),
    "here-documents": lambda count: "<<a " * (count // 4),
    "bodies": lambda count: "cat <<a\nb\na\n" * (count // 12),
    "digits": lambda count: "1" * count,
    "dollars": lambda count: "$" * count,
    "parameters": lambda count: "$a" * (count // 2),
    "stars": lambda count: "*" * count,
    "brackets": lambda count: "[" * count,
    "classes": lambda count: "[a]*" * (count // 4),
    "assignments": lambda count: "A=1 " * (count // 4),
    "folders": lambda count: "cd a; " * (count // 6),
    "steps up": lambda count: "cat " + "../" * (count // 3),
    "options": lambda count: "ls -" + "ab=" * (count // 3),
    "evals": lambda count: "eval " * (count // 5) + "ok",
    "wrappers": lambda count: "env " * (count // 4) + "ok",
    "xargs": lambda count: "xargs " * (count // 6) + "ok",
    "shells": lambda count: "bash -c '" * (count // 9),
    "alternatives": lambda count: "A=1 || " * (count // 7) + "ok",
    "growing values": lambda count: "A=aaaaaaaa; " + "A=$A$A; " * (count // 9),
    "loops in loops": lambda count: "for a in 1 2 3; do " * 12 + "ok;" + " done;" * 12 + "a;" * (count // 9),
    "emoji": lambda count: "\U0001f600" * count,
    "empty quotes": lambda count: "'" * (count // 2 * 2),
    "escapes": lambda count: "echo " + "\\;" * (count // 2),
    "a long option": lambda count: "-" + "a" * count + " >",
    "braced parameters": lambda count: "${a}" * (count // 4),
    "digits before a redirection": lambda count: "1" * count + ">",
    "quotes that do not fit": lambda count: "'\\'\"" * (count // 4),
}

FLAT = {name: make for name, make in LONG.items() if name != "loops in loops"}
"""All but that of which the work is as much as is ever done."""
SIZES = spread("SIZES", [600, 2_400, 12_000], 1)
"""Characters: each is held against four times as many. Up to 10,000 are understood; `loose` reads what is not."""


@all_rows("make", FLAT)
@all_rows("size", SIZES)
@all_rows("reader", {"strict": read_commands, "loose": lambda text, _disk: loose_commands(text)})
def test_the_work_of_reading_is_linear(
    disk: Workspace, reader: Callable[[str, Workspace], object], size: int, make: Callable[[int], str]
) -> None:
    """What the regular expressions take is timed by bench/growth.py."""
    assert_linear(make, lambda text: reader(text, disk), size)


@all_rows("make", LONG)
def test_the_longest_line_that_is_understood_is_read(disk: Workspace, make: Callable[[int], str]) -> None:
    assert_facets(read_commands(make(MAX_CHARACTERS), disk))


@all_rows(
    "shape",
    [
        "words",
        "commands",
        "quotes",
        "double quotes",
        "open substitutions",
        "assignments",
        "here-documents",
        "options",
        "emoji",
    ],
)
def test_the_longest_line_that_the_tool_takes_is_read(disk: Workspace, shape: str) -> None:
    assert_facets(read_commands(LONG[shape](proof_size("TEXT", 50_000, full=MAX_COMMAND_BYTES)), disk))


def test_more_than_the_tool_takes_is_refused_unread(disk: Workspace) -> None:
    tool, call = BashTool(disk), ToolCall(id="c", name="bash", arguments="{}")

    def refused() -> None:
        with pytest.raises(ToolError, match="at most 1,000,000 are taken"):
            tool.prepare(call, {"command": "ls " * 340_000})

    assert lines_run(refused) < 10_000  # of which hardly any are of ours


LETTERS = str.maketrans("0123456789", "abcdefghij")


def test_number_of_words_never_hides_an_operand() -> None:
    words = " ".join(f"w{number}" for number in range(6_000))
    for line in (f"cat {words} .env", f"cat {words} > .env"):
        facets = read_commands(line, EXAMPLE_DISK)
        named = [path for facet in facets if isinstance(facet, Command | Opaque) for path in facet.paths]
        named += [facet for facet in facets if isinstance(facet, PathAccess)]
        assert ".env" in {path.written for path in named}


@all_rows(
    "word",
    [
        pytest.param(lambda number: f"w{number}", id="words"),
        pytest.param(lambda number: f"a=b{number}", id="values"),
        pytest.param(lambda number: f"rm w{number};", id="commands"),
        pytest.param(lambda number: f"-{number:08}".translate(LETTERS), id="letters of short options"),
    ],
)
def test_possible_paths_are_found_in_linear_time_and_bounded(
    word: Callable[[int], str],
) -> None:
    def text(count: int) -> str:
        return " ".join(word(number) for number in range(count))

    assert_linear(text, lambda text: read_commands(text, EXAMPLE_DISK), proof_size("TEXT", 400, full=2_000))
    (facet,) = read_commands(text(proof_size("TEXT", 24_000, full=120_000))[:1_000_000], EXAMPLE_DISK)
    assert isinstance(facet, Opaque)
    assert (facet.is_whole, len(facet.paths) <= MAX_PATHS) == (False, True)


@all_rows(("count", "whole"), [(MAX_PATHS, True), (MAX_PATHS + 1, False)])
def test_words_that_may_be_paths_are_looked_up_to_a_bound(count: int, whole: bool) -> None:
    text = " ".join([*(f"w{number}" for number in range(count)), "w0"])
    (facet,) = read_commands(text, EXAMPLE_DISK)
    assert isinstance(facet, Opaque)
    assert (facet.is_whole, len(facet.paths)) == (whole, MAX_PATHS)


MOST_LINES = 10_000_000
"""Of Python, for a text of some hundred characters: three times what the hardest of these takes."""
NESTED = [
    pytest.param("for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "true" + "; done" * 8, id="loops in loops"),
    pytest.param("while true; do " * 15 + "cd x" + "; done" * 15, id="loops that change the folder"),
    pytest.param("bash -c '" * 8 + "ls" + "'" * 8, id="shells in shells"),
    pytest.param("env " * 100 + "ls", id="wrappers around wrappers"),
]


@all_rows("text", NESTED)
def test_nested_text_is_cheap_to_read_or_opaque(text: str) -> None:
    found: list[Facet] = []
    assert lines_run(lambda: found.extend(read_commands(text, EXAMPLE_DISK))) < MOST_LINES
    assert isinstance(found[-1], Opaque) or "bash" in text
