"""Which repositories git may be run in unasked: what their configuration names, and where it really lies."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rows import all_rows

from harness.files.repository import git_problem, git_top


def made_repository(tmp_path: Path) -> Path:
    """Return a new repository with one tracked file."""
    folder = tmp_path.resolve() / "repo"
    (folder / "sub").mkdir(parents=True)
    run_git(folder, "init", "-q", ".")
    (folder / "a").write_text("a\n")
    run_git(folder, "add", "a")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return made_repository(tmp_path)


def run_git(folder: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=folder, env=environment, check=True)


def test_plain_repository_or_none_is_accepted(repo: Path) -> None:
    assert [git_problem(str(folder)) for folder in (repo, repo / "sub", repo.parent)] == [None, None, None]


def _config(text: str) -> Callable[[Path], None]:
    def add(repo: Path) -> None:
        with open(repo / ".git" / "config", "a", encoding="utf-8") as file:
            file.write(text)

    return add


def _worktree_config(text: str) -> Callable[[Path], None]:
    def add(repo: Path) -> None:
        run_git(repo, "config", "extensions.worktreeConfig", "true")
        (repo / ".git" / "config.worktree").write_text(text)

    return add


def _link(name: str) -> Callable[[Path], None]:
    def make(repo: Path) -> None:
        path = repo / ".git" / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to("/etc/passwd")

    return make


def _gitlink(repo: Path) -> None:
    zero = "0123456789012345678901234567890123456789"
    run_git(repo, "update-index", "--add", "--cacheinfo", f"160000,{zero},module")


def _pointer(text: str) -> Callable[[Path], None]:
    def make(repo: Path) -> None:
        (repo / ".git").rename(repo / "real")
        (repo / " real").mkdir()
        (repo / ".git").write_text(text)

    return make


def _laid_bare(repo: Path, *names: str) -> None:
    shutil.rmtree(repo / ".git")
    for name in names:
        (repo / name).mkdir()


PROBLEMS = [
    pytest.param(_config('[diff "x"]\n\ttextconv = touch y\n'), "textconv", id="a filter for showing"),
    pytest.param(_config('[filter "x"]\n\tclean = touch y\n'), "filter", id="a filter for the index"),
    pytest.param(_config("[diff]\n\texternal = touch y\n"), "external", id="an external diff"),
    pytest.param(_config("[include]\n\tpath = ../evil\n"), "include", id="another file"),
    pytest.param(_config("[core]\n\tworktree = ..\n"), "worktree", id="another work tree"),
    pytest.param(_config("[strange]\n\tkey = x\n"), "strange", id="what is not known"),
    pytest.param(_config("[core\n"), "", id="what git would not read either"),
    pytest.param(_config("x" * 300_000), "cannot be read", id="a configuration that is too long"),
    pytest.param(_worktree_config("[diff]\n\texternal = x\n"), "external", id="a second configuration"),
    pytest.param(_worktree_config("[core]\n\tworktree = ..\n"), "worktree", id="a second one that leads elsewhere"),
    pytest.param(_link("config.worktree"), "", id="a second one that is a link"),
    pytest.param(_link("info/grafts"), "info/grafts", id="a link whose lines git shows"),
    pytest.param(_link("shallow"), "shallow is a link", id="another"),
    pytest.param(_link("config"), "", id="a configuration that is a link"),
    pytest.param(_gitlink, "submodules", id="a submodule"),
    pytest.param(lambda repo: run_git(repo, "update-index", "--split-index"), "split index", id="a split index"),
    pytest.param(_pointer("gitdir:  real\n"), "plainly", id="blanks in front of where it lies"),
    pytest.param(_pointer("gitdir: real \n"), "plainly", id="a blank behind"),
    pytest.param(_pointer("gitdir: real" + "\n" * 5_000), "plainly", id="too many line ends"),
    pytest.param(_pointer("real\n"), "plainly", id="no gitdir"),
    pytest.param(lambda repo: (repo / ".git/commondir").write_text(" ..\n"), "plainly", id="a blank in commondir"),
    pytest.param(lambda repo: os.mkfifo(repo / ".git/commondir"), "plainly", id="a pipe"),
    pytest.param(lambda repo: _laid_bare(repo, "HEAD", "objects", "refs"), "without a work tree", id="bare"),
    pytest.param(
        lambda repo: _laid_bare(repo, "HEAD", "commondir"), "without a work tree", id="bare, with the rest elsewhere"
    ),
]


@all_rows(("change", "said"), PROBLEMS)
def test_risky_git_configuration_is_named(tmp_path: Path, change: Callable[[Path], object], said: str) -> None:
    repo = made_repository(tmp_path)
    change(repo)
    assert said in (git_problem(str(repo)) or "no problem")
    assert said in (git_problem(str(repo / "sub")) or "no problem")


@all_rows(
    "change",
    [
        pytest.param(_worktree_config("[core]\n\tsparseCheckout = true\n"), id="a second configuration"),
        pytest.param(lambda repo: run_git(repo, "config", "extensions.worktreeConfig", "true"), id="none of it yet"),
        pytest.param(lambda repo: run_git(repo, "config", "core.sshCommand", "ssh -i key"), id="a key for the server"),
        pytest.param(lambda repo: run_git(repo, "config", "merge.x.driver", "x %A"), id="a merge driver"),
        pytest.param(_config('[filter "lfs"]\n\tprocess = git-lfs filter-process\n'), id="git-lfs"),
    ],
)
def test_ordinary_configuration_is_accepted(tmp_path: Path, change: Callable[[Path], object]) -> None:
    repo = made_repository(tmp_path)
    change(repo)
    assert git_problem(str(repo)) is None


def test_a_linked_worktree_has_its_own_second_configuration(repo: Path) -> None:
    run_git(repo, "commit", "-qm", "one")
    run_git(repo, "worktree", "add", "-q", "../other")
    run_git(repo, "config", "extensions.worktreeConfig", "true")
    assert git_problem(str(repo.parent / "other")) is None
    (repo / ".git/worktrees/other/config.worktree").write_text("[diff]\n\texternal = x\n")
    assert "external" in (git_problem(str(repo.parent / "other")) or "")
    assert git_problem(str(repo)) is None


def test_a_pointer_that_is_plain_is_followed(repo: Path) -> None:
    _pointer("gitdir: real\n")(repo)
    assert git_problem(str(repo)) is None
    with open(repo / "real" / "config", "a", encoding="utf-8") as file:
        file.write("[diff]\n\texternal = x\n")
    assert "external" in (git_problem(str(repo)) or "")


def test_a_git_folder_that_is_none_hides_no_other(repo: Path) -> None:
    """git passes over it, and takes the next one on the way up."""
    (repo / "sub" / ".git").mkdir()
    _config("[diff]\n\texternal = x\n")(repo)
    assert "external" in (git_problem(str(repo / "sub")) or "")


def test_inside_a_git_folder_it_is_asked_about(repo: Path) -> None:
    assert git_problem(str(repo / ".git" / "modules")) == "it is run inside a .git folder"


def test_git_top_is_the_root_of_the_repository(repo: Path) -> None:
    assert [git_top(str(folder)) for folder in (repo, repo / "sub", repo.parent)] == [
        str(repo),
        str(repo),
        str(repo.parent),
    ]
