"""The servers of a configuration: started in walls, their tools offered, judged, called, bounded; and gone with the session."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent_scene import Asked
from client_scene import (
    ECHO,
    NOTHING,
    ClientScene,
    HttpServer,
    by_sdk,
    code,
    confines,
    scripted,
    seen_by,
)
from log_scene import begun
from mcp_scene import tool
from places import ROOT
from process_scene import alive
from rows import all_rows

from harness.actions import Decision, JsonValue, ToolBounds, ToolUse
from harness.errors import ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.gate import Gate
from harness.gate.registry import ToolRegistry
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall
from harness.plugins.mcp.client.connection import SentCall
from harness.plugins.mcp.configured_server import Standing
from harness.plugins.mcp.pending_call import AwaitedCall
from harness.plugins.mcp.server_declaration import ServerDeclaration, declared
from harness.plugins.mcp.tool_description import ToolDescription, described
from harness.terminal.question import by_model

WALLED = pytest.mark.skipif(not confines(), reason="nothing can be confined here")


def text(*blocks: Any, **further: Any) -> dict[str, Any]:
    """Return a result of texts, or of other blocks."""
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"content": content, **further}


# -- what is declared


@all_rows(
    ("name", "table", "problem"),
    {
        "no name": ("a__b", {"command": ["x"]}, "cannot be the name of a server"),
        "neither": ("s", {}, "one of command and url"),
        "both": ("s", {"command": ["x"], "url": "https://example.org"}, "one of command and url"),
        "no program": ("s", {"command": []}, "command: must be a list of strings"),
        "a shell string": ("s", {"command": "x -y"}, "command: must be a list of strings"),
        "NUL": ("s", {"command": ["x", "a\0b"]}, "command: must not hold a NUL"),
        "plain http": ("s", {"url": "http://example.org/mcp"}, "url: must begin with https://"),
        "a password": ("s", {"url": "https://a:b@example.org"}, "url: must hold no name and no password"),
        "no URL": ("s", {"url": "example.org"}, "url: must begin with https://"),
        "walls of a URL": ("s", {"url": "https://example.org", "network": True}, "network: not allowed"),
        "token of a command": ("s", {"command": ["x"], "bearer": "T"}, "bearer: not allowed"),
        "everything": ("s", {"command": ["x"], "write": ["/"]}, "write: number 1: would mean everything"),
        "a value": ("s", {"command": ["x"], "env": ["A=b"]}, "env: number 1: must be the name"),
        "no time": ("s", {"command": ["x"], "seconds": 0}, "seconds: must be a number above 0"),
        "no digest": ("s", {"command": ["x"], "pinned": "abc"}, "pinned: must be a SHA-256"),
        "unknown": ("s", {"comand": ["x"]}, "has the unknown field 'comand'"),
    },
)
def test_invalid_declaration_names_its_problem(name: str, table: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")) as raised:
        declared(name, table)
    assert str(raised.value).startswith(problem) or name != "s"


def test_a_declaration_is_a_record() -> None:
    table = {"command": ["x", "y"], "env": ["A"], "write": ["."], "network": True, "seconds": 5, "pinned": "0" * 64}
    one = declared("srv", table)
    assert one == ServerDeclaration(
        name="srv", command=("x", "y"), env=("A",), write=(".",), network=True, seconds=5, pinned="0" * 64
    )
    assert one.bounds is not None
    assert (one.bounds.write, one.bounds.network) == ((".",), True)
    there = declared("far", {"url": "https://example.org/mcp", "bearer": "TOKEN"})
    assert (there.words, there.bounds) == (("https://example.org/mcp",), None)


# -- what is offered


def test_tool_has_the_schema_of_the_server_and_is_judged_by_its_arguments(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"path": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    one = {**tool("read", "Reads a file."), "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, tools=[[one]])}) as scene:
        spec = scene.tool("mcp__srv__read").spec
        assert (spec.description, spec.parameters, spec.is_checked) == ("Reads a file.", schema, False)
        action = scene.prepared("mcp__srv__read", path="../a", other=[1, {"url": "https://example.org/x"}])
        (use,) = action.facets
        assert isinstance(use, ToolUse)
        assert (use.tool, use.says_reads, use.says_destroys) == ("mcp__srv__read", True, False)
        assert [(one.name, one.text, one.host) for one in use.arguments] == [
            ("path", "../a", ""),
            ("other", "1", ""),
            ("other.url", "https://example.org/x", "example.org"),
        ]
        assert use.bounds == ToolBounds(write=(str(tmp_path / "script.seen"),), network=False)
        assert "nobody has seen yet" in use.unseen
        assert "Reads a file." in action.preview
        assert action.seconds == 60


@all_rows(
    ("tools", "offered", "told"),
    {
        "two of one name": ([ECHO, tool("a"), tool("a")], ["mcp__srv__echo"], "two tools of that name"),
        "a long name": ([ECHO, tool("a" * 60)], ["mcp__srv__echo"], "longer than the 64"),
        "a dot": ([ECHO, tool("a.b")], ["mcp__srv__echo"], "no dot"),
        "look-alike letters": ([ECHO, tool("\u0435cho")], ["mcp__srv__echo"], "not of plain letters"),
        "too much said": ([ECHO, tool("big", "x" * 300_000)], ["mcp__srv__echo"], "more than 200000"),
        "too many": ([tool(f"t{n}") for n in range(200)], [f"mcp__srv__t{n}" for n in range(120)], "120 tools"),
        "far too many": ([tool(f"t{n}") for n in range(1_100)], [], "more than 1000 tools"),
        "no schema": (
            [ECHO, {"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"type": "banana"}}}}],
            ["mcp__srv__echo"],
            "the schema of its arguments is none",
        ),
        "half a character": (
            [ECHO, {"name": "a", "inputSchema": {"type": "object", "description": "\ud800"}}],
            ["mcp__srv__echo"],
            "holds what is no text",
        ),
        "a schema without an end": (
            [ECHO, {"name": "a", "inputSchema": {"type": "object", "description": "x" * 40_000}}],
            ["mcp__srv__echo"],
            "more than 30000 characters",
        ),
        "no list": ("odd", [], "does not fit the protocol"),
    },
    fresh=True,
)
def test_invalid_tools_are_left_out_with_a_note(tmp_path: Path, tools: Any, offered: list[str], told: str) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, tools=[tools])}) as scene:
        assert scene.names() == offered
        assert told in "\n".join(scene.servers.notes())
        assert scene.servers.notes() == []


def test_long_description_is_cut_and_invisible_characters_shown(tmp_path: Path) -> None:
    one = tool("echo", f"Reads\u200b{'.' * 2_000}")
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, tools=[[one]])}) as scene:
        said = scene.tool("mcp__srv__echo").spec.description
        assert said.startswith("Reads\\u200b...")
        assert len(said) == 1_024


def test_pages_are_read_to_the_end_and_no_further_than_a_hundred(tmp_path: Path) -> None:
    pages = [[tool(f"a{n}")] for n in range(3)]
    servers = {"few": scripted(tmp_path, "few", pages=pages), "many": scripted(tmp_path, "many", pages=pages * 40)}
    with ClientScene(tmp_path, servers) as scene:
        assert scene.names() == ["mcp__few__a0", "mcp__few__a1", "mcp__few__a2"]
        assert scene.report("many").reason == "the server's list of tools has more than 100 pages"


def test_tools_are_returned_once_they_arrive(tmp_path: Path) -> None:
    scene = ClientScene(tmp_path, {"srv": scripted(tmp_path)})
    assert scene.servers.tools() is None
    with scene:
        tools = scene.servers.tools()
        assert tools is not None
        assert [one.spec.name for one in tools] == ["mcp__srv__echo"]
        assert scene.servers.tools() is None


def test_missing_servers_start_no_process(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {}) as scene:
        assert (scene.servers.tools(), scene.servers.notes(), scene.servers.reports()) == (None, [], ())


# -- what is seen


def test_changed_tool_is_withdrawn_until_reviewed(tmp_path: Path) -> None:
    changed = tool("echo", "Does something else.")
    note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    table = scripted(tmp_path, tools=[[ECHO], [changed]], says={"echo": [note]})
    with ClientScene(tmp_path, {"srv": table}) as scene:
        assert scene.output("mcp__srv__echo", a=1).content == 'echo got {"a": 1}'
        scene.until(lambda: "the server changed this tool" in "".join(scene.servers.notes()))
        assert scene.servers.tools() == []
        now = scene.seen("srv").read()["echo"].listed
        assert now is not None
        scene.seen("srv").pin(now)  # what `harness mcp pin` does
        assert scene.names() == ["mcp__srv__echo"]
        (use,) = scene.prepared("mcp__srv__echo").facets
        assert isinstance(use, ToolUse)
        assert use.unseen == ""


def test_seen_tools_of_another_server_do_not_count(tmp_path: Path) -> None:
    one, other = scripted(tmp_path, "one"), scripted(tmp_path, "other", tools=[[tool("echo", "Does something else.")]])
    for table in (one, other, one):
        with ClientScene(tmp_path, {"srv": table}) as scene:
            for unseen in (True, False):
                (use,) = scene.prepared("mcp__srv__echo").facets
                assert isinstance(use, ToolUse)
                assert bool(use.unseen) == unseen
                scene.output("mcp__srv__echo")


def test_changes_of_many_tools_are_reported_once(tmp_path: Path) -> None:
    names = [f"t{n}" for n in range(7)]
    note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    tools = [[tool(name) for name in names], [tool(name, "New.") for name in names]]
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, tools=tools, says={"t0": [note]})}) as scene:
        scene.pin("t0")
        scene.output("mcp__srv__t0")
        scene.until(lambda: scene.servers._servers["srv"].is_listed.is_set() and scene.names() == [])
        first, rest = scene.servers.notes()
        assert "left out: t0: the server changed this tool after a person saw it" in first
        assert "left out: t1, t2, t3, t4, t5 and 1 more: the server changed this tool after it was" in rest


def test_a_version_that_was_pinned_elsewhere_is_for_the_next_session(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path)}) as scene:
        seen = scene.pin("echo")
        newer = described(tool("echo", "Newer."), declared("srv", scripted(tmp_path)).words, seen.command)
        assert isinstance(newer, ToolDescription)
        scene.seen("srv").note_listed({"echo": newer})
        scene.seen("srv").pin(newer)
        with pytest.raises(ToolError, match="another version of it was pinned; start the session again"):
            scene.servers._servers["srv"].catalog.usable("echo")


def test_a_call_of_a_tool_that_changed_since_it_was_judged_is_not_sent(tmp_path: Path) -> None:
    note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    table = scripted(tmp_path, tools=[[ECHO, tool("b")], [tool("echo", "New."), tool("b")]], says={"b": [note]})
    with ClientScene(tmp_path, {"srv": table}) as scene:
        echo, action = scene.tool("mcp__srv__echo"), scene.prepared("mcp__srv__echo")
        scene.output("mcp__srv__b")
        scene.until(lambda: scene.names() == ["mcp__srv__b"])
        with pytest.raises(ToolError, match="echo cannot be used: the server changed"):
            echo.run(action, NOTHING)
        assert [one["params"]["name"] for one in seen_by(tmp_path) if one["method"] == "tools/call"] == ["b"]


def test_declared_digest_counts_as_seen_and_a_changed_list_is_refused(tmp_path: Path) -> None:
    table = scripted(tmp_path, tools=[[ECHO, tool("b")]])
    with ClientScene(tmp_path, {"srv": table}) as scene:
        digest = scene.report("srv").digest
    with ClientScene(tmp_path, {"srv": {**table, "pinned": digest}}) as scene:
        (use,) = scene.prepared("mcp__srv__b").facets
        assert isinstance(use, ToolUse)
        assert use.unseen == ""
    with ClientScene(tmp_path, {"srv": {**table, "pinned": "0" * 64}}) as scene:
        assert scene.names() == []
        assert "something else than its `pinned`" in "\n".join(scene.servers.notes())


# -- results


@all_rows(
    ("answer", "status", "content"),
    {
        "texts": (text("a", "b"), "ok", "a\nb"),
        "an error": (text("no", isError=True), "failed", "no"),
        "a picture": (
            text({"type": "image", "data": "QUJD", "mimeType": "image/png"}),
            "ok",
            "[image: 3 bytes of image/png; not shown]",
        ),
        "a link": (
            text({"type": "resource_link", "name": "x", "uri": "file:///etc/passwd"}),
            "ok",
            "[link: x file:///etc/passwd; not followed]",
        ),
        "an embedded text": (
            text({"type": "resource", "resource": {"uri": "a:b", "text": "held"}}),
            "ok",
            "[resource: a:b]\nheld",
        ),
        "structured, said": (text('{"n": 2}', structuredContent={"n": 2}), "ok", '{"n": 2}'),
        "structured, not said": (text("1", structuredContent={"n": 2}), "ok", '1\nstructured: {"n":2}'),
        "nothing": (text(), "ok", "(nothing)"),
        "escapes": (text("\x1b[31mred\x1b[0m \u202eback"), "ok", "red \\u202eback"),
    },
    fresh=True,
)
def test_result_is_converted_for_the_model(tmp_path: Path, answer: Any, status: str, content: str) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, answers={"echo": answer})}) as scene:
        output = scene.output("mcp__srv__echo")
        assert (output.status.value, output.content.partition("\n[confined: ")[0]) == (status, content)


@WALLED
@all_rows("fails", [True, False], fresh=True)
def test_failure_behind_walls_names_the_walls(tmp_path: Path, fails: bool) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, answers={"echo": text("EACCES", isError=fails)})}) as scene:
        said = f": it may write {tmp_path}/script.seen; no network; the failure may come from that]"
        content = scene.output("mcp__srv__echo").content
        assert (content.endswith(said), "[confined: " in content) == (fails, fails)


def test_a_long_result_is_cut_and_kept_whole_in_a_file(tmp_path: Path) -> None:
    long = "".join(f"line {n}\n" for n in range(20_000))
    table = scripted(tmp_path, answers={"echo": text(long)})
    with ClientScene(tmp_path, {"srv": table}, limits=Limits(result_characters=5_000)) as scene:
        output = scene.output("mcp__srv__echo")
        assert output.truncated
        assert len(output.content) <= 5_000
        (kept,) = scene.outputs.iterdir()
        assert str(kept) in output.content
        assert kept.read_text() == long


@all_rows(
    ("script", "error"),
    {
        "no result": ({"answers": {"echo": None}}, "timed out after 1 s"),
        "it ends": ({"exit": {"echo": 3}}, "it closed its output"),
        "what is no result": ({"answers": {"echo": {"content": "odd"}}}, "does not fit the protocol"),
        "no message": ({"answers": {"echo": None}, "says": {"echo": ["\x1b noise\n"]}}, "timed out after 1 s"),
        "an answer nobody can read": (
            {"answers": {"echo": None}, "says": {"echo": ['{"jsonrpc":"2.0","id":4,"result":{"a":1,"a":2}}\n']}},
            "its answer cannot be read",
        ),
        "a huge line": ({"says": {"echo": ["x" * (17 << 20)]}}, "a line of more than 16 MiB"),
    },
    fresh=True,
)
def test_a_call_that_has_no_result_ends_all_the_same(tmp_path: Path, script: dict[str, Any], error: str) -> None:
    seconds = 1 if "timed out" in error else 600
    with ClientScene(tmp_path, {"srv": {**scripted(tmp_path, **script), "seconds": seconds}}) as scene:
        try:
            said = scene.output("mcp__srv__echo").content
        except ToolError as raised:
            said = str(raised)
        assert error in said


def test_a_call_that_takes_too_long_is_cancelled_at_the_server(tmp_path: Path) -> None:
    table = {**scripted(tmp_path, answers={"echo": None}), "seconds": 0.5}
    with ClientScene(tmp_path, {"srv": table}) as scene:
        assert scene.output("mcp__srv__echo").status is ResultStatus.TIMEOUT
        scene.until(lambda: [one for one in seen_by(tmp_path) if one["method"] == "notifications/cancelled"])


def test_ctrl_c_cancels_the_call_at_the_server_and_returns(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, answers={"echo": None})}) as scene:

        def interrupt() -> None:
            scene.until(lambda: [one for one in seen_by(tmp_path) if one["method"] == "tools/call"])
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            scene.output("mcp__srv__echo")
        thread.join()
        scene.until(lambda: [one for one in seen_by(tmp_path) if one["method"] == "notifications/cancelled"])


# -- servers that fail, and their ends


@all_rows(
    ("table", "why"),
    {
        "no such program": ({"command": ["no-such-program"]}, "no program no-such-program"),
        "it is no program": ({"command": ["/etc/passwd"]}, "it closed its output; it ended with exit code 126"),
        "it ends at once": (code("import sys; sys.exit('no config')"), "exit code 1; the last that it said: no config"),
        "a token is missing": ({"url": "http://127.0.0.1:9/mcp", "bearer": "TOKEN"}, "the variable TOKEN"),
        "nobody listens": ({"url": "http://127.0.0.1:9/mcp"}, "ConnectError"),
    },
    fresh=True,
)
def test_failed_server_is_left_out_with_a_note(tmp_path: Path, table: dict[str, object], why: str) -> None:
    with ClientScene(tmp_path, {"bad": table, "good": scripted(tmp_path)}) as scene:
        assert scene.names() == ["mcp__good__echo"]
        (told,) = scene.servers.notes()
        assert told.startswith("MCP server bad: is left out: ")
        assert why in told
        assert scene.report("bad").standing is Standing.FAILED


def test_a_server_that_ends_is_started_again_once_and_then_takes_its_tools_along(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, exit={"echo": 3})}) as scene:
        action, echo = scene.prepared("mcp__srv__echo"), scene.tool("mcp__srv__echo")
        with pytest.raises(ToolError, match="closed its output"):
            scene.output("mcp__srv__echo")
        with pytest.raises(ToolError, match="closed its output"):
            scene.output("mcp__srv__echo")
        scene.until(lambda: scene.names() == [])
        first, second = scene.servers.notes()
        assert ("is started again, once" in first, "its tools are gone" in second) == (True, True)
        methods = [message["method"] for message in seen_by(tmp_path)]
        assert (methods.count("initialize"), methods.count("tools/call")) == (2, 2)
        with pytest.raises(ToolError):
            echo.run(action, NOTHING)
        with pytest.raises(ToolError, match="is gone"):
            ToolRegistry([echo]).prepare(ToolCall(id="c", name="mcp__srv__echo", arguments="{}"))


def test_a_server_that_is_started_again_gets_no_other_tools(tmp_path: Path) -> None:
    script = scripted(tmp_path, tools=[[tool("end"), ECHO]], exit={"end": 3})
    with ClientScene(tmp_path, {"srv": script}) as scene:
        scene.names()
        path = tmp_path / "script.json"
        changed = {**json.loads(path.read_text()), "tools": [[tool("end"), tool("echo", "Does something else.")]]}
        path.write_text(json.dumps(changed))
        with pytest.raises(ToolError, match="closed its output"):
            scene.output("mcp__srv__end")
        scene.until(lambda: scene.names() == ["mcp__srv__end"])
        scene.until(lambda: "the server changed this tool" in "\n".join(scene.servers.notes()))


def test_noise_is_ignored_and_counted_and_stderr_is_kept(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {"srv": scripted(tmp_path, says={"tools/list": ["hello\n", "[]\n"]})}) as scene:
        assert scene.names() == ["mcp__srv__echo"]
        assert scene.report("srv").noise == 2
    with ClientScene(tmp_path, {"srv": code("import sys; print('odd', file=sys.stderr); input()")}) as scene:
        assert scene.report("srv").errors == "odd\n"


LEAVES = """
import subprocess, sys, time
word = sys.argv[1]
run = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", word]
subprocess.Popen(run)
subprocess.Popen(run, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
subprocess.Popen(["env", "-i", *run], start_new_session=True, stdout=subprocess.DEVNULL)
print(file=sys.stderr, flush=True)
time.sleep(3600)
"""


def test_processes_of_a_server_end_with_it(tmp_path: Path) -> None:
    word = f"left-{tmp_path.name}-{time.monotonic_ns()}"
    scene = ClientScene(tmp_path, {"srv": code(LEAVES, word)})
    scene.servers.start()
    scene.until(lambda: len(alive(word)) == 4)
    scene.servers.close()
    assert alive(word) == []


def test_server_can_be_closed_immediately(tmp_path: Path) -> None:
    scene = ClientScene(tmp_path, {"srv": scripted(tmp_path), "other": scripted(tmp_path, "other")})
    scene.servers.start()
    scene.servers.close()
    assert alive(str(tmp_path / "script.json")) == []
    assert scene.servers.tools() in (None, [])


# -- walls

TRIES = """
import json, os, socket, sys
def attempt(work):
    try:
        work()
        return "yes"
    except OSError as error:
        return type(error).__name__
def write(path):
    with open(path, "w") as file:
        file.write("x")
def answer():
    return json.dumps({
        "workspace": attempt(lambda: write("made")),
        "temporary": attempt(lambda: write(os.environ["TMPDIR"] + "/made")),
        "home": attempt(lambda: write(os.environ["HOME"] + "/made")),
        "network": attempt(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)),
        "hidden": attempt(lambda: open(os.environ["HOME"] + "/.ssh/id")),
        "variables": sorted(name for name in os.environ if name in ("SECRET_A", "SECRET_B", "GIVEN")),
    })
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"content": [{"type": "text", "text": answer()}]}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "tries", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@WALLED
@all_rows(
    ("table", "policy", "allowed"),
    {
        "nothing is declared": ({}, "", ["temporary"]),
        "the workspace": ({"write": ["."]}, "", ["temporary", "workspace"]),
        "the network": ({"network": True}, "", ["network", "temporary"]),
        "all of it": ({"write": ["."], "network": True}, "", ["network", "temporary", "workspace"]),
        "a policy takes the network away": ({"network": True}, "[sandbox]\nnetwork = false\n", ["temporary"]),
        "a policy lets less be written": ({"write": ["."]}, '[sandbox]\nwrite = ["sub/"]\n', ["temporary"]),
    },
    fresh=True,
)
def test_a_server_does_no_more_than_is_declared_and_the_policy_has(
    tmp_path: Path, table: dict[str, object], policy: str, allowed: list[str]
) -> None:
    rules = f'version = 1\nname = "x"\n[tools]\ndefault = "confirm"\n{policy}'
    variables = {"SECRET_A": "a", "SECRET_B": "b"}
    with HttpServer() as there:
        given = code(TRIES, str(there.port), env=["SECRET_A"], **table)
        hidden = tmp_path / "home" / ".ssh"
        hidden.mkdir(parents=True)
        (hidden / "id").write_text("key")
        with ClientScene(tmp_path, {"srv": given}, policy=rules, variables=variables) as scene:
            found = json.loads(scene.output("mcp__srv__tries").content)
            assert found.pop("variables") == ["SECRET_A"]
            assert sorted(name for name, said in found.items() if said == "yes") == allowed
            walls = scene.tool("mcp__srv__tries").walls  # type: ignore[attr-defined]
            assert walls.confines
            assert ("no network" in walls.level) == ("network" not in allowed)


