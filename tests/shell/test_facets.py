"""How a command line becomes facets: what runs, where, with which files and variables; and what stays opaque."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import all_rows

from harness.actions import Access, Command, Facet, Opaque, PathAccess
from harness.files.workspace import Workspace
from harness.policy.rule_examples import EXAMPLE_DISK
from harness.shell.facets import MAX_ROUNDS, read_commands
from harness.shell.loose_reading import MAX_CLUSTER_LETTERS, likely_paths, loose_commands

Argv = tuple[str, ...]


def shown(facet: Facet) -> str:
    """Return a facet in one line: `{variables} words [act: r/w:path ...]`, `> w:path` or `? reason`."""
    match facet:
        case Command():
            variables = f"{{{','.join(facet.variables)}}} " if facet.variables else ""
            paths = "".join(f" {_path(path)}" for path in facet.paths)
            return f"{variables}{' '.join(facet.argv)} [{facet.act.value}{':' if paths else ''}{paths}]"
        case PathAccess():
            return f"> {_path(facet)}"
        case Opaque():
            return f"? {facet.reason}"
        case _:
            raise AssertionError(facet)


def _path(path: PathAccess) -> str:
    letter = {Access.READ: "r", Access.WRITE: "w", Access.EITHER: "e"}[path.access]
    return f"{letter.upper() if path.tree else letter}:{path.real.removeprefix('/workspace/')}"


def read(line: str) -> list[str]:
    """Return the facets of a line, on a disk on which nothing lies."""
    return [shown(facet) for facet in read_commands(line, EXAMPLE_DISK)]


FACETS = {
    # words and operators
    "ls": ["ls [looks: r:/workspace]"],
    "cat a 'b c' \"d\" e\\ f": ["cat a b c d e f [looks: r:a r:b c r:d r:e f]"],
    "cat a; cat b && cat c || cat d | cat e": [f"cat {name} [looks: r:{name}]" for name in "abcde"],
    "! cat a |& cat": ["cat a [looks: r:a]", "cat [looks]"],
    "(cat a); { cat b; }": ["cat a [looks: r:a]", "cat b [looks: r:b]"],
    "cat a # b": ["cat a [looks: r:a]"],
    # redirections
    "cat < a": ["cat [looks: r:a]"],
    "cat a > b 2>&1": ["> w:b", "cat a [looks: r:a]"],
    "> b cat a": ["> w:b", "cat a [looks: r:a]"],
    "cat >> b a <> c": ["> w:b", "> e:c", "cat a [looks: r:a]"],
    "cat a &> b": ["> w:b", "cat a [looks: r:a]"],
    "cat a > /dev/null 2> /dev/stderr": ["cat a [looks: r:a]"],
    "{ cat a; } > b": ["> w:b", "cat a [looks: r:a]"],
    "while read -r x; do cat a; done < b": ["> r:b", "read -r x [looks]", "cat a [looks: r:a]"],
    "cat > $X": ["? a redirection whose target is not plain"],
    "cat > *.txt": ["? a redirection whose target is not plain"],
    "cat < /dev/tcp/h/1": ["? a redirection to the network"],
    "cat <<'E'\n$(x)\nE": ["cat [looks]"],
    "cat <<< $(cat a)": ["cat a [looks: r:a]", "cat [looks]"],
    # expansions
    'echo $X "$Y" ${Z}': ["echo $X $Y $Z [looks]"],
    "echo $(cat a) `cat b`": ["cat a [looks: r:a]", "cat b [looks: r:b]", "echo $(...) $(...) [looks]"],
    "diff <(cat a) b": ["cat a [looks: r:a]", "diff /dev/fd/63 b [looks: R:b]"],
    "cat $X": ["? $X may be an option"],
    'cat "$X"': ["? $X may be an option"],
    'cat -- "$X"': ["? the value of $X is not known"],
    "cat a$X": ["? a$X may be any number of words"],
    'cat "a$X"': ["? the value of a$X is not known"],
    'grep -e "$X" a': ["grep -e $X a [looks: r:a]"],
    'grep "--regexp=$X" a': ["grep --regexp=$X a [looks: r:a]"],
    'grep "$X" a': ["? $X may be an option"],
    "head -n $((1 + 2)) a": ["head -n 3 a [looks: r:a]"],
    "cat {a,b}.c": ["cat a.c b.c [looks: r:a.c r:b.c]"],
    "for f in {1..2}; do cat $f; done": ["cat 1 [looks: r:1]", "cat 2 [looks: r:2]"],
    "sh -c 'cat {a,b}'": ["? text that sh may read otherwise than bash"],
    # arithmetic: names count where they hold integers, since bash evaluates what they hold
    "x=7 y=2; echo $((x+1)) $((x-y*5)) $((-x/y)) $((-x%y)) $((-y**2)) $((2**3**y)) $(( (x + $y) * 2 ))": [
        "echo 8 -3 -3 -1 4 512 18 [looks]"
    ],
    "x=7; x=$((x*x)); head -n $x a$((x-1))": ["head -n 49 a48 [looks: r:a48]"],
    "x=$((9999999999*9999999999)); echo $((x+1)) $((x*2))": ["echo $((x+1)) $((x*2)) [looks]"],
    # what may fail is not read: bash goes on with the next line, and x holds what it held
    "x=$((1/0)); echo $((x+1))": ["? arithmetic that is more than names, numbers and + - * / % ** ( )"],
    "x=$((2**-1)); echo $((x+1))": ["? arithmetic that is more than names, numbers and + - * / % ** ( )"],
    "y=0; x=$((1/y))": ["? arithmetic with a division or a power that may fail"],
    "y=0; x=$((1%y))": ["? arithmetic with a division or a power that may fail"],
    "y=-1; x=$((2**y))": ["? arithmetic with a division or a power that may fail"],
    "x=$((7/(2**64)))": ["? arithmetic that is more than names, numbers and + - * / % ** ( )"],
    "y=$(nproc); x=$((100/y))": ["nproc [looks]", "? arithmetic with a division or a power that may fail"],
    "echo $((08))": ["? arithmetic that is more than names, numbers and + - * / % ** ( )"],
    "x='a[$(id)]'; echo $((x))": ["? arithmetic with x, which may hold more than a number"],
    "x=y y=1; echo $((x))": ["? arithmetic with x, which may hold more than a number"],
    "x=010; echo $((x))": ["? arithmetic with x, which may hold more than a number"],
    "x=; echo $((x))": ["? arithmetic with x, which may hold more than a number"],
    "echo $((x))": ["? arithmetic with x, which may hold more than a number"],
    "x=1; read x; echo $((x))": ["read x [looks]", "? arithmetic with x, which may hold more than a number"],
    "x=1; unset x; echo $((x))": ["unset x [wraps]", "? arithmetic with x, which may hold more than a number"],
    "x=1; x=$(cat a); echo $((x))": ["cat a [looks: r:a]", "? arithmetic with x, which may hold more than a number"],
    "x=1; bash -c 'echo $((x))'": [
        "bash -c echo $((x)) [wraps]",
        "? arithmetic with x, which may hold more than a number",
    ],
    "x=-3 y=1; echo $((y-$x))": ["? arithmetic with ++ or --"],  # `y--3` sets y
    "x=-3 y=1; echo $((y - $x)) $((y+$x)) $((2*$x))": ["echo 4 -2 -6 [looks]"],
    "x=$((0-1)); cat a$x": ["cat a-1 [looks: r:a-1]"],
    "x=$((9999999999*9999999999)); cat $x": ["? the value of $x is not known"],
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done; cat $i": [
        "[ $i -lt 3 ] [looks]",
        "echo $i [looks]",
        "? the value of $i is not known",
    ],
    "i=0; while [[ $i -lt 3 ]]; do i=$(( $i + 1 )); done": ["[[ $i -lt 3 [looks]"],
    "i=0; while true; do i='a[$(id)]'; break; i=1; done; echo $((i))": [
        "true [looks]",
        "break [looks]",
        "? arithmetic with i, which may hold more than a number",
    ],
    "i=x; while true; do i=$((i+1)); done": ["true [looks]", "? arithmetic with i, which may hold more than a number"],
    "[[ $x -lt 3 ]]": ["? a test that evaluates arithmetic"],
    "x='a[$(id)]'; [[ $x -eq 0 ]]": ["? a test that evaluates arithmetic"],
    "for f in a b; do n=$(cat $f); cat $f; done": ["cat a [looks: r:a]", "cat b [looks: r:b]"],
    "n=0; for f in a b; do n=$((n+1)); cat $f$n; done": ["cat a1 [looks: r:a1]", "? the value of b$n is not known"],
    "cat ~/a": ["cat /home/user/a [looks: r:/home/user/a]"],
    "cat '~/a'": ["cat ~/a [looks: r:~/a]"],
    'cat $HOME/a "$PWD"/b': ["cat /home/user/a /workspace/b [looks: r:/home/user/a r:b]"],
    # variables that the line sets
    "x=a; cat $x": ["cat a [looks: r:a]"],
    "x=a y=$x; cat $y": ["cat a [looks: r:a]"],
    "x='a b'; cat \"$x\"": ["cat a b [looks: r:a b]"],
    "x='a b'; cat $x": ["? $x may be an option"],
    "x=; cat $x": ["? $x may be an option"],
    "x=$(cat a); cat $x": ["cat a [looks: r:a]", "? $x may be an option"],
    "x=a.md; cat ${x%.md} ${x%%.*}b ${x#a} ${x##*/}": ["cat a ab .md a.md [looks: r:a r:ab r:.md r:a.md]"],
    "x=a/b/c.d.e; echo ${x#*/} ${x##*/} ${x%.*} ${x%%.*} ${x%q}": [
        "echo b/c.d.e c.d.e a/b/c.d a/b/c a/b/c.d.e [looks]"
    ],
    'x=; cat ${x:-a} "${x-b}c" ${x+d} "${x:+e}f"': ["cat a c d f [looks: r:a r:c r:d r:f]"],
    "x=a; cat ${x:-b} ${x:+c}": ["cat a c [looks: r:a r:c]"],
    "cat ${x:-a}": ["? ${x:-a} may be an option"],
    'cat -- "${x:-a}"': ["? the value of ${x:-a} is not known"],
    "x='b c'; cat ${x%d}": ["? ${x%d} may be an option"],
    "x=; cat ${x:-a b}": ["? ${x:-a b} may be an option"],
    "${x:-rm} a": ["? a command whose name is not plain"],
    "cat ${HOME%user}/a ${PWD##*/}": ["cat /home//a workspace [looks: r:/home/a r:workspace]"],
    "x=rm; $x a": ["rm a [writes: w:a]"],
    "x=a; (x=b; cat $x); cat $x": ["cat b [looks: r:b]", "cat a [looks: r:a]"],
    "x=a; true | x=b; cat $x": ["true [looks]", "cat a [looks: r:a]"],
    "x=a; if true; then x=b; fi; cat $x": ["true [looks]", "? $x may be an option"],
    "x=a; while true; do x=b; done; cat $x": ["true [looks]", "? $x may be an option"],
    "x=a; unset x; cat $x": ["unset x [wraps]", "? $x may be an option"],
    "x=a; read x; cat $x": ["read x [looks]", "? $x may be an option"],
    "A=1 B=2 cat a": ["{A,B} cat a [looks: r:a]"],
    "export A=1; cat a": ["export A=1 [wraps]", "{A} cat a [looks: r:a]"],
    "A=1; cat a": ["cat a [looks: r:a]"],
    "PAGER=x; cat a": ["{PAGER} cat a [looks: r:a]"],
    "unset PAGER; cat a": ["unset PAGER [wraps]", "{PAGER} cat a [looks: r:a]"],
    "A=1 B=$(cat a) cat b": ["{A} cat a [looks: r:a]", "{A,B} cat b [looks: r:b]"],
    "A=1 B=$(cat a); cat b": ["cat a [looks: r:a]", "cat b [looks: r:b]"],
    "PATH=x; cat a": ["? PATH is set, which changes how the rest is run"],
    "A=1 cd x": ["? a variable in front of cd"],
    "IFS= read -r x": ["read -r x [looks]"],
    # loops and choices
    "for f in a b; do cat $f; done": ["cat a [looks: r:a]", "cat b [looks: r:b]"],
    'for f in a -n; do cat "$f" b; done': ["cat a b [looks: r:a r:b]", "cat -n b [looks: r:b]"],
    'for f in $X; do cat "$f"; done': ["? $f may be an option"],
    'for f; do cat "$f"; done': ["? $f may be an option"],
    "for f in a; do :; done; cat $f": [": [looks]", "? $f may be an option"],
    "if cat a; then cat b; elif cat c; then cat d; else cat e; fi": [f"cat {n} [looks: r:{n}]" for n in "abcde"],
    "case $X in a) cat a;; *) cat b;; esac": ["cat a [looks: r:a]", "cat b [looks: r:b]"],
    "[[ -f a && $X == b* ]]": ["[[ -f a && $X == b* [looks: r:a]"],
    # a number for sure
    "head -n $(nproc) a": ["nproc [looks]", "head -n $(...) a [looks: r:a]"],
    "n=$(nproc); echo $((n+1)) `nproc`x": ["nproc [looks]", "echo $((n+1)) $(...)x [looks]"],
    "head -n $(nproc --all) a": ["nproc --all [looks]", "? $(...) may be any number of words"],
    "head -n $(nproc; cat b) a": ["nproc [looks]", "cat b [looks: r:b]", "? $(...) may be any number of words"],
    "head -n $(nproc < b) a": ["nproc [looks: r:b]", "? $(...) may be any number of words"],
    # folders
    "cd s && cat a": ["cd s [wraps: r:s]", "cat a [looks: r:s/a]"],
    "cd s; cat a": ["cd s [wraps: r:s]", "cat a [looks: r:s/a r:a]"],
    "cd s || exit; cat a": ["cd s [wraps: r:s]", "exit [looks]", "cat a [looks: r:s/a]"],
    "cd s || cat a": ["cd s [wraps: r:s]", "cat a [looks: r:a]"],
    "! cd s && cat a": ["cd s [wraps: r:s]", "cat a [looks: r:s/a r:a]"],
    "(cd s && cat a); cat b": ["cd s [wraps: r:s]", "cat a [looks: r:s/a]", "cat b [looks: r:b]"],
    "cd s | cat a; cat b": ["cd s [wraps: r:s]", "cat a [looks: r:a]", "cat b [looks: r:b]"],
    "cd s && cd .. && cat a": ["cd s [wraps: r:s]", "cd .. [wraps: r:/workspace]", "cat a [looks: r:a]"],
    "cd $X && cat a /b": ["? cd to a folder that is not known", "? the folder that it runs in is not known"],
    "cd - && cat /b": ["? cd to a folder that is not known", "cat /b [looks: r:/b]"],
    "cd s && cd t && cd - && cat a": [
        "cd s [wraps: r:s]",
        "cd t [wraps: r:s/t]",
        "cd - [wraps: r:s]",
        "cat a [looks: r:s/a]",
    ],
    "cd s && cd - && cd - && cat a": [
        "cd s [wraps: r:s]",
        "cd - [wraps: r:/workspace]",
        "cd - [wraps: r:s]",
        "cat a [looks: r:s/a]",
    ],
    "cd s && bash -c 'cd -'": ["cd s [wraps: r:s]", "bash -c cd - [wraps]", "? cd to a folder that is not known"],
    "while true; do cd - && cat a; cd s; done": [
        "true [looks]",
        "? cd to a folder that is not known",
        "? the folder that it runs in is not known",  # `cat a`, then `cd s` of the second round
        "? the folder that it runs in is not known",
        "true [looks]",
    ],
    "pushd s && cat a && popd && cat b": [
        "pushd s [wraps: r:s]",
        "cat a [looks: r:s/a]",
        "popd [wraps: r:/workspace]",
        "cat b [looks: r:b]",
    ],
    "pushd s && pushd t && popd && cat a": [
        "pushd s [wraps: r:s]",
        "pushd t [wraps: r:s/t]",
        "popd [wraps: r:s]",
        "cat a [looks: r:s/a]",
    ],
    "pushd s && cd t && popd && cd - && cat a": [
        "pushd s [wraps: r:s]",
        "cd t [wraps: r:s/t]",
        "popd [wraps: r:/workspace]",
        "cd - [wraps: r:s/t]",
        "cat a [looks: r:s/t/a]",
    ],
    "pushd s; popd": ["pushd s [wraps: r:s]", "? popd to a folder that is not known"],  # there may be no s
    "pushd /x && cat a": ["pushd /x [wraps: r:/x]", "cat a [looks: r:/x/a]"],
    "popd": ["? popd to a folder that is not known"],
    "pushd": ["? pushd to a folder that is not known"],
    "pushd +1": ["? pushd to a folder that is not known"],
    "pushd -n s": ["? pushd to a folder that is not known"],
    "pushd $X": ["? pushd to a folder that is not known"],
    "sh -c 'pushd s'": ["? text that sh may read otherwise than bash"],
    "cd && cat a": ["cd [wraps: r:/home/user]", "cat a [looks: r:/home/user/a]"],
    "cd s && cat a > b": ["cd s [wraps: r:s]", "> w:s/b", "cat a [looks: r:s/a]"],
    "eval 'cd s' && cat a": ["eval cd s [wraps]", "cd s [wraps: r:s]", "cat a [looks: r:s/a]"],
    "bash -c 'cd s'; cat a": ["bash -c cd s [wraps]", "cd s [wraps: r:s]", "cat a [looks: r:a]"],
    # wrappers: every layer is a facet
    "timeout 5 cat a": ["timeout 5 cat a [wraps]", "cat a [looks: r:a]"],
    "env A=1 timeout 5 cat a": [
        "env A=1 timeout 5 cat a [wraps]",
        "{A} timeout 5 cat a [wraps]",
        "{A} cat a [looks: r:a]",
    ],
    "sudo cat a": ["sudo cat a [changes]", "cat a [looks: r:a]"],
    "bash -c 'cat a; cat b'": ["bash -c cat a; cat b [wraps]", "cat a [looks: r:a]", "cat b [looks: r:b]"],
    "bash <<'E'\ncat a\nE": ["bash [wraps]", "cat a [looks: r:a]"],
    "eval cat a": ["eval cat a [wraps]", "cat a [looks: r:a]"],
    "find s -exec cat {} \\;": ["find s -exec cat {} ; [looks: r:s]", "cat {} [looks: R:s]"],
    "xargs rm": ["xargs rm [looks]", "? (words of xargs) may be an option"],
    "command cd s": ["command cd s [wraps]", "? command cd"],
    # programs without a model, and options that a model does not know
    "tool a": ["tool a [unknown: e:a]"],
    "./cat a": ["./cat a [unknown: e:cat e:a]"],
    "/bin/cat a": ["/bin/cat a [looks: r:a]"],
    "cat --strange a": ["cat --strange a [unknown: e:a]"],
    "python3.11 --version": ["python3.11 --version [looks]"],
    # what changes how the rest is run
    ". ./x": ["? ., which changes how the rest is run"],
    "source x; cat a": ["? source, which changes how the rest is run"],
    "cat a; alias b=c": ["cat a [looks: r:a]", "? alias, which changes how the rest is run"],
    "set -f; cat *": ["? set -f, which changes how the rest is run"],
    "set -euo pipefail; cat a": ["set -euo pipefail [wraps]", "cat a [looks: r:a]"],
    "$X a": ["? a command whose name is not plain"],
    "/bin/c?t a": ["? a command whose name is not plain"],
    "eval $X": ["? eval of $X, which is not known"],
    "cat a &": ["? a background job (&)", "cat a [looks: r:a]"],
    "f() { cat a; }": ["? a function definition"],
}


@all_rows(("line", "facets"), FACETS.items())
def test_a_line_becomes_these_facets(line: str, facets: list[str]) -> None:
    assert read(line) == facets


def on_disk(workspace: Workspace, line: str) -> list[str]:
    facets = read_commands(line, workspace)
    return [shown(facet).replace(f"{workspace.root}/", "").replace(workspace.root, ".") for facet in facets]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Some files, one that is named like an option, and links."""
    root = tmp_path.resolve() / "repo"
    for folder in ("s/deep", "empty"):
        (root / folder).mkdir(parents=True)
    for name in ("a.txt", "b.txt", ".hidden", "s/c.txt", "s/deep/d.txt", "-n"):
        (root / name).write_text("")
    (root / "l").symlink_to("s/deep")
    return Workspace(str(root), str(tmp_path))


