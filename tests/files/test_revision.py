"""The revision that is checked out, against what git itself says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rows import all_rows

from harness.files.repository import branch_of, checked_out


def git(folder: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *words]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def made_repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return made_repository(tmp_path)


def _packed(folder: Path) -> Path:
    git(folder, "pack-refs", "--all")
    return folder


def _detached(folder: Path) -> Path:
    git(folder, "checkout", "-q", "--detach")
    return folder


def _worktree(folder: Path) -> Path:
    git(folder, "worktree", "add", "-q", "-b", "other", "../other")
    git(folder.parent / "other", "commit", "-q", "--allow-empty", "-m", "two")
    return folder.parent / "other"


def _packed_worktree(folder: Path) -> Path:
    return _packed(_worktree(folder))


@all_rows("made", [lambda f: f, lambda f: f / "sub", _packed, _detached, _worktree, _packed_worktree])
def test_revision_equals_that_of_git(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    repo = made_repository(tmp_path)
    folder = made(repo)
    assert checked_out(str(folder)) == git(folder, "rev-parse", "HEAD")


@all_rows("made", [lambda f: f, lambda f: f / "sub", _packed, _worktree])
def test_branch_equals_that_of_git(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    folder = made(made_repository(tmp_path))
    assert branch_of(str(folder)) == git(folder, "branch", "--show-current")


def test_detached_head_is_shown_as_the_beginning_of_its_commit(tmp_path: Path) -> None:
    folder = _detached(made_repository(tmp_path))
    assert branch_of(str(folder)) == git(folder, "rev-parse", "HEAD")[:8]


def test_unusual_head_names_no_branch(tmp_path: Path) -> None:
    """A pipe is not waited for."""
    head = made_repository(tmp_path) / ".git" / "HEAD"
    for content in (b"", b"ref: refs/tags/one", b"\xff\xfe", b"0" * 39):
        head.write_bytes(content)
        assert branch_of(str(tmp_path / "repo")) == ""
    head.unlink()
    os.mkfifo(head)
    assert (branch_of(str(tmp_path / "repo")), branch_of(str(tmp_path))) == ("", "")


@all_rows(
    "head", [b"", b"ref: refs/heads/none\n", b"ref: ../../etc/passwd\n", b"ref: refs/../../x\n", b"\xff\xfe", b"0" * 39]
)
def test_unusual_head_gives_no_revision(tmp_path: Path, head: bytes) -> None:
    repo = made_repository(tmp_path)
    (repo / ".git" / "HEAD").write_bytes(head)
    assert checked_out(str(repo)) is None


def test_outside_a_repository_it_is_none(tmp_path: Path) -> None:
    assert checked_out(str(tmp_path)) is None
