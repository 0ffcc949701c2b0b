"""The commands of the prompt, each at a pseudo-terminal: what they do, what they refuse, and that the log stays whole."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from repl_scene import WIDE, Prompt, Start, prompts, write_config
from rows import all_rows
from screen_scene import CTRL_C, DOWN, ENTER, ENTER_KEY, TAB

from harness.actions import Decision
from harness.app.commands.help import command_table
from harness.app.commands.notes_to_model import NotesToModel
from harness.app.commands.slash_command import Ask, Do, RunAsPerson, Wrong, meaning_of, slash_commands
from harness.app.policy.judged_call import action_for, tool_use
from harness.app.repl.repl_command import how_it_ended
from harness.files.workspace import Workspace
from harness.messages import Message, Role, RunResult, StopReason
from harness.models.scripted import Reply, call, replies
from harness.policy.loader import load_policy, parse_policy
from harness.policy.verdict import evaluate
from harness.session.person_message import (
    INTERRUPTED,
    PLAN_ON,
    PLAN_OVER,
    RAN_BY_PERSON,
    UNANSWERED,
    own_words,
    typed_words,
)
from harness.session.policies import put_over, with_plan_mode
from harness.terminal.console import Look
from harness.terminal.tables import drawn

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.terminal

NO_NAME = "/ begins a command: type on, or Tab, and choose; /help says what each does"
WRITE = call("write_file", path="a.txt", content="new\n")


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def kinds(program: Program) -> list[object]:
    return [record["kind"] for record in program.records()]


def verified(program: Program) -> bool:
    done = program.run("audit", "verify")
    return done.code == 0


@all_rows(
    ("line", "expected"),
    [
        pytest.param("hello", Ask(text="hello"), id="text"),
        pytest.param("exit now", Ask(text="exit now"), id="words that begin with one of a shell"),
        pytest.param("/etc/hosts says this", Ask(text="/etc/hosts says this"), id="a path"),
        pytest.param("/", Wrong(problem=NO_NAME), id="a slip of the finger"),
        pytest.param("//", Wrong(problem=NO_NAME), id="two of them"),
        pytest.param("!ls -l", RunAsPerson(text="ls -l", model_hears=True), id="a command of the person"),
        pytest.param("!! ls", RunAsPerson(text="ls", model_hears=False), id="one that nobody is told of"),
        pytest.param("!", Wrong(problem="! and a command runs it as you, !! tells nobody"), id="no command"),
    ],
)
def test_line_has_exactly_one_meaning(line: str, expected: object) -> None:
    assert meaning_of(line) == expected


@all_rows(
    ("line", "name", "rest"),
    [
        ("/why", "/why", ""),
        ("/WHY", "/why", ""),
        ("/exit", "/quit", ""),
        ("/policy explain git  commit -m 'a  b'", "/policy", "explain git  commit -m 'a  b'"),
        ("/export my notes.md", "/export", "my notes.md"),
        ("/fork\t2", "/fork", "2"),
        ("exit", "/quit", ""),
        ("Quit", "/quit", ""),
        ("?", "/help", "keys"),
    ],
)
def test_known_word_is_a_command_with_its_unchanged_rest(line: str, name: str, rest: str) -> None:
    meaning = meaning_of(line)
    assert isinstance(meaning, Do)
    assert (meaning.command.name, meaning.rest) == (name, rest)


@all_rows(
    ("line", "told"),
    [
        ("/polic", "did you mean /policy?"),
        ("/exi", "did you mean /exit?"),
        ("/xyzzy", "known: /back, /clear"),
        ("/clear everything", "usage: /clear"),
        ("/fork 1 2", "usage: /fork [TURN]"),
    ],
)
def test_invalid_command_is_reported_and_not_sent(line: str, told: str) -> None:
    meaning = meaning_of(line)
    assert isinstance(meaning, Wrong)
    assert told in meaning.problem


GREETING = """
from harness.plugin import SlashCommand, HelpGroup


def hello(conversation, rest):
    conversation.say(f"hello, {rest}")


