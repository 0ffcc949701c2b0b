"""Made-up scripts: from a grammar of bash, and mutations of everyday lines and hostile ones (scripts_everyday.txt).

Everything is drawn from a Random, so that hypothesis can stand behind it (`st.randoms()`). In the text, `@` at the start of a
line stands for a script of several lines, with its line breaks written as two characters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple


def lines_of(name: str) -> list[str]:
    """Return the lines of a text beside this file."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
        return file.read().strip("\n").split("\n")


def seeds() -> list[str]:
    """Return the corpus: everyday lines and hostile ones."""
    lines = lines_of("scripts_everyday.txt")
    return [line[1:].replace("\\n", "\n") if line.startswith("@") else line for line in lines]


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

BARE_WORD = re.compile(r"[A-Za-z0-9_./,:=@%+^-]+")


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
            case 0 | 1 | 2 if BARE_WORD.fullmatch(value):
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
                return value if BARE_WORD.fullmatch(value) else "'" + value.replace("'", "'\\''") + "'"

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
        text = mutated_once(grammar, text, other)
    return text[:2000]


def mutated_once(grammar: Grammar, text: str, other: str) -> str:
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
