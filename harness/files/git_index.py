"""The files of a work tree whose content git certainly holds: unchanged since the index, and stored without a conversion."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Mapping

from harness.files.repository import git_folders, git_top, read_index
from harness.files.untracked import Patterns, ignore_patterns, ignored_by
from harness.process.environment import program_outside
from harness.regex import regex
from harness.safe_files import read_small

_MAX_INDEX_BYTES = 64_000_000
_MAX_TEXT_BYTES = 1_000_000
_STATUS = struct.Struct(">10I")
"""Times, device, inode, mode, owner, group and size of an index entry (gitformat-index(5))."""
_CONVERTED = regex(r"(?<![\w!-])(?:filter|text|eol|ident|crlf|working-tree-encoding)(?![\w-])|\[attr\]")
"""Attributes with which a blob may differ from the file (gitattributes(5)), unless they are unset with `-` or `!`."""
_CONFIGURED = regex(r"(?i)autocrlf|\[\s*include|attributesfile|partialclone|promisor")
"""Keys of a configuration (git-config(1)) with which blobs may differ from files, or may be missing."""
_PLAIN_PATTERN = regex(r"[A-Za-z0-9_.+@~,=*-]+")
_BINARY = 0o100000


class GitIndex:
    """The index of one repository, for the files below one folder of its work tree."""

    def __init__(self, top: str, below: str, environment: Mapping[str, str]) -> None:
        """Read the index of the repository with the work tree `top`, for the files in `below`: `top` or a folder in it."""
        self.top = top
        self._prefix = f"{os.path.relpath(below, top)}/" if below != top else ""
        self._environment = environment
        self._stamp: tuple[int, ...] = ()
        self._modified_ns = 0
        self._entries: dict[str, tuple[bytes, bytes]] = {}
        """Object id and recorded status, by name relative to `below`."""
        self._folders: set[str] = set()
        """Folders with tracked files, relative to `below`."""
        self._converted: list[tuple[str, Callable[[str], object] | None]] = []
        """Folders (with final slash) and matchers of file names, for files that git may convert. `None` matches all."""
        self._ignore_patterns: dict[str, Patterns] = {}
        self.objects = ""
        """Folder of the repository's objects. Empty if its contents are not used."""
        folders = git_folders(top)
        if folders is not None:
            self._git, common = folders
            self._exclude = os.path.join(common, "info", "exclude")
            if _is_without_conversion((self._git, common), environment):
                self.objects = os.path.join(common, "objects")
            self.refresh()
            self._read_outer_attributes(common)

    def refresh(self) -> None:
        """Read the index again if it changed."""
        path = os.path.join(self._git, "index")
        try:
            status = os.stat(path)
        except OSError:
            return
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if stamp == self._stamp:
            return
        self._stamp, self._modified_ns = stamp, status.st_mtime_ns
        rows = read_index(read_small(path, _MAX_INDEX_BYTES) or b"")
        prefix, start = self._prefix, len(self._prefix)
        self._entries = {
            name[start:]: (object_id, recorded)
            for name, object_id, recorded in rows or ()
            if not prefix or name.startswith(prefix)
        }
        if rows is None or any(len(object_id) != 20 for object_id, _ in self._entries.values()):
            self.objects = ""
        self._folders = set()
        for folder in {name.rpartition("/")[0] for name in self._entries}:
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = folder.rpartition("/")[0]  # noqa: PLW2901
        if rows is None:
            self._folders.add("")
        for name in self._entries:
            if name.endswith(".gitattributes") and not os.path.lexists(os.path.join(self.top, self._prefix + name)):
                self._converted.append((name.removesuffix(".gitattributes"), None))

    def release(self) -> None:
        """Free the memory of the entries. The next `refresh` reads them again."""
        self._entries, self._stamp = {}, ()

    def has_files_below(self, folder: str) -> bool:
        """Return whether git tracks a file in `folder`, or whether the index cannot be read."""
        return folder in self._folders or "" in self._folders

    def id_of(self, name: str, status: os.stat_result) -> bytes | None:
        """Return the object id of the content of a file. `None` if git does not certainly hold it.

        `name` is relative to the folder `below`.
        """
        entry = self._entries.get(name)
        if entry is None or not self.objects:
            return None
        changed, changed_ns, modified, modified_ns, _, inode, mode, _, _, size = _STATUS.unpack(entry[1])
        is_same = (
            modified * 10**9 + modified_ns == status.st_mtime_ns
            and size == status.st_size & 0xFFFFFFFF
            and inode == status.st_ino & 0xFFFFFFFF
            and changed * 10**9 + changed_ns == status.st_ctime_ns
            and mode & 0o170000 == _BINARY
            and status.st_mtime_ns < self._modified_ns
        )
        return entry[0] if is_same and not (self._converted and self._is_converted(name)) else None

    # Attributes

    def _is_converted(self, name: str) -> bool:
        return any(
            name.startswith(folder) and (matches is None or matches(name.rpartition("/")[2]))
            for folder, matches in self._converted
        )

    def _read_outer_attributes(self, common: str) -> None:
        self.add_attributes("", read_small(os.path.join(common, "info", "attributes"), _MAX_TEXT_BYTES) or b"")
        folder = ""
        for part in self._prefix.split("/")[:-1]:
            path = os.path.join(self.top, folder, ".gitattributes")
            if os.path.lexists(path):
                self.add_attributes("", read_small(path, _MAX_TEXT_BYTES))
            folder = f"{folder}{part}/"

    def add_attributes(self, folder: str, data: bytes | None) -> None:
        """Add the attributes of a folder (relative, with final slash), from a file with content `data`.

        `None` is an unreadable file: all files below the folder may be converted.
        """
        text = "* text" if data is None else data.decode("utf-8", "surrogateescape")
        for line in text.splitlines():
            pattern, _, attributes = line.strip().partition(" ")
            pattern, _, more = pattern.partition("\t")
            if not _CONVERTED.search(f"{more} {attributes}") and not pattern.startswith("[attr]"):
                continue
            matches = None
            if _PLAIN_PATTERN.fullmatch(pattern) and pattern.count("*") <= 2:
                matches = re.compile(re.escape(pattern).replace(r"\*", ".*"), re.DOTALL | re.IGNORECASE).fullmatch
            self._converted.append((folder, matches))

    # Ignored folders

    def is_ignored(self, folder: str) -> bool:
        """Return whether git certainly ignores an untracked `folder`, by the ignore files of the work tree."""
        parts = f"{self._prefix}{folder}".split("/")
        return any(self._is_ignored("/".join(parts[: number + 1])) for number in range(len(parts)))

    def _is_ignored(self, name: str) -> bool:
        above = name.rpartition("/")[0]
        files = [(0, self._patterns(self._exclude))]
        parts = above.split("/") if above else []
        for number in range(len(parts) + 1):
            start = "".join(f"{part}/" for part in parts[:number])
            files.insert(0, (len(start), self._patterns(os.path.join(self.top, start, ".gitignore"))))
        return ignored_by(name, is_folder=True, ignore_files=files)

    def _patterns(self, path: str) -> Patterns:
        if path not in self._ignore_patterns:
            self._ignore_patterns[path] = ignore_patterns(path)
        return self._ignore_patterns[path]


