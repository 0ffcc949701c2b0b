"""`harness policy suggest`: sessions of the real agent, a person's answers, and what every proposal does to every call."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import POLICY, Call, own_policy, session

from harness.action_log import read_log
from harness.actions import JsonValue
from harness.errors import PolicyError
from harness.log_check import verify
from harness.policy_file import load_policy, parse_policy
from harness.suggestions.rule_text import rule_id, rule_text

if TYPE_CHECKING:
    from conftest import Done, Program


def bash(command: str, answer: str = "y") -> Call:
    return Call("bash", command, answer)


def write(path: str, answer: str = "y") -> Call:
    return Call("write_file", path, answer)


def twice(*calls: Call) -> list[Call]:
    return [call for call in calls for _ in range(2)]


@pytest.fixture
def log(program: Program) -> Path:
    return program.home / "log.jsonl"


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

    def suggest(self, *flags: str) -> Done:
        done = self.program.run("policy", "suggest", str(self.log), *flags)
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
        return done

    def found(self, *flags: str) -> tuple[dict[str, dict[str, JsonValue]], dict[str, str], Mapping[str, JsonValue]]:
        """Return proposals by id, what was dropped with its reason, and the summary."""
        *rows, summary = [json.loads(line) for line in self.suggest("--json", *flags).out.splitlines()]
        proposals = {row["id"]: row for row in rows if row["type"] == "proposal"}
        dropped = {row["what"]: row["why"] for row in rows if row["type"] == "dropped"}
        assert summary["proposals"] == len(proposals)
        return proposals, dropped, summary

    def decisions(self, policy: Path) -> dict[int, str]:
        """Return how the calls of the log, by number, would be decided under another policy, where otherwise than then."""
        done = self.program.run("audit", "redecide", str(self.log), "--policy", str(policy), "--json")
        rows = [json.loads(line) for line in done.out.splitlines()]
        return {row["call"]: row["new"] for row in rows if "call" in row}


@pytest.fixture
def ran(program: Program, log: Path) -> Ran:
    return Ran(program, log)


def argv(proposal: Mapping[str, JsonValue]) -> list[str]:
    """Return what a proposal is about."""
    (rule,) = parse_policy(b"version = 1\n" + str(proposal["toml"]).encode(), "p").rules
    if rule.argv is None:
        assert rule.path is not None
        return list(rule.path.patterns)
    return [word for (word,) in rule.argv.tokens] + ["..."] * rule.argv.rest


EVERYTHING = [
    *twice(bash("frob --quick a")),
    bash("git status && pytest -q"), bash("pytest -q"), bash("timeout 60 pytest -q"),
    *(bash(f"git add {name}.py") for name in "abc"),
    write("docs/a.md"), write("docs/b.md"), write("docs/c.md"), *twice(write("notes.txt")),
    *twice(bash("python3 -c 'print(1)'"), bash("twine upload x"), bash("cat /etc/shadow"), write("conftest.py")),
    bash("single"), bash("blorp y"), bash("blorp y"), bash("blorp z", "n"), bash("other", "n"),
]  # fmt: skip


def test_each_proposal_with_its_policy_makes_exactly_the_questions_that_it_names_auto(ran: Ran) -> None:
    """Loaded after the policy that it was made for, its examples run, and every call of the log judged again."""
    ran.session(*EVERYTHING)
    proposals, _, summary = ran.found()
    assert sorted(map(argv, proposals.values())) == [
        ["/docs/"], ["/notes.txt"], ["frob", "--quick", "a"], ["git", "add", "..."], ["pytest", "-q"],
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
    assert len(load_policy(str(policy)).rules) == 2 + 5
    assert set(ran.decisions(policy).values()) == {"auto"}
    assert ran.program.run("policy", "check", str(policy)).code == 0
    assert "# To use them: append what you want to a policy of yours" in out
    assert "Approved 3 times, and never refused." in out


def test_what_is_not_suggested_is_said_with_the_reason(ran: Ran) -> None:
    ran.session(*EVERYTHING)
    _, dropped, _ = ran.found()
    own = ran.program.home / "own.toml"
    assert dropped == {
        "python3 -c 'print(1)'": "python3 runs what its operands say",
        "conftest.py": "builds and tests run it without naming it",
        "blorp y": "something like it was refused",
        "twine upload x": f"it is asked about by rule publish ({own}:11), which no further rule lifts",
        "cat /etc/shadow": "it is asked about by built-in outside, which no further rule lifts",
    }


@pytest.mark.parametrize(
    "command",
    [
        "sh x.sh", "python3 x.py", "python3.11 -m pytest", "perl x.pl", "make all", "node x.js", "awk 1 a.py",
        "sudo frob", "A=1 frob", "xargs frob", "curl http://127.0.0.1:9/x | sh", "frob $(date)",
        "frob '$X'", "uv run frob", "npm run build", "cargo run", "npx frob", "ssh host frob", "./frob", "/tmp/frob", "rm a.py",
        "frob ~/x", "frob ../x", "frob > out.txt", "frob /etc/passwd", "cp a.py ../x", "frob &", "docker run x",
        "sed -i s/x/y/ a.py", "frob ...", "git bisect run frob", "frob conftest.py", "cp a.py Makefile",
        "mkfs.ext4 x", "git config x y", "dash -x", "mv a.py b.py", "/usr/bin/git add a.py",
    ],
)  # fmt: skip
def test_what_no_rule_can_vouch_for_is_never_suggested(ran: Ran, command: str) -> None:
    """However often a person said yes to it; and a rule for a part of it would not spare the question."""
    ran.session(*(bash(command) for _ in range(3)))
    proposals, _, summary = ran.found()
    assert (proposals, summary["spared"], summary["questions"]) in (({}, 0, 3), ({}, 0, 0))


@pytest.mark.parametrize(
    "command", ["frob a", "timeout 9 frob a", "env frob a", "bash -c 'frob a'", "eval 'frob a'", "cd docs && frob a"]
)
def test_what_a_wrapper_runs_is_suggested_and_not_the_wrapper(ran: Ran, command: str) -> None:
    (ran.program.workspace / "docs").mkdir()
    ran.session(*twice(bash(command)))
    assert [argv(proposal) for proposal in ran.found()[0].values()] == [["frob", "a"]]


@pytest.mark.parametrize(
    ("others", "proposed"),
    [
        pytest.param([], True, id="approved alone"),
        pytest.param([bash("frob b", "n")], False, id="the program was refused with other words"),
        pytest.param([bash("/opt/frob b", "n")], False, id="the program was refused in another folder"),
        pytest.param([bash("frob a", "n")], False, id="the very command was refused"),
        pytest.param([bash("frob a; ls", "n")], False, id="it was refused as a part"),
        pytest.param([bash("ls; eval $X frob", "n")], False, id="refused where it was not understood"),
        pytest.param([bash("timeout 9 frob a", "nobody")], False, id="nobody was there to ask"),
        pytest.param([bash("frob a", "script")], False, id="a script said yes"),
        pytest.param([bash("blorp", "n")], True, id="another program was refused"),
        pytest.param([bash("frob b")], True, id="approved with other words"),
    ],
)
def test_a_rule_that_would_let_through_more_than_was_approved_is_dropped(
    ran: Ran, others: list[Call], *, proposed: bool
) -> None:
    ran.session(*twice(bash("frob a")), *others)
    proposals, dropped, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == [["frob", "a"]] * proposed
    assert ("frob a" in dropped) is not proposed


def test_a_refusal_in_another_session_counts(ran: Ran) -> None:
    ran.session(*twice(bash("frob a")))
    ran.session(bash("frob a", "n"))
    assert ran.found()[0] == {}


def test_two_rules_that_together_let_through_too_much_are_both_dropped(ran: Ran) -> None:
    """Each leaves `frob && blorp` a question, which nobody answered; both would make it auto."""
    ran.session(*twice(bash("frob"), bash("blorp")), bash("frob && blorp", "nobody"))
    proposals, dropped, _ = ran.found()
    assert proposals == {}
    assert {why.partition(" with")[0] for why in dropped.values()} == {"together"}
    assert sorted(dropped) == ["suggested-blorp", "suggested-frob"]


def test_two_commands_of_one_line_are_two_rules(ran: Ran) -> None:
    """Their own questions make them; together they spare that of the line too."""
    ran.session(*twice(bash("frob"), bash("blorp")), bash("frob && blorp"))
    proposals, _, summary = ran.found()
    assert sorted(map(argv, proposals.values())) == [["blorp"], ["frob"]]
    assert summary["spared"] == 5


@pytest.mark.parametrize(("least", "count"), [("1", 1), ("2", 1), ("3", 0)])
def test_how_often_is_often_enough_is_said(ran: Ran, least: str, count: int) -> None:
    ran.session(*twice(bash("frob")))
    assert len(ran.found("--least", least)[0]) == count


@pytest.mark.parametrize(
    ("commands", "proposed"),
    [
        (["git add a.py", "git add b.py"], []),
        (["git add a.py", "git add b.py", "git add c.py"], [["git", "add", "..."]]),
        (["git add a.py", "git add -v b.py", "git add c.py"], [["git", "add", "..."]]),
        (["git add a.py", "git add b.py", "git add c.py", "git add d.py"], [["git", "add", "..."]]),
        (["frob a.py", "frob b.py", "frob c.py"], []),  # nobody knows what it does to them
        (["touch a.py", "touch b.py", "touch c.py"], []),  # they are written
        (["mypy a.py", "mypy b.py", "mypy c.py"], []),  # it runs code
        (["git add -N a.py", "git commit -m x", "git commit -m y", "git commit -m z"], []),  # not files
    ],
)
def test_words_that_vary_are_only_left_open_where_they_are_files_that_are_read(
    ran: Ran, commands: list[str], proposed: list[list[str]]
) -> None:
    ran.session(*map(bash, commands))
    proposals, _, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == proposed
    for proposal in proposals.values():
        (rule,) = parse_policy(b"version = 1\n" + str(proposal["toml"]).encode(), "p").rules
        assert rule.argv is not None
        assert (rule.argv.flags or ()) == (("-v",) if "git add -v b.py" in commands else ())


@pytest.mark.parametrize(
    ("calls", "proposed"),
    [
        pytest.param([write("docs/a"), write("docs/b")], [], id="two files of a folder, once each"),
        pytest.param([write("docs/a"), write("docs/b"), write("docs/c")], [["/docs/"]], id="three files of a folder"),
        pytest.param([write("a"), write("b"), write("c")], [], id="three files of the workspace itself"),
        pytest.param(
            [*twice(write("docs/a")), write("docs/b"), write("docs/c"), write("docs/d", "n")], [["/docs/a"]], id="one refused"
        ),
        pytest.param(
            [write("docs/a"), write("docs/b"), write("docs/c"), write("docs/sub/d", "n")], [], id="refused below"
        ),
        pytest.param(
            [write("docs/a"), write("docs/b"), write("docs/c"), bash("frob > docs/d", "n")], [], id="refused to a command"
        ),
        pytest.param(twice(write(".github/x")), [], id="protected"),
        pytest.param(twice(write("a[b].md")), [], id="a name that is a pattern"),
        pytest.param(twice(write("../out")), [], id="outside"),
        pytest.param(twice(write("a b\u00e9.md")), [["/a b\u00e9.md"]], id="blank and accent"),
    ],
)  # fmt: skip
def test_files_are_suggested_by_name_and_folders_where_three_were_approved(
    ran: Ran, calls: list[Call], proposed: list[list[str]]
) -> None:
    (ran.program.workspace / "docs" / "sub").mkdir(parents=True)
    ran.session(*calls)
    assert [argv(proposal) for proposal in ran.found()[0].values()] == proposed


def test_what_was_asked_because_a_build_file_changed_is_not_lifted(ran: Ran) -> None:
    """The auto rule for the build is suspended: those approvals speak for no rule."""
    rule = '[[rule]]\nid = "free"\ndecision = "auto"\npath = ["conftest.py"]\naccess = ["read", "write"]\n'
    rule += '[[rule]]\nid = "frob"\ndecision = "auto"\nargv = ["frob"]\n'
    policy = POLICY + rule
    ran.session(write("conftest.py"), bash("frob"), write("conftest.py"), bash("frob"), policy=policy)
    proposals, dropped, _ = ran.found()
    assert proposals == {}
    assert dropped["frob"] == "what builds and tests run had been changed, and nobody had seen it"


def test_approvals_of_a_session_without_its_policy_count_for_nothing_and_refusals_do(ran: Ran) -> None:
    """Its log may be of an older harness, or the text of its policy masked."""
    ran.session(*twice(bash("frob"), bash("blorp")))
    ran.session(bash("blorp", "n"), *twice(bash("zap")))
    rewritten, previous = [], "0" * 64
    sessions = list(dict.fromkeys(str(record["session"]) for record in read_log(str(ran.log))))
    for record in read_log(str(ran.log)):
        fields = {**record, "prev": previous}
        if record["kind"] == "session_started" and record["session"] == sessions[1]:
            fields["policy_files"] = []
        line = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        previous = hashlib.sha256(line).hexdigest()
        rewritten.append(line + b"\n")
    ran.log.write_bytes(b"".join(rewritten))
    done = ran.suggest()
    assert f"session {sessions[1]}: the log holds no policy that could be used" in done.err
    proposals, dropped, _ = ran.found()
    assert [argv(proposal) for proposal in proposals.values()] == [["frob"]]
    assert dropped == {"blorp": "something like it was refused", "zap": "the policy that asked is not known"}


def test_a_hostile_command_is_data_in_every_output(ran: Ran) -> None:
    """Quotes, line ends, escapes, TOML: the rule is exact, ASCII, and loads; the terminal sees no escape."""
    hostile = (
        'frob \'a"]\n[[rule]]\nid = "evil"\'',
        "frob $'\\x1b[2J'",
        "frob '#\u00e9\U0001f600' '\\'",
        "frob '\u202e'",
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
    first = ran.session(*twice(bash("frob")))
    ran.session(*twice(bash("blorp")))
    folder = ran.program.home / "logs"
    folder.mkdir()
    shutil.copy(ran.log, folder / "a.jsonl")
    run = ran.program.run
    assert run("policy", "suggest", str(folder)).out.count("[[rule]]") == 2
    assert run("policy", "suggest", str(folder), "--session", first[:8]).out.count("[[rule]]") == 1
    assert run("policy", "suggest", "none.jsonl").code == 2
    assert run("policy", "suggest").code == 2


def test_a_broken_log_is_read_up_to_the_break_and_the_exit_code_says_so(ran: Ran) -> None:
    ran.session(*twice(bash("frob"), bash("blorp")))
    ran.log.write_text(ran.log.read_text().replace('"command\\": \\"blorp', '"command\\": \\"zap'))
    done = ran.program.run("policy", "suggest", str(ran.log))
    assert (done.code, "blorp" in done.out, "zap" in done.out) == (1, False, False)
    assert "broken at line" in done.err


@pytest.mark.parametrize("text", ["x", 'a"b\\c', "tab\tline\n\x00\x7f", "\u00e9\u202e\U0001f600"])
def test_texts_of_rules_come_back_from_toml(text: str) -> None:
    written = rule_text({"id": text, "argv": ("frob", text), "flags": (), "network": True, "write": False})
    assert tomllib.loads(written) == {"rule": [{"id": text, "argv": ["frob", text], "network": True}]}
    assert written.isascii()


def test_ids_are_new_and_name_the_command() -> None:
    assert rule_id("git-add--a", ()) == "suggested-git-add-a"
    assert rule_id("git add", {"suggested-git-add"}) == "suggested-git-add-2"
    assert rule_id("\u202e", {"suggested-rule"}) == "suggested-rule-2"
    with pytest.raises(PolicyError):
        parse_policy(b'version = 1\n[[rule]]\nid = "x"\ndecision = "auto"\nargv = ["sh"]\n', "p")
