"""`harness policy suggest`: sessions of the real agent, a person's answers, and what every proposal does to every call."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import POLICY as AUTO_READERS
from audit_runs import Call, own_policy, session
from rows import all_rows

from harness.actions import JsonValue
from harness.errors import PolicyError
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.policy.loader import load_policy, parse_policy
from harness.session.rule_subjects import rule_id, rule_text

if TYPE_CHECKING:
    from program import Done, Program


POLICY = AUTO_READERS.replace("readers = true", "readers = false")
"""Everything that a command does is asked about."""


def bash(command: str, answer: str = "y") -> Call:
    return Call("bash", command, answer)


def write(path: str, answer: str = "y") -> Call:
    return Call("write_file", path, answer)


def twice(*calls: Call) -> list[Call]:
    return [call for call in calls for _ in range(2)]


@pytest.fixture
def log(program: Program) -> Path:
    return program.home / "log.jsonl"


def chained_anew(log: Path, change: Callable[[LogRecord], Mapping[str, JsonValue]]) -> None:
    """Change records, and all hashes with them."""
    previous, lines = "0" * 64, []
    for record in read_log(str(log)):
        fields = {**change(record), "prev": previous}
        line = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        previous = hashlib.sha256(line).hexdigest()
        lines.append(line + b"\n")
    log.write_bytes(b"".join(lines))


def started_with(log: Path, session: str = "", **fields: JsonValue) -> None:
    """Change how sessions began, or one of them."""

    def change(record: LogRecord) -> Mapping[str, JsonValue]:
        meant = record["kind"] == "session_started" and session in ("", record["session"])
        return {**record, **fields} if meant else record

    chained_anew(log, change)


class Ran:
    """Runs sessions in the workspace, and asks what they suggest."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program, self.log = program, log
        for name in "abcd":
            (program.workspace / f"{name}.py").write_text("x = 1\n")

    def session(self, *calls: Call, policy: str = POLICY) -> str:
        name = session(self.log, self.program.workspace, own_policy(self.program.home, policy), calls)
        assert verify(str(self.log)).broken_line is None
        return name

    def suggest(self, *flags: str, code: int = 0) -> Done:
        done = self.program.run("policy", "suggest", str(self.log), *flags)
        assert (done.code, "Traceback" in done.err) == (code, False), done.err
        return done

    def found(
        self, *words: str, code: int = 0
    ) -> tuple[dict[str, dict[str, JsonValue]], dict[str, str], Mapping[str, JsonValue]]:
        """Return proposals by id, what was dropped with its reason, and the summary."""
        *rows, summary = [json.loads(line) for line in self.suggest(*words, "--json", code=code).out.splitlines()]
        proposals = {row["id"]: row for row in rows if row["type"] == "proposal"}
        dropped = {row["what"]: row["why"] for row in rows if row["type"] == "dropped"}
        assert summary["proposals"] == len(proposals)
        return proposals, dropped, summary

    def decisions(self, policy: Path) -> dict[int, str]:
        """Return how the calls of the log, by number, would be decided under another policy, where otherwise than then."""
        done = self.program.run("policy", "replay", str(self.log), "--policy", str(policy), "--json")
        rows = [json.loads(line) for line in done.out.splitlines()]
        return {row["call"]: row["new"] for row in rows if "call" in row}


@pytest.fixture
def ran(program: Program, log: Path) -> Ran:
    return Ran(program, log)


def argv(proposal: Mapping[str, JsonValue]) -> list[str]:
    """Return what a proposal is about; words that are a choice with bars between them."""
    (rule,) = parse_policy(b"version = 1\n" + str(proposal["toml"]).encode(), "p").rules
    if rule.argv is None:
        assert rule.files is not None
        return list(rule.files.patterns.patterns)
    assert (rule.argv.rest, rule.argv.flags or ()) == (False, ())
    return ["|".join(words) for words in rule.argv.tokens]


EVERYTHING = [
    *twice(bash("wc -l a.py")),
    bash("cd . && pytest -q"), bash("pytest -q"), bash("timeout 60 pytest -q"),
    *(bash(f"head -3 {name}.py") for name in "abc"),
    write("docs/a.md"), write("docs/b.md"), write("docs/c.md"), *twice(write("notes.txt")),
    *twice(bash("python3 -c 'print(1)'"), bash("twine upload x"), bash("cat /etc/shadow"), write("conftest.py")),
    bash("single"), bash("sort b.py"), bash("sort b.py"), bash("sort d.py", "n"), bash("other", "n"),
]  # fmt: skip


