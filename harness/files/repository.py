"""The git repository around a folder: find it as git does, and check its settings, index and files.

Only reads files and runs no program. The list of harmless configuration keys is in programs/git_config.py.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from harness.paths import is_within
from harness.regex import regex
from harness.safe_files import read_small

_MODES = frozenset(mode.to_bytes(4, "big") for mode in (0o100644, 0o100755, 0o100664, 0o120000, 0o160000))
"""Valid modes: file, program, file of old git versions, link, submodule. Only sparse indexes contain folders."""
_LOCAL = ("refs/heads/", "refs/tags/")
"""Beginnings of the names of references that only local commands change. The others follow a remote repository."""
_BEFORE_ID = 40
"""Number of bytes of an index entry before its object id."""
TrackedFile: TypeAlias = "tuple[str, bytes, bytes]"
"""Name, object id, and the file state that git recorded: the 40 bytes of the index entry before the id."""
MAX_COMPARED_BYTES = 100_000_000
"""Maximum total size of files whose content is compared with git's, in bytes. Further files count as changed."""


def read_index(data: bytes) -> tuple[TrackedFile, ...] | None:
    """Return all files that git tracks. Names are relative to the top of the repository.

    `None` for an index that is invalid, or does not list all tracked files. The index does not say whether ids have 20
    or 32 bytes, so both are tried; with the wrong size, parsing fails.
    """
    for size in (20, 32):
        try:
            return tuple(_entries(data, size))
        except (ValueError, IndexError):
            continue
    return None


def _entries(data: bytes, size: int) -> Iterator[TrackedFile]:
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    place, name, flags = 12, b"", _BEFORE_ID + size
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = place
        if data[start + 24 : start + 28] not in _MODES:
            raise ValueError("an entry of a kind that is not known")
        place = start + flags + (4 if data[start + flags] & 0x40 else 2)
        prefix = b""
        if version == 4:
            dropped, place = _number(data, place)
            prefix = name[: len(name) - dropped]
        end = data.index(b"\0", place)
        name = prefix + data[place:end]
        place = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        noted = data[start : start + _BEFORE_ID]
        yield name.decode("utf-8", "surrogateescape"), data[start + _BEFORE_ID : start + flags], noted
    _check_rest(data, place, size)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number in git's variable-length encoding (varint.c), and the offset after it."""
    value = data[place] & 127
    while data[place] & 128:
        place += 1
        value = (value + 1 << 7) + (data[place] & 127)
    return value, place + 1


def _check_rest(data: bytes, place: int, size: int) -> None:
    """Raise ValueError unless only optional extensions precede the checksum. Others may move names elsewhere."""
    while place < len(data) - size:
        if not data[place : place + 1].isupper():  # `link` of a split index, `sdir` of a sparse one, or invalid data
            raise ValueError("an extension that changes what the entries mean")
        place += 8 + int.from_bytes(data[place + 4 : place + 8], "big")
    if place != len(data) - size:
        raise ValueError("entries that do not end where they should")


