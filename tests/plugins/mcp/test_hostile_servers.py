"""Servers that mean harm, in the walls of their declaration: each ends as the policy says, bounded, with a whole log."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from configured_scene import ConfiguredScene
from hostile_mcp_server import tool
from places import SUPPORT
from program import Program, made_program
from rows import all_rows
from run_scene import left_in, written
from sandbox_scene import needs_walls

SERVER = str(Path(SUPPORT, "hostile_mcp_server.py"))


def scene_of(program: Program, mode: str, **declared: Any) -> ConfiguredScene:
    """Return a scene with a server of a mode, with its word behind a blank."""
    return ConfiguredScene(program, [sys.executable, SERVER, *mode.split(" ", 1)], **declared)


def is_harmless(text: str) -> bool:
    """Say whether nothing of it moves a cursor, hides, or draws a line of its own."""
    return not any(char in text for char in "\x1b\x07\u202e\u200b\r") and "\n+ allowed" not in text


CHECKED = [
    ("plain", 0, "new: act, sha256 "),
    ("poisoned", 0, "Adds two numbers.\\x1b[2J\\x1b]0;owned\\x07\\u202e\\u200b\\U000e0041"),
    ("lookalike", 0, '"\\u0430ct"'),
    ("twice", 0, "act: the server listed two tools of that name"),
    ("noise", 0, "lines of its output were no messages"),
    ("stays", 0, "1 tool; "),
    ("pages", 1, "the server's list of tools has more than"),
    ("ids", 1, "its answer does not fit the protocol"),
    ("noise_without_end", 1, "it wrote a line of more than 16 MiB"),
    ("huge_line", 1, "it wrote a line of more than 16 MiB"),
    ("hang start", 1, "it did not answer within 2 seconds"),
    ("hang initialize", 1, "it did not answer within 2 seconds"),
    ("hang tools/list", 1, "it did not answer within 2 seconds"),
    (
        "dies_at initialize",
        1,
        "ended with exit code 7; the last that it said: cannot open /var/lib/x: Permission denied",
    ),
    ("dies_at tools/list", 1, "hint: it may write nothing but temporary files"),
]


@all_rows(("mode", "code", "said"), CHECKED, anew={"program": made_program})
def test_a_server_is_tried_and_ended(program: Program, mode: str, code: int, said: str) -> None:
    scene = scene_of(program, mode, start_seconds=2.0 if mode.startswith("hang") else 60.0)
    done = program.run("mcp", "check")
    assert (done.code, said in done.out, is_harmless(done.out + done.err)) == (code, True, True), done
    assert left_in(program.workspace) == []
    assert scene.words[0] in done.out


ACT = "mcp__srv__act"
OK, FAILED, INVALID, LATE, NOT = "ok", "failed", "invalid", "timeout", "failed|invalid"
GONE = "is gone: |The tool .* does not exist|has not listed a tool of that name|call failed at"
"""As what the model was offered, and who knows already that it is gone, have it."""
CHANGED = "the server changed this tool after a person saw it|The tool .* does not exist"

CALLED = [
    ("plain", {}, [(OK, "acted ")]),
    ("poisoned", {}, [(INVALID, "The tool .* does not exist|changed this tool")]),
    ("noise", {}, [(OK, "acted "), (OK, "acted ")]),
    ("changes", {}, [(OK, "acted "), (NOT, CHANGED)]),  # its notice may come between the judgement and the run
    ("changes_in_call", {}, [(OK, "acted "), (INVALID, CHANGED)]),
    ("changes_quietly", {}, [(OK, "acted "), (OK, "acted ")]),
    ("flood", {"seconds": 1.0}, [(LATE, "timed out after 1 s")]),
    ("hang tools/call", {"seconds": 1.0}, [(LATE, "timed out after 1 s"), (LATE, "timed out after 1 s")]),
    ("child", {}, [(OK, "acted ")]),
    ("huge", {}, [(FAILED, "call failed at"), (NOT, GONE)]),
    ("dies", {}, [(FAILED, "call failed at"), (NOT, GONE)]),
    ("stays", {}, [(OK, "acted ")]),
    ("password", {}, [(OK, "Elicitation not supported")]),
    ("sampling", {}, [(OK, "not supported.*not supported")]),
    ("wicked_error", {}, [(FAILED, "call failed at")]),
    ("wicked_result", {}, [(OK, "not followed.*5,000,004 bytes of image/png; not shown")]),
]
"""With a tool that a person saw as it is listed where nothing is wrong with it."""


@all_rows(("mode", "declared", "outcomes"), CALLED, anew={"program": made_program})
def test_a_call_ends_as_it_must(
    program: Program, mode: str, declared: dict[str, Any], outcomes: list[tuple[str, str]]
) -> None:
    scene = scene_of(program, mode, **declared)
    scene.saw(tool("act"))
    done = scene.run(*[ACT] * len(outcomes), note="x")
    results = scene.results()
    for (found, text), (status, part) in zip(results, outcomes, strict=True):
        assert re.fullmatch(status, found), (results, done)
        assert re.search(part, text, re.DOTALL), (part, text)
    assert is_harmless(done.out + done.err), done
    assert left_in(program.workspace) == []


def test_unseen_tool_is_refused_unattended(program: Program) -> None:
    scene = scene_of(program, "poisoned")
    done = scene.run(ACT)
    ((status, text),) = scene.results()
    assert (done.code, status, "nobody has seen yet what the server says" in text) == (7, "denied", True), (done, text)
    assert is_harmless(done.out + done.err)


def test_a_name_is_taken_from_no_other_tool(program: Program) -> None:
    """Tools of a server stand behind its name, whatever they are called: `bash` means ours."""
    scene = scene_of(program, "shadow")
    program.run("mcp", "check")
    scene.saw_all()
    scene.run("mcp__srv__bash", "bash", command="echo ours")
    assert scene.offered == [
        f"mcp__srv__{name}" for name in ("act", "bash", "read_file", "other__act", "mcp__other__act")
    ]
    (_, first), (_, second) = scene.results()
    assert (first.startswith("acted "), second.startswith("ours")) == (True, False)


@needs_walls
@all_rows("writes", [False, True], anew={"program": made_program})
def test_claims_of_a_server_do_not_widen_its_walls(program: Program, *, writes: bool) -> None:
    """A tool that says that it only reads: its calls write what the declaration lets it write, and nothing else."""
    elsewhere = program.home / "elsewhere"
    elsewhere.touch()
    scene = scene_of(program, f"lies {elsewhere}", **({"write": ["."]} if writes else {}))
    program.run("mcp", "check")
    scene.saw_all()
    scene.run(ACT)
    assert scene.results() == [("ok", f"{'written' if writes else 'Permission denied'}, Permission denied")]
    assert ((program.workspace / "written_by_server").exists(), elsewhere.read_text()) == (writes, "")


@needs_walls
def test_server_cannot_write_the_program_of_a_hook(program: Program) -> None:
    hook = program.home / "hooks" / "check.sh"
    written(hook, "#!/bin/sh\n")
    hook.chmod(0o755)
    scene = scene_of(program, f"lies {hook}", write=[str(hook.parent)])
    with Path(program.environment["XDG_CONFIG_HOME"], "harness", "config.toml").open("a") as config:
        config.write(f'[[hook]]\nid = "h"\nevent = "before-call"\ncommand = ["{hook}"]\n')
    program.run("mcp", "check")
    scene.saw_all()
    scene.run(ACT)
    assert scene.results() == [("ok", "Permission denied, Permission denied")]


def test_claims_of_a_server_allow_no_call(program: Program) -> None:
    """Only a rule that says so counts a tool as one that reads."""
    rule = '[[rule]]\nid = "reads"\ndecision = "auto"\ntool = ["mcp__srv__*"]\n'
    asks = 'version = 1\n[tools]\ndefault = "confirm"\n'
    statuses = []
    for policy in (asks, f"{asks}{rule}read_only = true\n"):
        scene = scene_of(program, "lies nowhere")
        scene.policy = written(program.home / "policy.toml", policy)
        program.run("mcp", "check")
        scene.saw_all()
        scene.run(ACT)
        statuses += [status for status, _ in scene.results()]
    assert statuses == ["denied", "ok"]
