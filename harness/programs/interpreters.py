"""Programs that run code from files or operands: perl, ruby, java, node, deno and similar. Python is in python.py.

A command that names a script is RUNS; later words that may be files count as paths. Code among the words or on the
input is a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Act
from harness.programs.options import parse_words
from harness.programs.program import Parsed, Program, Refine, Style, Unknown, Use, gap
from harness.programs.shared import argument_paths, runs, with_arguments
from harness.record import replace

# --- perl, ruby, java and similar


def _interprets(options: str, *, refine: Refine = with_arguments) -> Program:
    return Program(act=Act.RUNS, style=Style.POSIX, options=options, operands="SCRIPT TEXT...", refine=refine)


def _php(parsed: Parsed, use: Use) -> Use:
    """Refine php. `-l FILE` only checks the syntax."""
    if [option.name for option in parsed.options] == ["-l"]:
        plain = len(parsed.operands) == 1 and parsed.operands[0] != "-"
        return replace(use, act=Act.LOOKS) if plain else gap("php -l of more than one file")
    return with_arguments(parsed, use)


def _never_runs(parsed: Parsed, _use: Use) -> Use:
    return gap(f"{parsed.program} runs what its words or its files say")


_JAVA_OPTIONS = Program(
    style=Style.POSIX,
    options="-cp|-classpath|--class-path=TEXT -ea -server -Xmx256m -Xmx512m -Xmx1g -Xmx2g -Xmx4g -Xmx8g",
    operands="TEXT...",
)


def _java(argv: Sequence[str]) -> Use:
    """Read a java command. Words after `-jar FILE` or after the class belong to the program.

    Each start writes performance data to /tmp.
    """
    if len(argv) == 2 and argv[1] in ("-version", "--version", "--help") and not isinstance(argv[1], Unknown):
        return Use(act=Act.LOOKS)
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


# --- node, deno, bun, ts-node, tsx


def _node(parsed: Parsed, use: Use) -> Use:
    """Refine node. `--test` and `--run` need no file; `inspect` starts the debugger, which listens on a port.

    `--check` runs no code, but remains RUNS: it prints lines of any file that a folder's package.json names as its
    main file.
    """
    if parsed.operands[:1] == ("inspect",):
        return gap("the debugger of node")
    alone = parsed.has("--test", "--run") and not parsed.operands
    return use if alone else with_arguments(parsed, use)


_NODE = Program(
    act=Act.RUNS,
    style=Style.POSIX,
    options="-v|--version:info -h|--help:info -c|--check --test --test-only --test-name-pattern=TEXT --run=TEXT --watch "
    "--watch-path=READ --env-file=READ --env-file-if-exists=READ --no-warnings --trace-warnings --trace-deprecation "
    "--throw-deprecation --trace-uncaught --enable-source-maps --expose-gc --max-old-space-size[=TEXT] "
    "--stack-trace-limit[=TEXT] --experimental-strip-types --experimental-vm-modules --experimental-test-coverage "
    "--test-concurrency=TEXT --test-timeout=TEXT -C|--conditions=TEXT "
    "-e|--eval=CODE -p|--print=CODE -r|--require=CODE --import=CODE --loader|--experimental-loader=CODE",
    operands="SCRIPT TEXT...",
    refine=_node,
)


def _runs_scripts(options: str = "", operands: str = "SCRIPT TEXT...", *, refine: Refine = with_arguments) -> Program:
    """Return the model of a subcommand that runs code of the project, which may come from the network."""
    style = Style.POSIX if operands.startswith("SCRIPT") else Style.GNU
    return runs(options, style=style, operands=operands, refine=refine)


def _files_of(parsed: Parsed, use: Use) -> Use:
    """Add every operand that may be a file."""
    paths = argument_paths(parsed.operands)
    return gap(paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))


_DENO_ALLOWS = (
    "-A|--allow-all --allow-read[=TEXT] --allow-write[=TEXT] --allow-net[=TEXT] --allow-env[=TEXT] --allow-run[=TEXT] "
    "--no-check --check -q|--quiet --watch --no-lock --frozen --coverage[=WRITE_TREE] --filter=TEXT --fail-fast --parallel "
)
_DENO = Program(
    options="-V|--version:info -h|--help:info -q|--quiet",
    subcommands={
        "run": _runs_scripts(_DENO_ALLOWS),
        "test": _runs_scripts(_DENO_ALLOWS, "TEXT...", refine=_files_of),
        "bench": _runs_scripts(_DENO_ALLOWS, "TEXT...", refine=_files_of),
        "check": _runs_scripts("-q|--quiet", "TEXT...", refine=_files_of),
        "lint": _runs_scripts("-q|--quiet --fix", "TEXT...", refine=_files_of),
        "fmt": _runs_scripts("-q|--quiet --check", "TEXT...", refine=_files_of),
        "task": _runs_scripts("-q|--quiet", "TEXT...", refine=_files_of),
        "install": _runs_scripts("-q|--quiet --frozen", "", refine=_files_of),
        "cache": _runs_scripts("-q|--quiet"),
    },
)
_BUN = Program(
    options="-v|--version:info -h|--help:info --silent",
    subcommands={
        "run": _runs_scripts("--silent --bun --watch --hot"),
        "test": _runs_scripts(
            "--watch --bail --coverage -t|--test-name-pattern=TEXT --timeout=TEXT", "TEXT...", refine=_files_of
        ),
        "install": _runs_scripts("--frozen-lockfile -p|--production --silent", "TEXT...", refine=_files_of),
        "add": _runs_scripts("-d|--dev -D -E|--exact --silent", "TEXT...", refine=_files_of),
        "remove": _runs_scripts("--silent", "TEXT...", refine=_files_of),
    },
)

_TS_NODE = Program(
    act=Act.RUNS,
    style=Style.POSIX,
    options="-T|--transpile-only --transpileOnly --esm --files -P|--project=READ --swc --pretty "
    "-e|--eval=CODE -p|--print=CODE -r|--require=CODE -C|--compiler=CODE",
    operands="SCRIPT TEXT...",
    refine=with_arguments,
)


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
        Program(act=Act.RUNS, options="--version:info", operands="TEXT...", refine=_never_runs),
    ),
    # deno and bun write settings to the home folder for any subcommand.
    **dict.fromkeys(("node", "nodejs"), _NODE),
    "deno": _DENO,
    "bun": _BUN,
    "ts-node": _TS_NODE,
    "tsx": Program(
        act=Act.RUNS,
        style=Style.POSIX,
        options="--no-cache --no-warnings --tsconfig=READ --env-file=READ -e|--eval=CODE -p|--print=CODE -r|--require=CODE "
        "--import=CODE",
        operands="SCRIPT TEXT...",
        refine=with_arguments,
    ),
}