# -- the SDK's own servers, in both eras of the protocol


def at_once(answer: Answer, **fields: Any) -> Asked:
    return Asked(lambda: Approval(answer=answer, by="person", **fields))


def test_a_server_of_the_sdk_over_its_standard_streams(tmp_path: Path) -> None:
    with ClientScene(tmp_path, {"sdk": by_sdk()}) as scene:
        assert scene.names() == [f"mcp__sdk__{one}" for one in ("add", "fail", "slow", "picture", "book")]
        assert scene.output("mcp__sdk__add", a=1, b=2).content == '3\nstructured: {"result":3}'
        failed = scene.output("mcp__sdk__fail")
        assert (failed.status, failed.content.partition("\n")[0]) == (ResultStatus.FAILED, "Error executing tool fail")
        assert scene.output("mcp__sdk__picture").content == "[image: 1,004 bytes of image/png; not shown]"
        wrong = scene.output("mcp__sdk__add", a="x")
        assert wrong.status is ResultStatus.FAILED
        (use,) = scene.prepared("mcp__sdk__add").facets
        assert isinstance(use, ToolUse)
        assert use.says_reads


def test_a_server_of_the_sdk_at_a_url(tmp_path: Path) -> None:
    with HttpServer("t0k3n") as there:
        servers: dict[str, dict[str, object]] = {
            "far": {"url": there.url, "bearer": "TOKEN"},
            "brief": {"url": there.url, "bearer": "TOKEN", "seconds": 0.5},
            "away": {"url": there.url.replace("/mcp", "/away"), "bearer": "TOKEN"},
            "large": {"url": there.url.replace("/mcp", "/large"), "bearer": "TOKEN"},
            "nobody": {"url": there.url},
        }
        with ClientScene(tmp_path, servers, variables={"TOKEN": "t0k3n"}) as scene:
            assert scene.output("mcp__far__add", a=1, b=2).content.startswith("3")
            assert scene.output("mcp__brief__slow").status is ResultStatus.TIMEOUT
            assert {name for one in scene.names() for name in one.split("__")[1:2]} == {"far", "brief"}
            told = {name: scene.report(name).reason for name in ("away", "large", "nobody")}
            assert "not followed" in told["away"]
            assert told["large"]
            assert told["nobody"]
            assert scene.tool("mcp__far__add").walls.level == "none: the server runs elsewhere"  # type: ignore[attr-defined]


