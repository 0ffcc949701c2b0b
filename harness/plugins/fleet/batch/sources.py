"""Sources of a task: a folder on this machine, or the repository, bundle or archive that the task names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from harness.errors import UsageError
from harness.paths import is_within_any
from harness.plugins.fleet.batch.task import Task
from harness.session.work_folders.folder_copy import copied, located
from harness.session.work_folders.mirror import mirror_of, mirror_of_bundle
from harness.session.work_folders.packed import unpack
from harness.session.work_folders.transport import local_path
from harness.session.work_folders.work_folder import WorkFolder
from harness.session.work_folders.worktree import add_worktree, add_worktree_of
from harness.text.visible import visible_line

INPUTS_VARIABLE = "HARNESS_INPUTS"
"""Environment variable with the folder of a task's input files, set by a worker.

The task names the files by digest only, so that it is the same on all machines.
"""


def make_work_folder(
    attempt: str, cwd: str, revision: str | None, out: str, environment: Mapping[str, str]
) -> WorkFolder:
    """Make the work folder of one attempt from `cwd`, in the existing folder `attempt` (an absolute path).

    If `cwd` is in a repository, the work folder is a worktree at `revision` (default: HEAD). Otherwise it is a copy of
    `cwd` without the output folder `out`. Raises UsageError if neither is possible.
    """
    source, in_repository = located(cwd, revision, environment)
    if in_repository:
        return add_worktree(attempt, source, revision, environment)
    return copied(attempt, source, out, environment)


def work_folder_of(
    task: Task, attempt: str, cwd: str, out: str, environment: Mapping[str, str], tell: Callable[[str], None]
) -> WorkFolder:
    """Make the work folder of one attempt at a task, from the task's repository, bundle or archive, or else from `cwd`.

    See `make_work_folder`. `tell` gets messages about long steps. Raises UsageError.
    """
    folder, inputs = task.cwd or ".", environment.get(INPUTS_VARIABLE, "")
    if task.repo is not None and task.commit is not None:
        mirror = mirror_of(task.repo, task.commit, environment, tell)
        return add_worktree_of(mirror, task.commit, folder, attempt, task.repo, environment)
    if task.bundle is not None and task.commit is not None:
        bundle = os.path.join(inputs, task.bundle)
        mirror = mirror_of_bundle(bundle, task.file_sha256 or "", task.commit, environment)
        return add_worktree_of(mirror, task.commit, folder, attempt, task.bundle, environment)
    if task.archive is not None:
        return unpack(attempt, os.path.join(inputs, task.archive), task.file_sha256 or "", folder, environment)
    return make_work_folder(attempt, cwd, task.revision, out, environment)


def refuse_outside(task: Task, folders: Iterable[str]) -> None:
    """Raise UsageError if a task names a local place outside of all `folders`, after links are resolved.

    For a worker, which runs tasks of other users: they must not choose any folder, repository, bundle or archive of its
    machine. A task that names no place works in the worker's current folder.
    """
    allowed = [os.path.realpath(folder) for folder in folders]
    repository = None if task.repo is None else local_path(task.repo)
    paths = {"cwd": task.cwd if task.source is None else None, "bundle": task.bundle, "archive": task.archive}
    places = {**{key: os.path.realpath(path) for key, path in paths.items() if path is not None}, "repo": repository}
    for key, place in places.items():
        if place is not None and not is_within_any(place, allowed):
            below = ", ".join(allowed) or "no folder"
            raise UsageError(
                f"task {task.id}: {key}: {visible_line(place, 300)} is outside of the folders that tasks may name "
                f"on this machine: {below}"
            )
