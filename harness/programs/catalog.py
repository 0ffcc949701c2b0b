"""The models of programs by name, and the facts about a program that follow from its name alone.

A file of models is loaded at the first request for it. A fact about a name is a word in `facts` of a model
(program.py), or an entry in a list here if the models do not state it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module

from harness.programs.options import option_table
from harness.programs.program import FileNames, Program, Style
from harness.programs.runners import FIND_RUNS, name_of, unversioned
from harness.programs.variables import HARMLESS, PASSED, SET, changes_the_shell, steers
from harness.record import replace
from harness.regex import regex

# Programs by file. Programs with a row in asked.py are not listed here. Any other new model goes into `PROGRAMS` of the
# file of its kind, and its name into this list.
FILES = {
    "archives": "zip unzip zipinfo ar 7z cpio tar gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat",
    "awk": "awk gawk mawk original-awk nawk",
    "build_tools": "make gmake cmake meson shellcheck shfmt yamllint hadolint actionlint",
    "c_tools": "gcc g++ cc c++ clang clang++ as ld clang-format clang-tidy protoc nm objdump readelf size pkg-config pkgconf",
    "containers": "docker podman docker-compose kubectl terraform tofu ansible-playbook",
    "coreutils": (
        "ls dir vdir cat cp mv install ln rm unlink link rmdir mkdir touch chmod chown chgrp stat du df dirname "
        "basename realpath readlink mktemp dd truncate tee sync shred mkfifo mknod date hostname uptime who users "
        "uname whoami id groups logname hostid arch nproc tty printenv sleep yes seq expr factor"
    ),
    "elevation": (
        "sudo doas su runuser pkexec chroot unshare setsid systemd-run ssh-agent dbus-run-session xvfb-run fakeroot "
        "busybox toybox"
    ),
    "find": "find",
    "gh": "gh",
    "git": "git",
    "go_tools": "go gofmt",
    "interpreters": (
        "perl ruby php lua luajit Rscript julia java tclsh osascript expect pwsh sqlite3 psql mysql ed ex vi vim nvim "
        "nano emacs m4 gdb lldb R node nodejs deno bun ts-node tsx"
    ),
    "javascript": (
        "npm npx pnpx bunx tsc eslint prettier stylelint markdownlint markdownlint-cli2 vitest mocha playwright cypress"
    ),
    "network": "curl wget dig openssl ssh scp rsync",
    "processes": "ps top lsof sysctl getent crontab userdel groupdel deluser tput",
    "python": "python python2 python3 pypy pypy3",
    "python_packages": "pip pip3 uv",
    "python_tools": "ruff black pylint mypy pytest py.test sphinx-build",
    "rust_tools": "cargo rustc rustfmt rustup",
    "search": "grep egrep fgrep rg ag fd fdfind tree which whereis ctags",
    "sed": "sed",
    "shells": (
        "echo printf true false : pwd test [ type exit return break continue wait jobs times help umask ulimit alias "
        "history bash sh dash ash zsh ksh mksh fish csh tcsh yash rbash eval command builtin exec"
    ),
    "system": "journalctl dmesg mount ip ss netstat ifconfig dpkg rpm pacman",
    "text_tools": (
        "head tail wc sort uniq cut tr numfmt paste join comm nl od xxd hexdump hd fold fmt column expand unexpand "
        "rev tac shuf split csplit iconv base64 base32 basenc md5sum b2sum sha1sum sha224sum sha256sum sha384sum "
        "sha512sum cksum sum diff cmp patch strings file jq less bat batcat more bc tsort man cal ncal"
    ),
    "wrappers": (
        "env timeout time nice ionice nohup stdbuf chrt taskset numactl prlimit flock xargs strace ltrace valgrind "
        "hyperfine watch script entr unbuffer"
    ),
}

_file_of: dict[str, str] = {}
_models: dict[str, Program] = {}


def model_of(name: str) -> Program | None:
    """Return the model of the program `name` (without a folder), or None if there is none."""
    model = _models.get(name)
    if model is None:
        if not _file_of:
            _file_of.update((program, file) for file, programs in FILES.items() for program in programs.split())
        file = _file_of.get(name)
        if file is None:
            return _in_table().get(name)
        model = _models[name] = import_module(f"harness.programs.{file}").PROGRAMS[name]
    return model


@cache
def _in_table() -> Mapping[str, Program]:
    """Return the models in the table of asked.py, by name of the program."""
    models: Mapping[str, Program] = import_module("harness.programs.asked").PROGRAMS
    return models


def names() -> Iterator[str]:
    """Yield the name of every program that has a model."""
    for programs in FILES.values():
        yield from programs.split()
    yield from _in_table()


def is_known(program: str, fact: str) -> bool:
    """Return whether the model of a program states a fact (see `Program.facts`). False without a model."""
    model = model_of(program)
    return model is not None and fact in model.facts.split()


# --- Effects on files

_FIND_WRITES = frozenset(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"))
_SED_READS = frozenset(("-n", "-E", "-r", "-e", "-s", "-z", "-u", "--quiet", "--silent", "--regexp-extended"))
_GIT_LOOKS = frozenset(("status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "describe"))


def only_reads(argv: Sequence[str]) -> bool:
    """Return whether `argv` never writes to the files that its operands name. False for a program named by a path.

    `argv` are loose words (shell/loose_words.py): without quotes, expansions and redirections. No model vouches for
    them: `awk '{print > "x"}'` writes x, but as loose words it is `awk print x`, which reads x. A command that only
    reads is not thereby allowed to run. A mistake here makes a verdict on a write laxer by one step, never auto.
    """
    options = [word for word in argv[1:] if word.startswith("-")]
    match argv[0]:
        case "source" | ".":  # it runs the file, and does not write it
            return True
        case "find":
            return (_FIND_WRITES | FIND_RUNS).isdisjoint(argv)
        case "sed":
            # `w` and `e` take the following text as a file or a command: `sed -n "w x"`.
            runs_on = any(word.endswith(("w", "W", "e")) for word in argv[1:-1])
            return not runs_on and all(option in _SED_READS for option in options)
        case "git":
            # Exclude --output, its abbreviations, and -O (an order file, or a pager for grep).
            looks = len(argv) > 1 and argv[1] in _GIT_LOOKS
            return looks and not any(option.startswith(("--o", "-o", "-O")) for option in options)
        case name:
            return is_known(name, "only-reads")


def names_for(program: str, names: FileNames) -> FileNames:
    """Return the facts about the files that a program reads if it gets `names`. A folder among them may contain files
    with other names.
    """
    if is_known(program, "files") or not names.folders:
        return names
    return replace(names, skips=(), excluded=(), hidden=True)


# --- Environment variables that a program obeys

_OBEYED = regex(
    r"_?POSIX|TMP|TEMP|GREP_|AWK|GAWK|MAWK|WHINY|LOCPATH|NLSPATH|LANGUAGE|OUTPUT_CHARSET|CHARSET|TZDIR|DATEMSK|TERMINFO|TERMCAP|"
    r"GETCONF|ICU_|MALLOC|GLIBC|MUSL|LIBC|RES_|HOSTALIASES|LOCALDOMAIN|JQ_|RIPGREP|GMON|GCOV|ASAN|UBSAN|LSAN|MSAN|TSAN|XDG_|OMP_|"
    r"COMMAND_MODE|UNIX_STD|NSS_|DYLD",
    re.IGNORECASE,
)
"""Prefixes of environment variables obeyed by programs with the fact `few-variables`, or by common libraries.

