"""What else takes part in a session that an editor drives: servers, hooks, approvers outside; and the example."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from client_scene import SDK_SERVER
from hostile_mcp_server import tool
from places import ROOT, SUPPORT
from program import Program, made_program
from rows import all_rows
from run_scene import left_in, written
from serve_scene import WAITS, Editor, RawClient, model_flags, play, served, verified

from harness.models.scripted import Reply, call, replies, say
from harness.plugins.mcp.pins import PinFile
from harness.plugins.mcp.tool_description import ToolDescription, described
from policies import CONFIRM

HOSTILE = str(Path(SUPPORT, "hostile_mcp_server.py"))
TOUCH = Reply(calls=(call("bash", command="touch made"),))
DONE = say("All done.")
SERVERS = 'version = 1\n[tools]\ndefault = "confirm"\n"mcp__srv__*" = "auto"\n'


def configured(program: Program, text: str) -> None:
    written(Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml"), text)


@all_rows("mode", ["hang tools/call", "hang start"], anew={"program": made_program})
def test_a_server_that_hangs_does_not_keep_a_turn_from_being_cancelled(program: Program, mode: str) -> None:
    words = [sys.executable, HOSTILE, *mode.split(" ", 1)]
    configured(program, f"[mcp.servers.srv]\ncommand = {json.dumps(words)}\nseconds = 600\nstart_seconds = 300\n")
    seen = described(tool("act"), tuple(words), " ".join(words))
    assert isinstance(seen, ToolDescription)
    PinFile(str(program.state / "harness" / "mcp"), "srv").pin(seen)
    editor = Editor()

    async def scene() -> None:
        script = replies(Reply(calls=(call("mcp__srv__act"),)), DONE)
        async with served(program, editor, *model_flags(program, script, SERVERS)) as at:
            session = await at.new()
            prompt = asyncio.create_task(at.ask(session))
            if mode == "hang start":
                await at.until(lambda: "waiting for MCP servers" in editor.said("agent_thought_chunk"))
            else:
                await at.until(lambda: any(one.get("status") == "in_progress" for one in editor.calls().values()))
            await at.conn.cancel(session_id=session)
            assert (await prompt).stop_reason == "cancelled"

    play(scene)
    assert list(verified(program)) == []
    assert left_in(program.workspace) == []


def test_an_editor_that_cannot_fill_a_servers_form_in_is_asked_once(program: Program) -> None:
    words = [sys.executable, SDK_SERVER, "stdio"]
    configured(program, f"[mcp.servers.srv]\ncommand = {json.dumps(words)}\nstart_seconds = 300\n")
    editor = Editor(*["allow"] * 5)

    async def scene() -> None:
        script = replies(Reply(calls=(call("mcp__srv__book"),)), DONE)
        async with served(program, editor, *model_flags(program, script, SERVERS)) as at:
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)
    assert [("Where do you want to go?" in one.text) for one in editor.questions] == [False, True]
    assert "Not yet: city needs a value" in editor.questions[1].text
    (asked,) = (one for one in program.records() if one["kind"] == "server_asked")
    assert (asked["call"], asked["server"], asked["answer"], asked["by"]) == (1, "srv", "decline", "client")
    assert list(verified(program)) == []
    shown = program.run("audit", "show").out
    assert "~ the server srv asked: Where do you want to go?  [decline by client" in shown


APPROVER = """
import json, sys
question = json.loads(sys.stdin.readline())
print(json.dumps({"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "ann"}))
"""


def test_an_approver_outside_may_answer_before_the_editor_does(program: Program) -> None:
    path = written(program.home / "approver.py", APPROVER)
    configured(program, f"[approver]\ncommand = {json.dumps([sys.executable, '-I', '-S', path])}\n")
    editor = Editor(WAITS)

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(TOUCH, DONE), CONFIRM)) as at:
            assert (await at.ask(await at.new())).stop_reason == "end_turn"

    play(scene)
    assert (program.workspace / "made").exists()
    (answered,) = (one for one in program.records() if one["kind"] == "approval_answered")
    assert (answered["answer"], answered["by"], answered["who"]) == ("yes", "approver", "ann")
    assert list(verified(program)) == []


@all_rows("event", ["before-call", "session-start"], anew={"program": made_program})
def test_hooks_count_in_a_session_of_an_editor(program: Program, event: str) -> None:
    told = "not today"
    script = f"echo '{json.dumps({'decision': 'deny', 'reason': told})}'"
    path = written(program.home / "hook.sh", f"#!/bin/sh\n{script}\n")
    Path(path).chmod(0o755)
    configured(program, f'[[hook]]\nid = "company"\nevent = "{event}"\ncommand = ["{path}"]\n')
    client = RawClient(program, *model_flags(program, replies(TOUCH, DONE), 'version = 1\n[tools]\ndefault = "auto"\n'))
    client.request(1, "initialize", protocolVersion=1)
    client.request(2, "session/new", cwd=str(program.workspace), mcpServers=[])
    begun = client.read_to(lambda one: one.get("id") == 2)
    if event == "session-start":
        assert told in begun["error"]["message"]
    else:
        words = [{"type": "text", "text": "go"}]
        client.request(3, "session/prompt", sessionId=begun["result"]["sessionId"], prompt=words)
        client.read_to(lambda one: one.get("id") == 3)
        (outcome,) = (one for one in program.records() if one["kind"] == "outcome")
        assert told in str(outcome["content"])
    assert client.end()[0] == 0
    assert not (program.workspace / "made").exists()
    assert list(verified(program)) == []


@all_rows(("typed", "made"), [("allow\n", True), ("refuse\n", False), ("", False)], anew={"program": made_program})
def test_the_example_drives_it(program: Program, typed: str, *, made: bool) -> None:
    flags = model_flags(program, replies(TOUCH, DONE), CONFIRM)
    done = subprocess.run(
        [sys.executable, str(Path(ROOT, "examples", "acp_client.py")), "go", *flags],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=program.workspace,
        env={**program.environment, "PYTHONPATH": str(ROOT)},
    )
    assert "ASKS" in done.stdout or "bash asks" in done.stdout, done.stderr
    assert ("All done.\nend_turn" in done.stdout) is True
    assert (program.workspace / "made").exists() is made
    assert list(verified(program)) == []
