"""The managed policy: it, and each file that it extends, must belong to one user and be writable by that user alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rows import all_rows

from harness.errors import PolicyError
from harness.policy.rules import Layer
from harness.session.policies import load_named, managed_policy, with_digest

NAMES = ("policy.toml", "company.toml", "base.toml")
"""Each extends the next."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, extended in zip(NAMES, (*NAMES[1:], ""), strict=True):
        path = tmp_path / name
        path.write_text("version = 1\n" + (f'extends = ["{extended}"]\n' if extended else ""))
        path.chmod(0o644)
    return tmp_path


def test_managed_policy_is_read_with_the_files_that_it_extends(folder: Path) -> None:
    policy = managed_policy(str(folder / "policy.toml"), owner=os.getuid())
    assert [os.path.basename(source.path) for source in policy.sources] == list(NAMES)
    assert {source.layer for source in policy.sources} == {Layer.MANAGED}


@all_rows(("name", "mode"), [(name, mode) for name in NAMES for mode in (0o664, 0o646)])
def test_file_that_other_users_can_write_is_refused(folder: Path, name: str, mode: int) -> None:
    (folder / name).chmod(mode)
    with pytest.raises(PolicyError, match=rf"/{name}: the managed policy, and each file that it extends, must belong"):
        managed_policy(str(folder / "policy.toml"), owner=os.getuid())
    (folder / name).chmod(0o644)


@all_rows("name", NAMES)
def test_file_of_another_user_is_refused(folder: Path, name: str) -> None:
    """No test can give a file to another user, so the whole chain belongs to one that is not the owner."""
    with pytest.raises(PolicyError, match=r"must belong to root"):
        managed_policy(str(folder / name), owner=os.getuid() + 1)


def test_digest_of_older_shipped_files_is_refused_with_the_reason(folder: Path) -> None:
    (folder / "own.toml").write_text('version = 1\nextends = ["ci"]\n')
    with pytest.raises(PolicyError, match=r"says 0+; an update of harness may have changed the shipped ci$"):
        with_digest(load_named(str(folder / "own.toml")), "0" * 64)
    with pytest.raises(PolicyError, match=r"says 0+$"):
        with_digest(load_named(str(folder / "policy.toml")), "0" * 64)
