"""How bash is read: what is understood, word for word, what is opaque and why; held against a real bash."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.actions import Access, Command, Opaque, PathAccess, Place
from harness.shell.commands import MAX_CLUSTER_LETTERS, MAX_WORDS, read_commands
from harness.shell.old_lexer import MAX_CHARACTERS, Operator, Unread, Word, tokenize
from harness.shell.loose import loose_commands

Argv = tuple[str, ...]


def nowhere(word: str, access: Access) -> None:
    """Resolve nothing: these tests are about words."""


def as_place(word: str, access: Access) -> PathAccess:
    """Resolve every word to a path of its own, so that one sees which words were taken for paths."""
    return PathAccess(written=word, real=f"/w/{word}", names=(word,), access=access, place=Place.INSIDE)


def commands(line: str) -> list[Argv]:
    """Return the words of each command of a line that must be understood."""
    read = read_commands(line, nowhere)
    assert all(isinstance(part, Command) for part in read), read
    return [part.argv for part in read if isinstance(part, Command)]


def opaque(line: str) -> Opaque:
    """Return the one facet of a line that must not be understood."""
    (part,) = read_commands(line, nowhere)
    assert isinstance(part, Opaque), part
    return part


def argvs(*lines: str) -> list[Argv]:
    """Return commands from words split at blanks: a short way to write a row's expectation."""
    return [tuple(line.split(" ")) for line in lines]


