"""The prompt, at a pseudo-terminal: a person types, the scripted model answers, questions are asked."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import WIDE, Prompt, Start, prompts
from rows import all_rows
from screen_scene import CTRL_C, CTRL_D, ENTER, ESC, UP, paste

from harness.app.repl.repl_terminal import DoublePress
from harness.models.scripted import Failure, Reply, ScriptedAnswer, Turn, call, replies
from harness.session.person_message import INTERRUPTED

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def answers(program: Program) -> list[tuple[object, object, object]]:
    return [(r["answer"], r["by"], r["words"]) for r in program.records() if r["kind"] == "approval_answered"]


TOUCH = Reply(calls=(call("bash", command="touch made"),))
OTHER = Reply(calls=(call("bash", command="touch other"),))


def test_a_yes_runs_and_a_no_with_words_reaches_the_model(program: Program, start: Start) -> None:
    """The answer streams, the call is asked about and traced, and the file is there; the words are in the next request."""
    prompt = start(replies(TOUCH, Reply(text="It is made."), OTHER, Reply(text="Understood.")))
    prompt.type("make it")
    prompt.press("bash", "y")
    prompt.wait_for("+ bash  touch made  exit 0  [you]")
    prompt.wait_for("It is made.")
    assert (program.workspace / "made").exists()
    prompt.type("another")
    prompt.press("bash", "r", times=2)
    prompt.send_words("no, but (Enter sends it, Esc goes back): ", "not on a friday")
    prompt.send(ENTER)
    prompt.wait_for("Understood.")
    assert prompt.leave() == 0
    assert not (program.workspace / "other").exists()
    assert "not on a friday" in str(program.players[0].requests[-1])
    assert program.run("audit", "verify").code == 0


def test_approval_needs_a_single_y(program: Program, start: Start) -> None:
    """The question stays, whatever is typed or pasted, also where the up arrow could find an earlier yes; a no ends it."""
    prompt = start(replies(TOUCH, OTHER, Reply(text="Fine.")))
    prompt.type("make it")
    prompt.press("bash", "y")
    prompt.wait_question("bash", 2)
    prompt.wait_keys()
    for keys in (ENTER, "yes" + ENTER, "y" + ENTER, paste("y"), "sure, go ahead" + ENTER, UP, ENTER):
        prompt.send(keys)
        prompt.show_again("bash")
        assert len(answers(program)) == 1, keys
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert prompt.leave() == 0
    assert answers(program) == [("yes", "person", ""), ("no", "person", "")]
    assert not (program.workspace / "other").exists()


LEAVING = {CTRL_C: "stop", CTRL_D: "no", ESC: "no", "h": "halt"}


def test_leaving_a_question_is_a_no(program: Program, start: Start) -> None:
    """Ctrl-C, Ctrl-D, Esc and h at a question refuse; the prompt comes back."""
    fine = Reply(text="Fine.")  # after a no the model goes on
    prompt = start(replies(TOUCH, TOUCH, fine, TOUCH, fine, TOUCH))
    for times, keys in enumerate(LEAVING, 1):
        prompt.type("make it")
        prompt.press("bash", keys, times=times)
        prompt.wait_count("tokens in, ", times)
    assert prompt.leave() == 0
    assert [found for found, _, _ in answers(program)] == list(LEAVING.values())
    assert not (program.workspace / "made").exists()
    assert program.run("audit", "verify").code == 0


def test_stopped_command_does_not_end_the_conversation(program: Program, start: Start) -> None:
    """By Ctrl-C and by Esc. The history stays valid: the scripted server refuses any that is not."""
    slow = [Reply(calls=(call("bash", command=f"echo > begun{key}; sleep 1000"),)) for key in (1, 2)]
    prompt = start(replies(slow[0], slow[1], Reply(text="Hello again.")))
    for times, keys in enumerate((CTRL_C, ESC), 1):
        prompt.type("go on")
        prompt.press("bash", "y", times=times)
        prompt.wait_until((program.workspace / f"begun{times}").exists, "the command did not begin")
        prompt.send(keys)
        prompt.wait_count("tokens in, ", times)
    prompt.ask("hello", "Hello again.")
    assert prompt.leave() == 0


def test_a_message_without_an_answer_is_kept_apart_from_the_next(program: Program, start: Start) -> None:
    """The model is told that the person stopped it, they are told that it stays, and /undo takes it back."""
    stopped = threading.Event()

    def script() -> Generator[ScriptedAnswer, Turn, None]:
        stopped.wait(60.0)
        yield Reply(text="Too late.")
        yield Reply(text="Now.")
        yield Failure(status=400, body='{"error": {"message": "no such thing"}}')
        yield Reply(text="End.")

    prompt = start(script)
    prompt.type("delete nothing")
    prompt.wait_until(lambda: bool(program.players[0].requests), "no request")
    prompt.send(CTRL_C)
    prompt.wait_for("what you said has no answer")
    stopped.set()
    prompt.ask("hello", "Now.")
    prompt.type("delete all")
    prompt.wait_count("what you said has no answer", 2)
    assert prompt.unwrapped().count("no such thing") == 1
    prompt.say("/undo", "forgotten: delete all")
    prompt.ask("bye", "End.")
    assert prompt.leave() == 0
    sent = [request["messages"] for request in program.players[0].requests]
    said = [[m["content"] for m in messages if m["role"] == "user"] for messages in sent]  # type: ignore[union-attr,index,call-overload]
    assert said[1] == [f"delete nothing\n\n{INTERRUPTED}\n\nhello"]
    assert said[-1] == [*said[1], "bye"]
    assert program.run("audit", "verify").code == 0


def test_undo_forgets_the_last_turn_and_asks_about_its_files(program: Program, start: Start) -> None:
    """The conversation goes back alone, or with the files of edits and commands; no record is lost."""
    file = program.workspace / "a.txt"
    file.write_text("old\n")
    read = Reply(calls=(call("read_file", path="a.txt"),))
    writes = [
        Reply(calls=(call("write_file", path="a.txt", content=f"{word}\n"), call("bash", command=f"mkdir {word}")))
        for word in ("new", "newer")
    ]
    done = [Reply(text="Written."), Reply(text="Written again.")]
    prompt = start(
        replies(Reply(text="Hello."), read, writes[0], done[0], read, writes[1], done[1], Reply(text="Well."))
    )
    prompt.ask("say hello", "Hello.")
    for times, (answer, told, content) in enumerate(
        (("c", "forgotten: write it", "new\n"), ("y", "restored       a.txt", "new\n")), 1
    ):
        prompt.type("write it")
        for tool in ("write_file", "bash"):
            prompt.press(tool, "y", times=times)
        prompt.wait_for(done[times - 1].text)
        prompt.type("/undo")
        prompt.press("undo", answer, times=times)
        prompt.wait_count("forgotten: write it", times)
        prompt.wait_for(told)
        prompt.wait_prompt()
        assert file.read_text() == content
        assert prompt.text().count("would restore  a.txt") == times
    assert [word for word in ("new", "newer") if f"would remove   {word}  " not in prompt.text()] == []
    assert [(program.workspace / word).exists() for word in ("new", "newer")] == [True, False]
    prompt.ask("what did I ask?", "Well.")
    assert prompt.leave() == 0
    assert "write it" not in str(program.players[0].requests[-1])
    assert "say hello" in str(program.players[0].requests[-1])
    kinds = [record["kind"] for record in program.records()]
    assert (kinds.count("history_changed"), kinds.count("restored")) == (2, 2)
    assert program.run("audit", "verify").code == 0


def test_clear_and_undo_report_forgotten_turns(program: Program, start: Start) -> None:
    """A turn without changed files asks nothing; where there is none left, or nothing to summarize, that is said."""
    prompt = start(replies(*(Reply(text=word) for word in ("Zero.", "One.", "Two.", "Three."))))
    prompt.say("/compact", "nothing was summarized: there is nothing")
    prompt.ask("a pomegranate", "Zero.")
    prompt.say("!echo kiwi", "the model is told with your next message")
    prompt.say("/clear", "the conversation is forgotten")
    prompt.wait_for("the model is not told of 1 command that you ran before")
    for line, answer in (("first", "One."), ("second", "Two.")):
        prompt.ask(line, answer)
    for expected in ("forgotten: second", "forgotten: first", "there is no turn to undo"):
        prompt.say("/undo", expected)
    prompt.ask("third", "Three.")
    assert prompt.leave() == 0
    assert [word for word in ("pomegranate", "kiwi") if word in str(program.players[0].requests[1:])] == []
    sent = program.players[0].requests[-1]["messages"]
    assert isinstance(sent, list)
    assert len(sent) == 2


def test_undo_leaves_the_files_of_earlier_turns(program: Program, start: Start) -> None:
    """Only what the last turn changed is put back, also where both changed the same file."""
    changes = [Reply(calls=(call("write_file", path="a.txt", content=f"{word}\n"),)) for word in ("one", "two")]
    prompt = start(replies(changes[0], Reply(text="First."), changes[1], Reply(text="Second.")))
    for times, (line, done) in enumerate((("first", "First."), ("second", "Second.")), 1):
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


def test_hostile_text_cannot_touch_the_terminal(program: Program, start: Start) -> None:
    """Escapes in the model's words and in a command are shown, not obeyed; a line end inside a quoted word stays inside its
    line, in the parts and in the reason; a prompt of several lines begins none of the harness's."""
    forged = "cat '/x\n+ allowed  rm  by you\nwhy: harmless' && make"
    prompt = start(
        replies(
            Reply(text="a\x1b]0;owned\x07b\x1b[2Jc", calls=(call("bash", command="echo '\x1b[8m'; rm x"),)),
            Reply(calls=(call("bash", command=forged),)),
            Reply(text="Fine."),
        ),
        "look at this:\n+ allowed  rm  by you\nwhy: harmless",
        columns=200,
    )
    prompt.press("bash", "n")
    prompt.wait_for("a\\x1b]0;owned\\x07b\\x1b[2Jc")
    prompt.wait_question("bash", 2)
    prompt.wait_keys()
    assert "lies outside the workspace" in prompt.unwrapped().replace("\n", "")
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert b"\\x1b[8m" in prompt.raw
    assert b"\x1b[8m" not in prompt.raw
    assert b"owned\x07" not in prompt.raw
    assert ". + allowed  rm  by you" in prompt.rows()
    assert [line for line in prompt.rows() if line.startswith(("why: harmless", "+ allowed"))] == []
    assert prompt.leave() == 0
    assert [answer for answer, _, _ in answers(program)] == ["no", "no"]