MAX_CONFIG_BYTES = 200_000
_MAX_INDEX_BYTES = 64_000_000
_FOLDERS_OF_LINES = ("", "info", "objects/info", "rebase-merge", "rebase-apply", "sequencer")
_SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode 160000 of an index entry, as it is stored (gitformat-index(5))."""


def git_problem(folder: str) -> str | None:
    """Return the reason why a read-only git command in `folder` (absolute) may run a program or show other files.

    `None` if it is safe. Every repository on the way up is examined, because git skips an invalid `.git` and uses the
    next one.
    """
    if ".git" in folder.split("/"):
        return "it is run inside a .git folder"
    ancestor = folder
    while True:
        problem = _problem_at(ancestor)
        if problem is not None:
            return problem
        if ancestor in ("/", ""):
            return None
        ancestor = os.path.dirname(ancestor)


def git_top(folder: str) -> str:
    """Return the nearest folder that contains a `.git`: `folder` (absolute) or a parent. Without any, `folder`."""
    ancestor = folder
    while not os.path.lexists(os.path.join(ancestor, ".git")):
        if ancestor in ("/", ""):
            return folder
        ancestor = os.path.dirname(ancestor)
    return ancestor


def work_top(folder: str, home: str) -> str:
    """Return the top of the repository around `folder` (absolute, links followed), as a workspace.

    `folder` itself without a repository, if it does not exist, and in a repository that holds the folder `home`.
    """
    top = git_top(folder)
    holds_home = is_within(os.path.realpath(home), top) if home else False
    return folder if holds_home or not os.path.isdir(folder) else top


def folders_up(folder: str) -> Sequence[str]:
    """Return `folder` (absolute, links followed) and the folders above it within its repository, the nearest first."""
    top = git_top(folder)
    folders = [folder]
    while folders[-1] != top:
        folders.append(os.path.dirname(folders[-1]))
    return folders


Tracked: TypeAlias = "tuple[str, tuple[TrackedFile, ...]]"
"""The top of a repository (empty outside of one), and the files that git tracks there."""


def tracked_from(folder: str, most_bytes: int = _MAX_INDEX_BYTES) -> Tracked | None:
    """Return the files that git tracks in the repository around `folder` (absolute).

    `None` if that is uncertain, or if the index is larger than `most_bytes`. A `.git` that git might not accept is
    skipped if it has no index; otherwise the answer is uncertain.
    """
    top = git_top(folder)
    git_folders = _data_of(top)
    if not isinstance(git_folders, tuple):
        return None if git_folders else ("", ())
    index = os.path.join(git_folders[0], "index")
    sure = _is_surely_one(*git_folders)
    if not os.path.lexists(index):
        return (top, ()) if sure or top == "/" else tracked_from(os.path.dirname(top), most_bytes)
    if not sure:
        return None
    tracked = read_index(read_small(index, most_bytes) or b"")
    return None if tracked is None else (top, tracked)


def exclude_file(top: str) -> str:
    """Return the ignore file of the repository at `top` outside its work tree; empty if there is none."""
    git_folders = _data_of(top)
    return os.path.join(git_folders[1], "info", "exclude") if isinstance(git_folders, tuple) else ""


def git_folders(top: str) -> tuple[str, str] | None:
    """Return the data folders of the repository at `top`: its own, and the one shared by all worktrees.

    `None` unless git certainly recognizes them.
    """
    folders = _data_of(top) if os.path.lexists(os.path.join(top, ".git")) else None
    return folders if isinstance(folders, tuple) and _is_surely_one(*folders) else None


def is_repository(folder: str) -> bool:
    """Return whether git certainly recognizes this folder as the top of a repository. False in case of doubt."""
    return git_folders(folder) is not None


_SHARED = ("objects", "refs", "logs", "lfs", "rr-cache")
"""Folders of a repository that git writes from every worktree. Hooks and configuration are not included."""


def linked_places(folder: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:
    """Return the places that git writes in the repository of `folder` (absolute), if its `.git` is a file.

    The first item lists proven places: the repository's own files point back to this `.git`. For a linked worktree
    these are its folder and the shared folders, with `worktrees` also the folder of all worktrees. For a submodule it
    is its folder. Otherwise the second item is the one folder that only the `.git` file names, so that the author of
    that file chose it. Both are empty if `.git` names no repository, or the repository of another folder.
    """
    top = git_top(folder)
    link = os.path.join(top, ".git")
    git_folders = _data_of(top)
    if os.path.islink(link) or not os.path.isfile(link) or not isinstance(git_folders, tuple):
        return (), ""
    git, common = map(os.path.realpath, git_folders)
    if not _is_surely_one(git, common):
        return (), ""
    if git != common:
        back = _line_of(os.path.join(git, "gitdir"))
        is_ours = _is_plain(back) and os.path.realpath(os.path.join(git, back)) == os.path.realpath(link)
        if not is_ours or os.path.dirname(git) != os.path.join(common, "worktrees"):
            return (), ""
        shared = (os.path.join(common, name) for name in (*_SHARED, *(("worktrees",) if worktrees else ())))
        return (git, *(place for place in shared if os.path.isdir(place) and not os.path.islink(place))), ""
    config = (read_small(os.path.join(git, "config"), MAX_CONFIG_BYTES) or b"").decode("utf-8", "replace")
    tree = _WORK_TREE.search(config)
    if tree is not None:
        is_ours = os.path.realpath(os.path.join(git, tree[1])) == os.path.realpath(top)
        return ((git,), "") if is_ours else ((), "")
    is_of_another = os.path.basename(git) == ".git" or _BARE.search(config) is not None
    return (), "" if is_of_another else git


def remote_addresses(folder: str) -> tuple[str, ...]:
    """Return the addresses in the configuration of the repository around `folder` (absolute): those of its remotes.

    Empty if the configuration is not plain, reads other files, or rewrites addresses.
    """
    git_folders = _data_of(git_top(folder))
    if not isinstance(git_folders, tuple):
        return ()
    config = (read_small(os.path.join(git_folders[1], "config"), MAX_CONFIG_BYTES) or b"").decode("utf-8", "replace")
    addresses = [match[1] for match in _ADDRESS_LINE.finditer(config)]
    is_plain = len(addresses) == len(_ADDRESS_KEY.findall(config)) and _REWRITES.search(config) is None
    return tuple(dict.fromkeys(addresses)) if is_plain else ()


_ADDRESS_LINE = regex(r"(?im)^[ \t]*(?:push)?url[ \t]*=[ \t]*([^\s\"#;\\]+)[ \t]*$")
_ADDRESS_KEY = regex(r"(?i)url[ \t]*=")
_REWRITES = regex(r"(?i)insteadof|\[[ \t]*include")
"""Keys and sections of git-config(1) that change where git finds a remote."""
_WORK_TREE = regex(r"(?im)^[ \t]*worktree[ \t]*=[ \t]*([^\s\"#;\\][^\"#;\\\n]*?)[ \t]*$")
_BARE = regex(r"(?im)^[ \t]*bare[ \t]*(?:$|=(?![ \t]*false[ \t]*$))")
"""Keys of core in git-config(1), as git itself writes them."""


def _is_surely_one(git: str, common: str) -> bool:
    """Return whether git recognizes these folders as repository data (setup.c, is_git_directory)."""
    head = os.path.join(git, "HEAD")
    if os.path.islink(head) or not re.fullmatch(r"ref: refs/\S+|[0-9a-f]{40}(?:[0-9a-f]{24})?", _line_of(head)):
        return False
    return all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs"))


def _problem_at(folder: str) -> str | None:
    git_folders = _data_of(folder)
    if not isinstance(git_folders, tuple):
        return git_folders
    git, common = git_folders
    worktree_problem = _configured(git, "config.worktree")  # obeyed where extensions.worktreeConfig is set
    problems = (_laid_out(each) for each in dict.fromkeys(git_folders))
    return worktree_problem or _configured(common) or next(filter(None, problems), None)


def _data_of(folder: str) -> tuple[str, str] | str | None:
    """Return the data folders of the repository at `folder`: its own, and the one shared by all worktrees.

    Returns a reason (text) if they are ambiguous, and `None` if there is no repository.
    """
    git = os.path.join(folder, ".git")
    if not os.path.isdir(git):
        bare = [os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs", "commondir")]
        if bare[0] and (all(bare[1:3]) or bare[3]):
            return f"{folder} looks like a repository without a work tree"
        if not os.path.lexists(git):
            return None
        target = _line_of(git)
        if not target.startswith("gitdir: ") or not _is_plain(target[8:]):
            return f"{git} does not say plainly where the repository lies"
        git = os.path.join(folder, target[8:])
    common = os.path.join(git, "commondir")
    if not os.path.lexists(common):
        return git, git
    target = _line_of(common)
    if not _is_plain(target):
        return f"{common} does not say plainly where the repository lies"
    return git, os.path.join(git, target)


def _is_plain(target: str) -> bool:
    """Return whether a path from one of git's files is unambiguous."""
    return bool(target) and target == target.strip() and target.isprintable()


