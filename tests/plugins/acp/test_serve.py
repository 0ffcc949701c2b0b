"""An editor drives the harness by the Agent Client Protocol: the library's own client, over pipes, a scripted model."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from acp import audio_block, embedded_blob_resource, embedded_text_resource, image_block, resource_block, text_block
from acp import resource_link_block as link
from acp.schema import PromptResponse
from picture_files import png
from places import ROOT
from process_scene import ENOUGH, alive, wait_until
from program import Program, made_program
from rows import all_rows
from run_scene import left_in
from serve_scene import FAILS, NONSENSE, WAITS, Editor, RawClient, model_flags, play, refused, served, verified

from harness.app.command_line import parser_for
from harness.models.scripted import Failure, ModelScript, Reply, ScriptedAnswer, Turn, call, replies, say
from harness.plugins.acp.client_wire import ClientWire
from harness.plugins.acp.prompt_blocks import Block
from harness.plugins.acp.served_session import ServedSession, session_arguments
from policies import AUTO, CONFIRM

LOOK = Reply(text="I look.", calls=(call("bash", command="cat a.txt"),))
TOUCH = Reply(calls=(call("bash", command="touch made"),))
EDIT = Reply(calls=(call("edit_file", path="a.txt", old_string="old", new_string="new"),))
DONE = say("All done.")
STAYS = "touch begun\nsleep 1000 &\nsleep 1000\n"
"""A script that leaves something behind."""


@pytest.fixture(autouse=True)
def a_file(program: Program) -> None:
    (program.workspace / "a.txt").write_text("old\n")


def kinds(program: Program) -> list[str]:
    return [str(one["kind"]) for one in program.records()]


def meta_of(response: PromptResponse) -> dict[str, object]:
    own = (response.field_meta or {})["harness"]
    assert isinstance(own, dict)
    return own


# -- a prompt


def test_a_prompt_is_worked_on_and_all_of_it_is_shown(program: Program) -> None:
    editor = Editor("allow")

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(LOOK, EDIT, DONE))) as at:
            began = await at.begun()
            response = await at.ask(began.session_id, "change it")
            assert (response.stop_reason, meta_of(response)["stop"], meta_of(response)["turns"]) == (
                "end_turn",
                "completed",
                3,
            )
            assert (
                [mode.id for mode in began.modes.available_modes] == ["ask", "edits", "walls", "plan"]
                if began.modes
                else False
            )

    play(scene)
    assert editor.said() == "I look.All done."
    looked, edited = editor.calls().values()
    assert (looked["title"], looked["kind"], looked["status"]) == ("bash `cat a.txt`", "execute", "completed")
    assert looked["content"][0]["content"]["text"].startswith("```\nold\n[exit code 0")
    assert (edited["kind"], edited["status"]) == ("edit", "completed")
    assert edited["locations"] == [{"path": str(program.workspace / "a.txt")}]
    (change,) = edited["content"]
    assert (change["type"], change["oldText"], change["newText"]) == ("diff", "old\n", "new\n")
    assert (program.workspace / "a.txt").read_text() == "new\n"
    assert program.records() == editor.records  # each as it was appended, the first one too
    started = program.records()[0]
    assert (started["mode"], started["client"]) == ("serve", "editor 1.0")
    assert list(verified(program)) == []


@all_rows(("flags", "kinds"), [((), []), (("--records",), ["session_started", "session_ended"])], fresh=True)
def test_records_are_sent_on_request_only(program: Program, flags: tuple[str, ...], kinds: list[str]) -> None:
    client = RawClient(program, *flags, *model_flags(program, replies(DONE)))
    client.request(1, "initialize", protocolVersion=1)
    client.request(2, "session/new", cwd=str(program.workspace), mcpServers=[])
    client.read_to(lambda one: one.get("id") == 2)
    code, rest = client.end()
    assert (code, [one["params"]["record"]["kind"] for one in rest]) == (0, kinds)


def test_a_secret_is_masked_in_all_that_is_shown(program: Program) -> None:
    secret = "ghp_" + "a1B2" * 9
    (program.workspace / "a.txt").write_text(f"{secret}\n")
    editor = Editor()
    script = replies(Reply(text=f"It is {secret}.", calls=(call("read_file", path="a.txt"),)), say(secret))

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script)) as at:
            embedded = resource_block(embedded_text_resource("file:///x", f"key = {secret}"))
            await at.conn.prompt(session_id=await at.new(), prompt=[text_block("what is it?"), embedded])

    play(scene)
    assert secret not in json.dumps(editor.updates) + json.dumps(editor.records)
    assert "It is [redacted" in editor.said()
    (asked,) = [one for one in program.players[0].requests[0]["messages"] if one["role"] == "user"]  # type: ignore[union-attr,call-overload,index]
    assert secret not in str(asked)


def test_links_and_attached_text_are_fenced_after_the_prompt(program: Program) -> None:
    async def scene() -> None:
        async with served(program, None, *model_flags(program, replies(DONE))) as at:
            text = "a\n```\nb"
            blocks: list[Block] = [
                text_block("look at "),
                link("it", "https://example.org/x"),
                text_block(" now"),
                resource_block(embedded_text_resource("file:///a.py", text)),
            ]
            await at.conn.prompt(session_id=await at.new(), prompt=blocks)

    play(scene)
    (said,) = (one["text"] for one in program.records() if one["kind"] == "user_message")
    assert said == (
        "look at [it](https://example.org/x) now[file:///a.py]\n\n"
        "Attached by the person, file:///a.py:\n````\na\n```\nb\n````"
    )


# -- how a turn ends


TURNS = 'version = 1\n[tools]\ndefault = "auto"\n[limits]\nturns = 1\n'
BLOCKS = f'{AUTO}[[rule]]\nid = "no"\ndecision = "block"\nargv = ["touch"]\nreason = "Never."\n'


@all_rows(
    ("script", "rules", "stop", "told"),
    {
        "done": (replies(DONE), AUTO, "end_turn", "completed"),
        "a limit": (replies(TOUCH, DONE), TURNS, "max_turn_requests", "limit"),
        "cut": (replies(*[Reply(text="x", finish_reason="length")] * 2), AUTO, "max_tokens", "length"),
        "a hard block": (replies(TOUCH, DONE), BLOCKS, "", "blocked: "),
        "a provider that fails": (replies(Failure(status=400, body="{}")), AUTO, "", "model error: "),
    },
    fresh=True,
)
def test_each_end_of_a_turn_has_a_reason_or_is_an_error(
    program: Program, script: ModelScript, rules: str, stop: str, told: str
) -> None:
    async def scene() -> None:
        async with served(program, None, *model_flags(program, script, rules)) as at:
            session = await at.new()
            if not stop:
                code, message = await refused(at.ask(session))
                assert (code, message.startswith(told)) == (-32603, True), message
            else:
                response = await at.ask(session)
                assert (response.stop_reason, meta_of(response)["stop"]) == (stop, told)

    play(scene)
    assert list(verified(program)) == []


# -- questions


@all_rows(
    ("answer", "made", "stop", "logged"),
    [
        ("allow", True, "end_turn", ("yes", "client")),
        ("refuse", False, "end_turn", ("no", "client")),
        ("stop", False, "cancelled", ("stop", "client")),
        ("cancelled", False, "cancelled", ("stop", "client")),
        ("allow_once", False, "end_turn", ("no", "client")),
        ("", False, "end_turn", ("no", "client")),
        ("session-9", False, "end_turn", ("no", "client")),
        ("session-0", False, "end_turn", ("no", "client")),
        (FAILS, False, "end_turn", ("nobody", "nobody")),
        (NONSENSE, False, "end_turn", ("no", "client")),
    ],
    fresh=True,
)
def test_only_the_yes_that_was_offered_is_one(
    program: Program, answer: str, *, made: bool, stop: str, logged: tuple[str, str]
) -> None:
    async def scene() -> None:
        async with served(program, Editor(answer), *model_flags(program, replies(TOUCH, DONE), CONFIRM)) as at:
            assert (await at.ask(await at.new())).stop_reason == stop

    play(scene)
    assert (program.workspace / "made").exists() is made
    (answered,) = (one for one in program.records() if one["kind"] == "approval_answered")
    assert (answered["answer"], answered["by"]) == logged
    assert answered.get("who", "") == ("editor 1.0" if answered["by"] == "client" else "")
    assert list(verified(program)) == []


def test_a_question_holds_the_whole_call_as_text_that_no_client_draws(program: Program) -> None:
    command = "touch '```' && echo '<!-- ![x](http://e/) -->\x1b[2J' > made"
    editor = Editor()
    script = replies(Reply(calls=(call("bash", command=command),)), DONE)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script, CONFIRM)) as at:
            await at.ask(await at.new())

    play(scene)
    (question,) = editor.questions
    assert question.text.startswith("````\nbash asks, workspace only, offline\n")
    assert question.text.endswith("\n````")
    assert "touch '```'" in question.text
    assert "<!-- ![x](http://e/) -->\\x1b[2J" in question.text
    assert question.call.tool_call_id == "call-1"
    assert [*question.kinds.items()][-2:] == [("refuse", "reject_once"), ("stop", "reject_once")]


def test_call_granted_for_the_session_is_not_asked_again(program: Program) -> None:
    editor = Editor("session-1")
    again = Reply(calls=(call("bash", command="touch made"),))

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(TOUCH, again, DONE), CONFIRM)) as at:
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)
    (question,) = editor.questions
    assert question.options["session-1"] == "Allow for this session [1]: exactly this"
    assert question.kinds["session-1"] == "allow_always"
    assert "what may be allowed for this session:\n  [1] touch made" in question.text
    assert [one["scope"] for one in program.records() if one["kind"] == "grant"] == ["session"]


def test_file_option_grants_any_edit_of_the_file(program: Program) -> None:
    editor = Editor("refuse")
    write = Reply(calls=(call("write_file", path="n.txt", content="x"),))

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(write, DONE), CONFIRM)) as at:
            await at.ask(await at.new())

    play(scene)
    (question,) = editor.questions
    assert question.options["session-1"] == "Allow for this session [1]: edits of n.txt"


def test_destructive_call_is_marked_and_never_granted(program: Program) -> None:
    editor = Editor()
    script = replies(Reply(calls=(call("bash", command="git reset --hard"),)), DONE)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script, CONFIRM)) as at:
            await at.ask(await at.new())

    play(scene)
    (question,) = editor.questions
    assert question.options["allow"].startswith("Allow once. THIS DESTROYS: ")
    assert [*question.options] == ["allow", "refuse", "stop"]
    assert "this destroys: " in question.text


def test_call_too_large_to_show_is_refused_unasked(program: Program) -> None:
    editor = Editor("allow")
    write = Reply(calls=(call("write_file", path="big", content="line\n" * 200_000),))

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(write, DONE), CONFIRM)) as at:
            await at.ask(await at.new())

    play(scene)
    assert (editor.questions, (program.workspace / "big").exists()) == ([], False)
    (answered,) = (one for one in program.records() if one["kind"] == "approval_answered")
    assert (answered["answer"], answered["words"]) == (
        "nobody",
        "it cannot be shown whole to anybody: make it in smaller steps",
    )


def answer(identity: object, option: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": identity, "result": {"outcome": {"outcome": "selected", "optionId": option}}}


def test_an_answer_counts_for_its_own_question_alone(program: Program) -> None:
    """Answers sent ahead, to every id that a question may get, under ids that only look like one, and after another."""
    client = RawClient(program, *model_flags(program, replies(TOUCH, DONE), CONFIRM))
    client.send(*(answer(identity, "allow") for identity in (0, 1, 2, 3, "1", 1.0, True, [1], None)))
    client.prompt("p")
    asked = client.read_to(lambda one: one.get("method") == "session/request_permission")
    client.send(*(answer(identity, "allow") for identity in ("1", 7, str(asked["id"]), "x")))
    client.send(answer(asked["id"], "refuse"), answer(asked["id"], "allow"))
    assert client.read_to(lambda one: one.get("id") == "p")["result"]["stopReason"] == "end_turn"
    assert client.end()[0] == 0
    assert not (program.workspace / "made").exists()
    assert [one["answer"] for one in program.records() if one["kind"] == "approval_answered"] == ["no"]


# -- cancelling


def hanging(until: threading.Event, begun: threading.Event) -> ModelScript:
    """A model that does not answer the first time."""

    def script() -> Generator[ScriptedAnswer, Turn, None]:
        begun.set()
        until.wait()
        yield say("too late")
        yield DONE

    return script


def test_cancelled_model_request_does_not_end_the_conversation(program: Program) -> None:
    release, begun = threading.Event(), threading.Event()

    async def scene() -> None:
        async with served(program, None, *model_flags(program, hanging(release, begun))) as at:
            session = await at.new()
            prompt = asyncio.create_task(at.ask(session))
            await at.until(begun.is_set)
            assert (await refused(at.ask(session)))[0] == -32600  # one at a time
            assert (await refused(at.conn.set_session_mode(session_id=session, mode_id="edits")))[0] == -32600
            await at.conn.cancel(session_id=session)
            response = await prompt
            assert (response.stop_reason, meta_of(response)["stop"]) == ("cancelled", "interrupted")
            release.set()
            assert (await at.ask(session, "again")).stop_reason == "end_turn"

    try:
        play(scene)
    finally:
        release.set()
    said = [one["text"] for one in program.records() if one["kind"] == "user_message"]
    assert "You" not in str(said[0])
    assert str(said[1]).startswith("[The person interrupted you")
    assert list(verified(program)) == []


def test_a_command_is_cancelled_with_all_that_it_started(program: Program) -> None:
    token = "harness-serve-cancel-token"
    (program.workspace / "stays.sh").write_text(STAYS.replace("1000", f"1000 # {token}"))
    editor = Editor()
    command = f"bash stays.sh {token}"
    script = replies(Reply(calls=(call("bash", command=command), call("bash", command="touch other"))), DONE)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script, AUTO)) as at:
            session = await at.new()
            prompt = asyncio.create_task(at.ask(session))
            await at.until((program.workspace / "begun").exists)
            for _ in range(3):  # once is enough, and more is no more
                await at.conn.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
            assert alive(token) == []
            assert (await at.ask(session, "again")).stop_reason == "end_turn"  # the server takes no broken history

    play(scene)
    assert [one["status"] for one in program.records() if one["kind"] == "outcome"] == ["interrupted", "not_run"]
    assert list(verified(program)) == []


def test_a_cancelled_turn_does_not_hide_a_log_that_failed(program: Program) -> None:
    (program.workspace / "stays.sh").write_text(STAYS)
    script = replies(Reply(calls=(call("bash", command="bash stays.sh"),)), DONE)
    client = RawClient(program, *model_flags(program, script, AUTO))
    session = client.prompt(3)
    assert wait_until((program.workspace / "begun").exists)
    (log,) = program.logs()
    hard = resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    client.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    ended = client.read_to(lambda one: one.get("id") == 3)
    assert ended["error"]["message"].startswith("log error: ")
    client.end()


def test_a_question_is_withdrawn_when_its_turn_is_cancelled(program: Program) -> None:
    editor = Editor(WAITS)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(TOUCH, DONE), CONFIRM)) as at:
            session = await at.new()
            prompt = asyncio.create_task(at.ask(session))
            await at.until(lambda: bool(editor.questions))
            await at.conn.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"
            editor.released.set()  # a yes that comes too late
            assert (await at.ask(session, "again")).stop_reason == "end_turn"

    play(scene)
    assert not (program.workspace / "made").exists()
    assert [one["answer"] for one in program.records() if one["kind"] == "approval_answered"] == ["stop"]


# -- sessions


def test_session_can_change_files_while_another_waits_for_an_answer(program: Program) -> None:
    other = program.home / "other"
    other.mkdir()
    editor = Editor(WAITS)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(TOUCH, DONE), CONFIRM)) as at:
            first, second = await at.new(), await at.new(other)
            waiting = asyncio.create_task(at.ask(first))
            await at.until(lambda: bool(editor.questions))
            assert (await refused(at.ask(first)))[0] == -32600
            await at.conn.set_session_mode(session_id=second, mode_id="plan")
            await at.conn.close_session(session_id=second)
            assert (await refused(at.ask(second)))[0] == -32002
            editor.released.set()
            assert (await waiting).stop_reason == "end_turn"

    play(scene)
    assert ((program.workspace / "made").exists(), len(program.logs())) == (True, 2)
    assert list(verified(program)) == []


def test_cancelling_one_of_two_commands_keeps_the_other(program: Program) -> None:
    other = program.home / "other"
    other.mkdir()
    (program.workspace / "stays.sh").write_text(STAYS)
    (other / "waits.sh").write_text("touch begun\nsleep 1000 &\nuntil [ -e go ]; do sleep 0.01; done\ntouch made\n")

    def script() -> Generator[ScriptedAnswer, Turn, None]:
        turn = yield Reply(calls=(call("bash", command="bash stays.sh"),))
        while True:
            waits = Reply(calls=(call("bash", command="bash waits.sh"),))
            turn = yield DONE if turn.results else waits

    async def scene() -> None:
        async with served(program, None, *model_flags(program, script, AUTO)) as at:
            first, second = await at.new(), await at.new(other)
            one = asyncio.create_task(at.ask(first))
            await at.until((program.workspace / "begun").exists)
            two = asyncio.create_task(at.ask(second))
            await at.until((other / "begun").exists)
            await at.conn.cancel(session_id=first)
            assert (await one).stop_reason == "cancelled"
            assert left_in(program.workspace) == []
            assert not two.done()
            (other / "go").touch()
            assert (await two).stop_reason == "end_turn"

    play(scene)
    assert (other / "made").exists()
    assert left_in(other) == []
    assert list(verified(program)) == []


def test_session_is_listed_loaded_and_continued_by_name(program: Program) -> None:
    name = ""
    script = replies(LOOK, DONE, say("Second."), say("Third."))
    flags = model_flags(program, script, AUTO)

    async def begin() -> None:
        nonlocal name
        async with served(program, None, *flags) as at:
            name = await at.new()
            await at.ask(name, "the first words")

    async def go_on(text: str, history: str, editor: Editor) -> None:
        async with served(program, editor, *flags) as at:
            listed = (await at.conn.list_sessions(cwd=str(program.workspace))).sessions
            assert [(one.session_id, one.title) for one in listed] == [(name, "the first words")]
            assert [one.session_id for one in (await at.conn.list_sessions(cwd=str(program.home))).sessions] == []
            assert (await refused(at.load("nosuch")))[1].startswith("no session nosuch in ")
            assert (await refused(at.load(name, program.home)))[1].startswith(f"no session {name} in ")
            await at.load(name)
            assert editor.said() == history
            assert "is open here already" in (await refused(at.load(name)))[1]
            assert (await at.ask(name, text)).stop_reason == "end_turn"

    play(begin)
    first = Editor()
    play(lambda: go_on("more", "I look.All done.", first))
    assert first.said("user_message_chunk") == "the first words"
    (shown,) = first.calls().values()
    assert (shown["toolCallId"], shown["status"], shown["title"]) == ("past-1", "completed", "bash `cat a.txt`")
    second = Editor()
    play(lambda: go_on("and more", "I look.All done.Second.", second))
    assert second.said("user_message_chunk") == "the first wordsmore"
    origins = [json.loads(path.read_text().splitlines()[0]).get("origin", {}).get("how") for path in program.logs()]
    assert origins == [None, "resumed", "resumed"]
    assert list(verified(program)) == []


# -- modes


def test_the_modes_are_those_of_the_prompt(program: Program) -> None:
    script = replies(EDIT, DONE, TOUCH, DONE, TOUCH, DONE)
    editor = Editor("allow")

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script)) as at:
            session = await at.new()
            await at.conn.set_session_mode(session_id=session, mode_id="edits")
            await at.ask(session)
            assert (editor.questions, (program.workspace / "a.txt").read_text()) == ([], "new\n")
            await at.conn.set_session_mode(session_id=session, mode_id="plan")
            await at.conn.set_session_mode(session_id=session, mode_id="plan")
            await at.ask(session)
            assert (editor.questions, (program.workspace / "made").exists()) == ([], False)
            await at.conn.set_session_mode(session_id=session, mode_id="ask")
            await at.ask(session)
            assert (len(editor.questions), (program.workspace / "made").exists()) == (1, True)
            code, message = await refused(at.conn.set_session_mode(session_id=session, mode_id="everything"))
            assert (code, message) == (-32602, "there is no mode everything")

    play(scene)
    assert [one["why"] for one in program.records() if one["kind"] == "policy_changed"] == ["plan", "plan left"]
    assert [str(one["text"]).split("\n")[0][:30] for one in program.records() if one["kind"] == "user_message"] == [
        "go",
        "[The person has switched plan ",
        "[The person has left plan mode",
    ]


# -- what is refused


PNG = image_block("aGk=", "image/png")


@all_rows(
    ("blocks", "told"),
    [
        ([], "the prompt is empty"),
        ([text_block(" ")], "the prompt is empty"),
        ([text_block("x"), PNG], "the model gets no pictures: "),
        ([audio_block("aGk=", "audio/wav")], "a prompt takes text, links, attached text and pictures; not audio"),
        ([resource_block(embedded_blob_resource("file:///x", "aGk="))], "not resource"),
        ([text_block("x" * 10_000_001)], "the log takes 10,000,000"),
    ],
)
def test_a_prompt_of_anything_but_text_is_refused(program: Program, blocks: list[Block], told: str) -> None:
    async def scene() -> None:
        async with served(program, None, *model_flags(program, replies(DONE))) as at:
            code, message = await refused(at.conn.prompt(session_id=await at.new(), prompt=blocks))
            assert (code, told in message) == (-32602, True), message

    play(scene)


def test_picture_is_sent_with_the_prompt_if_the_model_sees(program: Program) -> None:
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("pictures = true\n")
    clean = base64.b64encode(png()).decode()
    shot = image_block(base64.b64encode(png(metadata=True)).decode(), "image/gif", uri="file:///etc/passwd")

    async def scene() -> None:
        async with served(program, None, *model_flags(program, replies(DONE))) as at:
            session = await at.new()
            refusals: tuple[tuple[list[Any], str], ...] = (
                ([text_block("x"), PNG], "a picture cannot be taken; only PNG, JPEG, WebP and GIF are supported"),
                ([text_block("x"), image_block("?", "image/png")], "its data is not Base64"),
                ([text_block("x"), *[shot] * 11], "at most 10 pictures"),
                ([shot], "the prompt is empty"),
            )
            for blocks, told in refusals:
                code, message = await refused(at.conn.prompt(session_id=session, prompt=blocks))
                assert (code, told in message) == (-32602, True), message
            await at.conn.prompt(session_id=session, prompt=[text_block("look"), shot, shot])

    play(scene)
    (asked,) = [json.dumps(one) for one in program.players[0].requests]
    assert asked.count(f"data:image/png;base64,{clean}") == 1
    (said,) = [one for one in program.records() if one["kind"] == "user_message"]
    pictures: Any = said["pictures"]
    assert [one["media_type"] for one in pictures] == ["image/png"]


@all_rows("sees", [True, False], anew={"program": made_program})
def test_client_is_informed_whether_the_model_sees_pictures(program: Program, *, sees: bool) -> None:
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"pictures = {str(sees).lower()}\n")
    client = RawClient(program, *model_flags(program, replies(DONE)))
    client.request(1, "initialize", protocolVersion=1)
    answer = client.read_to(lambda one: one.get("id") == 1)
    assert answer["result"]["agentCapabilities"]["promptCapabilities"]["image"] is sees
    client.end()


def test_unusable_requests_are_refused(program: Program) -> None:
    async def scene() -> None:
        async with served(program, None, *model_flags(program, replies(DONE))) as at:
            assert (await refused(at.begun(Path("relative"))))[0] == -32602
            assert (await refused(at.begun(program.home / "nosuch")))[0] == -32602
            assert (await refused(at.ask("nosuch")))[0] == -32002
            assert (await refused(at.conn.ext_method("x", {})))[0] == -32601

    play(scene)


def test_without_a_model_a_session_wants_authentication(program: Program) -> None:
    client = RawClient(program)
    client.request(1, "initialize", protocolVersion=1)
    methods = client.read_to(lambda one: one.get("id") == 1)["result"]["authMethods"]
    assert [(one["id"], one.get("type", "agent")) for one in methods] == [
        ("configured", "agent"),
        ("openai", "env_var"),
    ]
    client.request(2, "session/new", cwd=str(program.workspace), mcpServers=[])
    error = client.read_to(lambda one: one.get("id") == 2)["error"]
    assert (error["code"], error["message"].startswith("no model to talk to")) == (-32000, True)
    client.request(3, "authenticate", methodId="configured")
    assert client.read_to(lambda one: one.get("id") == 3)["error"]["code"] == -32000
    # The user writes a configuration, and tries again.
    url = program.serve(replies(DONE))
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text(f'base_url = "{url}"\nmodel = "scripted"\n')
    client.request(4, "authenticate", methodId="configured")
    assert client.read_to(lambda one: one.get("id") == 4)["result"] == {}
    client.request(5, "session/new", cwd=str(program.workspace), mcpServers=[])
    assert "sessionId" in client.read_to(lambda one: one.get("id") == 5)["result"]
    client.end()


def test_further_folders_belong_to_the_workspace(program: Program) -> None:
    other = program.home / "other"
    other.mkdir()
    (other / "a.txt").write_text("from the other folder")
    editor = Editor()
    script = replies(Reply(calls=(call("read_file", path=str(other / "a.txt")),)), DONE)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script)) as at:
            folders = [str(other)]
            began = await at.conn.new_session(
                cwd=str(program.workspace), mcp_servers=[], additional_directories=folders
            )
            await at.ask(began.session_id)
            wrong = at.conn.new_session(cwd=str(program.workspace), mcp_servers=[], additional_directories=["other"])
            assert (await refused(wrong))[0] == -32602

    play(scene)
    assert editor.questions == []
    assert [one["status"] for one in program.records() if one["kind"] == "outcome"] == ["ok"]


def test_untrusted_policy_of_the_folder_only_tightens(program: Program) -> None:
    folder = program.workspace / ".harness"
    folder.mkdir()
    (folder / "policy.toml").write_text('version = 1\n[tools]\nbash = "auto"\nread_file = "deny"\n')
    editor = Editor()
    script = replies(TOUCH, Reply(calls=(call("read_file", path="a.txt"),)), DONE)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, script)) as at:
            began = await at.begun()
            assert "not trusted: only what tightens counts" in (began.field_meta or {})["harness"]["policy"]
            await at.ask(began.session_id)

    play(scene)
    assert [one.call.title for one in editor.questions] == ["bash `touch made`"]
    assert [one["status"] for one in program.records() if one["kind"] == "outcome"] == ["denied", "denied"]


def test_a_session_that_cannot_begin_is_an_error_and_others_can(program: Program) -> None:
    broken = program.home / "broken"
    (broken / ".harness").mkdir(parents=True)
    (broken / ".harness" / "policy.toml").write_text("nonsense")

    async def scene() -> None:
        async with served(program, None, *model_flags(program, replies(DONE))) as at:
            code, message = await refused(at.begun(broken))
            assert (code, "policy.toml" in message) == (-32603, True)
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_failed_work_is_reported_and_its_session_ended(program: Program) -> None:
    out, target = os.pipe()
    arguments = parser_for("serve").parse_args(["--stdio", *model_flags(program, replies(DONE))])
    session = ServedSession(
        session_arguments(arguments, str(program.workspace)),
        program.environment,
        ClientWire(target, lambda: None),
        client="c",
        records=False,
    )
    session.take(lambda: print(session.open()))
    session.take(lambda: print(1 // 0))
    session.take(sys.exit)
    assert session.is_over(ENOUGH)
    assert list(verified(program)) == []
    assert program.records()[-1]["stop"] == "internal_error"
    assert b"internal error: ZeroDivisionError" in os.read(out, 1 << 16)
    os.close(out)


ALIVE = {"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {"protocolVersion": 1}}


@all_rows(
    ("line", "code", "identity"),
    [
        (b"nonsense\n", -32700, None),
        (b"[]\n", -32600, None),
        (b"5\n", -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"initialize"}\n', -32700, 2),
        (b'{"jsonrpc":"1.0","id":3,"method":"initialize"}\n', -32600, 3),
        (b'{"jsonrpc":"2.0","id":[4],"method":"initialize"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":[]}\n', -32600, 5),
        (b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}\n', -32600, 7),
        (b'{"jsonrpc":"2.0","id":8,"method":"nosuch"}\n', -32601, 8),
        (b'"\xff"\n', -32700, None),
        (b"{" * 100_000 + b"\n", -32700, None),
    ],
)
def test_a_line_that_makes_no_sense_is_an_error_and_the_next_one_counts(
    program: Program, line: bytes, code: int, identity: int | None
) -> None:
    client = RawClient(program)
    client.send(line, ALIVE)
    ended, (told, still) = client.end()
    assert (ended, told["error"]["code"], told["id"], still["id"]) == (0, code, identity, 9)


def test_unknown_notifications_are_ignored(program: Program) -> None:
    lines = [
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "nosuch"}},
        {"jsonrpc": "2.0", "method": "session/cancel"},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"id": 1}},
        {"jsonrpc": "2.0", "id": 77, "result": {}},
        {"jsonrpc": "2.0", "id": 78, "error": {"code": 1, "message": "x"}},
    ]
    client = RawClient(program)
    client.send(*lines, ALIVE)
    code, (told,) = client.end()
    assert (code, told["id"]) == (0, 9)


# -- the end


@all_rows(
    ("how", "code", "stop"),
    [
        (None, 0, "completed"),
        (signal.SIGTERM, 143, "interrupted"),
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGHUP, 143, "interrupted"),
    ],
    fresh=True,
)
def test_any_ending_stops_the_command_and_completes_the_log(
    program: Program, how: signal.Signals | None, code: int, stop: str
) -> None:
    """While a command runs: the client is gone, or somebody ends the program."""
    (program.workspace / "stays.sh").write_text(STAYS)
    script = replies(Reply(calls=(call("bash", command="bash stays.sh"),)), DONE)
    client = RawClient(program, *model_flags(program, script, AUTO))
    client.prompt(3)
    assert wait_until((program.workspace / "begun").exists)
    if how is None:
        assert client.hang_up() == code
    else:
        client.process.send_signal(how)
        (ended,) = (one for one in client.rest() if one.get("id") == 3)
        assert ended["result"]["stopReason"] == "cancelled"
        assert client.hang_up() == code
    assert left_in(program.workspace) == []
    assert list(verified(program)) == []
    last = program.records()[-1]
    assert (last["kind"], last["stop"]) == ("session_ended", stop)
    assert [one["status"] for one in program.records() if one["kind"] == "outcome"] == ["interrupted"]


def test_client_that_leaves_during_a_question_approves_no_call(program: Program) -> None:
    client = RawClient(program, *model_flags(program, replies(TOUCH, DONE), CONFIRM))
    client.prompt(3)
    client.read_to(lambda one: one.get("method") == "session/request_permission")
    assert client.hang_up() == 0
    (answered,) = (one for one in program.records() if one["kind"] == "approval_answered")
    assert (answered["answer"], answered["by"]) in (("nobody", "nobody"), ("stop", "client"))
    assert not (program.workspace / "made").exists()
    assert list(verified(program)) == []


def test_client_that_does_not_read_cannot_prevent_the_end(program: Program) -> None:
    client = RawClient(program, *model_flags(program, replies(*[say("x " * 200_000)] * 2), AUTO))
    client.prompt(3)
    assert wait_until(lambda: "model_request" in kinds(program))
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(ENOUGH) == 143
    assert client.hang_up() == 143
    assert list(verified(program)) == []


# -- the command


@all_rows(
    ("words", "told"),
    [
        (("serve",), "type `harness serve --stdio`"),
        (("serve", "--stdio", "--cwd", "x"), "unrecognized arguments: --cwd x"),
        (("serve", "--stdio", "x"), "unrecognized arguments: x"),
    ],
)
def test_wrong_arguments_are_reported(program: Program, words: tuple[str, ...], told: str) -> None:
    done = program.run(*words)
    assert (done.code, told in done.err, done.out) == (2, True, ""), done.err


def test_missing_package_error_names_the_extra(program: Program) -> None:
    script = (
        "import sys; sys.modules['acp'] = None; from harness.app.main import main; sys.exit(main(['serve', '--stdio']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=program.environment, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install 'permission-harness[acp]'\n")


def test_other_output_goes_to_stderr_and_other_input_is_empty(program: Program) -> None:
    script = """
import os, sys
from harness.terminal.console import own_streams
source, target = own_streams()
print("python", flush=True)
os.system("echo a shell; cat")
os.write(target, b"ours " + os.read(source, 100))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input="theirs", capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("ours theirs", "python\na shell\n")
