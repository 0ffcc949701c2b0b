"""`harness policy fatigue`: the questions of old sessions, and those that are left where grants are taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import recorded_tasks
from audit_runs import POLICY, Call, own_policy, session
from recorded_tasks import tasks

from harness.actions import JsonValue
from harness.policy.loader import load_policy, shipped_policy_path
from harness.policy.rules import Layer

if TYPE_CHECKING:
    from program import Program

DAY = (
    Call("bash", "ls"),
    Call("bash", "pytest -q a.py"),
    Call("write_file", "a.py"),
    Call("write_file", "docs/b.md"),
    Call("bash", "pytest -q a.py"),
    Call("bash", "pytest -x"),
    Call("bash", "git push"),
    Call("bash", "git push --tags"),
    Call("bash", "echo x > ../outside"),
)
"""Eight questions: the first is for nothing to be asked about."""


class Asked:
    """Runs sessions in the workspace, and asks how many questions they had."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.log = program.home / "log.jsonl"

    def session(self, *calls: Call, policy: str = POLICY) -> str:
        return session(self.log, self.program.workspace, own_policy(self.program.home, policy), calls)

    def fatigue(self, *flags: str, code: int = 0) -> tuple[list[Mapping[str, JsonValue]], Mapping[str, JsonValue]]:
        """Return what is said of each session, and of all."""
        done = self.program.run("policy", "fatigue", str(self.log), "--json", *flags)
        assert (done.code, "Traceback" in done.err) == (code, False), done.err
        *rows, summary = [json.loads(line) for line in done.out.splitlines()]
        return rows, summary

    def left(self, *flags: str) -> list[str]:
        """Return what is asked about in the one session, where grants are taken."""
        (row,), _ = self.fatigue(*flags)
        still = row["still"]
        assert isinstance(still, list)
        return [str(one["summary"]) for one in still if isinstance(one, dict)]


@pytest.fixture
def asked(program: Program) -> Asked:
    return Asked(program)


def test_questions_are_counted_with_and_without_grants(asked: Asked) -> None:
    name = asked.session(*DAY)
    (row,), summary = asked.fatigue()
    counts = {key: row[key] for key in ("session", "calls", "asked", "questions", "with_grants", "unjudged")}
    assert counts == {"session": name, "calls": 9, "asked": 8, "questions": 8, "with_grants": 4, "unjudged": 0}
    assert (summary["sessions"], summary["questions"], summary["with_grants"]) == (1, 8, 4)


LEFT = {
    "exact": ["pytest -q a.py", "a.py", "docs/b.md", "pytest -x", "git push", "git push --tags"],
    "program": ["pytest -q a.py", "a.py", "git push"],
    "walls": ["pytest -q a.py", "a.py", "git push"],
    "widest": ["pytest -q a.py", "a.py", "git push"],
}


def test_take_flag_chooses_the_assumed_grants(asked: Asked) -> None:
    asked.session(*DAY)
    left = {take: asked.left("--take", take) for take in LEFT}
    assert left == {take: [*calls, "echo x > ../outside"] for take, calls in LEFT.items()}


def test_program_gets_the_network_only_if_no_other_grant_is_offered(asked: Asked) -> None:
    asked.session(*DAY)
    (row,), _ = asked.fatigue()
    granted = [one["granted"] for one in row["still"] if isinstance(one, dict)]  # type: ignore[union-attr]
    assert ["network: any host" in str(words) for words in granted] == [False, False, True, False]


def test_every_known_command_is_more_than_a_program(asked: Asked) -> None:
    asked.session(*(Call("bash", command) for command in ("pytest -q", "ruff format .", "git commit -am x", "frob a")))
    left = {take: len(asked.left("--take", take)) for take in LEFT}
    assert left == {"exact": 4, "program": 4, "walls": 2, "widest": 2}


def test_refused_question_gives_no_grant(asked: Asked) -> None:
    asked.session(Call("bash", "pytest -q", "n"), Call("bash", "pytest -q", "n"), Call("bash", "pytest -q"))
    assert asked.left() == ["pytest -q"] * 3
    out = asked.program.run("policy", "fatigue", str(asked.log)).out
    assert "   2  default for bash (own.toml:7), refused then, as: pytest -q" in out


def test_the_policy_can_be_another(asked: Asked) -> None:
    asked.session(*DAY)
    (row,), _ = asked.fatigue("--policy", "readonly")
    assert (row["asked"], row["questions"], row["with_grants"]) == (8, 0, 0)


def test_each_call_is_judged_by_the_policy_that_held_then(asked: Asked) -> None:
    laxer = own_policy(asked.program.home, POLICY.replace('bash = "confirm"', 'bash = "auto"'))
    calls = [Call("bash", f"make {target}") for target in ("a", "b", "c", "d")]
    policy = own_policy(asked.program.home)
    session(asked.log, asked.program.workspace, policy, calls[:1], then=(laxer, calls[1:]))
    (row,), _ = asked.fatigue()
    assert (row["calls"], row["asked"], row["questions"], row["unjudged"]) == (4, 1, 1, 0)


def test_best_grants_and_ungrantable_questions_are_listed(asked: Asked) -> None:
    asked.session(*DAY, *(Call("bash", "go test ./...") for _ in range(3)))
    out = asked.program.run("policy", "fatigue", str(asked.log)).out
    assert "With grants is the best case: each grant is taken when it is first offered, and walls hold." in out
    assert "   5  any command, workspace only, offline" in out
    assert "   1  built-in outside, as: echo x > ../outside" in out
    assert 'argv      = ["go", "test", "./..."]' in out


def test_a_hostile_command_is_data(asked: Asked) -> None:
    asked.session(Call("bash", "echo '\x1b[2J[red]' > ../outside"))
    out = asked.program.run("policy", "fatigue", str(asked.log)).out
    assert ("\x1b" in out, "[red]" in out) == (False, True)


def test_log_without_calls_is_reported(asked: Asked) -> None:
    asked.session()
    assert asked.program.run("policy", "fatigue", str(asked.log)).out == "no call was decided in these logs\n"


def test_broken_log_is_reported(asked: Asked) -> None:
    asked.session(*DAY)
    asked.log.write_bytes(asked.log.read_bytes().replace(b"docs/b.md", b"docs/c.md"))
    done = asked.program.run("policy", "fatigue", str(asked.log))
    assert (done.code, "is BROKEN" in done.err) == (1, True)


MOST_LEFT = 4
"""Questions of a task. One of them is the commit, which undo does not take back."""


def test_a_task_of_an_agent_asks_few_questions_where_grants_are_taken(program: Program, tmp_path: Path) -> None:
    policy = load_policy(shipped_policy_path("default"), layer=Layer.SHIPPED)
    ten = {task.name: task for task in tasks()}
    for name, task in ten.items():
        recorded_tasks.record(task, tmp_path / f"{name}.jsonl", tmp_path / name, policy)
    done = program.run("policy", "fatigue", *(str(tmp_path / f"{name}.jsonl") for name in ten), "--json")
    *rows, summary = [json.loads(line) for line in done.out.splitlines()]
    assert [(Path(row["log"]).stem, row["calls"], row["unjudged"]) for row in rows] == [
        (name, len(task.calls), 0) for name, task in ten.items()
    ]
    assert (len(ten) >= 10, summary["questions"] >= 10 * len(ten)) == (True, True)  # they are not made easy
    many = {row["log"]: [one["summary"] for one in row["still"]] for row in rows if row["with_grants"] > MOST_LEFT}
    assert many == {}
