"""The other names of files in a workspace: one table over real links, and what changes from one look to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import all_rows

from harness.files.hard_links import HardLinks

LINKS = {
    "notes.txt": ".env", "a/b/deep": ".env", "node_modules/x/e": ".env", "same": "plain", "k1": "certs/key",
    "certs/k2": "certs/key",
    "sub/.git/objects/ab/cd": ".git/objects/ab/cd",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".env", "plain", "single", "certs/key", "certs/single", ".git/objects/ab/cd", "outside/x"):
        path = tmp_path / ("w" if not name.startswith("outside") else "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name, target in LINKS.items():
        path = tmp_path / "w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.hardlink_to(tmp_path / "w" / target)
    (tmp_path / "w" / "from-outside").hardlink_to(tmp_path / "outside" / "x")
    (tmp_path / "w" / "link").symlink_to(".env")
    return tmp_path / "w"


@all_rows(
    ("paths", "others"),
    [
        (".env", "a/b/deep node_modules/x/e notes.txt"),
        (".env a/b/deep node_modules/x/e notes.txt", ""),
        (".env notes.txt", "a/b/deep node_modules/x/e"),
        ("single", ""),
        ("missing", ""),
        ("certs", "k1"),
        ("certs/key", "certs/k2 k1"),
        ("plain certs", "k1 same"),
        ("sub", ""),
        ("../outside/x", "from-outside"),
        ("../outside", ""),
    ],
)
def test_other_names_are_found(root: Path, paths: str, others: str) -> None:
    found = HardLinks(str(root), 100).other_names([str((root / path).resolve()) for path in paths.split()])
    assert sorted(path.removeprefix(f"{root}/") for path in found.paths) == others.split()
    assert found.is_whole


def test_names_are_those_of_the_present(root: Path) -> None:
    links, path = HardLinks(str(root), 100), [str(root / "single")]
    assert links.other_names(path).paths == ()
    (root / "a" / "one").hardlink_to(root / "single")
    assert links.other_names(path).paths == (f"{root}/a/one",)
    (root / "a").rename(root / "c")
    assert links.other_names(path).paths == (f"{root}/c/one",)
    (root / "c" / "two").hardlink_to(root / "single")
    assert sorted(links.other_names(path).paths) == [f"{root}/c/one", f"{root}/c/two"]
    (root / "c" / "one").unlink()
    (root / "c" / "two").unlink()
    assert links.other_names(path).paths == ()


def test_search_says_that_there_are_too_many_names(root: Path) -> None:
    assert not HardLinks(str(root), 3).other_names([str(root / ".env")]).is_whole
    assert HardLinks(str(root), 3).other_names([str(root / "single")]).is_whole