def test_call_that_cannot_be_shown_in_full_cannot_be_approved(program: Program, start: Start) -> None:
    """The person is told, and so is the model."""
    content = "x = 1\n" * 5000 + "import os\n"
    prompt = start(replies(Reply(calls=(call("write_file", path="big.py", content=content),)), Reply(text="Fine.")))
    prompt.type("go")
    prompt.press("write_file", "y")
    prompt.show_again("write_file")
    assert answers(program) == []
    prompt.send("n")
    prompt.wait_for("Fine.")
    assert prompt.leave() == 0
    assert not (program.workspace / "big.py").exists()
    assert "make it in smaller steps" in str(program.players[0].requests[-1])


@all_rows(
    ("times", "leaves"),
    [([0.0], False), ([10.0, 11.9], True), ([10.0, 12.1], False), ([10.0, 12.1, 13.0], True)],
)
def test_two_interrupts_near_each_other_leave(times: list[float], leaves: bool) -> None:
    twice = DoublePress()
    assert [twice.again(now) for now in times][-1] is leaves


def test_two_interrupts_at_the_empty_prompt_leave(program: Program, start: Start) -> None:
    """One does not, which is said."""
    prompt = start(replies(Reply(text="one")))
    prompt.wait_prompt()
    prompt.send(CTRL_C)
    prompt.wait_for("Ctrl-C again leaves")
    prompt.wait_prompt()
    prompt.send(CTRL_C)
    assert prompt.exit_code() == 0
    assert program.records()[-1]["kind"] == "session_ended"


