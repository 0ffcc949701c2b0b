"""Replacement of a file with judged bytes: wholly or not at all, and only if the file is still what was judged.

It decides nothing: the new content was made and shown before, and is only checked for changes since.
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
"""Maximum number of lines shown of the difference to a file that changed since it was read."""
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
    """Reason why a change cannot be made. The model reads it only once the call was judged, like a change: it may
    reveal content of the file.
    """

    reason: str
    code: ErrorCode | None
    shows: bytes | None = None
    """Content of the file, if `reason` shows all of it that the model had not seen."""


def unable(error: ToolError) -> Unable:
    """Return the error as a reason to report later."""
    return Unable(reason=str(error), code=error.code)


def write_and_read(path: PathAccess, *, new: bool = False) -> tuple[PathAccess, PathAccess]:
    """Return the facets of every call that may write a file; `new` for a call that creates it.

    INVARIANT: they do not depend on the file's content. The result of such a call (a difference, a diagnosis, no
    change) reveals content, and a refusal to read a file must not.
    """
    return (path, replace(path, access=Access.READ, shared=False, new=new))


def change_to(path: PathAccess, old: Present | None, content: bytes, *, before: bytes, after: bytes) -> Replacement:
    """Return the change of the file at `path`, which is `old` (None: there is none), to `content`.

    `before` and `after` are the two as text (UTF-8, or bytes that are shown as escapes), which are compared.

    INVARIANT: `after` is what `content` was made of. Were it read out of `content` again, an edit could make the file
    look like something else (a NUL or a byte-order mark that moves to its start), and what it adds would not be shown.
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
    """Return the reason why the model must read a file of content `data` again before a change; `None` if it need
    not.
    """
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

    The old bytes are stored in `images` first, if there are any; if that fails nothing is changed. The new ones go to
    a temporary file in the same folder, which then replaces the old one: at any moment the whole old file or the
    whole new one exists. Owner, access rights and permission bits are kept (set-id bits are not), extended attributes
    where possible; a new file gets 0666 less the umask, and the folders it needs. A file that cannot be replaced (its
    folder is not writable, its owner or its group is another's) is written in place, if its old bytes are stored.

    Raises ToolError if the path leads elsewhere or the file is no longer what was judged, and if it cannot be
    written; then nothing was changed. Raises TornError if writing in place failed and the old bytes could not be put
    back.
    """
    check_unmoved(workspace, change.path)
    return put(change, images)


def put(change: Replacement, images: BeforeImages | None) -> str:
    """Do the same for a path that is known to be resolved: no link is followed on the way."""
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
    """Raise ToolError if the file is no longer what was judged. For a change that would write the same content."""
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
    """Do it in an open folder; return a note, mostly nothing."""
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
    """Refuse what writing in place would refuse: a rename needs leave of the folder only, and root needs none."""
    mode = present.st_mode & 0o7777
    if not mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
        text = f"Permission denied: {display_path(path)} is read-only (mode {mode:04o}); nothing was written."
        raise ToolError(text, code=ErrorCode.ACCESS)


def _judged_content(folder: int, name: str, change: Replacement) -> bytes:
    """Return the present content of the file (empty if it does not exist). Raises ToolError if it differs from the
    judged one.
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
    """Keep the old bytes; say whether there is anywhere to keep them. Raises ToolError if that fails."""
    if images is None:
        return False
    try:
        images.keep(old)
    except OSError as error:
        reason = error.strerror or error
        text = f"The old content of {display_path(path)} could not be kept for undo ({reason}); nothing was written."
        raise ToolError(text, code=ErrorCode.IO) from None
    return True


def _may_replace(folder: int, present: os.stat_result) -> bool:
    """Say whether another file may take the place of this one and be what it was: in this folder, with this owner."""
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
        # No ToolError: that would say that nothing was changed.
        message = f"{display_path(change.path)} was written in part, and what it held could not be put back ({error})"
        raise atomic.TornError(f"{message}. That is kept: `harness undo` names the file in which.") from None
    return "[note: the file could not be replaced and was written in place]"


def _lock_of(folder: int, path: PathAccess) -> int:
    """Return a descriptor that holds the folder's lock (flock(2), advisory) until it is closed; -1 where there is none.

    Two sessions that write one file do it one after the other. A folder that may not be read, and a file system without
    locks, have none. Raises ToolError if it is never free.
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
        text = f"Another program holds the lock of the folder of {display_path(path)}; nothing was written. Try again."
        raise ToolError(text, code=ErrorCode.IO)


def _remove_folders(folders: list[str]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass
