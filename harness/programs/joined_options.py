"""Options that stand in one word: `-xvs` for `-x -v -s`, `-count=1` for `-count 1`; pure, and decides nothing.

Programs differ in how they read such a word. It is taken apart only where the program is known, and never by guess.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.programs.catalog import model_of
from harness.programs.model import Program, Style
from harness.programs.options import option_table
from harness.programs.python import MODULES

CLUSTERS = frozenset(
    # By getopt_long(3), or as it does.
    "cat cmp comm cp cut date df diff du egrep expand fgrep fold git gmake grep gzip head join ln ls make mkdir mktemp mv nl "
    "od paste readlink realpath rm rmdir sort split stat tail tee touch uniq wc "
    # By argparse, optparse and click of Python.
    "black coverage flake8 mypy pip pip3 py.test pylint pytest tox "
    # By clap of Rust, or as it does.
    "cargo fd fdfind rg ruff".split()
)
"""Programs that read `-abc` as `-a -b -c`. INVARIANT: none of them has long options with one dash."""


def options_in(argv: Sequence[str], word: str) -> tuple[str, ...]:
    """Return the options that `word` of a command is made of, values left out; nothing where that is not known."""
    program = _model(argv)
    if program is None or word[:2] in ("", "-", "--"):
        return ()
    if program.style is Style.SINGLE:
        name, equals, _ = word.partition("=")
        return (name,) if equals else ()
    return _letters(program, word)


def _letters(program: Program, word: str) -> tuple[str, ...]:
    """Return the letters of a cluster, the last of which may have its value behind it."""
    table = option_table(program.options)
    options = []
    for letter in word[1:]:
        entry = table.get(f"-{letter}")
        if entry is None:
            return ()
        options.append(f"-{letter}")
        if entry.role is not None:
            break
    return tuple(options)


def _model(argv: Sequence[str]) -> Program | None:
    """Return the model whose options stand behind the first words of a command: its program's, or its subcommand's."""
    name, *words = argv
    if name.rstrip("0123456789.") == "python" and len(words) > 1 and words[0] == "-m" and words[1] in MODULES:
        name, *words = words[1:]
    program = model_of(name)
    if program is None or (program.style is not Style.SINGLE and name not in CLUSTERS):
        return None
    if not program.subcommands:
        return program
    known = (program.subcommands.get(" ".join(words[:count])) for count in (3, 2, 1))
    return next((each for each in known if each is not None), None)
