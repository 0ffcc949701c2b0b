"""`harness audit diff`: two sessions of the real agent side by side; `policy replay` of one of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import POLICY, Call, own_policy, session
from rows import all_rows

from harness.actions import JsonValue
from harness.log.reader import records
from harness.plugins.insight.difference import account_of, aligned, differences

if TYPE_CHECKING:
    from program import Done, Program

CALLS = [
    Call("bash", "ls"),
    Call("bash", "frob a"),
    Call("write_file", "a.txt", content="one\n"),
    Call("bash", "cat .env"),
]


class Sides:
    """Two logs, and what differs between them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.logs = [program.home / "a.jsonl", program.home / "b.jsonl"]

    def run(self, left: Sequence[Call], right: Sequence[Call], *, policy: str = POLICY, prompt: str = "go") -> None:
        """Run a session each; the files of the first are gone before the second begins."""
        workspace = self.program.workspace
        session(self.logs[0], workspace, own_policy(self.program.home), left)
        for path in workspace.iterdir():
            path.unlink()
        session(self.logs[1], workspace, own_policy(self.program.home, policy), right, prompt=prompt)

    def diff(self, *flags: str) -> Done:
        done = self.program.run("audit", "diff", *map(str, self.logs), *flags)
        assert "Traceback" not in done.err
        return done

    def lines(self) -> list[str]:
        return [line for line in self.diff().out.splitlines() if line[:2] in ("+ ", "- ", "~ ")]


@pytest.fixture
def sides(program: Program) -> Sides:
    return Sides(program)


def test_two_sessions_of_the_same_do_not_differ(sides: Sides) -> None:
    """Other times, another session, another log: exit 0."""
    sides.run(CALLS, CALLS)
    done = sides.diff()
    assert (done.code, done.out.splitlines()[-1]) == (0, "No difference: 4 calls are the same.")
    assert json.loads(sides.diff("--json").out)["different"] is False


def changed(place: int, call: Call | None) -> list[Call]:
    return [*CALLS[:place], *([] if call is None else [call]), *CALLS[place + 1 :]]


@all_rows(
    ("right", "expected"),
    [
        pytest.param(changed(0, None), ["- #1 bash  ls [auto, failed]"], id="a call less"),
        pytest.param([Call("bash", "pwd"), *CALLS], ["+ #1 bash  pwd [auto, ok]"], id="a call more"),
        pytest.param(
            changed(1, Call("bash", "frob b")),
            ["- #2 bash  frob a [confirm, yes, failed]", "+ #2 bash  frob b [confirm, yes, failed]"],
            id="another call in its place",
        ),
        pytest.param(
            changed(1, Call("bash", "frob a", "n")),
            ["~ #2 bash  frob a: answer yes -> no; outcome failed -> denied; exit code 127 -> (nothing)"],
            id="another answer",
        ),
        pytest.param(
            changed(2, None),
            ["- #3 write_file  a.txt [confirm, yes, ok]", "- file a.txt: 2c8b08da5ce6 -> (nothing)"],
            id="a file less",
        ),
    ], fresh=True)  # fmt: skip
def test_each_difference_is_a_line(sides: Sides, right: list[Call], expected: list[str]) -> None:
    sides.run(CALLS, right)
    assert sides.lines() == expected
    assert sides.diff().code == 1


def test_changed_policy_and_its_decisions_are_shown(sides: Sides) -> None:
    sides.run(CALLS, CALLS, policy=POLICY.replace('bash = "confirm"', 'bash = "deny"'))
    lines = sides.lines()
    assert [line.split(":")[0] for line in lines] == ["~ policy_sha256", "~ policy files", "~ #2 bash  frob a"]
    assert "decision confirm -> deny; answer yes -> (nothing); outcome failed -> denied" in lines[2]


def test_another_prompt(sides: Sides) -> None:
    sides.run(CALLS, CALLS, prompt="go \x1b[2J on")
    assert sides.lines() == ["- asked: go", "+ asked: go \\x1b[2J on"]


def test_different_file_and_missing_end_are_shown(sides: Sides) -> None:
    """The same edit of files that differed before; and the second log cut behind it, as by a crash."""
    edit = Call("write_file", "b.txt", content="end\n")
    sides.run([CALLS[2], edit], [Call("write_file", "a.txt", content="two\n"), edit])
    lines = sides.logs[1].read_bytes().splitlines(keepends=True)
    sides.logs[1].write_bytes(b"".join(lines[:-1]))
    assert sides.lines() == [
        "- #1 write_file  a.txt [confirm, yes, ok]",
        "+ #1 write_file  a.txt [confirm, yes, ok]",
        "~ file a.txt: 2c8b08da5ce6 -> 27dd8ed44a83",
        "~ ended: completed -> never",
    ]


def test_json_is_an_object_a_line(sides: Sides) -> None:
    sides.run(CALLS, changed(1, Call("bash", "frob a", "n")))
    one, summary = [json.loads(line) for line in sides.diff("--json").out.splitlines()]
    assert (one["row"], one["change"], one["fields"]) == ("call", "other", ["answer", "outcome", "exit code"])
    assert (one["a"]["answer"], one["b"]["answer"], one["a"]["call"]) == ("yes", "no", 2)
    assert (summary["same"], summary["other"], summary["different"]) == (3, 1, True)


def test_formatting_of_arguments_is_ignored(sides: Sides) -> None:
    sides.run(CALLS, CALLS)
    text = sides.logs[1].read_text()
    sides.logs[1].write_text(text.replace('{\\"command\\": \\"ls\\"}', '{ \\"command\\" : \\"ls\\" }'))
    left, right = (
        account_of(str(log), str(next(records(str(log)))["session"]), records(str(log))) for log in sides.logs
    )
    assert {one.change.value for one in differences(left, right)} == {"same"}