UNDERSTOOD = [
    # everyday lines
    ("ls", argvs("ls")),
    ("ls -la src", argvs("ls -la src")),
    ("  ls \t -l  ", argvs("ls -l")),
    ("git log --format='%h; %s' | head", [("git", "log", "--format=%h; %s"), ("head",)]),
    ("cat a.txt b.txt", argvs("cat a.txt b.txt")),
    ("pytest -q && git status || echo failed", argvs("pytest -q", "git status", "echo failed")),
    ("make; make test", argvs("make", "make test")),
    ("make\nmake test\n", argvs("make", "make test")),
    ("\n\n ls \n\n", argvs("ls")),
    ("ls;", argvs("ls")),
    ("a |\nb", argvs("a", "b")),
    ("a &&\n\n b", argvs("a", "b")),
    ("a ||\tb", argvs("a", "b")),
    ("a|b|c", argvs("a", "b", "c")),
    ("a;b;c", argvs("a", "b", "c")),
    ("a&&b||c", argvs("a", "b", "c")),
    ("git commit -m 'a & b > c'", [("git", "commit", "-m", "a & b > c")]),
    ('git commit -m "it is; done"', [("git", "commit", "-m", "it is; done")]),
    ("git show HEAD~2", argvs("git show HEAD~2")),
    ("git show HEAD^", argvs("git show HEAD^")),
    ("git show main:src/a.py", argvs("git show main:src/a.py")),
    ("grep -rn 'a b' src", [("grep", "-rn", "a b", "src")]),
    ("grep -n '^def \\(x\\)$' a.py", [("grep", "-n", "^def \\(x\\)$", "a.py")]),
    ("find . -name '*.py' -type f", argvs("find . -name *.py -type f")),
    ("find . \\( -name a -o -name b \\)", argvs("find . ( -name a -o -name b )")),
    ("sed -n '1,5p' a.py", argvs("sed -n 1,5p a.py")),
    ("echo a#b c", argvs("echo a#b c")),
    ("echo 50%", argvs("echo 50%")),
    ("echo x,y", argvs("echo x,y")),
    ("echo @ + - , . / : % ^ =", argvs("echo @ + - , . / : % ^ =")),
    ("echo wow!", argvs("echo wow!")),
    ("echo !x", argvs("echo !x")),
    ("echo 'ünïcødé' 漢字", argvs("echo ünïcødé 漢字")),
    ("python -m pytest tests/test_a.py::test_b", argvs("python -m pytest tests/test_a.py::test_b")),
    ("./run.sh --fast", argvs("./run.sh --fast")),
    ("npm run test:unit -- --watch=false", argvs("npm run test:unit -- --watch=false")),
    ("pip install 'requests>=2,<3'", argvs("pip install requests>=2,<3")),
    ("true", argvs("true")),
    (": x", argvs(": x")),
    ("type ls", argvs("type ls")),
    ("test -f a", argvs("test -f a")),
    ("printf '%s\\n' a", argvs("printf %s\\n a")),
    # quoting, as bash takes it away
    ("'ls'", argvs("ls")),
    ('"ls" -l', argvs("ls -l")),
    ("l's' -l", argvs("ls -l")),
    ("l''s", argvs("ls")),
    ('l""s', argvs("ls")),
    ("\\ls", argvs("ls")),
    ("l\\s", argvs("ls")),
    ("r\\m x", argvs("rm x")),
    ("r''m x", argvs("rm x")),
    ("echo ''", [("echo", "")]),
    ('echo ""', [("echo", "")]),
    ("echo '' \"\"", [("echo", "", "")]),
    ("echo 'a'\"b\"c\\d", argvs("echo abcd")),
    ("echo a\\ b", [("echo", "a b")]),
    ("echo a\\;b", argvs("echo a;b")),
    ("echo \\&\\& rm", argvs("echo && rm")),
    ("echo \\$HOME", argvs("echo $HOME")),
    ("echo \\`x\\`", argvs("echo `x`")),
    ("echo \\#x", argvs("echo #x")),
    ("echo \\~", argvs("echo ~")),
    ("echo \\\\", argvs("echo \\")),
    ("echo \\'", argvs("echo '")),
    ("echo '\\'", argvs("echo \\")),
    ("echo '\"'", argvs('echo "')),
    ('echo "\'"', argvs("echo '")),
    ('echo "\\""', argvs('echo "')),
    ('echo "\\\\"', argvs("echo \\")),
    ('echo "\\$x"', argvs("echo $x")),
    ('echo "\\`x\\`"', argvs("echo `x`")),
    ('echo "\\n\\a"', argvs("echo \\n\\a")),
    ('echo "a\\\nb"', argvs("echo ab")),
    ("echo 'a\\\nb'", [("echo", "a\\\nb")]),
    ("echo 'a\nb'", [("echo", "a\nb")]),
    ("echo '$(rm x) `rm x` $x'", [("echo", "$(rm x) `rm x` $x")]),
    ("echo '<x' '>y' '*' '{a,b}' '&' '#'", argvs("echo <x >y * {a,b} & #")),
    ('echo "\\";rm x;echo \\""', [("echo", '";rm x;echo "')]),
    ("echo ''#x", argvs("echo #x")),
    ("echo ''~", argvs("echo ~")),
    ("'if' x", argvs("if x")),
    ("i''f x", argvs("if x")),
    ("\\if x", argvs("if x")),
    ("'[' -f x ']'", argvs("[ -f x ]")),
    ("echo if then fi", argvs("echo if then fi")),
    ("echo time", argvs("echo time")),
    ("echo sudo rm", argvs("echo sudo rm")),
    # a line continued between words
    ("ls \\\n -l", argvs("ls -l")),
    ("\\\nls", argvs("ls")),
    ("ls \\\n; rm x", argvs("ls", "rm x")),
    ("ls &&\\\nrm x", argvs("ls", "rm x")),
    # what looks like a variable set in front, and is none
    ("echo A=1", argvs("echo A=1")),
    ("'A'=1 x", argvs("A=1 x")),
    ("A\\=1 x", argvs("A=1 x")),
    ("A'='1 x", argvs("A=1 x")),
    ("1A=1 x", argvs("1A=1 x")),
    ("=1 x", argvs("=1 x")),
    ("A-B=1 x", argvs("A-B=1 x")),
    ("./A=1 x", argvs("./A=1 x")),
]

