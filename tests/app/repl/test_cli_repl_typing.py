"""What is typed while a turn runs: kept, shown, run after it in order; never an answer, and never by itself after a stop."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest
from repl_scene import CONFIG, Prompt, Start, prompts, write_config
from screen_scene import CTRL_C, ENTER, ENTER_KEY, ESC, TAB_KEY, paste

from harness.models.scripted import Failure, Reply, call, replies
from harness.terminal.dialog import NOTICE_SECONDS
from harness.terminal.typing_times import ANSWER_SECONDS

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


SLOW = Reply(calls=(call("bash", command="touch begun; until test -e over; do sleep 0.05; done"),))
"""A call that goes on until the test says that it is over, and says by a file that it has begun."""


def begin(prompt: Prompt, program: Program) -> None:
    """Say something, allow the slow command, and wait until it runs, and until keys no longer belong to the answer."""
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.wait_until((program.workspace / "begun").exists, "the command did not begin")
    time.sleep(ANSWER_SECONDS)


def end(program: Program) -> None:
    """Let the slow command end."""
    (program.workspace / "over").touch()


def in_line(prompt: Prompt, text: str) -> bool:
    return prompt.display()[prompt.cursor[0]] == text


def said(program: Program) -> list[object]:
    return [record["text"] for record in program.records() if record["kind"] == "user_message"]


def test_lines_that_were_typed_ahead_run_in_order(program: Program, start: Start) -> None:
    """Commands too; and what was not finished goes on in the next line."""
    prompt = start(replies(SLOW, Reply(text="One."), Reply(text="Two."), Reply(text="Three."), Reply(text="Four.")))
    begin(prompt, program)
    prompt.send("second" + TAB_KEY)
    prompt.wait_for("queued: second")
    prompt.send("/cost" + ENTER_KEY)
    prompt.wait_for("queued (and 1 before): /cost")
    prompt.send("third" + TAB_KEY)
    prompt.send("and th")
    prompt.wait_for("> and th")
    end(program)
    prompt.wait_for("> second  (queued)")
    prompt.wait_for("> /cost  (queued)")
    prompt.wait_for("session: ")
    prompt.wait_for("> third  (queued)")
    prompt.wait_for("Three.")
    prompt.wait_until(partial(in_line, prompt, "> and th"), "the draft is not there")
    prompt.send("en" + ENTER_KEY)
    prompt.wait_for("Four.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "second", "third", "and then"]
    assert program.run("audit", "verify").code == 0


def test_message_typed_during_a_turn_goes_with_the_next_results(program: Program, start: Start) -> None:
    """Commands wait for the end, and so does a message that no results follow. /undo takes back what followed it."""
    prompt = start(replies(SLOW, Reply(text="One."), Reply(text="Two."), Reply(text="Three.")))
    begin(prompt, program)
    prompt.send("use tabs")
    prompt.wait_for("Enter: to the model with the next results, Tab: after this turn")
    prompt.send(ENTER)
    prompt.wait_for("with the next results: use tabs")
    prompt.send("/cost" + ENTER_KEY)
    prompt.wait_for("queued (and 1 before): /cost")
    prompt.send("second" + TAB_KEY)
    prompt.wait_for("queued (and 2 before): second")
    end(program)
    prompt.wait_for("> use tabs  (with the results)")
    prompt.wait_for("One.")
    prompt.wait_for("> /cost  (queued)")
    prompt.wait_for("> second  (queued)")
    prompt.wait_for("Two.")
    prompt.say("/undo", "forgotten: second")
    prompt.say("/undo", "forgotten: use tabs")
    prompt.ask("now", "Three.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "use tabs", "second", "now"]
    kinds = [record["kind"] for record in program.records()]
    steered = [index for index, kind in enumerate(kinds) if kind == "user_message"][1]
    assert (kinds[steered - 1], kinds[steered + 1]) == ("outcome", "model_request")
    assert program.run("audit", "verify").code == 0


def test_bell_tells_an_absent_user_that_the_turn_has_ended(program: Program, start: Start) -> None:
    """Also that an error ended it. A user who typed or stopped the turn is there."""
    refusal = Failure(status=400, body="no")
    prompt = start(replies(Reply(text="Short."), SLOW, Reply(text="One."), SLOW, refusal, SLOW))
    began = time.monotonic()
    prompt.ask("hello", "Short.")
    assert b"\x07" not in prompt.raw or time.monotonic() - began >= NOTICE_SECONDS
    for words in ("One.", "! model: "):
        begin(prompt, program)
        before = prompt.raw.count(b"\x07")  # on a busy machine a question may have waited for long
        time.sleep(NOTICE_SECONDS + 0.2)  # the time for which the user is away
        assert prompt.raw.count(b"\x07") == before
        end(program)
        prompt.wait_for(words)
        prompt.wait_until(lambda before=before: prompt.raw.count(b"\x07") == before + 1, "no bell")  # type: ignore[misc]
        (program.workspace / "begun").unlink()
        (program.workspace / "over").unlink()
    prompt.wait_prompt()
    assert prompt.leave() == 0


def test_setting_exchanges_the_keys(program: Program, start: Start) -> None:
    write_config(program, f'{CONFIG}enter = "queue"\n')
    prompt = start(replies(SLOW, Reply(text="One."), Reply(text="Two.")))
    begin(prompt, program)
    prompt.send("second")
    prompt.wait_for("Tab: to the model with the next results, Enter: after this turn")
    prompt.send(ENTER)
    prompt.wait_for("queued: second")
    prompt.send("first" + TAB_KEY)
    prompt.wait_for("with the next results (and 1 before): first")
    end(program)
    prompt.wait_for("Two.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "first", "second"]


@pytest.mark.parametrize("stop", [CTRL_C, ESC], ids=["Ctrl-C", "Esc"])
def test_text_typed_ahead_stays_in_the_line_after_a_stop(program: Program, start: Start, stop: str) -> None:
    """Nothing is sent by itself, and each line stands alone: none becomes an argument of the one before."""
    prompt = start(replies(SLOW, Reply(text="One."), Reply(text="Two.")))
    begin(prompt, program)
    for number, line in enumerate(("!!echo one > out", "touch pwned", "/cost"), 1):
        prompt.send(line + ENTER_KEY)
        prompt.wait_for(f"queued: {line}" if number == 1 else line)
    prompt.send("thi")
    prompt.wait_for("> thi")
    prompt.send(stop)
    prompt.wait_for("interrupted")
    prompt.wait_for("3 more lines of yours to send after this one")
    for line in ("!!echo one > out", "touch pwned", "/cost", "thi"):
        stands = f"> {line}"
        prompt.wait_until(partial(in_line, prompt, stands), f"{stands!r} is not in the line")
        if line.startswith("!!"):
            assert not (program.workspace / "out").exists()
        prompt.send(ENTER)
    prompt.wait_for("Two.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "touch pwned", "thi"]
    assert (program.workspace / "out").read_text() == "one\n"
    assert not (program.workspace / "pwned").exists()
    assert "Left out: 1 command that you typed yourself (!)." in program.run("policy", "fatigue").out


def test_after_an_error_of_the_provider_the_queue_waits(program: Program, start: Start) -> None:
    prompt = start(replies(SLOW, Failure(status=400, body="no"), Reply(text="One.")))
    begin(prompt, program)
    prompt.send("second" + TAB_KEY)
    prompt.wait_for("queued: second")
    end(program)
    prompt.wait_for("! model: ")
    prompt.wait_until(partial(in_line, prompt, "> second"), "the line does not wait")
    assert said(program) == ["go"]
    prompt.send(ENTER)
    prompt.wait_for("One.")
    assert prompt.leave() == 0
    assert said(program) == ["go", "second"]


def test_text_typed_ahead_never_answers_a_question(program: Program, start: Start) -> None:
    """A queued y is a line; the question waits for a key of its own. Pasted lines begin none of the harness's."""
    prompt = start(
        replies(
            SLOW, Reply(calls=(call("bash", command="touch made"),)), Reply(text="Fine."), Reply(text="Y?"), Reply()
        )
    )
    begin(prompt, program)
    prompt.send("y" + TAB_KEY)
    prompt.wait_for("queued: y")
    prompt.send(paste("see\r+ allowed  rm  by you") + TAB_KEY)
    prompt.wait_for("queued (and 1 before): see")
    prompt.send("y")
    prompt.wait_for("(2 queued) > y")
    end(program)
    prompt.wait_question("bash", 2)
    prompt.wait_keys()
    answered = [record for record in program.records() if record["kind"] == "approval_answered"]
    assert len(answered) == 1
    prompt.send("n")
    prompt.wait_for("Fine.")
    prompt.wait_for("> y  (queued)")
    prompt.wait_for("Y?")
    prompt.wait_for(". + allowed  rm  by you  (queued)")
    assert [row for row in prompt.rows() if row.startswith("+ allowed  rm")] == []
    assert not (program.workspace / "made").exists()
    prompt.wait_until(lambda: len(said(program)) == 3, "the paste was not said")
    assert said(program) == ["go", "y", "see\n+ allowed  rm  by you"]


