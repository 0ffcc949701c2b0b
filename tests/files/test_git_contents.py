"""Contents that git holds, on real repositories: held_ids by the index, read without any of the repository's configuration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from git_scene import run_git
from undo_world import ENVIRONMENT, NO_DISK_LIMIT

from harness.files.git_contents import GitContents
from harness.files.git_index import git_program, index_around
from harness.files.tree_looks import Content
from harness.files.tree_watch import TreeWatch

GIT = str(git_program("/nonexistent", ENVIRONMENT))


def make_repository(top: Path, *names: str) -> None:
    """Make a repository of files that are older than its index."""
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"content of {name}\n")
        os.utime(top / name, ns=(10**18 + 1, 10**18 + 1))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        run_git(top, *words)


def ids(root: Path, *words: str) -> dict[str, bytes]:
    """Return the object ids of the files that git holds according to the index."""
    index = index_around(os.path.realpath(root), {**ENVIRONMENT, **dict(word.split("=", 1) for word in words)})
    assert index is not None
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    pairs = {str(path.relative_to(root)): index.id_of(str(path.relative_to(root)), os.lstat(path)) for path in paths}
    return {name: object_id for name, object_id in pairs.items() if object_id is not None}


def read(folder: Path, object_ids: Sequence[bytes], *objects: Path) -> list[bytes]:
    contents = GitContents(GIT, str(folder / "empty"))
    return [data for _, data in contents.read(object_ids, [str(path) for path in objects], 1_000)]


def test_contents_are_read_from_loose_and_packed_objects(tmp_path: Path) -> None:
    top = tmp_path / 'a : "b" \\ c'
    make_repository(top, "f", "d/g")
    held_ids = ids(top)
    assert sorted(held_ids) == ["d/g", "f"]
    assert read(tmp_path, [held_ids["f"], held_ids["d/g"]], top / ".git/objects") == [
        b"content of f\n",
        b"content of d/g\n",
    ]
    run_git(top, "gc", "-q")
    assert read(tmp_path, [held_ids["f"], b"\0" * 20], top / ".git/objects") == [b"content of f\n"]


def test_content_over_the_maximum_is_skipped(tmp_path: Path) -> None:
    top = tmp_path / "r"
    make_repository(top, "f", "g")
    (top / "large").write_text("x" * 1_001)
    large = bytes.fromhex(run_git(top, "hash-object", "-w", "large").stdout.strip())
    assert read(tmp_path, [large, ids(top)["g"]], top / ".git/objects") == [b"content of g\n"]


def test_replacements_and_configured_programs_of_a_repository_are_not_used(tmp_path: Path) -> None:
    top = tmp_path / "r"
    make_repository(top, "f", "g")
    held_ids = ids(top)
    run_git(top, "replace", held_ids["f"].hex(), held_ids["g"].hex())
    run_git(top, "config", "core.fsmonitor", f"touch {tmp_path}/ran; true")
    run_git(top, "config", "extensions.partialClone", "origin")
    run_git(top, "config", "remote.origin.promisor", "true")
    run_git(top, "config", "remote.origin.url", str(top))
    run_git(top, "config", "remote.origin.uploadpack", f"touch {tmp_path}/ran; false")
    assert read(tmp_path, [b"\1" * 20, held_ids["f"]], top / ".git/objects") == [b"content of f\n"]
    assert not (tmp_path / "ran").exists()
    assert ids(top) == {}, "objects may be missing in a partial clone"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".git/config", "[core]\n\tautocrlf = input\n"),
        ("home/.gitconfig", "[include]\n\tpath = other\n"),
        ("home/.config/git/attributes", "*.txt filter=x\n"),
        (".git/info/attributes", "f eol=crlf\n"),
        (".gitattributes", "f* text\n"),
    ],
)
def test_files_with_a_conversion_are_not_taken_from_git(tmp_path: Path, path: str, text: str) -> None:
    make_repository(tmp_path / "r", "f")
    assert list(ids(tmp_path / "r", f"HOME={tmp_path}/r/home")) == ["f"]
    place = tmp_path / "r" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "a") as file:
        file.write(text)
    watch = TreeWatch(
        os.path.realpath(tmp_path / "r"),
        str(tmp_path / "stores"),
        environment={**ENVIRONMENT, "HOME": f"{tmp_path}/r/home"} if "home" in path else ENVIRONMENT,
        limits=NO_DISK_LIMIT,
    )
    content = "not seen"
    if "home" in path:
        assert ids(tmp_path / "r", f"HOME={tmp_path}/r/home") == {}
    else:
        watch.look_ahead()
        content = str(contents_of(watch)["f"])
        assert len(content) == 64, "the content was kept"


def contents_of(watch: TreeWatch) -> dict[str, Content]:
    return dict(watch._tree.contents())


def test_harmless_attributes_keep_the_contents_in_git(tmp_path: Path) -> None:
    make_repository(tmp_path, "f", "g")
    (tmp_path / ".gitattributes").write_text("f -text\n*.png binary\ng diff=x linguist-generated !eol\n*.sh text\n")
    assert sorted(ids(tmp_path)) == ["f", "g"]
    index = index_around(os.path.realpath(tmp_path), ENVIRONMENT)
    assert index is not None
    index.add_attributes("", (tmp_path / ".gitattributes").read_bytes())
    assert index.id_of("f", os.lstat(tmp_path / "f")) is not None


def test_changed_and_untracked_files_are_not_taken_from_git(tmp_path: Path) -> None:
    make_repository(tmp_path, "f", "g", "h")
    (tmp_path / "f").write_text("content of F\n")
    os.utime(tmp_path / "f", ns=(10**18 + 1, 10**18 + 1))
    (tmp_path / "h").unlink()
    (tmp_path / "h").write_text("content of h\n")
    (tmp_path / "new").write_text("")
    assert list(ids(tmp_path)) == ["g"]


def test_workspace_below_the_top_and_linked_worktree(tmp_path: Path) -> None:
    top = tmp_path / "r"
    make_repository(top, "a/f", "a/b/g", "other")
    assert sorted(ids(top / "a")) == ["b/g", "f"]
    (top / "a" / ".gitignore").write_text("target\n")
    index = index_around(os.path.realpath(top / "a"), ENVIRONMENT)
    assert index is not None
    assert (index.is_ignored("target"), index.is_ignored("x/target"), index.is_ignored("b")) == (True, True, False)
    assert (index.has_files_below("b"), index.has_files_below("other")) == (True, False)
    run_git(top, "worktree", "add", "-q", str(tmp_path / "linked"))
    for path in (tmp_path / "linked").rglob("*"):
        os.utime(path, ns=(10**18 + 1, 10**18 + 1))
    run_git(tmp_path / "linked", "update-index", "--refresh")
    linked = ids(tmp_path / "linked")
    assert sorted(linked) == ["a/b/g", "a/f", "other"]
    assert read(tmp_path, [linked["a/f"]], top / ".git/objects") == [b"content of a/f\n"]


def test_changed_size_shows_that_git_holds_another_form(tmp_path: Path) -> None:
    """A file that was converted when it was added, by attributes that are gone since."""
    root = Path(os.path.realpath(tmp_path)) / "r"
    root.mkdir()
    (root / ".gitattributes").write_text("* text\n")
    (root / "f").write_bytes(b"one\r\ntwo\r\n")
    os.utime(root / "f", ns=(10**18 + 1, 10**18 + 1))
    make_repository(root)
    (root / ".gitattributes").write_text("")
    run_git(root, "commit", "-qm", "no attributes", ".gitattributes")
    assert "f" in ids(root)
    watch = TreeWatch(str(root), str(tmp_path / "stores"), environment=ENVIRONMENT, limits=NO_DISK_LIMIT)
    deadline = os.lstat(root / "f").st_ctime_ns + 50_000_000
    while os.stat(root).st_ctime_ns < deadline:
        (root / "probe").touch()
        (root / "probe").unlink()
    noted = watch.note()
    (root / "f").write_text("x")
    [change] = noted.compared().changes
    assert (change.before.sha256, change.before.unkept) == (None, "git holds it in another form")