# -- what a server asks


def filled(*lines: str) -> Callable[[], Approval]:
    """Return who fills the form in, and then says yes."""
    answers = iter(
        (
            Approval(answer=Answer.EDIT, by="person", arguments=json.dumps({"answers": "\n".join(lines)})),
            Approval(answer=Answer.YES, by="person"),
            Approval(answer=Answer.NO, by="person"),
        )
    )
    return lambda: next(answers)


@all_rows(
    ("approver", "said"),
    {
        "filled in": (filled("city: Rome", "days: 3", "night: yes"), "Rome for 3, by night"),
        "left out": (filled("city: Rome", "days: 3"), "Rome for 3, by day"),
        "not a number": (filled("city: Rome", "days: three"), "declined by person"),
        "no": (lambda: Approval(answer=Answer.NO, by="person"), "declined by person"),
    },
    fresh=True,
)
def test_a_form_is_a_question_by_the_servers_name(tmp_path: Path, approver: Callable[[], Approval], said: str) -> None:
    asked = Asked(approver)
    with ClientScene(tmp_path, {"sdk": by_sdk()}, approver=asked) as scene:
        output = scene.output("mcp__sdk__book")
        assert said in output.content
        assert 'The server asked the person: "Where do you want to go?"' in output.content
    action, verdict = asked.shown[0]
    assert (action.tool, by_model(action)) == ("mcp__sdk", False)  # it is put to nobody outside
    assert "Where do you want to go?" in action.preview
    assert "never tell one a secret" in verdict.facets[0].reason


