"""The folder that one attempt at a task works in: what lies in it, what tells it from another, and its removal."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping

from harness.cli.batch.git_runner import GitFailure
from harness.errors import UsageError
from harness.record import Record
from harness.removal import remove_folder
from harness.safe_files import sync_path, write_new

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


class WorkFolder(Record):
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


def keep(attempt: str) -> None:
    """See to it that the folder of an attempt is not removed at a later start. What cannot be noted is not."""
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


def note_place(attempt: str, repository: str) -> None:
    """Note where the folder is taken from, on disk when this returns. Raises GitFailure."""
    try:
        write_new(os.path.join(attempt, NOTE), json.dumps({"repository": repository}).encode())
        sync_path(attempt)
    except OSError as error:
        raise GitFailure(f"{attempt} cannot be written: {error.strerror}") from None


TRIES = 5
"""What a killed run left may still be ending, and write meanwhile."""
RETRY_SECONDS = 0.2


def removed(path: str) -> str:
    """Remove `path`, where it is there; return why it could not be removed, or nothing."""
    for left in reversed(range(TRIES)):
        try:
            if not os.path.lexists(path):
                return ""
            if stat.S_ISDIR(os.lstat(path).st_mode):
                if problem := remove_folder(path):
                    raise problem
            else:
                os.unlink(path)
        except OSError as error:
            if not left:
                return f"{path} cannot be removed: {error.strerror}"
            time.sleep(RETRY_SECONDS)
    return ""
