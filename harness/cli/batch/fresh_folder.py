"""The fresh folder that a task works in: a worktree of the repository, or a copy of the folder; it runs no model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness.cli.batch.git import Git, GitFailure
from harness.cli.state import State
from harness.errors import UsageError
from harness.files.repository import git_top
from harness.paths import is_within
from harness.record import Record

TREE = "worktree"
"""Below the folder of an attempt: the folder that is worked in."""
INDEX = "index"
"""What the folder held at first, as git keeps it (gitformat-index(5)), with the times of its files."""
OBJECTS = "objects"
"""What git makes while the changes are taken."""
GIT = "git"
"""Of a copy: the repository of what it held at first."""
KEPT = "kept"
"""An empty file: the folder holds what no patch does, and is never removed."""
NOTE = "place.json"
"""From where the folder was taken, noted before it is made: what a start after a kill needs to clean up."""


class Fresh(Record):
    """A folder that holds what is worked on, and what shows afterwards what was changed in it."""

    root: str
    identity: tuple[int, int]
    """Device and inode of the root: what stands there later may be another folder."""
    workspace: str
    """The root, or the folder in it that the task named."""
    git_dir: str
    """INVARIANT: fixed before the model begins. The `.git` of the folder is never asked again: it may name any repository."""
    objects: str
    """Where the objects of the base lie."""
    base: str
    """The commit or tree that the folder held at first."""
    repository: str
    """Of a worktree: the repository's folder of all worktrees' data; empty for a copy."""
    source: str
    inner: Mapping[bytes, str] = {}
    """Of a copy: a fingerprint of each `.git` in it, as it was at first, by its path."""
    notes: tuple[str, ...] = ()
    """What a person should know of how it differs from what it was taken from."""

    @property
    def kind(self) -> str:
        """What it is."""
        return "worktree" if self.repository else "copy"


def fresh_folder(attempt: str, cwd: str, revision: str | None, out: str, environment: Mapping[str, str]) -> Fresh:
    """Make the folder of one attempt (an absolute folder that is there) out of `cwd`.

    A folder in a repository becomes a worktree at `revision` (else HEAD); another is copied, but for the folder `out` in it,
    where the folders of tasks lie. Raises UsageError where neither can be done.
    """
    source = os.path.realpath(cwd)
    if not os.path.isdir(source):
        raise UsageError(f"the workspace is not an existing folder: {cwd}")
    in_repository = os.path.lexists(os.path.join(git_top(source), ".git"))
    if in_repository:
        from harness.cli.batch.worktree import add_worktree

        return add_worktree(attempt, source, revision, environment)
    if revision is not None:
        raise UsageError(f"a revision needs a repository, and {source} lies in none")
    if all(os.path.lexists(os.path.join(source, name)) for name in ("HEAD", "objects", "refs")):
        raise UsageError(f"{source} is a repository without a work tree; name a folder that has one")
    state = State.of(environment)
    held = [folder for folder in state.guarded if is_within(folder, source)]
    if held:
        raise UsageError(f"{source} holds the harness's own files ({', '.join(held)}), and is not copied for a task")
    from harness.cli.batch.folder_copy import copied

    return copied(attempt, source, out, environment)


def forget(attempt: str, environment: Mapping[str, str]) -> str:
    """Remove the folder of an attempt, and what the repository knows of it; return what could not be removed, or nothing.

    For an attempt that was killed at any moment, too. Nothing but what `fresh_folder` made is touched.
    """
    from harness.cli.batch.worktree import removed

    root = os.path.join(attempt, TREE)
    problems = [removed(path) for path in (root, *(os.path.join(attempt, name) for name in (GIT, OBJECTS, INDEX)))]
    try:
        with open(os.path.join(attempt, NOTE), "rb") as file:
            noted = json.loads(file.read(100_000))
    except FileNotFoundError:
        noted = {}
    except (OSError, ValueError):
        noted = {}
        problems.append("it is not known which repository it was taken from (`git worktree prune` there forgets it)")
    repository = noted.get("repository") if isinstance(noted, dict) else None
    if isinstance(repository, str) and repository:
        from harness.cli.batch.worktree import forget_worktrees

        try:
            problems.append(forget_worktrees(repository, attempt, environment))
        except UsageError as error:
            problems.append(str(error))
    return "; ".join(problem for problem in problems if problem)


def keep(attempt: str) -> None:
    """See to it that the folder of an attempt is not removed at a later start. What cannot be noted is not."""
    from harness.safe_files import write_new

    try:
        write_new(os.path.join(attempt, KEPT), b"")
    except OSError:
        pass  # the disk is full: the result says the same, or cannot be written either


def is_kept(attempt: str) -> bool:
    """Say whether the folder of an attempt holds what no patch does."""
    return os.path.lexists(os.path.join(attempt, KEPT))


def identity_of(root: str) -> tuple[int, int]:
    """Return what tells a folder from any other. Raises UsageError where there is none."""
    try:
        status = os.stat(root, follow_symlinks=False)
    except OSError as error:
        raise UsageError(f"{root} is gone: {error.strerror}") from None
    return status.st_dev, status.st_ino


class Programs(Record):
    """The programs that any configuration of a repository names, by git's names for them; git runs none of them for us."""

    filters: tuple[str, ...]
    """Filter drivers, which would be run on every file (gitattributes(5))."""
    hooks: tuple[str, ...]


def programs_of(git_dir: str, environment: Mapping[str, str]) -> Programs:
    """Return what is to be switched off in a repository. Raises UsageError."""
    git = Git(environment, folder="/")
    words = [f"--git-dir={git_dir}", "config", "-z", "--name-only", "--get-regexp", r"^(filter|hook)\."]
    keys = git.run(words, fine=(0, 1)).decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, dict[str, None]] = {"filter": {}, "hook": {}}
    for key in keys:
        section, _, rest = key.partition(".")
        if "." in rest:
            found[section][rest.rpartition(".")[0]] = None
    return Programs(filters=tuple(found["filter"]), hooks=tuple(found["hook"]))


def note_place(attempt: str, repository: str) -> None:
    """Note where the folder is taken from, on disk when this returns. Raises GitFailure."""
    from harness.safe_files import sync_path, write_new

    try:
        write_new(os.path.join(attempt, NOTE), json.dumps({"repository": repository}).encode())
        sync_path(attempt)
    except OSError as error:
        raise GitFailure(f"{attempt} cannot be written: {error.strerror}") from None