OPAQUE = [
    # nothing to run
    ("", "no command"),
    ("   ", "no command"),
    ("\n", "no command"),
    ("\\\n", "no command"),
    # redirections, glued or not
    ("ls > f", "a redirection (>)"),
    ("ls>f", "a redirection (>)"),
    ("ls 2>/dev/null", "a redirection (>)"),
    ("ls 2>&1", "a redirection (>)"),
    ("ls >> f", "a redirection (>)"),
    ("ls >| f", "a redirection (>)"),
    ("ls &> f", "a background job (&)"),
    ("ls <> f", "a redirection (<)"),
    ("cat < .env", "a redirection (<)"),
    ("cat<.env", "a redirection (<)"),
    ("> f ls", "a redirection (>)"),
    ("ls 3>f x", "a redirection (>)"),
    ("ls ''>f", "a redirection (>)"),
    ("cat <<EOF\nx\nEOF", "a redirection (<)"),
    ("cat <<'EOF'\n$(rm x)\nEOF", "a redirection (<)"),
    ("cat <<-EOF\n\tx\n\tEOF", "a redirection (<)"),
    ("sh <<< 'rm x'", "a redirection (<)"),
    ("cat <<< x", "a redirection (<)"),
    ("diff <(ls a) b", "a redirection (<)"),
    # expansions
    ("ls $x", "an expansion ($)"),
    ("ls $(rm x)", "an expansion ($)"),
    ('ls "$(rm x)"', "an expansion ($)"),
    ('ls "${x@P}"', "an expansion ($)"),
    ("ls ${x}", "an expansion ($)"),
    ("ls $((1+1))", "an expansion ($)"),
    ("ls $[1]", "an expansion ($)"),
    ("$'ls'", "an expansion ($)"),
    ("$'\\x72m' x", "an expansion ($)"),
    ('$"ls"', "an expansion ($)"),
    ("ls $", "an expansion ($)"),
    ('echo "$"', "an expansion ($)"),
    ("$\\\n(rm x)", "an expansion ($)"),
    ("`rm x`", "a command substitution (`)"),
    ("ls `rm x`", "a command substitution (`)"),
    ('ls "`rm x`"', "a command substitution (`)"),
    ("ls ~", "a home folder (~)"),
    ("cat ~/.ssh/id_rsa", "a home folder (~)"),
    ("cat ~root/x", "a home folder (~)"),
    ("A=~ x", "a home folder (~)"),
    ("A=b:~ x", "a home folder (~)"),
    ("cp --to=~/x y", "a home folder (~)"),
    ("ls *", "a file name pattern (*)"),
    ("ls a*b", "a file name pattern (*)"),
    ("/bin/r? x", "a file name pattern (?)"),
    ("ls [ab]", "a file name pattern ([)"),
    ("[ -f x ]", "a file name pattern ([)"),
    ("[[ -v x ]]", "a file name pattern ([)"),
    ("ls a]", "a file name pattern (])"),
    ("ls @(a|b)", "a subshell or a function"),
    ("{rm,x}", "a brace expansion or group"),
    ("echo {1..9}", "a brace expansion or group"),
    ("git show HEAD@{1}", "a brace expansion or group"),
    # operators that are not read
    ("ls & rm x", "a background job (&)"),
    ("ls &", "a background job (&)"),
    ("ls&rm x", "a background job (&)"),
    ("ls |& cat", "the operator |&"),
    ("ls ;; rm x", "the operator ;;"),
    ("ls &\\\n& rm x", "a background job (&)"),
    ("(ls)", "a subshell or a function"),
    ("ls (x)", "a subshell or a function"),
    ("{ ls; }", "a brace expansion or group"),
    ("f() { rm x; }", "a subshell or a function"),
    ("function f { rm x; }", "a brace expansion or group"),
    ("((x=1))", "a subshell or a function"),
    # lines that are no lines
    ("; ls", "nothing before ;"),
    ("ls ; ; rm", "nothing before ;"),
    ("| ls", "nothing before |"),
    ("ls | | rm", "nothing before |"),
    ("ls |\\\n| rm", "nothing before |"),
    ("&& ls", "nothing before &&"),
    ("ls\n&& rm x", "nothing before &&"),
    ("ls &&", "nothing after &&"),
    ("ls |\n", "nothing after |"),
    ("ls ||", "nothing after ||"),
    ("ls 'x", "a quote that is not closed (')"),
    ('ls "x', 'a quote that is not closed (")'),
    ('ls "x\\"', 'a quote that is not closed (")'),
    ("ls \\", "a backslash at the end"),
    # keywords
    ("if true; then rm x; fi", "the shell keyword if"),
    ("for x in a; do rm x; done", "the shell keyword for"),
    ("while true; do rm x; done", "the shell keyword while"),
    ("until false; do rm x; done", "the shell keyword until"),
    ("case x in x) rm x;; esac", "a subshell or a function"),
    ("select x in a; do rm x; done", "the shell keyword select"),
    ("coproc rm x", "the shell keyword coproc"),
    ("time rm x", "the shell keyword time"),
    ("! rm x", "a negation (!)"),
    ("!", "a negation (!)"),
    ("ls !", "a negation (!)"),
    ("!\\\nrm x", "a line continued inside a word"),
    ("A=1 if x", "the shell keyword if"),
    ("i\\\nf true", "a line continued inside a word"),
    ("if\\\n true", "a line continued inside a word"),
    ("ti\\\nme rm x", "a line continued inside a word"),
    ("A\\\n=1 x", "a line continued inside a word"),
    # comments
    ("ls # x", "a comment (#)"),
    ("# ls", "a comment (#)"),
    ("ls;#x\nrm x", "a comment (#)"),
    ("ls \\\n#x", "a comment (#)"),
    # characters that a person does not see
    ("ls\rrm x", "a control or invisible character (U+000D)"),
    ("ls\r\nrm x", "a control or invisible character (U+000D)"),
    ("ls\0rm x", "a control or invisible character (U+0000)"),
    ("ls\x0brm", "a control or invisible character (U+000B)"),
    ("ls\x0crm", "a control or invisible character (U+000C)"),
    ("ls \x1b[2Jx", "a control or invisible character (U+001B)"),
    ("ls \x7fx", "a control or invisible character (U+007F)"),
    ("ls\u00a0-l", "a control or invisible character (U+00A0)"),
    ("ls\u2003-l", "a control or invisible character (U+2003)"),
    ("ls \u202ex", "a control or invisible character (U+202E)"),
    ("l\u200bs", "a control or invisible character (U+200B)"),
    ("ls \u2028rm x", "a control or invisible character (U+2028)"),
    ("ls \ud800", "a control or invisible character (U+D800)"),
    ("echo 'a\rb'", "a control or invisible character (U+000D)"),
    # variables that stay, add or index
    ("A=1", "a variable set for the rest of the line"),
    ("A=1; ls", "a variable set for the rest of the line"),
    ("ls; PATH=/tmp; ls", "a variable set for the rest of the line"),
    ("A+=1 ls", "an assignment that adds or indexes"),
    ("A[0]=1 ls", "a file name pattern ([)"),
    ("A=(ls)", "a subshell or a function"),
    ("A=$(rm x) ls", "an expansion ($)"),
    # builtins that change how the rest is read
    ("cd src && ls", "cd, which changes how the rest is run"),
    ("eval ls", "eval, which changes how the rest is run"),
    ("'eval' ls", "eval, which changes how the rest is run"),
    ("\\eval ls", "eval, which changes how the rest is run"),
    ("source x", "source, which changes how the rest is run"),
    (". x", "., which changes how the rest is run"),
    ("export A=1", "export, which changes how the rest is run"),
    ("alias ls=rm", "alias, which changes how the rest is run"),
    ("exec rm x", "exec, which changes how the rest is run"),
    ("command rm x", "command, which changes how the rest is run"),
    ("builtin cd x", "builtin, which changes how the rest is run"),
    ("trap 'rm x' EXIT", "trap, which changes how the rest is run"),
    ("set -x", "set, which changes how the rest is run"),
    ("shopt -s extglob", "shopt, which changes how the rest is run"),
    ("hash -p /tmp/x ls", "hash, which changes how the rest is run"),
    ("enable -f x.so x", "enable, which changes how the rest is run"),
    ("read x", "read, which changes how the rest is run"),
    ("mapfile -C 'rm x' a", "mapfile, which changes how the rest is run"),
    ("compgen -C 'rm x'", "compgen, which changes how the rest is run"),
    ("let x=1", "let, which changes how the rest is run"),
    ("declare -i x", "declare, which changes how the rest is run"),
    ("history -s x", "history, which changes how the rest is run"),
    ("unset x", "unset, which changes how the rest is run"),
    ("wait", "wait, which changes how the rest is run"),
    ("exit 0", "exit, which changes how the rest is run"),
    ("test -v 'a[$(rm x)]'", "test -v, which evaluates a name"),
    ("'[' -v 'a[$(rm x)]' ']'", "[ -v, which evaluates a name"),
    ("'[' a = b -o -v 'a[$(rm x)]' ']'", "[ -v, which evaluates a name"),
    ("printf -v 'a[$(rm x)]' x", "printf -v, which evaluates a name"),
    ("printf -va x", "printf -v, which evaluates a name"),
    # programs that run another one
    ("sudo ls", "sudo, which runs another program"),
    ("env ls", "env, which runs another program"),
    ("env -S 'rm x'", "env, which runs another program"),
    ("/usr/bin/env bash", "env, which runs another program"),
    ("s''udo ls", "sudo, which runs another program"),
    ("bash -c ls", "bash, which runs another program"),
    ("/bin/sh -xc ls", "sh, which runs another program"),
    ("ls | xargs rm", "xargs, which runs another program"),
    ("timeout 5 ls", "timeout, which runs another program"),
    ("nice ls", "nice, which runs another program"),
    ("nohup ls", "nohup, which runs another program"),
    ("setsid ls", "setsid, which runs another program"),
    ("setpriv --nnp ls", "setpriv, which runs another program"),
    ("tmux new -d ls", "tmux, which runs another program"),
    ("'time' ls", "time, which runs another program"),
    ("watch ls", "watch, which runs another program"),
    ("busybox rm x", "busybox, which runs another program"),
    ("ssh host ls", "ssh, which runs another program"),
    ("docker run x", "docker, which runs another program"),
    ("npx x", "npx, which runs another program"),
    ("find . -exec rm x \\;", "find with an option that runs another program"),
    ("find . -ok rm x \\;", "find with an option that runs another program"),
    ("find . '-execdir' rm x +", "find with an option that runs another program"),
    ("/usr/bin/find . -okdir rm x +", "find with an option that runs another program"),
    # names that are none, words that are too much
    ("'' x", "a command without a name"),
    ("src/ x", "a command without a name"),
    ("ls -" + "n" * (MAX_CLUSTER_LETTERS + 1), "an option of more than 24 letters and digits"),
]


