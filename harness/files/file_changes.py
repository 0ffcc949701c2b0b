"""Replacement of a file with judged bytes: completely or not at all, and only if the file is unchanged since then.

This module makes no decisions. The new content was computed and shown earlier; here only the file is checked again.
"""

from __future__ import annotations

import errno
import os

from harness.actions import Access, FileChange, PathAccess
from harness.digest import digest_of
from harness.errors import ErrorCode, ToolError
from harness.files import atomic
from harness.files.baselines import Baseline
from harness.files.before_images import BeforeImages
from harness.files.diffs import Diff, compare
from harness.files.encoding import readable
from harness.files.folders import open_folder
from harness.files.judged_files import Present, check_regular, check_unmoved, display_path, failure, read_in
from harness.files.workspace import Workspace
from harness.record import Record, replace
from harness.safe_files import is_locked_within

MAX_LOCK_SECONDS = 2.0
"""Seconds to wait for another program's lock of a folder before a write in it fails."""
_MAX_STALE_LINES = 40
"""Maximum number of diff lines shown for a file that changed after the model read it."""
_MAX_STALE_CHARACTERS = 2_500

_RENAME_CANNOT = frozenset((errno.EBUSY, errno.EXDEV))
"""Errors of rename(2) for a file that is a mount point."""


class Replacement(Record):
    """A file as it was judged, and its new content."""

    path: PathAccess
    before_sha256: str | None
    """Digest before the change. `None` if the file did not exist."""
    before_mode: int | None
    content: bytes
    after_sha256: str
    diff: Diff

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before_sha256 != self.after_sha256

    @property
    def by_digest(self) -> FileChange:
        """The digests for the log."""
        return FileChange(
            path=self.path.real,
            before_sha256=self.before_sha256,
            after_sha256=self.after_sha256,
            before_mode=self.before_mode,
        )


class Unable(Record):
    """Reason why a change cannot be made.

    The model reads it only after the call was permitted, because it may reveal content of the file.
    """

    reason: str
    code: ErrorCode | None
    shows: bytes | None = None
    """Content of the file, if `reason` shows every part of it that the model had not seen."""


def unable(error: ToolError) -> Unable:
    """Return the error as a reason to report later."""
    return Unable(reason=str(error), code=error.code)


def write_and_read(path: PathAccess, *, new: bool = False) -> tuple[PathAccess, PathAccess]:
    """Return the facets of every call that may write a file; `new` for a call that creates it.

    INVARIANT: the facets do not depend on the file's content. The result of such a call (a difference, a diagnosis, no
    change) reveals content, which a refusal to read the file must not do. So read access is always a facet.
    """
    return (path, replace(path, access=Access.READ, shared=False, new=new))


def change_to(path: PathAccess, old: Present | None, content: bytes, *, before: bytes, after: bytes) -> Replacement:
    """Return the change of the file at `path` from `old` (`None`: it does not exist) to `content`.

    `before` and `after` are the texts of both for the diff: UTF-8, or bytes that are shown as escapes.

    INVARIANT: `after` is the text from which `content` was made. If it were decoded from `content` again, an edit
    could change how the file is read (a NUL, or a byte-order mark that moves to its start) and hide what it adds.
    """
    return Replacement(
        path=path,
        before_sha256=None if old is None else digest_of(old.data),
        before_mode=None if old is None else old.mode,
        content=content,
        after_sha256=digest_of(content),
        diff=compare(before, after),
    )


def stale(path: PathAccess, baseline: Baseline, data: bytes) -> Unable | None:
    """Return the reason to read a file again before a change, or `None` if its content `data` matches the baseline."""
    if digest_of(data) == baseline.sha256:
        return None
    message = f"The file changed on disk after it was read: {display_path(path)}."
    if baseline.content is not None:
        diff = compare(readable(baseline.content), readable(data))
        lines = diff.text(_MAX_STALE_LINES)
        if diff.lines and diff.is_whole and len(diff.lines) <= _MAX_STALE_LINES and len(lines) <= _MAX_STALE_CHARACTERS:
            reason = f"{message} Nothing was written. What changed, whole; if the call is still right, send it again:\n{lines}"
            return Unable(reason=reason, code=ErrorCode.STALE, shows=data)
        message = f"{message} Nothing was written. Read it again. What changed begins:\n{lines[:_MAX_STALE_CHARACTERS]}"
        return Unable(reason=message, code=ErrorCode.STALE)
    return Unable(reason=f"{message} Nothing was written. Read it again.", code=ErrorCode.STALE)


def apply(change: Replacement, workspace: Workspace, images: BeforeImages | None) -> str:
    """Make the change durable and return a note about it, usually empty.

    The old bytes are first stored in `images` (if not `None`); if that fails, the file stays unchanged. The new bytes
    go to a temporary file in the same folder, which then replaces the old one. So at any moment either the complete
    old file or the complete new one exists. Owner, access rights and permission bits are kept (except set-id bits), and
    extended attributes where possible. A new file gets 0666 less the umask, and missing folders are created.

    A file that cannot be replaced (its folder is not writable, or it belongs to another user or group) is written in
    place, if its old bytes are stored.

    Raises ToolError if the path now leads elsewhere, the file changed after the call was judged, or it cannot be
    written; then the file is unchanged. Raises TornError if writing in place failed and the old bytes could not be
    restored.
    """
    check_unmoved(workspace, change.path)
    return put(change, images)


