"""Words on the command line that are no command and no flag; help, fitted to the width of a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from program import made_program
from rows import all_rows

from harness.app.command_line import first_words, fitted, is_unquoted, parser_for

if TYPE_CHECKING:
    from program import Program

NEEDS_A_TERMINAL = "the prompt needs a terminal"


@all_rows(
    ("words", "told"),
    [
        (("doctro",), "unknown command: doctro; did you mean `harness doctor`? `harness -- doctro` sends it"),
        (("audti", "show"), "did you mean `harness audit`?"),
        (("help", "me"), "unknown command or topic: me; known: run, batch, "),
        (("help", "polcies"), "unknown command or topic: polcies; did you mean policies?"),
        (("audit", "shwo"), "harness audit needs an action: list, show, "),
        (("audit", "shwo"), "export, sign, prune, recover; did you mean show?"),
        (("hlep",), "did you mean `harness help`?"),
        (("--", "doctro"), NEEDS_A_TERMINAL),
        (("fun",), NEEDS_A_TERMINAL),
        (("doctor it",), NEEDS_A_TERMINAL),
        (("fix", "the", "bug"), "unrecognized arguments: the bug (put a prompt of several words in quotes)"),
        (("run", "fix", "it"), "harness run: error: unrecognized arguments: it (put a prompt of several words"),
        (("fix", "--nosuch"), "unrecognized arguments: --nosuch\n`harness --help` lists the arguments\n"),
        (("demo", "fix", "it"), "unrecognized arguments: it\n`harness demo --help` lists"),
        (("run", "\x1b[2J", "\x1b]0;x\x07"), "unrecognized arguments: \\x1b]0;x\\x07 (put a prompt"),
    ],
    anew={"program": made_program},
)
def test_extra_or_misspelt_word_is_never_sent(program: Program, words: tuple[str, ...], told: str) -> None:
    """One typed `harness doctro`: sent as a prompt it would cost money."""
    done = program.run(*words)
    assert (done.code, told in done.err, done.out) == (2, True, ""), done.err
    assert len(done.err.splitlines()) <= 2


@all_rows(
    ("message", "is_prompt"),
    [
        ("unrecognized arguments: the bug", True),
        ("unrecognized arguments: the --bug", False),
        ("unrecognized arguments: -x", False),
        ("argument --max-turns: the bug", False),
    ],
)
def test_only_words_are_taken_for_the_rest_of_a_prompt(message: str, *, is_prompt: bool) -> None:
    assert is_unquoted(message) is is_prompt


@all_rows("width", [40, 60, 80, 100, 110])
def test_help_fits_the_terminal_without_losing_words(width: int) -> None:
    parser = parser_for("")
    for line in f"{parser.description}\n{parser.epilog}".splitlines():
        rows = fitted(line, width).splitlines()
        assert max(map(len, rows), default=0) <= width
        assert " ".join(rows).split() == line.split()
        assert all(row.startswith("    ") for row in rows[1:] if line.startswith("  "))


def test_wrapped_description_is_indented() -> None:
    assert fitted("  go WHERE    to the left, then on", 28) == "  go WHERE    to the left,\n              then on"
    assert fitted("short", 28) == "short"


@all_rows(
    ("words", "same"),
    [
        (("help", "run"), ("run", "--help")),
        (("help", "audit"), ("audit", "--help")),
        (("help", "audit", "verify"), ("audit", "verify", "--help")),
    ],
    anew={"program": made_program},
)
def test_help_is_a_command_too(program: Program, words: tuple[str, ...], same: tuple[str, ...]) -> None:
    done = program.run(*words)
    assert (done.code, done.err, done.out) == (0, "", program.run(*same).out)


@all_rows("columns", [80, 120])
def test_help_names_every_command_on_one_screen(program: Program, columns: int) -> None:
    code, shown = program.at_terminal("help", columns=columns)
    named = set(re.findall(r"[a-z]+", shown))
    assert (code, set(first_words()) - named) == (0, set())
    assert len(shown.splitlines()) < 24
    whole = program.run("--help").out
    assert whole.index("  doctor ") < whole.index("  --policy FILE")
