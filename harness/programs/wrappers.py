"""Programs that run a command given in their words, as the same user and on this machine: env, timeout, xargs, strace.

The inner command is listed with its exact words, and judged separately. If a wrapper may run other words, or changes
the effects of the command, it is a gap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.options import parse_words
from harness.programs.program import Found, Incoming, Inner, Parsed, PathUse, Program, Refine, Style, Unknown, Use, gap
from harness.programs.shared import with_command, with_text_for_sh, wraps
from harness.record import replace

# --- env, timeout, xargs and similar

_GNU = "--version:info --help:info "
_UTIL_LINUX = "-V|--version:info -h|--help:info "
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


def _or_prints(parsed: Parsed, use: Use) -> Use:
    """Refine wrappers that only print the current value if they have neither options nor a command."""
    return with_command(parsed, use) if use.commands or parsed.options else Use(act=Act.LOOKS)


# env (GNU coreutils 9.1; POSIX.1-2024 knows -i alone).

_ENV = Program(
    style=Style.POSIX,
    options="-i|--ignore-environment -0|--null -u|--unset=TEXT -C|--chdir=TEXT -v|--debug",
    operands="TEXT...",
)
_SPLIT_PLAINLY = r"[A-Za-z0-9_./:=,+@% \t-]+"
"""Text that `env -S` only splits at blanks: without quotes, `$`, backslashes and `#`."""


def _env(argv: Sequence[str]) -> Use:
    if len(argv) == 2 and argv[1] in ("--version", "--help"):
        return Use(act=Act.LOOKS)
    words = _with_split_string(argv)
    parsed = words if isinstance(words, str) else parse_words(_ENV, words)
    if isinstance(parsed, str):
        return gap(parsed)
    rest = parsed.operands
    emptied = parsed.has("-i") or rest[:1] == ("-",)
    rest = rest[1:] if rest[:1] == ("-",) else rest
    names = list(parsed.values("-u"))
    if any(isinstance(word, Unknown | Found) or not re.fullmatch(_NAME, word) for word in names):
        return gap("a variable is unset whose name is not plain")
    while rest and (assigned := _assigned(rest[0])) is not None:
        if not re.fullmatch(_NAME, assigned):  # BASH_FUNC_ls%% is a function to bash
            return gap(f"{rest[0]} sets a variable whose name is not plain")
        names.append(assigned)
        rest = rest[1:]
    folders = parsed.values("-C")
    if len(folders) > 1 or any(isinstance(folder, Unknown | Found) or not folder for folder in folders):
        return gap("the folder that it runs in is not known")
    paths = tuple(PathUse(word=folder, access=Access.READ) for folder in folders)
    if not rest:
        return Use(act=Act.LOOKS, paths=paths)
    if isinstance(rest[0], Unknown | Found) or parsed.has("-0"):
        return gap(f"the command {rest[0]} is not known")
    inner = Inner(argv=rest, variables=tuple(names), folder="".join(folders))
    # An empty environment also lacks the variables that keep programs from running others.
    return Use(act=Act.CHANGES if emptied else Act.WRAPS, paths=paths, commands=(inner,))


def _with_split_string(argv: Sequence[str]) -> Sequence[str] | str:
    """Return the words of env, with `-S TEXT` at the start replaced by the words of TEXT; or the reason for a gap.

    -S at another position is a gap.
    """
    first = argv[1] if len(argv) > 1 else ""
    if isinstance(first, Unknown | Found):
        return argv
    form = next((form for form in ("--split-string=", "-vS", "-S") if first.startswith(form)), "")
    if first in ("-S", "-vS", "--split-string"):
        text, rest = (argv[2], argv[3:]) if len(argv) > 2 else ("", ())
    elif form:
        text, rest = first.removeprefix(form), argv[2:]
    else:
        return argv
    if isinstance(text, Unknown | Found) or not text.strip() or not re.fullmatch(_SPLIT_PLAINLY, text):
        return "env -S of more than plain words"
    return (argv[0], *text.split(), *rest)


def _assigned(word: str) -> str | None:
    """Return the name of the variable that a word of env or sudo sets, or None if it sets none."""
    text = word.prefix if isinstance(word, Unknown) else word
    name, equals, _ = text.partition("=")
    return name if equals and not isinstance(word, Found) else None


# xargs (GNU findutils 4.9).


def _xargs(parsed: Parsed, use: Use) -> Use:
    """Refine xargs. The words from its input are appended to the command, or replace the marker of -I."""
    command = use.commands[0].argv if use.commands else ("echo",)
    markers = [option.value or "{}" for option in parsed.options if option.name in ("-I", "-i")]
    if any(option.value == "" or isinstance(option.value, Unknown | Found) for option in parsed.options):
        return gap("an option of xargs whose value is not known")
    words: tuple[str, ...] = ()
    if markers:
        marker = markers[0]
        if len(markers) > 1 or marker in command[0]:
            return gap("xargs with a marker in the command's name")
        command = (command[0], *(_filled(word, marker) for word in command[1:]))
    # Versions of xargs differ on whether -I or a limit such as -n applies. Assume both.
    if not markers or parsed.has("-n", "-L", "-l"):
        words = (Incoming("(words of xargs)", single=False),)
    inner = Inner(
        argv=(*command, *words),
        takes=_taken_text(parsed),
        empty=not (markers or parsed.has("-r")),
        together=parsed.has("-P"),
    )
    return replace(use, commands=(inner,))


def _taken_text(parsed: Parsed) -> str:
    """Return the separator of the input's words: a NUL, a newline or a blank.

    Empty for another separator, or if xargs does not read words from its input.
    """
    if parsed.has("-a") or (parsed.has("-0") and parsed.has("-d")):
        return ""
    if parsed.has("-d"):
        return "\n" if set(parsed.values("-d")) <= {"\n", "\\n"} else ""
    return "\0" if parsed.has("-0") else " "


def _filled(word: str, marker: str) -> str:
    if word == marker:
        return Incoming(word, single=True)
    if isinstance(word, Found):
        return Unknown(str(word), single=True)
    if isinstance(word, Unknown):
        return Unknown(str(word), prefix=word.prefix.partition(marker)[0], single=word.single)
    return Unknown(word, prefix=word.partition(marker)[0], single=True) if marker in word else word


# Others.


def _prints_limits(parsed: Parsed, use: Use) -> Use:
    """Refine prlimit. Without a command it only sets limits of its own process and prints them."""
    return with_command(parsed, use) if parsed.operands else replace(use, act=Act.LOOKS)


def _flock(parsed: Parsed, use: Use) -> Use:
    words = parsed.operands[1:]
    if not words:
        return gap("flock of a file descriptor")
    if words[0] in ("-c", "--command"):
        if len(words) != 2 or isinstance(words[1], Unknown | Found):
            return gap("the text that flock runs is not known")
        return with_text_for_sh(parsed, replace(use, scripts=(words[1],)))
    if isinstance(words[0], Unknown | Found):
        return gap(f"the command {words[0]} is not known")
    return replace(use, commands=(Inner(argv=words),))


def _first_operand(pattern: str) -> Refine:
    """Return a refinement with a gap unless the operand before the command matches `pattern`.

    If that operand is missing, the command would be misread.
    """

    def refine(parsed: Parsed, use: Use) -> Use:
        if not parsed.operands or isinstance(parsed.operands[0], Unknown | Found):
            return gap(f"{parsed.program} without a command")
        plain = re.fullmatch(pattern, parsed.operands[0]) is not None
        return with_command(parsed, use) if plain else gap(f"{parsed.program} with {parsed.operands[0]} in front")

    return refine


# --- strace, watch, hyperfine, script and similar

_TRACED = r"(?:(?:trace|signal|status|quiet|abbrev|verbose|raw|read|write)=)?[A-Za-z0-9_,%!?@]+"


def _strace(parsed: Parsed, use: Use) -> Use:
    expressions = parsed.values("-e")
    if any(isinstance(text, Unknown | Found) or not re.fullmatch(_TRACED, text) for text in expressions):
        return gap(
            "strace -e with more than a choice of calls"
        )  # inject= and fault= change the results of system calls
    outputs = parsed.values("-o")
    if any(output[:1] in ("|", "!") for output in outputs):
        return gap("strace -o with a command")
    if outputs and sum(option.name == "-f" for option in parsed.options) > 1:
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
    """Refine entr. `/_` means one of the watched files, whose names entr reads from its input (entr(1))."""
    if not use.commands or use.commands[0].argv[0] == "/_":
        return gap(f"{parsed.program} without a command of its own")
    argv = tuple(Unknown(word, prefix="/", single=True) if word == "/_" else word for word in use.commands[0].argv)
    return replace(use, commands=(Inner(argv=argv),))


PROGRAMS = {
    "env": Program(read=_env),
    "timeout": wraps(
        _GNU + "-k|--kill-after=TEXT -s|--signal=TEXT -f|--foreground -p|--preserve-status -v|--verbose",
        "TEXT COMMAND...",
    ),
    "time": wraps(  # GNU time 1.9; the keyword `time` of bash is handled elsewhere
        _GNU + "-a|--append -o|--output=WRITE -f|--format=TEXT -p|--portability -q|--quiet -v|--verbose"
    ),
    "nice": wraps(_GNU + "-NUM -n|--adjustment=TEXT", refine=_or_prints),
    "ionice": wraps(_UTIL_LINUX + "-c|--class=TEXT -n|--classdata=TEXT -t|--ignore", refine=_or_prints),
    "nohup": wraps(  # its input and output are not terminals here, so it creates no nohup.out
        _GNU
    ),
    "stdbuf": wraps(_GNU + "-i|--input=TEXT -o|--output=TEXT -e|--error=TEXT"),
    "chrt": wraps(
        _UTIL_LINUX + "-b|--batch -f|--fifo -i|--idle -o|--other -r|--rr -R|--reset-on-fork -v|--verbose",
        "TEXT COMMAND...",
        refine=_first_operand("[0-9]{1,2}"),
    ),
    "taskset": wraps(
        _UTIL_LINUX + "-a|--all-tasks -c|--cpu-list", "TEXT COMMAND...", refine=_first_operand("[0-9a-fA-Fx,:-]+")
    ),
    "numactl": wraps(
        "-H|--hardware:info -s|--show:info -N|--cpunodebind=TEXT -m|--membind=TEXT -i|--interleave=TEXT "
        "-C|--physcpubind=TEXT -l|--localalloc -p|--preferred=TEXT -b|--balancing"
    ),
    "prlimit": wraps(
        _UTIL_LINUX + "-c|--core[=TEXT] -d|--data[=TEXT] -f|--fsize[=TEXT] -m|--rss[=TEXT] -n|--nofile[=TEXT] "
        "-s|--stack[=TEXT] -t|--cpu[=TEXT] -u|--nproc[=TEXT] -v|--as[=TEXT] -o|--output=TEXT --noheadings --raw --verbose",
        refine=_prints_limits,
    ),
    "flock": wraps(
        _UTIL_LINUX
        + "-s|--shared -x|-e|--exclusive -n|--nb|--nonblock -u|--unlock -w|--wait|--timeout=TEXT -o|--close "
        "-E|--conflict-exit-code=TEXT -F|--no-fork --verbose",
        "WRITE TEXT...",
        refine=_flock,
    ),
    "xargs": wraps(
        _GNU + "-0|--null -r|--no-run-if-empty -t|--verbose -x|--exit -p|--interactive -a|--arg-file=READ "
        "-n|--max-args=TEXT -P|--max-procs=TEXT -L=TEXT -l|--max-lines[=TEXT] -s|--max-chars=TEXT "
        "-I=TEXT -i|--replace[=TEXT] -d|--delimiter=TEXT -E=TEXT -e|--eof[=TEXT]",
        refine=_xargs,
    ),
    "strace": wraps(
        "-V:info --version:info -h:info --help:info -A -C -c -f|--follow-forks -i -k -n -q -r -t -T -v -w -x -y -z -Z "
        "-a=TEXT -e=TEXT -o|--output=WRITE -O=TEXT -P=TEXT -s|--string-limit=TEXT -S=TEXT -U=TEXT -X=TEXT",
        refine=_strace,
    ),
    "ltrace": wraps(
        "-V:info --version:info --help:info -c -f -i -r -S -t -T -C -a=TEXT -e=TEXT -n=TEXT -o|--output=WRITE -s=TEXT"
    ),
    "valgrind": wraps(  # reads options from a .valgrindrc in the working directory
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
    "watch": wraps(  # procps 4; it runs until the time limit
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