def shown(line: str) -> str:
    """Return a row's name."""
    return ascii(line[:60])


@pytest.mark.parametrize(
    ("line", "expected"), [pytest.param(line, argv, id=f"{shown(line)} is understood") for line, argv in UNDERSTOOD]
)
def test_a_plain_line_is_read_word_for_word(line: str, expected: list[Argv]) -> None:
    assert commands(line) == expected


@pytest.mark.parametrize(
    ("line", "reason"), [pytest.param(line, why, id=f"{shown(line)}: {why}") for line, why in OPAQUE]
)
def test_a_line_outside_the_subset_is_opaque_as_a_whole(line: str, reason: str) -> None:
    read = opaque(line)
    assert (read.text, read.reason) == (line, reason)


def test_the_tables_are_as_large_as_they_claim() -> None:
    lines = [line for line, _ in UNDERSTOOD] + [line for line, _ in OPAQUE]
    assert (len(set(lines)), len(lines) > 240) == (len(lines), True)


def test_a_command_keeps_its_text_its_variables_and_its_operands() -> None:
    read = read_commands("CI=1 B='x y' pytest -q 'a b' && ls  src", as_place)
    assert read == (
        Command(
            text="CI=1 B='x y' pytest -q 'a b'",
            argv=("pytest", "-q", "a b"),
            variables=("CI", "B"),
            paths=(as_place("a b", Access.EITHER),),
        ),
        Command(text="ls  src", argv=("ls", "src"), paths=(as_place("src", Access.READ),)),
    )