ON_DISK: dict[str, list[str] | None] = {
    "cat *.txt": ["cat a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat s/*": ["cat s/c.txt s/deep [looks: r:s/c.txt r:s/deep]"],
    "cat */c.txt": ["cat s/c.txt [looks: r:s/c.txt]"],
    "cat [ab].txt ?.txt": ["cat a.txt b.txt a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat [!a].txt": ["cat b.txt [looks: r:b.txt]"],
    "cat .h*": ["cat .hidden [looks: r:.hidden]"],
    "cat nothing*": ["cat nothing* [looks: r:nothing*]"],
    "cat \"*.txt\" '*'": ["cat *.txt * [looks: r:*.txt r:*]"],
    "cat -?": ["cat -n [looks]"],
    "cat .*": ["? .* may be any number of words"],
    "> x; cat *.txt": ["> w:x", "? *.txt may be an option"],
    "cat *.txt > new.txt": ["> w:new.txt", "cat a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat *.txt $(> new.txt)": ["> w:new.txt", "? *.txt may be an option"],
    "for f in *.txt $(> new.txt); do cat $f; done": ["> w:new.txt", "? $f may be an option"],
    "cd s && cat *.txt": ["cd s [wraps: r:s]", "cat c.txt [looks: r:s/c.txt]"],
    "rm -r s/*": ["rm -r s/c.txt s/deep [writes: w:s W:s/c.txt W:s/deep]"],
    "for f in *.txt; do cat $f; done": ["cat a.txt [looks: r:a.txt]", "cat b.txt [looks: r:b.txt]"],
    # a folder that is there can be gone to; one that is a link is left as it was written
    "cd s; cat c.txt": ["cd s [wraps: r:s]", "cat c.txt [looks: r:s/c.txt]"],
    "cd l && cat d.txt": ["cd l [wraps: r:s/deep]", "cat d.txt [looks: r:s/deep/d.txt]"],
    "cd l && cd .. && cat x": ["cd l [wraps: r:s/deep]", "cd .. [wraps: r:s r:.]", "cat x [looks: r:s/x r:x]"],
    "pushd s; cat c.txt; popd; cat a.txt": [
        "pushd s [wraps: r:s]",
        "cat c.txt [looks: r:s/c.txt]",
        "popd [wraps: r:.]",
        "cat a.txt [looks: r:a.txt]",
    ],
    "cd s; cat c.txt; cd - >/dev/null; cat a.txt": [
        "cd s [wraps: r:s]",
        "cat c.txt [looks: r:s/c.txt]",
        "cd - [wraps: r:.]",
        "cat a.txt [looks: r:a.txt]",
    ],
    "for d in s empty; do pushd $d; cat x; popd; done; cat y": [
        "pushd s [wraps: r:s]",
        "cat x [looks: r:s/x]",
        "popd [wraps: r:.]",
        "pushd empty [wraps: r:empty]",
        "cat x [looks: r:empty/x]",
        "cat y [looks: r:y]",
    ],
    "while cat a.txt; do pushd s; cat x; popd; done; cat y": [
        "cat a.txt [looks: r:a.txt]",
        "pushd s [wraps: r:s]",
        "cat x [looks: r:s/x]",
        "popd [wraps: r:.]",
        "cat y [looks: r:y]",
    ],
    # lines that are names: only where nothing but `read` reads the pipe
    'find s -type f | while read -r f; do echo $f; cat "$f" | wc -l; done': [
        "find s -type f [looks: r:s]",
        "read -r f [looks]",
        "echo $f [looks]",
        "cat $f [looks: R:s]",
        "wc -l [looks]",
    ],
    **{
        f"find s -type f | {loop}": None
        for loop in (
            'while read -r f; do cat; cat "$f"; done',
            'while read -r f; do head -c 3; cat "$f"; done',
            'while read -r f; do cat "$f" -; done',
            'while read -r f; do grep -f- "$f"; done',
            'while read -r f; do cat "$f" /dev/stdin; done',
            'while read -r f; do cmp "$f"; done',
            "while read -r f; do cat $f; done",
            'while read -r f; do cat "x$f"; done',
            'while read -r f; do rm "$f"; done',
            'while read -r f; do echo $(head -c3); cat "$f"; done',
            'while read -r f; do cat <(head -c3); cat "$f"; done',
            'while read -r f; do cat "$f" >x; done',
            'while read -r f g; do cat "$f"; done',
            'while read -rn3 f; do cat "$f"; done',
            'while IFS=/ read -r f; do cat "$f"; done',
            'while read -r f && true; do cat "$f"; done',
            'until read -r f; do cat "$f"; done',
            'while read -r f; do cat "$f"; done < b.txt',
            'while read -r f; do cat "$f"; done; cat "$f"',
            'sed s/x// | while read -r f; do cat "$f"; done',
        )
    },
    "cd l/.. && cat x": ["cd l/.. [wraps: r:s r:.]", "cat x [looks: r:s/x r:x]"],
    "cat l/../c.txt": ["cat l/../c.txt [looks: r:s/c.txt]"],
}


@all_rows(("line", "expected"), ON_DISK.items())
def test_patterns_and_folders_are_looked_up(workspace: Workspace, line: str, expected: list[str] | None) -> None:
    facets = on_disk(workspace, line)
    if expected is None:
        assert any(facet.startswith("? ") for facet in facets), facets
    else:
        assert facets == expected


@all_rows(
    ("name", "act"),
    [
        ("a.json", "looks"),
        ("src/json.py", "looks"),
        ("conftest.py", "looks"),
        ("json.py", "runs"),
        ("json/tool.py", "looks"),  # behind a folder without __init__ comes the library
        ("json/__init__.py", "runs"),
        ("types.cpython-311-x86_64-linux-gnu.so", "runs"),
        ("_colorize.py", "runs"),
    ],
)
def test_json_tool_only_looks_where_no_file_takes_the_place_of_a_module(tmp_path: Path, name: str, act: str) -> None:
    file = tmp_path.resolve() / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    (command,) = read_commands("python3 -m json.tool a.json", Workspace(str(tmp_path.resolve()), "/nowhere"))
    assert isinstance(command, Command)
    assert command.act.value == act


def test_below_a_tree_every_file_is_named(workspace: Workspace) -> None:
    (command,) = read_commands("grep -r x .", workspace)
    assert isinstance(command, Command)
    (path,) = command.paths
    assert (path.tree, path.whole, sorted(path.below)) == (
        True,
        True,
        ["-n", ".hidden", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"],
    )


NARROWED = [
    ("grep -r --include='*.txt' x .", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("grep -r --exclude-dir=s x .", ["-n", ".hidden", "a.txt", "b.txt", "l"]),
    (
        "grep -r --include='*.txt' --exclude='b*' x .",
        ["-n", ".hidden", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"],
    ),
    ("grep -r --include='[a]*' x .", ["-n", ".hidden", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"]),
    ("rg x", ["-n", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"]),
    ("rg --hidden x s", ["s/c.txt", "s/deep/d.txt"]),
    ("rg -g '*.txt' x", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
]


HANDED = [
    ("find . -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -name '*.txt'", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -not -path '*/s/*'", ["-n", ".hidden", "a.txt", "b.txt"]),
    ("find . -type f ! -path './s/*'", ["-n", ".hidden", "a.txt", "b.txt"]),
    ("find . -type f ! -path './deep/*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -not -path '*/.*'", ["-n", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -print -not -path '*/.*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . ! ! -path '*/.*' -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -user ! -path '*/.*' -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -o -not -path '*/.*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("grep -rl x s", ["s/c.txt", "s/deep/d.txt"]),
    ("grep -rl x --exclude-dir=deep s", ["s/c.txt"]),
    ("rg -l x .", ["-n", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("rg --files -g '*.txt' s", ["s/c.txt", "s/deep/d.txt"]),
    ("fd -e txt . s", ["s/c.txt", "s/deep/d.txt"]),
    ("ls a.txt b.txt", []),
]


@all_rows(("line", "names"), HANDED)
def test_the_names_that_xargs_is_handed_are_those_of_a_tree(workspace: Workspace, line: str, names: list[str]) -> None:
    Path(workspace.root, "l").unlink(missing_ok=True)  # it leads to a folder, of which nobody knows what is in it
    *_, command = read_commands(f"{line} | sort | head -3 | xargs cat", workspace)
    assert isinstance(command, Command)
    assert sorted({name for path in command.paths for name in path.below}) == names


@all_rows(("line", "names"), NARROWED)
def test_a_tree_is_narrowed_as_the_command_narrows_it(workspace: Workspace, line: str, names: list[str]) -> None:
    (command,) = read_commands(line, workspace)
    assert isinstance(command, Command)
    assert sorted(command.paths[-1].below) == names


def test_an_ignore_file_that_brings_names_back_brings_hidden_files_back(workspace: Workspace) -> None:
    Path(workspace.root, "s", ".ignore").write_text("!.hidden\n")
    (command,) = read_commands("rg x", workspace)
    assert isinstance(command, Command)
    assert ".hidden" in command.paths[-1].below


def test_a_loop_over_many_words_is_read_with_a_value_that_is_not_known() -> None:
    words = " ".join(f"w{number}" for number in range(MAX_ROUNDS + 1))
    assert read(f"for f in {words}; do cat $f; done") == ["? $f may be an option"]


def test_a_part_that_occurs_twice_is_one_facet() -> None:
    assert read("cat a; cat a") == ["cat a [looks: r:a]"]


OPERANDS = [
    ("a", {"a"}),
    ("-n a", {"a"}),
    ("-20 a", {"a", "0"}),
    ("-nf.env x", {"f.env", ".env", "x"}),
    ("--file=.env x", {".env", "x"}),
    ("if=.env of=x=y", {"if=.env", ".env", "of=x=y", "x=y", "y"}),
    ("-d @.env", {"@.env", ".env"}),
    ("HEAD:.env", {"HEAD:.env", ".env"}),
    ("-- -x", {"-x"}),
    ("~/x", {"./~/x", "~/x"}),
    ("https://x/y", {"https://x/y"}),
]


@all_rows(("words", "found"), OPERANDS)
def test_every_word_that_may_be_a_path_is_taken_as_one(words: str, found: set[str]) -> None:
    assert set(likely_paths(words.split())) == found


def test_an_option_of_too_many_letters_is_opaque_so_that_no_name_in_it_goes_unseen() -> None:
    assert read("tool -" + "a" * (MAX_CLUSTER_LETTERS + 1)) == ["? there is no model of tool"]


LOOSE = [
    ("git push > f", ("git", "push")),
    ("git >/dev/null push -f", ("git", "push", "-f")),
    ("git 2>&1 push", ("git", "push")),
    (">x git push", ("git", "push")),
    ("git -c 'a=b c' push > f", ("git", "-c", "a=b c", "push")),
    ("git -c a='(x;y)' push > f", ("git", "-c", "a=(x;y)", "push")),
    ('git "push" > f', ("git", "push")),
    ("g\\it pu''sh > f", ("git", "push")),
    ("$'git' push", ("git", "push")),
    ("git\\\n push > f", ("git", "push")),
    ("git${IFS}push", ("git", "push")),
    ("git$IFS'push'", ("git", "push")),
    ("{git,push}", ("git", "push")),
    ("${x:-git} push", ("x", "git", "push")),
    ("echo $(git push)", ("git", "push")),
    ("echo `git push`", ("git", "push")),
    ('echo "$(git push)"', ("git", "push")),
    ("bash -c 'git push'", ("bash", "-c", "git", "push")),
    ("bash -c 'ls; git push'", ("git", "push")),
    ("if true; then git push; fi", ("then", "git", "push")),
    ("(git push)", ("git", "push")),
    ("ls & git push", ("git", "push")),
    ("ls |& git push", ("git", "push")),
    ("cat <<EOF\ngit push\nEOF", ("git", "push")),
    ("cat < 'my file'", ("my file",)),
    ("rm ${x}/y", ("rm", "x/y")),
    ("rm $HOME/y", ("rm", "~/y")),
    ("ls ${PWD}/y > f", ("ls", "./y")),
    ("git push\\", ("git", "push")),
    ("git 'push", ("git", "push")),
]


@all_rows(("line", "found"), [pytest.param(*row, id=ascii(row[0])) for row in LOOSE])
def test_loose_reading_finds_the_command(line: str, found: Argv) -> None:
    assert found in loose_commands(line)


@all_rows(
    ("line", "lost"),
    [
        pytest.param("rm -rf ${x}/*", ("rm", "-rf", "/*"), id="what stands behind a parameter is no path of its own"),
        pytest.param("rm -rf ${x:?}/", ("rm", "-rf", "/"), id="likewise with an operator"),
    ],
)
def test_loose_reading_invents_no_root_folder(line: str, lost: Argv) -> None:
    words = {word for command in loose_commands(line) for word in command}
    assert lost[-1] not in words
