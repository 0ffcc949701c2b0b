"""Replace the content of a file in an open folder: atomically and durably.

The new content is written to a file without a name (O_TMPFILE: open(2), Linux 3.11) and synced; only then the file
gets a name. A killed process leaves no file behind, except between linkat and rename: then a complete
`.harness-*.tmp` may remain. On a file system without nameless files, the new file has such a name from the start.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Self

from harness.safe_files import NEW_FILE, check_size, sync_names, write_whole
from harness.system import ATTRIBUTES, O_TMPFILE

_NAMELESS = None if O_TMPFILE is None else os.O_WRONLY | O_TMPFILE | os.O_CLOEXEC
_OLD = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_ACCESS_LIST = "system.posix_acl_access"
_KEPT_ATTRIBUTES = ("user.", _ACCESS_LIST)
# The errors of file systems and old kernels without nameless files.
_NO_NAMELESS = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS))
# The errors without /proc, and of file systems without hard links.
_NO_LINK = frozenset((errno.ENOENT, errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EACCES))


def replace(
    folder: int,
    name: str,
    content: bytes,
    *,
    present: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Replace `name` in `folder` (a descriptor, O_PATH suffices) with a new file of `content`.

    `present` is the status of the existing file: the new file gets its owner, access list and permission bits, and
    its attributes as far as that is allowed, but not its set-id and sticky bits. If it is `None`, no file may exist,
    and the new file gets 0666 less the umask. `check` is called right before the new file takes the name, and may
    raise.

    Raises OSError (FileExistsError for an unexpected file), NotKeptError, and the errors of `check`: then the folder
    is unchanged.
    """
    try:
        _replace(folder, name, content, present, check, has_name=False)
    except _NoNameToBeHad:
        _replace(folder, name, content, present, check, has_name=True)
    sync_names(folder)


class NotKeptError(Exception):
    """A new file cannot get the owner or access rights of the old one, so other users' access would change."""


class _NoNameToBeHad(Exception):
    """This file system cannot create a nameless file, or cannot give it a name."""


def _replace(
    folder: int,
    name: str,
    content: bytes,
    present: os.stat_result | None,
    check: Callable[[], None],
    *,
    has_name: bool,
) -> None:
    first_mode = 0o666 if present is None else 0o600
    with (_Named if has_name else _Nameless)(folder, first_mode) as temporary:
        write_whole(temporary.descriptor, content)
        check_size(temporary.descriptor, len(content), name)
        if present is not None:
            take_over(folder, name, temporary.descriptor, present)
        os.fsync(temporary.descriptor)
        check()
        if present is None:
            temporary.become_new(name)
        else:
            temporary.become(name)


