"""`harness audit`: list, show, verify, on logs that real runs have written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program


@pytest.fixture
def ran(program: Program) -> Program:
    """One run with a command that is allowed, one that is denied, and hostile words."""
    script = replies(
        Reply(text="look \x1b[2J", calls=(call("bash", command="ls"), call("bash", command="touch x"))),
        Reply(text="finished"),
    )
    done = program.run("run", "go", "--base-url", program.serve(script))
    assert done.code == 7
    return program


def test_show_is_a_readable_timeline(ran: Program) -> None:
    """Every call with its decision, rule and end, and nothing that a terminal would obey."""
    done = ran.run("audit", "show")
    text = "\n".join(line[10:] for line in done.out.splitlines())
    assert done.code == 0
    assert "> go" in text
    assert "< look \\x1b[2J" in text
    assert "+ bash  ls  [auto: model of ls, readers (readonly.toml:" in text
    assert "x bash  touch x  [deny: default for bash (readonly.toml:" in text
    assert "session ended: completed" in text
    assert "\x1b" not in done.out


def test_show_names_what_left_the_walls(program: Program) -> None:
    rule = '[[rule]]\nid = "fetch"\ndecision = "auto"\nargv = ["true", "..."]\nnetwork = ["pypi.org"]\n'
    (program.home / "own.toml").write_text(f'version = 1\n[tools]\nbash = "auto"\n{rule}')
    script = replies(
        Reply(calls=(call("bash", command="true x"), call("bash", command="echo x > made"))), Reply(text="finished")
    )
    program.run("run", "go", "--policy", f"{program.home}/own.toml", "--base-url", program.serve(script))
    brief, full = (program.said("audit", "show", *flags).splitlines() for flags in ((), ("--full",)))
    assert [line[10:].strip() for line in brief if "walls: " in line] == ["walls: opened (network pypi.org)"]
    assert [line[10:].strip() for line in full if "walls: " in line] == [
        "walls: opened (network pypi.org)",
        "walls: workspace",
    ]


def test_show_json_is_the_records(ran: Program) -> None:
    """With --json the whole records come out, one a line."""
    out = ran.run("audit", "show", "--json").out
    assert [json.loads(line) for line in out.splitlines()] == ran.records()


def test_list_names_the_logs(ran: Program) -> None:
    """Time, mode, workspace and path."""
    out = ran.run("audit", "list").out
    assert str(ran.logs()[0]) in out
    assert str(ran.workspace) in out


def test_verify_reports_the_proved_facts(ran: Program) -> None:
    """Whole, and the head is the kept one: exit 0."""
    done = ran.run("audit", "verify")
    assert (done.code, "nothing was cut off or rewritten" in done.out) == (0, True)


def test_verify_finds_a_changed_line(ran: Program) -> None:
    """An edited record is named by its line: exit 1."""
    log = ran.logs()[0]
    log.write_text(log.read_text().replace("touch x", "touch y"))
    done = ran.run("audit", "verify")
    assert (done.code, "BROKEN at line" in done.out) == (1, True)


def test_audit_without_a_log_exits_2(program: Program) -> None:
    """Exit 2 and a line that says where logs would be."""
    done = program.run("audit", "show")
    assert (done.code, "no action log under" in done.err) == (2, True)
    assert program.run("audit", "verify", str(program.home / "missing.jsonl")).code == 8


def test_empty_log_is_not_verified(program: Program) -> None:
    """Not even against a head."""
    empty = program.home / "empty.jsonl"
    empty.write_text("")
    assert program.run("audit", "verify", str(empty), "--head", "0" * 64).code == 3
