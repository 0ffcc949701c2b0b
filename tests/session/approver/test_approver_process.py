"""Questions that are answered outside: a run with nobody at a terminal, and the prompt, whoever answers first."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from places import ROOT
from process_scene import wait_until
from repl_scene import CONFIG, Start, prompts, write_config
from rows import all_rows
from run_scene import DONE, TOUCH, bash, flags_of
from screen_scene import CTRL_C, PlayedTerminal

from harness.log.verify import verify
from harness.models.scripted import Reply, replies
from harness.session.waiting import NOBODY_LISTENS

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

ASKS = 'version = 1\n[tools]\ndefault = "confirm"\n[sandbox]\nwrite = [".", "~/run"]\n'
ANSWERS = """
import json, os, signal, sys, time
question = json.loads(sys.stdin.readline())
answer = {"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "ann"}
"""
SAYS = "print(json.dumps(answer))\n"
WHERE = "asked.json"


def configured(program: Program, script: str) -> None:
    """Configure an approver outside that is a program."""
    path = program.home / "approver.py"
    path.write_text(ANSWERS + script)
    words = json.dumps([sys.executable, "-I", "-S", str(path)])
    write_config(program, f"{CONFIG}[approver]\ncommand = {words}\n")


def answers(program: Program) -> list[tuple[object, ...]]:
    (log,) = program.logs()
    assert verify(str(log)).broken_line is None
    return [
        tuple(one.get(name) for name in ("answer", "by", "who", "words"))
        for one in program.records()
        if one["kind"] == "approval_answered"
    ]


def run(program: Program, *flags: str, first: Reply = TOUCH) -> tuple[int, dict[str, Any]]:
    url = program.serve(replies(first, DONE))
    done = program.run("run", "go", *flags_of(program, url, ASKS), *flags)
    return done.code, json.loads(done.out)


def is_made(program: Program) -> bool:
    return (program.workspace / "made").exists()


@contextmanager
def approving(program: Program) -> Iterator[PlayedTerminal]:
    """Start `harness approve`, and wait until it listens."""
    command, environment = program.command("approve"), {**program.environment, "TERM": "xterm-256color"}
    with PlayedTerminal(command, columns=100, lines=30, cwd=program.workspace, environment=environment) as terminal:
        terminal.wait_for("waiting for questions")
        yield terminal
        terminal.send(CTRL_C)
        assert terminal.exit_code() == 130


@all_rows(
    ("script", "code", "made", "log"),
    [
        (SAYS, 0, True, ("yes", "approver", "ann", "")),
        (
            'answer["answer"], answer["words"] = "no", "not today"\n' + SAYS,
            7, False, ("no", "approver", "ann", "not today"),
        ),
        ('answer["answer"] = "stop"\n' + SAYS, 130, False, ("stop", "approver", "ann", "")),
        ('answer["words"] = "and be quick"\n' + SAYS, 0, True, ("yes", "approver", "ann", "and be quick")),
        ("", 7, False, ("nobody", "nobody", None, "from the approver's program: the answer is empty")),
        (SAYS + "sys.exit(3)\n", 7, False, ("nobody", "nobody", None, "the approver's program ended with exit code 3")),
    ],
    fresh=True,
)  # fmt: skip
def test_a_run_asks_the_program_that_is_configured(
    program: Program, script: str, code: int, made: bool, log: tuple[object, ...]
) -> None:
    configured(program, script)
    done, result = run(program, "--ask")
    assert (done, is_made(program), answers(program)) == (code, made, [log]), result
    advised = any(record["kind"] == "advice" for record in program.records())
    assert advised == (log[0] == "nobody"), "a rule is proposed only if nobody said no"


def test_approver_name_is_audited_and_reaches_the_model(program: Program) -> None:
    configured(program, 'answer["words"] = "quickly"\n' + SAYS)
    run(program, "--ask")
    assert "[asked: yes by approver (ann), " in program.run("audit", "show").out
    assert "approver (ann)" in program.run("audit", "approvals").out
    page = program.home / "report.html"
    assert program.run("audit", "report", "--out", str(page)).code == 0
    assert "approver (ann)" in page.read_text()
    assert 'The approver (ann) allowed this call, and says to you: \\"quickly\\"' in json.dumps(
        program.players[0].requests[-1]
    )


def test_destructive_call_needs_an_explicit_yes(program: Program) -> None:
    (program.workspace / "made").write_text("")
    configured(program, SAYS)
    run(program, "--ask", first=bash("rm -rf made"))
    assert is_made(program)
    assert answers(program) == [
        ("nobody", "nobody", None, "from the approver's program: destroys: must be true, since the call destroys data")
    ]


def test_a_grant_from_outside_holds_for_the_session(program: Program) -> None:
    configured(
        program,
        f"open({str(program.home / WHERE)!r}, 'a').write(json.dumps(question) + chr(10))\nanswer['grant'] = 0\n{SAYS}",
    )
    url = program.serve(replies(TOUCH, TOUCH, DONE))
    assert program.run("run", "go", *flags_of(program, url, ASKS), "--ask").code == 0
    (asked,) = map(json.loads, (program.home / WHERE).read_text().splitlines())
    assert asked["grants"][0]["name"] == "exactly this"
    assert [one["change"] for one in program.records() if one["kind"] == "grant"] == ["added"]


@all_rows(
    ("config", "flags", "told"),
    [
        ('[approver]\ncommand = ["no-such-program"]\n', ("--ask",), "outside of the workspace: no-such-program"),
        ('[approver]\ncommand = []\n', ("--ask",), "config.toml:5: [approver] command: must name a program"),
        ('[approver]\nsocket = "~/run/s"\n', ("--ask",), "home/run/s is in a folder that calls may write"),
        ("", ("--ask", "--dry-run"), "--ask and --dry-run"),
        ("", ("--ask", "--task", "t.json", "--out", "out"), "--ask cannot be given"),
    ],
    fresh=True,
)  # fmt: skip
def test_unsuitable_flags_are_reported_before_the_start(
    program: Program, config: str, flags: tuple[str, ...], told: str
) -> None:
    write_config(program, f"{CONFIG}\n{config}")
    url = program.serve(replies(TOUCH, DONE))
    done = program.run("run", *(() if "--task" in flags else ("go",)), *flags_of(program, url, ASKS), *flags)
    assert (done.code, told in done.err) == (2, True), done.err


def test_a_run_that_is_stopped_ends_the_program_that_it_asks(program: Program) -> None:
    told = program.home / WHERE
    configured(program, f"open({str(told)!r}, 'w').write(str(os.getpid()) + chr(10))\ntime.sleep(600)\n")
    url = program.serve(replies(TOUCH, DONE))
    process = program.start("run", "go", *flags_of(program, url, ASKS), "--ask")
    assert wait_until(lambda: told.exists() and told.read_text().endswith("\n"), 60)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert "waits for an answer from outside: bash: touch made" in err.decode()
    assert (process.returncode, is_made(program)) == (143, False)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
    assert answers(program) == [("stop", "person", None, "")]


def test_run_without_an_approver_asks_harness_approve(program: Program) -> None:
    with approving(program) as terminal:
        url = program.serve(replies(TOUCH, DONE))
        process = program.start("run", "go", *flags_of(program, url, ASKS), "--ask")
        terminal.wait_for("bash asks for harness in workspace, session ")
        terminal.wait_keys()
        terminal.send("y")
        terminal.wait_for("+ yes  harness: bash: touch made  by you")
        process.communicate(timeout=120)
    assert (process.returncode, is_made(program)) == (0, True)
    assert answers(program) == [("yes", "person", None, "")]


def test_call_is_refused_without_a_listening_approver(program: Program) -> None:
    code, _ = run(program, "--ask")
    assert (code, is_made(program), answers(program)) == (7, False, [("nobody", "nobody", None, NOBODY_LISTENS)])
    assert (
        f'[nobody answered: default for any other tool (policy.toml:3): "{NOBODY_LISTENS[:20]}'
        in program.run("audit", "show").out
    )


def test_trace_names_the_rule_that_asked_without_an_approver(program: Program) -> None:
    assert run(program)[0] == 7
    assert "[nobody to ask: default for " in program.run("audit", "show").out


@contextmanager
def example(program: Program, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the approver of examples/, which listens at a socket."""
    script = os.path.join(ROOT, "examples", "approver.py")
    with subprocess.Popen(
        [sys.executable, "-W", "error", script, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**program.environment, "LOGNAME": "ann"},
    ) as process:  # fmt: skip
        assert wait_until(lambda: listens(path), 60)
        yield process
        process.kill()


def listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0


@all_rows(
    ("command", "typed", "made"),
    [
        ("touch made", "yes\n", True),
        ("touch made", "no\n", False),
        ("touch made", "y\n", False),
        ("rm -rf gone && touch made", "yes\ndestroy\n", True),
        ("rm -rf gone && touch made", "yes\nyes\n", False),
    ],
    fresh=True,
)
def test_the_example_answers_at_a_socket(program: Program, command: str, typed: str, made: bool) -> None:
    path = program.home / "approver"
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(path))}\n")
    with example(program, path) as approver:
        assert approver.stdin is not None
        approver.stdin.write(typed)
        approver.stdin.flush()
        run(program, "--ask", first=bash(command))
    assert is_made(program) is made
    (answer,) = answers(program)
    assert answer[2] == ("ann" if answer[0] != "nobody" else None)


