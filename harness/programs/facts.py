"""What is known of a program by its name alone, besides what its model says of the words of a command. Pure.

Each is a word in `facts` of a model (model.py), or stands in a list here where the models do not say it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.programs.catalog import model_of
from harness.programs.model import Names, Program, Style
from harness.programs.options import option_table
from harness.programs.python import MODULES
from harness.programs.runners import FIND_RUNS
from harness.programs.variables import HARMLESS, PASSED, SET, changes_the_shell, steers
from harness.record import replace


def is_known(program: str, fact: str) -> bool:
    """Say whether the model of a program states one of FACTS."""
    model = model_of(program)
    return model is not None and fact in model.facts.split()


# --- What it does with files

_FIND_WRITES = frozenset(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"))
_SED_READS = frozenset(("-n", "-E", "-r", "-e", "-s", "-z", "-u", "--quiet", "--silent", "--regexp-extended"))
_GIT_LOOKS = frozenset(("status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "describe"))


def only_reads(argv: Sequence[str]) -> bool:
    """Say whether `argv` is known never to write what its operands name; a program given with its folder is not known.

    For words of which quotes, expansions and redirections are gone (shell/loose_reading.py). No model vouches for those:
    `awk '{print > "x"}'`, which writes x, is loosely `awk print x`, which reads it. That a command reads says nothing of
    whether it may run. Being wrong here makes a verdict on a write laxer by one step, never auto.
    """
    options = [word for word in argv[1:] if word.startswith("-")]
    match argv[0]:
        case "find":
            return (_FIND_WRITES | FIND_RUNS).isdisjoint(argv)
        case "sed":
            # `w` and `e` take what stands behind them for a file or a command: `sed -n "w x"`.
            runs_on = any(word.endswith(("w", "W", "e")) for word in argv[1:-1])
            return not runs_on and all(option in _SED_READS for option in options)
        case "git":
            # --output, its abbreviations, and -O (an order file; a pager for grep).
            looks = len(argv) > 1 and argv[1] in _GIT_LOOKS
            return looks and not any(option.startswith(("--o", "-o", "-O")) for option in options)
        case name:
            return is_known(name, "only-reads")


def names_for(program: str, names: Names) -> Names:
    """Return what is known of the files that a program reads when it is handed `names`: a folder among them holds others."""
    if is_known(program, "files") or not names.folders:
        return names
    return replace(names, skips=(), hidden=True)


# --- Which variables it obeys

_OBEYED = re.compile(
    r"_?POSIX|TMP|TEMP|GREP_|AWK|GAWK|MAWK|WHINY|LOCPATH|NLSPATH|LANGUAGE|OUTPUT_CHARSET|CHARSET|TZDIR|DATEMSK|TERMINFO|TERMCAP|"
    r"GETCONF|ICU_|MALLOC|GLIBC|MUSL|LIBC|RES_|HOSTALIASES|LOCALDOMAIN|JQ_|RIPGREP|GMON|GCOV|ASAN|UBSAN|LSAN|MSAN|TSAN|XDG_|OMP_|"
    r"COMMAND_MODE|UNIX_STD|NSS_|DYLD",
    re.IGNORECASE,
)
"""How the names begin of variables that programs with few variables, or the libraries that all programs use, do obey.

From the manuals of GNU coreutils 9, diffutils 3, findutils 4, grep 3, sed 4; gawk 5, mawk 1; jq 1.7, ripgrep 14; macOS.
"""


def harmless_for(program: str, name: str) -> bool:
    """Say whether a program that only reads does the same, but for colours and the like, where this variable is set."""
    if name in HARMLESS:
        return True
    if name in PASSED or name in SET or steers(name) or changes_the_shell(name) or _OBEYED.match(name) is not None:
        return False
    return program == "[[" or is_known(program, "few-variables")


# --- How its options may be joined

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
