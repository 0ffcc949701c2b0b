"""What an agent waits for at each of its calls loads nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hook_process import Hooked
from program import Program
from rows import all_rows

HEAVY = {
    "argparse", "asyncio", "dataclasses", "difflib", "inspect", "logging", "openai", "prompt_toolkit", "rich", "socket",
    "subprocess", "tempfile", "threading", "urllib", "hashlib",
}  # fmt: skip
"""What no event needs."""
LOADED = """
import os, sys
leave = os._exit
def tell(code):
    os.write(2, "\\n".join(sys.modules).encode())
    leave(0)
os._exit = tell
sys.argv = ["harness", *sys.argv[1:]]
from harness.__main__ import program
program()
"""
"""A process of the program that tells at its end what it has loaded."""


@pytest.fixture
def hooked(program: Program) -> Hooked:
    return Hooked(program)


def loaded(hooked: Hooked, words: list[str], data: bytes = b"") -> set[str]:
    """Return what a process of the program loads."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        input=data,
        env=hooked.environment,
        cwd=hooked.workspace,
        capture_output=True,
        check=True,
    )
    return set(done.stderr.decode().split("\n"))


@all_rows(
    "event,tool,arguments,besides",
    {
        "a command": ("PreToolUse", "Bash", {"command": "ls"}, ()),
        "a command that writes": ("PreToolUse", "Bash", {"command": "touch made"}, ()),
        "a file": ("PreToolUse", "Read", {"file_path": "f.txt"}, ("harness.shell.parser", "ctypes")),
        "an outcome": ("PostToolUse", "Read", {"file_path": "f.txt"}, ("harness.policy", "harness.shell", "tomllib")),
    },
)
def test_hook_loads_only_the_modules_of_its_event(
    event: str, tool: str, arguments: dict[str, str], besides: tuple[str, ...], hooked: Hooked
) -> None:
    hooked.hook(hooked.event(tool_name=tool, tool_input=arguments, use_id="first"))  # later calls are what is felt
    there = loaded(hooked, ["hook", "claude"], hooked.event(event, tool_name=tool, tool_input=arguments))
    assert "harness.plugins.agents.answering" in there
    assert sorted(there & {*HEAVY, *besides}) == []


def test_run_by_ticket_loads_only_its_modules(hooked: Hooked) -> None:
    reader = loaded(hooked, hooked.words("ls"))
    assert sorted(reader & {*HEAVY, "harness.policy", "harness.shell", "tomllib"}) == []
    writer = loaded(hooked, hooked.words("touch made"))  # the files are looked at around it, which takes more
    assert (hooked.workspace / "made").exists()
    assert sorted(writer & {*HEAVY, "harness.shell", "tomllib"}) == ["hashlib", "socket", "threading"]