def test_example_approver_survives_other_answers_and_restarts(program: Program) -> None:
    path = program.home / "approver"
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(path))}\n")
    with example(program, path):
        pass
    with example(program, path) as approver:
        assert approver.stdin is not None
        assert approver.stdout is not None
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(path))
            asking.sendall(b'{"id": "1"}\n{"id": "1", "withdrawn": true}\n')
        assert any(line.startswith("withdrawn: ") for line in approver.stdout)
        approver.stdin.write("yes\n")
        approver.stdin.flush()
        run(program, "--ask")
    assert is_made(program)


# At the prompt


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program, None) as starting:
        yield starting


def test_outside_answer_ends_the_question_at_the_prompt(program: Program, start: Start) -> None:
    """The one outside waits until words are half typed at the terminal: nothing of them counts."""
    go = program.home / "go"
    configured(program, f"while not os.path.exists({str(go)!r}): time.sleep(0.02)\n{SAYS}")
    policy = flags_of(program, "", ASKS)[4:6]
    prompt = start(replies(TOUCH, Reply(text="It is made.")), *policy)
    prompt.type("make it")
    prompt.press("bash", "r")
    prompt.send_words("no, but (Enter sends it, Esc goes back): ", "not on a friday")
    go.touch()
    prompt.wait_for("answered by ann outside: yes")
    prompt.wait_for("+ bash  touch made  exit 0  [approver (ann)]")
    prompt.wait_for("It is made.")
    prompt.say("/why", "yes by approver (ann)")
    assert prompt.leave() == 0
    assert is_made(program)
    assert answers(program) == [("yes", "approver", "ann", "")]