From the manuals of GNU coreutils 9, diffutils 3, findutils 4, grep 3, sed 4; gawk 5, mawk 1; jq 1.7, ripgrep 14;
macOS.
"""


def harmless_for(program: str, name: str) -> bool:
    """Return whether setting the variable `name` changes at most details such as colours of a program that only
    reads.
    """
    if name in HARMLESS:
        return True
    if name in PASSED or name in SET or steers(name) or changes_the_shell(name) or _OBEYED.match(name) is not None:
        return False
    return program == "[[" or is_known(program, "few-variables")


# --- Clusters of options

CLUSTERS = frozenset(
    # Programs that use getopt_long(3), or parse in the same way.
    "cat cmp comm cp cut date df diff du egrep expand fgrep fold git gmake grep gzip head join ln ls make mkdir mktemp mv nl "
    "od paste readlink realpath rm rmdir sort split stat tail tee touch uniq wc "
    # Programs that use argparse, optparse or click of Python.
    "black coverage flake8 mypy pip pip3 py.test pylint pytest tox "
    # Programs that use clap of Rust, or parse in the same way.
    "cargo fd fdfind rg ruff".split()
)
"""Programs that read `-abc` as `-a -b -c`. INVARIANT: none of them has long options with one dash."""


def options_in(argv: Sequence[str], word: str) -> tuple[str, ...]:
    """Return the options in `word` of a command, without their values. Empty if they are unknown."""
    program = _model(argv)
    if program is None or word[:2] in ("", "-", "--"):
        return ()
    if program.style is Style.SINGLE:
        name, equals, _ = word.partition("=")
        return (name,) if equals else ()
    return _letters(program, word)


def _letters(program: Program, word: str) -> tuple[str, ...]:
    """Return the options in a cluster, or an empty tuple if one is unknown. The rest after an option with a value is
    its value.
    """
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
    """Return the model whose options the command takes: that of the program, or of the subcommand."""
    name, *words = argv
    if unversioned(name) == "python" and len(words) > 1 and words[0] == "-m":
        from harness.programs.python import MODULES

        if words[1] in MODULES:
            name, *words = words[1:]
    program = model_of(name)
    if program is None or (program.style is not Style.SINGLE and name not in CLUSTERS):
        return None
    if not program.subcommands:
        return program
    models = (program.subcommands.get(" ".join(words[:count])) for count in (3, 2, 1))
    return next((each for each in models if each is not None), None)


# --- Operands that are more than names

_MAKES = frozenset(
    "make gmake bmake pmake remake nmake just task rake scons b2 bjam xcodebuild cmake ninja sbt".split()
)
_MAVENS = frozenset("mvn mvnw mvnd".split())
_MSBUILDS = frozenset("dotnet msbuild".split())
_SCRIPT_RUNNERS = frozenset("gradle gradlew tox npm pnpm yarn configure qmake perl waf".split())
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./%+,:@[]-")
"""Characters of plain names of targets, which neither make nor a shell expands."""


def is_more_than_a_name(program: str, word: str) -> bool:
    """Return whether an operand of a build program may be more than the name of a target. False for options.

    `make test SHELL=./x` sets a variable that make runs, and so do `CC:=x` and `X!=y`. `mvn org.x:plugin:goal` runs
    code from a registry. `dotnet test /p:X=Y` is an option. False for all other programs.
    """
    name = name_of(program)
    if word.startswith("-"):
        return False
    if name in _MAKES:
        return not _PLAIN.issuperset(word)
    if name in _MSBUILDS:
        return word.startswith("/")
    return (name in _MAVENS and not {":", "="}.isdisjoint(word)) or (name in _SCRIPT_RUNNERS and "=" in word)
