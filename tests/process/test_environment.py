"""The environment of a command: the order of PATH."""

from __future__ import annotations

from pathlib import Path

from harness.process.environment import path_without_surprise


def test_a_folder_of_path_that_a_link_leads_into_the_workspace_comes_last_at_once(tmp_path: Path) -> None:
    root, system, link = tmp_path / "workspace", tmp_path / "system", tmp_path / "link"
    root.mkdir()
    system.mkdir()
    link.symlink_to(system)
    path = f"{link}:{system}"
    assert path_without_surprise(path, str(root)) == path
    link.unlink()
    link.symlink_to(root)
    assert path_without_surprise(path, str(root)) == f"{system}:{link}"
