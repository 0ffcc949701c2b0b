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
from harness.safe_files import make_private, sync_path, write_new
from harness.session.work_folders.git_runner import GitFailure

TREE = "worktree"
"""Name of the root of the work folder. This and the following names are in the folder of an attempt."""
INDEX = "index"
"""Name of the git index of the original content (gitformat-index(5)), with the times of its files."""
OBJECTS = "objects"
"""Name of the folder for the objects that git makes while the changes are taken."""
GIT = "git"
"""Name of the repository beside a copy, with the copy's original content."""
ARCHIVE = "archive"
"""Name of the temporary copy of the archive from which the folder is unpacked."""
KEPT = "kept"
"""Name of an empty file. It marks a folder that must not be removed, since it has changes that are in no patch."""
NOTE = "place.json"
"""Name of the file with the source of the folder. It is written before the folder is made.

After a kill, the next start needs it to clean up.
"""


class WorkFolder(Record):
    """A folder to work in, with the data to find the changes in it afterwards."""

    root: str
    identity: tuple[int, int]
    """Device and inode of the root, to detect another folder at the same path later."""
    workspace: str
    """The root, or the folder in it that the task named."""
    git_dir: str
    """Git folder of the base. INVARIANT: fixed before the model begins. `.git` in the folder, which the model can change to
    name another repository, is not read again.
    """
    objects: str
    """Folder with the objects of the base."""
    base: str
    """Commit or tree of the original content."""
    repository: str
    """Common git folder of the worktree's repository. Empty for a copy."""
    source: str
    inner: Mapping[bytes, str] = {}
    """Original fingerprint of each `.git` in a copy, by its path."""
    notes: tuple[str, ...] = ()
    """Notes for the user about differences from the source folder."""

    @property
    def kind(self) -> str:
        """`worktree` or `copy`."""
        return "worktree" if self.repository else "copy"


def keep(attempt: str) -> None:
    """Mark the folder of an attempt, so that no later start removes it. Ignores a failure, as with a full disk."""
    try:
        write_new(os.path.join(attempt, KEPT), b"")
    except OSError:
        pass  # the disk is full: the result says the same, or cannot be written either


def is_kept(attempt: str) -> bool:
    """Return whether the folder of an attempt is marked with KEPT."""
    return os.path.lexists(os.path.join(attempt, KEPT))


def identity_of(root: str) -> tuple[int, int]:
    """Return device and inode, which identify a folder. Raises UsageError if it does not exist."""
    try:
        status = os.stat(root, follow_symlinks=False)
    except OSError as error:
        raise UsageError(f"{root} is gone: {error.strerror}") from None
    return status.st_dev, status.st_ino


def note_place(attempt: str, repository: str) -> None:
    """Write the source of the folder to NOTE, and sync it to disk. Raises GitFailure."""
    try:
        write_new(os.path.join(attempt, NOTE), json.dumps({"repository": repository}).encode())
        sync_path(attempt)
    except OSError as error:
        raise GitFailure(f"{attempt} cannot be written: {error.strerror}") from None


@contextmanager
def locked(lock: str) -> Iterator[None]:
    """Hold a lock on a file, which is made if it is missing. The kernel releases it whenever this process ends.

    Raises UsageError if the file cannot be made.
    """
    try:
        make_private(os.path.dirname(lock))
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"{lock} cannot be made: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


TRIES = 5
"""Maximum attempts to remove a folder. Processes left by a killed run may still write there for a moment."""
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
