"""The changes of a workspace by each command: a look right before it and one right after (`TreeWatch`)."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from harness.digest import digest_of
from harness.files.git_contents import GitContents
from harness.files.git_index import GitIndex, git_program, index_around
from harness.files.left_out import MAX_CONTENT_BYTES
from harness.files.segments import SegmentStore, StoreLimits
from harness.files.tree_changes import ABSENT, LeftOut, PathKind, PathState, TreeChanges, kind_of, sorted_changes
from harness.files.tree_looks import (
    MAX_FILES,
    Content,
    Difference,
    LinkText,
    LookError,
    PathLook,
    TooManyFilesError,
    TreeLook,
    TreeTable,
    Unkept,
)
from harness.paths import is_within
from harness.safe_files import NEW_FILE, make_private, read_small

DENIED = "a rule denies to read it"
_TOO_LARGE = f"over {MAX_CONTENT_BYTES // 1_000_000} MB"
_GONE = "git no longer has it"
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_UNCHANGED = 100
"""Maximum number of unchanged paths listed among those that were left out."""
_KEY_NAME = "key"
_GIT_FOLDER = "empty.git"


def store_of(stores: str, root: str, limits: StoreLimits | None = None) -> SegmentStore:
    """Return the store of the workspace `root` (absolute, resolved) in the folder of all stores."""
    return SegmentStore(os.path.join(stores, digest_of(os.fsencode(root))[:32]), limits)


class TreeWatch:
    """Watches the files of one workspace. May be used by several threads, with several commands at the same time."""

    def __init__(
        self,
        root: str,
        stores: str,
        *,
        environment: Mapping[str, str],
        denied: Callable[[str], bool] = lambda path: False,  # noqa: ARG005
        limits: StoreLimits | None = None,
        max_files: int = MAX_FILES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the absolute, resolved folder `root`, and keep contents in the folder `stores`, which is created.

        `denied` returns whether a rule denies to read a path, which is relative to `root`. `environment` names
        the user's home folder, and the folders that may have git. `monotonic` is a clock in seconds.
        """
        self.root = root
        self.problem = _problem(root, stores, environment)
        """Reason why this workspace is not watched at all. Empty if it is."""
        self.seen_problem = self.problem
        """Reason why the last `note` failed. Empty if it did not."""
        self.store = store_of(stores, root, limits)
        self._lock = threading.RLock()
        self._contents = _Contents(root, stores, self.store, denied, environment)
        self._tree = TreeTable(root, self._contents, max_files=max_files)
        self._notes: list[NotedTree] = []
        self._monotonic = monotonic
        self._last: _LastLook | None = None
        self._epoch = object()
        """Replaced by `outdate`."""
        self._lost_segments = 0

    def look_ahead(self) -> None:
        """Look at the tree early, for example on another thread, so that the next `note` is quick."""
        self.note(fresh_seconds=0).forget()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The paths that are not watched, as of the last look."""
        with self._lock:
            return tuple(self._tree.left_out.values())

    @property
    def repositories(self) -> tuple[str, ...]:
        """The absolute folders of the repositories that the last look found below the root."""
        with self._lock:
            return self._tree.repositories

    def note(self, *, fresh_seconds: float = 1.0) -> NotedTree:
        """Return the tree as it is before a command. Contents that undo needs are on disk when this returns.

        A last look that ended less than `fresh_seconds` ago is used again, if it began after the last `outdate`.
        """
        with self._lock:
            noted = NotedTree(self, self.problem)
            if self.problem:
                return noted
            last = self._last
            if last is not None and self.is_fresh(fresh_seconds):
                look = last.look
            else:
                try:
                    look = self._look(uses_git=True)
                except LookError as error:
                    noted.problem = self.seen_problem = str(error)
                    return noted
            self.seen_problem = ""
            noted.began_ns = look.began_ns
            self._notes.append(noted)
            return noted

    def is_fresh(self, seconds: float) -> bool:
        """Return whether the last look ended less than `seconds` ago, and began after the last `outdate`."""
        last = self._last
        return last is not None and last.epoch is self._epoch and self._monotonic() - last.end_seconds < seconds

    def outdate(self) -> None:
        """Make the next `note` look again, also if a look is under way. Does not wait for that look."""
        self._epoch = object()

    def compare(self, noted: NotedTree) -> TreeChanges:
        """Return the changes since `noted`, which must be one of this watch. See `NotedTree.compared`."""
        with self._lock:
            if noted not in self._notes:
                return TreeChanges(problem=noted.problem or "the look before the command was given up")
            try:
                look = self._look(uses_git=False)
            except LookError as error:
                return TreeChanges(problem=str(error), began_ns=noted.began_ns, ended_ns=time.time_ns())
            finally:
                self.give_up(noted)
            states = self._contents.states_of(noted.differences, self._tree.object_folders)
            self._commit()
            return TreeChanges(
                changes=tuple(sorted_changes(states)),
                left_out=self._left_out_since(noted),
                began_ns=noted.began_ns,
                ended_ns=look.ended_ns,
            )

    def give_up(self, noted: NotedTree) -> None:
        """Stop to collect differences for `noted`."""
        with self._lock:
            if noted in self._notes:
                self._notes.remove(noted)

    def _look(self, *, uses_git: bool) -> TreeLook:
        """Look at the tree, keep its contents, and add the differences to all noted trees. Raises LookError."""
        try:
            self._last, epoch = None, self._epoch
            look = self._tree.look(uses_git=uses_git)
            self._commit()
        except BaseException as error:
            # The table is empty: differences from before are lost.
            for noted in self._notes:
                noted.problem = str(error) or "the look was interrupted"
            self._notes.clear()
            if isinstance(error, TooManyFilesError):
                self.problem = str(error)
            raise
        for noted in self._notes:
            noted.add(look)
        self._last = _LastLook(look, epoch, self._monotonic())
        return look

    def _commit(self) -> None:
        """Write the kept contents to disk. Contents that were lost or pruned are read again by the next look."""
        problem = self._contents.commit()
        if problem or self.store.lost_segments > self._lost_segments:
            self._lost_segments = self.store.lost_segments
            rows = self._tree.contents()
            self._tree.distrust(
                [path for path, content in rows if isinstance(content, str) and not self.store.has(content)]
            )

    def _left_out_since(self, noted: NotedTree) -> tuple[LeftOut, ...]:
        changed = [noted.left_out[path] for path in sorted(noted.left_out)]
        unchanged = [place for path, place in sorted(self._tree.left_out.items()) if path not in noted.left_out]
        return (*changed, *unchanged[:_MOST_UNCHANGED])


class _LastLook(NamedTuple):
    """The last look at the tree."""

    look: TreeLook
    epoch: object
    """The epoch of the watch when the look began; see `TreeWatch.outdate`."""
    end_seconds: float
    """Time by the clock of the watch."""


class NotedTree:
    """The tree as it was before a command."""

    def __init__(self, watch: TreeWatch, problem: str) -> None:
        self._watch = watch
        self.problem = problem
        """Reason why the changes of the command cannot be found. Empty if they can."""
        self.began_ns = 0
        self.differences: dict[str, Difference] = {}
        self.left_out: dict[str, LeftOut] = {}

    def add(self, look: TreeLook) -> None:
        """Add the differences that a later look saw."""
        for path, (before, after) in look.differences.items():
            earlier = self.differences.get(path)
            pair = (before if earlier is None else earlier[0], after)
            if all(entry is None or _is_outside(entry) for entry in pair):
                size, is_removed = (pair[1].stamp[2], False) if pair[1] is not None else (0, True)
                self.left_out[path] = LeftOut(
                    path=path, reason=_reason(pair), size=size, is_changed=True, is_removed=is_removed
                )
            self.differences[path] = pair
        self.left_out.update(look.left_out)

    def compared(self) -> TreeChanges:
        """Look again, and return the changes since `TreeWatch.note`. May be called once.

        Contents before and after are on disk when this returns, so that the changes can be shown and undone.
        """
        return self._watch.compare(self)

    def forget(self) -> None:
        """Give up the comparison: the command does not run."""
        self._watch.give_up(self)


def _is_outside(entry: PathLook) -> bool:
    return isinstance(entry.content, Unkept) and entry.content.is_outside


def _reason(pair: Difference) -> str:
    contents = [entry.content for entry in pair if entry is not None]
    return next((content.reason for content in reversed(contents) if isinstance(content, Unkept)), _TOO_LARGE)


def _problem(root: str, stores: str, environment: Mapping[str, str]) -> str:
    """Return the reason why a workspace is not watched, or an empty string."""
    home = os.path.realpath(environment.get("HOME") or "/nonexistent")
    if root == "/":
        return "the workspace is the whole file system"
    if is_within(home, root):
        return "the workspace holds the home folder"
    if is_within(os.path.realpath(stores), root):
        return "the workspace holds the folder of earlier contents"
    return ""


class _Contents:
    """Reads and keeps the contents of files (see `Keeps`)."""

    def __init__(
        self,
        root: str,
        stores: str,
        store: SegmentStore,
        denied: Callable[[str], bool],
        environment: Mapping[str, str],
    ) -> None:
        self._root = root
        self._stores = stores
        self._store = store
        self._denied = denied
        self._environment = environment
        self._git = git_program(root, environment)
        self._key = b""
        self._problem = ""

    def index_at(self, prefix: str) -> GitIndex | None:
        """Return the index of the repository at a folder, or around the workspace. `None` if git is not used."""
        if self._git is None:
            return None
        return index_around(os.path.join(self._root, prefix).rstrip("/"), self._environment)

    def content_of(self, folder: int, path: str, status: os.stat_result) -> tuple[Content, os.stat_result]:
        """Return the content of a file in the open `folder`, and its status when it was read.

        Raises FileNotFoundError if the file disappeared.
        """
        name = path.rpartition("/")[2]
        if stat.S_ISLNK(status.st_mode):
            try:
                return LinkText(os.readlink(name, dir_fd=folder)), status
            except OSError:
                return Unkept(reason="being written"), status
        if not stat.S_ISREG(status.st_mode):
            return Unkept(reason="special file", is_outside=True), status
        try:
            for _ in range(2):
                if not stat.S_ISREG(status.st_mode):
                    break
                if status.st_size > MAX_CONTENT_BYTES:
                    return Unkept(reason=_TOO_LARGE, is_outside=True), status
                data, status = _read(folder, name, status)
                if data is not None:
                    return self._keep(path, data), status
        except FileNotFoundError:
            raise
        except OSError as error:
            return Unkept(reason=f"cannot be read: {error.strerror}"), status
        return Unkept(reason="being written"), status

    def _keep(self, path: str, data: bytes) -> str | Unkept:
        """Keep a content. Of a denied path, only a keyed digest is returned."""
        if self._denied(path):
            return Unkept(reason=DENIED, keyed_digest=self._keyed(data))
        try:
            digest, problem = self._store.keep(data)
        except OSError as error:
            self._problem = problem = f"cannot be stored: {error.strerror}"
            digest = hashlib.sha256(data).hexdigest()
        return Unkept(reason=problem, sha256=digest) if problem else digest

    def _keyed(self, data: bytes) -> str:
        if not self._key:
            self._key = _key_in(self._stores)
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()

    def commit(self) -> str:
        """Write the kept contents to disk. Return the reason why some were lost, or an empty string."""
        problem, self._problem = self._problem, ""
        try:
            self._store.commit()
        except OSError as error:
            return f"cannot be stored: {error.strerror}"
        return problem

    def states_of(
        self, differences: Mapping[str, Difference], object_folders: tuple[str, ...]
    ) -> dict[str, tuple[PathState, PathState]]:
        """Return the states of paths before and after. Contents that git holds are read, and kept in the store."""
        paths: dict[bytes, list[str]] = {}
        for path, pair in differences.items():
            for entry in pair:
                if entry is not None and isinstance(entry.content, bytes):
                    paths.setdefault(entry.content, []).append(path)
        from_git: dict[tuple[bytes, str], tuple[str | Unkept, int]] = {}
        if paths and self._git is not None:
            git = GitContents(self._git, os.path.join(self._stores, _GIT_FOLDER))
            for object_id, data in git.read(paths, object_folders, MAX_CONTENT_BYTES):
                for path in paths[object_id]:
                    from_git[object_id, path] = (self._keep(path, data), len(data))
        states = {}
        for path, (before, after) in differences.items():
            if not all(entry is None or _is_outside(entry) for entry in (before, after)):
                states[path] = (_state(path, before, from_git), _state(path, after, from_git))
        return states


def _state(
    path: str, entry: PathLook | None, from_git: Mapping[tuple[bytes, str], tuple[str | Unkept, int]]
) -> PathState:
    if entry is None:
        return ABSENT
    _, _, size, mode = entry.stamp
    content: Content | None = entry.content
    if isinstance(content, bytes):
        content, length = from_git.get((content, path), (Unkept(reason=_GONE), size))
        if length != size:
            content = Unkept(reason="git holds it in another form")
    kind, bits = kind_of(mode), stat.S_IMODE(mode)
    match content:
        case None:
            return PathState(kind=PathKind.FOLDER, mode=bits)
        case LinkText(text):
            return PathState(kind=PathKind.LINK, target=text)
        case Unkept():
            unkept, digest, keyed = content.reason, content.sha256, content.keyed_digest
            return PathState(kind=kind, mode=bits, size=size, sha256=digest, keyed_digest=keyed, unkept=unkept)
        case _:
            return PathState(kind=kind, mode=bits, size=size, sha256=str(content))


def _read(folder: int, name: str, first: os.stat_result) -> tuple[bytes | None, os.stat_result]:
    """Return the content of a regular file with the status `first`, and its status afterwards. Raises OSError.

    The content is `None` if the file changed or was replaced in between.
    """
    descriptor = os.open(name, _OPEN, dir_fd=folder)
    try:
        data = os.read(descriptor, first.st_size + 1)
        last = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    is_same = _version(first) == _version(last) and len(data) == last.st_size
    return (data if is_same else None), last


def _version(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns, status.st_mtime_ns)


def _key_in(stores: str) -> bytes:
    """Return the key for digests of denied files, from the folder of all stores. It is created if missing.

    Raises OSError.
    """
    path = os.path.join(stores, _KEY_NAME)
    key = read_small(path, 64) or b""
    if len(key) == 32:
        return key
    make_private(stores)
    try:
        descriptor = os.open(path, NEW_FILE, 0o600)
    except FileExistsError:
        return read_small(path, 64) or os.urandom(32)
    with open(descriptor, "wb") as file:
        key = os.urandom(32)
        file.write(key)
    return key
