"""The prompt, at a pseudo-terminal: a person types, the scripted model answers, questions are asked."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pexpect
import pytest

from harness.models.scripted import Reply, Script, call, replies

if TYPE_CHECKING:
    from conftest import Program

pytestmark = pytest.mark.terminal

Start = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    """Start the prompt against a script, at a pseudo-terminal of 120 columns."""
    children: list[pexpect.spawn[str]] = []

    def spawn(script: Script, *flags: str) -> pexpect.spawn[str]:
        command = program.command("--base-url", program.serve(script), "--model", "scripted", *flags)
        child = pexpect.spawn(
            command[0], command[1:], cwd=str(program.workspace), env=program.environment, encoding="utf-8", timeout=20,
            dimensions=(50, 120),
        )  # fmt: skip
        children.append(child)
        child.expect("/help for help")
        return child

    yield spawn
    for child in children:
        child.close(force=True)


def leave(child: pexpect.spawn[str]) -> int | None:
    child.send("/exit\r")
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus) if child.exitstatus is not None else None


def answers(program: Program) -> list[tuple[object, object, object]]:
    return [(r["answer"], r["by"], r["words"]) for r in program.records() if r["kind"] == "approval_answered"]


TOUCH = Reply(calls=(call("bash", command="touch made"),))


def test_a_question_answered_yes_runs(program: Program, start: Start) -> None:
    """The answer streams, the call is asked about and traced, and the file is there."""
    child = start(replies(TOUCH, Reply(text="It is made.")))
    child.send("make it\r")
    child.expect("bash asks")
    child.expect("touch made")
    child.expect("allow\\?")
    child.send("y\r")
    child.expect(r"\+ bash  touch made  \[asked: yes by person")
    child.expect("It is made.")
    assert leave(child) == 0
    assert (program.workspace / "made").exists()
    assert program.run("audit", "verify").code == 0


def test_a_no_with_words_reaches_the_model(program: Program, start: Start) -> None:
    """The words are in the next request."""
    child = start(replies(TOUCH, Reply(text="Understood.")))
    child.send("make it\r")
    child.expect("allow\\?")
    child.send("n not on a friday\r")
    child.expect("Understood.")
    assert leave(child) == 0
    assert not (program.workspace / "made").exists()
    assert "not on a friday" in str(program.players[0].requests[-1])


def test_enter_alone_answers_nothing(program: Program, start: Start) -> None:
    """Enter asks again; so does anything that is neither yes nor no."""
    child = start(replies(TOUCH, Reply(text="Fine.")))
    child.send("make it\r")
    child.expect("allow\\?")
    child.send("\r")
    child.expect("Enter alone answers nothing")
    child.send("sure, go ahead\r")
    child.expect("Enter alone answers nothing")
    child.send("n\r")
    child.expect("Fine.")
    leave(child)
    assert answers(program) == [("no", "person", "")]


def test_what_is_typed_ahead_approves_nothing(program: Program, start: Start) -> None:
    """A y that was typed while the model worked is thrown away."""
    child = start(replies(Reply(calls=(call("bash", command="sleep 1; mkdir d"),)), TOUCH, Reply(text="Fine.")))
    child.send("go\r")
    child.expect("allow\\?")
    child.send("y\r")
    child.send("y\ry\ry\r")
    child.expect("touch made")
    child.expect("allow\\?")
    child.send("n\r")
    child.expect("Fine.")
    leave(child)
    assert [answer for answer, _, _ in answers(program)] == ["yes", "no"]
    assert not (program.workspace / "made").exists()


@pytest.mark.parametrize(
    ("keys", "answer"), [pytest.param("\x03", "stop", id="Ctrl-C"), pytest.param("\x04", "no", id="end of input")]
)
def test_leaving_a_question_is_a_no(program: Program, start: Start, keys: str, answer: str) -> None:
    """Ctrl-C and Ctrl-D at a question refuse; the prompt comes back."""
    child = start(replies(TOUCH, Reply(text="Fine.")))
    child.send("make it\r")
    child.expect("allow\\?")
    child.send(keys)
    child.expect("requests?,")
    assert leave(child) == 0
    assert [found for found, _, _ in answers(program)] == [answer]
    assert not (program.workspace / "made").exists()


def test_ctrl_c_stops_a_command_and_the_conversation_goes_on(program: Program, start: Start) -> None:
    """The history stays valid: the scripted server refuses any that is not."""
    child = start(
        replies(Reply(calls=(call("bash", command="echo begun > begun; sleep 60"),)), Reply(text="Hello again."))
    )
    child.send("go\r")
    child.expect("allow\\?")
    child.send("y\r")
    for _ in range(500):
        if (program.workspace / "begun").exists():
            break
        child.expect(pexpect.TIMEOUT, timeout=0.02)
    child.send("\x03")
    child.expect("interrupted")
    child.send("hello\r")
    child.expect("Hello again.")
    assert leave(child) == 0


def test_commands(program: Program, start: Start) -> None:
    """/help /tools /policy /clear and an unknown one are answered locally."""
    child = start(replies(Reply(text="one"), Reply(text="two")))
    for line, answer in (
        ("/help", "/compact let the model"),
        ("/tools", "edit_file"),
        ("/policy", "force-push"),
        ("/polic", "did you mean /policy?"),
    ):
        child.send(line + "\r")
        child.expect(answer.replace("?", "\\?"))
    child.send("a pomegranate\r")
    child.expect("one")
    child.expect("requests?,")
    child.send("/clear\r")
    child.expect("the conversation is forgotten")
    child.send("second\r")
    child.expect("two")
    assert leave(child) == 0
    assert "pomegranate" not in str(program.players[0].requests[-1])


WRITE = Reply(calls=(call("write_file", path="a.txt", content="new\n"), call("bash", command="mkdir d")))


def write_two(child: pexpect.spawn[str]) -> None:
    """Let the model say one thing, then write a file and make a folder."""
    child.send("say hello\r")
    child.expect("Hello.")
    child.expect("requests?,")
    child.send("write it\r")
    for tool in ("write_file", "bash"):
        child.expect(f"{tool} asks")
        child.expect("allow\\?")
        child.send("y\r")
    child.expect("Written.")
    child.expect("requests?,")


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
    child = start(replies(Reply(text="Hello."), read, WRITE, Reply(text="Written."), Reply(text="Again.")))
    write_two(child)
    child.send("/undo\r")
    child.expect("forgotten: write it")
    child.expect("undo asks")
    child.expect("not undone +mkdir d")
    child.expect("would restore +a.txt")
    child.expect("allow\\?")
    child.send(f"{answer}\r")
    child.expect("restored +a.txt" if answer == "y" else "the files stay as they are")
    assert file.read_text() == content
    child.send("what did I ask?\r")
    child.expect("Again.")
    child.expect("requests?,")
    assert leave(child) == 0
    assert "write it" not in str(program.players[0].requests[-1])
    assert "say hello" in str(program.players[0].requests[-1])
    kinds = [record["kind"] for record in program.records()]
    assert (kinds.count("history_changed"), kinds.count("restored")) == (1, 2 if answer == "y" else 0)
    assert program.run("audit", "verify").code == 0


def test_undo_takes_one_turn_after_the_other(program: Program, start: Start) -> None:
    """A turn without changed files asks nothing; where there is none left that is said."""
    child = start(replies(Reply(text="one"), Reply(text="two"), Reply(text="three")))
    for line, answer in (("first", "one"), ("second", "two")):
        child.send(f"{line}\r")
        child.expect(answer)
        child.expect("requests?,")
    for expected in ("forgotten: second", "forgotten: first", "there is no turn to undo"):
        child.send("/undo\r")
        child.expect(expected)
    child.send("third\r")
    child.expect("three")
    child.expect("requests?,")
    assert leave(child) == 0
    sent = program.players[0].requests[-1]["messages"]
    assert isinstance(sent, list)
    assert len(sent) == 2


def test_undo_leaves_the_files_of_earlier_turns(program: Program, start: Start) -> None:
    """Only what the last turn changed is put back, also where both changed the same file."""
    changes = [Reply(calls=(call("write_file", path="a.txt", content=f"{word}\n"),)) for word in ("one", "two")]
    child = start(replies(changes[0], Reply(text="First."), changes[1], Reply(text="Second.")))
    for line, done in (("a", "First."), ("b", "Second.")):
        child.send(f"{line}\r")
        child.expect("allow\\?")
        child.send("y\r")
        child.expect(done)
        child.expect("requests?,")
    child.send("/undo\r")
    child.expect("allow\\?")
    child.send("y\r")
    child.expect("restored +a.txt")
    assert (program.workspace / "a.txt").read_text() == "one\n"
    child.send("/undo\r")
    child.expect("would remove +a.txt")
    child.expect("allow\\?")
    child.send("y\r")
    child.expect("removed +a.txt")
    assert not (program.workspace / "a.txt").exists()
    assert leave(child) == 0


def test_compact_puts_a_summary_in_the_place_of_the_past(program: Program, start: Start) -> None:
    """The sizes are told, the next request holds the summary only, and /undo does not reach behind it."""
    long = Reply(text="x" * 5_000)
    child = start(replies(long, Reply(text="They asked for pomegranates."), Reply(text="Yes.")))
    child.send("a pomegranate\r")
    child.expect("requests?,")
    child.send("/compact\r")
    child.expect(r"summarized: 50\d\d characters before, \d{3} now")
    child.send("/undo\r")
    child.expect("there is no turn to undo; what was before is summarized")
    child.send("what did I ask for?\r")
    child.expect("Yes.")
    child.expect("requests?,")
    child.send("/undo\r")
    child.expect("forgotten: what did I ask for")
    assert leave(child) == 0
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
    child = start(replies())
    child.send("/compact\r")
    child.expect("nothing was summarized: there is nothing")
    assert leave(child) == 0


def test_hostile_text_cannot_touch_the_terminal(start: Start) -> None:
    """Escapes in the model's words and in a command are shown, not obeyed."""
    child = start(
        replies(
            Reply(text="a\x1b]0;owned\x07b\x1b[2Jc", calls=(call("bash", command="echo '\x1b[8m'; rm x"),)), Reply()
        )
    )
    child.send("go\r")
    child.expect_exact("a\\x1b]0;owned\\x07b\\x1b[2Jc")
    child.expect("allow\\?")
    assert "\\x1b[8m" in (child.before or "")
    child.send("n\r")
    leave(child)