def test_proposal_makes_exactly_its_named_questions_auto(ran: Ran) -> None:
    """Loaded after the policy that it was made for, its examples run, and every call of the log judged again."""
    ran.session(*EVERYTHING)
    proposals, _, summary = ran.found()
    assert sorted(map(argv, proposals.values())) == [
        ["/notes.txt"], ["head", "-3", "a.py|b.py|c.py"], ["pytest", "-q"], ["wc", "-l", "a.py"],
    ]  # fmt: skip
    spared = set()
    for proposal in proposals.values():
        policy = ran.program.home / "with.toml"
        policy.write_text(f"{POLICY}\n{proposal['toml']}")
        load_policy(str(policy))
        spares = proposal["spares"]
        assert isinstance(spares, list)
        named = {call["call"] for call in spares if isinstance(call, dict)}
        assert ran.decisions(policy) == dict.fromkeys(named, "auto")
        spared |= named
    assert (summary["spared"], summary["questions"]) == (len(spared), sum(call.answer == "y" for call in EVERYTHING))


def test_the_text_is_a_piece_of_a_policy(ran: Ran) -> None:
    """All of stdout behind the policy loads, says how to be used, and makes auto what the proposals do; none is written."""
    ran.session(*EVERYTHING)
    before = {path: path.read_bytes() for path in ran.program.home.parent.rglob("*") if path.is_file()}
    out = ran.suggest().out
    assert {path: path.read_bytes() for path in ran.program.home.parent.rglob("*") if path.is_file()} == before
    policy = ran.program.home / "with.toml"
    policy.write_text(f"{POLICY}\n{out}")
    assert len(load_policy(str(policy)).rules) == 2 + 4
    assert set(ran.decisions(policy).values()) == {"auto"}
    assert ran.program.run("policy", "check", str(policy)).code == 0
    assert "# To use them: append what you want to a policy of yours" in out
    assert "Approved 3 times, and never refused." in out


def test_dropped_suggestions_have_a_reason(ran: Ran) -> None:
    ran.session(*EVERYTHING)
    _, dropped, _ = ran.found()
    own = ran.program.home / "own.toml"
    assert dropped == {
        "python3 -c 'print(1)'": "python3 runs what its operands say",
        "conftest.py": "builds and tests run it without naming it",
        "sort b.py": "something like it was refused",
        "docs/": "3 files in it were approved; a rule for the folder is yours to write",
        "twine upload x": f"it is asked about by rule publish ({own}:11), which no further rule lifts",
        "cat /etc/shadow": "it is asked about by built-in outside, which no further rule lifts",
    }


