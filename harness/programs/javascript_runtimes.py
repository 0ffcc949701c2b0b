"""Programs that run JavaScript and TypeScript: node, deno, bun, ts-node, tsx; pure, and reads no code."""

from __future__ import annotations

from harness.actions import Act
from harness.programs.code_files import argument_paths, with_arguments
from harness.programs.model import Parsed, Program, Refine, Style, Use, gap
from harness.record import replace


def _node(parsed: Parsed, use: Use) -> Use:
    """`--test` and `--run` need no file; `inspect` is no file but the debugger, which listens on a port.

    `--check` runs nothing, but shows lines of whatever a folder's package.json names as its file: it stays RUNS.
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


def _runs(options: str = "", operands: str = "SCRIPT TEXT...", *, refine: Refine = with_arguments) -> Program:
    """Return the model of a subcommand that runs code of the project, which may come from the network."""
    style = Style.POSIX if operands.startswith("SCRIPT") else Style.GNU
    return Program(act=Act.RUNS, style=style, options=options, operands=operands, refine=refine, network=True)


def _files_of(parsed: Parsed, use: Use) -> Use:
    """Refine: any operand may be a file."""
    paths = argument_paths(parsed.operands)
    return gap(paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))


_DENO_ALLOWS = (
    "-A|--allow-all --allow-read[=TEXT] --allow-write[=TEXT] --allow-net[=TEXT] --allow-env[=TEXT] --allow-run[=TEXT] "
    "--no-check --check -q|--quiet --watch --no-lock --frozen --coverage[=WRITE_TREE] --filter=TEXT --fail-fast --parallel "
)
_DENO = Program(
    options="-V|--version:info -h|--help:info -q|--quiet",
    subcommands={
        "run": _runs(_DENO_ALLOWS),
        "test": _runs(_DENO_ALLOWS, "TEXT...", refine=_files_of),
        "bench": _runs(_DENO_ALLOWS, "TEXT...", refine=_files_of),
        "check": _runs("-q|--quiet", "TEXT...", refine=_files_of),
        "lint": _runs("-q|--quiet --fix", "TEXT...", refine=_files_of),
        "fmt": _runs("-q|--quiet --check", "TEXT...", refine=_files_of),
        "task": _runs("-q|--quiet", "TEXT...", refine=_files_of),
        "install": _runs("-q|--quiet --frozen", "", refine=_files_of),
        "cache": _runs("-q|--quiet"),
    },
)
_BUN = Program(
    options="-v|--version:info -h|--help:info --silent",
    subcommands={
        "run": _runs("--silent --bun --watch --hot"),
        "test": _runs(
            "--watch --bail --coverage -t|--test-name-pattern=TEXT --timeout=TEXT", "TEXT...", refine=_files_of
        ),
        "install": _runs("--frozen-lockfile -p|--production --silent", "TEXT...", refine=_files_of),
        "add": _runs("-d|--dev -D -E|--exact --silent", "TEXT...", refine=_files_of),
        "remove": _runs("--silent", "TEXT...", refine=_files_of),
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
