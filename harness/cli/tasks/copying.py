"""A copy of a folder that is no repository, with one beside it that keeps what it held at first; it follows no link."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping

from harness.cli.tasks.fresh import ATTEMPTS, GIT, INDEX, TASK, TREE, Fresh, note_place
from harness.cli.tasks.git import Git
from harness.errors import UsageError

MAX_COPY_BYTES = 512 << 20
MAX_COPY_FILES = 100_000
"""Of a folder that is copied for each task. What is larger should be a repository: worktrees share what they hold."""


def copied(attempt: str, source: str, environment: Mapping[str, str]) -> Fresh:
    """Copy `source` into the folder of an attempt, and return the copy.

    What is neither file, folder nor link is left out, and so are folders of tasks. Raises UsageError for a folder that is
    too large, that cannot be read, or that is a task's own.
    """
    if _is_of_a_task(source):
        raise UsageError(f"{source} is the folder of a task: it cannot be what the task works on")
    root = os.path.join(attempt, TREE)
    note_place(attempt, "")
    try:
        passed = _copy(source, root)
    except OSError as error:
        raise UsageError(f"the folder cannot be copied: {error}") from None
    git_dir = os.path.join(attempt, GIT)
    git = Git(environment, folder=root)
    git.run(["init", "--quiet", "--bare", "--template=", git_dir])
    paths = sorted(_files(root))
    variables = {"GIT_INDEX_FILE": os.path.join(attempt, INDEX)}
    here = [f"--git-dir={git_dir}", f"--work-tree={root}"]
    git.run([*here, "update-index", "-z", "--add", "--stdin"], given=b"\0".join(paths), variables=variables)
    base = git.run([*here, "write-tree"], variables=variables).decode().strip()
    notes = [f"it is a copy: {source} lies in no repository"]
    if passed:
        notes.append(f"left out of the copy, as neither file, folder nor link: {', '.join(passed[:5])}")
    return Fresh(
        root=root,
        workspace=root,
        git_dir=git_dir,
        objects=os.path.join(git_dir, "objects"),
        base=base,
        repository="",
        source=source,
        notes=tuple(notes),
    )


def _copy(source: str, root: str) -> list[str]:
    """Copy a tree and return what was left out. Raises OSError, and UsageError where it is too large."""
    passed: list[str] = []
    size = count = 0
    for folder, names in _folders(source):
        target = os.path.normpath(os.path.join(root, os.path.relpath(folder, source)))
        os.makedirs(target, exist_ok=True)
        for name in names:
            path, to = os.path.join(folder, name), os.path.join(target, name)
            status = os.lstat(path)
            count += 1
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(path), to)
            elif stat.S_ISREG(status.st_mode):
                size += status.st_size
                if size <= MAX_COPY_BYTES:
                    shutil.copy2(path, to, follow_symlinks=False)
            else:
                passed.append(os.path.relpath(path, source))
            if size > MAX_COPY_BYTES or count > MAX_COPY_FILES:
                raise UsageError(
                    f"{source} is too large to be copied for a task (more than {MAX_COPY_BYTES >> 20} MiB or "
                    f"{MAX_COPY_FILES} files): make it a repository, and each task gets a worktree"
                )
    return passed


def _is_of_a_task(folder: str) -> bool:
    """Say whether a folder holds what comes of a task: a copy of it would hold itself."""
    return all(os.path.lexists(os.path.join(folder, name)) for name in (TASK, ATTEMPTS))


def _folders(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder of a tree, the first its root, with the names of what in it is no folder. Raises OSError."""

    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(source, onerror=refuse):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links and not _is_of_a_task(os.path.join(folder, name))]
        yield folder, [*files, *links]


def _files(root: str) -> Iterator[bytes]:
    """Yield the path of every file and link below the root, from there."""
    for folder, names in _folders(root):
        for name in names:
            yield os.fsencode(os.path.relpath(os.path.join(folder, name), root))
