"""The prompt, at a pseudo-terminal: a person types, the scripted model answers, questions are asked."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import Prompt, Start, prompts
from screen_scene import CTRL_C, CTRL_D, ENTER, ESC, UP, paste

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from conftest import Program

pytestmark = pytest.mark.terminal


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def answers(program: Program) -> list[tuple[object, object, object]]:
    return [(r["answer"], r["by"], r["words"]) for r in program.records() if r["kind"] == "approval_answered"]


TOUCH = Reply(calls=(call("bash", command="touch made"),))


def test_a_question_answered_yes_runs(program: Program, start: Start) -> None:
    """The answer streams, the call is asked about and traced, and the file is there."""
    prompt = start(replies(TOUCH, Reply(text="It is made.")))
    prompt.type("make it")
    prompt.press("bash", "y")
    prompt.wait_for("+ bash  touch made  [asked: yes by person")
    prompt.wait_for("It is made.")
    assert prompt.leave() == 0
    assert (program.workspace / "made").exists()
    assert program.run("audit", "verify").code == 0


def test_a_no_with_words_reaches_the_model(program: Program, start: Start) -> None:
    """The words are in the next request."""
    prompt = start(replies(TOUCH, Reply(text="Understood.")))
    prompt.type("make it")
    prompt.press("bash", "r")
    prompt.wait_for("no, because (")
    prompt.rest()
    prompt.send_slowly(["not on a friday", ENTER])
    prompt.wait_for("Understood.")
    assert prompt.leave() == 0
    assert not (program.workspace / "made").exists()
    assert "not on a friday" in str(program.players[0].requests[-1])


@pytest.mark.parametrize("keys", [ENTER, "yes" + ENTER, "y" + ENTER, paste("y"), "sure, go ahead" + ENTER])
def test_what_is_not_one_lone_y_approves_nothing(program: Program, start: Start, keys: str) -> None:
    """The question stays; a no ends it."""
    prompt = start(replies(TOUCH, Reply(text="Fine.")))
    prompt.type("make it")
    prompt.press("bash", keys)
    prompt.rest()
    assert answers(program) == []
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert prompt.leave() == 0
    assert answers(program) == [("no", "person", "")]
    assert not (program.workspace / "made").exists()


def test_what_is_typed_ahead_approves_nothing(program: Program, start: Start) -> None:
    """A y that was typed while the model worked is kept as text, and answers no question."""
    prompt = start(replies(Reply(calls=(call("bash", command="sleep 1; mkdir d"),)), TOUCH, Reply(text="Fine.")))
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.wait_for("+ allowed  sleep 1; mkdir d")
    prompt.send_slowly(["y", "y", ENTER, "y"], gap=0.1)
    prompt.wait_for("touch made")
    prompt.press("bash", "n", times=2)
    prompt.wait_for("Fine.")
    prompt.wait_quiet()
    assert [answer for answer, _, _ in answers(program)] == ["yes", "no"]
    assert not (program.workspace / "made").exists()


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        pytest.param(CTRL_C, "stop", id="Ctrl-C"),
        pytest.param(CTRL_D, "no", id="end of input"),
        pytest.param(ESC, "no", id="Esc"),
        pytest.param("h", "halt", id="halt"),
    ],
)
def test_leaving_a_question_is_a_no(program: Program, start: Start, keys: str, answer: str) -> None:
    """Ctrl-C, Ctrl-D, Esc and h at a question refuse; the prompt comes back."""
    prompt = start(replies(TOUCH, Reply(text="Fine.")))
    prompt.type("make it")
    prompt.press("bash", keys)
    prompt.wait_for("tokens in")
    assert prompt.leave() == 0
    assert [found for found, _, _ in answers(program)] == [answer]
    assert not (program.workspace / "made").exists()
    assert program.run("audit", "verify").code == 0


@pytest.mark.parametrize("keys", [CTRL_C, ESC], ids=["Ctrl-C", "Esc"])
def test_a_command_is_stopped_and_the_conversation_goes_on(program: Program, start: Start, keys: str) -> None:
    """The history stays valid: the scripted server refuses any that is not."""
    prompt = start(
        replies(Reply(calls=(call("bash", command="echo begun > begun; sleep 60"),)), Reply(text="Hello again."))
    )
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.wait_until((program.workspace / "begun").exists, "the command did not begin", 20.0)
    prompt.send(keys)
    prompt.wait_for("interrupted")
    prompt.ask("hello", "Hello again.")
    assert prompt.leave() == 0


def test_clear_forgets_the_conversation(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="one"), Reply(text="two")))
    prompt.ask("a pomegranate", "one")
    prompt.say("/clear", "the conversation is forgotten")
    prompt.ask("second", "two")
    assert prompt.leave() == 0
    assert "pomegranate" not in str(program.players[0].requests[-1])


WRITE = Reply(calls=(call("write_file", path="a.txt", content="new\n"), call("bash", command="mkdir d")))


def write_two(prompt: Prompt) -> None:
    """Let the model say one thing, then write a file and make a folder."""
    prompt.ask("say hello", "Hello.")
    prompt.type("write it")
    for tool in ("write_file", "bash"):
        prompt.press(tool, "y")
    prompt.wait_for("Written.")


@pytest.mark.parametrize(
    ("answer", "content"), [pytest.param("y", "old\n", id="yes"), pytest.param("n", "new\n", id="no")]
)
def test_undo_forgets_the_last_turn_and_asks_about_its_files(
    program: Program, start: Start, answer: str, content: str
) -> None:
    """What a command did is told; the conversation is shorter whatever the answer; no record is lost."""
    file = program.workspace / "a.txt"
    file.write_text("old\n")
    read = Reply(calls=(call("read_file", path="a.txt"),))
    prompt = start(replies(Reply(text="Hello."), read, WRITE, Reply(text="Written."), Reply(text="Again.")))
    write_two(prompt)
    prompt.type("/undo")
    prompt.wait_for("forgotten: write it")
    prompt.press("undo", answer)
    prompt.wait_for("restored       a.txt" if answer == "y" else "the files stay as they are")
    text = prompt.text()
    assert ("not undone     mkdir d" in text, "would restore  a.txt" in text) == (True, True)
    assert file.read_text() == content
    prompt.ask("what did I ask?", "Again.")
    assert prompt.leave() == 0
    assert "write it" not in str(program.players[0].requests[-1])
    assert "say hello" in str(program.players[0].requests[-1])
    kinds = [record["kind"] for record in program.records()]
    assert (kinds.count("history_changed"), kinds.count("restored")) == (1, 2 if answer == "y" else 0)
    assert program.run("audit", "verify").code == 0


def test_undo_takes_one_turn_after_the_other(program: Program, start: Start) -> None:
    """A turn without changed files asks nothing; where there is none left that is said."""
    prompt = start(replies(Reply(text="one"), Reply(text="two"), Reply(text="three")))
    for line, answer in (("first", "one"), ("second", "two")):
        prompt.ask(line, answer)
    for expected in ("forgotten: second", "forgotten: first", "there is no turn to undo"):
        prompt.say("/undo", expected)
    prompt.ask("third", "three")
    assert prompt.leave() == 0
    sent = program.players[0].requests[-1]["messages"]
    assert isinstance(sent, list)
    assert len(sent) == 2


def test_undo_leaves_the_files_of_earlier_turns(program: Program, start: Start) -> None:
    """Only what the last turn changed is put back, also where both changed the same file."""
    changes = [Reply(calls=(call("write_file", path="a.txt", content=f"{word}\n"),)) for word in ("one", "two")]
    prompt = start(replies(changes[0], Reply(text="First."), changes[1], Reply(text="Second.")))
    for times, (line, done) in enumerate((("a", "First."), ("b", "Second.")), 1):
        prompt.type(line)
        prompt.press("write_file", "y", times=times)
        prompt.wait_for(done)
    prompt.type("/undo")
    prompt.press("undo", "y")
    prompt.wait_for("restored       a.txt")
    assert (program.workspace / "a.txt").read_text() == "one\n"
    prompt.type("/undo")
    prompt.press("undo", "y", times=2)
    prompt.wait_for("would remove   a.txt")
    prompt.wait_for("removed        a.txt")
    assert not (program.workspace / "a.txt").exists()
    assert prompt.leave() == 0


def test_compact_puts_a_summary_in_the_place_of_the_past(program: Program, start: Start) -> None:
    """The sizes are told, the next request holds the summary only, and /undo does not reach behind it."""
    long = Reply(text="x" * 5_000)
    prompt = start(replies(long, Reply(text="They asked for pomegranates."), Reply(text="Yes.")))
    prompt.ask("a pomegranate", "tokens in")
    prompt.say("/compact", "summarized: 50")
    prompt.say("/undo", "there is no turn to undo; what was before is summarized")
    prompt.ask("what did I ask for?", "Yes.")
    prompt.say("/undo", "forgotten: what did I ask for")
    assert prompt.leave() == 0
    sent = program.players[0].requests[-1]["messages"]
    assert isinstance(sent, list)
    assert len(sent) == 2
    assert "They asked for pomegranates." in str(sent[1])
    assert "xxx" not in str(sent)
    assert "tools" not in program.players[0].requests[1]
    assert "xxx" in str(program.records())
    assert program.run("audit", "verify").code == 0


def test_compact_says_what_stands_in_its_way(start: Start) -> None:
    """With nothing to summarize no request is made."""
    prompt = start(replies())
    prompt.say("/compact", "nothing was summarized: there is nothing")
    assert prompt.leave() == 0


def test_hostile_text_cannot_touch_the_terminal(start: Start) -> None:
    """Escapes in the model's words and in a command are shown, not obeyed."""
    prompt = start(
        replies(
            Reply(text="a\x1b]0;owned\x07b\x1b[2Jc", calls=(call("bash", command="echo '\x1b[8m'; rm x"),)), Reply()
        )
    )
    prompt.type("go")
    prompt.press("bash", "n")
    prompt.wait_for("a\\x1b]0;owned\\x07b\\x1b[2Jc")
    assert "\\x1b[8m" in prompt.text()
    assert b"owned\x07" not in prompt.raw
    assert prompt.leave() == 0


