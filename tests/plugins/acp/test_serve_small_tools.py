"""What an editor shows of the model's list, its questions, its helpers, and of a team's own commands."""

from __future__ import annotations

import asyncio
from typing import Any

from git_scene import run_git
from program import Program, made_program
from rows import all_rows
from serve_scene import FAILS, NONSENSE, WAITS, Editor, model_flags, play, refused, served, verified

from harness.actions import JsonValue
from harness.models.scripted import Reply, call, replies, say
from policies import AUTO

POLICY = AUTO.replace("[tools]\n", '[tools]\ntodo = "auto"\nask_user = "auto"\ndelegate = "auto"\n')
DONE = say("All done.")


def outcomes(program: Program) -> list[tuple[object, object]]:
    return [(one["status"], one["content"]) for one in program.records() if one["kind"] == "outcome"]


WHICH = call("ask_user", question="Which\x1b[2J one?", choices=["the first", "the second"])
ANSWERS: dict[str, tuple[str, str, str, str]] = {
    "a choice": ("choice-2", "end_turn", "ok", "The person answered: the second"),
    "none of them": ("none", "end_turn", "ok", "The person can only choose here"),
    "one that was not offered": ("choice-3", "end_turn", "ok", "The person gave no answer"),
    "nonsense": (NONSENSE, "end_turn", "ok", "The person gave no answer"),
    "an error": (FAILS, "end_turn", "failed", "Nobody is there"),
    "stop": ("stop", "cancelled", "interrupted", ""),
    "cancelled": ("cancelled", "cancelled", "interrupted", ""),
}


@all_rows("answer, stop, status, told", ANSWERS, anew={"program": made_program})
def test_a_question_of_the_model_is_put_to_the_editor(
    program: Program, answer: str, stop: str, status: str, told: str
) -> None:
    editor = Editor(answer)

    async def scene() -> None:
        flags = model_flags(program, replies(Reply(calls=(WHICH,)), DONE), POLICY)
        async with served(program, editor, *flags) as at:
            assert (await at.ask(await at.new())).stop_reason == stop

    play(scene)
    (question,) = editor.questions
    assert question.text == "```\nWhich\\x1b[2J one?\n1. the first\n2. the second\n```"
    assert [*question.options.values()] == ["the first", "the second", "None of these", "Stop the turn"]
    assert question.call.tool_call_id == "call-1"
    ((ended, content),) = outcomes(program)
    assert (ended, str(content).startswith(told)) == (status, True)
    assert list(verified(program)) == []


def test_question_without_choices_is_not_asked_and_the_model_informed(program: Program) -> None:
    editor = Editor()

    async def scene() -> None:
        script = replies(Reply(calls=(call("ask_user", question="What now?"),)), DONE)
        async with served(program, editor, *model_flags(program, script, POLICY)) as at:
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)
    assert editor.questions == []
    assert str(outcomes(program)[0][1]).startswith("The person can only choose here")


def test_a_question_of_the_model_is_withdrawn_when_its_turn_is_cancelled(program: Program) -> None:
    editor = Editor(WAITS)

    async def scene() -> None:
        flags = model_flags(program, replies(Reply(calls=(WHICH,)), DONE), POLICY)
        async with served(program, editor, *flags) as at:
            session = await at.new()
            prompt = asyncio.create_task(at.ask(session))
            await at.until(lambda: bool(editor.questions))
            await at.conn.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
            editor.released.set()
            assert (await at.ask(session, "again")).stop_reason == "end_turn"

    play(scene)
    assert list(verified(program)) == []


def test_the_list_is_the_plan_and_again_where_the_session_is_loaded(program: Program) -> None:
    items: JsonValue = [{"text": "read\x1b[2J", "status": "done"}, {"text": "write", "status": "doing"}]
    wrong = call("todo", items=[{"text": "x", "status": "never"}])
    plan = [
        {"content": "read\\x1b[2J", "priority": "medium", "status": "completed"},
        {"content": "write", "priority": "medium", "status": "in_progress"},
    ]
    session = ""
    editor, again = Editor(), Editor()

    async def scene() -> None:
        nonlocal session
        script = replies(Reply(calls=(call("todo", items=items),)), Reply(calls=(wrong,)), DONE)
        async with served(program, editor, *model_flags(program, script, POLICY)) as at:
            session = await at.new()
            await at.ask(session)

    async def later() -> None:
        async with served(program, again, *model_flags(program, replies(), POLICY)) as at:
            await at.load(session)

    play(scene)
    play(later)
    for one in (editor, again):
        assert [shown["entries"] for shown in one.of_kind("plan")] == [plan]


