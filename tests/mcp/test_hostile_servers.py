"""Servers that mean harm, in the walls of their declaration: each ends as the policy says, bounded, with a whole log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from configured_scene import ConfiguredScene
from program import Program, made_program
from rows import all_rows
from run_scene import left_in

SERVER = str(Path(__file__).parents[1] / "support" / "hostile_mcp_server.py")


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
    ("pages", 1, "its list of tools has more than"),
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
