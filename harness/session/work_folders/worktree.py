"""Adds and removes worktrees of a repository (git-worktree(1)), one at a time, without running hooks or filters."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

from harness.errors import UsageError
from harness.safe_files import read_small
from harness.session.state import State
from harness.session.work_folders.git_runner import Git, GitFailure, Programs, programs_of
from harness.session.work_folders.work_folder import (
    ARCHIVE,
    GIT,
    INDEX,
    NOTE,
    OBJECTS,
    TREE,
    WorkFolder,
    identity_of,
    locked,
    note_place,
    removed,
)
from harness.text.visible import visible_line

ADD_TRIES = 5
"""Number of tries to add a worktree: git cannot list worktrees while another git is adding one."""
WAIT_SECONDS = 0.2


def add_worktree(attempt: str, source: str, revision: str | None, environment: Mapping[str, str]) -> WorkFolder:
    """Add a worktree of the repository around `source` in the folder of an attempt, and return it.

    Raises UsageError for an unknown revision, or one without the folder `source`.
    """
    top, common = repository_of(source, environment)
    commit = commit_of(top, revision, environment)
    return add_worktree_of(common, commit, os.path.relpath(source, top), attempt, top, environment)


def add_worktree_of(
    repository: str, commit: str, folder: str, attempt: str, source: str, environment: Mapping[str, str]
) -> WorkFolder:
    """Add a worktree at a commit of the repository with the git folder `repository` (absolute), and return it.

    `folder` is the working directory in it. `source` is the origin of the repository, for messages. Raises UsageError if
    the commit does not contain the folder.
    """
    programs = programs_of(repository, environment)
    git = Git(environment, folder=repository, filters=programs.filters, hooks=programs.hooks)
    root = os.path.join(attempt, TREE)
    note_place(attempt, repository)
    # Git refuses to add a path that it knows. Forget an earlier worktree at this path that was removed or moved.
    problem = forget_worktrees(repository, os.path.dirname(attempt), environment)
    if problem:
        raise UsageError(problem)
    with _one_at_a_time(environment):
        _add(git, repository, root, commit)
    git_dir = (read_small(os.path.join(root, ".git"), 10_000) or b"").decode("utf-8", "surrogateescape")
    git_dir = git_dir.removeprefix("gitdir: ").rstrip("\n")
    # Without the lock, since checking out takes long. The plumbing command runs no checkout hook.
    repository_git = Git(environment, folder=root, filters=programs.filters, hooks=programs.hooks)
    repository_git.run([f"--git-dir={git_dir}", f"--work-tree={root}", "read-tree", "--reset", "-u", commit])
    _keep_index(git_dir, attempt)
    return WorkFolder(
        root=root,
        identity=identity_of(root),
        workspace=inside(root, folder, f"revision {commit}"),
        git_dir=git_dir,
        objects=os.path.join(repository, "objects"),
        base=commit,
        repository=repository,
        source=source,
        notes=_notes(root, programs),
    )


def forget_worktrees(repository: str, folder: str, environment: Mapping[str, str]) -> str:
    """Remove a repository's entries for missing worktrees below `folder`. Return the problem, or an empty string.

    Other entries stay, since git records the path of each worktree. (`git worktree prune` would remove all entries whose
    folder is missing at the moment.)
    """
    worktrees = os.path.join(repository, "worktrees")
    below = os.path.realpath(folder) + os.sep  # as git notes it
    with _one_at_a_time(environment):
        try:
            names = os.listdir(worktrees)
        except OSError:
            return ""  # there are none
        for name in names:
            path = os.path.join(worktrees, name)
            git_file = (read_small(os.path.join(path, "gitdir"), 10_000) or b"").decode("utf-8", "surrogateescape")
            noted = git_file.rstrip("\n")
            if noted.startswith(below) and not os.path.lexists(noted) and not os.path.islink(path):
                problem = removed(path)
                if problem:
                    return problem
        try:
            os.rmdir(worktrees)  # as git does
        except OSError:
            pass  # others are there
    return ""


def repository_of(source: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the top of the work tree around `source` and its common git folder, both absolute, links followed.

    Raises UsageError if it is in no usable repository.
    """
    git = Git(environment, folder=source)
    try:
        output = git.run(["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"])
    except GitFailure as error:
        raise UsageError(f"{source} is in a folder with a .git that is not a usable repository: {error}") from None
    lines = output.decode("utf-8", "surrogateescape").split("\n")
    if len(lines) != 3:
        raise UsageError(f"{source}: the path of its repository has a line end in it")
    return os.path.realpath(lines[0]), os.path.realpath(lines[1])


def commit_of(top: str, revision: str | None, environment: Mapping[str, str]) -> str:
    """Return the commit of a revision (default: HEAD) in the work tree `top`. Raises UsageError."""
    git = Git(environment, folder=top)
    # Git runs in the work tree, since that may be a worktree with its own HEAD.
    revision_name = revision or "HEAD"
    try:
        output = git.run(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision_name}^{{commit}}"])
    except GitFailure:
        problem = f"unknown commit {visible_line(revision_name, 200)!r} in the repository {top}"
        raise UsageError(problem if revision else f"{problem}: nothing was committed yet") from None
    return output.decode().strip()


def _add(git: Git, common: str, root: str, commit: str) -> None:
    for attempts_left in reversed(range(ADD_TRIES)):
        try:
            git.run([f"--git-dir={common}", "worktree", "add", "--quiet", "--detach", "--no-checkout", root, commit])
        except GitFailure:
            if not attempts_left or os.path.lexists(root):
                raise
            time.sleep(WAIT_SECONDS)
        else:
            return


def _keep_index(git_dir: str, attempt: str) -> None:
    """Copy the index with its modification time, from which git decides which times in the index are reliable."""
    try:
        shutil.copy2(os.path.join(git_dir, "index"), os.path.join(attempt, INDEX))
    except OSError as error:
        raise UsageError(f"the index cannot be copied: {error}") from None


def inside(root: str, relative: str, source: str) -> str:
    """Return the folder `relative` in a work folder. `source` names the origin of the work folder in messages.

    INVARIANT: no part of the path is a link. A revision may contain a link that leads out of the worktree, and changes made
    there would be in no patch. Raises UsageError.
    """
    workspace = os.path.normpath(os.path.join(root, relative))
    if not os.path.isdir(workspace):
        raise UsageError(f"{source} does not hold the folder {relative}")
    if os.path.realpath(workspace) != os.path.normpath(os.path.join(os.path.realpath(root), relative)):
        raise UsageError(f"in {source}, {relative} is a link or below one, and must be a folder of the repository")
    return workspace


def _notes(root: str, programs: Programs) -> tuple[str, ...]:
    notes = []
    if programs.filters:
        filter_names = visible_line(", ".join(programs.filters), 200)
        notes.append(
            f"filters are not run ({filter_names}): files that they would fill in hold what the repository holds"
        )
    if os.path.lexists(os.path.join(root, ".gitmodules")):
        notes.append("the folders of submodules are empty: nothing is fetched")
    return tuple(notes)


def _one_at_a_time(environment: Mapping[str, str]) -> AbstractContextManager[None]:
    """Hold the lock for adding and removing worktrees, since git lists all of them while it adds one.

    All tasks of this user share the lock. Raises UsageError if it cannot be made.
    """
    return locked(os.path.join(State.of(environment).state, "worktrees.lock"))


def remove_work_folder(attempt: str, environment: Mapping[str, str]) -> str:
    """Remove the work folder of an attempt, and its entry in the repository. Return the problem, or an empty string.

    This works also after a kill at any moment. It removes only files and entries that were made for the attempt.
    """
    root = os.path.join(attempt, TREE)
    problems = [
        removed(path) for path in (root, *(os.path.join(attempt, name) for name in (GIT, OBJECTS, INDEX, ARCHIVE)))
    ]
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
        try:
            problems.append(forget_worktrees(repository, attempt, environment))
        except UsageError as error:
            problems.append(str(error))
    return "; ".join(problem for problem in problems if problem)
