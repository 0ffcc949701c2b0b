"""Copies of folders outside of repositories. A repository beside a copy stores the original content. Links are not followed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping

from harness.audit.batch_results import ATTEMPTS, TASK
from harness.errors import UsageError
from harness.files.repository import git_top
from harness.paths import is_within
from harness.record import Record
from harness.safe_files import write_new
from harness.session.state import State
from harness.session.work_folders.git_runner import Git
from harness.session.work_folders.work_folder import GIT, INDEX, TREE, WorkFolder, identity_of, note_place


def walk(root: str, goes_into: Callable[[bytes], bool]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield the path (relative to `root`) and the status of every entry below `root`. Folders precede their content.

    `goes_into` decides from a folder's path whether to enter it. Entries that vanish during the walk are left out.
    Raises OSError for unreadable folders.
    """
    start, waiting = os.fsencode(root), [b""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(start, below)) as entries:
            for entry in entries:
                path = os.path.join(below, entry.name)
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield path, status
                if stat.S_ISDIR(status.st_mode) and goes_into(path):
                    waiting.append(path)


def fingerprint(root: str, path: bytes) -> str:
    """Return a digest of names, modes, sizes and times at a path and below, without contents. Raises OSError."""
    place = os.path.join(os.fsencode(root), path)
    statuses = [(b"", os.lstat(place))]
    if stat.S_ISDIR(statuses[0][1].st_mode):
        statuses += walk(os.fsdecode(place), lambda _: True)
    lines = sorted((name, status.st_mode, status.st_size, status.st_mtime_ns) for name, status in statuses)
    return hashlib.sha256(repr(lines).encode()).hexdigest()


MAX_COPY_BYTES = 512 << 20
MAX_COPY_FILES = 100_000
"""Maximum size of a folder that is copied for each task, in bytes and in files.

A larger folder should be made a repository, since worktrees share data.
"""
# Overrides every .gitattributes (gitattributes(5)), so that a patch has the exact bytes of the files.
_ATTRIBUTES = b"* -text -ident -working-tree-encoding -filter !eol !diff !merge\n"


class Copy(Record):
    """Content of a copy."""

    files: Collection[bytes]
    """Relative paths of files and links, without the data of repositories."""
    repositories: Collection[bytes]
    """Relative paths of all entries named `.git`."""
    passed: tuple[str, ...] = ()
    """Paths that were left out, since they are neither files, folders nor links."""