def index_around(folder: str, environment: Mapping[str, str]) -> GitIndex | None:
    """Return the index of the repository around `folder` (absolute, resolved). `None` if there is none."""
    top = git_top(folder)
    return GitIndex(top, folder, environment) if git_folders(top) is not None else None


def _is_without_conversion(folders: tuple[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether no configuration of git asks for a conversion of contents, or may hide objects."""
    if any(name.startswith(("GIT_CONFIG", "GIT_ATTR")) for name in environment):
        return False
    home = environment.get("HOME", "/nonexistent")
    user = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    configurations = (
        *(os.path.join(folder, name) for folder in folders for name in ("config", "config.worktree")),
        os.path.join(home, ".gitconfig"),
        os.path.join(user, "git", "config"),
        "/etc/gitconfig",
        "/usr/local/etc/gitconfig",
    )
    attributes = (os.path.join(user, "git", "attributes"), "/etc/gitattributes", "/usr/local/etc/gitattributes")
    pairs = [(path, _CONFIGURED) for path in configurations] + [(path, _CONVERTED) for path in attributes]
    for path, pattern in pairs:
        if os.path.lexists(path):
            data = read_small(path, _MAX_TEXT_BYTES)
            if data is None or pattern.search(data.decode("utf-8", "replace")):
                return False
    return True


def git_program(root: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of git, which must be outside the workspace `root`. `None` if there is none."""
    folders = [folder for folder in environment.get("PATH", os.defpath).split(":") if folder.startswith("/")]
    return program_outside(root, "git", {"PATH": ":".join(folders)})
