"""`harness mcp list` and `harness mcp check`: configured servers, from where, how their tools stand, and why one fails."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from configured_scene import ConfiguredScene
from hostile_mcp_server import tool
from places import SUPPORT
from program import Program
from rows import all_rows
from run_scene import written

from harness.plugins.mcp.commands.check_command import hints
from harness.plugins.mcp.server_declaration import ServerDeclaration

SERVER = str(Path(SUPPORT, "hostile_mcp_server.py"))
WORDS = [sys.executable, SERVER, "plain"]
LISTING = """\
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "listing", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    else:
        result = {"tools": TOOLS} if asked["method"] == "tools/list" else {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""An MCP server with these tools."""


def test_servers_are_listed_with_place_and_tool_states(program: Program) -> None:
    scene = ConfiguredScene(program, WORDS)
    config = f"{program.environment['XDG_CONFIG_HOME']}/harness/config.toml"
    assert program.run("mcp", "list").out == f"srv  starts: {shlex.join(WORDS)}  ({config}:1)\n"
    assert program.run("mcp", "check").code == 0
    assert [line.split()[:3] for line in program.run("mcp", "list").out.splitlines()[1:]] == [["srv", "act", "new"]]
    scene.saw(tool("act"))
    told = [json.loads(line) for line in program.run("mcp", "list", "--json").out.splitlines()]
    assert told[0] == {"server": "srv", "origin": f"{config}:1", "command": WORDS}
    assert [(one["tool"], one["is"]) for one in told[1:]] == [("act", "pinned")]
    assert "pinned: act, sha256 " in program.run("mcp", "check", "srv").out
    ConfiguredScene(program, [*WORDS, "other"])
    assert program.run("mcp", "list").out.split()[-4:-1] == ["srv", "act", "new"]
    assert "new: act" in program.run("mcp", "check").out
    Path(config).unlink()
    assert program.run("mcp", "list").out.rstrip().endswith("  (no such server is configured here)")


def test_printed_digest_can_be_declared(program: Program) -> None:
    ConfiguredScene(program, WORDS)
    out = program.run("mcp", "check").out
    (digest,) = re.findall('to hold the whole list, configure pinned = "([0-9a-f]{64})"', out)
    assert "to pin one tool: harness mcp pin srv --yes SHA256, with the sha256 of that tool" in out
    ConfiguredScene(program, WORDS, pinned=digest)
    assert program.run("mcp", "check").code == 0
    ConfiguredScene(program, WORDS, pinned="0" * 64)
    done = program.run("mcp", "check")
    assert (done.code, f"its pinned in the configuration is another: {'0' * 64}" in done.out) == (1, True)
    assert done.out.startswith("srv: failed: it lists something else than its `pinned` holds\n\nsrv  starts: ")
    assert ("0 tools" in done.out, done.out.count("something else")) == (False, 1)


def test_several_servers_take_a_line_each(program: Program) -> None:
    servers = {
        "good": {"command": sys.executable, "args": [SERVER, "plain"]},
        "dead": {"command": sys.executable, "args": [SERVER, "dies_at", "initialize"]},
    }
    written(program.workspace / ".mcp.json", json.dumps({"mcpServers": servers}))
    program.run("policy", "trust", ".mcp.json")
    done = program.run("mcp", "check")
    lines = done.out.splitlines()
    assert (done.code, len(lines)) == (1, 3), done
    assert lines[0] == "good: ok, 1 tool, 1 new"
    assert lines[1].startswith("dead: failed: ")
    assert "harness mcp check NAME" in lines[2]
    assert "sha256" in program.run("mcp", "check", "good").out


def test_unknown_server_is_refused_with_a_suggestion(program: Program) -> None:
    ConfiguredScene(program, WORDS)
    done = program.run("mcp", "check", "srw")
    assert (done.code, done.err) == (2, "harness: no MCP server 'srw' is configured; did you mean srv?\n")


def test_a_server_of_the_folder_is_tried_where_it_is_trusted(program: Program) -> None:
    servers = {"a": {"command": sys.executable, "args": [SERVER, "plain"]}, "b": {"command": "${NO_SUCH_VARIABLE}"}}
    written(program.workspace / ".mcp.json", json.dumps({"mcpServers": servers}))
    assert "you have not trusted it" in program.run("mcp", "check").out
    assert program.run("policy", "trust", ".mcp.json").code == 0
    done = program.run("mcp", "check")
    assert (done.code, "a: ok, 1 tool, 1 new" in done.out, "NO_SUCH_VARIABLE is not set" in done.out) == (0, True, True)
    assert "(.mcp.json:1)" in program.run("mcp", "list").out


def test_a_secret_in_a_command_line_is_masked(program: Program) -> None:
    servers = {"a": {"command": sys.executable, "args": [SERVER, "plain", "${MY_TOKEN}"]}}
    written(program.workspace / ".mcp.json", json.dumps({"mcpServers": servers}))
    program.environment["MY_TOKEN"] = "tk-4Zp8Qs7Lw2Nv6Xy1"
    program.run("policy", "trust", ".mcp.json")
    for words in (["list"], ["list", "--json"], ["check"]):
        done = program.run("mcp", *words)
        assert (done.code, "tk-4Zp8Qs7Lw2Nv6Xy1" in done.out + done.err, "[redacted" in done.out) == (0, False, True)


HINTS = [
    ("npm error code ENOTFOUND", {}, ["network = true"]),
    ("npm error code ENOTFOUND", {"network": True}, []),
    ("[Errno -3] Temporary failure in name resolution", {}, ["network = true"]),
    ("PermissionError: [Errno 13] Permission denied: '/srv/x'", {}, ["(it named /srv/x)"]),
    ("Error: EACCES: permission denied, open '/a/b' and '/c'", {"network": True}, ["(it named /a/b, /c)"]),
    ("ValueError: nonsense", {}, []),
    ("", {"command": ("npx", "-y", "x")}, ["downloads at the start"]),
    ("Permission denied", {"command": (), "url": "https://e.org"}, []),
]


@all_rows(("said", "declared", "told"), HINTS)
def test_hints_are_given_if_the_walls_are_the_likely_reason(
    said: str, declared: dict[str, object], told: list[str]
) -> None:
    declaration = ServerDeclaration(**{"name": "srv", "command": ("x",), **declared})  # type: ignore[arg-type]
    found = list(hints(declaration, said))
    assert len(found) == len(told), found
    assert all(part in line for part, line in zip(told, found, strict=True)), found


def test_doubled_tools_and_hidden_characters_are_told(program: Program) -> None:
    listed = [tool("plain"), tool("odd", description="Do\u200b it."), tool("two"), tool("two", description="Other.")]
    server = program.workspace / "listing.py"
    server.write_text(LISTING.replace("TOOLS", repr(listed)))
    ConfiguredScene(program, [sys.executable, str(server)])
    line = "srv: not clean, 2 tools, 2 new, 1 note, 1 with hidden characters\n"
    assert program.run("mcp", "check").out.startswith(line)
    said = program.run("mcp", "check", "srv").out
    assert "note: odd: its hidden characters are shown as escapes" in said
    assert "left out: two: the server listed two tools of that name" in said