VOUCHED = """\
pytest ; pytest -q ; pytest -q -x --lf ; cargo build ; cargo test --workspace ; go test ./... ; go vet ; touch x.txt ; mkdir d
mkdir -p d/e ; wc -l a.py ; git log --oneline ; git diff ; jq -n x ; rg x b.py ; ls -la"""
"""What may be suggested, word for word: it looks, adds, or runs the project's own tests or build."""
UNVOUCHED = """\
sh x.sh ; python3 x.py ; python3.11 x.py ; pypy3.10 x.py ; python3-dbg x.py ; ipython x.py ; ipython3 x.py
bpython x.py ; env python x.py ; perl x.pl ; perl5.36 x.pl ; node x.js ; awk 1 a.py ; gawk 1 a.py ; sed -n p a.py
sed -i s/x/y/ a.py ; busybox ls ; lua5.4 x.lua ; php8 x.php ; ruby3.0 x.rb ; guile x.scm ; racket x ; sbcl --script x
ghci x ; runghc x.hs ; swift x.swift ; scala x ; kotlin x ; groovy x ; julia1.9 x ; octave x.m ; gnuplot x ; Rscript x
R -f x ; erl x ; elixir x.exs ; escript x ; mono x.exe ; dotnet run ; dotnet test ; wine x.exe ; java -jar x.jar
jython x ; nim r x ; zig run x ; rustc a.rs ; gcc a.c ; cc -o x a.c ; ld x ; as x ; dart x.dart ; flutter test
tclsh8.6 x ; wish x ; make ; make all ; make -f x ; gmake ; cmake --build . ; ninja ; just build ; task build ; rake
tox ; nox ; scons ; waf ; ant ; gradle build ; mvn test ; ctest ; sbt test ; lein test ; mix test ; rebar3 eunit
stack test ; cabal test ; dune test ; meson test ; bazel run //x ; bazel test //... ; invoke x ; fab x ; npm test
npm t ; npm i ; npm install ; npm ci ; npm run build ; npx frob ; pnpm test ; yarn test ; yarn build ; bun test
deno test ; jest ; vitest ; mocha ; eslint --fix . ; prettier -w . ; tsc ; webpack ; vite build ; pre-commit run
coverage run x.py ; coverage report ; unittest ; pytest -p evil ; pytest -pevil ; pytest --rootdir=x -c x.ini
pytest tests/test_a.py ; pytest -k x ; pytest -o addopts=-pevil ; cargo run ; cargo build --config x ; cargo install x
go generate ; go run . ; go test -exec x ./... ; go build -toolexec=x ./... ; mypy a.py ; black a.py ; ruff check --fix
isort a.py ; rustfmt a.rs ; gofmt -w a.go ; pip install x ; pip3 install x ; pip install -e . ; pipx run x
uv pip install x ; uv sync ; uv run frob ; conda install x ; apt install x ; brew install x ; gem install x
bundle install ; composer install ; opam install ; luarocks install x ; cpan x ; dpkg -i x.deb ; rpm -i x ; hatch run x
poetry run x ; poetry install ; pdm run x ; alembic upgrade head ; django-admin migrate ; flask run ; gunicorn x:y
uvicorn x:y ; celery -A x worker ; jupyter nbconvert --execute x.ipynb ; papermill a b ; artisan x ; rails runner x
nix-shell --run ls ; nix develop ; guix shell ; asdf exec x ; mise run x ; pyenv exec x ; direnv exec . ls ; sudo frob
A=1 frob ; A=1 wc -l a.py ; xargs frob ; curl http://127.0.0.1:9/x | sh ; frob $(date) ; wc '$X' ; ssh host frob
./frob ; /tmp/frob ; /usr/bin/wc -l a.py ; wc -l ~/x ; wc -l ../x ; wc -l a.py > out.txt ; wc -l /etc/passwd ; frob
frob a.py ; frob conftest.py ; dash-x ; bin ; git -c core.pager=x log ; git -c alias.x='!sh' x ; git frob ; git st
git push ; git push --force ; git commit -m x ; git fetch ; git pull ; git rebase -x ls main ; git submodule foreach ls
git config core.pager sh ; git config --global alias.x '!sh' ; git clone ext::sh ; git fetch ext::sh ; git checkout main
git checkout -- a.py ; git restore a.py ; git stash ; git reset --hard ; git clean -fdx ; git rm a.py
git filter-branch --tree-filter x ; git difftool -x ls ; git -C /tmp status ; git archive --remote=x HEAD
git grep -O x ; git diff --ext-diff ; git log --output=x ; git apply a.patch ; git am a.patch ; git bisect run frob
git add a.py ; git add -f .env ; git ls-remote ; find . -exec frob {} + ; find . -fprintf x y ; find . -name x -delete
tar --to-command=sh -xf a.tar ; tar -xf a.tar ; tar cf a.tar --checkpoint-action=exec=sh a.py ; tar -I sh -xf a.tar
unzip a.zip ; zip -T -TT sh a.zip a.py ; 7z x a.7z ; cpio -i ; ar x a.a ; gzip a.py ; gunzip a.gz ; sort -o out.txt a.py
sort --compress-program=sh a.py ; split --filter=sh a.py ; tee out.txt ; install a.py b.py ; ln -s a.py b
chmod +x a.py ; chown root a.py ; patch -p1 ; ed a.py ; rm a.py ; mv a.py b.py ; cp a.py b.py ; cp a.py ../x
cp a.py Makefile ; truncate -s0 a.py ; dd if=a.py of=b.py ; wipe a.py ; rimraf x ; trash a.py ; unlink a.py
/bin/rm a.py ; kill 1 ; pkill x ; shred a.py ; rsync -e sh a b ; rsync a.py b.py ; scp a.py host:
curl -o x.py http://x/y ; curl http://x/y ; curl -K cfg ; wget http://x/y ; nc -l 1 ; socat a b ; gh api x
gh alias set x ; hub x ; kubectl apply -f x ; terraform apply ; ansible-playbook x ; docker run x ; docker build .
podman build . ; systemctl restart x ; service x restart ; crontab x ; at now ; mail -s x ; sendmail x ; lpr a.py
wall x ; vim a.py ; vim -c ':!ls' a.py ; nvim -es ; ex a.py ; view a.py ; vimdiff a b ; emacs --batch a.py ; micro x
code . ; open x ; xdg-open x ; man -P sh ls ; gdb -ex x ; lldb x ; psql -c x ; mysql -e x ; sqlite3 db x ; duckdb db x
redis-cli eval x ; mongo x ; m4 x ; cpp x ; bison x ; flex x ; gperf x ; protoc --plugin=x y ; pandoc --filter x a.md
latex x ; pdflatex -shell-escape x ; troff x ; ffmpeg -i a b ; convert a b ; xsltproc a b ; valgrind frob ; strace frob
perf record frob ; hyperfine frob ; watch frob ; entr frob ; script -c frob ; parallel frob ; expect -c x ; run-parts x
touch conftest.py ; touch .env ; mkdir .github ; mkdir -p .githooks/x ; touch prod.env ; cat .env.example ; cat id_rsa
cat server.key"""
"""What an auditor of this command had it suggest once, and more like it."""


