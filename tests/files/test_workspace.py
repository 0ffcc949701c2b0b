"""Where paths really lie: real folders, real links; nothing is compared as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from rows import all_rows

from harness.actions import Access, PathAccess, Place
from harness.errors import ToolError, UsageError
from harness.files.workspace import MAX_PATH_BYTES, Workspace


class Tree(NamedTuple):
    """A workspace `home/repo` beside a folder whose name begins like it, with links in and out."""

    base: Path
    repo: Path
    workspace: Workspace


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    base = tmp_path.resolve()
    repo = base / "home" / "repo"
    for folder in (repo / "src/deep", repo / "~", base / "home/repo-evil", base / "home/other/sub"):
        folder.mkdir(parents=True)
    (repo / "src/a.py").touch()
    (repo / ".env").touch()
    (repo / "to-env").symlink_to(".env")
    (repo / "to-src").symlink_to("src")
    (repo / "to-deep").symlink_to("src/deep")
    (repo / "to-out").symlink_to("../other")
    (repo / "to-sub").symlink_to("../other/sub")
    (repo / "to-root").symlink_to("/")
    (repo / "to-nothing").symlink_to("not-there")
    (repo / "to-new-outside").symlink_to("../other/new")
    (repo / "loop").symlink_to("loop")
    (repo / "src/back").symlink_to("..")
    return Tree(base, repo, Workspace(str(repo), str(base / "home")))


# A path, and where it lies: its names, its real place (below the base folder) and the kind of place.
RESOLVED = [
    pytest.param("src/a.py", ("src/a.py",), "home/repo/src/a.py", Place.INSIDE, id="a file"),
    pytest.param("./src//a.py", ("src/a.py",), "home/repo/src/a.py", Place.INSIDE, id="written another way"),
    pytest.param("src/a.py/", ("src/a.py",), "home/repo/src/a.py", Place.INSIDE, id="a slash at the end"),
    pytest.param("src/../.env", (".env",), "home/repo/.env", Place.INSIDE, id="up and down again"),
    pytest.param("new/file", ("new/file",), "home/repo/new/file", Place.INSIDE, id="what is not there yet"),
    pytest.param(".", (".",), "home/repo", Place.ROOT, id="the workspace"),
    pytest.param("src/..", (".",), "home/repo", Place.ROOT, id="the workspace by a detour"),
    pytest.param("../repo", (".",), "home/repo", Place.ROOT, id="the workspace from above"),
    pytest.param("..", ("{base}/home",), "home", Place.ABOVE, id="the home folder, which holds the workspace"),
    pytest.param("../..", ("{base}",), "", Place.ABOVE, id="a folder that holds the home folder"),
    pytest.param("~", ("{base}/home",), "home", Place.ABOVE, id="a tilde is the home folder"),
    pytest.param("~/other/x", ("{base}/home/other/x",), "home/other/x", Place.OUTSIDE, id="below the home folder"),
    pytest.param("~/repo/.env", (".env",), "home/repo/.env", Place.INSIDE, id="from the home folder back into it"),
    pytest.param("~other/x", ("~other/x",), "home/repo/~other/x", Place.INSIDE, id="a user's tilde is a plain name"),
    pytest.param("./~/x", ("~/x",), "home/repo/~/x", Place.INSIDE, id="a folder named tilde"),
    pytest.param("a/~", ("a/~",), "home/repo/a/~", Place.INSIDE, id="a tilde elsewhere is a plain name"),
    pytest.param("../repo-evil/x", ("{base}/home/repo-evil/x",), "home/repo-evil/x", Place.OUTSIDE, id="prefix trap"),
    pytest.param("{repo}-evil/x", ("{base}/home/repo-evil/x",), "home/repo-evil/x", Place.OUTSIDE, id="absolute trap"),
    pytest.param("{repo}/src/a.py", ("src/a.py",), "home/repo/src/a.py", Place.INSIDE, id="absolute and inside"),
    pytest.param("to-env", ("to-env", ".env"), "home/repo/.env", Place.INSIDE, id="a link to a file"),
    pytest.param("to-src/a.py", ("to-src/a.py", "src/a.py"), "home/repo/src/a.py", Place.INSIDE, id="through a link"),
    pytest.param(
        "to-out/x", ("to-out/x", "{base}/home/other/x"), "home/other/x", Place.OUTSIDE, id="out through a link"
    ),
    pytest.param("to-root", ("to-root", "/"), None, Place.ABOVE, id="a link to the root folder"),
    pytest.param(
        "to-nothing", ("to-nothing", "not-there"), "home/repo/not-there", Place.INSIDE, id="a link to nothing"
    ),
    pytest.param(
        "to-new-outside",
        ("to-new-outside", "{base}/home/other/new"),
        "home/other/new",
        Place.OUTSIDE,
        id="a link to a file that would be made outside",
    ),
    # `..` is taken after the link, as the kernel does it: `to-deep/..` is `src`, not the workspace.
    pytest.param("to-deep/../a.py", ("a.py", "src/a.py"), "home/repo/src/a.py", Place.INSIDE, id="up from a link"),
    pytest.param(
        "to-sub/../secret",
        ("secret", "{base}/home/other/secret"),
        "home/other/secret",
        Place.OUTSIDE,
        id="out by going up from a link that looks harmless",
    ),
    pytest.param(
        "src/back/back/.env",
        ("src/back/back/.env", "back/.env"),
        "home/repo/back/.env",
        Place.INSIDE,
        id="a link back up",
    ),
    pytest.param("loop", ("loop",), "home/repo/loop", Place.OUTSIDE, id="a link to itself"),
    pytest.param("a\nb", ("a\nb",), "home/repo/a\nb", Place.INSIDE, id="a line end in a name"),
    pytest.param("-x", ("-x",), "home/repo/-x", Place.INSIDE, id="a name like an option"),
    pytest.param("ü" * 2000, ("ü" * 2000,), "home/repo/" + "ü" * 2000, Place.INSIDE, id="a name no disk can hold"),
]


def test_a_way_through_proc_is_never_inside(tmp_path: Path) -> None:
    """Its links lead elsewhere for the command than for the harness; a link to one is no better."""
    workspace = Workspace(str(tmp_path))
    (tmp_path / "link").symlink_to("/proc/self/cwd")
    (tmp_path / "x").write_text("")
    for path in ("/proc/self/cwd/x", f"/proc/self/root{tmp_path}/x", "link/x", "/dev/stdin", "/dev/fd/0"):
        assert workspace.resolve(path, Access.READ).place is Place.OUTSIDE
    assert workspace.resolve("x", Access.READ).place is Place.INSIDE


@all_rows(("path", "names", "real", "place"), RESOLVED)
@all_rows("access", [Access.READ, Access.WRITE, Access.EITHER])
def test_a_path_is_resolved_as_the_kernel_would(
    tree: Tree, access: Access, path: str, names: tuple[str, ...], real: str | None, place: Place
) -> None:
    written = path.replace("{repo}", str(tree.repo))
    assert tree.workspace.resolve(written, access) == PathAccess(
        written=written,
        real="/" if real is None else str(tree.base / real),
        names=tuple(name.replace("{base}", str(tree.base)) for name in names),
        access=access,
        place=place,
    )


def test_the_real_path_is_the_one_the_kernel_opens(tree: Tree) -> None:
    """The table's claims about links, checked against the kernel itself."""
    (tree.base / "home/other/secret").write_text("outside")
    (tree.repo / "secret").write_text("inside")
    real = tree.workspace.resolve("to-sub/../secret", Access.READ).real
    assert (tree.repo / "to-sub/../secret").read_text() == Path(real).read_text() == "outside"


def test_a_relative_path_is_seen_from_the_given_folder(tree: Tree) -> None:
    found = tree.workspace.resolve("../.env", Access.READ, cwd=str(tree.repo / "src"))
    assert (found.names, found.place) == ((".env",), Place.INSIDE)
    found = tree.workspace.resolve("..", Access.READ, cwd=str(tree.repo / "src"))
    assert (found.names, found.place) == ((".",), Place.ROOT)


REFUSED = [
    pytest.param("", "The path is empty.", id="empty"),
    pytest.param("a\0b", "The path contains a NUL character.", id="NUL"),
    pytest.param("\0", "The path contains a NUL character.", id="only NUL"),
    pytest.param("a\ud800", "The path contains a lone surrogate, which no file name can hold.", id="a lone surrogate"),
    pytest.param(
        "\udcc3\udca9",
        "The path contains a lone surrogate, which no file name can hold.",
        id="bytes of a character: another text for its name",
    ),
    pytest.param(
        "a" * MAX_PATH_BYTES,
        f"The path is too long: {MAX_PATH_BYTES} bytes, at most {MAX_PATH_BYTES - 1} are possible.",
        id="too long",
    ),
]


@all_rows(("path", "message"), REFUSED)
def test_invalid_path_is_refused(tree: Tree, path: str, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        tree.workspace.resolve(path, Access.READ)
    assert str(caught.value) == message


def test_the_longest_path_is_resolved(tree: Tree) -> None:
    path = "a/" * (MAX_PATH_BYTES // 2 - 1) + "b"
    assert len(path) == MAX_PATH_BYTES - 1
    assert tree.workspace.resolve(path, Access.READ).names == (path,)


def test_the_workspace_itself_is_resolved_through_links(tree: Tree) -> None:
    link = tree.base / "link"
    link.symlink_to(tree.repo)
    workspace = Workspace(str(link), str(tree.base / "home"))
    assert workspace.root == str(tree.repo)
    by_link = workspace.resolve(str(link / ".env"), Access.READ)
    assert (by_link.names, by_link.place) == ((f"{link}/.env", ".env"), Place.INSIDE)


@all_rows("made", [pytest.param(False, id="that does not exist"), pytest.param(True, id="that is a file")])
def test_workspace_that_is_not_a_folder_is_refused(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "x"
    if made:
        folder.touch()
    with pytest.raises(UsageError) as caught:
        Workspace(str(folder))
    assert str(caught.value) == f"the workspace is not an existing folder: {folder}"


def test_the_home_folder_is_that_of_the_account_where_none_is_given(tmp_path: Path) -> None:
    assert Workspace(str(tmp_path)).home == os.path.realpath(os.path.expanduser("~"))
    assert Workspace(str(tmp_path), "").home == os.path.realpath(os.path.expanduser("~"))


PLACES = [
    pytest.param("/", "/home/x", "/", Place.ROOT, id="the root folder as workspace"),
    pytest.param("/", "/home/x", "/home", Place.ABOVE, id="the root folder as workspace, above the home folder"),
    pytest.param("/", "/home/x", "/etc", Place.INSIDE, id="the root folder as workspace, something in it"),
    pytest.param("/tmp", "/tmp", "/tmp", Place.ROOT, id="the home folder as workspace"),
    pytest.param("/tmp", "/", "/", Place.ABOVE, id="the root folder as home folder"),
    pytest.param("/tmp", "/", "/srv", Place.OUTSIDE, id="the root folder as home folder, something in it"),
    pytest.param("/tmp", "/home/x", "//", Place.ABOVE, id="two slashes are the root folder"),
]


@all_rows(("root", "home", "path", "place"), PLACES)
def test_paths_of_unusual_workspaces_have_the_right_place(root: str, home: str, path: str, place: Place) -> None:
    assert Workspace(root, home).resolve(path, Access.READ).place is place
