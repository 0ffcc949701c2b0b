"""`harness mcp serve`: our tools for clients of both eras of the protocol, the real program behind the SDK's own client."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from log_scene import unsynced
from process_scene import alive, sleep_token, wait_until
from program import Program
from rows import all_rows
from run_scene import written
from sandbox_scene import needs_walls
from tool_client import (
    LATER,
    LEGACY,
    RawClient,
    Served,
    closes,
    fills,
    kinds,
    refuses,
    sends,
    served,
    types_the_word,
    verified,
)

from harness import ActionLog, ToolRegistry, Workspace, builtin_tools
from harness.gate.approval import Approval
from harness.gate.call_checks import NO_SESSION_CHECKS
from harness.gate.gate import Gate
from harness.interrupt import Interrupt
from harness.log.vocabulary import Answer
from harness.plugins.mcp.client_link import ClientLink
from harness.plugins.mcp.question_form import QuestionForm
from harness.plugins.mcp.served_call import CallResult, ServedCall, ServedClient
from harness.plugins.mcp.tool_server import Questions, ServerStop, ToolServer
from harness.policy.loader import parse_policy
from harness.session.state import State
from harness.session.waiting import WaitingList
from policies import AUTO

token = pytest.fixture(sleep_token)
Answering = Callable[[Any], Any]
SILENT = "silent"
FREE = 'version = 1\n[tools]\nbash = "auto"\n'
ASKED = 'version = 1\n[tools]\nbash = "confirm"\n'
FORMS: dict[str, Any] = {"elicitation": {}}


@pytest.fixture
def clients(program: Program) -> Iterator[dict[str, Served]]:
    """A client of each era that shows forms, and one that does not, each in a folder of its own."""
    with ExitStack() as ending:
        yield {
            name: ending.enter_context(served(program, "--cwd", _folder(program, name), mode=mode, asks=name == mode))
            for name, mode in ((LEGACY, LEGACY), (LATER, LATER), (SILENT, LEGACY))
        }


def _folder(program: Program, name: str) -> str:
    return os.path.dirname(written(program.workspace / name / "a.txt", "alpha\n"))


def write(lines: int = 1) -> dict[str, Any]:
    return {"path": "new.txt", "content": "x\n" * lines}


RESET = {"command": "git reset --hard"}
# Of each row: the tool, its arguments, what the person does, whether it is an error, a part of the text, whether it was asked.
ROWS: list[tuple[str, dict[str, Any], Answering, bool, str, bool]] = [
    ("read_file", {"path": "a.txt"}, refuses, False, "alpha", False),
    ("bash", {"command": "cat a.txt"}, refuses, False, "alpha\n[exit code 0", False),
    ("bash", {"command": "cat none"}, refuses, True, "[exit code 1", False),
    ("bash", {}, refuses, True, "command", False),
    ("bash", {"command": "ls", "answer": "yes"}, refuses, True, "answer", False),
    ("none", {"command": "ls"}, refuses, True, "does not exist", False),
    ("approve", {"tool_name": "Bash", "input": {"command": "ls"}}, refuses, True, "does not exist", False),
    ("read_file", {"path": ".env"}, refuses, True, "Denied by rule", False),
    ("bash", {"command": "touch one"}, fills("yes"), False, "[exit code 0", True),
    ("bash", {"command": "touch none"}, fills("no"), True, "Denied by the client (mcp), without a reason", True),
    ("bash", {"command": "touch none"}, refuses, True, "Denied by the client (mcp), without a reason", True),
    ("bash", {"command": "touch none"}, closes, True, "the client closed the question without an answer", True),
    ("bash", {"command": "touch none"}, fills("YES"), True, "Denied by the client (mcp)", True),
    ("bash", {"command": "touch none"}, fills(True), True, "Denied by the client (mcp)", True),
    ("bash", {"command": "touch none"}, sends({}), True, "Denied by the client (mcp)", True),
    ("bash", {"command": "touch none"}, sends({"yes": "yes"}), True, "Denied by the client (mcp)", True),
    ("bash", {"command": "touch none"}, sends(None), True, "Denied by the client (mcp)", True),
    ("write_file", write(), fills("yes"), False, "new.txt", True),
    ("write_file", write(20), fills("yes"), True, "Denied by the client (mcp)", True),
    ("write_file", write(20), types_the_word, False, "new.txt", True),
    ("write_file", write(500), types_the_word, True, "the question is too long for a form", False),
    ("bash", RESET, fills("yes"), True, 'Denied by the client (mcp): "yes"', True),
    ("bash", RESET, fills("destroy"), True, 'Denied by the client (mcp): "destroy"', True),
    ("bash", RESET, types_the_word, True, "not a git repository", True),
]  # fmt: skip


@all_rows(
    ("mode", "row"), [(mode, row) for mode, row in itertools.product((LEGACY, LATER), ROWS)], ids=lambda given: given
)
def test_a_client_that_shows_forms(mode: str, row: tuple[Any, ...], clients: dict[str, Served]) -> None:
    client, (tool, arguments, answer, is_error, part, asked) = clients[mode], row
    client.person.answer = answer
    client.person.asked.clear()
    said = client.call(tool, **arguments)
    assert said.is_error == is_error, said
    assert part in said.text, said
    assert len(client.person.asked) == asked
    assert not (client.program.workspace / mode / "none").exists()


def test_client_without_forms_is_referred_to_approve(clients: dict[str, Served]) -> None:
    said = clients[SILENT].call("bash", command="touch none")
    assert said.is_error
    assert "and nobody is there to ask" in said.text
    assert "harness approve" in said.text


def test_a_client_that_might_answer_itself_is_not_asked(program: Program) -> None:
    with served(program, "--no-forms") as client:
        client.person.answer = fills("yes")
        assert client.call("bash", command="touch none").is_error
        assert client.person.asked == []


def test_a_hook_of_the_configuration_checks_these_calls_too(program: Program) -> None:
    refusing = written(
        program.home / "refuse.sh", '#!/bin/sh\nread -r event\necho \'{"decision": "deny", "reason": "Not today."}\'\n'
    )
    os.chmod(refusing, 0o700)
    folder = Path(program.environment["XDG_CONFIG_HOME"]) / "harness"
    written(folder / "config.toml", f'[[hook]]\nid = "no"\nevent = "before-call"\ncommand = ["{refusing}"]\n')
    with served(program) as client:
        said = client.call("bash", command="ls")
    assert said.is_error
    assert "Not today." in said.text
    assert [one["hook"] for one in kinds(verified(program), "hook_answered")] == ["no"]


def test_offered_tools_have_honest_hints(clients: dict[str, Served]) -> None:
    for client in clients.values():
        found = {
            name: (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint, tool.output_schema)
            for name, tool in client.tools().items()
            if (hints := tool.annotations) is not None
        }
        assert found == {
            "bash": (False, True, True, None),
            "read_file": (True, False, False, None),
            "write_file": (False, True, False, None),
            "edit_file": (False, True, False, None),
        }


def test_question_is_complete_and_has_no_default_approval(clients: dict[str, Served]) -> None:
    for mode in (LEGACY, LATER):
        client = clients[mode]
        client.person.asked.clear()
        client.call("bash", command="touch x && curl -s http://127.0.0.1:1\n# \x1b[2J")
        (form,) = client.person.asked
        for part in (
            "touch x",
            "curl -s http://127.0.0.1:1",
            "a yes opens: network 127.0.0.1:1",
            "\\x1b[2J",
            "To let it run, type: ",
        ):
            assert part in form.message
        assert "\x1b" not in form.message
        assert "default" not in str(form.requested_schema)
        assert all(line.startswith("    ") for line in form.message.split("\n"))  # as it is, also in Markdown


def test_secrets_are_masked_in_questions_at_the_client(program: Program) -> None:
    program.environment["API_TOKEN"] = "tok-0123456789abcdef"
    with served(program) as client:
        client.call("bash", command="touch tok-0123456789abcdef")
        (form,) = client.person.asked
        assert "tok-0123456789abcdef" not in form.message
        assert "touch" in form.message


@all_rows("mode", [LEGACY, LATER])
def test_a_hard_block_is_the_end_of_it(mode: str, program: Program, tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "row")}
    program.environment |= state
    program.state = tmp_path / "row"
    with served(program, mode=mode) as client:
        assert "Blocked by built-in delete-tree" in client.call("bash", command="rm -rf /").text
        for _ in range(2):
            said = client.call("bash", command="ls")
            assert said.is_error
            assert "an earlier call was a hard block, and nothing runs after it" in said.text
    records = verified(program)
    assert [one["status"] for one in kinds(records, "outcome")] == ["blocked", "not_run", "not_run"]
    assert kinds(records, "session_ended")[0]["stop"] == "blocked"


def test_the_log_is_one_session_that_reports_and_undo_understand(program: Program) -> None:
    with served(program, mode=LATER) as client:
        client.person.answer = fills("yes")
        client.call("write_file", path="a.txt", content="one\n")
        assert not client.call("edit_file", path="a.txt", old_string="one", new_string="two").is_error
        client.call("bash", command="ls")
    records = verified(program)
    (begun,) = kinds(records, "session_started")
    assert (begun["mode"], begun["agent"], begun["workspace"]) == ("mcp serve", "mcp", str(program.workspace))
    assert kinds(records, "session_ended")[0]["stop"] == "completed"
    assert [(one["by"], one["who"]) for one in kinds(records, "approval_answered")] == [("client", "mcp")] * 2
    assert "mcp serve" in program.run("audit", "list").out
    assert "[asked: yes by client (mcp)" in program.run("audit", "show").out
    assert program.run("audit", "report", "-o", str(program.home / "r.html")).code == 0
    assert (program.workspace / "a.txt").exists()
    assert program.run("undo", "--to", "1").code == 0
    assert not (program.workspace / "a.txt").exists()


def unasked(*_: object) -> Any:
    """Stand for a person who is never asked."""
    raise AssertionError


def test_client_leaving_after_its_result_ends_the_session_properly(tmp_path: Path) -> None:
    policy = parse_policy(AUTO.encode(), "test.toml")
    log = ActionLog.open(str(tmp_path / "log.jsonl"), sync=unsynced)
    tools = ToolRegistry(builtin_tools(Workspace(str(tmp_path))))
    server = ToolServer(
        gate_for=lambda ask: Gate(policy=policy, approver=ask, log=log, tools=tools),
        log=log,
        fields={"harness": "test", "policy_sha256": policy.sha256},
        interrupt=Interrupt(),
        checks=NO_SESSION_CHECKS,
        questions=Questions(text=unasked, word=unasked, elsewhere=unasked),
    )
    came: list[object] = []

    def leaves(news: object) -> None:
        came.append(news)
        server.take(ServerStop.CLIENT)

    before = signal.signal(signal.SIGUSR1, server.on_wake)
    try:
        server.take(ServedCall("read_file", '{"path": "."}', ServedClient(), asks=False, tell=leaves))
        server.end(server.run(), 0)
    finally:
        signal.signal(signal.SIGUSR1, before)
        log.close()
    assert len(came) == 1
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])["stop"] == "completed"


@needs_walls
def test_commands_run_in_the_walls(program: Program) -> None:
    outside = program.home / "outside"
    policy = written(program.home / "p.toml", FREE)
    with served(program, "--policy", policy) as client:
        said = client.call("bash", command=f"python3 -c \"open('{outside}', 'w')\"")
        assert said.is_error
        assert not outside.exists()
        said = client.call("bash", command=f"cat '{program.state}/harness/redaction_key'")
        assert said.is_error


@all_rows("asks", [False, True], ids=["no forms", "forms that are closed"])
def test_user_at_another_terminal_answers(asks: bool, program: Program) -> None:
    waiting = WaitingList(State.of(program.environment).waiting)
    agents: list[str] = []

    def answer() -> None:
        assert wait_until(lambda: bool(waiting.all()))
        (one,) = waiting.all()
        assert one.question is not None
        agents.append(one.question.agent)
        waiting.answer(one, Approval(answer=Answer.YES, by="person", words="go on"))

    with waiting.listening(), served(program, asks=asks) as client:
        client.person.answer = closes
        thread = threading.Thread(target=answer)
        thread.start()
        said = client.call("bash", command="touch there")
        thread.join()
    assert not said.is_error
    assert "go on" in said.text
    assert agents == ["mcp (MCP)"]


def test_configured_approver_is_asked_if_the_client_cannot(program: Program) -> None:
    folder = Path(program.environment["XDG_CONFIG_HOME"]) / "harness"
    folder.mkdir(parents=True)
    written(folder / "config.toml", '[approver]\ncommand = ["false"]\n')
    with served(program, asks=False) as client:
        said = client.call("bash", command="touch none")
    assert said.is_error
    assert "harness approve" not in said.text


# -- lines


@all_rows(
    ("line", "why"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bash","name":"none"}}', "duplicate key"),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bash","arguments":{"command":"ls","command":"rm"}}}',
            "duplicate key",
        ),
        (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', "batch"),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","more":1}', "no member"),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', "NaN"),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', "must be an object"),
    ],
)
def test_a_line_that_could_be_read_in_two_ways_is_refused(line: bytes, why: str, raw: RawClient) -> None:
    raw.write(line)
    answer = raw.read()
    assert answer["id"] == 7
    assert why in answer["error"]["message"]


@pytest.fixture
def raw(program: Program) -> Iterator[RawClient]:
    """A client that is lines, for whom commands are free."""
    with RawClient(program, "--policy", written(program.home / "p.toml", FREE)) as made:
        yield made


@all_rows(
    ("arguments", "part"),
    [
        ({"command": "echo a\0b"}, "NUL"),
        ({"command": "echo \ud800"}, ""),
        ({"command": 7}, "command"),
        ({"command": "x" * 1_100_000}, "command"),
    ],
)
def test_unusable_arguments_are_an_error_for_the_model(arguments: dict[str, Any], part: str, raw: RawClient) -> None:
    result = raw.ask("tools/call", {"name": "bash", "arguments": arguments}, identity=8)["result"]
    assert result["isError"]
    assert part in result["content"][0]["text"]


def _two_sleeps(program: Program, number: str) -> str:
    """Return a command that sleeps, and leaves a sleep of its own behind."""
    written(program.workspace / "two.sh", f"setsid sleep {number} &\nsleep {number}\n")
    return "sh two.sh"


def test_a_cancelled_call_ends_with_all_that_it_began(program: Program, raw: RawClient, token: str) -> None:
    raw.call(1, "bash", command=_two_sleeps(program, token))
    raw.call(2, "bash", command="echo never")
    raw.call(3, "bash", command="echo last")
    assert wait_until(lambda: len(alive(token)) >= 2)
    assert raw.ask("ping", {}, identity=4)["id"] == 4  # what runs keeps no message waiting
    raw.cancel(2)
    raw.cancel(1)
    answer = raw.read()
    assert (answer["id"], answer["result"]["content"][0]["text"][:4]) == (3, "last")
    assert alive(token) == []
    assert raw.end() == 0
    records = verified(program)
    assert [one["status"] for one in kinds(records, "outcome")] == ["interrupted", "not_run", "ok"]
    assert "\x1b" not in str(records[0]["agent"])


@all_rows("how", ["stdin", "SIGTERM", "SIGINT"])
def test_end_of_the_server_stops_calls_and_completes_the_log(how: str, program: Program, tmp_path: Path) -> None:
    program.state = tmp_path / "row"
    program.environment["XDG_STATE_HOME"] = str(program.state)
    (number,) = itertools.islice(sleep_token(), 1)
    with RawClient(program, "--policy", written(program.home / "p.toml", FREE)) as raw:
        raw.call(1, "bash", command=_two_sleeps(program, number))
        assert wait_until(lambda: len(alive(number)) >= 2)
        if how == "stdin":
            assert raw.end() == 0
        else:
            raw.process.send_signal(getattr(signal, how))
            assert raw.process.wait(120) == 0
    assert wait_until(lambda: alive(number) == [])
    records = verified(program)
    assert [one["status"] for one in kinds(records, "outcome")] == ["interrupted"]
    assert kinds(records, "session_ended")[0]["stop"] == "interrupted"


@all_rows("how", ["cancelled", "left"])
def test_question_of_a_cancelled_call_is_denied(how: str, program: Program, tmp_path: Path) -> None:
    program.state = tmp_path / "row"
    program.environment["XDG_STATE_HOME"] = str(program.state)
    with RawClient(program, "--policy", written(program.home / "p.toml", ASKED), capabilities=FORMS) as raw:
        raw.call(1, "bash", command="touch none")
        question = raw.read()
        assert question["method"] == "elicitation/create"
        if how == "cancelled":
            raw.cancel(1)
            assert raw.read()["method"] == "notifications/cancelled"  # of the question
            late = {"action": "accept", "content": {"answer": "yes"}}
            raw.write({"jsonrpc": "2.0", "id": question["id"], "result": late})
            assert raw.ask("ping", {}, identity=2)["id"] == 2
        assert raw.end() == 0
    assert not (program.workspace / "none").exists()
    records = verified(program)
    assert [(one["answer"], one["by"]) for one in kinds(records, "approval_answered")] == [("nobody", "nobody")]
    (outcome,) = kinds(records, "outcome")
    assert (outcome["status"], "before anybody answered" in str(outcome["content"])) == ("denied", True)


def test_a_question_of_the_later_era_is_forgotten_when_its_call_has_ended() -> None:
    """The client answers too late: nothing is kept for one that never does."""
    source, to_server = os.pipe()
    from_server, sink = os.pipe()
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    link = ClientLink([], "", forms=True, take=came.put, wake=lambda: None, streams=(source, sink))
    link.start()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }

    def asked(**more: Any) -> dict[str, Any]:
        params = {"name": "bash", "arguments": {}, "_meta": meta, **more}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        os.write(to_server, line.encode() + b"\n")
        return dict(json.loads(os.read(from_server, 1 << 16))["result"])

    def play() -> None:
        while not isinstance(call := came.get(), ServedCall):
            pass
        call.ask(QuestionForm(tool="bash", message="m", word=""), 0.0)
        ended.append(call)

    ended: list[ServedCall] = []
    playing = threading.Thread(target=play)
    playing.start()
    word = asked()["requestState"]
    playing.join()
    ended[0].end(CallResult(text="late", is_error=True))
    again = asked(requestState=word, inputResponses={})
    assert "nobody waits for this answer any more" in str(again)
    os.close(to_server)
    assert came.get(timeout=120) is ServerStop.CLIENT
    for one in (source, from_server, sink):
        os.close(one)


def test_end_of_the_client_precedes_the_end_of_its_calls() -> None:
    """Else a call could end as a cancelled call, and the session as a completed session."""
    source, to_server = os.pipe()
    from_server, sink = os.pipe()
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ClientLink([], "", forms=False, take=came.put, wake=lambda: came.put("wake"), streams=(source, sink)).start()
    lines = (
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        },
        {"id": 1, "method": "tools/call", "params": {"name": "bash", "arguments": {}}},
    )
    for line in lines:
        os.write(to_server, json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
    while not isinstance(call := came.get(timeout=120), ServedCall):
        pass
    os.close(to_server)
    assert came.get(timeout=120) is ServerStop.CLIENT
    assert not call.is_cancelled
    for each in (source, from_server, sink):
        os.close(each)


def test_unused_server_leaves_a_complete_log(program: Program) -> None:
    done = program.run("mcp", "serve")
    assert (done.code, done.out) == (0, "")
    assert [one["kind"] for one in verified(program)] == ["session_started", "session_ended"]


WITHOUT_MCP = "import sys; sys.modules['mcp'] = None; from harness.app.main import program; program()"


def test_missing_sdk_names_the_extra_to_install(program: Program) -> None:
    command = [sys.executable, "-c", WITHOUT_MCP, "mcp", "serve"]
    done = subprocess.run(
        command, cwd=program.workspace, env=program.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'permission-harness[mcp]'" in done.stderr
    assert program.logs() == []
