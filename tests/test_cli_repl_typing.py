"""What is typed while a turn runs: kept, shown, run after it in order; never an answer, and never by itself after a stop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Prompt, Start, prompts
from screen_scene import CTRL_C, ENTER, ESC

from harness.models.scripted import Failure, Reply, call, replies

if TYPE_CHECKING:
    from conftest import Program

pytestmark = pytest.mark.terminal


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def slow(program: Program, seconds: float = 1.0) -> Reply:
    """Return a reply with a call that runs unasked, and says by a file that it has begun."""
    del program
    return Reply(calls=(call("bash", command=f"touch begun; sleep {seconds}; test -e never || true"),))


def begin(prompt: Prompt, program: Program) -> None:
    """Say something, allow the slow command, and wait until it runs."""
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.wait_until((program.workspace / "begun").exists, "the command did not begin", 20.0)


def said(program: Program) -> list[object]:
    return [record["text"] for record in program.records() if record["kind"] == "user_message"]


def test_lines_that_were_typed_ahead_run_in_order(program: Program, start: Start) -> None:
    prompt = start(replies(slow(program), Reply(text="One."), Reply(text="Two."), Reply(text="Three.")))
    begin(prompt, program)
    prompt.send("second" + ENTER)
    prompt.wait_for("queued: second")
    prompt.send("/cost" + ENTER + "third" + ENTER)
    prompt.wait_for("> second  (queued)")
    prompt.wait_for("> /cost  (queued)")
    prompt.wait_for("session: ")
    prompt.wait_for("> third  (queued)")
    prompt.wait_for("Three.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "second", "third"]
    assert program.run("audit", "verify").code == 0


@pytest.mark.parametrize("stop", [CTRL_C, ESC], ids=["Ctrl-C", "Esc"])
def test_after_a_stop_what_was_typed_ahead_stands_in_the_line(program: Program, start: Start, stop: str) -> None:
    """It is not sent by itself; the person sends it, or not."""
    prompt = start(replies(slow(program, 30), Reply(text="One.")))
    begin(prompt, program)
    prompt.send("second" + ENTER + "thi")
    prompt.wait_for("> thi")
    time.sleep(0.2)
    prompt.send(stop)
    prompt.wait_for("interrupted")
    prompt.wait_for("> second")
    prompt.wait_quiet(0.5)
    assert said(program) == ["go"]
    assert any("thi" in row for row in prompt.display())
    prompt.send(ENTER)
    prompt.wait_for("One.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "second\nthi"]


def test_after_an_error_of_the_provider_the_queue_waits(program: Program, start: Start) -> None:
    prompt = start(replies(slow(program), Failure(status=400, body="no"), Reply(text="One.")))
    begin(prompt, program)
    prompt.send("second" + ENTER)
    prompt.wait_for("model error")
    prompt.wait_quiet(0.5)
    assert said(program) == ["go"]
    prompt.send(ENTER)
    prompt.wait_for("One.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "second"]


def test_what_was_typed_ahead_answers_no_question(program: Program, start: Start) -> None:
    """A queued y is a line; the question waits for a key of its own."""
    prompt = start(
        replies(
            slow(program), Reply(calls=(call("bash", command="touch made"),)), Reply(text="Fine."), Reply(text="Y?")
        )
    )
    begin(prompt, program)
    prompt.send_slowly(["y", ENTER, "y"], gap=0.1)
    prompt.wait_count("bash asks", 2)
    prompt.rest()
    prompt.rest()
    answered = [record for record in program.records() if record["kind"] == "approval_answered"]
    assert len(answered) == 1
    prompt.send("n")
    prompt.wait_for("Fine.")
    prompt.wait_for("> y  (queued)")
    prompt.wait_for("Y?")
    assert not (program.workspace / "made").exists()
    assert said(program) == ["go", "y"]


def test_a_draft_goes_on_in_the_next_line(program: Program, start: Start) -> None:
    prompt = start(replies(slow(program), Reply(text="One."), Reply(text="Two.")))
    begin(prompt, program)
    prompt.send("and th")
    prompt.wait_for("One.")
    prompt.wait_until(lambda: prompt.display()[prompt.cursor[0]] == "> and th", "the draft is not there", 20.0)
    prompt.send("en" + ENTER)
    prompt.wait_for("Two.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "and then"]


def test_a_command_that_destroys_wants_its_word_also_when_typed(program: Program, start: Start) -> None:
    (program.workspace / "d").mkdir()
    prompt = start(replies(Reply(text="One.")))
    prompt.type("!rm -r d")
    prompt.press("bash", "n")
    prompt.wait_for("not run")
    assert (program.workspace / "d").exists()
    prompt.type("!rm -r d")
    prompt.press("bash", "y", times=2)
    prompt.wait_for("type destroy:")
    prompt.rest()
    prompt.send_slowly([*"destroy", ENTER])
    prompt.wait_for("the model is told")
    assert not (program.workspace / "d").exists()
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


def test_without_repainting_the_status_is_a_line_after_each_turn(start: Start) -> None:
    prompt = start(replies(Reply(text="One.")), "--screen-reader")
    prompt.type("hello")
    prompt.wait_for("scripted | policy default")
    assert prompt.leave() == 0
    assert b"\x1b[?1049h" not in prompt.raw


def test_a_grant_is_listed_and_revoked_also_where_it_is_kept(program: Program, start: Start) -> None:
    touch = Reply(calls=(call("bash", command="touch made"),))
    prompt = start(replies(touch, Reply(text="One."), touch, Reply(text="Two."), touch, Reply(text="Three.")))
    prompt.type("go")
    prompt.press("bash", "p")
    prompt.wait_for("[y] these")
    prompt.rest()
    prompt.send("y")
    prompt.wait_for("One.")
    prompt.say("/grants", "kept-1  always in this workspace  the command touch made")
    prompt.ask("again", "Two.")
    prompt.say("/grants revoke kept-9", "there is no grant 'kept-9'")
    prompt.say("/grants revoke all", "revoked: kept-1")
    prompt.type("again")
    prompt.press("bash", "n", times=2)
    prompt.wait_for("Three.")
    assert prompt.leave() == 0
    changes = [record["change"] for record in program.records() if record["kind"] == "grant"]
    assert changes == ["added", "revoked"]
    assert program.run("audit", "verify").code == 0