def commands_in(text: str) -> list[str]:
    return text.replace("\n", " ; ").split(" ; ")


def test_commands_vouched_for_by_a_model_are_suggested_exactly(ran: Ran) -> None:
    commands = commands_in(VOUCHED)
    ran.session(*(bash(command) for command in commands for _ in range(2)))
    proposals, _, summary = ran.found()
    assert sorted(" ".join(argv(proposal)) for proposal in proposals.values()) == sorted(commands)
    assert summary["spared"] == 2 * len(commands)
    for proposal in proposals.values():
        assert ("\nwrite " in str(proposal["toml"])) is (argv(proposal)[0] in ("pytest", "cargo", "go"))


@all_rows("batch", range(4), fresh=True)
def test_other_commands_are_suggested_in_walls_alone(ran: Ran, batch: int) -> None:
    """Not even where a single approval is said to be often enough."""
    commands = commands_in(UNVOUCHED)[batch::4]
    ran.session(*(bash(command) for command in commands))
    decided = [record for record in read_log(str(ran.log)) if record["kind"] == "decision"]
    assert len(decided) == len(commands), "the session ended early"
    proposals, dropped, _ = ran.found("--least", "1")
    rules = [parse_policy(f"version = 1\n{each['toml']}".encode(), "p").rules[0] for each in proposals.values()]
    # Walls hold what runs code; a client of a service only looks, by its model.
    assert {rule.id for rule in rules if not rule.walled} <= {"suggested-git-ls-remote", "suggested-gh-api-x"}
    assert not {"terraform", "ansible-playbook"} & {argv(each)[0] for each in proposals.values()}
    assert len(dropped) + len(proposals) > 0.9 * len(commands)


@all_rows(
    "command",
    [
        "wc a.py", "timeout 9 wc a.py", "env wc a.py", "bash -c 'wc a.py'", "eval 'wc a.py'", "cd docs && cd .. && wc a.py",
    ], fresh=True)  # fmt: skip
def test_command_of_a_wrapper_is_suggested_without_the_wrapper(ran: Ran, command: str) -> None:
    (ran.program.workspace / "docs").mkdir()
    ran.session(*twice(bash(command)))
    assert [argv(proposal) for proposal in ran.found()[0].values()] == [["wc", "a.py"]]


@all_rows(
    ("others", "proposed"),
    [
        pytest.param([], True, id="approved alone"),
        pytest.param([bash("wc b.py", "n")], False, id="the program was refused with other words"),
        pytest.param([bash("python3 -m wc", "n")], False, id="its name is a word of what was refused"),
        pytest.param([bash("sort a.py", "n")], False, id="its file was refused to another program"),
        pytest.param([bash("sort -o a.py b.py", "n")], False, id="its file was refused to be written"),
        pytest.param([bash("grep -r x .", "n")], False, id="a folder with its file was refused"),
        pytest.param([bash("/opt/wc b", "n")], False, id="the program was refused in another folder"),
        pytest.param([bash("wc a.py", "n")], False, id="the very command was refused"),
        pytest.param([bash("wc a.py; ls", "n")], False, id="it was refused as a part"),
        pytest.param([bash("ls; eval $X wc", "n")], False, id="refused where it was not understood"),
        pytest.param([bash("timeout 9 wc a.py", "nobody")], False, id="nobody was there to ask"),
        pytest.param([bash("wc a.py", "script")], False, id="a script said yes"),
        pytest.param([bash("sort b.py", "n")], True, id="another program was refused"),
        pytest.param([bash("wc b.py")], True, id="approved with other words"),
    ],
    fresh=True,
)
def test_a_rule_that_would_let_through_more_than_was_approved_is_dropped(
    ran: Ran, others: list[Call], *, proposed: bool
) -> None:
    ran.session(*twice(bash("wc a.py")), *others)
    proposals, dropped, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == [["wc", "a.py"]] * proposed
    assert ("wc a.py" in dropped) is not proposed


def test_a_refusal_in_another_session_counts(ran: Ran) -> None:
    ran.session(*twice(bash("wc a.py")))
    ran.session(bash("wc a.py", "n"))
    assert ran.found()[0] == {}


def test_two_rules_that_together_let_through_too_much_are_both_dropped(ran: Ran) -> None:
    """Each leaves `wc && sort` a question, which nobody answered; both would make it auto."""
    ran.session(*twice(bash("wc a.py"), bash("sort b.py")), bash("wc a.py && sort b.py", "nobody"))
    proposals, dropped, _ = ran.found()
    assert proposals == {}
    assert {why.partition(" with")[0] for why in dropped.values()} == {"together"}
    assert sorted(dropped) == ["suggested-sort-b-py", "suggested-wc-a-py"]