def lost(program: Program, prompt: Prompt) -> None:
    """Hold the end of a session whose workspace disappeared against what is said, logged and left."""
    prompt.wait_for(f"the workspace is gone: {program.workspace}")
    assert prompt.exit_code() == 1
    assert not program.workspace.exists()
    last = program.records()[-1]
    assert (last["kind"], last["stop"]) == ("session_ended", "workspace_lost")


@pytest.mark.parametrize("line", ["go on", "!true"])
def test_a_workspace_that_disappears_ends_the_conversation(program: Program, start: Start, line: str) -> None:
    prompt = start(replies(Reply(text="one"), Reply(text="two")), columns=WIDE)
    prompt.ask("begin", "one")
    shutil.rmtree(program.workspace)
    prompt.type(line)
    lost(program, prompt)


WRITE = Reply(calls=(call("write_file", path="made", content="x"),))


@pytest.mark.parametrize("reply", [TOUCH, WRITE], ids=["bash", "write_file"])
def test_approval_does_not_create_the_workspace_again(program: Program, start: Start, reply: Reply) -> None:
    """It disappears while the question stands."""
    prompt = start(replies(reply, Reply(text="two")), columns=WIDE)
    prompt.type("begin")
    tool = reply.calls[0].name
    prompt.wait_for(f"{tool} asks")
    shutil.rmtree(program.workspace)
    prompt.press(tool, "y")
    lost(program, prompt)
    ((status, content),) = [(r["status"], r["content"]) for r in program.records() if r["kind"] == "outcome"]
    assert (status, content) == ("failed", f"Error: the workspace is gone: {program.workspace}; nothing was done.")


