"""A task's folder packed into one file: a bundle of a repository (git-bundle(1)), or a tar of any other folder."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from harness.errors import UsageError
from harness.record import Record, replace
from harness.safe_files import name_beside, sync_path
from harness.session.work_folders.folder_copy import (
    MAX_COPY_BYTES,
    MAX_COPY_FILES,
    Copy,
    as_work_folder,
    is_of_a_task,
    located,
    walk,
)
from harness.session.work_folders.git_runner import Git
from harness.session.work_folders.work_folder import ARCHIVE, TREE, WorkFolder, note_place, removed
from harness.session.work_folders.worktree import commit_of, inside, repository_of
from harness.text.visible import visible_line

BUNDLE, TAR = "bundle", "archive"
MAX_ARCHIVE_BYTES = MAX_COPY_BYTES + MAX_COPY_FILES * 4_096
"""Maximum bytes of an archive, with its file names."""
_PIECE = 1 << 20


class Packed(Record):
    """A file with the packed folder of a task."""

    kind: str
    """BUNDLE or TAR. Also the name of the task's field for this file."""
    path: str
    """Path of the file, whose name is its digest."""
    sha256: str
    commit: str = ""
    """Commit in the bundle. Empty for an archive."""
    cwd: str = ""
    """Working directory in the packed folder. Empty for its top."""
    notes: tuple[str, ...] = ()
    """Notes for the user about differences from the original folder."""


def pack(cwd: str, revision: str | None, into: str, environment: Mapping[str, str]) -> Packed:
    """Pack the folder `cwd` into a file in the folder `into`, and return it. `into` is made if it is missing.

    A repository becomes a bundle of `revision` (default: HEAD) with its history, without uncommitted changes. Any other
    folder becomes a tar, within the limits of a copy. The same content gives the same file, as far as git permits.
    Raises UsageError for a missing folder, an incomplete history, links in a folder outside of repositories, and a
    folder that is too large or a task's own.
    """
    source, in_repository = located(cwd, revision, environment)
    os.makedirs(into, mode=0o700, exist_ok=True)
    return _bundle(source, revision, into, environment) if in_repository else _tar(source, into)


def _bundle(source: str, revision: str | None, into: str, environment: Mapping[str, str]) -> Packed:
    top, common = repository_of(source, environment)
    commit = commit_of(top, revision, environment)
    folder = os.path.relpath(source, top)
    git = Git(environment, folder=top)
    if git.run(["rev-parse", "--is-shallow-repository"]).strip() == b"true":
        raise UsageError(f"{top} is a shallow clone, and no bundle can be made of it: `git fetch --unshallow`")
    tree = git.run(["ls-tree", "-d", "-z", "--full-tree", commit, "--", folder]) if folder != "." else b"040000 tree"
    if not tree.startswith(b"040000 tree"):
        raise UsageError(f"revision {commit} does not hold the folder {folder}")
    with _new_path(into, "repository") as place, _new_path(into, "file") as file:
        # A separate repository reads the objects of the original, but not its configuration. It is needed since a bundle
        # must have a name for its commit. One thread, so that the same history gives the same bytes.
        form = "sha256" if len(commit) == 64 else "sha1"
        git = Git(environment, folder=into)
        git.run(["init", "--quiet", "--bare", "--template=", f"--object-format={form}", place])
        with open(os.path.join(place, "objects", "info", "alternates"), "w", errors="surrogateescape") as alternates:
            alternates.write(f"{os.path.join(common, 'objects')}\n")
        git_dir = f"--git-dir={place}"
        git.run([git_dir, "update-ref", "refs/heads/task", commit])
        git.run([git_dir, "-c", "pack.threads=1", "bundle", "create", "--quiet", file, "refs/heads/task"])
        path, digest = _name_by_digest(file, into, BUNDLE)
    return Packed(kind=BUNDLE, path=path, sha256=digest, commit=commit, cwd="" if folder == "." else folder)


def _tar(source: str, into: str) -> Packed:
    """Make a tar of a folder, with the files that a copy would contain. Raises UsageError."""
    if is_of_a_task(source):
        raise UsageError(f"{source} is the folder of a task: it cannot be what the task works on")
    start = os.fsencode(source)
    output_folder = os.fsencode(os.path.relpath(os.path.realpath(into), source))

    def goes_into(path: bytes) -> bool:
        return (
            path != output_folder and os.path.basename(path) != b".git" and not is_of_a_task(os.path.join(start, path))
        )

    notes: tuple[str, ...] = ()
    try:
        entries = sorted(walk(source, goes_into))
        links = [path for path, status in entries if stat.S_ISLNK(status.st_mode)]
        if links:
            raise UsageError(
                f"{source} holds links ({visible_line(os.fsdecode(links[0]), 200)}), which no archive carries: make it a "
                "repository, and it is sent as a bundle"
            )
        if left_out := [os.fsdecode(path) for path, status in entries if not _is_packed(path, status)]:
            notes = (f"left out of the archive: {visible_line(', '.join(left_out[:5]), 500)}",)
        bounds = _Bounds(source)
        with _new_path(into, "file") as draft:
            with _new(draft) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for path, status in entries:
                    if _is_packed(path, status) and (stat.S_ISREG(status.st_mode) or goes_into(path)):
                        bounds.add(status.st_size if stat.S_ISREG(status.st_mode) else 0)
                        _add(tar, os.path.join(start, path), os.fsdecode(path), status)
            final_path, digest = _name_by_digest(draft, into, TAR)
    except OSError as error:
        raise UsageError(f"the folder cannot be packed: {error}") from None
    return Packed(kind=TAR, path=final_path, sha256=digest, notes=notes)


