"""Looks at a tree of files by their status: the table of a tree (`TreeTable`), and the differences from one look to the next.

Folders are walked by descriptors, so that no link is followed. A folder with an unchanged stamp is not listed again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from harness.files.git_index import GitIndex
from harness.files.left_out import MAX_DEPTH, has_more_names, why_left_out
from harness.files.tree_changes import WORKSPACE, LeftOut
from harness.record import Record
from harness.system import O_TMPFILE

MAX_FILES = 300_000
"""Maximum number of files and folders of a tree that is looked at."""
_UNSURE_NS = 20_000_000
"""Age of a stamp, in nanoseconds, up to which a later change may give the same stamp: two ticks of an old kernel."""
_UNSURE_COARSE_NS = 2_000_000_000
"""The same for file systems that store seconds."""
_READS_BEFORE_COUNT = 1_000
"""Number of contents that are read before the files of a tree are counted, since it may have too many."""
_READS_BEFORE_INDEX = 200
"""Number of changed files that are read before the index of git is read again."""
_MAX_ATTRIBUTES_BYTES = 1_000_000
"""Maximum size of a file of attributes, in bytes. A larger one may convert all files."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CLOSED = "cannot be listed"

Stamp: TypeAlias = tuple[int, int, int, int]
"""Change time in nanoseconds, inode, size and mode of a file or a folder."""


class Unkept(Record):
    """A content that is not kept."""

    reason: str
    is_outside: bool = False
    """Whether the path counts as left out: a large or special file."""
    sha256: str | None = None
    keyed_digest: str | None = None
    """HMAC of the content of a file that a rule denies to read."""


class LinkText(NamedTuple):
    """The text of a link."""

    text: str


Content: TypeAlias = bytes | str | LinkText | Unkept
"""Content of a file: an object id of git, the SHA-256 (hex) of a kept content, a link, or a content that is not kept."""


class PathLook(NamedTuple):
    """A path at one look."""

    stamp: Stamp
    content: Content | None
    """`None` for a folder."""


Difference: TypeAlias = tuple[PathLook | None, PathLook | None]
"""A path before and after. `None` if it did not exist."""
Place: TypeAlias = tuple[GitIndex, int]
"""The index that applies to a folder, and the length of the prefix that its names do not have."""


class TreeLook(NamedTuple):
    """The differences between a look and the one before it."""

    differences: Mapping[str, Difference]
    left_out: Mapping[str, LeftOut]
    """Paths that are not watched, and appeared, changed or disappeared."""
    began_ns: int
    ended_ns: int


class LookError(Exception):
    """Raised if a tree cannot be looked at. The text is the reason."""


class TooManyFilesError(LookError):
    """Raised if a tree has too many files. Another look would find as many."""


class Keeps(Protocol):
    """Keeps the contents of files during a look."""

    def content_of(self, folder: int, path: str, status: os.stat_result) -> tuple[Content, os.stat_result]:
        """Return the content of a file in the open `folder`, and its status when it was read.

        `path` is relative to the tree. Raises FileNotFoundError if the file disappeared.
        """
        ...

    def index_at(self, prefix: str) -> GitIndex | None:
        """Return the index of the repository at a folder, or around the top of the tree. `None` if there is none."""
        ...


class _Folder:
    """A folder at the last look."""

    __slots__ = ("contents", "files", "folders", "is_sure", "left_out", "names_stamp", "stamp", "unsure")

    def __init__(self, status: os.stat_result) -> None:
        self.stamp = _stamp(status)
        self.names_stamp: tuple[int, int, int] | None = None
        """Inode and times at the last listing. `None` before the first."""
        self.is_sure = False
        """Whether an equal stamp means equal names."""
        self.files: dict[str, Stamp] = {}
        self.contents: dict[str, Content] = {}
        self.unsure: set[str] = set()
        """Files whose stamp is so young that an equal stamp does not mean an equal content."""
        self.folders: dict[str, _Folder] = {}
        self.left_out: dict[str, Stamp] = {}


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_ctime_ns, status.st_ino, status.st_size, status.st_mode)


