"""Which tools a model is offered: `--tools`, the configuration, the policy."""

from __future__ import annotations

import json
from typing import Any

from program import Program, made_program
from rows import all_rows

from harness.models.scripted import Reply, call, replies, say

ASKS = 'version = 1\n[tools]\nread_file = "auto"\nwrite_file = "confirm"\nedit_file = "confirm"\nbash = "confirm"\n'
FOUR = ["read_file", "write_file", "edit_file", "bash"]
RULE = '[[rule]]\nid = "r"\ndecision = "{}"\nreason = "So it is."\n{}\n'
HOST = 'host = ["docs.example.org"]'

SCRIPT = """\
[[tool]]
name = "such"
description = "It says so."
argv = ["echo", "so"]
"""

ROWS = {
    "those that ship": (ASKS, (), "", FOUR),
    "a subset": (ASKS, ("--tools", "bash,read_file"), "", ["read_file", "bash"]),
    "an optional one": (ASKS, ("--tools", "read_file, todo"), "", ["read_file", "todo"]),
    "by the configuration": (ASKS, (), 'tools = ["read_file", "todo"]\n', ["read_file", "todo"]),
    "added": (ASKS, ("--tools", "+todo,+delegate"), "", [*FOUR, "todo", "delegate"]),
    "added by the configuration": (ASKS, (), 'tools = ["+todo"]\n', [*FOUR, "todo"]),
    "the flag above it": (ASKS, ("--tools", "bash"), 'tools = ["read_file"]\n', ["bash"]),
    "a script": (ASKS, ("--tools", "bash,script__such"), SCRIPT, ["bash", "script__such"]),
    "all scripts": (ASKS, ("--tools", "bash,script__*"), SCRIPT, ["bash", "script__such"]),
    "named by the policy": (ASKS + 'todo = "auto"\n', (), "", [*FOUR, "todo"]),
    "named by a rule": (ASKS + RULE.format("auto", 'tool = ["todo"]'), (), "", [*FOUR, "todo"]),
    "named by a rule's hosts": (ASKS + RULE.format("confirm", HOST), (), "", [*FOUR, "web_fetch"]),
    "hosts that are refused": (ASKS + RULE.format("deny", HOST), (), "", FOUR),
    "hosts of another tool": (ASKS + RULE.format("auto", f'tool = ["todo"]\n{HOST}'), (), "", [*FOUR, "todo"]),
    "refused altogether": (
        ASKS.replace('write_file = "confirm"', 'write_file = "deny"'),
        (),
        "",
        ["bash", "edit_file", "read_file"],
    ),
}


@all_rows("policy, flags, config, offered", ROWS, anew={"program": made_program})
def test_the_tools_on_offer(
    program: Program, policy: str, flags: tuple[str, ...], config: str, offered: list[str]
) -> None:
    folder = program.home.parent / "config" / "harness"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config)
    (program.home / "p.toml").write_text(policy)
    url = program.serve(replies(say("Done.")))
    given = ("--policy", str(program.home / "p.toml"), "--base-url", url, "--model", "m", *flags)
    assert program.run("run", "go", *given).code == 0
    request: Any = program.players[0].requests[0]
    assert sorted(tool["function"]["name"] for tool in request["tools"]) == sorted(offered)
    recorded: Any = program.records()[0]["tools"]
    assert sorted(recorded) == sorted(offered)


WRONG = {
    "unknown": ("bsh", "unknown tool 'bsh'; did you mean bash?"),
    "of a server alone": ("mcp__files__*", "name at least one tool that needs no server"),
    "none": (" , ", "names no tool"),
    "added, and alone": ("+todo,bash", "put + before each name, to add these tools, or before none"),
    "a script that is not declared": (
        "bash,script__suhc",
        "unknown tool 'script__suhc'; did you mean script__such?",
    ),
}


@all_rows("names, told", WRONG, fresh=True)
def test_a_tool_that_there_is_not(program: Program, names: str, told: str) -> None:
    file = program.home.parent / "config" / "harness" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(SCRIPT)
    ended = program.run("run", "go", "--tools", names, "--base-url", "http://127.0.0.1:9", "--model", "m")
    assert (ended.code, f"flag --tools: {told}" in ended.err) == (2, True), ended.err
    file.write_text(f"tools = {json.dumps([name for name in names.split(',') if name.strip()])}\n{SCRIPT}")
    ended = program.run("run", "go", "--base-url", "http://127.0.0.1:9", "--model", "m")
    assert (ended.code, f"{file}:1: {told}" in ended.err) == (2, True), ended.err


def test_run_without_tools_is_refused(program: Program) -> None:
    given = ("--tools", "edit_file", "--base-url", "http://127.0.0.1:9", "--model", "m")
    ended = program.run("run", "go", *given)
    assert (ended.code, "no tool is left to offer: the policy refuses every call of edit_file" in ended.err) == (
        2,
        True,
    )


def test_a_call_of_a_tool_that_is_refused_altogether_is_judged_all_the_same(program: Program) -> None:
    (program.home / "p.toml").write_text(ASKS.replace('write_file = "confirm"', 'write_file = "deny"'))
    wanted = call("write_file", path="a", content="b")
    url = program.serve(replies(Reply(calls=(wanted,)), say("Then not.")))
    given = ("--policy", str(program.home / "p.toml"), "--base-url", url, "--model", "m")
    assert program.run("run", "go", *given).code == 7
    assert not (program.workspace / "a").exists()
    decisions = [record["decision"] for record in program.records() if record["kind"] == "decision"]
    assert json.dumps(decisions) == '["deny"]'