COMMANDS = (
    SlashCommand(name="/hello", arguments="NAME", summary="greet somebody", group=HelpGroup.WORK, run=hello, aliases=("/hi",)),
)
"""
PROGRAM = """
import sys
import harness.app.commands
harness.app.commands.__path__.append(sys.argv.pop(1))
from harness.app.main import program
program()
"""


def test_a_command_is_one_module_in_the_folder_of_commands(program: Program, tmp_path: Path) -> None:
    """Help, Tab, the nearest name, how it is used, an alias and the command itself: nothing else has to know it."""
    folder = tmp_path / "commands"
    folder.mkdir()
    (folder / "hello.py").write_text(GREETING)
    write_config(program)
    words = [sys.executable, "-c", PROGRAM, str(folder), "--base-url", program.serve(replies()), "--model", "scripted"]
    with Prompt(words, columns=120, lines=60, cwd=program.workspace, environment=program.environment) as prompt:
        prompt.say("/help", "/hello NAME")
        prompt.say("/helo", "did you mean /hello?")
        prompt.say("/hello to you", "usage: /hello NAME")
        prompt.say("/hi you", "hello, you")
        prompt.wait_prompt()
        prompt.send("/hel" + TAB)
        prompt.wait_for("greet somebody")
        prompt.send(CTRL_C)
        assert prompt.leave() == 0


def test_command_names_and_aliases_are_unique() -> None:
    names = [name for command in slash_commands() for name in (command.name, *command.aliases)]
    assert sorted(names) == sorted(set(names))


@all_rows("width", [24, 40, 80, 200])
def test_help_fits_the_width(width: int) -> None:
    rows = [(one.usage, one.summary) for one in slash_commands()]
    lines = drawn(command_table(rows), Look(), width)
    assert max(map(len, lines)) <= width
    assert [one.name for one in slash_commands() if not any(one.name in line for line in lines)] == []


@pytest.mark.parametrize("columns", [40, 80])
def test_help_names_every_command_and_the_keys(start: Start, columns: int) -> None:
    prompt = start(replies(), columns=columns, lines=40)
    prompt.say("/help", "never answers")
    text = prompt.text()
    assert [one.name for one in slash_commands() if one.name not in text] == []
    assert "Ctrl-C" in text
    assert max(map(len, prompt.rows())) <= columns
    assert prompt.leave() == 0


def test_showing_commands_print_their_text_and_send_no_request(program: Program, start: Start) -> None:
    """Each showing command before and after a turn; none of them sends anything."""
    write_config(program, "[terminal]\ndead_seconds = 0.15\n[prices.scripted]\ninput = 1\noutput = 2\n")
    prompt = start(replies(Reply(text="It is so.", calls=(call("read_file", path="b.txt"),)), Reply(text="Done.")))
    (program.workspace / "b.txt").write_text("content\n" * 10)
    prompt.say("/why", "nothing was decided yet")
    prompt.say("/diff", "changed no file")
    prompt.say("/grants", "nothing is granted")
    prompt.say("/cost", "session: 0 tokens in, 0 out")
    prompt.ask("look", "Done.")
    prompt.say("/why", "nothing more is needed")
    prompt.say("/cost", "turn 1: 400 tokens in, 40 out, 0.0005 dollars  2 requests  scripted")
    prompt.say("/context", "read_file {")
    prompt.say("/log 1", "head:")
    prompt.say("/log many", "usage: /log [LINES]")
    prompt.say("/tools", "edit_file   confirm  default for edit_file")
    prompt.say("/policy show", "walls: ")
    prompt.say("/policy explain git push -f", "decided by: rule force-push")
    prompt.say("/policy explain b.txt", "write_file: b.txt")
    prompt.say("/policy explain ", "usage: /policy explain")
    prompt.say("/policy explain mcp__srv__x {}", "The tool 'mcp__srv__x' does not exist")
    prompt.say("/policy explain --tool mcp__srv__y {}", "The tool 'mcp__srv__y' does not exist")
    prompt.say("/policy explain --tool read_file b.txt", "read_file: b.txt")
    prompt.say("/policy nonsense", "unknown action 'nonsense'")
    prompt.say("/policy reload all", "usage: /policy reload, without further words")
    prompt.say("/model", "model scripted")
    prompt.wait_for("answers now")  # the menu of models
    prompt.close_menu()
    prompt.say("/diff --all", "usage: /diff")
    prompt.say("/polcy", "did you mean /policy?")
    assert len(program.players[0].requests) == 2
    assert prompt.leave() == 0
    assert verified(program)


def test_diff_lists_changes_of_the_session_and_unknown_ones(program: Program, start: Start) -> None:
    file = program.workspace / "a.txt"
    file.write_text("old\n")
    changes = (call("read_file", path="a.txt"), WRITE, call("bash", command="mkdir d"))
    prompt = start(replies(Reply(calls=changes), Reply(text="Done.")))
    prompt.type("go")
    prompt.press("write_file", "y")
    prompt.press("bash", "y")
    prompt.wait_for("Done.")
    prompt.say("/diff --stat", "a.txt  [call 2]: changed, +1 -1 lines")
    assert "- old" not in prompt.text().partition("/diff --stat")[2]
    prompt.say("/diff", "+ new")
    assert "- old" in prompt.text().partition("/diff --stat")[2]
    prompt.wait_for("d  [call 3]: new folder")
    file.unlink()
    prompt.say("/diff", "a.txt  [call 2]: removed")
    file.write_text("old\n")
    prompt.say("/diff", "it is again what it was")
    assert prompt.leave() == 0
    assert verified(program)


def test_known_secrets_are_masked_in_changes_and_turns(program: Program, start: Start) -> None:
    secret = "sk-verysecret-0123456789abcdefghij"
    program.environment["OPENAI_API_KEY"] = secret
    write = call("write_file", path="a.txt", content=f"key={secret}\n")
    prompt = start(replies(Reply(calls=(write,)), Reply(text="Done.")))
    prompt.type(f"write {secret}")
    prompt.press("write_file", "y")
    prompt.wait_for("Done.")
    prompt.say("/diff", "new, +1")
    prompt.type("/undo")
    prompt.press("undo", "c")
    prompt.wait_for("forgotten: write ")
    told = prompt.unwrapped().partition("/diff")[2]
    assert "+ key=" in told
    assert secret not in told
    assert prompt.leave() == 0


def test_user_command_runs_and_reaches_the_model_once(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="I see."), Reply(text="Yes.")))
    prompt.say("!echo pomegranate; touch made", "the model is told with your next message")
    prompt.say("!!echo kiwi", "  | kiwi")
    prompt.say("!git push -f", "Denied by rule force-push")
    prompt.say("!!seq 1 9000", "more lines")
    prompt.ask("what was it?", "I see.")
    prompt.ask("again?", "Yes.")
    assert prompt.leave() == 0
    first, second = (str(request["messages"]) for request in program.players[0].requests)
    assert (program.workspace / "made").exists()
    assert ("pomegranate" in first, "kiwi" in first, "force-push" in first) == (True, False, False)
    assert first.count("The person ran this command") == second.count("The person ran this command") == 1
    proposed = [record for record in program.records() if record["kind"] == "call_proposed"]
    assert [record.get("by") for record in proposed] == ["person"] * 4
    assert verified(program)


def test_long_output_is_shortened_and_plan_mode_is_still_announced(program: Program, start: Start) -> None:
    """There is only so much room for outputs, and none is needed for plan mode, which a forgotten turn does not end."""
    prompt = start(replies(Reply(text="Long."), Reply(text="Again."), Reply(text="Over.")))
    prompt.say("!seq 1 2100", "more lines")
    prompt.wait_for("the model is told with your next message")
    prompt.type("!printf %07000d 1")
    prompt.wait_count("the model is told with your next message", 2)
    prompt.say("!printf %07000d 2", "there is no more room")
    prompt.say("/plan", "plan mode: nothing")
    for times, (line, answer) in enumerate((("well?", "Long."), ("and now?", "Again.")), 1):
        prompt.type(line)
        prompt.wait_for(answer)
        prompt.press("plan", "n", times=times)  # a no to one plan is no answer to the next
        prompt.wait_count("plan mode stays on", times)
        prompt.say("/undo", f"forgotten: {line}")
    prompt.say("/plan off", "plan mode is left")
    prompt.ask("hello", "Over.")
    assert prompt.leave() == 0
    first, second, last = (str(request["messages"]) for request in program.players[0].requests)
    assert (first.count("characters left out"), second.count("characters left out")) == (2, 0)
    assert len(first) < 30_000
    assert ("plan mode on" in first, "plan mode on" in second, "plan mode" in last) == (True, True, False)


ON, OVER = Message(role=Role.USER, content=f"{PLAN_ON}\n\nlook"), Message(role=Role.USER, content=f"{PLAN_OVER}\n\ngo")
HELLO = Message(role=Role.USER, content="hello")


@all_rows(
    ("messages", "plans", "begins"),
    [
        pytest.param((), False, "go on", id="nothing to say"),
        pytest.param((), True, PLAN_ON, id="it is on"),
        pytest.param((ON, HELLO), True, "go on", id="it was said"),
        pytest.param((ON, HELLO), False, PLAN_OVER, id="it is over, also where the program was killed meanwhile"),
        pytest.param((ON, OVER, HELLO), False, "go on", id="that was said too"),
        pytest.param((ON, OVER), True, PLAN_ON, id="on again"),
        pytest.param((Message(role=Role.USER, content=f"$ cat\n\n{PLAN_ON}"),), True, PLAN_ON, id="said by an output"),
        pytest.param((Message(role=Role.TOOL, content=PLAN_ON, tool_call_id="1"),), True, PLAN_ON, id="said by a tool"),
        pytest.param((Message(role=Role.USER, content=PLAN_OVER), ON), True, "go on", id="the last word counts"),
    ],
)
def test_model_is_informed_of_plan_mode_after_forgotten_turns(
    messages: tuple[Message, ...], plans: bool, begins: str
) -> None:
    answered = (*messages, Message(role=Role.ASSISTANT, content="Well.")) if messages else ()
    said = NotesToModel().message("go on", answered, plans=plans)
    assert said.startswith(begins)
    assert said.endswith("go on")
    assert (PLAN_ON in said, PLAN_OVER in said) == (begins is PLAN_ON, begins is PLAN_OVER)


@all_rows(
    ("last", "interrupted", "between"),
    [
        pytest.param(HELLO, True, INTERRUPTED, id="stopped"),
        pytest.param(HELLO, False, UNANSWERED, id="failed"),
        pytest.param(Message(role=Role.ASSISTANT, content="Hello."), True, "", id="answered in part"),
        pytest.param(Message(role=Role.TOOL, content="x", tool_call_id="1"), True, "", id="a call was stopped"),
        pytest.param(Message(role=Role.SYSTEM, content="You are."), False, "", id="nothing was said"),
    ],
)
def test_the_model_knows_that_a_message_before_got_no_answer(last: Message, interrupted: bool, between: str) -> None:
    said = NotesToModel().message("do that", (last,), plans=False, interrupted=interrupted)
    assert said == (f"{between}\n\ndo that" if between else "do that")
    assert own_words(said) == "do that"
    assert typed_words(f"hello\n\n{said}") == "hello\n\ndo that"


def test_own_words_leave_out_the_output_of_user_commands() -> None:
    notes = NotesToModel()
    for printed, end in (("a\n\nb", "exit code 0"), ("[exit code 0]\n\nforged", "exit code -9"), ("", "timeout")):
        notes.add(f"{RAN_BY_PERSON}\n$ ls\n{printed}\n[{end}]")
    assert own_words(notes.message("do that\n\nand this", (HELLO,), plans=True)) == "do that\n\nand this"


@all_rows(
    ("stop", "detail", "error", "told"),
    [
        pytest.param(StopReason.COMPLETED, "", "", "", id="done"),
        pytest.param(StopReason.MODEL_ERROR, "no key", "no key", "", id="it was shown"),
        pytest.param(StopReason.MODEL_ERROR, "no key", "", "model error: no key", id="it was not"),
        pytest.param(StopReason.MODEL_ERROR, "long. No help.", "long.", "model error: No help.", id="the rest of it"),
        pytest.param(StopReason.INTERRUPTED, "interrupted while x", "", "interrupted while x", id="not twice"),
    ],
)
def test_end_of_a_turn_is_reported_once(stop: StopReason, detail: str, error: str, told: str) -> None:
    assert how_it_ended(RunResult(stop=stop, text="", detail=detail), error) == told


def test_outputs_are_sent_once_up_to_a_limit() -> None:
    told = NotesToModel()
    assert [told.add("x" * size) for size in (6_000, 6_000, 4_001, 4_000, 1)] == [True, True, False, True, False]
    assert told.message("go", (), plans=False).count("x") == 16_000
    assert told.message("go", (), plans=False) == "go"
    told.add("y")
    assert (told.forget(), told.forget(), told.message("go", (), plans=False)) == (1, 0, "go")


def test_plan_mode_refuses_changes_until_the_plan_is_approved(program: Program, start: Start) -> None:
    prompt = start(
        replies(
            Reply(calls=(WRITE, call("bash", command="touch b"), call("bash", command="ls"))),
            Reply(text="The plan: write a.txt."),
            Reply(text="Which name?"),
            Reply(text="A better plan."),
            Reply(calls=(WRITE,)),
            Reply(text="Carried out."),
        )
    )
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.say("/plan on", "plan mode is on already")
    prompt.say("!touch c", "Denied by")
    prompt.type("make a.txt")
    prompt.press("plan", "r")
    prompt.send_words("no, but (Enter sends it, Esc goes back): ", "better, please")
    prompt.send(ENTER)
    prompt.wait_for("Which name?")
    prompt.type("a.txt")
    prompt.press("plan", "y", times=2)
    prompt.wait_for("> The plan is approved: carry it out.")
    prompt.press("write_file", "y")
    prompt.wait_for("Carried out.")
    assert prompt.leave() == 0
    assert sorted(os.listdir(program.workspace)) == ["a.txt"]
    requests = [str(request["messages"]) for request in program.players[0].requests]
    assert requests[0].count("plan mode on") == requests[3].count("plan mode on") == 1
    assert ("has left plan mode" in requests[3], requests[4].count("has left plan mode")) == (False, 1)
    assert "Plan mode is on" in requests[1]
    assert "The plan is approved" in requests[4]
    changed = [(r["why"], r["policy"], asked(r)) for r in program.records() if r["kind"] == "policy_changed"]
    assert changed == [
        ("plan", "default+plan", None),
        ("plan kept", "default+plan", ("no", "person", "better, please")),
        ("plan left", "default", ("yes", "person", "")),
    ]
    ended = [r["status"] for r in program.records() if r["kind"] == "outcome"]
    assert ended == ["denied", "denied", "denied", "ok", "ok"]
    assert verified(program)


def asked(record: Mapping[str, object]) -> tuple[object, ...] | None:
    found = record.get("asked")
    return tuple(found[name] for name in ("answer", "by", "words")) if isinstance(found, dict) else None


def test_comments_on_a_plan_reach_the_model_as_the_next_message(program: Program, start: Start) -> None:
    """They are the next message, never a command; the log holds question and answer."""
    prompt = start(replies(Reply(text="The plan."), Reply(text="A better plan.")))
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.type("make a.txt")
    prompt.press("plan", "r")
    prompt.send_words("no, but (Enter sends it, Esc goes back): ", "!touch ZEBRA")
    prompt.send(ENTER)
    prompt.wait_for("> !touch ZEBRA")
    prompt.press("plan", "n", times=2)
    prompt.wait_for("plan mode stays on")
    assert prompt.leave() == 0
    assert "!touch ZEBRA" in str(program.players[0].requests[-1]["messages"])
    assert not (program.workspace / "ZEBRA").exists()
    answers = [asked(r) for r in program.records() if r["kind"] == "policy_changed"]
    assert answers == [None, ("no", "person", "!touch ZEBRA"), ("no", "person", "")]
    assert [r["text"] for r in program.records() if r["kind"] == "user_message"][1] == "!touch ZEBRA"
    assert "asked: leave plan mode and carry the plan out? no by person" in program.run("audit", "show").out
    assert verified(program)


def test_next_plan_is_put_to_the_user_after_a_refused_one(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="The plan."), Reply(text="A better plan."), Reply(text="Carried out.")))
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.type("make a.txt")
    prompt.press("plan", "n")
    prompt.wait_for("plan mode stays on: say what the plan lacks")
    prompt.type("better, please")
    prompt.press("plan", "y", times=2)
    prompt.wait_for("> The plan is approved: carry it out.")
    prompt.wait_for("Carried out.")
    assert prompt.leave() == 0
    assert [r["why"] for r in program.records() if r["kind"] == "policy_changed"] == ["plan", "plan kept", "plan left"]


def test_a_grant_that_is_revoked_after_a_no_to_a_plan_is_over(program: Program, start: Start) -> None:
    (program.home / "own.toml").write_text('version = 1\n[tools]\nread_file = "confirm"\n')
    (program.workspace / "a.txt").write_text("kiwi\n")
    read = Reply(calls=(call("read_file", path="a.txt"),))
    script = (read, Reply(text="One."), Reply(text="The plan."), read, Reply(text="Two."))
    prompt = start(replies(*script), "--policy", f"{program.home}/own.toml")
    prompt.type("go")
    prompt.press("read_file", "s")
    prompt.wait_for("other keys go back")
    prompt.send("1")
    prompt.wait_for("One.")
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.type("think")
    prompt.press("plan", "n")
    prompt.wait_for("plan mode stays on")
    prompt.say("/grants", "in plan mode only those to read count")
    prompt.say("/grants revoke all", "revoked: grant-1")
    prompt.type("again")
    prompt.press("read_file", "n", times=2)
    prompt.wait_for("Two.")
    prompt.press("plan", "n", times=2)
    assert prompt.leave() == 0


def test_plan_mode_can_be_left_without_a_plan(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="Hello.")))
    prompt.say("/plan perhaps", "usage: /plan")
    prompt.say("/plan off", "plan mode is off already")
    prompt.say("/plan", "plan mode: nothing")
    prompt.say("/plan", "plan mode is left")
    prompt.ask("hello", "Hello.")
    assert prompt.leave() == 0
    assert "plan asks" not in prompt.text()
    assert verified(program)


def test_status_line_names_unasked_tools_outside_plan_mode_only(program: Program, start: Start) -> None:
    (program.home / "own.toml").write_text('version = 1\n[tools]\nwrite_file = "auto"\n')
    prompt = start(replies(), "--policy", f"{program.home}/own.toml")
    prompt.wait_for("write_file runs UNASKED | mode ask")
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.wait_for("PLAN: nothing is changed | scripted")
    prompt.wait_prompt()
    assert "UNASKED" not in prompt.text()
    prompt.say("/plan", "plan mode is left")
    prompt.wait_for("write_file runs UNASKED | mode ask")
    assert prompt.leave() == 0


SHIFT_TAB = "\x1b[Z"


def test_shift_tab_cycles_the_modes_keeps_the_line_and_is_logged(program: Program, start: Start) -> None:
    """Also by words; edits run unasked in their mode, commands do not, and there is no mode that allows everything."""
    touch = call("bash", command="touch b.txt")
    script = (Reply(calls=(WRITE,)), Reply(text="One."), Reply(calls=(touch,)), Reply(text="Two."))
    prompt = start(replies(*script))
    prompt.wait_for("mode ask | ")
    prompt.write("half a line")
    for mark, said in (
        ("edits> ", "EDITS run unasked | "),
        ("walls> ", "WALLS: what fits them runs unasked | "),
        ("plan> ", "PLAN: nothing is changed | "),
    ):
        prompt.send(SHIFT_TAB)
        prompt.wait_until(lambda mark=mark: prompt.before_cursor() == f"{mark}half a line", "the line is not kept")  # type: ignore[misc]
        prompt.wait_for(said)
    prompt.send(SHIFT_TAB)
    prompt.wait_until(lambda: prompt.before_cursor() == "> half a line", "it does not begin again")
    prompt.send(CTRL_C)
    prompt.say("/mode yolo", "unknown mode 'yolo'; known: ask, edits, walls, plan")
    prompt.say("/mode edits", "mode edits: edits run unasked")
    prompt.ask("go", "One.")
    assert (program.workspace / "a.txt").read_text() == "new\n"
    assert "write_file asks" not in prompt.text()
    prompt.type("and then")
    prompt.press("bash", "n")
    prompt.wait_for("Two.")
    prompt.say("/mode", "mode edits")
    prompt.wait_for("nothing is changed until a plan is approved")
    prompt.close_menu()
    prompt.say("/plan", "plan mode: nothing")
    prompt.say("/plan", "plan mode is left")
    prompt.wait_until(lambda: prompt.cursor_row() == ">", "a mode ends where another begins")
    assert prompt.leave() == 0
    told = [r for r in program.records() if r["kind"] in ("grant", "policy_changed")]
    switches = [(r["kind"], r.get("change") or r.get("why")) for r in told]
    edits, plan = (
        [("grant", "mode"), ("grant", "revoked")],
        [("policy_changed", "plan"), ("policy_changed", "plan left")],
    )
    walls = [("grant", "mode"), ("grant", "mode"), ("grant", "revoked"), ("grant", "revoked")]
    assert switches == [*edits, *walls, *plan, *edits, *plan]
    assert verified(program)


def test_esc_esc_returns_to_an_earlier_message_for_editing(program: Program, start: Start) -> None:
    prompt = start(replies(*(Reply(text=word) for word in ("One.", "Two.", "Three."))))
    prompt.wait_prompt()
    prompt.say("/back 1", "there is no message of yours to go back to")
    prompt.ask("first words", "One.")
    prompt.ask("second words", "Two.")
    prompt.say("/back 3", "usage: /back N, the number of one of your messages: 1 to 2")
    prompt.wait_prompt()
    prompt.go_back("2  second words")
    prompt.wait_for("1  first words")
    prompt.send(DOWN)
    prompt.wait_until(lambda: prompt.cursor_row() == "> /back 2", "nothing is chosen")
    prompt.send(ENTER)
    prompt.wait_for("back to before your message 2; files stay as they are")
    prompt.wait_until(lambda: prompt.cursor_row() == "> second words", "the words are not in the line")
    prompt.send(" changed" + ENTER_KEY)
    prompt.wait_for("Three.")
    prompt.wait_prompt()
    assert prompt.leave() == 0
    sent = str(program.players[0].requests[2]["messages"])
    assert ("One." in sent, "Two." in sent, "second words changed" in sent) == (True, False, True)
    assert verified(program)


def test_model_and_policy_are_chosen_from_lists(program: Program, start: Start) -> None:
    write_config(program, "[terminal]\ndead_seconds = 0.15\n[prices.dear-one]\ninput = 1\noutput = 2\n")
    prompt = start(replies(), "--policy", "default")
    prompt.say("/model", "configured")
    prompt.wait_for("answers now")
    prompt.send(ENTER)  # nothing is chosen by Enter alone
    prompt.wait_prompt()
    prompt.write("/model dea")
    prompt.wait_for("dear-one")
    prompt.send(DOWN)
    prompt.wait_until(lambda: prompt.cursor_row() == "> /model dear-one", "nothing is chosen")
    prompt.send(ENTER)
    prompt.wait_for("from now on dear-one answers")
    prompt.say("/policy", "nothing is changed")
    prompt.wait_for("holds now; asks before")
    prompt.close_menu()
    prompt.say("/policy use readonly", "policy: shipped readonly")
    prompt.wait_for("| policy readonly |")
    prompt.say("/policy use nothing-like-it", "unknown policy 'nothing-like-it'")
    (program.home / "dear.toml").write_text("version = 1\n[limits]\ncost = 1\n")
    prompt.say(f"/policy use {program.home}/dear.toml", "policy: ")
    prompt.say("/model scripted", "the cost is limited")
    prompt.say("/policy use readonly", "policy: shipped readonly")
    prompt.say("/model scripted", "from now on scripted answers")
    prompt.say(f"/policy use {program.home}/dear.toml", "needs the prices of 'scripted'")
    prompt.say("/policy reload", "say what they said before")
    assert prompt.leave() == 0
    assert [r["why"] for r in program.records() if r["kind"] == "policy_changed"] == ["another"] * 3
    assert verified(program)


def test_prompt_names_the_writable_paths_of_the_active_policy(program: Program, start: Start) -> None:
    for name in ("one", "two"):
        (program.home / name).mkdir()
        rules = f'version = 1\n[tools]\nbash = "confirm"\n[sandbox]\nwrite = ["~/{name}"]\n'
        (program.home / f"{name}.toml").write_text(rules)
    make = Reply(calls=(call("bash", command="make"),))
    script = replies(make, Reply(text="Refused."), make, Reply(text="Again."))
    prompt = start(script, "--policy", f"{program.home}/one.toml")
    prompt.type("go")
    prompt.press("bash", "n")
    prompt.say(f"/policy use {program.home}/two.toml", "policy: ")
    prompt.type("go on")
    prompt.wait_question("bash", 2)
    prompt.wait_keys()
    assert "write ~/" not in prompt.unwrapped()
    prompt.send("n")
    assert prompt.leave() == 0


def test_a_pinned_policy_is_not_read_again_with_another_content(program: Program, start: Start) -> None:
    path = program.home / "mine.toml"
    path.write_text('version = 1\n[tools]\nbash = "confirm"\n')
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    prompt = start(replies(), "--policy", str(path), "--policy-sha256", digest)
    prompt.say("/policy reload", "say what they said before")
    path.write_text('version = 1\n[tools]\nbash = "auto"\n')
    prompt.say("/policy reload", "and --policy-sha256 says")
    prompt.say("/policy use nothing-like-it", "unknown policy 'nothing-like-it'")
    prompt.say("/policy reload", "and --policy-sha256 says")
    prompt.say("/policy use readonly", "policy: shipped readonly")
    assert prompt.leave() == 0


def test_fork_keeps_the_model_of_its_last_turn(program: Program, start: Start) -> None:
    """What that one wants back with its reply goes to no other."""
    prompt = start(replies(Reply(text="One."), Reply(text="Two.")))
    prompt.ask("first", "One.")
    prompt.ask("second", "Two.")
    prompt.say("/model other", "from now on other answers")
    prompt.say("/fork 1", "model scripted then, other now")
    assert prompt.leave() == 0


def test_fork_and_resume_begin_sessions_in_the_same_log(program: Program, start: Start) -> None:
    prompt = start(replies(*(Reply(text=word) for word in ("One.", "Two.", "Three.", "Four."))))
    prompt.say("/resume", "there is no other session")
    prompt.ask("first", "One.")
    prompt.ask("second", "Two.")
    prompt.say("/fork 7", "the session has only 2 turns")
    prompt.say("/fork x", "usage: /fork")
    prompt.say("!echo kiwi", "the model is told with your next message")
    prompt.say("/fork 1", "forked session")
    prompt.wait_for("the model is not told of 1 command")
    prompt.say("/diff", "this conversation changed no file")
    prompt.ask("third", "Three.")
    (original,) = {str(r["session"]) for r in program.records() if r.get("text") == "second"}
    prompt.say("/resume zzz", "no session's name begins with 'zzz'")
    prompt.say("/resume", "just now, 2 turns")
    prompt.close_menu()
    prompt.say(f"/resume {original}", "resumed session")
    prompt.ask("fourth", "Four.")
    assert prompt.leave() == 0
    third, fourth = (str(request["messages"]) for request in program.players[0].requests[2:])
    assert ("first" in third, "second" in third, "kiwi" in third) == (True, False, False)
    assert ("first" in fourth, "second" in fourth, "third" in fourth) == (True, True, False)
    started = [r for r in program.records() if r["kind"] == "session_started"]
    origins = [r.get("origin") for r in started]
    assert [o["how"] for o in origins if isinstance(o, dict)] == ["forked", "resumed"]
    assert kinds(program).count("session_ended") == 3
    assert verified(program)


def test_resume_continues_a_session_of_another_log(program: Program, start: Start) -> None:
    before = start(replies(Reply(text="One.")))
    before.ask("remember the pomegranate", "One.")
    assert before.leave() == 0
    (session,) = {str(r["session"]) for r in program.records()}
    prompt = start(replies(Reply(text="Two.")))
    prompt.say("/resume", "remember the pomegranate")
    prompt.send("pomegranate")
    prompt.wait_until(lambda: prompt.cursor_row() == "> /resume pomegranate", "it is not looked for")
    prompt.wait_for("1 turn")
    prompt.send(ENTER)
    prompt.wait_until(lambda: prompt.cursor_row() == f"> /resume {session}", "it is not chosen")
    prompt.send(ENTER)
    prompt.wait_for("resumed session")
    prompt.ask("what was it?", "Two.")
    assert prompt.leave() == 0
    assert "pomegranate" in str(program.players[-1].requests[-1]["messages"])
    assert len(program.logs()) == 2
    assert verified(program)


def test_title_is_the_first_prompt_and_empty_sessions_need_all(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="There.")))
    prompt.say("!echo mine", "the model is told with your next message")
    prompt.say("/plan", "plan mode: nothing is changed")
    prompt.type("where is it?")
    prompt.press("plan", "n")
    assert prompt.leave() == 0
    prompt = start(replies())
    prompt.say("!echo alone", "the model is told with your next message")
    assert prompt.leave() == 0
    (told,) = program.run("sessions", "list").out.splitlines()
    assert told.endswith("1 turn  scripted  completed  where is it?")
    everything = program.run("sessions", "list", "--all").out.splitlines()
    assert [line.split("  ")[5] for line in everything] == ["where is it?", "(nothing typed)"]


def test_export_creates_a_new_private_file_and_never_overwrites(program: Program, start: Start) -> None:
    hostile = "## You\n```\nfine\x1b[2J"
    script = replies(Reply(text=hostile, calls=(call("bash", command="echo '````'"),)), Reply(text="Done."))
    prompt = start(script, columns=WIDE)
    prompt.ask("go", "Done.")
    prompt.say("/export notes.md", "written: ")
    prompt.say("/export notes.md", "is there already")
    prompt.say("/export no/such/folder.md", "cannot be written")
    prompt.say("/export", "written:")
    assert prompt.leave() == 0
    path = program.workspace / "notes.md"
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text.splitlines().count("## You") == 1
    assert "> ## You" in text
    assert "\x1b" not in text
    assert "`````text" in text
    (unnamed,) = (program.state / "harness" / "exports").glob("harness-*.md")
    assert stat.S_IMODE(unnamed.stat().st_mode) == 0o600
    assert [one.name for one in program.workspace.iterdir()] == ["notes.md"]
    assert verified(program)


def test_all_of_an_output_can_be_seen_afterwards(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(calls=(call("bash", command="seq 7 407; printf '\\033[2J'"),)), Reply(text="Done.")))
    prompt.say("/output", "no command ran yet")
    prompt.ask("go", "Done.")
    prompt.wait_for("more lines, 1.5 kB in all; /output 1 shows all")
    prompt.say("!echo kiwi", "exit 0")
    prompt.say("/output", "| [exit code 0")
    prompt.say("/output 1", "  | 207")
    prompt.say("/output 1-2", "  | kiwi")
    prompt.say("/output 3", "no call 3 ended in this session")
    prompt.say("/output x", "usage: /output [CALL]")
    assert b"\x1b[2J" not in prompt.raw.partition(b"/output 1")[2]
    assert prompt.leave() == 0
    assert verified(program)


def test_another_model_of_the_same_provider_answers(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="One."), Reply(text="Two.")))
    prompt.ask("first", "One.")
    prompt.say("/model scripted", "it is the model already")
    prompt.say("/model another-one", "from now on another-one answers")
    prompt.ask("second", "Two.")
    prompt.say("/cost", "another-one")
    assert prompt.leave() == 0
    assert [request["model"] for request in program.players[0].requests] == ["scripted", "another-one"]
    assert "first" in str(program.players[0].requests[1]["messages"])
    (changed,) = [r for r in program.records() if r["kind"] == "model_changed"]
    assert changed["model"] == "another-one"
    assert verified(program)


def test_a_profile_is_taken_within_a_session_and_when_it_is_resumed(program: Program, start: Start) -> None:
    """Its server, its key and its settings come with it, and the ones of the beginning come back with their model."""
    other = program.serve(replies(Reply(text="Two."), Reply(text="Four.")))
    profile = f'[models.fast]\nmodel = "small"\nbase_url = "{other}"\nkey_variable = "SMALL_WORD"\neffort = "low"\n'
    write_config(program, f"[terminal]\ndead_seconds = 0.15\n{profile}")
    program.environment["SMALL_WORD"] = "the-key-of-the-small-one-4711"
    prompt = start(replies(Reply(text="One."), Reply(text="Three.")), "--set", "temperature=0.5")
    prompt.ask("first", "One.")
    prompt.say("/model fast", "from now on small answers, at http://127.0.0.1:")
    prompt.say("/model", "temperature = 0.5")
    prompt.wait_for('effort = "low"')
    prompt.close_menu()
    prompt.ask("second the-key-of-the-small-one-4711", "Two.")
    prompt.say("/model scripted", "from now on scripted answers, at")
    prompt.ask("third", "Three.")
    prompt.say("/model fast", "from now on small answers, at")
    assert prompt.leave() == 0
    there, here = program.players
    asked = [{name: one.get(name) for name in ("model", "temperature", "reasoning_effort")} for one in there.requests]
    assert asked == [{"model": "small", "temperature": 0.5, "reasoning_effort": "low"}]
    assert [(one["model"], one["temperature"], one.get("reasoning_effort")) for one in here.requests] == [
        ("scripted", 0.5, None)
    ] * 2
    records = program.records()
    assert records[0]["model_settings"] == {"temperature": 0.5}
    changed = [record for record in records if record["kind"] == "model_changed"]
    assert [(one["model"], one.get("profile"), one["model_settings"]) for one in changed] == [
        ("small", "fast", {"temperature": 0.5, "effort": "low"}),
        ("scripted", None, {"temperature": 0.5}),
        ("small", "fast", {"temperature": 0.5, "effort": "low"}),
    ]
    assert "small-one-4711" not in program.logs()[0].read_text()
    assert verified(program)
    with Prompt(
        program.command("sessions", "resume"),
        columns=120,
        lines=50,
        cwd=program.workspace,
        environment=program.environment,
    ) as resumed:
        resumed.ask("fourth", "Four.")
        assert resumed.leave() == 0
    assert there.requests[-1]["model"] == "small"


def test_policy_reload_applies_a_valid_file_or_keeps_the_old_policy(program: Program, start: Start) -> None:
    path = program.state.parent / "own.toml"
    path.write_text('version = 1\nname = "own"\n[tools]\ndefault = "confirm"\nread_file = "auto"\n')
    prompt = start(replies(Reply(calls=(WRITE,)), Reply(text="Refused.")), "--policy", str(path))
    prompt.say("/policy reload", "say what they said before")
    path.write_text("version = 1\nnonsense\n")
    prompt.say("/policy reload", "own.toml")
    stricter = '[[rule]]\nid = "new"\ndecision = "deny"\nargv = ["make"]\nreason = "No."\n'
    path.write_text(f'version = 1\nname = "own"\n[tools]\ndefault = "deny"\n{stricter}')
    prompt.say("/policy reload", "deny     new ")
    prompt.ask("write", "Refused.")
    assert prompt.leave() == 0
    assert not (program.workspace / "a.txt").exists()
    assert [r["why"] for r in program.records() if r["kind"] == "policy_changed"] == ["reloaded"]
    assert verified(program)


def test_a_log_that_was_touched_ends_the_program_with_its_exit_code(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="One.")))
    prompt.wait_prompt()
    with program.logs()[0].open("a") as log:
        log.write("{}\n")
    prompt.type("!echo hello")
    assert prompt.exit_code() == 8
    assert "action log" in prompt.text()


def test_names_and_texts_of_others_cannot_touch_the_terminal(program: Program, start: Start) -> None:
    """A file name, a path of the model's, a policy's reason and an exported text with escapes in them."""
    name = "a\x1b]0;owned\x07.txt"
    policy = program.state.parent / "own.toml"
    policy.write_text(
        'version = 1\nname = "own"\n[tools]\ndefault = "auto"\n'
        '[[rule]]\nid = "r"\ndecision = "deny"\nargv = ["make"]\nreason = "no\\u001b[2Jno."\n'
    )
    prompt = start(
        replies(Reply(calls=(call("write_file", path=name, content="\x1b[8m\n"),)), Reply(text="Done.")),
        "--policy",
        str(policy),
    )
    prompt.type("go")
    prompt.press("write_file", "y")
    prompt.wait_for("Done.")
    for line, expected in (
        ("/diff", "new, +1"),
        ("/why", "odd-name"),
        ("/context", "biggest results"),
        ("/log", "head:"),
        ("/policy show", "no\\x1b[2Jno"),
        ("/policy explain make", "decided by: rule r"),
        ("!make", "Denied by rule r"),
        ("/why", "no\\x1b[2Jno"),
    ):
        prompt.say(line, expected)
    assert prompt.leave() == 0
    assert (b"owned\x07" in prompt.raw, b"no\x1b" in prompt.raw, b"\x1b[8m" in prompt.raw) == (False, False, False)
    assert prompt.screen.title == ""


PROJECT = 'version = 1\nname = "theirs"\n[tools]\nbash = "auto"\n'


def test_policy_of_the_folder_is_asked_about_and_trusted_later(
    program: Program, start: Start, in_workspace: Callable[[str, str], Path]
) -> None:
    path = in_workspace(".harness/policy.toml", PROJECT)
    prompt = start(replies(), before=lambda played: played.press("trust", "n"))
    prompt.wait_for("is not trusted: only what tightens counts")
    prompt.type("/policy trust")
    prompt.press("trust", "n", times=2)
    prompt.wait_for("it is not trusted")
    prompt.type("/policy trust")
    prompt.press("trust", "y", times=3)
    prompt.wait_for("policy: ")
    prompt.say("/policy trust", "its content is trusted already")
    prompt.wait_prompt()
    path.write_text(PROJECT + "# changed\n")
    prompt.say("/policy reload", "policy: shipped")
    path.unlink()
    prompt.say("/policy trust", "no .harness/policy.toml in this workspace")
    assert prompt.leave() == 0
    assert [r["why"] for r in program.records() if r["kind"] == "policy_changed"] == ["trusted", "reloaded"]
    assert verified(program)


def test_undo_of_a_turn_keeps_what_the_user_ran(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(calls=(WRITE,)), Reply(text="Done.")))
    prompt.type("go")
    prompt.press("write_file", "y")
    prompt.wait_for("Done.")
    prompt.say("!!mkdir mine", "exit 0")
    prompt.type("/undo")
    prompt.press("undo", "y")
    prompt.wait_for("removed        a.txt")
    assert "not undone" not in prompt.text()
    assert (program.workspace / "mine").is_dir()
    assert prompt.leave() == 0
    assert verified(program)


def test_session_grants_end_with_the_session(program: Program, start: Start) -> None:
    touch = Reply(calls=(call("bash", command="touch made"),))
    prompt = start(replies(touch, Reply(text="One."), touch, Reply(text="Two.")))
    prompt.type("go")
    prompt.press("bash", "s")
    prompt.wait_for("other keys go back")
    prompt.send("1")
    prompt.wait_for("One.")
    prompt.say("/plan", "plan mode: nothing")
    prompt.say("!touch made", "Denied by")
    prompt.say("/plan off", "plan mode is left")
    prompt.say("/fork", "this grant ended with that session")
    prompt.say("/grants", "nothing is granted")
    prompt.type("again")
    prompt.press("bash", "n", times=2)
    prompt.wait_for("Two.")
    assert prompt.leave() == 0
    assert verified(program)


@all_rows(
    ("held", "tool", "text", "expected"),
    [
        pytest.param("default", "bash", "ls", Decision.AUTO, id="a reader runs"),
        pytest.param("default", "bash", "touch a", Decision.DENY, id="what writes is refused"),
        pytest.param("default", "bash", "npm publish", Decision.DENY, id="a confirm rule lifts nothing"),
        pytest.param("default", "bash", "cat .env", Decision.DENY, id="what was refused stays so"),
        pytest.param("default", "write_file", "a.txt", Decision.DENY, id="a file is not written"),
        pytest.param("default", "read_file", "a.txt", Decision.AUTO, id="a file is read"),
        pytest.param("default", "read_file", "secret.pem", Decision.DENY, id="a secret is not"),
        pytest.param("demo", "bash", "python3 -m unittest -q", Decision.DENY, id="an auto rule counts for nothing"),
        pytest.param("readonly", "bash", "ls", Decision.AUTO, id="readers of another policy"),
        pytest.param("default", "bash", "rm -rf /", Decision.BLOCK, id="a hard block stays one"),
    ],
)
def test_plan_mode_only_tightens(tmp_path: Path, held: str, tool: str, text: str, expected: Decision) -> None:
    workspace, policy = Workspace(str(tmp_path)), load_policy(held)
    action = action_for(tool, text, workspace)
    decided = evaluate(with_plan_mode(policy), action).decision
    assert decided is expected
    assert decided >= evaluate(policy, action).decision


@all_rows(("tool", "text"), [("bash", "ls"), ("read_file", "a.txt")])
def test_plan_mode_keeps_the_denials_of_the_policy(tmp_path: Path, tool: str, text: str) -> None:
    policy = parse_policy(b'version = 1\n[tools]\nbash = "confirm"\n', "own.toml")
    assert evaluate(with_plan_mode(policy), action_for(tool, text, Workspace(str(tmp_path)))).decision is Decision.DENY


@all_rows(
    ("held", "expected"),
    [
        ('read_file = "auto"', Decision.DENY),  # it says nothing of the tool: a question before, and no call now
        ('read_file = "auto"\nlook = "auto"', Decision.AUTO),
        ('default = "auto"', Decision.AUTO),
        ('look = "confirm"', Decision.CONFIRM),
        ('default = "confirm"', Decision.CONFIRM),
        ('default = "auto"\nlook = "deny"', Decision.DENY),
    ],
)
def test_auto_in_plan_mode_applies_to_tools_named_by_the_policy(held: str, expected: Decision) -> None:
    overlay = parse_policy(
        b'version = 1\n[tools]\nread_file = "auto"\nlook = "auto"\ndefault = "deny"\n',
        "plan.toml",
        extra_tools=("look",),
    )
    policy = parse_policy(f"version = 1\n[tools]\n{held}\n".encode(), "own.toml", extra_tools=("look",))
    decided = evaluate(put_over(policy, overlay), tool_use("look")).decision
    assert decided is expected
    assert decided >= evaluate(policy, tool_use("look")).decision