def put(change: Replacement, images: BeforeImages | None) -> str:
    """Make the change like `apply`, for a path that is already resolved. No link on the way is followed."""
    from harness.process.own_code import own_code  # with the first write

    path = change.path
    own_code().note_before((path.real,))
    folder_path, name = os.path.split(path.real)
    new_folders: list[str] = []
    try:
        folder = open_folder(folder_path, new_folders if change.before_sha256 is None else None)
        lock = -1
        try:
            lock = _lock_of(folder, path)
            return _replace(folder, name or ".", change, images)
        finally:
            os.close(folder)
            if lock >= 0:
                os.close(lock)
    except FileNotFoundError:
        _remove_folders(new_folders)
        raise _changed(path) from None
    except OSError as error:
        _remove_folders(new_folders)
        raise failure(error, path, "write") from None
    except BaseException:
        _remove_folders(new_folders)
        raise


def check_unchanged(change: Replacement) -> None:
    """Raise ToolError if the file changed after the call was judged. For a change that writes the same content."""
    folder_path, name = os.path.split(change.path.real)
    try:
        folder = open_folder(folder_path)
        try:
            _judged_content(folder, name or ".", change)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise _changed(change.path) from None
    except OSError as error:
        raise failure(error, change.path, "read") from None


def _replace(folder: int, name: str, change: Replacement, images: BeforeImages | None) -> str:
    """Make the change in an open folder. Return a note, usually empty."""
    present = atomic.status_of(folder, name)
    if present is None:
        _judged_content(folder, name, change)
        try:
            atomic.replace(folder, name, change.content, present=None)
        except FileExistsError:
            raise _changed(change.path) from None
        return ""
    check_regular(present, change.path)
    _check_writable(folder, name, present, change.path)
    old = _judged_content(folder, name, change)
    is_saved = _keep(old, change.path, images)
    if not _may_replace(folder, present):
        return _in_place(folder, name, old, change, is_saved=is_saved)

    def still_the_same() -> None:
        try:
            same = read_in(folder, name, change.path) == old
        except FileNotFoundError:
            same = False
        if not same:
            raise _changed(change.path)

    try:
        atomic.replace(folder, name, change.content, present=present, check=still_the_same)
    except atomic.NotKeptError:
        return _in_place(folder, name, old, change, is_saved=is_saved)
    except OSError as error:
        if error.errno not in _RENAME_CANNOT:
            raise
        return _in_place(folder, name, old, change, is_saved=is_saved)
    links = present.st_nlink
    return f"[note: the file had {links} hard links; only this path was changed]" if links > 1 else ""


def _check_writable(folder: int, name: str, present: os.stat_result, path: PathAccess) -> None:
    """Raise ToolError if the file is read-only.

    Only writing in place would fail: a rename needs permission for the folder only, and root needs none.
    """
    mode = present.st_mode & 0o7777
    if not mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
        text = f"Permission denied: {display_path(path)} is read-only (mode {mode:04o}). The file was not changed."
        raise ToolError(text, code=ErrorCode.ACCESS)


def _judged_content(folder: int, name: str, change: Replacement) -> bytes:
    """Return the present content of the file (empty if it does not exist).

    Raises ToolError if it differs from the content that was judged.
    """
    try:
        data = read_in(folder, name, change.path)
    except FileNotFoundError:
        data = None
    if (None if data is None else digest_of(data)) != change.before_sha256:
        raise _changed(change.path)
    return data or b""


def _changed(path: PathAccess) -> ToolError:
    text = f"{display_path(path)} changed on disk after the call was checked. Nothing was written. Read it again."
    return ToolError(text, code=ErrorCode.STALE)


def _keep(old: bytes, path: PathAccess, images: BeforeImages | None) -> bool:
    """Store the old bytes in `images`. Return whether there is a store. Raises ToolError if storing fails."""
    if images is None:
        return False
    try:
        images.keep(old)
    except OSError as error:
        reason = error.strerror or error
        text = (
            f"The old content of {display_path(path)} could not be saved for undo ({reason}). The file was not changed."
        )
        raise ToolError(text, code=ErrorCode.IO) from None
    return True


def _may_replace(folder: int, present: os.stat_result) -> bool:
    """Return whether this user may replace the file by a new one in this folder with the same owner."""
    user = os.geteuid()
    if user not in (0, present.st_uid):
        return False
    return os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True)


def _in_place(folder: int, name: str, old: bytes, change: Replacement, *, is_saved: bool) -> str:
    if not is_saved:
        text = f"Permission denied: {display_path(change.path)} can only be written in place, and its old content is not kept."
        raise ToolError(text, code=ErrorCode.ACCESS)
    _judged_content(folder, name, change)
    try:
        atomic.overwrite(folder, name, old, change.content)
    except atomic.TornError as error:
        # Not a ToolError, which would mean that the file is unchanged.
        message = f"{display_path(change.path)} was written in part, and what it held could not be put back ({error})"
        raise atomic.TornError(f"{message}. That is kept: `harness undo` names the file in which.") from None
    return "[note: the file could not be replaced and was written in place]"


def _lock_of(folder: int, path: PathAccess) -> int:
    """Return a descriptor that holds the folder's lock (flock(2), advisory) until it is closed, or -1 without a lock.

    The lock makes two sessions write one file in turn. An unreadable folder has no lock, nor has a file system without
    locks. Raises ToolError if another program holds the lock longer than MAX_LOCK_SECONDS.
    """
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return -1
    try:
        _lock(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, path: PathAccess) -> None:
    try:
        is_locked = is_locked_within(descriptor, MAX_LOCK_SECONDS)
    except OSError:
        return
    if not is_locked:
        text = f"Another program holds the lock of the folder of {display_path(path)}. The file was not changed. Try again."
        raise ToolError(text, code=ErrorCode.IO)


def _remove_folders(folders: list[str]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass
