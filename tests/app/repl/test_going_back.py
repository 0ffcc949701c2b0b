"""/undo, /back and /diff at the prompt, through all the sessions that a conversation was in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from repl_scene import CONFIG, Start, prompts, write_config

from harness.log.reader import read_log
from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

AUTO = 'version = 1\n[tools]\ndefault = "auto"\n'


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def policy(program: Program) -> tuple[str, str]:
    path = program.home / "auto.toml"
    path.write_text(AUTO)
    return "--policy", str(path)


def write(name: str, content: str) -> Reply:
    return Reply(calls=(call("write_file", path=name, content=content),))


def turns(*pairs: tuple[Reply, str]) -> list[Reply]:
    return [reply for change, answer in pairs for reply in (change, Reply(text=answer))]


def test_undo_and_diff_follow_a_conversation_into_the_next_process(program: Program, start: Start) -> None:
    file = program.workspace / "a.txt"
    with_policy = policy(program)
    prompt = start(
        replies(*turns((write("a.txt", "one\n"), "First."), (write("a.txt", "two\n"), "Second."))), *with_policy
    )
    prompt.ask("a", "First.")
    prompt.ask("b", "Second.")
    assert prompt.leave() == 0
    prompt = start(replies(Reply(text="Third.")), *with_policy, "-c")
    for row in ("1 + one", "1 - one", "1 + two"):
        prompt.wait_for(row)  # also of the edit whose content is no longer in the file
    prompt.say("/diff", "a.txt: new, +1 -0 lines")  # the numbers of an earlier session mean other calls now
    prompt.type("/undo")
    prompt.press("undo", "y")
    prompt.wait_for("forgotten: b")
    prompt.wait_for("restored       a.txt")
    assert file.read_text() == "one\n"
    prompt.ask("what is left?", "Third.")
    assert "Second." not in str(program.players[1].requests[-1])
    assert prompt.leave() == 0
    prompt = start(replies(), *with_policy, "-c")
    prompt.say("/undo", "forgotten: what is left?")
    prompt.type("/undo")
    prompt.press("undo", "y")
    prompt.wait_for("forgotten: a")
    prompt.wait_for("removed        a.txt")
    assert not file.exists(), "a turn two sessions ago"
    prompt.say("/undo", "there is no turn to undo")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


@pytest.mark.parametrize(
    ("key", "content", "words"),
    [
        pytest.param("y", "one\n", "back to before your message 2", id="both"),
        pytest.param("c", "three\n", "back to before your message 2; files stay as they are", id="the conversation"),
        pytest.param("f", "one\n", "restored       a.txt", id="the files"),
        pytest.param("n", "three\n", "", id="nothing"),
    ],
)
def test_back_takes_back_the_chosen_part(program: Program, start: Start, key: str, content: str, words: str) -> None:
    script = turns(*((write("a.txt", f"{word}\n"), f"{word.title()}.") for word in ("one", "two", "three")))
    prompt = start(replies(*script, Reply(text="End.")), *policy(program))
    for number, word in enumerate(("one", "two", "three"), 1):
        prompt.ask(f"message {number}", f"{word.title()}.")
    prompt.type("/back 2")
    prompt.wait_question("undo")
    prompt.wait_for("2 to put back")
    prompt.press("undo", key)
    if words:
        prompt.wait_for(words)
    if key in "yc":
        prompt.clear("message 2")
    prompt.ask("bye", "End.")
    assert (program.workspace / "a.txt").read_text() == content
    sent = str(program.players[0].requests[-1]["messages"])
    assert ("One." in sent, "Two." in sent) == (True, key in "fn")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


def test_diff_key_shows_the_lines_that_would_change(program: Program, start: Start) -> None:
    (program.workspace / "a.txt").write_text("before\n")
    read = Reply(calls=(call("read_file", path="a.txt"),))
    prompt = start(replies(read, *turns((write("a.txt", "after\n"), "Written."))), *policy(program))
    prompt.ask("write", "Written.")
    prompt.type("/undo")
    prompt.press("undo", "d")
    prompt.wait_for("1 - after")
    prompt.wait_for("1 + before")
    prompt.wait_keys()
    prompt.send("n")
    prompt.wait_prompt()
    assert (program.workspace / "a.txt").read_text() == "after\n"
    assert prompt.leave() == 0


def command(line: str) -> Reply:
    return Reply(calls=(call("bash", command=line),))


def test_edits_that_ran_show_their_diffs(program: Program, start: Start) -> None:
    """The diff is that of the written content, with its secrets masked, and `/diff` shows all of it."""
    secret = "sk-proj-" + "a1B2" * 12
    numbers = "".join(f"{number}\n" for number in range(1, 31))
    script = turns((write("a.txt", f"key = {secret}\n"), "First."), (write("a.txt", numbers), "Second."))
    prompt = start(replies(*script), *policy(program))
    prompt.ask("a", "First.")
    prompt.wait_for("+ write_file  a.txt  ok, new, 1 line")
    prompt.wait_for("  1 + key = ")
    prompt.ask("b", "Second.")
    prompt.wait_for("+ write_file  a.txt  ok, +30/-1")
    prompt.wait_for("... 19 more rows: /diff 2")
    prompt.say("/diff 2", "30 + 30")
    assert secret.encode() not in prompt.raw
    assert prompt.leave() == 0


def test_commands_are_counted_shown_and_taken_back_like_edits(program: Program, start: Start) -> None:
    """The trace counts the files of a command; /diff N shows them, with the contents before and after; /undo restores."""
    file = program.workspace / "a.txt"
    file.write_text("one\n")
    script = turns(
        (command("echo two > a.txt; touch b.txt"), "First."),
        (command("cp a.txt b.txt; echo three >> a.txt"), "Second."),
    )
    prompt = start(replies(*script, Reply(text="End.")), *policy(program))
    prompt.ask("a", "First.")
    prompt.wait_for("new b.txt; changed a.txt  /diff 1")
    prompt.ask("b", "Second.")
    prompt.wait_for("changed a.txt, b.txt  /diff 2")
    prompt.say("/diff 1", "a.txt  [call 1], +1 -1 lines")
    prompt.wait_for("1 - one")
    prompt.wait_for("1 + two")
    prompt.say("/diff --stat", "a.txt  [call 1, 2]: changed, +2 -1 lines")
    prompt.wait_for("b.txt  [call 1, 2]: new, +1 -0 lines")
    prompt.say("/diff 7", "call 7 of this session changed no file")
    prompt.type("/undo")
    prompt.wait_question("undo")
    prompt.wait_for("2 to put back")
    prompt.press("undo", "y")
    prompt.wait_for("restored       a.txt  [call 2 bash]")
    assert (file.read_text(), (program.workspace / "b.txt").read_text()) == ("two\n", "")
    (program.workspace / "b.txt").write_text("mine\n")
    prompt.type("/back 1")
    prompt.press("undo", "y", times=2)
    prompt.wait_for("1 to leave (b.txt: changed after call 1)")
    prompt.wait_for("restored       a.txt  [call 1 bash]")
    assert (file.read_text(), (program.workspace / "b.txt").read_text()) == ("one\n", "mine\n")
    prompt.clear("a")
    prompt.ask("bye", "End.")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


PRICED = f"{CONFIG}[prices.scripted]\ninput = 1_000\noutput = 1_000\n"
"""Each played reply counts 200 tokens in and 20 out: 0.22 dollars."""


def test_cost_follows_a_conversation_through_every_session(program: Program, start: Start) -> None:
    write_config(program, PRICED)
    prompt = start(replies(Reply(text="First."), Reply(text="Second.")))
    prompt.ask("a", "First.")
    prompt.say("/cost", "session: 200 tokens in, 20 out, 0.2200 dollars")
    assert "conversation, with" not in prompt.text()
    prompt.say("/fork", "forked session")
    prompt.say("/cost", "conversation, with earlier sessions: 200 tokens in, 20 out, 0.2200 dollars")
    prompt.ask("b", "Second.")
    assert prompt.leave() == 0
    prompt = start(replies(Reply(text="Third.")), "-c")
    prompt.wait_for("$0.4400")
    prompt.ask("c", "Third.")
    prompt.wait_for("$0.6600")
    prompt.say("/cost", "session: 200 tokens in, 20 out, 0.2200 dollars")
    prompt.wait_for("conversation, with earlier sessions: 600 tokens in, 60 out, 0.6600 dollars")
    prompt.type("/back 2")
    prompt.wait_for("back to before your message 2")
    prompt.clear("b")
    prompt.say("/cost", "session: 0 tokens in, 0 out, 0.0000 dollars")
    prompt.wait_count("conversation, with earlier sessions: 600 tokens in, 60 out, 0.6600 dollars", 2)
    assert prompt.leave() == 0


def test_undo_without_a_turn_names_what_takes_back_a_typed_command(program: Program, start: Start) -> None:
    file = program.workspace / "a.txt"
    file.write_text("one\n")
    prompt = start(replies(), *policy(program))
    prompt.type("!!ls")
    prompt.say("/undo", "there is no turn to undo")
    assert "harness undo" not in prompt.text()
    prompt.type("!!echo two > a.txt")
    prompt.wait_until(lambda: file.read_text() == "two\n", "the command did not run")
    (session,) = [str(record["session"]) for record in program.records() if record["kind"] == "session_started"]
    prompt.say("/undo", f"there is no turn to undo; `harness undo --session {session}` takes back")
    assert program.run("undo", "--session", session).code == 0
    assert file.read_text() == "one\n"
    assert prompt.leave() == 0


def test_cost_of_a_conversation_is_unknown_once_a_log_of_it_is_gone(program: Program, start: Start) -> None:
    write_config(program, PRICED)
    prompt = start(replies(Reply(text="First.")))
    prompt.ask("a", "First.")
    assert prompt.leave() == 0
    (first,) = program.logs()
    prompt = start(replies(Reply(text="Second.")), "-c")
    prompt.ask("b", "Second.")
    assert prompt.leave() == 0
    first.unlink()
    prompt = start(replies(), "-c")
    prompt.say("/cost", "session: 0 tokens in, 0 out, 0.0000 dollars")
    prompt.wait_for("conversation, with earlier sessions: 200 tokens in, 20 out, cost unknown")
    assert prompt.leave() == 0


def test_mode_stays_when_the_user_goes_back(program: Program, start: Start) -> None:
    script = turns((write("a.txt", "one\n"), "First."), (write("b.txt", "two\n"), "Second."))
    prompt = start(replies(*script))
    prompt.say("/mode edits", "mode edits")
    prompt.ask("a", "First.")
    prompt.type("/back 1")
    prompt.press("undo", "c")
    prompt.wait_for("back to before your message 1; files stay as they are")
    prompt.wait_until(lambda: prompt.cursor_row() == "edits> a", "the mode or the words are gone")
    assert "grant ended" not in prompt.text()
    prompt.send("\x15")
    prompt.ask("b", "Second.")
    assert (program.workspace / "b.txt").exists(), "the edit ran unasked"
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0


def test_name_follows_a_conversation_and_lists_it(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="First.")))
    prompt.say("/name", "this conversation has no name")
    prompt.ask("look at kiwi.py", "First.")
    prompt.say("/fork", "forked session")
    prompt.say("/name the  kiwi bug", "named: the  kiwi bug")
    prompt.type("/back 1")
    prompt.wait_for("back to before your message 1")
    prompt.clear("look at kiwi.py")
    prompt.say("/name", "named: the  kiwi bug")
    assert prompt.leave() == 0
    prompt = start(replies(Reply(text="Second.")), "-c")
    prompt.ask("go on", "Second.")
    prompt.type("/resume")
    prompt.wait_for("look at kiwi.py  just now")  # the session that was forked before it had a name
    prompt.wait_for("the  kiwi bug    just now")
    prompt.close_menu()
    assert prompt.leave() == 0
    listed = [json.loads(line) for line in program.run("sessions", "list", "--json").out.splitlines()]
    assert [session["name"] for session in listed] == [None, "the  kiwi bug", "the  kiwi bug", "the  kiwi bug"]
    assert [session["prompt"] for session in listed] == ["look at kiwi.py", "look at kiwi.py", "", "go on"]
    assert program.run("audit", "verify").code == 0


def test_picker_previews_the_chosen_session_and_deletes_it_after_typed_words(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="Kiwis are green.")))
    prompt.ask("which colour is a kiwi?", "Kiwis are green.")
    assert prompt.leave() == 0
    prompt = start(replies(Reply(text="Yes.")))
    prompt.ask("another one", "Yes.")
    assert prompt.leave() == 0
    (old, kept) = program.logs()
    prompt = start(replies())
    prompt.type("/resume")
    prompt.wait_for("another one")
    prompt.send("kiwi")
    prompt.wait_until(lambda: "another one" not in prompt.text(), "the menu is not filtered")
    prompt.send("\x1b[B")
    prompt.wait_for(" first: which colour is a kiwi?")
    prompt.wait_for("answer: Kiwis are green.")
    prompt.send("\x1b[3~")
    prompt.wait_until(lambda: prompt.cursor_row().startswith("> /delete "), "the line does not delete")
    prompt.send("\r")
    prompt.wait_for("type 'for good' after it")
    assert old.exists()
    prompt.wait_until(lambda: prompt.cursor_row().startswith("> /delete "), "the line is not ready")
    prompt.send("for good")
    prompt.wait_until(lambda: prompt.cursor_row().endswith("for good"), "the words are not in the line")
    prompt.send("\r")
    prompt.wait_for("deleted: ")
    assert not old.exists()
    assert kept.exists()
    (here,) = set(program.logs()) - {kept}
    identity = next(read_log(str(here)))["session"]
    prompt.say(f"/delete {identity} for good", "the session is not deleted: it is in use")
    assert prompt.leave() == 0
    assert program.run("audit", "verify").code == 0