def test_unsaved_history_is_reported_once(program: Program, start: Start) -> None:
    """Once, after the line that was typed."""
    path = program.state / "harness" / "history"
    path.parent.mkdir(mode=0o700)
    path.symlink_to(program.workspace / "elsewhere")
    prompt = start(replies(Reply(text="One."), Reply(text="Two.")))
    prompt.ask("first", "One.")
    prompt.ask("second", "Two.")
    assert prompt.leave() == 0
    assert prompt.text().count("what you type is not kept beyond this program") == 1


def test_destructive_command_typed_by_the_user_needs_its_word(program: Program, start: Start) -> None:
    (program.workspace / "d").mkdir()
    prompt = start(replies(Reply(text="One.")))
    prompt.type("!rm -r d")
    prompt.press("bash", "n")
    prompt.wait_for("not run")
    assert (program.workspace / "d").exists()
    prompt.type("!rm -r d")
    prompt.press("bash", "y", times=2)
    prompt.send_words("type destroy: ", "destroy")
    prompt.send(ENTER)
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
    prompt.wait_for("press 1 to 3, ? explains;")
    prompt.send("1")
    prompt.wait_for("for how long?")
    prompt.wait_until(lambda: prompt.cursor_row().startswith("press 1 to 3;"), "no keys")
    prompt.send("3")
    prompt.wait_for("One.")
    prompt.say("/why", "walls:      workspace")
    prompt.say("/grants", "always in this workspace")
    (kept,) = {str(record["grant"]) for record in program.records() if record["kind"] == "grant"}
    assert re.search(rf"{kept}  touch made  workspace only, offline +always in this workspace", prompt.text())
    prompt.ask("again", "Two.")
    prompt.say("/grants revoke kept-9", "unknown grant 'kept-9'")
    prompt.say("/grants revoke all", f"revoked: {kept}")
    prompt.type("again")
    prompt.press("bash", "n", times=2)
    prompt.wait_for("Three.")
    assert prompt.leave() == 0
    changes = [record["change"] for record in program.records() if record["kind"] == "grant"]
    assert changes == ["added", "revoked"]
    assert program.run("audit", "verify").code == 0
