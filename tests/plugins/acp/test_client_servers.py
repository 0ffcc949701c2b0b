"""MCP servers that an editor declares: asked about before they start, judged like all, and never above the user's own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from client_scene import scripted
from mcp_scene import SERVER
from program import Program
from rows import all_rows
from serve_scene import Editor, model_flags, play, served

from harness.models.scripted import Reply, call, replies, say

DONE = say("Done.")
ECHO = Reply(calls=(call("mcp__theirs__echo", text="hi"),))
SECRET = "S3cret-5f0e1d2c3b4a"


def declared(folder: Path, name: str = "theirs") -> McpServerStdio:
    """Return a server as an editor declares it. It may write nothing, so it notes nothing of what it gets."""
    words = scripted(folder)["command"]
    script = folder / "script.json"
    script.write_text(json.dumps({**json.loads(script.read_text()), "seen": os.devnull}))
    assert isinstance(words, list)
    variable = EnvVariable(name="KEY", value=SECRET)
    return McpServerStdio(name=name, command=words[0], args=words[1:], env=[variable])


def session(program: Program, editor: Editor, servers: list[Any], *script: Reply) -> list[str]:
    """Let a model work with an editor's servers. Return the notes of the session."""
    notes: list[str] = []

    async def scene() -> None:
        async with served(program, editor, *model_flags(program, replies(*script))) as at:
            began = await at.conn.new_session(cwd=str(program.workspace), mcp_servers=servers)
            notes.extend((began.field_meta or {})["harness"]["notes"])
            await at.ask(began.session_id)

    play(scene)
    return notes


def test_a_server_of_the_editor_starts_after_a_yes_and_its_tools_ask(program: Program) -> None:
    editor = Editor("allow", "allow")
    server = declared(program.workspace)
    assert session(program, editor, [server], ECHO, DONE) == []
    start, first_call = editor.questions
    assert server.command in start.text
    assert "It gets values for: KEY" in start.text
    assert "nobody has seen yet" in first_call.text
    (asked,) = [one for one in program.records() if one["kind"] == "server_asked"]
    assert (asked["server"], asked["message"], asked["answer"], asked["by"]) == (
        "theirs",
        "may it start?",
        "accept",
        "client",
    )
    assert [one["status"] for one in program.records() if one["kind"] == "outcome"] == ["ok"]
    assert SECRET not in json.dumps([question.text for question in editor.questions])


@all_rows("answer", ["refuse", "(nonsense)", "(fails)"], fresh=True)
def test_a_server_without_a_yes_is_not_started(program: Program, answer: str) -> None:
    editor = Editor(answer)
    session(program, editor, [declared(program.workspace)], DONE)
    assert len(editor.questions) == 1
    assert "mcp__theirs__echo" not in json.dumps(program.records())
    assert "its start was not allowed" in editor.said("agent_thought_chunk")


def test_a_stop_at_that_question_stops_the_turn(program: Program) -> None:
    editor = Editor("stop")
    session(program, editor, [declared(program.workspace)], DONE)
    assert editor.said() == ""


def test_unusable_servers_are_left_out_with_a_note(program: Program) -> None:
    config = Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text(f"[mcp.servers.own]\ncommand = {json.dumps([sys.executable, SERVER])}\nstart_seconds = 1\n")
    leak = HttpMcpServer(
        name="leak", type="http", url="https://example.org/mcp", headers=[HttpHeader(name="X", value="${HOME}")]
    )
    servers = [
        McpServerStdio(name="own", command="touch", args=["made"], env=[]),
        McpServerStdio(name="a name", command="touch", args=["made"], env=[]),
        SseMcpServer(name="old", type="sse", url="https://example.org/sse", headers=[]),
        HttpMcpServer(name="plain", type="http", url="http://example.org/mcp", headers=[]),
        leak,
    ]
    editor = Editor()
    reasons = [
        "one of that name is declared",
        "cannot be the name",
        "its transport",
        "must begin with https",
        "HOME is not set",
    ]
    notes = session(program, editor, servers, DONE)
    assert [reason in note for reason, note in zip(reasons, notes, strict=True)] == [True] * len(reasons), notes
    assert editor.questions == []
