"""Programs that run programs: their names, what xargs puts in, and what the real ones run beside what is predicted."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from places import shell_word

from harness.actions import Act
from harness.programs.catalog import model_of, names
from harness.programs.options import read_command
from harness.programs.program import Program, Unknown, Use
from harness.programs.runners import FIND_RUNS, INTERPRETERS, SHELLS, VERSIONED, WRAPPERS

PROGRAMS: dict[str, Program] = {name: model for name in names() if (model := model_of(name)) is not None}


def use_of(argv: list[str]) -> Use:
    return read_command(PROGRAMS[argv[0]], argv)


def test_words_filled_in_by_xargs_are_known_by_their_beginning() -> None:
    inner = use_of(shlex.split("xargs -I% cat % ./%/x --in=% plain")).commands[0]
    filled = [word for word in inner.argv if isinstance(word, Unknown)]
    assert [(word.prefix, word.single) for word in filled] == [("", True), ("./", True), ("--in=", True)]
    tail = use_of(["xargs", "cat"]).commands[0].argv[-1]
    assert isinstance(tail, Unknown)
    assert (tail.prefix, tail.single) == ("", False)


def test_programs_that_run_programs_have_their_names_in_one_place() -> None:
    asked = [["a", "-x", "b", "c"], ["5", "b"], ["0x1", "a"], ["-c", "ls"], ["--scope", "a"], ["--keep-cwd", "a"]]
    uses = ((name, use_of([name, *words])) for name in PROGRAMS for words in asked)
    assert {name for name, use in uses if use.commands or use.scripts} <= WRAPPERS | SHELLS


def test_merged_lists_contain_all_names_of_the_former_four() -> None:
    wrappers = (
        "ash bash chroot csh dash doas docker env entr expect fish flock ionice ksh nice nohup nsenter npx parallel podman "
        "pnpx rbash rsh script setsid sh ssh stdbuf strace su sudo taskset tcsh time timeout unshare uvx watch xargs zsh "
        "busybox toybox systemd-run runuser pkexec bunx gdb ltrace chrt fakeroot firejail bwrap at batch cgexec chpst "
        "daemonize dbus-run-session eatmydata faketime hyperfine linux32 linux64 mksh numactl prlimit proxychains "
        "proxychains4 pwsh rlwrap runcon screen setarch setpriv setuidgid sg softlimit ssh-agent sshpass "
        "start-stop-daemon tmux torsocks unbuffer valgrind xvfb-run yash eval source . exec command"
    )
    assert frozenset(wrappers.split()) <= WRAPPERS | SHELLS | INTERPRETERS
    interpreters = (
        "awk bash bun busybox cmd csh dash deno ed env ex fish gawk gdb java julia ksh lua m4 make mawk mysql node nodejs "
        "osascript perl php psql pwsh pypy pypy3 python python2 python3 R Rscript ruby sed sh sqlite3 ssh sudo tclsh "
        "ts-node tsx vim xargs zsh"
    )
    assert frozenset(interpreters.split()) <= INTERPRETERS
    assert not WRAPPERS & SHELLS
    assert frozenset(("-exec", "-execdir", "-ok", "-okdir")) == FIND_RUNS
    assert frozenset(("python", "perl", "ruby")) <= VERSIONED


def test_many_words_take_linear_time() -> None:
    for name in ("env", "sudo"):
        assert len(use_of([name, *["A=1"] * 2_000, "ls"]).commands[0].variables) == 2_000
    assert use_of(["sudo", *["A=1", "-n"] * 500, "ls"]).act is Act.CHANGES


# What the programs themselves do: each row is run, with a stub in the place of the command, and what ran is compared.

REAL_ROWS = (
    "env A=1 record a b",
    "env -S 'record a' b",
    "env '-vSrecord a b'",
    "env -u A -- B=1 record -x",
    "env - PATH=$PATH record a",
    "timeout -k 5 10 record a -k",
    "timeout -sKILL -- 9 record",
    "nice -n5 record a",
    "nice -5 record -n 3",
    "ionice -c3 record a",
    "nohup record a",
    "stdbuf -oL -e 0 record a",
    "chrt -o 0 record a",
    "taskset -c 0 record a",
    "prlimit -n64 record a",
    "setsid -w record a",
    "flock lock record -c a",
    "flock lock -c 'record a b'",
    "xargs record a",
    "xargs -n1 record",
    "xargs -I{} record {} x{}y {",
    "xargs -I{} -n2 record {} a",
    "xargs -iR record R {}",
    "xargs -a input -L1 record",
    "script -qec 'record a' /dev/null",
    "sh -ec 'record a' record b",
    "dash -c -- 'record a'",
    "bash -oc pipefail 'record a' x",
    "bash -euc 'record a b'",
)  # fmt: skip


def stands_for(predicted: tuple[str, ...], ran: tuple[str, ...]) -> bool:
    """Say whether the words that ran are those that were predicted, unknown ones standing for any of their beginning."""
    if not predicted:
        return not ran
    first, rest = predicted[0], predicted[1:]
    if isinstance(first, Unknown) and not first.single:
        return any(stands_for(rest, ran[count:]) for count in range(len(ran) + 1))
    if not ran:
        return False
    same = ran[0].startswith(first.prefix) if isinstance(first, Unknown) else ran[0] == first
    return same and stands_for(rest, ran[1:])


def test_programs_behave_as_their_models(tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {shell_word(tmp_path)}/log\n')
    record.chmod(0o755)
    (tmp_path / "input").write_text("one two\nthree\n")
    rows = [shlex.split(line.replace("$PATH", f"{shell_word(tmp_path)}:/usr/bin:/bin")) for line in REAL_ROWS]
    installed = [argv for argv in rows if shutil.which(argv[0]) is not None]
    assert len(installed) > len(rows) / 2
    assert [problem for argv in installed if (problem := _difference(argv, tmp_path))] == []


def _difference(argv: list[str], folder: Path) -> str:
    """Return how what a command ran differs from what its model predicts, if it does."""
    (folder / "log").write_text("")
    subprocess.run(
        argv,
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", "SHELL": "/bin/sh", "HOME": os.fspath(folder)},
        input=b"one two\nthree\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    use = use_of(argv)
    predicted = [*(inner.argv for inner in use.commands), *(tuple(shlex.split(text)) for text in use.scripts)]
    flat = [tuple(part for word in words for part in _parts(word)) for words in predicted]
    ran = [("record", *text.split()) for text in (folder / "log").read_text().splitlines()]
    as_told = ran and all(any(stands_for(words, each) for words in flat) for each in ran)
    return "" if as_told and [words[0] for words in predicted] == ["record"] else f"{argv} ran {ran}, not {flat}"


def _parts(word: str) -> list[str]:
    return [Unknown(str(word), prefix=word.prefix, single=False)] if isinstance(word, Unknown) else word.split()