def _is_packed(path: bytes, status: os.stat_result) -> bool:
    return os.path.basename(path) != b".git" and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))


def _add(tar: tarfile.TarFile, path: bytes, name: str, status: os.stat_result) -> None:
    """Add one file or folder, without its owner. Raises OSError."""
    entry = tarfile.TarInfo(name)
    entry.mtime = int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        return
    entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        tar.addfile(entry, file)


class _Bounds:
    """Counts files and bytes against the limits of a copy."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._size = self._count = 0

    def add(self, size: int) -> None:
        """Count one more file or folder. Raises UsageError if a limit is exceeded."""
        self._size += size
        self._count += 1
        if self._size > MAX_COPY_BYTES or self._count > MAX_COPY_FILES:
            raise UsageError(
                f"{self._source} is too large for a task (more than {MAX_COPY_BYTES >> 20} MiB or {MAX_COPY_FILES} files): "
                "make it a repository, and each task gets a worktree"
            )


def _new(path: str) -> BinaryIO:
    """Make a file that only its owner can read and write. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, 0o600), "wb")


@contextmanager
def _new_path(folder: str, name: str) -> Iterator[str]:
    """Yield a new temporary path in a folder. At the end of the block, the file or folder at that path is removed."""
    path = name_beside(os.path.join(folder, name))
    try:
        yield path
    finally:
        removed(path)


def _name_by_digest(file: str, into: str, kind: str) -> tuple[str, str]:
    """Rename a file to its digest, and sync it to disk. Return its path and the digest. Raises OSError."""
    with open(file, "rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    path = os.path.join(into, f"{digest}.{'tar' if kind == TAR else kind}")
    os.chmod(file, 0o600)
    sync_path(file)
    os.replace(file, path)
    sync_path(into)
    return path, digest


def take_copy(path: str, sha256: str, to: str, *, max_bytes: int | None = None) -> None:
    """Copy a file to the new path `to`, and check its digest, so that later reads get the checked content.

    Raises UsageError for another digest, for anything but a file, and for more than `max_bytes`; then the copy is
    removed.
    """
    try:
        problem = _copy(path, sha256, to, max_bytes)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem:
        removed(to)
        raise UsageError(f"{path}: {problem}")


def _copy(path: str, sha256: str, to: str, max_bytes: int | None) -> str:
    """Copy a file. Return its problem, or an empty string. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return "not a regular file"
        with _new(to) as copy:
            while piece := file.read(_PIECE):
                size += len(piece)
                if max_bytes is not None and size > max_bytes:
                    return f"larger than {max_bytes >> 20} MiB"
                digest.update(piece)
                copy.write(piece)
    actual = digest.hexdigest()
    return "" if actual == sha256 else f"the SHA-256 digest is {actual}, but the task names {sha256}"


def unpack(attempt: str, archive: str, sha256: str, folder: str, environment: Mapping[str, str]) -> WorkFolder:
    """Unpack an archive into the folder of an attempt, and return the work folder. `folder` is its working directory.

    The digest is checked before the archive is parsed. Raises UsageError for another digest, for anything but a plain
    tar, for links, devices and `.git` in it, for names that lead out of it, and if it exceeds the limits of a copy.
    """
    note_place(attempt, "")
    copy = os.path.join(attempt, ARCHIVE)
    take_copy(archive, sha256, copy, max_bytes=MAX_ARCHIVE_BYTES)
    root = os.path.join(attempt, TREE)
    try:
        os.mkdir(root)
        files = _unpacked(copy, root, archive)
    except OSError as error:
        raise UsageError(f"the archive {archive} cannot be unpacked: {error}") from None
    finally:
        removed(copy)
    notes = ("it is a copy: what an archive held",)
    work_folder = as_work_folder(attempt, Copy(files=files, repositories=()), archive, notes, environment)
    return replace(work_folder, workspace=inside(root, folder, "the archive"))


def _unpacked(copy: str, root: str, archive: str) -> list[bytes]:
    """Unpack a tar into an empty folder; return the paths of its files. Raises UsageError and OSError."""
    if not hasattr(tarfile, "data_filter"):
        raise UsageError("archives need Python 3.11.4 or later: before, nothing holds a tar to its folder")
    bounds, files = _Bounds(f"the archive {archive}"), list[bytes]()
    try:
        with tarfile.open(copy, "r:") as tar:
            for entry in tar:
                if problem := _entry_problem(entry):
                    raise UsageError(f"the archive {archive}: {visible_line(entry.name, 300)} {problem}")
                bounds.add(max(0, entry.size))
            for entry in tar.getmembers():  # all entries are checked: only now write files
                tar.extract(entry, root, filter="data")
                if entry.isreg():
                    files.append(os.fsencode(os.path.normpath(entry.name)))
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UsageError(f"the archive {archive} is not a valid tar: {error}") from None
    return files


def _entry_problem(entry: tarfile.TarInfo) -> str:
    """Return the reason not to unpack one entry of a tar, or an empty string."""
    if entry.islnk() or entry.issym():
        return "is a link, which no archive of a task may hold"
    if not (entry.isreg() or entry.isdir()):
        return "is neither a file nor a folder"
    parts = entry.name.split("/")
    if entry.name.startswith("/") or ".." in parts:
        return "leads out of the archive"
    if any(part.lower() == ".git" for part in parts):
        return "is the data of a repository, which is sent as a bundle"
    return ""