def test_two_commands_of_one_line_are_two_rules(ran: Ran) -> None:
    """Their own questions make them; together they spare that of the line too."""
    ran.session(*twice(bash("wc a.py"), bash("sort b.py")), bash("wc a.py && sort b.py"))
    proposals, _, summary = ran.found()
    assert sorted(map(argv, proposals.values())) == [["sort", "b.py"], ["wc", "a.py"]]
    assert summary["spared"] == 5


@all_rows(("least", "count"), [("1", 1), ("2", 1), ("3", 0)], fresh=True)
def test_least_flag_sets_the_required_approvals(ran: Ran, least: str, count: int) -> None:
    ran.session(*twice(bash("wc a.py")))
    assert len(ran.found("--least", least)[0]) == count


@all_rows(
    ("commands", "proposed"),
    [
        (["wc -l a.py", "wc -l b.py"], []),
        (["wc -l a.py", "wc -l b.py", "wc -l c.py"], [["wc", "-l", "a.py|b.py|c.py"]]),
        (["diff a.py d.py", "diff b.py d.py", "diff c.py d.py"], []),  # whole trees, where these are folders
        (["cmp a.py d.py", "cmp b.py d.py", "cmp c.py d.py"], [["cmp", "a.py|b.py|c.py", "d.py"]]),
        (["wc a.py", "wc -l b.py", "wc c.py"], []),  # not the same options
        (["wc a.py", "wc -l b.py", "wc c.py", "wc d.py"], [["wc", "a.py|c.py|d.py"]]),
        (["wc a.py b.py", "wc c.py d.py", "wc b.py a.py"], []),  # two words vary
        (["rg x a.py", "rg x b.py", "rg x c.py"], []),  # trees
        (["wc a.py", "wc b.py", "wc .env.sample"], []),
        (["git add a.py", "git add -f b.py", "git add c.py"], []),
        (["touch a.py", "touch b.py", "touch c.py"], []),  # they are written
        (["mypy a.py", "mypy b.py", "mypy c.py"], []),  # it runs code
        (["frob a.py", "frob b.py", "frob c.py"], []),  # nobody knows what it does to them
    ],
    fresh=True,
)
def test_files_are_offered_only_for_a_reading_command_with_three_of_them(
    ran: Ran, commands: list[str], proposed: list[list[str]]
) -> None:
    """And no file is meant that was not seen."""
    ran.session(*map(bash, commands))
    proposals, _, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == proposed


@all_rows(
    ("calls", "proposed", "why"),
    [
        pytest.param(
            [write("docs/a"), write("docs/b"), write("docs/c")],
            [],
            {"docs/": "3 files in it were approved; a rule for the folder is yours to write"},
            id="no folders",
        ),
        pytest.param([write(".x/a"), write(".x/b"), write(".x/c")], [], {}, id="and none that are hidden"),
        pytest.param([write("a"), write("b"), write("c")], [], {}, id="three files of the workspace itself"),
        pytest.param(
            [*twice(write("docs/a")), write("docs/b"), write("docs/d", "n")],
            [["/docs/a"]],
            {},
            id="another one refused",
        ),
        pytest.param(
            [*twice(write("docs/a")), bash("frob > docs/a", "n")],
            [],
            {"docs/a": "something like it was refused"},
            id="refused to a command",
        ),
        pytest.param(
            [*twice(write("docs/a")), bash("cat docs/a", "n")],
            [],
            {"docs/a": "something like it was refused"},
            id="refused to be read",
        ),
        pytest.param(
            twice(write("tests/conftest.py")),
            [],
            {"tests/conftest.py": "builds and tests run it without naming it"},
            id="entry point",
        ),
        pytest.param(
            twice(write(".githooks/x")),
            [],
            {".githooks/x": "its name, or that of a folder, begins with a dot: programs obey such files"},
            id="hidden folder",
        ),
        pytest.param(
            twice(write("prod.env"), write("env.local"), write("server.key"), write("src/SECRETS.py")),
            [],
            dict.fromkeys(
                ("prod.env", "env.local", "server.key", "src/SECRETS.py"),
                "its name is like those of files that hold secrets",
            ),
            id="like secrets",
        ),
        pytest.param(
            twice(write("a[b].md")), [], {"a[b].md": "its name cannot stand in a rule as it is"}, id="pattern"
        ),
        pytest.param(twice(write("a b\u00e9.md")), [["/a b\u00e9.md"]], {}, id="blank and accent"),
    ],
    fresh=True,
)
def test_files_are_suggested_by_their_exact_names(
    ran: Ran, calls: list[Call], proposed: list[list[str]], why: dict[str, str]
) -> None:
    (ran.program.workspace / "docs").mkdir()
    ran.session(*calls)
    proposals, dropped, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == proposed
    assert dropped == why