class TreeTable:
    """The table of a tree: all its files and folders, as the last look saw them."""

    def __init__(self, root: str, keeps: Keeps, *, max_files: int = MAX_FILES) -> None:
        """Use the absolute, resolved folder `root`."""
        self.root = root
        self._keeps = keeps
        self._max_files = max_files
        self._top: _Folder | None = None
        self._count = 0
        self.left_out: dict[str, LeftOut] = {}
        """Paths that are not watched, by path."""
        self._indexes: dict[str, GitIndex | None] = {}
        self._is_first = self._uses_git = self._is_blind = self._is_counted = False
        self._reads = self._contents_read = 0
        self._device = 0
        self._sure_before = self._coarse_before = 0
        self._differences: dict[str, Difference] = {}
        self._left_out_changes: dict[str, LeftOut] = {}

    @property
    def object_folders(self) -> tuple[str, ...]:
        """The folders with the objects of the repositories in the tree."""
        return tuple({index.objects: None for index in self._indexes.values() if index is not None and index.objects})

    @property
    def repositories(self) -> tuple[str, ...]:
        """The absolute folders of the repositories in the tree, below its root."""
        return tuple(
            f"{self.root}/{prefix[:-1]}" for prefix, index in self._indexes.items() if prefix and index is not None
        )

    def look(self, *, uses_git: bool) -> TreeLook:
        """Look at the tree, and return the differences from the last look. The first look has no differences.

        With `uses_git`, contents that git holds are not read. Raises LookError. Then the table is empty, and the next
        look is the first again.
        """
        began = time.time_ns()
        self._is_first, self._uses_git, self._reads = self._top is None, uses_git, 0
        self._differences, self._left_out_changes = {}, {}
        try:
            descriptor = os.open(self.root, _OPEN)
            try:
                self._measure_clock(descriptor)
                status = os.fstat(descriptor)
                self._device = status.st_dev
                if self._top is None:
                    self._top = _Folder(status)
                else:
                    self._see_mode(self._top, WORKSPACE, status)
                try:
                    self._look_into(self._top, descriptor, "", None, 0)
                except _UncountedError:
                    self.forget()
                    self._top = _Folder(status)
                    self._count_files(self._top, descriptor)
                    self._look_into(self._top, descriptor, "", None, 0)
            finally:
                os.close(descriptor)
        except (OSError, _ClosedError) as error:
            self.forget()
            raise LookError(str(getattr(error, "strerror", None) or error)) from error
        except BaseException:
            self.forget()
            raise
        for index in self._indexes.values():
            if index is not None:
                index.release()
        left_out = {} if self._is_first else self._left_out_changes
        return TreeLook(self._differences, left_out, began, time.time_ns())

    def _count_files(self, top: _Folder, descriptor: int) -> None:
        """Look at the whole tree without reading a content if it may have too many files. Raises TooManyFilesError."""
        self._is_counted = True
        self._is_blind = has_more_names(self.root, self._max_files)
        if self._is_blind:
            self._look_into(top, descriptor, "", None, 0)
            self._is_blind = False

    def forget(self) -> None:
        """Empty the table."""
        self._top, self._count, self.left_out, self._indexes = None, 0, {}, {}
        self._is_blind = self._is_counted = False

    def contents(self) -> Iterator[tuple[str, Content]]:
        """Yield path and content of each file and link in the table."""
        waiting = [("", self._top)] if self._top is not None else []
        while waiting:
            prefix, folder = waiting.pop()
            yield from ((prefix + name, content) for name, content in folder.contents.items())
            waiting += [(f"{prefix}{name}/", inner) for name, inner in folder.folders.items()]

    def distrust(self, paths: Collection[str]) -> None:
        """Have the next look read the files at `paths` again."""
        for path in paths:
            *parts, name = path.split("/")
            folder = self._top
            for part in parts:
                folder = folder.folders.get(part) if folder is not None else None
            if folder is not None and name in folder.files:
                folder.unsure.add(name)

    def _measure_clock(self, descriptor: int) -> None:
        """Set the times before which a stamp is sure, by the clock of the file system.

        Its clock is read from a new file without a name. If there is none, the clock of this machine is used.
        """
        try:
            if O_TMPFILE is None:
                raise FileNotFoundError
            created = os.open(".", O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=descriptor)
        except OSError:
            now = time.time_ns()
        else:
            now = os.fstat(created).st_ctime_ns
            os.close(created)
        self._sure_before, self._coarse_before = now - _UNSURE_NS, now - _UNSURE_COARSE_NS

    def _is_sure(self, nanoseconds: int) -> bool:
        """Return whether a change after this look gives another change time than this one."""
        return nanoseconds < (self._sure_before if nanoseconds % 1_000_000_000 else self._coarse_before)

    # Folders

    def _look_into(
        self,
        folder: _Folder,
        descriptor: int,
        prefix: str,
        place: Place | None,
        depth: int,
        *,
        is_measured: bool = False,
    ) -> None:
        """Look at a folder and at everything below it.

        `is_measured`: it is a new untracked folder of a size that is watched. Raises OSError, LookError, _ClosedError.
        """
        status = os.fstat(descriptor)
        if status.st_dev != self._device:  # something was mounted there
            raise _ClosedError
        names_stamp = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        names: set[str] = set()
        try:
            if folder.is_sure and folder.names_stamp == names_stamp:
                place = self._place_at(prefix, place)
                self._look_at_files(folder, descriptor, prefix, place)
            else:
                files, names, has_git = _list(descriptor)
                self._drop_missing(folder, prefix, files, names)
                place = self._place_at(prefix, place, is_new=has_git or not prefix)
                if place is not None and ".gitattributes" in files:
                    place[0].add_attributes(prefix[place[1] :], _small(descriptor, ".gitattributes"))
                for name, file_status in files.items():
                    self._see(folder, descriptor, prefix + name, file_status, place)
                folder.names_stamp = names_stamp
                folder.is_sure = self._is_sure(max(names_stamp[1:]))
        except PermissionError as error:
            raise _ClosedError(error.strerror) from error
        for name in {*folder.folders, *folder.left_out, *names}:
            self._enter(folder, descriptor, prefix + name, place, depth + 1, is_measured=is_measured)

    def _place_at(self, prefix: str, place: Place | None, *, is_new: bool = False) -> Place | None:
        """Return the index that applies in a folder: its own, or that of the folder above it (`place`)."""
        if is_new and prefix not in self._indexes:
            self._indexes[prefix] = self._keeps.index_at(prefix)
        index = self._indexes.get(prefix)
        return place if index is None else (index, len(prefix))

    def _enter(
        self, parent: _Folder, descriptor: int, path: str, place: Place | None, depth: int, *, is_measured: bool
    ) -> None:
        """Look at a folder in an open folder. Raises OSError and LookError."""
        name = path.rpartition("/")[2]
        folder = parent.folders.get(name)
        try:
            opened = os.open(name, _OPEN, dir_fd=descriptor)
        except PermissionError:
            self._close(parent, descriptor, path)
            return
        except (FileNotFoundError, NotADirectoryError):  # it was removed or replaced just now
            self._drop_folder(parent, path)
            return
        try:
            status = os.fstat(opened)
            if folder is None:
                reason, is_measured = self._examined(opened, path, status, place, depth, is_measured=is_measured)
                if reason:
                    self._leave_out(parent, path, reason, status)
                    return
                folder = parent.folders[name] = _Folder(status)
                self._add(1)
                self._differ(path, None, PathLook(folder.stamp, None))
            else:
                self._see_mode(folder, path, status)
            self._look_into(folder, opened, f"{path}/", place, depth, is_measured=is_measured)
            if self.left_out.pop(path, None) is not None:
                self._left_out_changes[path] = LeftOut(path=path, reason=_CLOSED, is_changed=True)
        except _ClosedError:
            self._close(parent, descriptor, path)
        finally:
            os.close(opened)

    def _see_mode(self, folder: _Folder, path: str, status: os.stat_result) -> None:
        """Note the permission bits of a folder that was seen before."""
        if folder.stamp[3] != status.st_mode:
            stamp, folder.stamp = folder.stamp, _stamp(status)
            self._differ(path, PathLook(stamp, None), PathLook(folder.stamp, None))

    def _examined(
        self, opened: int, path: str, status: os.stat_result, place: Place | None, depth: int, *, is_measured: bool
    ) -> tuple[str, bool]:
        """Return the reason to leave out a new folder, or an empty string, and whether it is untracked and measured."""
        if status.st_dev != self._device:
            return "another file system", False
        if depth > MAX_DEPTH:
            return "too deep", False
        if path in self.left_out:
            return self.left_out[path].reason, False
        index, name = (place[0], path[place[1] :]) if place is not None else (None, path)
        if index is not None and index.has_files_below(name):
            return "", False
        return why_left_out(opened, name, index, is_measured=is_measured), index is not None

    def _leave_out(self, parent: _Folder, path: str, reason: str, status: os.stat_result) -> None:
        """Note a folder that is left out, and whether it changed."""
        name, stamp = path.rpartition("/")[2], _stamp(status)
        if parent.left_out.get(name) != stamp:
            self._left_out_changes[path] = LeftOut(path=path, reason=reason, is_changed=True)
        parent.left_out[name] = stamp
        self.left_out[path] = LeftOut(path=path, reason=reason)

    def _close(self, parent: _Folder, descriptor: int, path: str) -> None:
        """Note a folder that cannot be listed. A folder that could be listed before keeps its table."""
        name = path.rpartition("/")[2]
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:
            return
        folder = parent.folders.get(name)
        if folder is None:
            self._leave_out(parent, path, _CLOSED, status)
            return
        self._see_mode(folder, path, status)
        if path not in self.left_out:
            self.left_out[path] = LeftOut(path=path, reason=_CLOSED)
            self._left_out_changes[path] = LeftOut(path=path, reason=_CLOSED, is_changed=True)
        folder.is_sure = False

    def _drop_missing(self, folder: _Folder, prefix: str, files: Collection[str], names: set[str]) -> None:
        for name in folder.files.keys() - files:
            self._drop_file(folder, prefix + name)
        for name in (folder.folders.keys() | folder.left_out.keys()) - names:
            self._drop_folder(folder, prefix + name)

    def _drop_folder(self, parent: _Folder, path: str) -> None:
        """Note the removal of a folder and of everything below it."""
        name = path.rpartition("/")[2]
        place = self.left_out.pop(path, None)
        if place is not None:
            self._left_out_changes[path] = LeftOut(path=path, reason=place.reason, is_changed=True, is_removed=True)
        parent.left_out.pop(name, None)
        folder = parent.folders.pop(name, None)
        if folder is None:
            return
        for inner in tuple(folder.files):
            self._drop_file(folder, f"{path}/{inner}")
        for inner in (*folder.folders, *folder.left_out):
            self._drop_folder(folder, f"{path}/{inner}")
        self._indexes.pop(f"{path}/", None)
        self._add(-1)
        self._differ(path, PathLook(folder.stamp, None), None)

    # Files

    def _look_at_files(self, folder: _Folder, descriptor: int, prefix: str, place: Place | None) -> None:
        """Look at the files of a folder with unchanged names."""
        changed: dict[str, os.stat_result | None] = dict.fromkeys(folder.unsure)
        stat_of = os.stat
        for name, stamp in folder.files.items():
            try:
                status = stat_of(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                changed[name] = None
                continue
            if (
                status.st_ctime_ns != stamp[0]
                or status.st_ino != stamp[1]
                or status.st_size != stamp[2]
                or name in changed
            ):
                changed[name] = status
        for name, file_status in changed.items():
            if file_status is None or stat.S_ISDIR(file_status.st_mode):
                self._drop_file(folder, prefix + name)
            else:
                self._see(folder, descriptor, prefix + name, file_status, place)

    def _see(self, folder: _Folder, descriptor: int, path: str, status: os.stat_result, place: Place | None) -> None:
        """Note a file, and keep its content if it is new or changed."""
        name = path.rpartition("/")[2]
        stamp, after = folder.files.get(name), _stamp(status)
        if stamp == after and name not in folder.unsure:
            return
        before = None if stamp is None else PathLook(stamp, folder.contents[name])
        content: Content | None = _UNREAD if self._is_blind else self._id_in_git(path, status, place)
        if content is None:
            try:
                content, status = self._content_of(descriptor, path, status)
            except FileNotFoundError:
                self._drop_file(folder, path)
                return
            after = _stamp(status)
        if before is None:
            self._add(1)
        folder.files[name], folder.contents[name] = after, content
        if self._is_blind or not self._is_sure(after[0]):
            folder.unsure.add(name)
        elif folder.unsure:
            folder.unsure.discard(name)
        if not self._is_first and before != (after, content):
            self._differ(path, before, PathLook(after, content))
        if self.left_out:
            self.left_out.pop(path, None)
        if isinstance(content, Unkept) and content.is_outside:
            self.left_out[path] = LeftOut(path=path, reason=content.reason, size=status.st_size)

    def _content_of(self, descriptor: int, path: str, status: os.stat_result) -> tuple[Content, os.stat_result]:
        if self._is_first and not self._is_counted:
            self._contents_read += 1
            if self._contents_read > _READS_BEFORE_COUNT:
                raise _UncountedError
        return self._keeps.content_of(descriptor, path, status)

    def _id_in_git(self, path: str, status: os.stat_result, place: Place | None) -> bytes | None:
        """Return the object id of a content that git holds. `None` if the content must be read."""
        if not self._uses_git or place is None:
            return None
        self._reads += 1
        if self._reads == _READS_BEFORE_INDEX:
            for index in self._indexes.values():
                if index is not None:
                    index.refresh()
        if not self._is_sure(status.st_ctime_ns):
            return None
        return place[0].id_of(path[place[1] :], status)

    def _drop_file(self, folder: _Folder, path: str) -> None:
        name = path.rpartition("/")[2]
        stamp = folder.files.pop(name, None)
        if stamp is None:
            return
        content = folder.contents.pop(name)
        folder.unsure.discard(name)
        self.left_out.pop(path, None)
        self._add(-1)
        self._differ(path, PathLook(stamp, content), None)

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > self._max_files:
            raise TooManyFilesError(f"more than {self._max_files:,} files")

    def _differ(self, path: str, before: PathLook | None, after: PathLook | None) -> None:
        if not self._is_first:
            earlier = self._differences.get(path)
            self._differences[path] = (before if earlier is None else earlier[0], after)


_UNREAD = Unkept(reason="not read yet")


class _UncountedError(Exception):
    """Many contents must be read, and the tree may have too many files."""


class _ClosedError(Exception):
    """A folder cannot be listed, or its files have no status."""


def _list(descriptor: int) -> tuple[dict[str, os.stat_result], set[str], bool]:
    """Return the files of an open folder with their status, the names of its folders, and whether it has a `.git`."""
    files: dict[str, os.stat_result] = {}
    folders: set[str] = set()
    has_git = False
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = entry.name
            if name == ".git":
                has_git = True
            elif entry.is_dir(follow_symlinks=False):
                folders.add(name)
            else:
                try:
                    files[name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    pass  # removed just now
    return files, folders, has_git


def _small(folder: int, name: str) -> bytes | None:
    """Return the content of a small regular file in an open folder. `None` if it cannot be read."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = file.read(_MAX_ATTRIBUTES_BYTES + 1)
    return data if len(data) <= _MAX_ATTRIBUTES_BYTES else None
