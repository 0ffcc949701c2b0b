"""git in the workspace walls: its settings under the shipped policies, and those that its own commands change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from grant_scene import LANDLOCK, Scene, bash
from rows import all_rows

from harness.gate.approval import Approval, deny_all
from harness.log.vocabulary import Answer
from harness.policy.loader import shipped_policy_path
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
    ("git add new.py && git status --short", "A  new.py"),
    ("python3 -c \"import os; os.system('git status -s')\"", "?? new.py"),
]


@needs_walls
@all_rows(("command", "status"), COMMANDS)
def test_git_reads_its_settings_in_walls_that_hide_files(command: str, status: str, tmp_path: Path) -> None:
    if not hides_where_it_may_write(probe()):
        pytest.skip("nothing can be hidden where it may be written here")
    assert status in outcome(tmp_path, probe(), command)


@needs_walls
def test_command_runs_by_landlock_alone_where_only_settings_of_git_are_denied(tmp_path: Path) -> None:
    assert "A  new.py" in outcome(tmp_path, LANDLOCK, "git add new.py && git status --short")


ASKING = 'version = 1\n[tools]\ndefault = "confirm"\n[sandbox]\nnetwork = true\n'
RULED = f'{ASKING}[[rule]]\nid = "git"\ndecision = "auto"\nargv = ["git", "..."]\nwalls = "workspace"\n'
MAINTAINS = [
    ("git push -u origin new", '[branch "new"]'),
    ("git push --set-upstream origin new", '[branch "new"]'),
    ("git branch -d tracking", ""),
    ("git remote add other ./bare.git", '[remote "other"]'),
    ("git switch -t origin/far", '[branch "far"]'),
    ("git checkout -b x origin/far", '[branch "x"]'),
    ("git checkout --track origin/far", '[branch "far"]'),
    ("git branch -u origin/main", '[branch "main"]'),
    ("git commit -q --allow-empty -m two; git checkout -b x origin/far", '[branch "x"]'),
]
"""Commands of git, each with a section of `.git/config` that it adds. Empty: it removes that of the branch `tracking`."""


def with_remote(folder: Path) -> Path:
    """Make a repository whose remote is a folder in it, with a branch there and one here that tracks it."""
    repository(folder)
    steps = (
        "config user.email x", "config push.default current", "add new.py", "commit -qm one", "init -q --bare bare.git",
        "remote add origin ./bare.git", "push -q origin main main:far", "branch -q --track tracking origin/main", "branch new",
    )  # fmt: skip
    for words in steps:
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder / ".git" / "config"


def result_of(tmp_path: Path, command: str, policy: str) -> str:
    """Return the result of a command that a rule allowed, or a person by a plain yes."""
    yes = Approval(answer=Answer.YES, by="script")
    scene = Scene(tmp_path, bash(command), approver=lambda _: lambda *_: yes, policy=policy.encode(), machine=probe())
    scene.agent.run("go")
    (record,) = scene.records("outcome")
    scene.close()
    return str(record["content"])


def needs_protection() -> None:
    if not hides_where_it_may_write(probe()):
        pytest.skip("nothing can be protected where it may be written here")


@needs_walls
@all_rows("policy", {"a yes": ASKING, "a rule": RULED})
@all_rows(("command", "section"), MAINTAINS)
def test_command_of_git_opens_the_settings_that_it_maintains(
    command: str, section: str, policy: str, tmp_path: Path
) -> None:
    needs_protection()
    config = with_remote(tmp_path / "w")
    assert '[branch "tracking"]' in config.read_text()
    content = result_of(tmp_path, command, policy)
    assert "[exit code 0," in content, content
    assert "busy" not in content
    after = config.read_text()
    assert section in after
    assert section or '[branch "tracking"]' not in after


COMMITS = """import subprocess
print([subprocess.run(["git", *words.split()]).returncode == 0 for words in (
    "add new.py", "-c user.email=x@x commit -qm new", "config user.name y")])
"""
RELEASE = '[[rule]]\nid = "release"\ndecision = "auto"\nargv = ["python3", "release.py"]\nwrite = [{}]\n'


@needs_walls
@all_rows(("places", "ends"), [('"."', "[False, False, False]"), ('".", ".git"', "[True, True, False]")])
def test_rule_that_names_the_data_of_git_lets_a_script_commit(places: str, ends: str, tmp_path: Path) -> None:
    needs_protection()
    repository(tmp_path / "w")
    (tmp_path / "w" / "release.py").write_text(COMMITS)
    assert ends in result_of(tmp_path, "python3 release.py", ASKING + RELEASE.format(places))


PROGRAM = "import os; open('new', 'w').close(); os.replace('new', '{}')"


@needs_walls
@all_rows(
    ("program", "path"),
    [
        ("import os; os.system('git config user.name y')", ".git"),
        ("import os; os.system('git remote add other x'); print('done')", ".git"),
        (PROGRAM.format(".git/config"), ".git"),
        (PROGRAM.format(".github/workflows/ci.yml"), ".github"),
        ("open('.github/workflows/ci.yml', 'a')", ".github"),
        ("import os; os.rename('.github', 'moved')", ".github"),
    ],
)
def test_program_that_cannot_change_a_protected_file_learns_why(program: str, path: str, tmp_path: Path) -> None:
    needs_protection()
    config = with_remote(tmp_path / "w")
    workflow = tmp_path / "w" / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("a\n")
    (tmp_path / "w" / "x.py").write_text(program)
    before = config.read_bytes(), workflow.read_bytes()
    content = result_of(tmp_path, "python3 x.py", ASKING)
    note = next(
        (line for line in content.splitlines() if line.startswith("[confined: ") and "protected;" in line), content
    )
    assert note.startswith(f"[confined: {tmp_path}/w/{path}: protected; ")
    assert "edit_file" in note
    assert "[o]" in note
    assert (config.read_bytes(), workflow.read_bytes()) == before


@needs_walls
def test_note_on_a_protected_file_is_only_for_the_one_that_is_named(tmp_path: Path) -> None:
    needs_protection()
    with_remote(tmp_path / "w")
    (tmp_path / "w" / "x.py").write_text("import sys; sys.exit('elsewhere: Device or resource busy')")
    assert "protected;" not in result_of(tmp_path, "python3 x.py", ASKING)
