"""What the flags of `harness run` hold to: nothing runs in a dry run, plan mode tightens, a pinned policy is that policy."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from program import made_program
from rows import all_rows

from harness.models.scripted import Reply, call, replies, say

if TYPE_CHECKING:
    from program import Done, Program

AUTO = 'version = 1\nname = "auto"\n[tools]\ndefault = "auto"\nbash = "auto"\nread_file = "auto"\nwrite_file = "auto"\n'
ASKS = (
    'version = 1\nname = "asks"\n[tools]\nread_file = "auto"\nwrite_file = "confirm"\nbash = "deny"\nreaders = true\n'
)


def policy(program: Program, text: str) -> str:
    path = program.home / "policy.toml"
    path.write_text(text)
    return str(path)


def run(program: Program, *calls: Any, rules: str = AUTO, flags: tuple[str, ...] = ()) -> tuple[Done, dict[str, Any]]:
    url = program.serve(replies(Reply(text="", calls=tuple(calls)), say("done.")))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, rules), "--output", "json", *flags)
    return done, json.loads(done.out)


def kinds(program: Program, kind: str) -> list[dict[str, Any]]:
    return [dict(record) for record in program.records() if record["kind"] == kind]


def test_dry_run_judges_every_call_and_runs_none(program: Program) -> None:
    (program.workspace / "old.txt").write_text("old\n")
    done, result = run(
        program,
        call("bash", command="touch made"),
        call("write_file", path="new.txt", content="x"),
        call("read_file", path="old.txt"),
        call("bash", command="cat /etc/shadow"),
        flags=("--dry-run",),
    )
    assert sorted(os.listdir(program.workspace)) == ["old.txt"]
    assert (done.code, result["end"], result["dry_run"]) == (7, "completed", True)
    assert kinds(program, "intent") == []
    ends = [(one["status"], str(one["content"])[:30]) for one in kinds(program, "outcome")]
    assert [status for status, _ in ends] == ["not_run", "not_run", "not_run", "denied"]
    assert ends[0][1].startswith("Not run: dry run;")
    assert kinds(program, "session_started")[0]["dry_run"] is True
    assert program.run("audit", "verify").code == 0


def test_plan_mode_overrides_the_policy(program: Program) -> None:
    (program.workspace / "a.txt").write_text("text\n")
    done, result = run(
        program,
        call("bash", command="touch made"),
        call("write_file", path="new.txt", content="x"),
        call("read_file", path="a.txt"),
        flags=("--plan",),
    )
    assert sorted(os.listdir(program.workspace)) == ["a.txt"]
    assert [one["status"] for one in kinds(program, "outcome")] == ["denied", "denied", "ok"]
    assert (done.code, len(result["refusals"])) == (7, 2)
    assert kinds(program, "session_started")[0]["plan"] is True


def test_pinned_policy_must_match_its_digest(program: Program) -> None:
    digest = hashlib.sha256(ASKS.encode()).hexdigest()
    done, result = run(program, call("bash", command="ls"), rules=ASKS, flags=("--policy-sha256", digest.upper()))
    assert (done.code, result["end"]) == (0, "completed")

    other = program.run("run", "go", "--policy", policy(program, ASKS + "# changed\n"), "--policy-sha256", digest)
    assert (other.code, other.out) == (2, "")
    assert f"--policy-sha256 says {digest}" in other.err
    unnamed = program.run("run", "go", "--policy-sha256", digest)
    assert (unnamed.code, "and none is named" in unnamed.err) == (2, True)
    odd = program.run("run", "go", "--policy", "ci", "--policy-sha256", "12")
    assert (odd.code, "64 hexadecimal digits" in odd.err) == (2, True)


def test_added_folders_are_read_and_never_written(program: Program) -> None:
    library = program.home / "library"
    (library / "sub").mkdir(parents=True)
    (library / "a.txt").write_text("needle\n")
    (library / "sub/.env").write_text("needle=1\n")
    secrets = ASKS + '[[rule]]\nid = "secrets"\ndecision = "deny"\naccess = ["read"]\npath = [".env"]\nreason = "No."\n'
    calls = (
        call("read_file", path=str(library / "a.txt")),
        call("bash", command=f"cat {shlex.quote(str(library))}/a.txt"),
        call("bash", command=f"grep -r needle {shlex.quote(str(library))}"),
        call("read_file", path=str(library / "sub/.env")),
        call("write_file", path=str(library / "a.txt"), content="x"),
        call("read_file", path=str(program.home / "other")),
    )
    done, result = run(program, *calls, rules=secrets, flags=("--add-dir", str(library)))
    assert [one["status"] for one in kinds(program, "outcome")] == ["ok", "ok", "denied", "denied", "denied", "denied"]
    assert [one["by"].split(" (")[0] for one in result["refusals"]] == [
        "rule secrets",
        "rule secrets",
        "built-in outside",
        "built-in outside",
    ]
    assert (library / "a.txt").read_text() == "needle\n"
    started = kinds(program, "session_started")[0]
    assert started["add_dirs"] == [str(library)]
    assert str(library) in started["system"]
    assert done.code == 7


@all_rows(
    ("folder", "why"),
    [
        ("{home}/none", "not an existing folder"),
        ("{home}", "holds the workspace or the home folder"),
        ("/", "holds the workspace or the home folder"),
        ("{state}/harness", "keeps its logs"),
    ],
    anew={"program": made_program},
)
def test_forbidden_folder_cannot_be_added(program: Program, folder: str, why: str) -> None:
    (program.state / "harness").mkdir()
    path = folder.format(home=program.home, state=program.state)
    done = program.run("run", "go", "--add-dir", path)
    assert (done.code, why in done.err, program.logs()) == (2, True, []), done.err


def test_a_refusal_names_the_rule_that_would_allow_it_and_does_not_apply_it(program: Program) -> None:
    done, result = run(program, call("write_file", path="new.txt", content="x"), rules=ASKS)
    assert (done.code, result["refused"]) == (7, 1)
    (refusal,) = result["refusals"]
    assert (refusal["decision"], refusal["status"], refusal["answered_by"]) == ("confirm", "denied", "nobody")
    toml = refusal["advice"]["toml"]
    assert toml in "\n".join(line.removeprefix("  ") for line in done.err.splitlines()) + "\n"
    (advice,) = kinds(program, "advice")
    assert (advice["toml"], advice["call"]) == (toml, 1)
    messages = str(program.players[0].requests[-1])  # what the model is told names no rule
    assert "suggested-" not in messages

    again, result = run(program, call("write_file", path="new.txt", content="x"), rules=ASKS + toml)
    assert (again.code, result["refusals"]) == (0, [])
    assert (program.workspace / "new.txt").read_text() == "x"


def test_call_with_a_secret_gets_no_rule_and_reveals_no_part_of_it(program: Program) -> None:
    secret = "Tr0ub4dor9Horse9Staple9991"
    program.environment["DB_PASSWORD"] = secret
    long = "frob " + "y" * 180 + f" {secret}"
    calls = (
        call("bash", command=f"frob -p {secret}"),
        call("bash", command=long),
        call("bash", command=f"x {secret}y"),
    )
    report = str(program.home / "r.md")
    done, result = run(program, *calls, rules=ASKS, flags=("--report", f"md:{report}", "--report-answer"))
    written = done.out + done.err + Path(report).read_text() + "".join(path.read_text() for path in program.logs())
    assert [one["advice"]["why"][:24] for one in result["refusals"]] == ["the call holds a secret,"] * 3
    assert [part for at in range(len(secret) - 6) if (part := secret[at : at + 6].lower()) in written.lower()] == []
    told = json.dumps(program.players[0].requests[-1]["messages"])
    results = [one for one in json.loads(told) if one["role"] == "tool"]
    assert (len(results), secret in json.dumps(results)) == (3, False)


def test_under_plan_mode_no_rule_is_advised(program: Program) -> None:
    _, result = run(program, call("bash", command="touch x"), flags=("--plan",))
    assert "--plan" in result["refusals"][0]["advice"]["why"]


def test_the_log_the_object_and_the_exit_agree(program: Program) -> None:
    done, result = run(program, call("bash", command="touch x"), rules=ASKS)
    (ended,) = kinds(program, "session_ended")
    assert (done.code, result["exit_code"], ended["exit_code"], ended["stop"]) == (7, 7, 7, result["end"])
    allowed, result = run(program, call("bash", command="touch x"), rules=ASKS, flags=("--allow-refusals",))
    assert (allowed.code, result["exit_code"], result["refused"]) == (0, 0, 1)


def schema_file(program: Program) -> str:
    path = Path(program.home) / "schema.json"
    path.write_text('{"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}')
    return str(path)


ANSWERS = [
    pytest.param(('{"ok": true}',), 0, "completed", '{"ok": true}', id="it fits"),
    pytest.param(('```json\n{"ok": true}\n```',), 0, "completed", '{"ok": true}', id="in a fence"),
    pytest.param(("fine", '{"ok": false}'), 0, "completed", '{"ok": false}', id="it fits when asked again"),
    pytest.param(("fine", '{"ok": 1}'), 5, "unfit", '{"ok": 1}', id="it never fits"),
]


@all_rows(("answers", "code", "end", "answer"), ANSWERS, anew={"program": made_program})
def test_an_answer_must_fit_its_schema(
    program: Program, answers: tuple[str, ...], code: int, end: str, answer: str
) -> None:
    url = program.serve(replies(*(say(text) for text in answers)))
    flags = ("--base-url", url, "--policy", policy(program, ASKS), "--output", "json")
    done = program.run("run", "go", *flags, "--output-schema", schema_file(program))
    result = json.loads(done.out)
    assert (done.code, result["exit_code"], result["end"], result["answer"]) == (code, code, end, answer), done.err
    checks = kinds(program, "answer_checked")
    assert [one["fits"] for one in checks] == [*([False] * (len(answers) - 1)), code == 0]
    by = [one.get("by") for one in kinds(program, "user_message")]
    assert by == [None, *(["harness"] * (len(answers) - 1))]
    assert program.run("audit", "verify").code == 0
