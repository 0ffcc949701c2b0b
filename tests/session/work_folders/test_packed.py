"""A folder as one file: a bundle or an archive is made here, and worked on there, whatever somebody put into it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_scene import POLICY, applied, git, repository, serving
from program import Done, Program

from harness.errors import UsageError
from harness.plugins.fleet.batch.sources import work_folder_of
from harness.plugins.fleet.batch.task import task_of
from harness.session.work_folders.changes import CHANGES, take_changes
from harness.session.work_folders.packed import BUNDLE, TAR, Packed, pack
from harness.session.work_folders.work_folder import WorkFolder
from harness.session.work_folders.worktree import remove_work_folder


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


needs_archives = pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="archives need Python 3.11.4 or later")


class _Place:
    """Folders to pack, and those of the machine that unpacks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.into = folder / "into"
        self.environment = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        self._count = 0

    def pack(self, cwd: Path, revision: str | None = None) -> Packed:
        return pack(str(cwd), revision, str(self.into), self.environment)

    def work(self, **fields: object) -> tuple[WorkFolder, Path]:
        """Make the work folder of a task with these fields; return it and the folder of the attempt."""
        self._count += 1
        attempt = self.folder / "out" / f"t{self._count}" / "attempts" / "1"
        attempt.mkdir(parents=True)
        task = task_of(json.dumps({"id": "t", "prompt": "p", **fields}).encode(), "x")
        out = str(self.folder / "out")
        return work_folder_of(task, str(attempt), "/", out, self.environment, lambda _: None), attempt

    def unpacked(self, packed: Packed) -> tuple[WorkFolder, Path]:
        fields = {packed.kind: packed.path, "sha256": packed.sha256, "commit": packed.commit, "cwd": packed.cwd}
        return self.work(**{name: value for name, value in fields.items() if value})

    def refused(self, **fields: object) -> str:
        with pytest.raises(UsageError) as refused:
            self.work(**fields)
        return str(refused.value)


@pytest.fixture
def place(tmp_path: Path) -> _Place:
    return _Place(tmp_path)