def form(message: str, **properties: Any) -> str:
    schema = {"type": "object", "properties": properties}
    params = {"message": message, "requestedSchema": schema}
    return json.dumps({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": params}) + "\n"


TEXT = {"type": "string"}
NEVER = Asked(lambda: pytest.fail("nobody was to be asked"))


@all_rows(
    ("asks", "approver", "why"),
    {
        "a password": (form("Your password, please.", answer=TEXT), NEVER, "asking for a password"),
        "a token by its field": (form("Go on?", api_key=TEXT), NEVER, "asking for a password"),
        "in other letters": (form("Your p\u0430ssw\u043erd?", answer=TEXT), NEVER, "not what it seems"),
        "fields in fields": (form("Go on?", a={"type": "object", "properties": {}}), NEVER, "no plain field"),
        "nobody is there": (form("Go on?"), deny_all, ""),
    },
    fresh=True,
)
def test_refused_form_is_reported_without_a_question(tmp_path: Path, asks: str, approver: Approver, why: str) -> None:
    table = scripted(tmp_path, says={"echo": [asks]})
    with ClientScene(tmp_path, {"srv": table}, approver=approver) as scene:
        scene.output("mcp__srv__echo")
        scene.until(lambda: [one for one in seen_by(tmp_path) if one.get("id") == "e1"])
        (answer,) = [one for one in seen_by(tmp_path) if one.get("id") == "e1"]
        assert "error" in answer or answer["result"] == {"action": "decline"}
        assert why in "\n".join(scene.servers.notes())


def test_a_server_that_asks_while_no_call_of_it_runs_is_refused(tmp_path: Path) -> None:
    table = scripted(tmp_path, says={"tools/list": [form("Go on?")]})
    with ClientScene(tmp_path, {"srv": table}, approver=NEVER) as scene:
        scene.until(lambda: [one for one in seen_by(tmp_path) if one.get("id") == "e1"])
        assert "while no call of it runs" in "\n".join(scene.servers.notes())


def test_time_of_a_call_is_paused_during_a_question() -> None:
    async def paused() -> tuple[float, bool]:
        scope = anyio.CancelScope(deadline=anyio.current_time() + 100)
        before = scope.deadline
        with SentCall(scope, AwaitedCall(None)).paused():
            during = scope.deadline
        return during, scope.deadline >= before

    assert anyio.run(paused) == (float("inf"), True)


def test_stopping_at_the_question_stops_the_call(tmp_path: Path) -> None:
    stop = at_once(Answer.STOP)
    with ClientScene(tmp_path, {"sdk": by_sdk()}, approver=stop) as scene, pytest.raises(KeyboardInterrupt):
        scene.output("mcp__sdk__book")


# -- through the gate


@all_rows(
    ("by", "is_kept"),
    [("person", True), ("approver", False), ("client", False), ("script", False)],
    fresh=True,
)
def test_only_tools_approved_by_a_person_stay_seen(tmp_path: Path, by: str, is_kept: bool) -> None:
    def is_seen(scene: ClientScene) -> bool:
        (use,) = scene.prepared("mcp__srv__echo").facets
        assert isinstance(use, ToolUse)
        return not use.unseen

    table = scripted(tmp_path)
    with ClientScene(tmp_path, {"srv": table}) as scene:
        yes = Asked(lambda: Approval(answer=Answer.YES, by=by))
        log = begun(ActionLog.open(str(tmp_path / "log.jsonl")), scene.policy)
        gate = Gate(policy=scene.policy, approver=yes, log=log, tools=ToolRegistry(scene.offered()))
        assert not is_seen(scene)
        gate.call(gate.propose(ToolCall(id="c1", name="mcp__srv__echo", arguments="{}")))
        assert is_seen(scene), "in this session nobody is asked again for that"
        held = scene.seen("srv").read()["echo"]
        assert (held.pinned is not None) is is_kept
        log.close()
    with ClientScene(tmp_path, {"srv": table}) as scene:
        assert is_seen(scene) is is_kept


def test_the_gate_asks_records_and_pins(tmp_path: Path) -> None:
    yes = at_once(Answer.YES)
    with ClientScene(tmp_path, {"srv": scripted(tmp_path)}) as scene:
        log = begun(ActionLog.open(str(tmp_path / "log.jsonl")), scene.policy)
        gate = Gate(policy=scene.policy, approver=yes, log=log, tools=ToolRegistry(scene.offered()))
        call = ToolCall(id="c1", name="mcp__srv__echo", arguments='{"a": "b"}')
        result = gate.call(gate.propose(call)).result
        log.close()
        assert (result.status, result.content) == (ResultStatus.OK, 'echo got {"a": "b"}')
        (action, verdict) = yes.shown[0]
        assert "your yes keeps this as seen. This is all that its server says of it" in action.preview
        assert verdict.deciding.reason == "nobody has seen yet what the server says of echo"
        assert "harness mcp pin srv echo" in verdict.deciding.hint
        assert verdict.decision is Decision.CONFIRM
        assert scene.seen("srv").read()["echo"].pinned is not None
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert kinds[1:] == ["call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome"]


UNTOLD = [{"name": name} for name in ("city", "days", "night")]


@all_rows(
    ("approver", "answer", "fields", "status"),
    {
        "filled in": (
            filled("city: hunter2hunter2", "days: 3"),
            "accept",
            [{"name": "city", "value": "[redacted"}, {"name": "days", "value": "3"}, {"name": "night"}],
            "ok",
        ),
        "stopped": (lambda: Approval(answer=Answer.STOP, by="person"), "cancel", UNTOLD, "interrupted"),
        "no": (lambda: Approval(answer=Answer.NO, by="approver", who="phone"), "decline", UNTOLD, "failed"),
    },
    fresh=True,
)
def test_questions_of_a_server_are_logged(
    tmp_path: Path, approver: Callable[[], Approval], answer: str, fields: object, status: str
) -> None:
    path = tmp_path / "log.jsonl"
    log = ActionLog.open(str(path), secrets=["hunter2hunter2"])

    def record(asked: Mapping[str, JsonValue]) -> None:
        log.append("server_asked", {"call": log.running_call, **asked})

    with ClientScene(tmp_path, {"sdk": by_sdk()}, approver=Asked(approver), record=record) as scene:
        begun(log, scene.policy)
        gate = Gate(policy=scene.policy, approver=at_once(Answer.YES), log=log, tools=ToolRegistry(scene.offered()))
        gate.call(gate.propose(ToolCall(id="c1", name="mcp__sdk__book", arguments="{}")))
        log.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["kind"] for one in records[-3:]] == ["intent", "server_asked", "outcome"]
    found, ended = records[-2:]
    assert verify(str(path)).problem == ""
    assert (found["call"], found["server"], found["message"]) == (1, "sdk", "Where do you want to go?")
    assert (found["answer"], ended["status"]) == (answer, status)
    assert (found["by"], found.get("who")) == (("approver", "phone") if answer == "decline" else ("person", None))
    assert [{name: text.partition(":")[0] for name, text in one.items()} for one in found["fields"]] == fields


def test_missing_package_error_names_the_install_command(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['mcp'] = None; sys.path.insert(0, sys.argv[1])\n"
        "from harness.plugins.mcp.mcp_servers import check_installed\n"
        "try:\n    check_installed()\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(ROOT)], capture_output=True, text=True, check=True)
    assert "pip install 'permission-harness[mcp]'" in done.stdout
    assert done.stdout.startswith("UsageError")
