"""Workspace: the folder of a session. The only module that follows links to resolve a path."""

from __future__ import annotations

import copy
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from harness.actions import Access, PathAccess, Place
from harness.declared_types import check_arguments
from harness.errors import ToolError, UsageError, WorkspaceError
from harness.files import repository, trees
from harness.files.own_temporary import OwnTemporary, named_in
from harness.files.trees import Narrowing
from harness.paths import TreeNames, is_within
from harness.programs.git_pathspecs import GitFiles, ShownFiles, places, shown_names
from harness.record import Record, replace
from harness.regex import regex
from harness.text.visible import visible_line

MAX_PATH_BYTES = 4096
"""PATH_MAX of Linux (limits.h), including the terminating NUL. A longer path cannot name a file."""

_MAX_NAME_BYTES = 255
"""NAME_MAX of Linux (limits.h)."""
MAX_LINKS = 40
"""Maximum number of links on the way to one file, as in Linux (path_resolution(7))."""


_ESCAPED_BYTE = regex(r"\\(?:x|udc)([89a-f][0-9a-f])")

_LOOKED_INTO = (Place.INSIDE, Place.ROOT, Place.ADDED)
"""Places whose file names may be listed."""


class Workspace:
    """The folder in which the model works, fixed for the session."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        home: str | os.PathLike[str] | None = None,
        *,
        outputs: str | None = None,
        added: Sequence[str] = (),
        skills: Sequence[str] = (),
        copy_of: str = "",
    ) -> None:
        """Set up a workspace in `folder`.

        `home` is the user's home folder (default: that of the account). `outputs` is the folder with the full output of
        this session's commands, if any. `added` are folders that may be read like the workspace. `skills` are folders
        or files of skills (absolute, links followed), which may be read too, even in a hidden folder. `copy_of` is the
        folder (absolute, links followed) of which the workspace is a copy. A file in that folder also gets its name in
        the copy, so that every rule about files still applies to it.

        Raises UsageError if `folder` or an added folder does not exist. Raises it also if an added folder contains the
        workspace or the home folder, because then everything could be read.
        """
        check_arguments(Workspace.__init__, locals())
        self.root = os.path.realpath(folder)
        """Absolute, links followed."""
        self.home = os.path.realpath(home or os.path.expanduser("~"))
        """The user's home folder, links followed. Removing it or a parent of it is never permitted."""
        self.outputs = None if outputs is None else os.path.realpath(outputs)
        """Folder of command outputs, which may be read like the workspace. It need not exist yet."""
        if not os.path.isdir(self.root):
            raise UsageError(f"the workspace is not an existing folder: {folder}")
        self.added = tuple(dict.fromkeys(self._addable(path) for path in added))
        """Absolute paths, links followed; none of them is in the workspace."""
        self.skills = tuple(skills)
        self._copy_of = copy_of
        self._temporary: OwnTemporary | None = None
        self._temporary_of_files: Callable[[], OwnTemporary | None] = lambda: None
        self.needs_temporary = False
        """Whether an answer of this object rests on the `temporary` of `seen_with`."""

    @classmethod
    def even_if_gone(cls, folder: str, home: str | None) -> Workspace:
        """Return a workspace whose folder may be missing. Then paths are resolved as if it were an empty folder.

        Raises UsageError for a text that cannot name a folder.
        """
        try:
            root = os.path.realpath(folder)
        except ValueError as error:  # NUL, or a lone surrogate
            raise UsageError(f"the workspace cannot be a folder: {visible_line(folder)}: {error}") from None
        if os.path.isdir(root):
            return cls(root, home)
        workspace = cls("/", home)
        workspace.root = root
        return workspace

    def seen_with(self, temporary: OwnTemporary | None) -> Self:
        """Return a copy that resolves paths as commands do that have this `/tmp` of their own. `None`: that of the machine.

        `PathAccess.real` is then the path by which such commands reach the file.
        """
        workspace = copy.copy(self)
        workspace._temporary = temporary  # noqa: SLF001 - a copy of this object
        return workspace

    def for_files(self, temporary: Callable[[], OwnTemporary | None]) -> Self:
        """Return a copy that resolves paths for tools that open files themselves.

        A path in the session's own `/tmp`, which `temporary` returns, leads to the file that commands find there:
        `PathAccess.real` is its path on the disk.
        """
        workspace = copy.copy(self)
        workspace._temporary_of_files = temporary  # noqa: SLF001 - a copy of this object
        return workspace

    def check(self) -> None:
        """Raise WorkspaceError if the folder no longer exists."""
        if os.path.islink(self.root) or not os.path.isdir(self.root):
            raise WorkspaceError(f"the workspace is gone: {self.root}")

    def resolve(self, path: str, access: Access, cwd: str | None = None, *, entry: bool = False) -> PathAccess:
        """Resolve `path`, relative to `cwd` (an absolute folder; the workspace if `None`).

        As in the kernel, links are followed part by part, and `..` is applied afterwards. Missing parts are appended. A
        leading `~` is the home folder. With `entry`, a link in the last part is not followed: the path means the link.

        Raises ToolError for a path that cannot name a file: empty, too long, with NUL or a lone surrogate.
        """
        temporary = None if self._temporary is not None else named_in(path, self._temporary_of_files)
        if temporary is not None:
            by_commands = self.seen_with(temporary).resolve(path, access, cwd, entry=entry)
            return replace(by_commands, real=temporary.on_disk(by_commands.real))
        _check(path)
        joined = os.path.join(cwd or self.root, self._expanded(path))
        way = self._walked(joined, entry=entry)
        real = way.real
        lexical = os.path.normpath(joined)
        names = tuple(dict.fromkeys((self._name(lexical), self._name(real), *self._names_in_copy(lexical, real))))
        place = self._place(real) if way.sure else Place.OUTSIDE
        real_on_disk = self._on_disk(real)
        shared = access is not Access.READ and _has_further_names(real_on_disk)
        return PathAccess(
            written=path,
            real=real,
            names=names,
            access=access,
            place=place,
            closed=way.closed,
            entry=entry,
            shared=shared,
        )

    def file_name(self, path: str) -> str:
        r"""Return `path` with escapes (`\xff`, `\udcff`) replaced by their bytes, if only that names a file.

        Tool results show a byte that is not UTF-8 as such an escape. Other paths are returned unchanged.
        """
        if not (_ESCAPED_BYTE.search(path) and _is_name(path)):
            return path
        escaped = _ESCAPED_BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), path)
        name = os.fsdecode(os.fsencode(escaped))  # several bytes may be a character
        written, corrected = (os.path.join(self.root, self._expanded(each)) for each in (path, name))
        return name if not os.path.lexists(written) and os.path.lexists(corrected) else path

    def _expanded(self, path: str) -> str:
        return self.home + path[1:] if path == "~" or path.startswith("~/") else path

    def resolve_word(
        self, word: str, access: Access, cwd: str | None = None, *, entry: bool = False
    ) -> PathAccess | None:
        """Resolve a word of a command as a path, like `resolve`; `None` for an empty word.

        A path that cannot be followed to its end counts as outside.
        """
        try:
            path = self.resolve(word, access, cwd, entry=entry)
        except ToolError:
            name = os.path.normpath(word)
            return (
                PathAccess(written=word, real=name, names=(name,), access=access, place=Place.OUTSIDE) if word else None
            )

        # A closed folder may contain a link, which a command follows once the folder is opened.
        return replace(path, place=Place.OUTSIDE) if path.closed else path

    def look_below(
        self,
        path: PathAccess,
        *,
        follows: bool,
        only: Sequence[str] = (),
        skips: Sequence[str] = (),
        excluded: Sequence[str] = (),
        hidden: bool = True,
        ignore_files: Sequence[str] = (),
    ) -> PathAccess:
        """Return a path that covers everything below it, with the names of the files there.

        `only` names the only files that count (with `*`), `skips` excluded folders, and `excluded` excluded files.
        Without `hidden`, hidden files are excluded, unless an ignore file un-ignores them. `ignore_files` exclude files
        from a container build (`build_context.sent_files`).

        With `follows`, the command follows the links below the path. Then a link out of the workspace makes the names
        incomplete. A tree that is too large, or a folder that cannot be read, always does.
        """
        narrowing = Narrowing(only=only, skips=skips, excluded=excluded, hidden=hidden)
        if path.place is Place.TEMPORARY and self._temporary is not None:
            return self._look_below_temporary(path, self._temporary.on_disk(path.real), narrowing, follows=follows)
        if path.place not in _LOOKED_INTO:
            return replace(path, tree=True)
        root = self._added_root(path.real) or self.root
        names, is_complete = trees.names_below(path.real, root, narrowing, home=self.home, follows=follows)
        if ignore_files:
            from harness.files.build_context import sent_files

            context = os.path.join(path.real, "").removeprefix(os.path.join(root, ""))
            names = sent_files(names, context, ignore_files)
        return replace(path, tree=True, below=self._names_in(root, names), is_whole=is_complete)

    def _look_below_temporary(
        self, path: PathAccess, folder: str, narrowing: Narrowing, *, follows: bool
    ) -> PathAccess:
        """Return the path with the names below it. `folder` is the session's own folder of that name on the disk."""
        names, is_complete = trees.names_below(folder, folder, narrowing, home=self.home, follows=follows)
        below = TreeNames([os.path.join(path.real, name) for name in names])
        return replace(path, tree=True, below=below, is_whole=is_complete)

    def look_tracked(self, path: PathAccess, selection: ShownFiles, *, sure: bool, follows: bool = False) -> PathAccess:
        """Return the folder in which git runs, with the names of the files in `selection`: those shown or added.

        The names are incomplete if it is uncertain which files git tracks. Unless it is `sure` which files exist, only
        words after `--` limit the selection. With `follows`, the targets of links are included as in `look_below`; a
        folder in place of a file makes the names incomplete.
        """
        if path.place not in _LOOKED_INTO:
            return replace(path, tree=True)
        tracked = self._tracked(path.real, selection, sure=sure)
        if tracked is None:
            return replace(path, tree=True, is_whole=False)
        top, names, is_complete = tracked
        if not follows:
            return replace(path, tree=True, below=self._names_in(top, names), is_whole=is_complete)
        ends, is_complete = trees.followed(top, names, self._added_root(path.real) or self.root)
        return replace(path, tree=True, below=self._names_in(top, (*names, *ends)), is_whole=is_complete)

    def plain_tracked(self, folder: str, selection: ShownFiles, *, split: str, nul: bool) -> bool:
        """Return whether the names that git lists in an absolute folder are unambiguous in a list of names.

        The names are relative to that folder. See `trees.plain_in_list`.
        """
        tracked = self._tracked(folder, selection, sure=True)
        if tracked is None:
            return False
        top, names, _ = tracked
        prefix = os.path.join(folder, "").removeprefix(os.path.join(top, ""))
        return all(trees.plain_in_list(name, prefix, split=split, nul=nul) for name in names)

    def _tracked(self, folder: str, selection: ShownFiles, *, sure: bool) -> tuple[str, Sequence[str], bool] | None:
        """Return the top of a repository, the names of the selected files, and whether the list is complete.

        `None` if it is uncertain which files git tracks. Outside a repository, a command that adds files treats
        `folder` as its top.
        """
        tracked = repository.tracked_from(folder)
        if tracked is None:
            return None
        top, files = tracked
        is_complete, adds = True, selection.kind in (GitFiles.NEW, GitFiles.IGNORED)
        top = top or (folder if adds else "")
        prefix = os.path.join(folder, "").removeprefix(os.path.join(top, ""))
        exists = (lambda word: self.exists(os.path.join(folder, word))) if sure else None
        if adds:
            from harness.files.untracked import untracked_files

            untracked, is_complete = untracked_files(
                top,
                frozenset(name for name, *_ in files),
                repository.exclude_file(top),
                ignored=selection.kind is GitFiles.IGNORED,
                below=places(selection, prefix),
            )
            files = tuple((name, b"", b"") for name in untracked)
        names = shown_names(files, selection, prefix, exists)
        if selection.kind is GitFiles.CHANGED:
            selected = frozenset(names)
            names = repository.changed_files(top, [entry for entry in files if entry[0] in selected])
        return top, names, is_complete

    def _names_in(self, folder: str, names: Sequence[str]) -> TreeNames:
        """Return names below a folder in the form for matching patterns: relative to the root, absolute outside it."""
        if folder == self.root:
            return TreeNames(names)
        begin, root = os.path.join(folder, ""), os.path.join(self.root, "")
        return TreeNames([os.path.join(begin, name).removeprefix(root) for name in names])

    def exists(self, path: str) -> bool:
        """Return whether an absolute path exists."""
        return os.path.lexists(self._disk_path(path))

    def plain_below(
        self,
        folder: str,
        *,
        only: Sequence[str],
        skips: Sequence[str],
        excluded: Sequence[str] = (),
        split: str,
        bare: bool,
    ) -> bool:
        """Return whether the names below an absolute folder, hidden ones included, are unambiguous in a list of names.

        See `trees.plain_below`.
        """
        narrowing = Narrowing(only=only, skips=skips, excluded=excluded)
        return trees.plain_below(self._disk_path(f"{folder}/"), narrowing, split=split, bare=bare)

    def is_folder(self, path: str) -> bool:
        """Return whether an absolute path is a folder that can be a working directory."""
        path = self._disk_path(f"{path}/")
        return os.path.isdir(path) and os.access(path, os.X_OK)

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """Return bash's expansion of a file name pattern in `cwd`. `None` if it is uncertain.

        In `pattern`, a backslash precedes every literal character. A pattern without matches gives no words here, while
        bash keeps it as written.
        """
        return trees.expand(pattern, cwd, self._disk_path)

    def git_problem(self, folder: str, cwd: str) -> str | None:
        """Return the reason why git in `folder` (relative to `cwd`) may run programs from its configuration.

        `None` if it may not.
        """
        return repository.git_problem(self._git_folder(folder, cwd))

    def git_top(self, folder: str, cwd: str) -> str:
        """Return the top of the git repository around `folder` (relative to `cwd`), or the folder itself."""
        return repository.git_top(self._git_folder(folder, cwd))

    def git_places(self, folder: str, cwd: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:
        """Return the places outside the workspace that git in `folder` (relative to `cwd`) writes, if `.git` is a file.

        With `worktrees`, include the folder of all worktrees. See `repository.linked_places` for the two items.
        """
        proved, claimed = repository.linked_places(self._git_folder(folder, cwd), worktrees=worktrees)
        outside = tuple(place for place in proved if not is_within(place, self.root))
        return outside, "" if is_within(claimed, self.root) else claimed

    def git_remotes(self, folder: str, cwd: str) -> tuple[str, ...]:
        """Return the addresses of all remotes of the repository around `folder` (relative to `cwd`).

        Empty if one may be missing.
        """
        return repository.remote_addresses(self._git_folder(folder, cwd))

    def _git_folder(self, folder: str, cwd: str) -> str:
        return self._on_disk(_walk(os.path.join(cwd, folder), on_disk=self._part_on_disk).real)

    def _disk_path(self, path: str) -> str:
        """Return the path on the disk of what commands find at an absolute path. A link in the last part is not followed."""
        return path if self._temporary is None else self._on_disk(self._walked(path, entry=True).real)

    def _on_disk(self, path: str) -> str:
        if self._temporary is None:
            return path
        self.needs_temporary = self.needs_temporary or self._temporary.holds(path)
        return self._temporary.on_disk(path)

    def _part_on_disk(self, path: str) -> str:
        """Return `_on_disk` of a part of a way. The folder `/tmp` alone may lead to what is shown there."""
        return path if self._temporary is None or path in self._temporary.places else self._on_disk(path)

    def _walked(self, path: str, *, entry: bool) -> _Way:
        """Resolve an absolute path. The path of the root was already resolved when the session began."""
        folder, _, name = path.rpartition("/")
        if entry and name not in ("", ".", ".."):
            way = self._walked(f"{folder}/", entry=False)
            return replace(way, real=os.path.join(way.real, name))
        prefix = self.root if self.root == "/" else self.root + "/"
        if path.startswith(prefix):
            return _walk(path.removeprefix(prefix), self.root, on_disk=self._part_on_disk)
        return _walk(path, on_disk=self._part_on_disk)

    def _names_in_copy(self, *absolute: str) -> Iterator[str]:
        if self._copy_of:
            yield from (os.path.relpath(path, self._copy_of) for path in absolute if is_within(path, self._copy_of))

    def _name(self, absolute: str) -> str:
        if absolute == self.root:
            return "."
        prefix = self.root if self.root.endswith("/") else self.root + "/"
        return absolute.removeprefix(prefix)

    def _place(self, real: str) -> Place:
        if real == self.root:
            return Place.ROOT
        if is_within(self.root, real) or is_within(self.home, real):
            return Place.ABOVE
        if self.outputs is not None and real != self.outputs and is_within(real, self.outputs):
            return Place.OUTPUT
        if is_within(real, self.root):
            return Place.INSIDE
        if self._added_root(real):
            return Place.ADDED
        is_own = self._temporary is not None and self._temporary.holds(real)
        return Place.TEMPORARY if is_own else Place.OUTSIDE

    def _added_root(self, real: str) -> str:
        """Return the added folder around a path outside the workspace, or an empty string."""
        if is_within(real, self.root):
            return ""
        return next((folder for folder in (*self.added, *self.skills) if is_within(real, folder)), "")

    def _addable(self, folder: str) -> str:
        real = os.path.realpath(folder)
        if not os.path.isdir(real):
            raise UsageError(f"the folder to add is not an existing folder: {folder}")
        if is_within(self.root, real) or is_within(self.home, real):
            raise UsageError(
                f"{folder} holds the workspace or the home folder, and cannot be added: name a folder below it"
            )
        return real


def _has_further_names(real: str) -> bool:
    try:
        status = os.lstat(real)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _check(path: str) -> None:
    if not path:
        raise ToolError("The path is empty.")
    if "\0" in path:
        raise ToolError("The path contains a NUL character.")
    size = len(path.encode("utf-8", "surrogatepass"))
    if size >= MAX_PATH_BYTES:
        raise ToolError(f"The path is too long: {size} bytes, at most {MAX_PATH_BYTES - 1} are possible.")
    if not _is_name(path):
        raise ToolError("The path contains a lone surrogate, which no file name can hold.")


def _is_name(path: str) -> bool:
    """Return whether this text is what the system returns for the file's name.

    So each file has only one text, to which patterns are applied.
    """
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == path
    except UnicodeEncodeError:
        return False


class _Way(Record):
    """A resolved path."""

    real: str
    sure: bool
    closed: bool
    """Whether a folder on the way cannot be searched. The names after it are assumed not to be links."""


def _walk(path: str, start: str = "", *, on_disk: Callable[[str], str]) -> _Way:
    """Resolve `path` from `start`, part by part like the kernel. Return the result, and whether it is certain.

    `start` is the root of the disk, or a folder whose path contains no link. `on_disk` returns the path on the disk of a
    resolved path. The result is uncertain if the path leads through /proc, whose links depend on the reader
    (`/proc/self/cwd`, `/dev/stdin`). It is uncertain too if a link cannot be read, or there are more links than the kernel
    follows.
    """
    waiting = path.split("/")[::-1]
    real, links, sure, closed = start.rstrip("/"), 0, True, False
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = real.rpartition("/")[0]
            continue
        location = f"{real}/{part}"
        sure = sure and location != "/proc"
        try:
            target = os.readlink(on_disk(location))
        except OSError as error:
            # These errors mean that the part is not a link: another file, a missing one, or an impossible name. With
            # other errors it may still be a link for a process that reaches it by a shorter path.
            closed = closed or error.errno == errno.EACCES
            plain = (
                error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EACCES)
                or len(os.fsencode(part)) > _MAX_NAME_BYTES
            )
            sure = sure and plain
            real = location
            continue
        links += 1
        if links > MAX_LINKS:
            return _Way(real=os.path.normpath(f"{start}/{path}"), sure=False, closed=closed)
        if target.startswith("/"):
            real = ""
        waiting.extend(target.split("/")[::-1])
    return _Way(real=real or "/", sure=sure, closed=closed)