def test_a_command_cannot_draw_a_question_of_its_own(start: Start) -> None:
    """A line end inside a quoted word stays inside its line, in the parts and in the reason."""
    forged = "cat '/x\n+ allowed  rm  by you\nwhy: harmless' && make"
    prompt = start(replies(Reply(calls=(call("bash", command=forged),)), Reply(text="Fine.")))
    prompt.type("go")
    prompt.press("bash", "n")
    prompt.wait_for("Fine.")
    assert "lies outside the workspace" in prompt.unwrapped().replace("\n", "")
    assert [line for line in prompt.rows() if line.startswith(("why: harmless", "+ allowed"))] == []
    assert prompt.leave() == 0


def test_what_cannot_be_shown_whole_cannot_be_approved(program: Program, start: Start) -> None:
    """The person is told, and so is the model."""
    content = "x = 1\n" * 5000 + "import os\n"
    prompt = start(replies(Reply(calls=(call("write_file", path="big.py", content=content),)), Reply(text="Fine.")))
    prompt.type("go")
    prompt.press("write_file", "y")
    prompt.rest()
    assert answers(program) == []
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert prompt.leave() == 0
    assert not (program.workspace / "big.py").exists()
    assert "make it in smaller steps" in str(program.players[0].requests[-1])


def test_an_earlier_yes_is_not_recalled(program: Program, start: Start) -> None:
    """The up arrow finds no answer to repeat."""
    prompt = start(replies(TOUCH, Reply(calls=(call("bash", command="touch other"),)), Reply(text="Fine.")))
    prompt.type("go")
    prompt.press("bash", "y")
    prompt.press("bash", UP, times=2)
    prompt.rest()
    prompt.send(ENTER)
    prompt.rest()
    assert len(answers(program)) == 1
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert prompt.leave() == 0
    assert not (program.workspace / "other").exists()


def test_two_interrupts_at_the_empty_prompt_leave(program: Program, start: Start) -> None:
    """One does not; two that lie further apart do not either."""
    prompt = start(replies(Reply(text="one")))
    prompt.wait_prompt()
    prompt.send(CTRL_C)
    prompt.wait_for("Ctrl-C again leaves")
    time.sleep(2.1)
    prompt.wait_prompt()
    prompt.send(CTRL_C)
    prompt.wait_count("Ctrl-C again leaves", 2)
    prompt.wait_prompt()
    prompt.send(CTRL_C)
    assert prompt.exit_code() == 0
    assert program.records()[-1]["kind"] == "session_ended"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_leaves_with_143(program: Program, start: Start, number: int) -> None:
    """A signal at the prompt ends the session with a whole log."""
    prompt = start(replies(Reply(text="one")))
    prompt.wait_prompt()
    prompt.signal(number)
    assert prompt.exit_code() == 143
    assert program.records()[-1]["kind"] == "session_ended"


def test_without_a_terminal_it_refuses(program: Program) -> None:
    """In a pipe the prompt says what to use instead."""
    done = program.run("--base-url", "http://127.0.0.1:9")
    assert (done.code, "harness run" in done.err) == (2, True)
