"""`harness audit`: list, show, verify, on logs that real runs have written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from conftest import Program


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


def test_show_json_is_the_records(ran: Program) -> None:
    """With --json the whole records come out, one a line."""
    out = ran.run("audit", "show", "--json").out
    assert [json.loads(line) for line in out.splitlines()] == ran.records()


def test_list_names_the_logs(ran: Program) -> None:
    """Time, mode, workspace and path."""
    out = ran.run("audit", "list").out
    assert str(ran.logs()[0]) in out
    assert str(ran.workspace) in out


def test_verify_says_what_was_proved(ran: Program) -> None:
    """Whole, and the head is the kept one: exit 0."""
    done = ran.run("audit", "verify")
    assert (done.code, "nothing was cut off or rewritten" in done.out) == (0, True)


def test_verify_finds_a_changed_line(ran: Program) -> None:
    """An edited record is named by its line: exit 1."""
    log = ran.logs()[0]
    log.write_text(log.read_text().replace("touch x", "touch y"))
    done = ran.run("audit", "verify")
    assert (done.code, "BROKEN at line" in done.out) == (1, True)


def test_verify_finds_a_cut_tail_by_the_kept_head(ran: Program) -> None:
    """A shorter log whose chain is good is caught by the head in the state folder: exit 1."""
    log = ran.logs()[0]
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:-1]))
    done = ran.run("audit", "verify")
    assert (done.code, "no record of it has the head" in done.out) == (1, True)


def test_verify_without_a_head_says_so(ran: Program) -> None:
    """The same file elsewhere has no kept head: exit 4; with --head it is compared: exit 0."""
    copy = ran.home / "copy.jsonl"
    copy.write_bytes(ran.logs()[0].read_bytes())
    done = ran.run("audit", "verify", str(copy))
    assert (done.code, "No head to compare with" in done.out) == (4, True)
    head = done.out.split()[-1]
    assert ran.run("audit", "verify", str(copy), "--head", head).code == 0
    assert ran.run("audit", "verify", str(copy), "--head", "0" * 64).code == 1


def test_verify_shows_what_a_crash_left_open(ran: Program) -> None:
    """A log that ends at an intent: the call is unknown, the session open: exit 3."""
    lines = ran.logs()[0].read_text().splitlines(keepends=True)
    intent = next(n for n, line in enumerate(lines) if '"kind":"intent"' in line)
    copy = ran.home / "crashed.jsonl"
    copy.write_text("".join(lines[: intent + 1]) + '{"torn')
    done = ran.run("audit", "verify", str(copy))
    assert done.code == 3
    assert "OPEN: the last line is torn" in done.out
    assert "OPEN: call 1 was begun and its end is not known" in done.out
    assert "never said that it ended" in done.out


def test_no_log_yet(program: Program) -> None:
    """Exit 2 and a line that says where logs would be."""
    done = program.run("audit", "show")
    assert (done.code, "there is no action log under" in done.err) == (2, True)
    assert program.run("audit", "verify", str(program.home / "missing.jsonl")).code == 8


def test_a_crash_of_a_continued_log_is_open_and_a_cut_of_it_is_seen(program: Program) -> None:
    """What was closed before is still the same; what came after ended in a crash: 3, and cut back to the old head 4."""
    log = program.home / "one.jsonl"
    url = program.serve(replies(Reply(text="one"), Reply(text="two")))
    first = program.run("run", "go", "--base-url", url, "--log", str(log))
    closed = log.read_text()
    program.run("run", "go on", "--base-url", url, "--log", str(log))
    assert (first.code, program.run("audit", "verify", str(log)).code) == (0, 0)
    lines = log.read_text().splitlines(keepends=True)
    heads = program.state / "harness" / "heads.jsonl"
    heads.write_text("".join(heads.read_text().splitlines(keepends=True)[:2]) + "not ours\n")  # as a kill leaves them
    log.write_text("".join(lines[:-1]))
    crashed = program.run("audit", "verify", str(log))
    assert (crashed.code, "never said that it ended" in crashed.out) == (3, True)
    log.write_text(closed)
    cut = program.run("audit", "verify", str(log))
    assert (cut.code, "The log went on after the head" in cut.out) == (4, True)


def test_the_worst_of_several_logs_decides(ran: Program) -> None:
    """A broken log beside one without a head is broken."""
    whole, broken = ran.home / "whole.jsonl", ran.home / "broken.jsonl"
    whole.write_bytes(ran.logs()[0].read_bytes())
    broken.write_text(ran.logs()[0].read_text().replace("touch x", "touch y"))
    assert ran.run("audit", "verify", str(whole)).code == 4
    assert ran.run("audit", "verify", str(broken), str(whole)).code == 1
    assert ran.run("audit", "verify", str(whole), str(broken)).code == 1


def test_an_empty_log_proves_nothing(program: Program) -> None:
    """Not even against a head."""
    empty = program.home / "empty.jsonl"
    empty.write_text("")
    assert program.run("audit", "verify", str(empty), "--head", "0" * 64).code == 3
