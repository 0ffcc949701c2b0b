"""MCP servers that others wrote, in our walls: what they have to be declared, and a call of each through a session.

HARNESS_PEERS names the folder into which install_servers.py put them. Where it is not set all of this is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from configured_scene import ConfiguredScene
from program import Program, made_program
from rows import all_rows
from run_scene import left_in

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
    policy = f'version = 1\n[tools]\ndefault = "confirm"\nmcp__srv__{tool} = "auto"\n'  # what destroys, no star covers
    scene = ConfiguredScene(program, words_of(server), policy, **declared)
    assert program.run("mcp", "check").code == 0
    scene.saw_all()
    done = scene.run(f"mcp__srv__{tool}", **arguments)
    ((found, text),) = scene.results()
    assert (found, said in text) == (status, True), (found, text, done)
    assert left_in(program.workspace) == []