def test_an_opaque_line_keeps_its_words_and_says_where_reading_stopped() -> None:
    assert read_commands("cat a >out", as_place) == (
        Opaque(
            text="cat a >out",
            reason="a redirection (>)",
            column=7,
            commands=(("cat", "a", "out"), ("cat", "a"), ("out",)),
            paths=(as_place("cat", Access.READ), as_place("a", Access.READ), as_place("out", Access.EITHER)),
        ),
    )


@pytest.mark.parametrize(
    ("line", "names"),
    [
        pytest.param("A=1 x", ("A",), id="one"),
        pytest.param("A= x", ("A",), id="an empty value"),
        pytest.param("A=1 B=2 x", ("A", "B"), id="two"),
        pytest.param("A='1 2' x", ("A",), id="a quoted value"),
        pytest.param('A="x;y" x', ("A",), id="an operator in a quoted value"),
        pytest.param("A=b=c x", ("A",), id="an equals sign in the value"),
        pytest.param("_a1=x x", ("_a1",), id="any name"),
        pytest.param("A=1 x B=2", ("A",), id="only those in front"),
        pytest.param("A=1 'B'=2", ("A",), id="a quoted name is the program"),
    ],
)
def test_variables_in_front_are_named(line: str, names: tuple[str, ...]) -> None:
    (read,) = read_commands(line, nowhere)
    assert isinstance(read, Command)
    assert read.variables == names


