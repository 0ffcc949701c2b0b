"""The work folder of one attempt at a task: its neighbours, its identity, and its removal."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness.errors import UsageError
from harness.process.removal import remove_folder
from harness.record import Record
from harness.safe_files import sync_path, write_new
from harness.session.work_folders.git_runner import GitFailure

TREE = "worktree"
"""The folder that is worked in. This and the next names lie in the folder of an attempt."""
INDEX = "index"
"""The index of what the folder held at first (gitformat-index(5)), with the times of its files."""
OBJECTS = "objects"
"""The objects that git makes while the changes are taken."""
GIT = "git"
"""The repository beside a copy. It keeps what the copy held at first."""
ARCHIVE = "archive"
"""A copy of the archive that the folder is unpacked from. It is gone afterwards."""
KEPT = "kept"
"""An empty file. It says that the folder holds what no patch does, and must not be removed."""
NOTE = "place.json"
"""File with the source of the folder. It is written before the folder is made: a start after a kill needs it to clean
up.
"""


class WorkFolder(Record):
    """A folder to work in, and what is needed afterwards to see what was changed in it."""

    root: str
    identity: tuple[int, int]
    """Device and inode of the root: another folder may lie there later."""
    workspace: str
    """The root, or the folder in it that the task named."""
    git_dir: str
    """INVARIANT: fixed before the model begins. The `.git` of the folder is never asked again: it may name any repository."""
    objects: str
    """The folder of the base's objects."""
    base: str
    """The commit or tree that the folder held at first."""
    repository: str
    """The common git folder of a worktree's repository; empty for a copy."""
    source: str
    inner: Mapping[bytes, str] = {}
    """The fingerprint that each `.git` in a copy had at first, by its path."""
    notes: tuple[str, ...] = ()
    """Differences from the source folder, for a person."""

    @property
    def kind(self) -> str:
        """`worktree` or `copy`."""
        return "worktree" if self.repository else "copy"


def keep(attempt: str) -> None:
    """Mark the folder of an attempt, so that no later start removes it. A disk that is full takes no mark."""
    try:
        write_new(os.path.join(attempt, KEPT), b"")
    except OSError:
        pass  # the disk is full: the result says the same, or cannot be written either


def is_kept(attempt: str) -> bool:
    """Say whether the folder of an attempt is marked as holding what no patch does."""
    return os.path.lexists(os.path.join(attempt, KEPT))


def identity_of(root: str) -> tuple[int, int]:
    """Return device and inode, which identify a folder. Raises UsageError if it does not exist."""
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


@contextmanager
def locked(lock: str) -> Iterator[None]:
    """Hold the lock of a file, made where it is missing. The kernel gives it back however this process ends.

    Raises UsageError where it cannot be made.
    """
    try:
        os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"{lock} cannot be made: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


TRIES = 5
"""Processes that a killed run left may still write for a moment, so a removal is tried again."""
RETRY_SECONDS = 0.2


def removed(path: str) -> str:
    """Remove `path`, if it exists. Return the reason for a failure, or an empty string."""
    for attempts_left in reversed(range(TRIES)):
        try:
            if not os.path.lexists(path):
                return ""
            if stat.S_ISDIR(os.lstat(path).st_mode):
                if problem := remove_folder(path):
                    raise problem
            else:
                os.unlink(path)
        except OSError as error:
            if not attempts_left:
                return f"{path} cannot be removed: {error.strerror}"
            time.sleep(RETRY_SECONDS)
    return ""
