"""A script as a tool, as a user has it: declared in config.toml, explained, tried, run by a model, audited, and not undone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import made_program
from rows import all_rows

from harness.models.scripted import Reply, call, replies
from harness.session.state import State

if TYPE_CHECKING:
    from program import Program

CONFIG = """
[[tool]]
name = "note"
description = "Keeps a line in a file of notes."
argv = ["bash", "tools/note.sh", "{line}"]
writes = ["notes/"]
env = ["CI"]
[tool.arguments.line]
type = "string"
maxLength = 100
[[tool]]
name = "count"
description = "Counts the lines of a file."
argv = ["wc", "-l", "--", "{path}"]
reads = ["{path}"]
[tool.arguments.path]
type = "string"
"""
POLICY = """
version = 1
[tools]
default = "confirm"
read_file = "auto"
[[rule]]
id = "notes"
decision = "auto"
tool = ["script__note"]
[[rule]]
id = "sources"
decision = "auto"
tool = ["script__count"]
read_only = true
where = {path = ["src/"]}
[[rule]]
id = "no-keys"
decision = "deny"
access = ["read", "write"]
path = ["*.key"]
reason = "Keys."
[[rule]]
id = "calm"
decision = "deny"
tool = ["script__note"]
where = {line = ["shout"]}
reason = "Nobody shouts."
"""


def config_of(program: Program) -> Path:
    return Path(State.of(program.environment).config_file)


def with_scripts(program: Program) -> str:
    """Declare the scripts, and return where a policy lies that speaks of them."""
    config = config_of(program)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIG)
    config.chmod(0o600)
    for name in ("tools", "src"):
        (program.workspace / name).mkdir()
    (program.workspace / "tools" / "note.sh").write_text('printf "%s\\n" "$1" >> notes/all; touch escaped; echo kept')
    (program.workspace / "src" / "a.py").write_text("one\ntwo\n")
    policy = program.home / "policy.toml"
    policy.write_text(POLICY)
    return str(policy)


CASES = """
note  | {"line": "milk"}                  | auto     | rule notes
note  | {"line": "shout"}                 | deny     | rule calm
note  | {"line": "-rf"}                   | -        | would be read as an option
note  | {"line": 3}                       | -        | line: must be a string
note  | {"text": "x"}                     | -        | unknown field 'text'
note  | {}                                | -        | line is missing
count | {"path": "src/a.py"}              | auto     | rule sources
count | {"path": "src/../b.py"}           | confirm  | default for any other tool
count | {"path": "src/a.key"}             | deny     | rule no-keys
count | {"path": "/etc/passwd"}           | confirm  | built-in outside
other | {"path": "src/a.py"}              | confirm  | default for any other tool
"""


@all_rows(
    ("tool", "arguments", "decision", "by"),
    [tuple(cell.strip() for cell in row.split(" | ")) for row in CASES.strip().split("\n")],
    anew={"program": made_program},
)
def test_explain_and_policy_test_agree_on_script_calls(
    program: Program, tool: str, arguments: str, decision: str, by: str
) -> None:
    """By `policy explain` and by `policy test`, which say the same."""
    policy = with_scripts(program)
    name = f"script__{tool}"
    explained = program.run("policy", "explain", "--policy", policy, "--tool", name, arguments)
    cases = program.home / "cases.jsonl"
    cases.write_text(json.dumps({"id": "1", "tool": name, "args": json.loads(arguments)}) + "\n")
    tested = program.run("policy", "test", str(cases), "--policy", policy, "--json")
    case = json.loads(tested.out.splitlines()[0])

    if decision == "-":
        assert (explained.code, tested.code) == (2, 1)
        assert by in explained.err
        assert by in case["error"]
    else:
        assert f"decision: {decision}\ndecided by: {by}" in explained.out
        assert (case["decision"], case["error"]) == (decision, None)
        assert case["by"].startswith(by)


def test_invalid_tool_configuration_is_reported_with_its_line(program: Program) -> None:
    policy = with_scripts(program)
    file = config_of(program)
    file.write_text(CONFIG.replace('"{line}"', '"{lin}"'))
    told = program.run("policy", "explain", "--policy", policy, "--tool", "script__note", "{}")
    assert told.code == 2
    assert f"{file}:5: [[tool]] argv: {{lin}} names no argument; did you mean line?" in told.err


def test_script_call_passes_through_every_stage(program: Program) -> None:
    policy = with_scripts(program)
    wanted = (
        ("note", {"line": "$(id) milk"}),
        ("count", {"path": "src/a.py"}),
        ("note", {"line": "shout"}),
        ("count", {"path": "x"}),
    )
    url = program.serve(
        replies(*(Reply(calls=(call(f"script__{name}", **given),)) for name, given in wanted), Reply(text="Done."))
    )
    done = program.run("run", "go", "--base-url", url, "--policy", policy)

    # What was permitted ran, in its walls; what was not did not.
    assert done.out == "Done.\n"
    assert (program.workspace / "notes" / "all").read_text() == "$(id) milk\n"
    outcomes = [record for record in program.records() if record["kind"] == "outcome"]
    assert [(one["tool"], one["status"], one.get("exit_code")) for one in outcomes] == [
        ("script__note", "ok", 0),
        ("script__count", "ok", 0),
        ("script__note", "denied", None),
        ("script__count", "denied", None),
    ]
    intents = [record for record in program.records() if record["kind"] == "intent"]
    effects = intents[0]["effects"]
    assert isinstance(effects, dict)
    assert effects["granted"] == ["notes/"]
    if not str(intents[0]["confinement"]).startswith("none"):
        assert not (program.workspace / "escaped").exists()

    # Out of the records alone.
    (log,) = program.logs()

    assert "Proved" in program.said("audit", "verify", str(log))
    assert "script__note" in program.said("audit", "show", str(log))
    assert "script__count" in program.said("audit", "stats", str(log))
    program.said("audit", "report", "-o", str(program.home / "report.html"), str(log))
    assert "script__note" in (program.home / "report.html").read_text()
    assert "script__note" in program.said("audit", "export", "--to", "csv", str(log))
    undone = program.run("undo", "--to", "1")
    assert undone.code == 0, undone
    assert not (program.workspace / "notes" / "all").exists()

    # Judged again from the log: all the same by this policy, and stricter by one that is.
    again = program.run("policy", "replay", "--policy", policy, str(log))
    assert again.code == 0, again
    strict = program.home / "strict.toml"
    strict.write_text(
        POLICY.replace("[[rule]]", "script__note = 'block'\n[[rule]]", 1).replace(
            'decision = "auto"', 'decision = "confirm"', 1
        )
    )
    assert "script__note" in program.run("policy", "replay", "--policy", str(strict), str(log)).out


@pytest.mark.parametrize("plan", [True, False])
def test_plan_mode_allows_read_only_scripts(program: Program, *, plan: bool) -> None:
    policy = with_scripts(program)
    url = program.serve(
        replies(
            Reply(calls=(call("script__count", path="src/a.py"),)),
            Reply(calls=(call("script__note", line="x"),)),
            Reply(text="Done."),
        )
    )
    program.run("run", "go", "--base-url", url, "--policy", policy, *(["--plan"] if plan else []))
    ended = [record["status"] for record in program.records() if record["kind"] == "outcome"]
    assert ended == (["ok", "denied"] if plan else ["ok", "ok"])