PATH_WORDS = [
    ("tar -cf out.tar src", {"out.tar", "src", "f"}, Access.EITHER),
    ("cat src/a.py", {"src/a.py"}, Access.READ),
    ("./cat src/a.py", {"./cat", "src/a.py"}, Access.EITHER),
    ("cat -n a", {"a"}, Access.READ),
    ("head -20 a", {"a", "0"}, Access.READ),
    ("grep -e.env x", {".env", "x"}, Access.READ),
    ("grep -nf.env x", {"f.env", ".env", "x"}, Access.READ),
    ("grep --file=.env x", {".env", "x"}, Access.READ),
    ("sort -o.env x", {".env", "x"}, Access.EITHER),
    ("dd if=.env of=x=y", {"if=.env", ".env", "of=x=y", "x=y", "y"}, Access.EITHER),
    ("curl -d @.env x", {"@.env", ".env", "x"}, Access.EITHER),
    ("curl -F f=@.env x", {"f=@.env", ".env", "@.env", "x"}, Access.EITHER),
    ("curl https://x/y", {"https://x/y"}, Access.EITHER),
    ("git show HEAD:.env", {"show", "HEAD:.env", ".env"}, Access.READ),
    ("git show HEAD", {"show", "HEAD"}, Access.READ),
    ("cat -- -x", {"-x"}, Access.READ),
    ("cat '~/x'", {"./~/x", "~/x"}, Access.READ),
    ("cat ''", set[str](), Access.READ),
    ("echo .env /etc/passwd", set[str](), Access.READ),
    ("printf '%s' .env", set[str](), Access.READ),
    ("find . -name .env", {".", ".env", "ame", "me", "e"}, Access.READ),
    ("find . -delete", {".", "elete", "lete", "ete", "te", "e"}, Access.EITHER),
    ("find . -fprint x", {".", "x", "print", "rint", "int", "nt", "t"}, Access.EITHER),
]


@pytest.mark.parametrize(
    ("line", "words", "access"), [pytest.param(*row, id=f"{row[0]} in {row[2].value}") for row in PATH_WORDS]
)
def test_every_word_that_may_be_a_path_is_taken_as_one(line: str, words: set[str], access: Access) -> None:
    (read,) = read_commands(line, as_place)
    assert isinstance(read, Command)
    assert {path.written for path in read.paths} == words
    assert {path.access for path in read.paths} == ({access} if words else set())


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


@pytest.mark.parametrize(("line", "found"), [pytest.param(*row, id=shown(row[0])) for row in LOOSE])
def test_loose_reading_finds_the_command(line: str, found: Argv) -> None:
    assert found in loose_commands(line)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        pytest.param("rm -rf ${x}/*", ("rm", "-rf", "/*"), id="what stands behind a parameter is no path of its own"),
        pytest.param("rm -rf ${x:?}/", ("rm", "-rf", "/"), id="likewise with an operator"),
    ],
)
def test_loose_reading_invents_no_root_folder(line: str, lost: Argv) -> None:
    words = {word for command in loose_commands(line) for word in command}
    assert lost[-1] not in words


def test_tokens_say_where_they_stand() -> None:
    assert tokenize("a 'b'&&c") == (
        Word(value="a", quoted=False, start=0, end=1),
        Word(value="b", quoted=True, start=2, end=5),
        Operator(value="&&", start=5),
        Word(value="c", quoted=False, start=7, end=8),
    )
    assert tokenize("ls >x") == Unread(reason="a redirection (>)", column=4)


