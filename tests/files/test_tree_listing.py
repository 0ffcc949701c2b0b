"""All names below a folder, listed again where something changed."""

from __future__ import annotations

import os
from pathlib import Path

from harness.files.tree_listing import TreeListing

OLD = 1_000_000_000


def settled(root: Path) -> None:
    """Let all folders look as if nothing had changed for long; what the kernel keeps of that (ctime) stays."""
    for folder, _, _ in os.walk(root):
        os.utime(folder, (OLD, OLD))


def test_names_are_all_there_after_each_change(tmp_path: Path) -> None:
    for name in ("a/b/x", "a/y", "node_modules/z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a")
    listing = TreeListing(str(tmp_path))

    def names(most: int = 100) -> tuple[list[str], list[str], bool]:
        settled(tmp_path)
        tree = listing.look(("node_modules",), most)
        return sorted(tree.files), sorted(tree.folders), tree.is_whole

    assert names() == (["a/b/x", "a/y", "link"], ["", "a", "a/b", "node_modules"], True)
    (tmp_path / "a" / "b" / "x").rename(tmp_path / "a" / "b" / "w")
    (tmp_path / "a" / "b" / "new").mkdir()
    (tmp_path / "a" / "b" / "new" / ".env").touch()
    assert names() == (["a/b/new/.env", "a/b/w", "a/y", "link"], ["", "a", "a/b", "a/b/new", "node_modules"], True)
    assert not names(most=3)[2]
    assert names()[2]
    assert max(listing.look((), 100).files) == "node_modules/z"
