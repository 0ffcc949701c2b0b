"""`harness audit`: list, show, verify, on logs that real runs have written."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from harness.models.scripted import Reply, call, replies
from harness.session.state import State

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


def _show_diffs(program: Program, *flags: str) -> list[str]:
    """Return the lines of the diffs, without their indentation."""
    lines = [line[10:].strip() for line in program.said("audit", "show", "--full", *flags).splitlines()]
    diffs: list[str] = []
    is_diff = False
    for line in lines:
        is_diff = line.startswith(("diff of ", "no diff of ")) or (is_diff and line.startswith("| "))
        diffs += [line] if is_diff else []
    return diffs


def test_show_full_has_diffs_of_the_kept_contents_of_commands_and_edits_with_secrets_masked(program: Program) -> None:
    (program.home / "own.toml").write_text('version = 1\n[tools]\ndefault = "auto"\n')
    (program.workspace / "a.txt").write_text("one\nsame\n")
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    script = replies(
        Reply(
            calls=(call("bash", command="sed -i s/one/two/ a.txt; mkdir new; chmod 600 b.txt; printf 'x\\0' > bin"),)
        ),
        Reply(calls=(call("write_file", path="made.txt", content=f"by an edit \x1b[2J\nkey {token}\n"),)),
        Reply(calls=(call("bash", command="echo three > a.txt"),)),
        Reply(text="finished"),
    )
    (program.workspace / "b.txt").write_text("mode\n")
    program.run("run", "go", "--policy", f"{program.home}/own.toml", "--base-url", program.serve(script))
    shown = _show_diffs(program)
    assert shown[:6] == [
        "diff of a.txt: +1 -1 lines",
        "| @@ -1,2 +1,2 @@",
        "| -one",
        "| +two",
        "|  same",
        "diff of bin: binary, 0 bytes before, 2 after",
    ]
    assert shown[6:9] == ["diff of made.txt: +2 -0 lines", "| @@ -0,0 +1,2 @@", "| +by an edit \\x1b[2J"]
    assert shown[9].startswith("| +key [")
    assert shown[10:] == ["diff of a.txt: +1 -2 lines", "| @@ -1,2 +1 @@", "| -two", "| -same", "| +three"]
    assert token not in program.said("audit", "show", "--full")
    assert _show_diffs(program, "--call", "3") == shown[10:]
    assert "diff of" not in program.said("audit", "show")

    (program.workspace / "made.txt").write_text("by somebody else\n")
    shutil.rmtree(State.of(program.environment).trees)
    assert _show_diffs(program) == [
        "no diff of a.txt: before its content is no longer kept here; after its content is no longer kept here",
        "diff of bin: binary, 0 bytes before, 2 after",  # the file still is as the command left it
        "no diff of made.txt: after its content is no longer kept here",
        "no diff of a.txt: before its content is no longer kept here",
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