def located(cwd: str, revision: str | None, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return the folder `cwd`, absolute and links followed, and whether it is in a repository.

    Raises UsageError for a missing folder, and for one outside of repositories that must not be copied, or has no
    `revision`.
    """
    source = os.path.realpath(cwd)
    if not os.path.isdir(source):
        raise UsageError(f"the workspace is not an existing folder: {cwd}")
    if os.path.lexists(os.path.join(git_top(source), ".git")):
        return source, True
    if revision is not None:
        raise UsageError(f"a revision needs a git repository, and {source} is not in one")
    if all(os.path.lexists(os.path.join(source, name)) for name in ("HEAD", "objects", "refs")):
        raise UsageError(f"{source} is a repository without a work tree; name a folder that has one")
    guarded_folders = [folder for folder in State.of(environment).guarded if is_within(folder, source)]
    if guarded_folders:
        raise UsageError(
            f"{source} holds the harness's own files ({', '.join(guarded_folders)}), and is not copied for a task"
        )
    return source, False


def copied(attempt: str, source: str, out: str, environment: Mapping[str, str]) -> WorkFolder:
    """Copy `source` into the folder of an attempt, and return the copy.

    Left out are the folders of tasks, the folder `out` (links followed), and entries that are neither files, folders nor
    links. Raises UsageError for a folder that is too large, that cannot be read, or that is the folder of a task.
    """
    if is_of_a_task(source):
        raise UsageError(f"{source} is the folder of a task: it cannot be what the task works on")
    root = os.path.join(attempt, TREE)
    note_place(attempt, "")
    try:
        copy = _copied(source, root, out)
    except OSError as error:
        raise UsageError(f"the folder cannot be copied: {error}") from None
    notes = [f"it is a copy: {source} lies in no repository"]
    if copy.passed:
        notes.append(f"left out of the copy, as neither file, folder nor link: {', '.join(copy.passed[:5])}")
    return as_work_folder(attempt, copy, source, tuple(notes), environment)


def as_work_folder(
    attempt: str, copy: Copy, source: str, notes: tuple[str, ...], environment: Mapping[str, str]
) -> WorkFolder:
    """Make the repository beside a copy in the folder TREE of an attempt, and return the work folder.

    `source` is the original of the copy, `notes` describe the differences. Raises UsageError.
    """
    root = os.path.join(attempt, TREE)
    try:
        inner = {path: fingerprint(root, path) for path in copy.repositories}
    except OSError as error:
        raise UsageError(f"the folder cannot be copied: {error}") from None
    git_dir = os.path.join(attempt, GIT)
    git = Git(environment, folder=root)
    git.run(["init", "--quiet", "--bare", "--template=", git_dir])
    _write_attributes(git_dir)
    variables = {"GIT_INDEX_FILE": os.path.join(attempt, INDEX)}
    git_options = [f"--git-dir={git_dir}", f"--work-tree={root}"]
    git.run(
        [*git_options, "update-index", "-z", "--add", "--stdin"],
        stdin=b"\0".join(sorted(copy.files)),
        variables=variables,
    )
    base = git.run([*git_options, "write-tree"], variables=variables).decode().strip()
    return WorkFolder(
        root=root,
        identity=identity_of(root),
        workspace=root,
        git_dir=git_dir,
        objects=os.path.join(git_dir, "objects"),
        base=base,
        repository="",
        source=source,
        inner=inner,
        notes=notes,
    )


def _copied(source: str, root: str, out: str) -> Copy:
    """Copy a tree. Raises OSError, and UsageError if it is too large."""
    start, target = os.fsencode(source), os.fsencode(root)
    left_out = os.fsencode(os.path.relpath(out, source))
    files: list[bytes] = []
    repositories: list[bytes] = []
    passed: list[str] = []
    size = count = 0

    def goes_into(path: bytes) -> bool:
        return path != left_out and not is_of_a_task(os.path.join(start, path))

    os.mkdir(root)
    for path, status in walk(source, goes_into):
        source_path, to = os.path.join(start, path), os.path.join(target, path)
        parts = path.split(b"/")
        if parts[-1] == b".git":
            repositories.append(path)
        if stat.S_ISDIR(status.st_mode):
            if goes_into(path):
                os.mkdir(to)
            continue
        count += 1
        size += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if size > MAX_COPY_BYTES or count > MAX_COPY_FILES:
            raise UsageError(
                f"{source} is too large to be copied for a task (more than {MAX_COPY_BYTES >> 20} MiB or "
                f"{MAX_COPY_FILES} files): make it a repository, and each task gets a worktree"
            )
        if not _is_copied(source_path, to, status):
            passed.append(os.fsdecode(path))
        elif b".git" not in parts:
            files.append(path)
    return Copy(files=files, repositories=repositories, passed=tuple(passed))


def _is_copied(path: bytes, to: bytes, status: os.stat_result) -> bool:
    """Copy a file or a link. Return False if it is neither, or has vanished."""
    try:
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(path), to)
        elif stat.S_ISREG(status.st_mode):
            shutil.copy2(path, to, follow_symlinks=False)
        else:
            return False
    except FileNotFoundError:
        return False  # it vanished meanwhile
    return True


def _write_attributes(git_dir: str) -> None:
    try:
        os.makedirs(os.path.join(git_dir, "info"), mode=0o700, exist_ok=True)
        write_new(os.path.join(git_dir, "info", "attributes"), _ATTRIBUTES)
    except OSError as error:
        raise UsageError(f"{git_dir} cannot be written: {error.strerror}") from None


def is_of_a_task(folder: str | bytes) -> bool:
    """Return whether a folder is that of a task. A copy of such a folder would contain itself."""
    return all(os.path.lexists(os.path.join(os.fsencode(folder), name.encode())) for name in (TASK, ATTEMPTS))
