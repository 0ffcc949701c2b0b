"""git in folders whose `.git` is a file: a linked worktree, a submodule, a repository with a folder of its own elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scene import run_git
from grant_scene import Scene, bash, granting
from rows import all_rows
from sandbox_scene import needs_walls

from harness.files.repository import linked_places
from harness.gate.approval import deny_all
from harness.grant_pattern import GrantScope
from harness.record import replace
from harness.sandbox import Machine, hides_where_it_may_write, probe
from policies import ASKING, AUTO

COMMIT = "git commit -q --allow-empty -m"
COMMITTER = ("user.name", "a"), ("user.email", "a@b")


def worktree(folder: Path) -> Path:
    """Make `w`, a linked worktree of `main`; return the folder of the repository."""
    made(folder / "main")
    run_git(folder / "main", "worktree", "add", "-q", "../w", "-b", "x")
    return folder / "main/.git"


def submodule(folder: Path) -> Path:
    """Make `w`, a submodule of the repository around it; return its folder there."""
    made(folder / "lib")
    made(folder)
    run_git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./lib", "w")
    return configured(folder / ".git/modules/w", folder / "w")


def separate(folder: Path) -> Path:
    """Make `w`, a repository that git was told to keep in `data`; return that."""
    (folder / "w").mkdir()
    run_git(folder / "w", "init", "-q", "--separate-git-dir=../data")
    return configured(folder / "data", folder / "w")


def made(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    run_git(folder, "init", "-q", ".")
    configured(folder / ".git", folder)
    run_git(folder, *COMMIT.split()[1:], "first")


def configured(data: Path, folder: Path) -> Path:
    for key, value in COMMITTER:
        run_git(folder, "config", key, value)
    return data


KINDS = {"a linked worktree": worktree, "a submodule": submodule, "a folder of its own": separate}
WORK = (
    "echo 1 > a && git add a && git commit -qm second",
    "echo 2 > a; git stash -q && git stash apply -q",
    "git checkout -q -f -b other && git tag v1",
    "git worktree add -q ./inner -b inner",
    "git fetch -q .",
)


def machine(bubblewrap: str | None) -> Machine:
    found = probe()
    if bubblewrap is None and not hides_where_it_may_write(found):
        pytest.skip("bubblewrap does not work here")
    return replace(found, bubblewrap=bubblewrap, no_namespaces=None if bubblewrap is None else "off")


@needs_walls
@all_rows("make", KINDS)
@all_rows("bubblewrap", {"bubblewrap stands": None, "Landlock alone": ""})
@all_rows("choice", {"a yes": "", "a grant of words": "exactly this"})
def test_git_works_with_a_folder_elsewhere(tmp_path: Path, make: object, bubblewrap: str | None, choice: str) -> None:
    assert callable(make)
    data = make(tmp_path)
    approver = granting(GrantScope.SESSION, choice)
    scene = Scene(tmp_path, *map(bash, WORK), approver=approver, policy=ASKING.encode(), machine=machine(bubblewrap))
    scene.agent.run("go")
    ends = [(record["status"], record["content"]) for record in scene.records("outcome")]
    assert [status for status, _ in ends] == ["ok"] * len(WORK), ends
    shown = {str(place) for record in scene.records("decision") for place in permitted(record)}
    assert any(place.startswith(str(data)) for place in shown)
    assert "second" in run_git(tmp_path / "w", "log", "--format=%s", "x" if make is worktree else "HEAD").stdout
    scene.close()


def permitted(record: object) -> list[object]:
    effects = record["effects"]  # type: ignore[index]  # of a log
    return [*effects["granted"], *effects.get("named", [])]


@needs_walls
@all_rows(
    ("make", "decision"),
    [(worktree, "auto"), (submodule, "auto"), (separate, "confirm")],
    ids=KINDS,
)
def test_only_a_folder_that_names_this_one_is_opened_unasked(tmp_path: Path, make: object, decision: str) -> None:
    assert callable(make)
    make(tmp_path)
    scene = Scene(tmp_path, bash("git add -A ."), approver=lambda _: deny_all, policy=AUTO.encode())
    scene.agent.run("go")
    assert [record["decision"] for record in scene.records("decision")] == [decision]
    assert [record["status"] for record in scene.records("outcome")] == ["ok" if decision == "auto" else "denied"]
    scene.close()


@needs_walls
@all_rows("bubblewrap", {"bubblewrap stands": None, "Landlock alone": ""})
def test_git_commits_in_a_worktree_inside_walls(tmp_path: Path, bubblewrap: str | None) -> None:
    worktree(tmp_path)
    scene = Scene(
        tmp_path,
        bash("touch a && git add a && git commit -qm second"),
        bash("touch b && git add b && git commit -qm third"),
        approver=granting(GrantScope.SESSION, "any command, inside walls"),
        policy=ASKING.encode(),
        machine=machine(bubblewrap),
    )
    scene.agent.run("go")
    # No grant covers a commit, since undo does not take back git's history.
    assert [record["decision"] for record in scene.records("decision")] == ["confirm", "confirm"]
    assert [record["status"] for record in scene.records("outcome")] == ["ok", "ok"]
    assert run_git(tmp_path / "w", "log", "--format=%s", "x").stdout.split() == ["third", "second", "first"]
    scene.close()


@needs_walls
@all_rows("make", KINDS)
@all_rows("bubblewrap", {"bubblewrap stands": None, "Landlock alone": ""})
def test_hooks_and_configuration_elsewhere_stay_closed(tmp_path: Path, make: object, bubblewrap: str | None) -> None:
    assert callable(make)
    data = make(tmp_path)
    if bubblewrap == "" and make is not worktree:
        pytest.skip("Landlock takes nothing out of a folder: the result says so")
    before = (data / "config").read_bytes()
    lines = (
        f"git add -A .; python3 -c \"open('{data}/hooks/post-commit', 'w')\"",
        f"git add -A .; python3 -c \"open('{data}/config', 'a').write('x')\"",
        "git config core.fsmonitor ./x",
        "python3 -c \"import os; os.chdir('..'); open('main/.git/refs/heads/y', 'w')\"",
    )
    scene = Scene(
        tmp_path,
        *map(bash, lines),
        approver=granting(GrantScope.SESSION, ""),
        policy=ASKING.encode(),
        machine=machine(bubblewrap),
    )
    scene.agent.run("go")
    assert [record["status"] for record in scene.records("outcome")] == ["failed"] * len(lines)
    assert (data / "config").read_bytes() == before
    assert not (data / "hooks/post-commit").exists()
    scene.close()


@needs_walls
def test_commands_cannot_redirect_a_worktree(tmp_path: Path) -> None:
    data = worktree(tmp_path)
    run_git(tmp_path / "main", "worktree", "add", "-q", "../other", "-b", "z")
    lines = {
        f"git add -A .; python3 -c \"open('{data}/worktrees/w/commondir', 'a')\"": "failed",
        f"git worktree prune; python3 -c \"open('{data}/worktrees/other/commondir', 'a')\"": "failed",
        f"git worktree prune; mv {data}/worktrees/other {data}/worktrees/moved": "failed",
        "git worktree add -q ./inner -b inner": "ok",
        "git worktree remove inner": "ok",
    }
    scene = Scene(
        tmp_path,
        *map(bash, lines),
        approver=granting(GrantScope.SESSION, ""),
        policy=ASKING.encode(),
        machine=machine(None),
    )
    scene.agent.run("go")
    ends = [(record["status"], record["content"]) for record in scene.records("outcome")]
    assert [status for status, _ in ends] == [*lines.values()], ends
    scene.close()


def relinked(text: str) -> object:
    return lambda folder: (folder / "w/.git").write_text(text.format(folder=folder))


def another_worktree(folder: Path) -> None:
    made(folder / "stranger")
    run_git(folder / "stranger", "worktree", "add", "-q", "../theirs", "-b", "x")
    (folder / "w/.git").write_text((folder / "theirs/.git").read_text())


def another_submodule(folder: Path) -> None:
    (folder / "nest").mkdir()
    submodule(folder / "nest")
    (folder / "w/.git").write_text(f"gitdir: {folder}/nest/.git/modules/w")


def bare(folder: Path) -> None:
    run_git(folder, "init", "-q", "--bare", "bare.git")
    (folder / "w/.git").write_text(f"gitdir: {folder}/bare.git")


def led_away(folder: Path) -> None:
    made(folder / "stranger")
    (folder / "main/.git/worktrees/w/commondir").write_text(f"{folder}/stranger/.git")


@all_rows(
    "change",
    {
        "a folder of keys": relinked("gitdir: {folder}/.ssh"),
        "nothing": relinked("gitdir: {folder}/missing"),
        "two lines": relinked("gitdir: {folder}/a\n{folder}/b"),
        "the repository itself": relinked("gitdir: {folder}/main/.git"),
        "a worktree of another": another_worktree,
        "a submodule of another": another_submodule,
        "a bare repository": bare,
        "a folder that leads to another repository": led_away,
        "a link": lambda folder: (
            (folder / "w/.git").rename(folder / "git") and (folder / "w/.git").symlink_to("../git")
        ),
    },
)
def test_file_naming_a_foreign_folder_grants_no_access(tmp_path: Path, change: object) -> None:
    assert callable(change)
    (tmp_path / ".ssh").mkdir()
    worktree(tmp_path)
    proved, claimed = linked_places(str(tmp_path / "w"), worktrees=True)
    assert claimed == ""
    assert [Path(place).relative_to(tmp_path).as_posix() for place in proved] == [
        "main/.git/worktrees/w",
        *(f"main/.git/{name}" for name in ("objects", "refs", "logs", "worktrees")),
    ]
    change(tmp_path)
    assert linked_places(str(tmp_path / "w"), worktrees=True) == ((), "")