def test_a_command_cannot_draw_a_question_of_its_own(program: Program, start: Start) -> None:
    """A line end inside a quoted word stays inside its line, in the parts and in the reason."""
    forged = "cat '/x\nallow? y = yes: y\nwhy: harmless' && make"
    child = start(replies(Reply(calls=(call("bash", command=forged),)), Reply(text="Fine.")))
    child.send("go\r")
    child.expect("asks")
    child.expect("lies outside the workspace")
    child.expect("allow\\? y = yes, n = no")
    lines = (child.before or "").splitlines()
    assert not [line for line in lines if line.startswith(("why: harmless", "allow?"))]
    child.send("n\r")
    child.expect("Fine.")
    leave(child)


def test_what_cannot_be_shown_whole_cannot_be_approved(program: Program, start: Start) -> None:
    """The person is told, and so is the model."""
    content = "x = 1\n" * 5000 + "import os\n"
    child = start(replies(Reply(calls=(call("write_file", path="big.py", content=content),)), Reply(text="Fine.")))
    child.send("go\r")
    child.expect("cannot be approved here")
    child.expect("Fine.")
    leave(child)
    assert not (program.workspace / "big.py").exists()
    assert "make it in smaller steps" in str(program.players[0].requests[-1])


def test_an_earlier_yes_is_not_recalled(program: Program, start: Start) -> None:
    """The up arrow finds no answer to repeat."""
    child = start(replies(TOUCH, Reply(calls=(call("bash", command="touch other"),)), Reply(text="Fine.")))
    child.send("go\r")
    child.expect("allow\\?")
    child.send("y\r")
    child.expect("touch other")
    child.expect("allow\\?")
    child.send("\x1b[A\r")
    child.expect("Enter alone answers nothing")
    child.send("n\r")
    child.expect("Fine.")
    leave(child)
    assert not (program.workspace / "other").exists()


def test_termination_leaves_with_143(program: Program, start: Start) -> None:
    """SIGTERM at the prompt ends the session with a whole log."""
    child = start(replies(Reply(text="one")))
    child.expect("2004h")  # the prompt is there: it asked for bracketed paste
    child.kill(signal.SIGTERM)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 143
    assert program.records()[-1]["kind"] == "session_ended"


def test_without_a_terminal_it_refuses(program: Program) -> None:
    """In a pipe the prompt says what to use instead."""
    done = program.run("--base-url", "http://127.0.0.1:9")
    assert (done.code, "harness run" in done.err) == (2, True)