def test_the_calls_of_a_helper_are_shown_by_its_name(program: Program) -> None:
    """Its records too are sent to a client that wants records, and its question names no call of the conversation's."""
    (program.workspace / "a.txt").write_text("plum\n")
    run_git(program.workspace, "init", "-q")
    run_git(program.workspace, "add", "a.txt")
    run_git(program.workspace, "commit", "-qm", "first")
    editor = Editor("allow")
    asks = '[[rule]]\nid = "made"\ndecision = "confirm"\nargv = ["touch"]\n'
    script = replies(
        Reply(calls=(call("delegate", task="Look at a.txt", policy="same"),)),
        Reply(text="I look.", calls=(call("read_file", path="a.txt"),)),
        Reply(calls=(call("bash", command="touch made"),)),
        say("It is plum."),
        say("Plum."),
    )

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script, POLICY + asks)) as at:
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)
    assert editor.said() == "Plum."
    titles = {name: shown["title"] for name, shown in editor.calls().items()}
    helper = next(str(one["session"]) for one in program.records() if one.get("mode") == "helper")
    assert titles[f"{helper}-call-1"] == "helper 1: read_file `a.txt`"
    assert "delegate" in titles["call-1"]
    notes = editor.said("agent_thought_chunk")
    assert "harness: helper 1: > Look at a.txt\n" in notes
    assert "harness: helper 1: completed, 3 requests" in notes
    (question,) = editor.questions
    assert question.call.tool_call_id == "question-1"
    assert "helper 1 (Look at a.txt)" in question.text
    assert editor.records == program.records()


COMMAND = "---\ndescription: Reviews a file\nargument-hint: FILE\n{}---\nReview $1 with care.\n"
"""`@` and a file in the argument names what goes with the words."""


def test_user_command_is_offered_and_sent_in_its_own_words(program: Program) -> None:
    folder = program.home.parent / "config" / "harness" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(COMMAND.format(""))
    (folder / "design.md").write_text(COMMAND.format("plan: true\n"))
    (folder / "other.md").write_text(COMMAND.format("model: another\n"))
    (folder / "help.md").write_text(COMMAND.format("plan: true\n"))
    (program.workspace / "a.txt").write_text("plum\n")
    editor = Editor()

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(DONE, DONE, DONE, DONE), POLICY)) as at:
            session = await at.new()
            await at.ask(session, "/review @a.txt")
            await at.ask(session, " /unknown a.txt")
            assert "there is no command /reveiw" in (await refused(at.ask(session, "/reveiw a.txt")))[1]
            assert "/help is a command of the prompt" in (await refused(at.ask(session, "/help a.txt")))[1]
            assert editor.of_kind("current_mode_update") == []
            await at.ask(session, "/design b.txt")
            await at.ask(session, "/design c.txt")
            assert "/other is for another model" in (await refused(at.ask(session, "/other a.txt")))[1]

    play(scene)
    (offered,) = editor.of_kind("available_commands_update")
    told: dict[str, Any] = {one["name"]: one for one in offered["availableCommands"]}
    assert sorted(told) == ["design", "other", "review"]
    assert told["review"] == {"name": "review", "description": "Reviews a file", "input": {"hint": "FILE"}}
    prompts = [str(one["text"]) for one in program.records() if one["kind"] == "user_message"]
    assert prompts[0].startswith("Review @a.txt with care.\n")
    assert "plum" in prompts[0]
    assert [text.split("\n")[-1] for text in prompts[1:]] == [
        "/unknown a.txt",
        "Review b.txt with care.",
        "Review c.txt with care.",
    ]
    assert [one["currentModeId"] for one in editor.of_kind("current_mode_update")] == ["plan"]
    assert list(verified(program)) == []