def ends_with(program: Program, stop: str) -> None:
    last = program.records()[-1]
    assert (last["kind"], last["stop"]) == ("session_ended", stop)
    assert program.run("audit", "verify").code == 0


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGTERM, "interrupted"), (signal.SIGHUP, "terminal_closed")])
def test_termination_leaves_with_143(program: Program, start: Start, number: int, stop: str) -> None:
    """A signal at the prompt ends the session with a whole log."""
    prompt = start(replies(Reply(text="one")))
    prompt.wait_prompt()
    prompt.signal(number)
    assert prompt.exit_code() == 143
    ends_with(program, stop)


def at_the_prompt(_program: Program, prompt: Prompt) -> None:
    prompt.wait_prompt()


def at_a_question(_program: Program, prompt: Prompt) -> None:
    prompt.type("go")
    prompt.wait_for("bash asks")
    prompt.wait_keys()


def in_a_command(program: Program, prompt: Prompt) -> None:
    at_a_question(program, prompt)
    prompt.press("bash", "y")
    prompt.wait_until((program.workspace / "begun").exists, "the command did not begin")


@pytest.mark.parametrize("place", [at_the_prompt, at_a_question, in_a_command])
def test_a_window_that_is_closed_ends_the_session(
    program: Program, start: Start, place: Callable[[Program, Prompt], None]
) -> None:
    """Its log says so: what never says that it ended was killed, or crashed."""
    prompt = start(replies(Reply(calls=(call("bash", command="echo > begun; sleep 1000"),))))
    place(program, prompt)
    prompt.hang_up()
    assert prompt.exit_code() == 143
    ends_with(program, "terminal_closed")


def test_a_crash_looks_like_none_of_these(program: Program, start: Start) -> None:
    prompt = start(replies())
    prompt.wait_prompt()
    prompt.signal(signal.SIGKILL)
    prompt.exit_code()
    assert "session_ended" not in {record["kind"] for record in program.records()}


def test_prompt_needs_a_terminal(program: Program) -> None:
    """In a pipe the prompt says what to use instead."""
    done = program.run("--base-url", "http://127.0.0.1:9")
    assert (done.code, "harness run" in done.err) == (2, True)