def _configured(git: str, name: str = "config") -> str | None:
    path = os.path.join(git, name)
    from harness.programs.git_config import programs_named

    config = read_small(path, MAX_CONFIG_BYTES)
    if config is None and os.path.lexists(path):
        return "the repository's configuration cannot be read"
    return programs_named((config or b"").decode("utf-8", "replace"))


def _laid_out(git: str) -> str | None:
    """Return the reason why the layout of a repository's folder is unsafe, or `None`.

    Links are unsafe because git shows lines of their target files. Submodules are unsafe because they have their own
    configuration, whose filters the harness cannot switch off.
    """
    for below in _FOLDERS_OF_LINES:
        try:
            entries = list(os.scandir(os.path.join(git, below)))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() and entry.name != "hooks":
                return f"{os.path.join('.git', below, entry.name)} is a link"
            if entry.name.startswith("sharedindex."):
                return "the repository has a split index, which may hold submodules"
    for name in ("objects/info/alternates", "info/grafts"):
        if os.path.lexists(os.path.join(git, name)):
            return f"the repository has {name}, which leads elsewhere"
    if os.path.lexists(os.path.join(git, "index")):
        index = read_small(os.path.join(git, "index"), _MAX_INDEX_BYTES)
        if index is None or _SUBMODULE in index:
            return "the repository may have submodules, which have a configuration of their own"
    return None


def _line_of(path: str) -> str:
    """Return the content of a file as git reads it, without final line ends; empty if it cannot be read."""
    return (read_small(path, 4096) or b"").decode("utf-8", "surrogateescape").rstrip("\r\n")


def changed_files(top: str, tracked: Sequence[TrackedFile]) -> tuple[str, ...]:
    """Return the names of the tracked files below `top` whose content may differ from git's.

    The content is compared if the recorded state differs, up to MAX_COMPARED_BYTES in total. Filters are not run.
    """
    changed, remaining = [], MAX_COMPARED_BYTES
    for name, object_id, noted in tracked:
        path = os.path.join(top, name)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            changed.append(name)
            continue
        if noted[:16] + noted[36:40] == _noted(status):
            continue
        data = read_small(path, remaining) if stat.S_ISREG(status.st_mode) else None
        remaining -= len(data or b"")
        if data is None or not _is_object(data, object_id):
            changed.append(name)
    return tuple(changed)


def _noted(status: os.stat_result) -> bytes:
    """Return change time, modification time and size in the format of the index."""
    numbers = [*divmod(status.st_ctime_ns, 10**9), *divmod(status.st_mtime_ns, 10**9), status.st_size]
    return b"".join((number & 0xFFFFFFFF).to_bytes(4, "big") for number in numbers)


def _is_object(data: bytes, object_id: bytes) -> bool:
    """Return whether a file with content `data` has this object id in git."""
    import hashlib  # not for every call of a hook

    algorithm = hashlib.sha1 if len(object_id) == 20 else hashlib.sha256  # the repository's choice, not ours
    return algorithm(b"blob %d\0" % len(data) + data).digest() == object_id


_BRANCH = "ref: refs/heads/"
"""Beginning of HEAD if a branch is checked out."""
_OBJECT = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE = regex(r"refs/[^\0-\x20]{1,500}")
_MAX_PACKED_BYTES = 16_000_000


def checked_out(folder: str) -> str | None:
    """Return the id of the commit that HEAD names in the repository around `folder`. `None` if that is uncertain.

    Reads HEAD, a loose ref, packed-refs and the two files of a linked worktree (gitrepository-layout(5)).
    """
    git_folders = _data_of(git_top(folder))
    if not isinstance(git_folders, tuple):
        return None
    git, common = git_folders
    head = _line_of(os.path.join(git, "HEAD"))
    if _OBJECT.fullmatch(head):
        return head
    name = head.removeprefix("ref: ")
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return None
    for place in (git, common):
        loose = _line_of(os.path.join(place, name))
        if _OBJECT.fullmatch(loose):
            return loose
    return _packed(common, name)


def branch_of(folder: str) -> str:
    """Return the branch that HEAD names in the repository around `folder`, or the beginning of a commit's id.

    Empty if that is uncertain. The text is not safe to show.
    """
    git_folders = _data_of(git_top(folder))
    if not isinstance(git_folders, tuple):
        return ""
    head = _line_of(os.path.join(git_folders[0], "HEAD"))
    if _OBJECT.fullmatch(head):
        return head[:8]
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""


def local_history(folder: str) -> frozenset[tuple[str, str]]:
    """Return HEAD and the branches, tags and stash of the repository around `folder`: each name with its value.

    Empty if there is no repository. A name that cannot be read has an empty value.
    """
    folders = git_folders(git_top(folder))
    if folders is None:
        return frozenset()
    git, common = folders
    lines = (read_small(os.path.join(common, "packed-refs"), _MAX_PACKED_BYTES) or b"").decode("utf-8", "replace")
    packed = (line.partition(" ")[::2] for line in lines.splitlines())
    values = {name: value for value, name in packed if name.startswith(_LOCAL)}
    for top in ("refs/heads", "refs/tags"):
        for path, _, names in os.walk(os.path.join(common, top)):
            relative = os.path.relpath(path, common)
            values |= {f"{relative}/{name}": _line_of(os.path.join(path, name)) for name in names}
    stash = _line_of(os.path.join(common, "refs/stash"))
    return frozenset((values | {"HEAD": _line_of(os.path.join(git, "HEAD")), "refs/stash": stash}).items())


def _packed(folder: str, name: str) -> str | None:
    lines = (read_small(os.path.join(folder, "packed-refs"), _MAX_PACKED_BYTES) or b"").decode("utf-8", "replace")
    for line in lines.splitlines():
        object_name, _, of = line.partition(" ")
        if of == name and _OBJECT.fullmatch(object_name):
            return object_name
    return None
