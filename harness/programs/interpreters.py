"""Programs that run code out of files or operands: perl, ruby, java and their like; pure, and reads no code.

A named file is RUNS, with every word after it that may be a file; code among the words is a gap, and so is code that
comes in by the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Act
from harness.programs.code_files import argument_paths, with_arguments
from harness.programs.gathered import never
from harness.programs.model import Parsed, Program, Refine, Style, Unknown, Use, gap
from harness.programs.options import parse_words
from harness.record import replace


def _interprets(options: str, *, refine: Refine = with_arguments, operands: str = "SCRIPT TEXT...") -> Program:
    return Program(act=Act.RUNS, style=Style.POSIX, options=options, operands=operands, refine=refine)


def _php(parsed: Parsed, use: Use) -> Use:
    """`-l FILE` checks the syntax and runs nothing."""
    if [given.name for given in parsed.options] == ["-l"]:
        plain = len(parsed.operands) == 1 and parsed.operands[0] != "-"
        return replace(use, act=Act.LOOKS) if plain else gap("php -l of more than one file")
    return with_arguments(parsed, use)


def _never(parsed: Parsed, _use: Use) -> Use:
    return gap(f"{parsed.program} runs what its words or its files say")


_JAVA_OPTIONS = Program(
    style=Style.POSIX,
    options="-cp|-classpath|--class-path=TEXT -ea -server -Xmx256m -Xmx512m -Xmx1g -Xmx2g -Xmx4g -Xmx8g",
    operands="TEXT...",
)


def _java(argv: Sequence[str]) -> Use:
    """Behind `-jar FILE`, or behind the class, all words are the program's. Each start writes figures into /tmp."""
    if len(argv) == 2 and argv[1] in ("-version", "--version", "--help"):
        return Use(act=Act.RUNS)
    place = argv.index("-jar") if "-jar" in argv else len(argv)
    parsed = parse_words(_JAVA_OPTIONS, argv[:place])
    if isinstance(parsed, str):
        return gap(parsed)
    words = parsed.operands or tuple(argv[place + 1 :])
    if not words or any(word.startswith("@") for word in argv):
        return gap("java without a class, or with a file of options")
    parts = [
        part for value in parsed.values("-cp") for part in ([value] if isinstance(value, Unknown) else value.split(":"))
    ]
    paths = argument_paths([*parts, *words, *(argv[place:] if parsed.operands else ())])
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=paths)


PROGRAMS = {
    "perl": _interprets("-v|--version:info -w -W -T -t -c -e=CODE -E=CODE -M=CODE -m=CODE -I=CODE"),
    "ruby": _interprets("-v|--version:info -w -W[=TEXT] -c -e=CODE -r=CODE -I=CODE"),
    "php": _interprets("-v|--version:info -l -q -r=CODE -B=CODE -R=CODE -E=CODE -F=CODE -z=CODE", refine=_php),
    **dict.fromkeys(("lua", "luajit"), _interprets("-v:info -W -E -e=CODE -l=CODE")),
    "Rscript": _interprets("--version:info --vanilla --no-save --no-restore --quiet -e=CODE"),
    "julia": _interprets(
        "-v|--version:info --project[=READ] -t|--threads=TEXT -q|--quiet --startup-file=TEXT -e|--eval=CODE -E|--print=CODE "
        "-L|--load=CODE"
    ),
    "java": Program(read=_java),
    **dict.fromkeys(("tclsh", "osascript", "expect"), _interprets("-e=CODE -c=CODE -l=CODE")),
    "pwsh": _interprets(
        "-v|-Version|--version:info -NoProfile -nop -NonInteractive -File|-f=SCRIPT -Command|-c=CODE",
        refine=lambda parsed, use: use if parsed.has("-File") else with_arguments(parsed, use),
    ),
    **dict.fromkeys(
        ("sqlite3", "psql", "mysql", "ed", "ex", "vi", "vim", "nvim", "nano", "emacs", "m4", "gdb", "lldb", "R"),
        Program(act=Act.RUNS, options="--version:info", operands="TEXT...", refine=_never),
    ),
    # Whatever it is asked, it writes settings into the home folder.
    "jshell": never("it writes into the home folder and runs what it reads"),
}