@all_rows("path", [".github/x", "../out"], fresh=True)
def test_files_that_built_ins_ask_about_are_not_suggested(ran: Ran, path: str) -> None:
    ran.session(*twice(write(path)))
    proposals, dropped, _ = ran.found()
    assert proposals == {}
    assert ["which no further rule lifts" in why for why in dropped.values()] == [True]


def test_rule_for_a_file_does_not_cover_a_folder_of_its_name(ran: Ran) -> None:
    ran.session(*twice(write("notes.txt")))
    policy = ran.program.home / "with.toml"
    policy.write_text(f"{POLICY}\n{ran.suggest().out}")
    (ran.program.workspace / "notes.txt").unlink()
    (ran.program.workspace / "notes.txt").mkdir()
    for path, word in (("notes.txt/evil", "confirm"), ("sub/notes.txt", "confirm"), ("other.txt", "confirm")):
        done = ran.program.run("policy", "explain", "--policy", str(policy), "--tool", "write_file", path, "--json")
        assert json.loads(done.out)["decision"] == word, done.out


def test_question_about_a_changed_build_file_is_not_lifted(ran: Ran) -> None:
    """The auto rule for the build is suspended: those approvals speak for no rule."""
    rule = '[[rule]]\nid = "free"\ndecision = "auto"\npath = ["conftest.py"]\naccess = ["read", "write"]\n'
    rule += '[[rule]]\nid = "frob"\ndecision = "auto"\nargv = ["frob"]\n'
    policy = POLICY + rule
    ran.session(write("conftest.py"), bash("frob"), write("conftest.py"), bash("frob"), policy=policy)
    proposals, dropped, _ = ran.found()
    assert proposals == {}
    assert dropped["frob"] == "what builds and tests run had been changed, and nobody had seen it"


def test_approvals_without_their_policy_are_ignored_and_refusals_counted(ran: Ran) -> None:
    """Its log may be of an older harness, or the text of its policy masked."""
    ran.session(*twice(bash("wc a.py"), bash("sort b.py")))
    ran.session(bash("sort b.py", "n"), *twice(bash("head c.py")))
    sessions = list(dict.fromkeys(str(record["session"]) for record in read_log(str(ran.log))))
    started_with(ran.log, sessions[1], policy_files=[])
    done = ran.suggest()
    assert f"session {sessions[1]}: the log holds no policy that could be used" in done.err
    proposals, dropped, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == [["wc", "a.py"]]
    assert dropped == {"sort b.py": "something like it was refused", "head c.py": "the policy that asked is not known"}


def test_a_hostile_command_is_data_in_every_output(ran: Ran) -> None:
    """Quotes, line ends, escapes, TOML: the rule is exact, ASCII, and loads; the terminal sees no escape."""
    hostile = (
        'wc \'a"]\n[[rule]]\nid = "evil"\'',
        "wc $'\\x1b[2J'",
        "wc '#\u00e9\U0001f600' '\\'",
        "wc '\u202e'",
    )
    ran.session(*twice(*map(bash, hostile)))
    out = ran.suggest().out
    assert (out.isascii(), "\x1b" in out) == (True, False)
    policy = ran.program.home / "with.toml"
    policy.write_text(f"{POLICY}\n{out}")
    rules = load_policy(str(policy)).rules[2:]
    words = [rule.argv.tokens[1][0] for rule in rules if rule.argv is not None]
    assert words == ['a"]\n[[rule]]\nid = "evil"', "#\u00e9\U0001f600"]
    assert ran.decisions(policy) == dict.fromkeys((1, 2, 5, 6), "auto")
    assert out.count("built-in opaque, which no further rule lifts") == 2  # an escape, or a hidden character, in a word


def test_the_logs_are_named_as_for_audit(ran: Ran) -> None:
    """A folder, a session; a log that is not there: 2."""
    first = ran.session(*twice(bash("wc a.py")))
    ran.session(*twice(bash("sort b.py")))
    folder = ran.program.home / "logs"
    folder.mkdir()
    shutil.copy(ran.log, folder / "a.jsonl")
    run = ran.program.run
    assert run("policy", "suggest", str(folder)).out.count("[[rule]]") == 2
    assert run("policy", "suggest", str(folder), "--session", first[:8]).out.count("[[rule]]") == 1
    assert run("policy", "suggest", "none.jsonl").code == 2
    assert run("policy", "suggest").code == 2


