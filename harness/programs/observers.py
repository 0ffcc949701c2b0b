"""Wrappers that watch, measure or repeat a command: strace, watch, hyperfine, script and their like; pure.

What they print of it is text. A form in which they change what the command does, or run more than it, is a gap.
"""

from __future__ import annotations

import re

from harness.actions import Access, Act
from harness.programs.model import Found, Inner, Parsed, PathUse, Program, Unknown, Use, gap
from harness.programs.refinements import with_command, with_text_for_sh, wraps
from harness.record import replace

_TRACED = r"(?:(?:trace|signal|status|quiet|abbrev|verbose|raw|read|write)=)?[A-Za-z0-9_,%!?@]+"


def _strace(parsed: Parsed, use: Use) -> Use:
    expressions = parsed.values("-e")
    if any(isinstance(text, Unknown | Found) or not re.fullmatch(_TRACED, text) for text in expressions):
        return gap("strace -e with more than a choice of calls")  # inject= and fault= change what the calls do
    outputs = parsed.values("-o")
    if any(output[:1] in ("|", "!") for output in outputs):
        return gap("strace -o with a command")
    if outputs and sum(given.name == "-f" for given in parsed.options) > 1:
        return gap("strace -ff, which names its files itself")
    return with_command(parsed, use)


def _watch(parsed: Parsed, use: Use) -> Use:
    words = parsed.operands
    if not words or any(isinstance(word, Unknown | Found) for word in words):
        return gap("the command that watch repeats is not known")
    if parsed.has("-x"):
        return replace(use, commands=(Inner(argv=words),))
    return with_text_for_sh(parsed, replace(use, scripts=(" ".join(words),)))


def _script(parsed: Parsed, use: Use) -> Use:
    if not parsed.operands and not parsed.has("-O", "-I", "-B"):
        use = replace(use, act=Act.WRITES, paths=(*use.paths, PathUse(word="typescript", access=Access.WRITE)))
    return with_text_for_sh(parsed, use)


def _entr(parsed: Parsed, use: Use) -> Use:
    """`/_` stands for a file of those that are watched, which come in by the input (entr(1))."""
    if not use.commands or use.commands[0].argv[0] == "/_":
        return gap(f"{parsed.program} without a command of its own")
    argv = tuple(Unknown(word, prefix="/", single=True) if word == "/_" else word for word in use.commands[0].argv)
    return replace(use, commands=(Inner(argv=argv),))


PROGRAMS = {
    "strace": wraps(
        "-V:info --version:info -h:info --help:info -A -C -c -f|--follow-forks -i -k -n -q -r -t -T -v -w -x -y -z -Z "
        "-a=TEXT -e=TEXT -o|--output=WRITE -O=TEXT -P=TEXT -s|--string-limit=TEXT -S=TEXT -U=TEXT -X=TEXT",
        refine=_strace,
    ),
    "ltrace": wraps(
        "-V:info --version:info --help:info -c -f -i -r -S -t -T -C -a=TEXT -e=TEXT -n=TEXT -o|--output=WRITE -s=TEXT"
    ),
    "valgrind": wraps(  # it takes options from a .valgrindrc in the folder
        "--version:info -h:info --help:info -q -v -s --tool[=TEXT] --leak-check[=TEXT] --track-origins[=TEXT] "
        "--show-leak-kinds[=TEXT] --error-exitcode[=TEXT] --errors-for-leak-kinds[=TEXT] --trace-children[=TEXT] "
        "--track-fds[=TEXT] --num-callers[=TEXT] --log-file[=WRITE] --xml[=TEXT] --xml-file[=WRITE] --suppressions[=READ]",
        act=Act.RUNS,
    ),
    "hyperfine": Program(
        act=Act.WRAPS,
        options="-V|--version:info -h|--help:info -w|--warmup=TEXT -r|--runs=TEXT -m|--min-runs=TEXT -M|--max-runs=TEXT "
        "-s|--setup=SHELL -p|--prepare=SHELL -c|--cleanup=SHELL -i|--ignore-failure -u|--time-unit=TEXT --style=TEXT "
        "-n|--command-name=TEXT --show-output --export-json=WRITE --export-csv=WRITE --export-markdown=WRITE",
        operands="SHELL...",
        refine=with_text_for_sh,
    ),
    "watch": wraps(  # procps 4; it goes on until the time limit
        "-V:info -v|--version:info -h|--help:info -b|--beep -c|--color -d|--differences[=TEXT] -e|--errexit -g|--chgexit "
        "-n|--interval=TEXT -p|--precise -q|--equexit=TEXT -t|--no-title -w|--no-wrap -x|--exec",
        "TEXT...",
        refine=_watch,
    ),
    "script": Program(
        act=Act.WRAPS,
        options="-V|--version:info -h|--help:info -c|--command=SHELL -q|--quiet -a|--append -e|--return -f|--flush --force "
        "-O|--log-out=WRITE -I|--log-in=WRITE -B|--log-io=WRITE -T|--log-timing=WRITE -E|--echo=TEXT "
        "-m|--logging-format=TEXT -o|--output-limit=TEXT",
        operands="WRITE",
        refine=_script,
    ),
    "entr": wraps("-a -c -d -n -p -r -z", refine=_entr),
    "unbuffer": wraps("-p"),
}
