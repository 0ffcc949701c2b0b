"""MCP servers that others wrote, in our walls: what they have to be declared, and a call of each through a session.

HARNESS_PEERS names the folder into which install_servers.py put them. Where it is not set all of this is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from configured_scene import ConfiguredScene
from process_scene import wait_until
from program import Program, made_program
from rows import all_rows
from run_scene import left_in

START_SECONDS = 120
FOLDER = os.environ.get("HARNESS_PEERS", "")

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_PEERS names no folder: no third-party peer is tried"),
]


def words_of(server: str) -> list[str]:
    """Return the command line of one of them, with its words behind blanks; skips where it is not installed."""
    name, *words = server.split()
    places = (
        ("node_modules", ".bin", name),
        ("mcp-servers", "bin", name),
        ("node_modules", "@modelcontextprotocol", "sdk", name),
    )
    path = next((path for one in places if os.path.exists(path := os.path.join(FOLDER, *one))), "")
    if not path:
        pytest.skip(f"{name} is not in HARNESS_PEERS: install_servers.py puts it there")
    node = shutil.which("node") or "node"
    return [node, path, *words] if path.endswith(".js") else [path, *words]


HERE = {"repo_path": "."}
USED = [
    ("mcp-server-filesystem .", {}, "read_text_file", {"path": "a.txt"}, "ok", "hello"),
    ("mcp-server-filesystem .", {}, "read_text_file", {"path": "/etc/hostname"}, "failed", "outside allowed directories"),
    ("mcp-server-filesystem .", {}, "write_file", {"path": "b.txt", "content": "x"}, "failed", "EACCES"),
    ("mcp-server-filesystem .", {"write": ["."]}, "write_file", {"path": "b.txt", "content": "x"}, "ok", "Successfully wrote"),
    ("mcp-server-everything", {}, "echo", {"message": "hello"}, "ok", "Echo: hello"),
    ("mcp-server-everything", {}, "get-tiny-image", {}, "ok", "image/png; not shown]"),
    ("mcp-server-everything", {}, "get-env", {}, "ok", '"PATH"'),
    ("mcp-server-memory", {}, "read_graph", {}, "ok", "entities"),
    ("mcp-server-sequential-thinking", {}, "sequentialthinking",
        {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}, "ok", "thoughtNumber"),
    ("mcp-server-git", {}, "git_log", HERE, "ok", "begin"),
    ("mcp-server-git", {}, "git_create_branch", {**HERE, "branch_name": "b"}, "failed", "Lock at"),
    ("mcp-server-git", {"write": [".git"]}, "git_create_branch", {**HERE, "branch_name": "b"}, "ok", "Created branch"),
    ("mcp-server-fetch", {}, "fetch", {"url": "http://127.0.0.1:9/"}, "failed", "robots.txt"),
    ("mcp-server-time", {}, "get_current_time", {"timezone": "UTC"}, "ok", '"timezone": "UTC"'),
    ("mcpServerOutputSchema.js", {}, "get_weather", {"city": "x", "country": "y"}, "ok", "celsius"),
    ("toolWithSampleServer.js", {}, "summarize", {"text": "x"}, "failed", ""),
]  # fmt: skip


def session_of(
    program: Program, words: list[str], tool: str, arguments: dict[str, Any], **declared: Any
) -> tuple[str, str]:
    """Return status and text of one call, of a tool that a person saw, by a model in a run."""
    policy = f'version = 1\n[tools]\ndefault = "confirm"\nmcp__srv__{tool} = "auto"\n'  # what destroys, no star covers
    scene = ConfiguredScene(program, words, policy, **declared)
    done = program.run("mcp", "check")
    assert done.code == 0, done
    scene.saw_all()
    scene.run(f"mcp__srv__{tool}", **arguments)
    (result,) = scene.results()
    return result


@all_rows(("server", "declared", "tool", "arguments", "status", "said"), USED, anew={"program": made_program})
def test_it_is_used_in_its_walls(
    program: Program,
    server: str,
    declared: dict[str, Any],
    tool: str,
    arguments: dict[str, Any],
    status: str,
    said: str,
) -> None:
    Path(program.workspace, "a.txt").write_text("hello\n")
    for words in (
        ["init", "-q"],
        ["add", "a.txt"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin"],
    ):
        subprocess.run(["git", *words], cwd=program.workspace, check=True)
    found, text = session_of(program, words_of(server), tool, arguments, **declared)
    assert (found, said in text) == (status, True), (found, text)
    assert left_in(program.workspace) == []


BY_HTTP = [
    ("mcp-server-everything streamableHttp", "PORT", "echo", {"message": "hello"}, "Echo: hello"),
    ("simpleStreamableHttp.js", "MCP_PORT", "greet", {"name": "Ada"}, "Hello, Ada!"),
    ("simpleStatelessStreamableHttp.js", "MCP_PORT", "start-notification-stream", {"interval": 1, "count": 1}, "1"),
    ("jsonResponseStreamableHttp.js", "MCP_PORT", "greet", {"name": "Ada"}, "Hello, Ada!"),
]


@all_rows(("server", "variable", "tool", "arguments", "said"), BY_HTTP, anew={"program": made_program})
def test_it_is_used_at_a_url(
    program: Program, server: str, variable: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, variable: str(port)}
    peer = subprocess.Popen(words_of(server), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: is_open(port), START_SECONDS)
        status, text = session_of(program, [], tool, arguments, url=f"http://127.0.0.1:{port}/mcp")
        assert (status, said in text) == ("ok", True), text
    finally:
        peer.kill()
        peer.wait()


def is_open(port: int) -> bool:
    """Say whether somebody listens."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