def test_sessions_are_named_by_log_by_name_or_both(sides: Sides) -> None:
    program, workspace = sides.program, sides.program.workspace
    log = sides.logs[0]
    names = [session(log, workspace, own_policy(program.home), CALLS[:count]) for count in (1, 2)]
    both = program.run("audit", "diff", str(log), str(log))
    assert (both.code, "holds 2 sessions" in both.err) == (2, True)
    done = program.run("audit", "diff", f"{log}#{names[0][:8]}", f"{log}#{names[1][:8]}")
    assert (done.code, "+ #2 bash  frob a" in done.out) == (1, True)
    folder = program.state / "harness" / "sessions" / "x"
    folder.mkdir(parents=True)
    (folder / "1.jsonl").write_bytes(log.read_bytes())
    assert program.run("audit", "diff", names[0][:10], names[0]).code == 0
    for wrong in ("nothing", "/none.jsonl", f"{log}#zz"):
        done = program.run("audit", "diff", wrong, names[0])
        assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)


@all_rows("value", [None, 1, "\udc80\x1b", [], {"a": []}])
def test_log_with_wrong_types_does_not_crash_diff(sides: Sides, value: JsonValue) -> None:
    """Fields of wrong types, calls without a number, lone surrogates."""
    kinds = ("session_started", "user_message", "call_proposed", "decision", "intent", "outcome", "session_ended")
    names = "text call arguments summary changed_path policy_files tools change stop system model tool".split()
    for log, held in zip(sides.logs, (value, "other"), strict=True):
        rows = [{**dict.fromkeys(names, held), "kind": kind, "session": "s", "time": "t"} for kind in kinds]
        log.write_text("".join(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n" for row in rows))
    for flags in ((), ("--json",)):
        done = sides.diff(*flags)
        assert (done.code, "internal" in done.err, "\x1b" in done.out) == (1, False, False)


# --- the alignment ---


def test_an_alignment_holds_every_item_once_in_order() -> None:
    chance = random.Random(3)
    for _ in range(1_500):
        letters = chance.randint(1, 6)
        left, right = ([b"%d" % chance.randrange(letters) for _ in range(chance.randrange(10))] for _ in range(2))
        found = list(aligned(left, right))
        assert [a for a, _ in found if a is not None] == list(range(len(left)))
        assert [b for _, b in found if b is not None] == list(range(len(right)))
        assert all(left[a] == right[b] for a, b in found if a is not None and b is not None)


def test_every_call_that_both_sessions_have_is_a_pair() -> None:
    """Where each call is another one, in one order, among calls that only one side has; in short sessions also alike."""
    chance = random.Random(5)
    for most in (10, 3_000):
        common = [b"%d" % number for number in range(most)]
        left, right = ([*common] for _ in range(2))
        for side, own in ((left, b"a"), (right, b"b")):
            for _ in range(most):
                side.insert(chance.randrange(len(side) + 1), own)
        assert sum(a is not None and b is not None for a, b in aligned(left, right)) == most
    for here, there in (("tet", "tt"), ("etttt", "tttt"), ("tetete", "teete")):
        pairs = [
            a for a, b in aligned([one.encode() for one in here], [one.encode() for one in there]) if None not in (a, b)
        ]
        assert len(pairs) == len(there)


def test_ten_thousand_calls_each_are_aligned_quickly() -> None:
    """All alike, all different, and a few kinds: the worst for other ways to do it."""
    chance = random.Random(4)
    for letters in (1, 3, 10**9):
        left, right = ([b"%d" % chance.randrange(letters) for _ in range(10_000)] for _ in range(2))
        assert sum(a is not None for a, _ in aligned(left, right)) == 10_000


# --- policy replay ---


def test_replay_takes_the_logs_that_audit_takes(sides: Sides) -> None:
    sides.run(CALLS, CALLS[:1])
    program = sides.program
    policy = Path(program.home / "own.toml")
    logs = [str(log) for log in sides.logs]
    for new in (str(policy), "ci", "readonly"):
        each = [program.run("policy", "replay", log, "--policy", new, "--json").out.splitlines() for log in logs]
        of_folder = program.run("policy", "replay", str(Path(logs[0]).parent), "--policy", new, "--json")
        *listed, summary = of_folder.out.splitlines()
        assert (of_folder.code, sorted(listed)) == (0, sorted(line for lines in each for line in lines[:-1]))
        counts = [json.loads(lines[-1])["summary"]["calls"] for lines in each]
        assert json.loads(summary)["summary"]["calls"] == sum(counts)
    assert program.run("policy", "replay", *logs, "--policy", "ci", "--fail-on", "any").code == 1
    assert program.run("policy", "replay", *logs, "--policy", str(policy), "--fail-on", "any").code == 0


def test_replay_of_one_session_of_a_log_and_of_a_broken_one(sides: Sides) -> None:
    program = sides.program
    log = sides.logs[0]
    names = [session(log, program.workspace, own_policy(program.home), CALLS[:count]) for count in (1, 3)]
    words = ("policy", "replay", str(log), "--policy", "ci", "--session")
    counts = [program.run(*words, name).out.splitlines()[-1].split(",")[0] for name in names]
    assert counts == ["1 call", "3 calls"]
    log.write_text(log.read_text().replace("frob a", "frob z"))
    for fail_on, code in ((), 0), (("--fail-on", "laxer"), 1):
        done = program.run("policy", "replay", str(log), "--policy", "readonly", *fail_on)
        assert (done.code, "broken at line" in done.err) == (code, True)
    assert program.run("policy", "replay", "none.jsonl", "--policy", "ci").code == 2
