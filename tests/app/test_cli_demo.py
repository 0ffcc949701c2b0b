"""`harness demo`: the bundled scenarios, unattended and at a pseudo-terminal."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import made_program
from repl_scene import Prompt, write_config
from rows import all_rows
from screen_scene import ENTER

from harness.app.demo.demo_command import started_as

if TYPE_CHECKING:
    from program import Program


def outcomes(program: Program) -> list[tuple[object, object]]:
    return [(r["tool"], r["status"]) for r in program.records() if r["kind"] == "outcome"]


READ_AND_RED = [("read_file", "ok"), ("read_file", "ok"), ("bash", "failed")]

COURSES = [
    pytest.param(
        "y,y,n",
        [*READ_AND_RED, ("edit_file", "ok"), ("bash", "denied"), ("bash", "ok"), ("write_file", "ok"), ("bash", "denied"),
         ("bash", "ok")],
        "with two more cases, and the tests are green. You did not want it run by hand",
        id="the edit and the new tests are allowed, the last command is not",
    ),
    pytest.param(
        "y,y,y",
        [*READ_AND_RED, ("edit_file", "ok"), ("bash", "denied"), ("bash", "ok"), ("write_file", "ok"), ("bash", "ok"),
         ("bash", "ok")],
        "with two more cases, and the tests are green.",
        id="everything is allowed",
    ),
    pytest.param(
        "n: keep to blanks,y,n,n",
        [*READ_AND_RED, ("edit_file", "denied"), ("edit_file", "ok"), ("bash", "denied"), ("bash", "ok"),
         ("write_file", "denied"), ("bash", "denied"), ("bash", "ok")],
        "no more cases, as you decided",
        id="a refusal leads to another edit",
    ),
    pytest.param(
        "n,n",
        [*READ_AND_RED, ("edit_file", "denied"), ("edit_file", "denied"), ("bash", "denied"), ("bash", "failed")],
        "the test is still red",
        id="both edits are refused",
    ),
]  # fmt: skip


@all_rows(("answers", "expected", "words"), COURSES, anew={"program": made_program})
def test_answers_change_the_course(program: Program, answers: str, expected: list[tuple[str, str]], words: str) -> None:
    """Each answer leads where it should, the scenario is played to its end, and the log is whole."""
    done = program.run("demo", "--answers", answers)
    assert (done.code, outcomes(program)) == (0, expected), done.out
    assert words in done.out


@all_rows(
    ("program", "executable", "typed"),
    [
        pytest.param("/a/harness", "/b/python3", ["harness"], id="found by its name"),
        pytest.param("/b/harness", "/b/python3", ["/b/harness"], id="another is found by that name"),
        pytest.param("/c d/harness", "/b/python3", ["/c d/harness"], id="not found"),
        pytest.param("/lib/harness/__main__.py", "/a/python3", ["python3", "-m", "harness"], id="as a module"),
        pytest.param(
            "/lib/harness/__main__.py", "/b/python3", ["/b/python3", "-m", "harness"], id="by a Python not found"
        ),
    ],
)
def test_the_end_names_the_program_as_it_was_started(
    tmp_path: Path, program: str, executable: str, typed: list[str]
) -> None:
    for name in ("harness", "python3"):
        for folder in ("a", "b", "c d"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text("#!/bin/sh\n")
            (tmp_path / folder / name).chmod(0o755)
    root = str(tmp_path)
    said = started_as(f"{root}{program}", f"{root}{executable}", f"{root}/a:{root}/b")
    assert said == shlex.join(f"{root}{word}" if word.startswith("/") else word for word in typed)


def test_demo_ends_with_commands_to_read_the_log(program: Program) -> None:
    done = program.run("demo", "--answers", "n,n")
    session = program.records()[0]["session"]
    assert f" audit show --session {session}\n" in done.out
    assert str(program.state) not in done.out
    assert program.run("audit", "show", "--session", str(session)).code == 0
    assert program.run("audit", "verify", "--all").code == 0


def test_a_hard_block_halts_with_3(program: Program) -> None:
    """Nothing of the reply that holds the block runs, and the log says so."""
    done = program.run("demo", "hard-block")
    assert done.code == 3
    assert outcomes(program) == [("read_file", "ok"), ("bash", "blocked"), ("bash", "not_run")]
    assert "SCRIPTED" in done.out
    assert program.records()[0]["model"] == "scripted"
    assert "BLOCKED" in done.out
    assert "This is never said" not in done.out


def test_questions_are_refused_without_a_terminal(program: Program) -> None:
    """`harness demo` in a pipe plays to its end, and says that nobody could be asked."""
    done = program.run("demo")
    assert done.code == 0
    assert "no terminal: every question is answered no" in done.out


def test_an_unknown_demo_names_the_nearest(program: Program) -> None:
    """Exit 2 and a hint."""
    done = program.run("demo", "hardblock")
    assert (done.code, "did you mean hard-block?" in done.err) == (2, True)
    assert program.run("demo", "--answers", "maybe").code == 2
    assert "hard-block" in program.run("demo", "--list").out


def test_reader_that_disconnects_does_not_stop_the_demo(program: Program) -> None:
    """It is played to its end, exits 141, and the log is whole."""
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start("demo", "--answers", "y,y,y", stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, b"Traceback" in err) == (141, False), err
    assert program.records()[-1]["stop"] == "completed"
    assert program.run("audit", "verify", "--all").code == 0


@pytest.mark.terminal
def test_demo_asks_at_a_terminal(program: Program) -> None:
    """The diff is shown; y, then a no with words, then n; the words reach the model. No grant is offered."""
    write_config(program)
    with Prompt(
        program.command("demo"), columns=120, lines=50, cwd=program.workspace, environment=program.environment
    ) as played:
        played.press("edit_file", "y")
        assert "+     words = title.lower().split()" in played.text()
        assert played.text().count("Now I run the tests to see the failure.") == 1
        played.press("write_file", "r")
        played.send_words("no, but (Enter sends it, Esc goes back): ", "no more")
        played.send(ENTER)
        played.press("bash", "n")
        played.wait_for("no more cases, as you decided")
        assert played.exit_code() == 0
        assert "[s]" not in played.text()
    answers = [(r["answer"], r["by"], r["words"]) for r in program.records() if r["kind"] == "approval_answered"]
    assert answers == [("yes", "person", ""), ("no", "person", "no more"), ("no", "person", "")]
    told = [r["content"] for r in program.records() if r["kind"] == "outcome" and r["status"] == "denied"]
    assert any('Denied by the person: "no more"' in str(text) for text in told)
