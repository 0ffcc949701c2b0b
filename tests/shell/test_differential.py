"""What is said of a script, against what a real bash does with it: made-up scripts, those that once went wrong, and noise."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import differential
import pytest
import script_grammar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import SUPPORT
from rows import all_rows
from sizes import examples, proof_size

from harness.actions import Command
from harness.files.workspace import Workspace

SCRIPTS = proof_size("SCRIPTS", 400, full=2000)
"""Made-up scripts that are held against bash."""
PROGRAM = (sys.executable, os.path.join(SUPPORT, "differential.py"))

needs_bash = pytest.mark.skipif(
    shutil.which("bash") is None or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="NOTHING WAS HELD AGAINST BASH: it takes bash, and a C compiler for the stubs",
)


class Oracle:
    """A process that runs scripts in a scratch folder, without privileges."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [*PROGRAM, "--serve", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, question: object) -> dict[str, Any]:
        """Return the answer to a script, or to a list with one that is to be run whatever its verdict."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=120)


def opened(*options: str) -> Iterator[Oracle]:
    oracle = Oracle(*options)
    yield oracle
    oracle.close()


@pytest.fixture(scope="module")
def stubs() -> Iterator[Oracle]:
    """Bash among stubs."""
    yield from opened()


@pytest.fixture(scope="module")
def programs() -> Iterator[Oracle]:
    """Bash among real programs."""
    yield from opened("--real")


def run_many(*options: str) -> dict[str, Any]:
    done = subprocess.run([*PROGRAM, "--json", "--jobs", "2", *options], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    part: dict[str, Any] = json.loads(done.stdout)
    return part


@needs_bash
def test_every_command_that_bash_ran_was_predicted_or_the_script_was_not_auto() -> None:
    part = run_many("--count", str(SCRIPTS), "--seed", "7")
    assert part["found"] == []
    counts = part["counts"]
    assert counts["auto of grammar"] >= 0.25 * counts["made by grammar"]  # else the property says little
    assert counts["auto scripts that ran a program"] >= 0.7 * counts["auto"]
    assert counts["timed out"] <= 5


@needs_bash
def test_a_script_of_readers_writes_no_file() -> None:
    part = run_many("--real", "--count", str(SCRIPTS), "--seed", "7")
    assert part["found"] == []
    assert part["counts"]["auto of grammar"] >= 0.1 * part["counts"]["made by grammar"]


@needs_bash
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), mutate=st.booleans())
def test_the_same_with_scripts_that_hypothesis_makes_and_shrinks(stubs: Oracle, random: Random, mutate: bool) -> None:
    grammar = script_grammar.Grammar(random, 0.05)
    text = grammar.pick(script_grammar.seeds()) if mutate else grammar.script()
    text = script_grammar.mutated(grammar, text, "ok x") if mutate else text
    assert stubs.ask(text)["finding"] is None, text


# Scripts that were read otherwise than bash runs them, when this was made. None may be AUTO and do what was not predicted.
COUNTEREXAMPLES = [
    ("unset PAGER; ok", "a variable of the environment that is gone"),
    ("unset GIT_CONFIG_COUNT; git status", "and with it what keeps git tame"),
    ("read GIT_PAGER < a.txt; git log", "a variable that is read stays exported"),
    ("for GIT_PAGER in ok; do git log; done", "and so does that of a loop"),
    ("> c.txt; cat *.txt", "a file that the line itself makes is matched, too"),
    ("> --output=x; sort *", "and may be an option"),
    ("touch -- -x; ok *", "made by a program"),
    ("CDPATH=deep cd deeper; cat f", "cd obeys a variable in front"),
    ("HOME=sub cd; cat e.txt", "and this one"),
    ("B=x eval ok", "a variable in front of eval holds inside"),
    ("sh <<'E'\ntime ok x\nE", "time is no keyword of sh, whose text comes in by its input"),
    ("for i in 1; do cd sub; break; cd ..; done; cat x", "break leaves with the folder that it was in"),
    ("for i in 1 2; do cd sub; continue; cd ..; done; cat x", "and continue"),
    ("while :; do cd sub; break; cd ..; done; cat x", "out of a loop without end"),
    ("A=x; for i in 1; do A=y; break; A=x; done; cat $A", "with variables"),
    ("for i in 1 2; do eval break; cd sub; done; cat x", "behind eval"),
    ("cd nosuch || exit --help; cat x", "exit that does not exit"),
    ("cd nosuch || exit >nosuch/x; cat x", "since its redirection fails"),
    ("A=a.txt; export A=b > nosuch/x; cat $A", "export that is not run, for the same reason"),
    ("A=a.txt; { A=b; } > nosuch/x; cat $A", "a group"),
    ("A=a.txt; eval 'A=b' < nosuch; cat $A", "eval"),
    ("A=a.txt; for A in 1; do :; done > nosuch/x; cat $A", "a loop"),
    ("A=new.txt; A=x > $A", "assigned before the redirection, where there is no command"),
    ("A=q; A=x A=$A.y; cat $A", "assigned one after the other"),
    ('nice -n "$@" 5 git push -f', '"$@" is no word at all'),
    ('timeout -s "$@" 9 1 ok x', "likewise"),
    ("sh -c 'A=x; A=y :; cat $A'", "in sh, a variable in front of a special builtin stays"),
    ("cd nosuch/../sub; cat x", "cd does not leave what is not there"),
    ("cd sub/nosuch/..; cat x", "likewise"),
    ("PS4='$(ok)' bash -xc 'run'", "PS4 is run"),
    ("CDPATH=deep bash -c 'cd deeper; cat f'", "an inner shell obeys what it is handed"),
    ("HOME=sub sh -c 'cat ~/e.txt'", "HOME"),
    ("env HOME=sub bash -c 'cat ~/e.txt'", "by env"),
    ("env SHELLOPTS=noglob bash -c 'ok *.txt'", "options of bash"),
    ('export A=*; cat "$A"', "a word of export is not matched against files"),
    ("B='x PAGER=y'; export A=$B; bash -c 'cat $A'", "nor split"),
    ("B='x PAGER=y'; \\export A=$B; ok", "but where it is written otherwise"),
    ("\\export A=$(echo x PAGER=y); ok", "likewise"),
    ("B='x PAGER=y'; export C\"=\"$B; ok", "likewise"),
    ("bash <<<'rm x' 3<<<ok", "only descriptor 0 is its input"),
    ("bash 3<<<'rm x' <<<ok 0<&3", "copied from another one"),
    ("bash <<<ok <>a.txt", "opened for both"),
    ("cat [c-a]* [a--]*", "odd classes"),
    ("ok [^a]* `>made`", "a file that a later word makes"),
    ("ok `>made` [^a]*", "or an earlier one"),
    ("eval cat < a.txt", "a redirection of eval"),
    ("cat sub//*", "bash keeps these slashes"),
    ("false [!a]* | (ok) > new.txt", "the parts of a pipeline run at the same time"),
    ("GIT_PAGER=x A=$(git log) ok", "a variable in front is seen by the value of the next"),
    ("> l eval echo '?'", "which may make a file that the text matches"),
    ("sh -c 'A=a.txt; A=x > $A'", "sh redirects before it assigns"),
    ("cd sublink; env -C . bash -c 'cd ..; cat x'", "an inner bash believes the PWD that it is handed"),
]


@needs_bash
@all_rows("text", [pytest.param(text, id=f"{why}: {text!r}") for text, why in COUNTEREXAMPLES])
def test_former_findings_agree_with_bash(stubs: Oracle, text: str) -> None:
    assert stubs.ask(text)["finding"] is None


@all_rows("text", script_grammar.STAYS_OPAQUE)
def test_arrays_functions_and_their_like_stay_opaque(tmp_path: Any, text: str) -> None:
    reader = differential.Reader(differential.LOOSEST, Workspace(str(tmp_path), str(tmp_path)))
    assert reader.read(text).opaque


# Scripts of the corpus that are AUTO with stubs: were they asked about, the properties would say nothing of them.
@needs_bash
@all_rows(
    "text",
    [
        "ls -la sub; cat a.txt | sort | head -n 3",
        "cd sub && cat e.txt; cd ..; cat a.txt",
        "for f in a b; do echo $f; ok x-$f; done",
        "if [ -f a.txt ]; then cat a.txt; else ok; fi",
        "bash -c 'ok x; run y' && eval 'ok z'",
        "timeout 500 nice -n 5 env A=1 ok x",
        "find . -name e.txt -exec cat {} \\;",
        "echo a b | xargs -n1 echo",
        "A=a.txt; cat $A > out1 2>&1; ok $A",
        "ok {a,b}{1..2} *.{txt,py}; for A in {1..3}; do ok $A; done",
        'A=sub/e.txt; ok ${A%.txt} "${A##*/}" ${A:-x} ${A:+y}; cat ${A%e*}d.py',
        "I=2; J=$((I*3-7)); ok $J $((2**I)) $((-7/I)); I=$((I+1)); ok x$I",
        "I=0; for A in a b c; do I=$((I+1)); echo $A$I; done; [ $I -lt 3 ] || ok x",
        "pushd sub; cat e.txt; cd ../deep; cd -; cat d.py; popd; cat a.txt",
        "A=ab; [[ $A =~ ^(a|x)b$ ]] && ok x; run",
        "for A in x1 a.txt; do B=${A%.txt}; ok $B; cat $A; done",
        "cat <<'E'\n$(no)\nE\nok",
        'echo "$(ok x)" `run` <(no)',
    ],
)
def test_these_are_auto_and_run_as_predicted(stubs: Oracle, text: str) -> None:
    answer = stubs.ask(text)
    assert answer["auto"]
    assert answer["ran"] >= 2
    assert answer["finding"] is None


@needs_bash
@all_rows(
    ("text", "ran"),
    [
        pytest.param("ok 'a b' \"\" $(run x)", [["run", "x"], ["ok", "a b", "", "x"]], id="words and substitutions"),
        pytest.param("echo x; [ -f y ]", [["echo", "x"], ["[", "-f", "y", "]"]], id="builtins that were turned off"),
        pytest.param("env A=1 ok x", [["env", "A=1", "ok", "x"], ["ok", "x"]], id="what a wrapper runs"),
        pytest.param("xyzzy a", [["xyzzy", "a"]], id="a program that there is not"),
        pytest.param("bash -c 'ok \"$0\"' x", [["bash", "-c", 'ok "$0"', "x"], ["ok", "x"]], id="an inner shell"),
        pytest.param("no && ok; false || run", [["no"], ["false"], ["run"]], id="programs that fail"),
    ],
)
def test_oracle_sees_executed_programs(stubs: Oracle, text: str, ran: list[list[str]]) -> None:
    assert stubs.ask([text])["ran"] == ran


@needs_bash
@all_rows(
    ("text", "changed"),
    [
        pytest.param("> out1", ["out1"], id="a new file"),
        pytest.param("echo x >> a.txt", ["a.txt"], id="a longer one"),
        pytest.param("> 'sub/q r'; > ../canary/q", ["../canary/q", "sub/q r"], id="elsewhere"),
        pytest.param("find sub -name e.txt -delete", ["sub/e.txt"], id="one that is gone"),
    ],
)
def test_oracle_sees_and_restores_written_files(stubs: Oracle, text: str, changed: list[str]) -> None:
    assert stubs.ask([text])["changed"] == changed
    assert stubs.ask([":"])["changed"] == []


@needs_bash
@all_rows(
    ("text", "changed"),
    [
        pytest.param("touch x1", ["x1"], id="touch"),
        pytest.param("sed -n 'w out1' a.txt", ["out1"], id="sed that writes"),
        pytest.param("git log -1 --output=out1", ["out1"], id="git that writes"),
        pytest.param("awk '{ print > \"out1\" }' a.txt", ["out1"], id="awk that writes"),
        pytest.param("cat a.txt; git status; git diff", [], id="readers"),
    ],
)
def test_oracle_sees_files_written_by_programs(programs: Oracle, text: str, changed: list[str]) -> None:
    assert programs.ask([text])["changed"] == changed
    if changed:
        assert not programs.ask(text)["auto"]


@needs_bash
@all_rows("text", ["cat k.pem", "tac sub/in", "xxd < way/secret", "base64 k.pem", "grep -R . sub", "od -c hidden/x"])
def test_the_oracle_sees_a_secret_that_is_shown(programs: Oracle, text: str) -> None:
    assert programs.ask([text])["shown"]
    assert not programs.ask(text)["auto"]


@needs_bash
def test_the_oracle_sees_no_secret_where_there_is_none(programs: Oracle) -> None:
    assert not programs.ask(["cat a.txt; ls -la . deep; find .; git status; git log -p"])["shown"]


# Ways to a file that a rule forbids to read: `k.pem`, deep/.env, hidden/x, ../canary/secret (by the links way and sub/out).
READS = r"""
eval cat < k.pem
read A < k.pem; echo "$A"
{ cat; } < k.pem
for i in 1; do cat; done < k.pem
exec cat < k.pem
bash -c cat <k.pem
sh -c 'cat <k.pem'
xargs cat <<< k.pem
echo "$(<k.pem)"
A=$(cat k.pem); echo $A
cat <(cat k.pem)
cat <<< "$(cat k.pem)"
cat 0<&3 3<k.pem
exec 3<k.pem; cat <&3
cat < <(cat k.pem)
cat *.pem
cat k.p[e]m
cat ./*
cat sub/*
cat link/../k.pem
cat sublink/../.env
cd deep; cat .env
cd sublink; cat ../.env
cd deep && cat .e*
A=k; cat $A.pem
for f in *.pem; do cat "$f"; done
find . -name '*.pem' -exec cat {} +
find deep -type f -exec cat {} \;
ls *.pem | xargs cat
grep -f k.pem a.txt
grep -r . deep
sed 'R k.pem' a.txt
awk 'BEGIN{while((getline l < "k.pem")>0) print l}'
awk -v x=1 1 x=2 k.pem
tar -cf - -T k.pem
tar -cf - deep
diff -r deep sub
diff a.txt .
date -f k.pem
wc --files0-from=k.pem
gzip -rc deep
git diff --no-index deep sub
git grep --no-index c4
git grep --untracked c4
git config -f k.pem -l
git blame --contents k.pem a.txt
git -C deep grep --no-index c4
env -C deep cat .env
cat "$PWD"/k.pem
cat ~/../k.pem
cat /proc/self/cwd/k.pem
cat /dev/fd/3 3<k.pem
cat way/secret
grep -R c4 sub
find -L . -name secret -exec cat {} +
dd if=k.pem
""".strip().split("\n")


@needs_bash
@all_rows("text", READS)
def test_readers_never_show_forbidden_files(programs: Oracle, text: str) -> None:
    answer = programs.ask(text)
    assert answer["finding"] is None


def facet(*argv: str) -> Command:
    return Command(text=" ".join(argv), argv=argv)


def test_a_command_that_was_not_predicted_is_a_finding() -> None:
    """Of the comparison itself: what is known must be equal, what is not known may be anything."""
    text = "ok '$A' \"$B\" *.q"
    reading = differential.Reading(facets=(facet("ok", "$A", "$B", "*.q"),), auto=True)
    predicted = differential.Predicted(text, reading)
    assert predicted.matching(("ok", "$A", "any", "x.q"))
    assert predicted.matching(("ok", "$A", "", "x.q", "y.q"))
    assert not predicted.matching(("ok", "any", "any", "x.q"))
    assert not predicted.matching(("no", "$A", "any", "x.q"))


# tree-sitter-bash reads these otherwise than bash, and is wrong: continued lines, keywords, digits before a redirection, an
# escaped blank. A loop over no words has a body that is never run.
RESERVED = frozenset("if then elif else fi for while until do done case esac in select function coproc time".split())
NO_NAME = re.compile(r"(?:^|[\s;&|(])(?![A-Za-z_][A-Za-z0-9_]*\+?=)[^-\s=][^\s=]*=")
"""What tree-sitter takes for an assignment in front of a command, and bash for the command."""


def test_a_second_parser_finds_no_further_command(tmp_path: Any) -> None:
    pytest.importorskip("tree_sitter_bash", reason="NO SECOND OPINION: tree-sitter-bash is not installed")
    for folder in ("sub", "deep/deeper", "home"):
        (tmp_path / folder).mkdir(parents=True)
    reader = differential.Reader(differential.LOOSEST, Workspace(str(tmp_path), str(tmp_path / "home")))
    compared = 0
    for made in script_grammar.scripts(Random(5), proof_size("SCRIPTS", 300, full=1500)):
        if "\\\n" in made.text or "\\ " in made.text or " in \n" in made.text or " in ;" in made.text:
            continue
        if NO_NAME.search(made.text):
            continue
        reading = reader.read(made.text)
        if reading.auto:
            compared += 1
            names = differential.find_unnamed(made.text, reading)
            assert [name for name in names if name not in RESERVED and not name.isdigit()] == [], made.text
    assert compared >= 40
