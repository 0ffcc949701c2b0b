"""Models of programs that run programs: wrappers, shells, interpreters, containers: what their commands do, row by row."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.actions import Access
from harness.programs.model import Found, Inner, PathUse, Program, Unknown, Use
from harness.programs.options import read_command
from harness.programs.refinements import read_alike
from harness.programs.runners import FIND_RUNS, INTERPRETERS, SHELLS, VERSIONED, WRAPPERS

FILES = (
    "wrappers", "shells", "observers", "elevation", "python", "interpreters", "javascript_runtimes", "containers", "clusters",
)  # fmt: skip
PROGRAMS: dict[str, Program] = {
    name: program
    for file in FILES
    for name, program in importlib.import_module(f"harness.programs.{file}").PROGRAMS.items()
}

LETTERS = {Access.READ: "r", Access.WRITE: "w", Access.EITHER: "e"}


def use_of(argv: list[str]) -> Use:
    return read_command(PROGRAMS[argv[0]], argv)


def shown_path(path: PathUse) -> str:
    letter = LETTERS[path.access]
    return f"{letter.upper() if path.tree else letter}:{path.word}"


def shown_command(inner: Inner) -> str:
    front = "".join(f"{name}= " for name in inner.variables) + (f"({inner.folder}) " if inner.folder else "")
    return f"> {front}{' '.join(inner.argv)}"


def shown(use: Use) -> str:
    """Render a use in one line: act, `net`, paths, `> VARIABLE= (FOLDER) command`, `$ text`; a gap is `gap`."""
    if use.gap:
        return "gap"
    parts = [use.act.value, *(["net"] if use.network else []), *map(shown_path, use.paths)]
    return " ".join([*parts, *map(shown_command, use.commands), *(f"$ {text}" for text in use.scripts)])


ROWS = (
    # env
    ("env", "looks"),
    ("env A=1", "looks"),
    ("env bash", "wraps > bash"),
    ("env -C / rm -rf x", "wraps r:/ > (/) rm -rf x"),
    ("env --chdir=sub A=1 cat x", "wraps r:sub > A= (sub) cat x"),
    ("env PATH=/tmp ls", "wraps > PATH= ls"),
    ("env -u GIT_CONFIG_COUNT git status", "wraps > GIT_CONFIG_COUNT= git status"),
    ("env -uA -- B=2 rm x", "wraps > A= B= rm x"),
    ("env -i git status", "changes > git status"),
    ("env - git status", "changes > git status"),
    ("env -vi git status", "changes > git status"),
    ("env -S 'rm -rf' x", "wraps > rm -rf x"),
    ("env '-Srm -rf x'", "wraps > rm -rf x"),
    ("env '-vSrm x'", "wraps > rm x"),
    ("env '--split-string=-u A rm x' y", "wraps > A= rm x y"),
    ("env -S '-S rm'", "gap"),
    ("env -S 'A=$B ls'", "gap"),
    ("env -S \"ls 'a b'\"", "gap"),
    ("env -S 'ls \\c'", "gap"),
    ("env -S 'ls #x'", "gap"),
    ("env -S ''", "gap"),
    ("env -iS ls", "gap"),
    ("env --split='rm x' y", "gap"),
    ("env --unset=A=B ls", "gap"),
    ("env =x ls", "gap"),
    ("env a/b=c ls", "gap"),
    ("env -0 ls", "gap"),
    ("env -C '' ls", "gap"),
    # timeout, nice and their like
    ("timeout -k 5 10 rm x", "wraps > rm x"),
    ("timeout -sKILL -- 5 rm -k 1", "wraps > rm -k 1"),
    ("timeout --signal=KILL 5 env A=1 rm", "wraps > env A=1 rm"),
    ("timeout -5 rm", "gap"),
    ("nice -n5 rm x", "wraps > rm x"),
    ("nice -19 rm x", "wraps > rm x"),
    ("nice --adjustment 5 rm x", "wraps > rm x"),
    ("nice 5 rm x", "wraps > 5 rm x"),
    ("nice -n", "gap"),
    ("ionice -c3 -n 7 -t rm x", "wraps > rm x"),
    ("ionice -tp 1", "gap"),
    ("nohup sh", "wraps > sh"),
    ("stdbuf -oL rm x", "wraps > rm x"),
    ("stdbuf -o L -e0 rm x", "wraps > rm x"),
    ("time -o f ls", "writes w:f > ls"),
    ("time -ao f ls", "writes w:f > ls"),
    ("time --output=/etc/x ls", "writes w:/etc/x > ls"),
    ("time -f %e -v rm x", "wraps > rm x"),
    ("chrt -i 0 rm x", "wraps > rm x"),
    ("chrt -i rm x", "gap"),
    ("chrt --pid 0 1", "gap"),
    ("taskset -c 0,2-4 rm x", "wraps > rm x"),
    ("taskset -c rm x", "gap"),
    ("prlimit -n 64 rm", "wraps > 64 rm"),  # the value of -n may only be joined
    ("prlimit --nofile=64 rm x", "wraps > rm x"),
    ("numactl -N 0 rm x", "wraps > rm x"),
    ("setsid rm x", "changes > rm x"),
    ("flock f -c 'rm x'", "writes w:f $ rm x"),
    ("flock -n f rm -c x", "writes w:f > rm -c x"),
    ("flock /etc/x rm", "writes w:/etc/x > rm"),
    ("flock f -c 'rm x' y", "gap"),
    ("flock 9", "gap"),
    # xargs
    ("xargs", "wraps > echo (words of xargs)"),
    ("xargs rm -rf", "wraps > rm -rf (words of xargs)"),
    ("xargs -a f rm", "wraps r:f > rm (words of xargs)"),
    ("xargs --arg-file=.env echo", "wraps r:.env > echo (words of xargs)"),
    ("xargs -I{} sh -c '{}'", "wraps > sh -c {}"),
    ("xargs -I % rm ./%/x y", "wraps > rm ./%/x y"),
    ("xargs -i{} rm {}", "wraps > rm {}"),
    ("xargs -iR rm {}", "wraps > rm {}"),
    ("xargs --replace=R rm R", "wraps > rm R"),
    ("xargs -I{} -n1 rm {}", "wraps > rm {} (words of xargs)"),
    ("xargs -n1 -P4 -0r git log", "wraps > git log (words of xargs)"),
    ("xargs -I{} {} x", "gap"),
    ("xargs -I l ls", "gap"),
    ("xargs -I '' ls", "gap"),
    ("xargs --process-slot-var=PATH ls", "gap"),
    ("xargs -S 10 ls", "gap"),
    ("xargs --arg=.env echo", "gap"),
    # strace, watch, script and their like
    ("strace -f -o t.txt ls -la", "writes w:t.txt > ls -la"),
    ("strace '-o|sh' ls", "gap"),
    ("strace -o '!sh' ls", "gap"),
    ("strace -e inject=all:error=EPERM ls", "gap"),
    ("strace --inject=all:error=EPERM ls", "gap"),
    ("strace -fp 1", "gap"),
    ("strace -Eu=x ls", "gap"),
    ("strace -ffo t ls", "gap"),
    ("ltrace -o t ls", "writes w:t > ls"),
    ("valgrind --log-file=v ls", "runs w:v > ls"),
    ("watch -n 1 ls -la", "wraps $ ls -la"),
    ("watch 'ls;' rm x", "wraps $ ls; rm x"),
    ("watch -x ls ';' rm x", "wraps > ls ; rm x"),
    ("watch -dn1 ls", "wraps $ ls"),  # -d takes what is joined to it
    ("watch 'ls 10>f'", "gap"),
    ("script -qc x /dev/null", "writes w:/dev/null $ x"),
    ("script /dev/null -qc x", "writes w:/dev/null $ x"),
    ("script -c x", "writes w:typescript $ x"),
    ("script --command=x -O log", "writes w:log $ x"),
    ("script -q /dev/null", "gap"),
    ("script -qc x /dev/null rm", "gap"),
    ("hyperfine -p 'rm x' 'ls | wc'", "wraps $ rm x $ ls | wc"),
    ("hyperfine --export-json o.json ls", "writes w:o.json $ ls"),
    ("hyperfine -S 'bash -i' ls", "gap"),
    ("entr rm /_", "wraps > rm /_"),
    ("entr -rs 'rm x'", "gap"),
    # as somebody else, elsewhere
    ("sudo -u x -- rm y", "changes > rm y"),
    ("sudo -ux rm y", "changes > rm y"),
    ("sudo A=1 -n B=2 rm y", "changes > A= B= rm y"),
    ("sudo -- A=1 rm", "changes > A=1 rm"),
    ("sudo -D / rm -rf x", "changes r:/ > (/) rm -rf x"),
    ("sudo PATH=/tmp ls", "changes > PATH= ls"),
    ("sudo a.b=1 rm x", "gap"),
    ("sudo -nse x", "gap"),
    ("sudo --login rm", "gap"),
    ("sudo -D a -D b ls", "gap"),
    ("doas -u x rm y", "changes > rm y"),
    ("doas A=1 rm y", "changes > A=1 rm y"),
    ("doas -C f rm", "gap"),
    ("su -c 'rm x' www", "changes $ rm x"),
    ("su www --command='rm x'", "changes $ rm x"),
    ("su - -c 'rm x'", "gap"),
    ("su -lc 'rm x'", "gap"),
    ("su -c 'rm x' --shell=/tmp/x", "gap"),
    ("runuser -u www -- rm -rf x", "changes > rm -rf x"),
    ("runuser -u www -c 'rm x'", "gap"),
    ("pkexec --keep-cwd rm x", "changes > rm x"),
    ("chroot . rm -rf x", "changes E:. > (.) rm -rf x"),
    ("chroot .", "gap"),
    ("unshare -rmw /srv rm x", "changes r:/srv > (/srv) rm x"),
    ("unshare --root=/x rm", "gap"),
    ("nsenter -t 1 -m rm x", "gap"),
    ("systemd-run --user --scope rm x", "changes > rm x"),
    ("systemd-run rm x", "gap"),
    ("ssh-agent -a s rm x", "changes w:s > rm x"),
    ("fakeroot -- rm x", "changes > rm x"),
    ("xvfb-run -a rm x", "changes > rm x"),
    ("busybox rm x", "changes > rm x"),
    ("busybox sh -c 'rm x'", "changes > sh -c rm x"),
    ("toybox rm x", "changes > rm x"),
    ("busybox --install", "gap"),
    ("parallel rm ::: x", "gap"),
    ("tmux new-session 'rm x'", "gap"),
    # builtins
    ("command -v rm", "looks"),
    ("command rm x", "wraps > rm x"),
    ("command -- rm x", "wraps > rm x"),
    ("command -p rm x", "gap"),
    ("builtin cd x", "wraps > cd x"),
    ("exec rm x", "wraps > rm x"),
    ("exec -a x rm", "gap"),
    ("exec -cl rm", "gap"),
    ("eval rm x", "wraps $ rm x"),
    ("eval 'rm' '-rf;' x", "wraps $ rm -rf; x"),
    ("eval -- -x", "wraps $ -x"),
    ("eval ' '", "looks"),
    # shells
    ("bash -c 'rm x'", "wraps $ rm x"),
    ("bash -xc 'rm x'", "wraps $ rm x"),
    ("bash -c -e 'rm x'", "wraps $ rm x"),
    ("bash -c -- 'rm x'", "wraps $ rm x"),
    ("bash -eo pipefail -c 'rm x' a b", "wraps $ rm x"),
    ("bash -oc pipefail 'rm x'", "wraps $ rm x"),
    ("bash -c '[[ -f x ]] && cat <(ls)'", "wraps $ [[ -f x ]] && cat <(ls)"),
    ("bash -c 'rm \"$1\"' x y", "gap"),
    ("bash -c 'rm \"$0\"'", "wraps $ rm \"$0\""),
    ("bash -xc \"PS4='x' ls\"", "gap"),
    ("bash -o xtrace -c \"PS4='x' ls\"", "gap"),
    ("bash -O extglob -c ls", "gap"),
    ("bash -o posix -c ls", "gap"),
    ("bash +e -c ls", "gap"),
    ("bash --init-file x -c ls", "gap"),
    ("bash -nc ls", "gap"),
    ("bash -c", "gap"),
    ("bash x.sh .env --in=.npmrc -v", "runs r:x.sh e:.env e:.npmrc"),
    ("bash -n x.sh", "looks r:x.sh"),
    ("bash -nx x.sh", "gap"),
    ("sh -c 'a' b", "wraps $ a"),
    ("sh -c 'a $1' b", "gap"),
    ("sh -ec 'ls >f 2>&1'", "wraps $ ls >f 2>&1"),
    ("sh -c 'ls &>f'", "gap"),
    ("sh -c \"ls '&'>f\"", "gap"),
    ("sh -c 'time ls'", "gap"),
    ("sh -c 'ev\"\"al ls'", "gap"),
    ("sh x.sh", "runs r:x.sh"),
    ("zsh -c 'ls'", "gap"),
    ("zsh x.zsh y", "runs r:x.zsh e:y"),
    ("fish -c ls", "gap"),
    # interpreters
    ("python -mos", "gap"),
    ("python -cprint", "gap"),
    ("python -Bcprint", "gap"),
    ("python -Ic print", "gap"),
    ("python -m pytest -q tests --x=.env", "runs e:tests e:.env"),
    ("python -Bm pip install -r r.txt", "runs net e:install e:r.txt"),
    ("python -m http.server 80", "runs net e:80"),
    ("python -W error x.py -c y", "runs r:x.py e:y"),
    ("python -- x.py", "runs r:x.py"),
    ("python x.py -m os", "runs r:x.py e:os"),
    ("python -i", "gap"),
    ("python -X frozen_modules x.py", "gap"),
    ("perl x.pl .env", "runs r:x.pl e:.env"),
    ("perl -ne 'print' x", "gap"),
    ("perl -wpi.bak x", "gap"),
    ("perl -MCPAN x.pl", "gap"),
    ("ruby -rjson x.rb", "gap"),
    ("ruby -e x", "gap"),
    ("php -l x.php", "looks r:x.php"),
    ("php -d x=y -l x.php", "gap"),
    ("php -rx", "gap"),
    ("lua -ex y.lua", "gap"),
    ("java -jar a.jar -cp x", "runs e:a.jar e:x"),
    ("java -cp a:b Main -jar x", "runs e:a e:b e:Main e:x"),
    ("java --version", "runs"),
    ("jshell --version", "gap"),
    ("kubectl --help", "gap"),
    ("java -XX:OnError=x Main", "gap"),
    ("java -Djava.system.class.loader=x Main", "gap"),
    ("sqlite3 a.db '.shell rm x'", "gap"),
    ("vim -c '!rm x'", "gap"),
    ("node app.js .env", "runs r:app.js e:.env"),
    ("node -pe x", "gap"),
    ("node --eval=x", "gap"),
    ("node -r./x app.js", "gap"),
    ("node --inspect=0.0.0.0 app.js", "gap"),
    ("node --test", "runs"),
    ("tsx --import=./x a.ts", "gap"),
    ("deno run -A a.ts .env", "runs net r:a.ts e:.env"),
    ("deno eval x", "gap"),
    ("bun -e x", "gap"),
    # containers
    ("docker ps -aq", "looks"),
    ("docker logs -f --tail=5 web", "looks"),
    ("docker -H tcp://x ps", "gap"),
    ("docker -c x ps", "gap"),
    ("docker run --rm -v /etc:/x -v cache:/c i rm -rf /", "runs net E:/etc"),
    ("docker run -v/:/x i", "runs net E:/"),
    ("docker run --mount type=bind,src=/etc,dst=/x i", "runs net E:/etc"),
    ("docker run --mount '\"type=bind\",\"src=/etc\",dst=/x' i", "gap"),
    ("docker run -v=/:/x i", "gap"),
    ("docker run --privileged i", "gap"),
    ("docker run --env-file .env i", "runs net r:.env"),
    ("docker exec web cat .env", "runs net"),
    ("docker cp web:/a .env", "changes net E:.env"),
    ("docker cp ./a:b web:/x", "changes net E:./a:b"),
    ("docker build -f Dockerfile .", "runs net r:Dockerfile R:."),
    ("docker save --output=.git/x i", "changes net w:.git/x"),
    ("docker compose config", "looks net r:.env"),
    ("docker compose -f=x up", "gap"),
    ("docker-compose -f x.yml up", "runs net r:x.yml"),
    ("podman top web", "gap"),
    ("kubectl get secrets -o yaml", "looks net"),
    ("kubectl get x -o go-template-file=.env", "gap"),
    ("kubectl apply -f k8s --dry-run=client", "changes net R:k8s"),
    ("helm install x ./c --post-renderer=./x", "gap"),
    ("terraform -chdir=x plan -out=p", "runs net r:x w:x/p"),
    ("terraform fmt -check", "looks net R:."),
    ("terraform fmt", "writes net E:."),
    ("ansible-playbook -e @.env x.yml", "gap"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), ROWS)
def test_rows(line: str, expected: str) -> None:
    assert shown(use_of(shlex.split(line))) == expected


X = Unknown("$X")
MANY = Unknown("$X", single=False)
FILE = Found("{}", starts=(".",))
UNKNOWN_ROWS = (
    (["env", X], "gap"),
    (["env", "-C", X, "ls"], "gap"),
    (["env", "-C", FILE, "ls"], "gap"),
    (["env", "-u", X, "ls"], "gap"),
    (["env", "-S", X], "gap"),
    (["env", FILE], "gap"),
    (["env", Unknown("A=$X", prefix="A="), "ls", X], "wraps > A= ls $X"),
    (["env", Unknown("A$X", prefix="A"), "ls"], "gap"),
    (["timeout", X, "ls"], "gap"),
    (["timeout", "5", X], "gap"),
    (["timeout", "5", FILE], "gap"),
    (["timeout", "-k", X, "5", "ls"], "wraps > ls"),
    (["timeout", "5", "cat", X], "wraps > cat $X"),
    (["nice", "-n", MANY, "ls"], "gap"),
    (["xargs", "-I", X, "ls"], "gap"),
    (["xargs", "-a", X, "cat"], "gap"),
    (["xargs", X], "gap"),
    (["xargs", "-I{}", "cat", FILE], "wraps > cat {}"),
    (["sudo", X], "gap"),
    (["sudo", "A=1", X], "gap"),
    (["sudo", Unknown("A=$X", prefix="A="), "rm"], "changes > A= rm"),
    (["sudo", "-D", X, "rm"], "gap"),
    (["strace", "-o", X, "ls"], "gap"),
    (["strace", "-e", X, "ls"], "gap"),
    (["watch", "ls", X], "gap"),
    (["watch", FILE], "gap"),
    (["flock", X, "ls"], "gap"),
    (["flock", "f", X], "gap"),
    (["flock", "f", "-c", X], "gap"),
    (["script", "-c", X, "f"], "gap"),
    (["script", "-c", "ls", X], "gap"),
    (["su", "-c", X], "gap"),
    (["su", X, "-c", "ls"], "gap"),
    (["busybox", X], "gap"),
    (["command", X], "gap"),
    (["eval", "ls", X], "gap"),
    (["eval", FILE], "gap"),
    (["exec", X], "gap"),
    (["bash", X], "gap"),
    (["bash", FILE], "gap"),
    (["bash", "-c", X], "gap"),
    (["bash", "-c", FILE], "gap"),
    (["bash", "-c", "ls", X], "wraps $ ls"),
    (["bash", "-c", "ls $1", X], "gap"),
    (["bash", "-o", X, "-c", "ls"], "gap"),
    (["bash", "x.sh", X], "gap"),
    (["bash", "x.sh", FILE], "runs r:x.sh E:."),
    (["zsh", X], "gap"),
    (["python", X], "gap"),
    (["python", FILE], "gap"),
    (["python", "-m", X], "gap"),
    (["python", "-m", "pytest", X], "gap"),
    (["python", "-X", X, "x.py"], "gap"),
    (["node", X], "gap"),
    (["node", "app.js", X], "gap"),
    (["java", "-jar", X], "gap"),
    (["java", "-cp", X, "Main"], "gap"),
    (["docker", X], "gap"),
    (["docker", "run", "-v", X, "i"], "gap"),
    (["docker", "run", X], "gap"),
    (["docker", "logs", X], "gap"),
    (["docker", "cp", "a:b", Unknown("./$X", prefix="./")], "gap"),
    (["kubectl", "get", "x", "-o", X], "gap"),
    (["terraform", "fmt", Unknown("a$X", prefix="a")], "gap"),
)  # fmt: skip


@pytest.mark.parametrize(("argv", "expected"), UNKNOWN_ROWS, ids=lambda value: " ".join(value)[:50])
def test_words_that_are_not_known(argv: list[str], expected: str) -> None:
    assert shown(use_of(argv)) == expected


def test_what_xargs_puts_in_is_known_by_its_beginning_alone() -> None:
    inner = use_of(shlex.split("xargs -I% cat % ./%/x --in=% plain")).commands[0]
    filled = [word for word in inner.argv if isinstance(word, Unknown)]
    assert [(word.prefix, word.single) for word in filled] == [("", True), ("./", True), ("--in=", True)]
    tail = use_of(["xargs", "cat"]).commands[0].argv[-1]
    assert isinstance(tail, Unknown)
    assert (tail.prefix, tail.single) == ("", False)


READ_ALIKE = (
    ("ls -la | head -5 && echo done 2>&1 >f", True),
    ("if [ -f x ]; then cat x; fi", True),
    ("for f in a b; do echo \"$f\"; done", True),
    ("echo 'a b' > \"out file\"", True),
    ("ls 2>/dev/null *.py", True),
    ("cat <<'EOF'\nx\nEOF", True),
    ("echo $'a'", False),
    ("[[ a < b ]]", False),
    ("cat <(ls)", False),
    ("ls |& cat", False),
    ("ls &>f", False),
    ("ls &>>f", False),
    ("ls >&f", False),
    ("ls '&'>f", False),
    ("ls \\\n&\\\n>f", False),
    ("cat <<< x", False),
    ("echo 10>f", False),
    ("echo 1\\\n0>f", False),
    ("echo >f*", False),
    ("ls [^a]*", False),
    ("time -o f ls", False),
    ("function ls { rm x; }", False),
    ("eval ls", False),
    ("ev''al ls", False),
    ("alias ls=rm", False),
    ("trap 'rm x' EXIT", False),
    ("echo \N{LATIN SMALL LETTER E WITH ACUTE}", False),
)  # fmt: skip


@pytest.mark.parametrize(("text", "alike"), READ_ALIKE)
def test_text_that_sh_reads_as_bash_does(text: str, alike: bool) -> None:
    assert read_alike(text) is alike


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_that_run_programs_have_their_names_in_one_place(name: str) -> None:
    asked = [["a", "-x", "b", "c"], ["5", "b"], ["0x1", "a"], ["-c", "ls"], ["--scope", "a"], ["--keep-cwd", "a"]]
    runs = any(use.commands or use.scripts for use in (use_of([name, *words]) for words in asked))
    assert not runs or name in WRAPPERS | SHELLS


def test_no_name_got_lost_when_four_lists_became_one() -> None:
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


WORDS = st.one_of(
    st.sampled_from(
        "-c -e -i -n -m -u -o -S -I{} -C -v -x -- - --help A=1 rm ls x .env run compose up -f=x -D {} 5 = ; '' -eo pipefail"
        " --split-string=ls -0 get /".split()
    ),
    st.text(max_size=6),
    st.builds(lambda text, single: Unknown(f"${text}", prefix=text, single=single), st.text(max_size=3), st.booleans()),
    st.just(FILE),
)


@given(st.sampled_from(sorted(PROGRAMS)), st.lists(WORDS, max_size=7))
def test_any_words_are_read_and_unknown_ones_never_decide(name: str, words: list[str]) -> None:
    use = use_of([name, *words])
    assert all(inner.argv and not isinstance(inner.argv[0], Unknown | Found) for inner in use.commands)
    assert not any(isinstance(text, Unknown | Found) for text in use.scripts)
    assert not any(isinstance(path.word, Unknown) for path in use.paths)


def test_many_words_take_linear_time() -> None:
    for name in ("env", "sudo"):
        assert len(use_of([name, *["A=1"] * 2_000, "ls"]).commands[0].variables) == 2_000
    assert shown(use_of(["sudo", *["A=1", "-n"] * 500, "ls"])).startswith("changes")


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


@pytest.mark.parametrize("line", REAL_ROWS)
def test_the_program_runs_what_its_model_says(line: str, tmp_path: Path) -> None:
    path = f"{tmp_path}:/usr/bin:/bin"
    argv = shlex.split(line.replace("$PATH", path))
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    record = tmp_path / "record"
    record.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/log\n')
    record.chmod(0o755)
    (tmp_path / "input").write_text("one two\nthree\n")
    subprocess.run(
        argv,
        cwd=tmp_path,
        env={"PATH": path, "SHELL": "/bin/sh", "HOME": os.fspath(tmp_path)},
        input=b"one two\nthree\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    use = use_of(argv)
    predicted = [*(inner.argv for inner in use.commands), *(tuple(shlex.split(text)) for text in use.scripts)]
    assert [words[0] for words in predicted] == ["record"]
    ran = [("record", *text.split()) for text in (tmp_path / "log").read_text().splitlines()]
    assert ran
    flat = [tuple(part for word in words for part in _parts(word)) for words in predicted]
    assert all(any(stands_for(words, each) for words in flat) for each in ran)


def _parts(word: str) -> list[str]:
    return [Unknown(str(word), prefix=word.prefix, single=False)] if isinstance(word, Unknown) else word.split()
