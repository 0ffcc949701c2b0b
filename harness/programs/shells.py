"""Shells, and commands that bash runs itself: echo, printf, test, wait and similar ones, and builtins that run their
words.

Only the text of `-c` and of `eval` is covered. A script is code, which harness does not read, and the input of a shell
is a gap. The shell package reads builtins that change the shell for later commands (cd, set, export, read, unset, eval,
exec ...).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.options import read_command
from harness.programs.program import Found, Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.programs.runners import name_of
from harness.programs.shared import argument_paths, read_alike, with_command, wraps
from harness.record import Record

# --- Builtins

_TESTED_FILES = Program(operands="READ...")
"""A model that reads its operands. The functions below use it to get paths, or a gap for an unknown word."""

# From bash(1), "CONDITIONAL EXPRESSIONS". Left out: -v and -R, which evaluate the index of an array, `a[$(reboot)]`.
_ASKS_A_FILE = frozenset("-b -c -d -e -f -g -h -k -p -r -s -u -w -x -L -N -O -G -S".split())
_ASKS_TWO_FILES = frozenset("-nt -ot -ef".split())
_ASKS_A_TEXT = frozenset("-n -z".split())
_COMPARES_TEXTS = frozenset("= == != < >".split())
_COMPARES_NUMBERS = frozenset("-eq -ne -lt -le -gt -ge".split())
_BEFORE_AN_EXPRESSION = frozenset("! ( -a -o".split())


def _test(argv: Sequence[str]) -> Use:
    """Return the use of `test` or `[`: the files that it asks about. A gap for words that it may evaluate."""
    words = list(argv[1:])
    if name_of(argv[0]) == "[" and (not words or words.pop() != "]"):
        return gap("[ without its ]")
    unknown = [word for word in words if isinstance(word, Unknown)]
    several = next((word for word in unknown if not word.single), None)
    if several is not None:
        return gap(f"{several} may be any number of words")
    if _compares_texts(words):
        return Use(act=Act.LOOKS)
    problem = _problem_of_known(words) or (_problem_of_unknown(words) if unknown else "")
    if problem:
        return gap(problem)
    return read_command(_TESTED_FILES, (argv[0], "--", *_files_asked(words)))


def _compares_texts(words: Sequence[str]) -> bool:
    """Return whether the expression is `A = B` or `! A = B`. With three words, the middle one decides (POSIX, test)."""
    if len(words) == 4 and words[0] == "!" and not isinstance(words[0], Unknown):
        words = words[1:]
    return len(words) == 3 and words[1] in _COMPARES_TEXTS and not isinstance(words[1], Unknown)


def _problem_of_known(words: Sequence[str]) -> str:
    """Return the reason why `test` is not covered, judged by its known words only, or an empty string."""
    before = ""
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else ""
        if isinstance(word, Unknown):
            pass
        elif word in ("-v", "-R"):
            return f"test {word} evaluates the index of an array"
        elif word == "-o" and (place == 0 or before in _BEFORE_AN_EXPRESSION):
            return "the option -o of test is not in its model"
        elif word in _COMPARES_NUMBERS and not (place and _is_number(before) and _is_number(after)):
            return f"test {word} of something other than digits"
        elif word == "-t" and after and not _is_number(after):
            return "test -t of something other than digits"
        before = word
    return ""


def _problem_of_unknown(words: Sequence[str]) -> str:
    """Return the reason why an unknown word may be more than an operand, or an empty string.

    The number of words decides (POSIX, test).
    """
    if len(words) > 4:
        return "a word of test is not known, and may be an operator"
    while len(words) > 1 and words[0] == "!" and not isinstance(words[0], Unknown):
        words = words[1:]
    operator = words[0] if len(words) == 2 else words[1] if len(words) == 3 else ""
    is_known = not isinstance(operator, Unknown)
    match len(words):
        case 1:
            covered = True
        case 2:
            covered = is_known and (operator in _ASKS_A_TEXT or operator in _ASKS_A_FILE)
        case 3:
            covered = is_known and operator in _COMPARES_NUMBERS | _ASKS_TWO_FILES
        case _:
            covered = False
    return "" if covered else "a word of test is not known, and may be an operator"


def _is_number(word: str) -> bool:
    """Return whether a word is certainly an integer, or an `Unknown` word that bash expands to one (`$#`)."""
    if isinstance(word, Unknown):
        return word.integer
    digits = word.removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdigit()


def _files_asked(words: Sequence[str]) -> list[str]:
    """Return every word that is a file in some reading of the expression. May return too many."""
    files: list[str] = []
    for place, word in enumerate(words):
        if isinstance(word, Unknown):
            continue
        after = list(words[place + 1 : place + 2])
        if word in _ASKS_TWO_FILES:
            files += [*words[max(place - 1, 0) : place], *after]
        elif word in _ASKS_A_FILE or (word == "-a" and (place == 0 or words[place - 1] in _BEFORE_AN_EXPRESSION)):
            files += after
    return files


_CONVERSION = r"%(?:%|[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:(?:hh|ll|[hlLqjzt])?[diouxXfFeEgGaAcsbqQ]|\([^()]*\)T))"
"""Conversions that a format of printf may contain. Left out: %n, which sets the variable that its operand names."""


def _printf(argv: Sequence[str]) -> Use:
    """Return the use of `printf FORMAT [OPERAND...]`. -v is a gap: it sets a variable, and evaluates its name."""
    words = list(argv[1:])
    has_end_mark = words[:1] == ["--"]
    if has_end_mark:
        words.pop(0)
    if not words:
        return gap("printf without a format")
    form = words[0]
    if isinstance(form, Unknown):
        return gap(f"the format {form} is not known")
    if not has_end_mark and form.startswith("-") and len(form) > 1:
        return gap(f"the option {form} of printf is not in its model")
    if "%" in re.sub(_CONVERSION, "", form):
        return gap("a conversion of printf that is not in its model")
    return Use(act=Act.LOOKS)


_SAYS = Program(style=Style.TEXT, operands="TEXT...", facts="few-variables no-input")
_ENDS = Program(style=Style.TEXT, operands="TEXT...")
_TESTS = Program(read=_test, facts="few-variables no-input")


# --- Shells

_SHELL_OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace", "verbose"))
_SHELL_LETTERS = frozenset("ceuxvnol")


class _Started(Record):
    """The words that start a shell: its options, and the words after them."""

    letters: str
    names: tuple[str, ...]
    words: tuple[str, ...]


def _started(argv: Sequence[str]) -> _Started | str:
    """Return the options and other words of a shell, or the reason for a gap.

    `-o` takes the next word, wherever it is in a cluster.
    """
    letters: list[str] = []
    names: list[str] = []
    position = 1
    while position < len(argv):
        word = argv[position]
        if isinstance(word, Unknown) and (not word.single or word.prefix[:1] in ("", "-", "+")):
            return f"{word} may be an option"
        if isinstance(word, Unknown | Found) or word[:1] not in ("-", "+"):
            break
        position += 1
        if word == "--":
            break
        if word in ("--norc", "--noprofile", "--login"):
            letters += "l" if word == "--login" else ""
            continue
        if word[0] == "+" or len(word) == 1 or not _SHELL_LETTERS.issuperset(word[1:]):
            return f"the option {word} is not in its model"
        letters += word[1:]
        for _ in range(word.count("o")):
            if (
                position >= len(argv)
                or argv[position] not in _SHELL_OPTIONS
                or isinstance(argv[position], Unknown | Found)
            ):
                return "its model does not know what -o sets"
            names.append(argv[position])
            position += 1
    return _Started(letters="".join(letters), names=tuple(names), words=tuple(argv[position:]))


def _shell(argv: Sequence[str], *, is_bash: bool) -> Use:
    if len(argv) == 2 and argv[1] in ("--version", "--help") and not isinstance(argv[1], Unknown | Found):
        return Use(act=Act.LOOKS)
    started = _started(argv)
    if isinstance(started, str):
        return gap(started)
    if not started.words:
        return gap("it runs what its input says")
    first, arguments = started.words[0], started.words[1:]
    if "c" not in started.letters:
        return gap("a login shell") if "l" in started.letters else _file(started, first, arguments)
    if isinstance(first, Unknown | Found):
        return gap(f"the text {first} is not known")
    if "n" in started.letters:
        return gap("its model does not vouch for -n with -c")
    if arguments and "$" in first:
        return gap("text that uses the words behind it")
    if "PS4" in first and ("x" in started.letters or "xtrace" in started.names):
        return gap("PS4, which is run for each traced command")
    if not is_bash and not read_alike(first):
        return gap("text that sh may read otherwise than bash")
    return Use(act=Act.WRAPS, scripts=(str(first),), login="l" in started.letters)


def _file(started: _Started, file: str, arguments: tuple[str, ...]) -> Use:
    if isinstance(file, Unknown | Found):
        return gap(f"the script {file} is not known")
    script = PathUse(word=file, access=Access.READ)
    if "n" in started.letters:  # the shell parses the commands, but runs none: bash(1), set -n
        return Use(act=Act.LOOKS, paths=(script,)) if started.letters == "n" else gap("-n among other options")
    paths = argument_paths(arguments)
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=(script, *paths))


def _bash(argv: Sequence[str]) -> Use:
    return _shell(argv, is_bash=True)


def _sh(argv: Sequence[str]) -> Use:
    return _shell(argv, is_bash=False)


def _other_shell(argv: Sequence[str]) -> Use:
    """Return the use of a shell with another language than bash: `=cmd` and `*(e:..:)` of zsh, all of fish and csh."""
    if len(argv) == 2 and argv[1] == "--version" and not isinstance(argv[1], Unknown | Found):
        return Use(act=Act.LOOKS)
    first = argv[1] if len(argv) > 1 else "-"
    if isinstance(first, Unknown | Found) or first[:1] in ("-", "+"):
        return gap("a shell whose language is not read")
    return _file(_Started(letters="", names=(), words=()), first, tuple(argv[2:]))


def _eval(argv: Sequence[str]) -> Use:
    """Return the use of `eval`.

    It joins its words with blanks and runs them in the same shell (POSIX.1-2024, XCU 2.15).
    """
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    unclear = next((word for word in words if isinstance(word, Unknown | Found)), None)
    if unclear is not None:
        return gap(f"eval of {unclear}, which is not known")
    if words and words[0].startswith("-") and len(words) == len(argv) - 1:
        return gap(f"the option {words[0]} is not in its model")
    text = " ".join(words)
    return Use(act=Act.WRAPS, scripts=(text,)) if text.strip() else Use(act=Act.LOOKS)


def _command(parsed: Parsed, use: Use) -> Use:
    if parsed.has("-v", "-V"):
        return Use(act=Act.LOOKS)
    return with_command(parsed, use)


_OTHER_SHELL = Program(read=_other_shell)


PROGRAMS = {
    "echo": _SAYS,
    "printf": Program(facts="few-variables no-input", read=_printf),
    "true": _SAYS,
    "false": _SAYS,
    ":": _SAYS,
    "pwd": Program(facts="few-variables", options="-L -P", operands=""),
    "test": _TESTS,
    "[": _TESTS,
    "type": Program(options="-a -f -p -P -t", operands="TEXT..."),
    "exit": _ENDS,
    "return": _ENDS,
    "break": _ENDS,
    "continue": _ENDS,
    # `wait -p NAME` sets a variable, `jobs -x` runs a command.
    "wait": Program(options="-f -n", operands="TEXT..."),
    "jobs": Program(options="-l -n -p -r -s", operands="TEXT..."),
    "times": Program(operands=""),
    "help": Program(options="-d -m -s", operands="TEXT..."),
    "umask": Program(options="-p -S", operands=""),
    "ulimit": Program(options="-a -H -S -b -c -d -e -f -i -k -l -m -n -p -q -r -s -t -u -v -x -P -R -T", operands=""),
    "alias": Program(options="-p", operands=""),
    "history": Program(operands=""),
    "bash": Program(read=_bash),
    "sh": Program(read=_sh),
    "dash": Program(read=_sh),
    "ash": Program(read=_sh),
    **dict.fromkeys(("zsh", "ksh", "mksh", "fish", "csh", "tcsh", "yash", "rbash"), _OTHER_SHELL),
    "eval": Program(read=_eval),
    "command": wraps(
        "-v -V",  # left out: -p, which sets another PATH
        refine=_command,
    ),
    "builtin": wraps(),
    "exec": wraps(),  # left out: -a (another name for the program), -c (no environment), -l (a login shell)
}