class Stubs(NamedTuple):
    """Programs that write down how they were called, and a folder to call them in."""

    path: Path
    folder: Path
    record: Path
    bash: str

    def run(self, line: str) -> list[tuple[Argv, tuple[str, ...]]]:
        """Run `line` in a real bash, as the tool does, and return words and variables of each stub that ran, in order."""
        self.record.write_bytes(b"")
        subprocess.run(
            [self.bash, "--noprofile", "--norc", "-c", "--", line],
            cwd=self.folder,
            env={"PATH": str(self.path), "RECORD": str(self.record)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        fields = iter(self.record.read_bytes().decode().split("\0")[:-1])
        ran = []
        for count in fields:
            argv = tuple(next(fields) for _ in range(int(count) + 1))
            ran.append((argv, tuple(name for name in (next(fields), next(fields), next(fields)) if name)))
        return ran


# It reads its input to the end first: in a pipeline that puts the records in the order of the commands.
RECORDER = """#!/bin/sh
while read -r line; do :; done
printf '%s\\0' "$#" "${0##*/}" "$@" "${A+A}" "${B+B}" "${CI+CI}" >> "$RECORD"
[ "${0##*/}" != no ]
"""
RECORDED = ("A", "B", "CI")
"""The variables that the recorder looks for."""
STUB_NAMES = ("ok", "no", "run")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Stubs:
    """Stubs `ok` and `run`, which succeed, and `no`, which fails."""
    folder = tmp_path_factory.mktemp("stubs")
    path, scratch = folder / "bin", folder / "scratch"
    path.mkdir()
    scratch.mkdir()
    recorder = folder / "recorder"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    for name in STUB_NAMES:
        (path / name).symlink_to(recorder)
    bash = shutil.which("bash")
    assert bash, "these tests need bash, as the program does"
    return Stubs(path, scratch, folder / "record", bash)


def predicted(line: str) -> list[tuple[Argv, tuple[str, ...]]] | None:
    """Return words and variables of the commands that a line was read as; None for an opaque one."""
    read = read_commands(line, nowhere)
    if not all(isinstance(part, Command) for part in read):
        return None
    return [(part.argv, tuple(sorted(set(part.variables)))) for part in read if isinstance(part, Command)]


def is_subsequence(part: Sequence[object], whole: Sequence[object]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


PLAIN_PIECES = (
    "ok|no|run|ok |run |no |A=1 |B= |CI='1 2' |x|-n|a=b|A=1|B=x|A=|'A'=1 |o\\k|'ok'|\"no\"|'a b'|\"c d\"|\\ |\\;|\\'|\\\"|''|"
    'ñ|=|:|%|+=|@|^|,|/|./ok|a#b|HEAD~2|!x|in|do|fi|; | && |&&|;| |  |"\\$"|"\\`"|""'
).split("|")
WILD_PIECES = ["\n", "\t", "||", "|", "\\\n", '"\\\n"', *"{}[]*?~#!'\"\\`$&<>()"]
WILD_PIECES += [
    "if ",
    "time ",
    "$x",
    "$(ok)",
    "`ok`",
    "$'ok'",
    "|&",
    ";;",
    "2>",
    " #",
    "! ",
    "+=",
    "A+=1 ",
    "\r",
    "\u00a0",
]

LINES = st.lists(
    st.one_of(*[st.sampled_from(PLAIN_PIECES)] * 9, st.sampled_from(WILD_PIECES)), min_size=1, max_size=14
).map("".join)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("ok 'a b'\"\\$\"\\ c && no || run")
@example("A=1 ok;B='x' run\nok")
@example("ok | no | run")
@example("i''f x; ok !x #a")
@given(LINES)
def test_every_command_that_bash_ran_was_predicted(stubs: Stubs, line: str) -> None:
    """Or the line was opaque. Where nothing is skipped (no && and no ||), every predicted stub ran, too."""
    expected = predicted(line)
    if expected is None:
        return
    ran = stubs.run(line)
    known = [(argv, tuple(name for name in RECORDED if name in names)) for argv, names in expected]
    stub_calls = [(argv, names) for argv, names in known if argv[0] in STUB_NAMES]
    if "|" in line.replace("||", ""):  # behind a program that is not found, a pipeline's order is not certain
        ran, stub_calls = sorted(ran), sorted(stub_calls)
    assert is_subsequence(ran, stub_calls)
    if "&&" not in line and "||" not in line:
        assert ran == stub_calls


def test_the_differential_test_would_see_a_command_that_was_not_predicted(stubs: Stubs) -> None:
    """The oracle itself: substitutions, wrong quoting and variables that stay are all visible to it."""
    assert stubs.run("ok $(run x) 'a b'; A=1 no & wait") == [
        (("run", "x"), ()),
        (("ok", "a b"), ()),
        (("no",), ("A",)),
    ]
    assert not is_subsequence(stubs.run("ok `run`"), [(("ok",), ())])


UNDERSTOOD_WITH_STUBS = [line for line, _ in UNDERSTOOD if line.split()[:1] != ["./run.sh"]]


@pytest.mark.parametrize("line", [pytest.param(line, id=shown(line)) for line in UNDERSTOOD_WITH_STUBS])
def test_the_table_itself_agrees_with_bash(stubs: Stubs, line: str, tmp_path: Path) -> None:
    """Every program of the table as a stub, by its own name."""
    path = tmp_path / "bin"
    path.mkdir()
    for argv in commands(line):
        name = argv[0]
        if "/" not in name and not (path / name).exists():
            (path / name).symlink_to(stubs.path / "ok")
    own = stubs._replace(path=path)
    external = [argv for argv in commands(line) if "/" not in argv[0] and argv[0] not in BUILTINS]
    ran = [argv for argv, _ in own.run(line)]
    assert is_subsequence(ran, external)
    if "||" not in line:
        assert ran == external


BUILTINS = frozenset(("echo", "printf", "true", ":", "type", "test", "["))


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_read_and_never_raises(text: str) -> None:
    read = read_commands(text, as_place)
    understood = all(isinstance(part, Command) for part in read)
    assert understood or (len(read) == 1 and isinstance(read[0], Opaque))
    assert read == read_commands(text, as_place)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ok'\"\\$`;&|<>(){}*?[]~#!= \n\tA1-/"))
def test_any_line_of_shell_characters_is_read_and_never_raises(text: str) -> None:
    for part in read_commands(text, as_place):
        assert isinstance(part, Command | Opaque)
        assert not isinstance(part, Command) or part.argv


LONG = [
    pytest.param("a" * 9_999, id="one word"),
    pytest.param("a " * 4_999, id="many words"),
    pytest.param("'" * 9_998, id="empty quotes"),
    pytest.param('"' * 9_998, id="empty double quotes"),
    pytest.param("\\" * 9_998, id="backslashes"),
    pytest.param("echo " + "\\;" * 4_000, id="escapes"),
    pytest.param("a;" * 4_999, id="operators"),
    pytest.param("-" + "a" * 9_990 + " >", id="a long option"),
    pytest.param("ls -" + "ab=" * 3_000, id="equals signs"),
    pytest.param("${" * 5_000, id="open parameters"),
    pytest.param("${a:-" * 2_000, id="nested parameters"),
    pytest.param("${a}" * 2_500, id="parameters"),
    pytest.param("<" * 10_000, id="redirections"),
    pytest.param("1" * 9_999 + ">", id="digits before a redirection"),
    pytest.param("'\\'\"" * 2_500, id="quotes that do not fit"),
]


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("reader", [read_commands, lambda text, _: loose_commands(text)], ids=["strict", "loose"])
def test_reading_takes_linear_time(reader: Callable[[str, Callable[[str, Access], None]], object], text: str) -> None:
    """0.2 s for 10,000 characters is far more than it takes, and far less than anything quadratic would."""
    assert len(text) <= MAX_CHARACTERS
    taken = []
    for _ in range(3):
        started = time.process_time()
        reader(text, nowhere)
        taken.append(time.process_time() - started)
    assert min(taken) < 0.2


def test_a_line_that_is_too_long_is_opaque_whatever_it_says() -> None:
    assert opaque("ls " + "a" * MAX_CHARACTERS).reason == f"longer than {MAX_CHARACTERS} characters"
    assert commands("ls " + "a" * (MAX_CHARACTERS - 3)) == [("ls", "a" * (MAX_CHARACTERS - 3))]


def test_a_line_of_too_many_words_is_opaque_so_that_no_operand_goes_unseen() -> None:
    words = " ".join("a" for _ in range(MAX_WORDS + 1))
    assert opaque(words).reason == f"more than {MAX_WORDS} words"
    assert len(commands(words.removesuffix(" a"))[0]) == MAX_WORDS


def test_no_number_of_words_hides_an_operand() -> None:
    words = " ".join(f"w{number}" for number in range(3 * MAX_WORDS))
    for line, access in ((f"cat {words} .env", Access.READ), (f"cat {words} > .env", Access.EITHER)):
        (read,) = read_commands(line, as_place)
        assert isinstance(read, Opaque)
        assert as_place(".env", access) in read.paths


@pytest.mark.parametrize(
    ("line", "access"),
    [
        pytest.param("sed -n 31p f", Access.READ, id="sed that prints"),
        pytest.param("sed -i s/a/b/ f", Access.EITHER, id="sed in place"),
        pytest.param("sed -ni s/a/b/p f", Access.EITHER, id="sed in place, in a cluster"),
        pytest.param("sed --in-pl s/a/b/ f", Access.EITHER, id="sed in place, abbreviated"),
        pytest.param("git diff f", Access.READ, id="git that looks"),
        pytest.param("git diff --outp=x f", Access.EITHER, id="git that looks and writes"),
        pytest.param("git checkout f", Access.EITHER, id="git that writes"),
        pytest.param("git -C . diff f", Access.EITHER, id="git past a global option"),
        pytest.param("./cat f", Access.EITHER, id="a program of the folder at hand"),
        pytest.param("cat f 2>/dev/null", Access.READ, id="a reader with its errors thrown away"),
        pytest.param("cat x > f", Access.EITHER, id="a reader into the file"),
        pytest.param("cat x >'f'", Access.EITHER, id="a reader into the quoted file"),
        pytest.param("cat $(cp x f)", Access.EITHER, id="a writer inside a reader"),
        pytest.param("cat f | sudo tee f", Access.EITHER, id="a reader and a writer"),
        pytest.param("sh -c 'cat x > f'", Access.EITHER, id="inside another shell"),
    ],
)
def test_what_is_known_to_read_only_reads(line: str, access: Access) -> None:
    paths = [path for part in read_commands(line, as_place) for path in part.paths]
    assert {path.access for path in paths if path.written == "f"} == {access}
