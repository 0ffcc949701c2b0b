"""What is loaded before the first request of a run, and before the prompt is drawn; what is not comes behind them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from program import Program
from repl_scene import Prompt
from screen_scene import CTRL_D

from harness.models.scripted import replies, say

# The program, and a look at its process when it looks for openai to import it: that is the last thing before the first
# request of a run, and the first thing behind the prompt.
WATCHED = """\
import gc, json, sys
told = sys.argv.pop()

class Finder:
    def find_spec(name, path, target=None):
        if name == "openai":
            with open(told, "a") as file:
                found = {"modules": sorted(sys.modules), "collects": gc.isenabled(), "kept": gc.get_freeze_count()}
                file.write(json.dumps(found) + "\\n")

sys.meta_path.insert(0, Finder)
from harness.app.main import program
program()
"""
NOT_IN_A_RUN = ("harness.app.resume", "harness.shell.facets", "prompt_toolkit", "rich")
BEHIND_THE_PROMPT = (
    "harness.app.commands.undo",
    "harness.app.resume",
    "harness.terminal.approver",
    "harness.terminal.markdown_stream",
    "rich",
)


class Look(NamedTuple):
    """What was there at the first look."""

    modules: frozenset[str]
    collects: bool
    """Whether garbage is looked for."""
    kept: int
    """Among how many objects it is not."""


def looked(told: Path) -> Look:
    first = json.loads(told.read_text().splitlines()[0])
    return Look(frozenset(first["modules"]), first["collects"], first["kept"])


@pytest.mark.parametrize("name", sorted({*NOT_IN_A_RUN, *BEHIND_THE_PROMPT}))
def test_there_is_a_module_of_each_name_that_is_not_to_be_loaded(name: str) -> None:
    assert find_spec(name) is not None


def test_run_imports_only_modules_needed_for_the_first_request(program: Program, tmp_path: Path) -> None:
    told, url = tmp_path / "told.jsonl", program.serve(replies(say("hello")))
    words = ("run", "go", "--base-url", url, "--model", "m", "--quiet", str(told))
    command = [sys.executable, "-c", WATCHED, *words]
    done = subprocess.run(
        command, cwd=program.workspace, env=program.environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert looked(told).modules.isdisjoint(NOT_IN_A_RUN)


@pytest.mark.terminal
def test_prompt_imports_only_modules_needed_to_draw_it(program: Program, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    command = [sys.executable, "-c", WATCHED, "--base-url", "http://127.0.0.1:9/v1", "--model", "m", str(told)]
    with Prompt(command, columns=120, lines=20, cwd=program.workspace, environment=program.environment) as prompt:
        prompt.wait_prompt()
        prompt.wait_until(told.exists, "nothing was loaded behind the prompt")
        prompt.send(CTRL_D)
        assert prompt.exit_code() == 0
    found = looked(told)
    assert "prompt_toolkit" in found.modules
    assert found.modules.isdisjoint(BEHIND_THE_PROMPT)
    assert found.collects, "garbage is looked for while a person works"
    assert found.kept > 10_000, "but not among what was loaded by then"