class _Named:
    """A new temporary file in the folder. Removed at the end of the `with` block unless it replaced a file."""

    def __init__(self, folder: int, mode: int) -> None:
        self.folder = folder
        self.name = ""
        self.descriptor = self.open(mode)

    def open(self, mode: int) -> int:
        """Return a descriptor of the new file, for writing."""
        self.name = _temporary_name()
        return os.open(self.name, NEW_FILE, mode, dir_fd=self.folder)

    def become_new(self, name: str) -> None:
        """Give the new file `name`. Raises FileExistsError if a file has that name."""
        try:
            os.link(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            # Without hard links: check right before rename(2), because it overwrites.
            if status_of(self.folder, name) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
            self.become(name)

    def become(self, name: str) -> None:
        """Replace the file that has `name`."""
        os.replace(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        self.name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
        if self.name:
            try:
                os.unlink(self.name, dir_fd=self.folder)
            except OSError:
                pass


class _Nameless(_Named):
    """A new file without a name until the end. Raises _NoNameToBeHad if that is impossible here."""

    def open(self, mode: int) -> int:
        if _NAMELESS is None:
            raise _NoNameToBeHad
        try:
            return os.open(".", _NAMELESS, mode, dir_fd=self.folder)
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                raise _NoNameToBeHad from None
            raise

    def become_new(self, name: str) -> None:
        # `folder` is passed twice: without src_dir_fd Python calls link(2), which does not follow the magic link.
        source = f"/proc/self/fd/{self.descriptor}"
        try:
            os.link(source, name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno in _NO_LINK:
                raise _NoNameToBeHad from None
            raise

    def become(self, name: str) -> None:
        temporary = _temporary_name()
        self.become_new(temporary)
        self.name = temporary
        super().become(name)


def _temporary_name() -> str:
    return f".harness-{os.urandom(6).hex()}.tmp"


class TornError(Exception):
    """A file was written in part, and its old bytes could not be put back."""


def overwrite(folder: int, name: str, old: bytes, content: bytes) -> None:
    """Overwrite the bytes `old` of a file in place with `content`. For a file that cannot be replaced.

    Not atomic: a concurrent reader may see a mix of both, and a crash may leave one. The caller saves `old` elsewhere
    first. If writing fails, `old` is restored: raises OSError if that succeeds, and TornError if it fails.
    """
    descriptor = os.open(name, os.O_WRONLY | _OLD, dir_fd=folder)
    done = 0
    try:
        while done < len(content):
            done += os.pwrite(descriptor, memoryview(content)[done:], done)
        os.ftruncate(descriptor, len(content))
        os.fsync(descriptor)
    except BaseException:
        _put_back(descriptor, old, done)
        raise
    finally:
        os.close(descriptor)


def _put_back(descriptor: int, old: bytes, written: int) -> None:
    """Restore the old bytes of a file, of which at most the first `written` were overwritten."""
    done, end = 0, min(written, len(old))
    try:
        while done < end:
            done += os.pwrite(descriptor, memoryview(old)[done:end], done)
        os.ftruncate(descriptor, len(old))
        os.fsync(descriptor)
    except OSError as error:
        raise TornError(error.strerror or str(error)) from error


def take_over(folder: int, name: str, descriptor: int, present: os.stat_result) -> None:
    """Give the new file the old one's owner, access rights and attributes. Raises OSError or NotKeptError."""
    created = os.fstat(descriptor)
    has_list = _take_over_attributes(folder, name, descriptor)
    if (created.st_uid, created.st_gid) != (present.st_uid, present.st_gid):
        try:
            os.fchown(descriptor, present.st_uid, present.st_gid)
        except OSError as error:  # no permission, or an owner without a number in this user namespace
            mode = present.st_mode
            alike = (mode >> 3) & 0o7 == mode & 0o7 and not has_list
            if created.st_uid != present.st_uid or not alike:
                raise NotKeptError(error.strerror or str(error)) from None
    # Last, because a change of owner clears bits. Content that a model wrote never gets set-id bits.
    os.fchmod(descriptor, present.st_mode & 0o777)


def _take_over_attributes(folder: int, name: str, descriptor: int) -> bool:
    """Copy the attributes. Return whether an access list is among them. Raises NotKeptError if it cannot be copied."""
    if not ATTRIBUTES:
        return False
    # Every new file gets its folder's default list (acl(5)). Remove that one: the old file may have none.
    try:
        os.removexattr(descriptor, _ACCESS_LIST)
    except OSError:
        pass  # usually there is none; some file systems have no access lists
    try:
        old = os.open(name, os.O_RDONLY | _OLD, dir_fd=folder)
    except OSError:
        return False
    try:
        return _copy_attributes(old, descriptor)
    finally:
        os.close(old)


def _copy_attributes(old: int, new: int) -> bool:
    try:
        names = os.listxattr(old)
    except OSError:
        return False  # a file system without attributes
    for attribute in names:
        if attribute.startswith(_KEPT_ATTRIBUTES):
            try:
                os.setxattr(new, attribute, os.getxattr(old, attribute))
            except OSError as error:
                if attribute == _ACCESS_LIST:
                    raise NotKeptError(error.strerror or str(error)) from None
                # other attributes: no permission to set them
    return _ACCESS_LIST in names


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return the status of `name` in the open `folder`, without following a link; `None` if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