def test_a_repository_is_packed_as_a_bundle_and_worked_on_elsewhere(place: _Place, tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    first = git(source, "rev-parse", "HEAD").strip()
    (source / "sub" / "b.txt").write_text("later\n")
    git(source, "commit", "--quiet", "-am", "two")
    (source / "a.txt").write_text("not committed\n")
    objects = git(source, "count-objects")
    packed = place.pack(source / "sub")
    again = place.pack(source / "sub")
    assert packed == again
    assert (packed.kind, packed.cwd, packed.commit) == (BUNDLE, "sub", git(source, "rev-parse", "HEAD").strip())
    assert packed.path == str(place.into / f"{packed.sha256}.bundle")
    assert os.listdir(place.into) == [f"{packed.sha256}.bundle"]
    assert sha256(Path(packed.path)) == packed.sha256
    assert (git(source, "count-objects"), git(source, "for-each-ref", "--format=%(refname)").count("task")) == (
        objects,
        0,
    )
    work, attempt = place.unpacked(packed)
    assert (work.kind, work.base, work.workspace) == ("worktree", packed.commit, os.path.join(work.root, "sub"))
    assert (Path(work.root, "a.txt").read_text(), Path(work.root, "sub/b.txt").read_text()) == ("one\n", "later\n")
    # The mirror of a bundle is there then: another task needs no file, and may begin with an earlier commit.
    os.unlink(packed.path)
    earlier, other = place.work(bundle=packed.path, sha256=packed.sha256, commit=first)
    assert (earlier.repository, Path(earlier.root, "sub/b.txt").read_text()) == (work.repository, "two\n")
    for one in (attempt, other):
        assert remove_work_folder(str(one), place.environment) == ""
    assert not os.path.lexists(os.path.join(work.repository, "worktrees"))


def test_tagged_revision_is_packed_and_a_missing_one_named(place: _Place, tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    git(source, "tag", "v1")
    git(source, "rm", "-rq", "sub")
    git(source, "commit", "--quiet", "-m", "two")
    (source / "sub").mkdir()
    assert place.pack(source / "sub", "v1").commit == git(source, "rev-parse", "v1").strip()
    with pytest.raises(UsageError, match="does not hold the folder sub"):
        place.pack(source / "sub")
    with pytest.raises(UsageError, match="unknown commit 'v2'"):
        place.pack(source, "v2")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{source}", "shallow")
    with pytest.raises(UsageError, match="is a shallow clone"):
        place.pack(tmp_path / "shallow")


def test_bundle_different_from_the_task_is_not_used(place: _Place, tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    packed = place.pack(source)
    commit, path = packed.commit, Path(packed.path)
    assert "the SHA-256 digest is" in place.refused(bundle=str(path), sha256="0" * 64, commit=commit)
    assert "cannot be read" in place.refused(bundle="/nowhere", sha256="0" * 64, commit=commit)
    assert "Is a directory" in place.refused(bundle=str(tmp_path), sha256="0" * 64, commit=commit)
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:-30])
    assert "cannot be used" in place.refused(bundle=str(cut), sha256=sha256(cut), commit=commit)
    cut.write_bytes(b"no bundle")
    assert "cannot be used" in place.refused(bundle=str(cut), sha256=sha256(cut), commit=commit)
    (source / "a.txt").write_text("two\n")
    git(source, "commit", "--quiet", "-am", "two")
    git(source, "bundle", "create", "--quiet", str(cut), f"{commit}..HEAD")
    thin = place.refused(bundle=str(cut), sha256=sha256(cut), commit=git(source, "rev-parse", "HEAD").strip())
    assert "cannot be used" in thin
    assert "missing commit" in place.refused(bundle=str(path), sha256=packed.sha256, commit="1" * 40)
    work, _ = place.unpacked(packed)  # none of these is in its way
    assert Path(work.root, "a.txt").read_text() == "one\n"
    mirrors = os.listdir(tmp_path / "state" / "harness" / "mirrors")
    assert [name for name in mirrors if not name.endswith(".lock")] == [f"bundle-{packed.sha256}.git"]


def test_a_bundle_of_objects_that_are_not_sound_is_not_used(place: _Place, tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    tree = git(source, "rev-parse", "HEAD:sub").strip()
    (tmp_path / "listed").write_bytes(b"40000 .git\0" + bytes.fromhex(tree))
    odd = git(source, "hash-object", "-t", "tree", "--literally", "-w", str(tmp_path / "listed")).strip()
    commit = git(source, "commit-tree", "-m", "odd", odd).strip()
    git(source, "branch", "odd", commit)
    git(source, "bundle", "create", "--quiet", str(tmp_path / "odd.bundle"), "odd")
    path = tmp_path / "odd.bundle"
    assert "cannot be used" in place.refused(bundle=str(path), sha256=sha256(path), commit=commit)


@needs_archives
def test_a_plain_folder_is_packed_as_an_archive_and_worked_on_elsewhere(place: _Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "a.txt").write_text("one\n")
    (source / "sub" / "run").write_text("#!/bin/sh\n")
    (source / "sub" / "run").chmod(0o775)
    os.mkfifo(source / "pipe")
    git(source / "sub", "init", "--quiet")
    packed = place.pack(source)
    assert packed == place.pack(source)
    assert (packed.kind, packed.commit, packed.cwd) == (TAR, "", "")
    assert "pipe" in packed.notes[0]
    assert ".git" in packed.notes[0]
    assert os.listdir(place.into) == [f"{packed.sha256}.tar"]
    assert stat.S_IMODE(os.stat(packed.path).st_mode) == 0o600
    work, attempt = place.work(archive=packed.path, sha256=packed.sha256, cwd="sub")
    assert (work.kind, work.workspace) == ("copy", os.path.join(work.root, "sub"))
    assert sorted(os.listdir(work.root)) == ["a.txt", "sub"]
    assert os.access(os.path.join(work.root, "sub/run"), os.X_OK)
    assert os.path.isdir(os.path.join(work.root, "sub/empty"))
    assert sorted(os.listdir(attempt)) == ["git", "index", "place.json", "worktree"]
    Path(work.root, "a.txt").write_text("two\n")
    changes = take_changes(work, str(attempt), str(tmp_path), place.environment)
    assert changes.patch is not None
    assert (changes.patch.files, changes.lost) == (1, ())
    assert remove_work_folder(str(attempt), place.environment) == ""
    assert os.listdir(attempt) == ["place.json"]


def test_unpackable_folder_is_refused_with_the_reason(place: _Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "link").symlink_to("/etc")
    with pytest.raises(UsageError, match=r"holds links \(link\)"):
        place.pack(source)
    (source / "link").unlink()
    with pytest.raises(UsageError, match="a revision needs a git repository"):
        place.pack(source, "main")
    with pytest.raises(UsageError, match="not an existing folder"):
        place.pack(source / "nowhere")
    (tmp_path / "state" / "harness").mkdir(parents=True)
    with pytest.raises(UsageError, match="the harness's own files"):
        place.pack(tmp_path / "state")
    with open(source / "sparse", "wb") as file:
        file.truncate(600 << 20)
    with pytest.raises(UsageError, match="too large for a task"):
        place.pack(source)
    assert os.listdir(place.into) == []


def test_archive_excludes_itself_and_old_results(place: _Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "old" / "attempts").mkdir(parents=True)
    (source / "old" / "task.json").write_text("{}")
    (source / "a.txt").write_text("one\n")
    packed = pack(str(source), None, str(source / "into"), place.environment)
    with tarfile.open(packed.path) as tar:
        assert tar.getnames() == ["a.txt"]


def _entry(name: str, kind: bytes = tarfile.REGTYPE, to: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, to, size
    return entry


def _tar(*entries: tarfile.TarInfo) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return data.getvalue()


HOSTILE = [
    pytest.param(_tar(_entry("../out.txt")), "leads out of the archive", id="a name above"),
    pytest.param(_tar(_entry("a/../../out.txt")), "leads out of the archive", id="a name above, behind a folder"),
    pytest.param(_tar(_entry("/tmp/out.txt")), "leads out of the archive", id="an absolute name"),
    pytest.param(_tar(_entry("a", tarfile.SYMTYPE, "/etc")), "is a link", id="a link"),
    pytest.param(_tar(_entry("a", tarfile.SYMTYPE, "b")), "is a link", id="a link inside"),
    pytest.param(_tar(_entry("a"), _entry("b", tarfile.LNKTYPE, "a")), "is a link", id="a hard link"),
    pytest.param(_tar(_entry("a", tarfile.CHRTYPE)), "neither a file nor a folder", id="a device"),
    pytest.param(_tar(_entry("a", tarfile.FIFOTYPE)), "neither a file nor a folder", id="a pipe"),
    pytest.param(_tar(_entry(".git/config")), "is the data of a repository", id="a repository"),
    pytest.param(
        _tar(_entry("a/.GIT", tarfile.DIRTYPE)), "is the data of a repository", id="a repository, in capitals"
    ),
    pytest.param(_tar(_entry("a"), _entry("a/b")), "cannot be unpacked", id="a file below a file"),
    pytest.param(_tar(_entry("x" * 300)), "cannot be unpacked", id="a name that is too long"),
    pytest.param(_tar(_entry("a", size=2_000))[:1_500], "not a valid tar", id="cut off"),
    pytest.param(gzip.compress(_tar(_entry("a"))), "not a valid tar", id="compressed"),
    pytest.param(b"", "not a valid tar", id="empty"),
    pytest.param(b"x" * 2_000, "not a valid tar", id="something else"),
]


@needs_archives
@pytest.mark.parametrize(("data", "told"), HOSTILE)
def test_hostile_archive_writes_no_outside_file_and_is_refused(place: _Place, data: bytes, told: str) -> None:
    path = place.folder / "hostile.tar"
    path.write_bytes(data)
    problem = place.refused(archive=str(path), sha256=sha256(path))
    assert told in problem
    assert not (place.folder / "out.txt").exists()
    assert not os.path.lexists("/tmp/out.txt")
    attempt = place.folder / "out" / "t1" / "attempts" / "1"
    assert (os.listdir(attempt / "worktree") == []) or "cannot" in told or "plain" in told  # all is looked at first
    assert remove_work_folder(str(attempt), place.environment) == ""
    assert os.listdir(attempt) == ["place.json"]


def test_an_archive_with_another_digest_is_not_read(place: _Place) -> None:
    path = place.folder / "a.tar"
    path.write_bytes(b"x")
    assert "the SHA-256 digest is" in place.refused(archive=str(path), sha256="0" * 64)
    os.mkfifo(place.folder / "pipe")
    assert "not a regular file" in place.refused(archive=str(place.folder / "pipe"), sha256="0" * 64)


def _many(folder: Path) -> Path:
    path = folder / "many.tar"
    path.write_bytes(_entry("folder", tarfile.DIRTYPE).tobuf() * 100_001 + bytes(10_240))
    return path


def _large(folder: Path) -> Path:
    """Write an entry of 600 MiB without its bytes: its head alone says how long it is."""
    path = folder / "large.tar"
    path.write_bytes(_entry("large", size=600 << 20).tobuf() + bytes(10_240))
    return path


@needs_archives
@pytest.mark.parametrize("write", [_many, _large])
def test_an_archive_that_holds_too_much_is_not_unpacked(place: _Place, write: Callable[[Path], Path]) -> None:
    path = write(place.folder)
    assert "is too large" in place.refused(archive=str(path), sha256=sha256(path))


class _Run:
    """The program, and one task."""

    def __init__(self, program: Program, folder: Path, url: str) -> None:
        program.environment["OPENAI_API_KEY"] = "sk-none"
        self._program = program
        self._folder = folder
        self._url = url
        self.out = folder / "out"

    def do(self, **fields: object) -> Done:
        file, policy = self._folder / "task.json", self._folder / "policy.toml"
        policy.write_text(POLICY)
        file.write_text(json.dumps({"id": "one", "prompt": "write new.txt hello", **fields}))
        words = ["run", "--task", str(file), "--out", str(self.out), "--policy", str(policy)]
        return self._program.run(*words, "--base-url", self._url, "--model", "m")


@pytest.fixture
def run(program: Program, tmp_path: Path) -> Iterator[_Run]:
    with serving() as (url, _):
        yield _Run(program, tmp_path, url)


def test_a_task_on_a_bundle_gives_a_patch_for_the_repository(run: _Run, place: _Place, tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    packed = place.pack(source)
    assert run.do(bundle=packed.path, sha256=packed.sha256, commit=packed.commit, cwd="sub").code == 0
    clone = applied(source, run.out / CHANGES, tmp_path / "clone")
    assert (clone / "sub" / "new.txt").read_text() == "hello\n"


@needs_archives
def test_task_on_an_archive_gives_a_patch_and_leaves_no_folder(run: _Run, place: _Place, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("one\n")
    packed = place.pack(tmp_path / "source")
    assert run.do(archive=packed.path, sha256=packed.sha256).code == 0
    assert "+hello" in (run.out / CHANGES).read_text()
    assert sorted(os.listdir(run.out / "attempts" / "1")) == ["log.jsonl", "place.json"]