def test_terminal_answer_ends_the_outside_question(program: Program, start: Start) -> None:
    told = program.home / WHERE
    configured(program, f"open({str(told)!r}, 'w').write(str(os.getpid()) + chr(10))\ntime.sleep(600)\n")
    policy = flags_of(program, "", ASKS)[4:6]
    prompt = start(replies(TOUCH, Reply(text="It is made.")), *policy)
    prompt.type("make it")
    assert wait_until(lambda: told.exists() and told.read_text().endswith("\n"), 60)
    prompt.press("bash", "y")
    prompt.wait_for("It is made.")
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
    assert prompt.leave() == 0
    assert answers(program) == [("yes", "person", None, "")]


def test_question_at_the_prompt_can_be_answered_by_harness_approve(program: Program, start: Start) -> None:
    """The first call there, the second here: each question is gone at the other terminal."""
    prompt = start(
        replies(TOUCH, Reply(text="It is made."), bash("touch other"), DONE), *flags_of(program, "", ASKS)[4:6]
    )
    with approving(program) as terminal:
        prompt.type("make it")
        prompt.wait_question("bash")
        terminal.wait_for("bash asks for harness in workspace, session ")
        terminal.wait_keys()
        terminal.send("y")
        prompt.wait_for("answered at another terminal: yes")
        prompt.wait_for("It is made.")
        terminal.wait_for("+ yes  harness: bash: touch made  by you")
        prompt.type("another")
        terminal.wait_for("$ touch other")
        prompt.press("bash", "n", times=2)
        terminal.wait_for("x withdrawn, nobody asks any more  harness: bash: touch other")
        prompt.wait_for("All done.")
    assert prompt.leave() == 0
    assert answers(program) == [("yes", "person", None, ""), ("no", "person", None, "")]


def test_failed_approver_leaves_the_question_at_the_prompt(program: Program, start: Start) -> None:
    configured(program, "sys.exit(3)\n")
    policy = flags_of(program, "", ASKS)[4:6]
    prompt = start(replies(TOUCH, Reply(text="Understood.")), *policy)
    prompt.type("make it")
    prompt.press("bash", "n")
    prompt.wait_for("outside nobody answered: the approver's program ended with exit code 3")
    prompt.wait_for("Understood.")
    assert prompt.leave() == 0
    assert answers(program) == [("no", "person", None, "")]


def test_missing_outside_approver_is_reported_once_at_the_prompt(program: Program, start: Start) -> None:
    write_config(program, f"{CONFIG}[approver]\nsocket = {json.dumps(str(program.home / 'none'))}\n")
    policy = flags_of(program, "", ASKS)[4:6]
    prompt = start(replies(TOUCH, bash("touch other"), Reply(text="Understood.")), *policy)
    prompt.type("make it")
    prompt.wait_for("nobody is asked outside: the approver's socket")
    prompt.press("bash", "n")
    prompt.press("bash", "n", times=2)
    prompt.wait_for("Understood.")
    assert prompt.leave() == 0
    assert prompt.text().count("outside: the approver's socket") == 1
