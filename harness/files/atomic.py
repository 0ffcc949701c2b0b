"""Give a file in an open folder new bytes: all of them or none, durably.

The way is O_TMPFILE (open(2), Linux 3.11): a file without a name, filled, synced, and only then given one. A process that
is killed leaves no trace, but between linkat and rename, where a whole `.harness-*.tmp` may stay behind. Where the file
system has no nameless files, such a name is taken from the start.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Self

from harness.safe_files import NEW_FILE, check_size, sync_names, write_whole

_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
_OLD = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_ACCESS_LIST = "system.posix_acl_access"
_KEPT_ATTRIBUTES = ("user.", _ACCESS_LIST)
# File systems without nameless files, and old kernels, say one of these.
_NO_NAMELESS = frozenset((errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS))
# No /proc, or a file system without hard links.
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
    """A new file cannot have the old one's owner or access rights: others could do more with it, or less."""


class _NoNameToBeHad(Exception):
    """A nameless file cannot be made here, or cannot be given a name."""


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
            _take_over(folder, name, temporary.descriptor, present)
        os.fsync(temporary.descriptor)
        check()
        if present is None:
            temporary.become_new(name)
        else:
            temporary.become(name)


class _Named:
    """A new file in the folder, gone when the block is left before it became something."""

    def __init__(self, folder: int, mode: int) -> None:
        self.folder = folder
        self.name = ""
        self.descriptor = self.open(mode)

    def open(self, mode: int) -> int:
        """Return a descriptor of the new file, for writing."""
        self.name = _temporary_name()
        return os.open(self.name, NEW_FILE, mode, dir_fd=self.folder)

    def become_new(self, name: str) -> None:
        """Take `name`, which nothing must have. Raises FileExistsError."""
        try:
            os.link(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            # Without hard links: looked at a moment before, since rename(2) overwrites.
            if status_of(self.folder, name) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
            self.become(name)

    def become(self, name: str) -> None:
        """Take `name` from the file that has it."""
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
    """The same without a name until the end. Raises _NoNameToBeHad where that cannot be."""

    def open(self, mode: int) -> int:
        try:
            return os.open(".", _NAMELESS, mode, dir_fd=self.folder)
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                raise _NoNameToBeHad from None
            raise

    def become_new(self, name: str) -> None:
        # The folder is given twice: without src_dir_fd Python calls link(2), which does not follow the magic link.
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
    """Write `content` over the bytes `old` of the file itself, if it cannot be replaced by another.

    Not atomic: a concurrent reader may see a part of each, and a crash may leave that. The caller keeps `old`
    elsewhere before. Raises OSError when the old bytes were put back, and TornError when even that failed.
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
    """Give a file its old bytes again, of which the first `written` may be others now."""
    done, end = 0, min(written, len(old))
    try:
        while done < end:
            done += os.pwrite(descriptor, memoryview(old)[done:end], done)
        os.ftruncate(descriptor, len(old))
        os.fsync(descriptor)
    except OSError as error:
        raise TornError(error.strerror or str(error)) from error


def _take_over(folder: int, name: str, descriptor: int, present: os.stat_result) -> None:
    """Give the new file the old one's owner, access rights and attributes. Raises OSError or NotKeptError."""
    created = os.fstat(descriptor)
    has_list = _take_over_attributes(folder, name, descriptor)
    if (created.st_uid, created.st_gid) != (present.st_uid, present.st_gid):
        try:
            os.fchown(descriptor, present.st_uid, present.st_gid)
        except OSError as error:  # not ours to give, or an owner that has no number in a user namespace
            mode = present.st_mode
            alike = (mode >> 3) & 0o7 == mode & 0o7 and not has_list
            if created.st_uid != present.st_uid or not alike:
                raise NotKeptError(error.strerror or str(error)) from None
    # Last, since a change of owner clears bits; set-id bits are never given to content that a model wrote.
    os.fchmod(descriptor, present.st_mode & 0o777)


def _take_over_attributes(folder: int, name: str, descriptor: int) -> bool:
    """Copy the attributes; say whether an access list is among them. Raises NotKeptError if it cannot be copied."""
    # A folder's default list is given to every new file in it (acl(5)): what the old file lacks must go.
    try:
        os.removexattr(descriptor, _ACCESS_LIST)
    except OSError:
        pass  # there is none, mostly, or no such thing here
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
        return False  # a file system without them
    for attribute in names:
        if attribute.startswith(_KEPT_ATTRIBUTES):
            try:
                os.setxattr(new, attribute, os.getxattr(old, attribute))
            except OSError as error:
                if attribute == _ACCESS_LIST:
                    raise NotKeptError(error.strerror or str(error)) from None
                # else not ours to give
    return _ACCESS_LIST in names


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return the status of `name` in the open `folder`, without following a link; `None` if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
