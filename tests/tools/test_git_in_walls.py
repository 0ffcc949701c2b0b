"""git in the workspace walls, under the shipped policies that deny reading a repository's settings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from grant_scene import Scene, bash
from rows import all_rows

from harness.gate.approval import deny_all
from harness.policy.loader import shipped_policy_path
from harness.record import replace
from harness.sandbox import Machine, enforces, hides_where_it_may_write, probe

needs_walls = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine")
SHIPPED = Path(shipped_policy_path("workspace")).read_bytes()


def repository(folder: Path) -> None:
    """Make a repository with a changed and a new file."""
    folder.mkdir()
    for words in ("init -q -b main .", "config user.name x"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    (folder / "new.py").write_text("x = 1\n")


def outcome(tmp_path: Path, machine: Machine, command: str) -> str:
    """Return the content of the outcome of a command that nobody was asked about."""
    repository(tmp_path / "w")
    scene = Scene(tmp_path, bash(command), approver=lambda _: deny_all, policy=SHIPPED, machine=machine)
    scene.agent.run("go")
    (record,) = scene.records("outcome")
    scene.close()
    return str(record["content"])


COMMANDS = [
    "git add new.py && git status --short",
    "python3 -c \"import os; os.system('git add new.py; git status -s')\"",
]


@needs_walls
@all_rows("command", COMMANDS)
def test_git_reads_its_settings_in_walls_that_hide_files(command: str, tmp_path: Path) -> None:
    if not hides_where_it_may_write(probe()):
        pytest.skip("nothing can be hidden where it may be written here")
    assert "A  new.py" in outcome(tmp_path, probe(), command)


@needs_walls
def test_command_runs_by_landlock_alone_where_only_settings_of_git_are_denied(tmp_path: Path) -> None:
    landlock = replace(probe(), bubblewrap="", no_namespaces="off")
    assert "A  new.py" in outcome(tmp_path, landlock, "git add new.py && git status --short")
