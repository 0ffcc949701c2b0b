"""Put judged bytes in the place of a file: wholly or not at all, and only if the file is still what was judged."""

from __future__ import annotations

import hashlib
import os
import stat

from harness.actions import PathAccess
from harness.errors import ToolError
from harness.record import Record
from harness.tools.diffs import Diff, compare
from harness.tools.files import check_regular, check_unmoved, failure, is_binary, open_folder, read_in, shown, status_of
from harness.workspace import Workspace

_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")


class Change(Record):
    """A file as it was judged, and what is to be in its place."""

    path: PathAccess
    before_sha256: str | None
    """None: there was no file."""
    content: bytes
    after_sha256: str
    diff: Diff


class Unable(Record):
    """Why there is no change to make. It is told to the model only once the call was judged, like a change is made:
    it may say what the file holds."""

    reason: str


def change_to(path: PathAccess, old: bytes | None, content: bytes) -> Change:
    """Return the change of the file at `path`, which holds `old` (None: there is none), to `content`."""
    return Change(
        path=path,
        before_sha256=None if old is None else _sha256(old),
        content=content,
        after_sha256=_sha256(content),
        diff=compare(b"" if old is None or is_binary(old) else old, content),
    )


def apply(change: Change, workspace: Workspace) -> str:
    """Make the change durable and return what else there is to say about it, mostly nothing.

    The bytes go to a temporary file in the same folder, which then takes the place of the old one: at any moment there
    is the whole old file or the whole new one. Permission bits are kept (set-id bits are not), owner and extended
    attributes where possible; a new file gets 0666 less the umask, and the folders it needs.

    Raises ToolError if the path leads elsewhere or the file is no longer what was judged, and if it cannot be written;
    then nothing was changed.
    """
    path = change.path
    check_unmoved(workspace, path)
    folder_path, name = os.path.split(path.real)
    made: list[str] = []
    try:
        folder = open_folder(folder_path, made if change.before_sha256 is None else None)
        try:
            links = _replace(folder, name or ".", change)
        finally:
            os.close(folder)
    except OSError as error:
        _remove_folders(made)
        raise failure(error, path, "write") from None
    except BaseException:
        _remove_folders(made)
        raise
    return f"[note: the file had {links} hard links; only this path was changed]" if links > 1 else ""


def check_unchanged(change: Change) -> None:
    """Raise ToolError if the file is no longer what was judged. For a change that would write what is there already."""
    folder_path, name = os.path.split(change.path.real)
    try:
        folder = open_folder(folder_path)
        try:
            _check_content(folder, name or ".", change)
        finally:
            os.close(folder)
    except OSError as error:
        raise failure(error, change.path, "read") from None


def _replace(folder: int, name: str, change: Change) -> int:
    """Do it in an open folder; return how many names the old file had, 0 if there was none."""
    present = status_of(folder, name)
    if present is not None:
        check_regular(present, change.path)
        _check_writable(folder, name, present, change.path)
    temporary = f".harness-{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, _TEMPORARY, 0o666 if present is None else 0o600, dir_fd=folder)
    try:
        try:
            _fill(descriptor, change.content)
            if present is not None:
                _take_over(folder, name, descriptor, present)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _check_content(folder, name, change)
        _put(folder, temporary, name, change)
    except BaseException:
        _unlink(folder, temporary)
        raise
    _sync(folder)
    return 0 if present is None else present.st_nlink


def _check_writable(folder: int, name: str, present: os.stat_result, path: PathAccess) -> None:
    """Refuse what writing in place would refuse: a rename needs leave of the folder only, and root needs none."""
    mode = stat.S_IMODE(present.st_mode)
    if not mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
        raise ToolError(f"Permission denied: {shown(path)} is read-only (mode {mode:04o}); nothing was written.")


def _fill(descriptor: int, content: bytes) -> None:
    # A disk that fills up gives a short write and no error (write(2)): the size is counted and then looked at.
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    size = os.fstat(descriptor).st_size
    if size != len(content):
        raise OSError(0, f"{size:,} of {len(content):,} bytes were written")


def _take_over(folder: int, name: str, descriptor: int, present: os.stat_result) -> None:
    """Give the new file the old one's owner, attributes and permissions, as far as that is allowed."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (present.st_uid, present.st_gid):
        try:
            os.fchown(descriptor, present.st_uid, present.st_gid)
        except PermissionError:
            pass
    old = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        for attribute in os.listxattr(old):
            if attribute.startswith(_KEPT_ATTRIBUTES):
                os.setxattr(descriptor, attribute, os.getxattr(old, attribute))
    except OSError:
        pass  # a file system without them, or one that does not let us
    finally:
        os.close(old)
    # Last, since a change of owner clears bits; set-id bits are never given to content that a model wrote.
    os.fchmod(descriptor, present.st_mode & 0o777)


def _check_content(folder: int, name: str, change: Change) -> None:
    try:
        digest = _sha256(read_in(folder, name, change.path))
    except FileNotFoundError:
        digest = None
    if digest != change.before_sha256:
        raise ToolError(
            f"{shown(change.path)} changed on disk since it was judged; nothing was written. Read it again."
        )


def _put(folder: int, temporary: str, name: str, change: Change) -> None:
    """Give the temporary file its name. A file that came to be in the meantime is not overwritten by a new one."""
    if change.before_sha256 is None:
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise ToolError(f"{shown(change.path)} was made by someone else meanwhile; nothing was written.") from None
        except OSError:
            pass  # a file system without hard links: it was looked at a moment ago
        else:
            _unlink(folder, temporary)
            return
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass


def _sync(folder: int) -> None:
    """Make the new name durable, where the folder may be read and the file system can."""
    try:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.fsync(readable)
    except OSError:
        pass
    finally:
        os.close(readable)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _remove_folders(made: list[str]) -> None:
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            pass