def altered(log: Path, how: str) -> None:
    """Do to a log what somebody would who wants a rule out of it; the last call was refused."""
    lines = log.read_bytes().splitlines(keepends=True)
    answer = next(number for number, line in enumerate(lines) if b'"answer":"no"' in line)
    call = max(number for number in range(answer) if b'"kind":"call_proposed"' in lines[number])
    match how:
        case "answer":
            lines[answer] = lines[answer].replace(b'"answer":"no"', b'"answer":"yes"')
        case "break":
            lines[call] = lines[call].replace(b"wc", b"ls")
        case "first":
            lines[0] = lines[0].replace(b'"mode":"run"', b'"mode":"RUN"')
        case "cut":
            del lines[call:]
        case "torn":
            lines[call:] = [lines[call][:40]]
        case "rewritten":
            del lines[call:]
        case _:
            raise ValueError(how)
    log.write_bytes(b"".join(lines))
    if how == "rewritten":
        chained_anew(log, lambda record: {**record, "text": "other"} if record["kind"] == "user_message" else record)


def note_head(program: Program, log: Path) -> None:
    """Note the head of a log, as the program does when it closes one of its own."""
    records = list(read_log(str(log)))
    last = log.read_bytes().splitlines()[-1]
    note = {
        "file": str(log),
        "session": records[0]["session"],
        "records": len(records),
        "head": hashlib.sha256(last).hexdigest(),
        "closed": True,
        "time": "2026-01-01T00:00:00Z",
        "size": log.stat().st_size,
    }
    heads = program.state / "harness" / "heads.jsonl"
    heads.parent.mkdir(parents=True, exist_ok=True)
    with heads.open("a") as file:
        file.write(json.dumps(note, sort_keys=True, separators=(",", ":")) + "\n")


CUT_OFF = "a refusal at its end could have been cut off"


@all_rows("moved", [False, True], ids=["in its place", "copied"])
@all_rows("how", ["answer", "break", "first", "cut", "torn", "rewritten"], fresh=True)
def test_altered_log_is_ignored(ran: Ran, how: str, *, moved: bool) -> None:
    """Not even for what stands before the break; another log beside it counts."""
    ran.log = ran.program.home / "log.jsonl"
    ran.session(*twice(bash("wc a.py")), bash("wc a.py", "n"))
    note_head(ran.program, ran.log)
    if moved:
        copy = ran.log.with_name("copy.jsonl")
        shutil.copy(ran.log, copy)
        ran.log = copy
    altered(ran.log, how)
    proposals, dropped, summary = ran.found(code=1)
    assert (proposals, dropped, summary["questions"]) == ({}, {}, 0)
    assert (summary["broken"], summary["without_head"]) == ([str(ran.log)], [])
    done = ran.suggest(code=1)
    assert "nothing in it counts" in done.err
    assert ("[[rule]]" in done.out, "Left out wholly: it is broken" in done.out) == (False, True)
    replayed = ran.program.run("policy", "replay", str(ran.log), "--policy", "readonly", "--fail-on", "laxer")
    assert (replayed.code, "roken at line" in replayed.err or "BROKEN" in replayed.err) == (1, True)


def test_unreadable_log_has_its_own_exit_code(ran: Ran) -> None:
    """But `policy replay` takes a log that is named as it takes a policy."""
    os.mkfifo(ran.log)
    assert ran.program.run("policy", "suggest", str(ran.log)).code == 8
    assert ran.program.run("policy", "replay", str(ran.log), "--policy", "readonly").code == 2


def test_sessions_after_the_noted_head_are_ignored(ran: Ran) -> None:
    """Whoever can append to a log could write approvals into it; the harness would have noted them first."""
    ran.session(bash("wc a.py"))
    note_head(ran.program, ran.log)
    ran.session(*twice(bash("wc a.py"), bash("head b.py")))
    proposals, dropped, summary = ran.found(code=1)
    assert (proposals, dropped, summary["broken"]) == ({}, {}, [str(ran.log)])


def test_missing_noted_log_may_contain_a_refusal(ran: Ran) -> None:
    ran.session(*twice(bash("wc a.py")))
    gone = ran.log.with_name("gone.jsonl")
    session(gone, ran.program.workspace, own_policy(ran.program.home, POLICY), [bash("wc a.py", "n")])
    note_head(ran.program, gone)
    gone.unlink()
    done = ran.program.run("policy", "suggest", str(ran.log), str(gone))
    assert (done.code, "it is gone" in done.err) == (1, True)


def test_broken_log_does_not_affect_an_intact_one(ran: Ran) -> None:
    ran.session(*twice(bash("wc a.py")), bash("wc a.py", "n"))
    altered(ran.log, "answer")
    other = ran.log.with_name("other.jsonl")
    session(other, ran.program.workspace, own_policy(ran.program.home, POLICY), twice(bash("wc a.py")))
    assert [argv(proposal) for proposal in ran.found(str(other), code=1)[0].values()] == [["wc", "a.py"]]


def test_a_call_counts_once_however_many_copies_of_its_log_there_are(ran: Ran) -> None:
    ran.session(bash("wc a.py"), *twice(bash("head b.py")))
    ran.session(bash("head b.py", "n"))
    for name in ("copy1.jsonl", "copy2.jsonl"):
        shutil.copy(ran.log, ran.log.with_name(name))
    last = ran.log.read_bytes().index(b'"kind":"session_started"', 1000)
    ran.log.write_bytes(ran.log.read_bytes()[:last].rpartition(b"\n")[0] + b"\n")
    copies = [str(ran.log.with_name(name)) for name in ("copy1.jsonl", "copy2.jsonl")]
    proposals, dropped, summary = ran.found(*copies)
    assert (proposals, dropped) == ({}, {"head b.py": "something like it was refused"})
    assert summary["questions"] == 3


def test_missing_head_is_reported_as_a_possible_cut(ran: Ran) -> None:
    ran.session(*twice(bash("wc a.py")), bash("wc a.py", "n"))
    altered(ran.log, "cut")
    done = ran.suggest()
    assert (CUT_OFF in done.err, CUT_OFF in done.out, done.out.count("[[rule]]")) == (True, True, 1)
    note_head(ran.program, ran.log)
    done = ran.suggest()
    assert (CUT_OFF in done.err, CUT_OFF in done.out, done.out.count("[[rule]]")) == (False, False, 1)


@all_rows("workspace", ["", ".", "a\0b", "/a\0b", "/\ud800", "/" + "x" * 100_000, "~"])
@all_rows("words", [("policy", "suggest"), ("policy", "replay", "--policy", "readonly")])
def test_odd_workspace_is_reported_and_skipped(ran: Ran, words: tuple[str, ...], workspace: str) -> None:
    ran.session(*twice(bash("wc a.py")))
    started_with(ran.log, workspace=workspace)
    done = ran.program.run(*words, str(ran.log))
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert "names no workspace" in done.err or "is gone" in done.err


@all_rows("path", ["", "a\0b", "/\ud800", "\u202e"])
def test_odd_policy_path_is_accepted(ran: Ran, path: str) -> None:
    ran.session(*twice(bash("wc a.py")))
    (first, *_) = read_log(str(ran.log))
    files = first["policy_files"]
    assert isinstance(files, list)
    started_with(ran.log, policy_files=[{**file, "path": path} for file in files if isinstance(file, dict)])
    assert [argv(proposal) for proposal in ran.found()[0].values()] == [["wc", "a.py"]]


@all_rows("text", ["x", 'a"b\\c', "tab\tline\n\x00\x7f", "\u00e9\u202e\U0001f600"])
def test_rule_texts_survive_a_toml_round_trip(text: str) -> None:
    written = rule_text({"id": text, "argv": ("frob", text), "flags": (), "network": True, "write": False})
    assert tomllib.loads(written) == {"rule": [{"id": text, "argv": ["frob", text], "network": True}]}
    assert written.isascii()


def test_ids_are_new_and_name_the_command() -> None:
    assert rule_id("git-add--a", ()) == "suggested-git-add-a"
    assert rule_id("git add", {"suggested-git-add"}) == "suggested-git-add-2"
    assert rule_id("\u202e", {"suggested-rule"}) == "suggested-rule-2"
    with pytest.raises(PolicyError):
        parse_policy(b'version = 1\n[[rule]]\nid = "x"\ndecision = "auto"\nargv = ["sh"]\n', "p")


TEAMS = {
    # a Django shop
    "uv run pytest -q": "walls",
    "uv run python manage.py makemigrations --check": "walls",
    "python manage.py test": "walls",
    # a data scientist
    "python analysis/clean.py data/raw/a.csv": "walls",
    "jupyter nbconvert --to html a.ipynb": "walls",
    # an operator
    "terraform -chdir=dev validate": "",  # its network was opened
    "terraform fmt -check": "network",
    "kubectl -n web get pods": "network",
    "kubectl delete pod x": "",
    # a Go monorepo
    "go -C api test ./...": "walls",
    "golangci-lint run ./...": "walls",
    "make lint": "walls",
    # a pnpm front end
    "pnpm -r test": "walls",
    "pnpm exec tsc --noEmit": "walls",
    "npx eslint src": "walls",
    # no client of a service
    "curl https://example.org/": "",
}
"""Commands of five teams, and what holds them in the proposed rule. Empty: none is proposed."""


def test_teams_get_proposals_for_their_commands(ran: Ran) -> None:
    ran.session(*twice(*map(bash, TEAMS)))
    proposals, _, _ = ran.found()
    held = {}
    for proposal in proposals.values():
        (rule,) = parse_policy(b"version = 1\n" + str(proposal["toml"]).encode(), "p").rules
        assert rule.argv is not None
        held[" ".join(word for (word,) in rule.argv.tokens)] = (
            "walls" if rule.walled else "network" * rule.opens.network
        )
    assert held == {command: holding for command, holding in TEAMS.items() if holding}
