"""Changes of a run in its work folder, as patches for `git apply`. The git data in the folder itself is not trusted."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.record import Record
from harness.safe_files import read_small, remove_if_there
from harness.session.work_folders.folder_copy import fingerprint, walk
from harness.session.work_folders.git_runner import Git, GitFailure, GitTimeout, programs_of
from harness.session.work_folders.work_folder import INDEX, OBJECTS, WorkFolder, identity_of

CHANGES, IGNORED = "changes.patch", "ignored.patch"
MAX_CHANGED_BYTES = 256 << 20
"""Maximum bytes of new and changed files, without ignored ones. Above it, the folder is kept and no patch is made."""
MAX_IGNORED_BYTES = 64 << 20
MAX_IGNORED_FILES = 10_000
"""Maximum bytes and number of the new files in the patch of ignored files (mostly build products)."""
MAX_FAILURES = 200
MAX_NAMED = 20
MAX_PATH_BYTES = 4_000
"""Maximum length of an absolute path. Longer ones cannot be opened (PATH_MAX)."""
_READ_BY_GIT = (b".gitignore", b".gitattributes", b".gitmodules")
_GITLINK = b"160000"


class Patch(Record):
    """A patch file, with the number of files in it, its size and its digest."""

    file: str
    files: int
    bytes: int
    sha256: str

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The fields for the JSON of a result."""
        return {"file": self.file, "files": self.files, "bytes": self.bytes, "sha256": self.sha256}


class Changes(Record):
    """The patches of a run, and the changes that are in neither."""

    patch: Patch | None = None
    ignored: Patch | None = None
    """The patch of new files that the repository ignores. `None` if there are none."""
    lost: tuple[str, ...] = ()
    """Changes that the patches lack, one line each. If there are any, the folder must be kept."""


def take_changes(work_folder: WorkFolder, attempt: str, out: str, environment: Mapping[str, str]) -> Changes:
    """Write two patches into the folder `out`: CHANGES with the differences from the base, IGNORED with new ignored files.

    Both are on disk when this returns. `lost` lists files that git could not read, and the data of nested repositories. Git
    does not keep times, empty folders, or modes other than "executable".
    """
    try:
        return _Taking(work_folder, attempt, out, environment).changes()
    except (UsageError, OSError) as error:
        return Changes(lost=(f"no patch could be made: {error}",))


class Tree(Record):
    """Content of the folder."""

    sizes: Mapping[bytes, int]
    """The size of each file and link, by its path from the root."""
    touched: frozenset[bytes]
    """Files and links created or changed since the given moment, even if their modification time was set back."""
    odd: tuple[str, ...]
    """Descriptions of entries that a patch cannot contain."""


class _Taking:
    """Takes the changes of one run. Uses its own index and object folder, so that the repository's stay unchanged."""

    def __init__(self, work_folder: WorkFolder, attempt: str, out: str, environment: Mapping[str, str]) -> None:
        self._folder = work_folder
        self._out = out
        if identity_of(work_folder.root) != work_folder.identity:
            raise GitFailure(f"{work_folder.root} is not the folder that was made for the task")
        programs = programs_of(work_folder.git_dir, environment)
        self._git = Git(environment, folder=work_folder.root, filters=programs.filters, hooks=programs.hooks)
        self._lost: list[str] = []
        self._failed: set[bytes] = set()
        self._objects = os.path.join(attempt, OBJECTS)
        os.makedirs(self._objects, mode=0o700, exist_ok=True)
        self._variables = {
            "GIT_INDEX_FILE": os.path.join(attempt, INDEX),
            "GIT_OBJECT_DIRECTORY": self._objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(work_folder.objects),
        }

    def changes(self) -> Changes:
        """Compare the folder with the base, and write the patches. Raises GitFailure and OSError."""
        tree = _tree_of(self._folder, os.lstat(self._variables["GIT_INDEX_FILE"]).st_mtime_ns)
        self._lost += tree.odd
        base = self._entries()
        links = {path for path, (mode, _) in base.items() if mode == _GITLINK}
        tracked = base.keys() - links
        inside = {path for path in tree.sizes if _lies_in(path, links)}
        self._lose("new in the folder of a submodule is", inside)
        paths = tree.sizes.keys() - inside
        removed_paths = (tracked - paths) | {path for path in links if not os.path.isdir(self._absolute(path))}
        new = paths - tracked
        ignored = self._ignored(new)
        self._forget_times({path: base[path] for path in tree.touched & tracked & paths})
        self._limit(tree, new - ignored)
        self._run("update-index", "-z", "--force-remove", "--stdin", stdin=_path_list(removed_paths))
        self._add(paths - ignored)
        changed = self._written()
        patch = self._patch(CHANGES, self._folder.base, changed)
        beside = self._ignored_patch(tree, ignored, changed) if ignored else None
        entries = self._entries()
        missed = paths - entries.keys() - self._failed - (ignored if beside is None else set())
        self._lose("git does not keep", missed)
        attributes = {path for path in paths | tracked if os.path.basename(path) == b".gitattributes"}
        if any(path not in entries or entries[path] != base.get(path) for path in attributes):
            self._lose_converted([path for path in entries if entries[path] != base.get(path)], entries)
        return Changes(patch=patch, ignored=beside, lost=tuple(self._lost))

    def _entries(self) -> dict[bytes, tuple[bytes, bytes]]:
        """Return the mode and object of every entry of the index, by its path."""
        entries = [entry.partition(b"\t") for entry in self._run("ls-files", "-z", "--stage").split(b"\0") if entry]
        return {
            path: (mode_and_object.split(b" ")[0], mode_and_object.split(b" ")[1])
            for mode_and_object, _, path in entries
        }

    def _ignored_patch(self, tree: Tree, ignored: Collection[bytes], changed: str) -> Patch | None:
        size = sum(tree.sizes[path] for path in ignored)
        if size > MAX_IGNORED_BYTES or len(ignored) > MAX_IGNORED_FILES:
            self._lost.append(f"{len(ignored)} new files that the repository ignores ({size:,} bytes) are in no patch")
            return None
        self._add(ignored)
        return self._patch(IGNORED, changed, self._written())

    def _ignored(self, new: Collection[bytes]) -> set[bytes]:
        """Return those of `new` that the repository's current .gitignore files ignore."""
        # `./` in front, since git gives names that begin with `:` a special meaning. No index, since git would look for
        # submodules in it.
        path_list = _path_list(b"./" + path for path in new)
        variables = {**self._variables, "GIT_INDEX_FILE": os.devnull + ".none"}
        output = (
            self._run("check-ignore", "-z", "--stdin", stdin=path_list, variables=variables, fine=(0, 1))
            if new
            else b""
        )
        return {path.removeprefix(b"./") for path in output.split(b"\0") if path}

    def _forget_times(self, entries: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Make git compare the content of these files. It would trust their times, which a run can set back."""
        lines = [mode + b" " + sha + b"\t" + path for path, (mode, sha) in entries.items()]
        self._run("update-index", "-z", "--index-info", stdin=_path_list(lines))

    def _limit(self, tree: Tree, new: Iterable[bytes]) -> None:
        """Raise GitFailure if new and changed files exceed MAX_CHANGED_BYTES."""
        self._run("update-index", "-q", "--refresh", fine=(0, 1))
        output = self._run("diff-files", "-z", "--name-only", "--ignore-submodules=all")
        size = sum(tree.sizes.get(path, 0) for path in {*new, *output.split(b"\0")})
        if size > MAX_CHANGED_BYTES:
            raise GitFailure(f"the new and changed files have {size:,} bytes")

    def _add(self, paths: Collection[bytes]) -> None:
        """Add files to the index. A file that git cannot add is recorded as lost; the others are added. Raises GitFailure."""
        options = ("-z", "--add", "--remove", "--replace", "--stdin")
        waiting, failures = [sorted(paths)], 0
        while waiting:
            part = waiting.pop()
            try:
                self._run("update-index", *options, stdin=_path_list(part))
            except GitFailure as error:
                failures += 1
                if isinstance(error, GitTimeout) or failures > MAX_FAILURES:
                    raise
                middle = len(part) // 2
                if middle:
                    waiting += [part[:middle], part[middle:]]
                else:
                    self._failed.update(part)
                    self._lose(f"git does not take ({error})", part)

    def _written(self, index: str | None = None) -> str:
        return self._run("write-tree", variables=self._with_index(index)).decode().strip()

    def _with_index(self, index: str | None) -> Mapping[str, str]:
        return self._variables if index is None else {**self._variables, "GIT_INDEX_FILE": index}

    def _patch(self, name: str, before: str, after: str) -> Patch | None:
        """Write one patch, test that it applies, and move it to its place. Return `None` if it does not apply."""
        path = os.path.join(self._out, name)
        draft = os.path.join(self._objects, f"{name}.{os.urandom(4).hex()}")  # removed with that folder after a kill
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "r+b") as file:
                self._run("diff-tree", "-r", "-p", *_FORM, before, after, into=file.fileno())
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
                file.seek(0)
                digest = _sha256(file)
            problem = self._disproved(draft, before, after) if size else ""
            if problem:
                self._lost.append(f"git could not apply {name}: {problem}")
                return None
            os.replace(draft, path)
        finally:
            remove_if_there(draft)
        names = self._run("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        return Patch(file=name, files=names.count(b"\0"), bytes=size, sha256=digest)

    def _disproved(self, patch: str, before: str, after: str) -> str:
        """Return the reason why `git apply` fails to turn one tree into the other (as for some names), or an empty string."""
        index = os.path.join(self._objects, "proof")
        variables = self._with_index(index)
        try:
            self._run("read-tree", before, variables=variables)
            self._run("apply", "--cached", patch, variables=variables)
            return "" if self._written(index) == after else "it makes something else"
        except GitTimeout:
            raise
        except GitFailure as error:
            return str(error)
        finally:
            remove_if_there(index)

    def _lose_converted(self, changed: Collection[bytes], entries: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Record as lost the files whose bytes git converts because of changed attributes: line ends, `$Id$`, encodings."""
        odd = [path for path in changed if not _holds(self._absolute(path), *entries[path])]
        self._lose("as the .gitattributes stand now, git keeps other bytes of", odd)

    def _lose(self, reason: str, paths: Collection[bytes]) -> None:
        path_names = [os.fsdecode(path) for path in sorted(paths)[:MAX_NAMED]]
        more = f" and {len(paths) - len(path_names)} more" if len(paths) > len(path_names) else ""
        if path_names:
            self._lost.append(f"{reason}: {', '.join(path_names)}{more}")

    def _absolute(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self._folder.root), path)

    def _run(
        self,
        command: str,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        into: int | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        places = [f"--git-dir={self._folder.git_dir}", f"--work-tree={self._folder.root}"]
        return self._git.run(
            [*places, command, *arguments], stdin=stdin, variables=variables or self._variables, into=into, fine=fine
        )


# Options for complete, exact patches that need no other programs (git-diff-tree(1)). `git apply` strips the two prefixes.
_FORM = (
    "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
    "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--unified=3", "--diff-algorithm=myers",
)  # fmt: skip


def _lies_in(path: bytes, links: Collection[bytes]) -> bool:
    """Return whether a path is below one of `links`."""
    while links and (path := os.path.dirname(path)):
        if path in links:
            return True
    return False


def _holds(path: bytes, mode: bytes, identity: bytes) -> bool:
    """Return whether the git object `identity` has a file's exact bytes. True for other modes, which git never converts."""
    if not mode.startswith(b"100"):
        return True

    # The digest covers a header and the content (gitformat-pack(5), git-hash-object(1)). Its length shows the algorithm.
    digest = hashlib.new("sha1" if len(identity) == 40 else "sha256", usedforsecurity=False)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest().encode() == identity


def _path_list(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def _quoted(path: str) -> str:
    """Quote a path for a list that `:` divides (git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES)."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _sha256(file: object) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _tree_of(work_folder: WorkFolder, since: int) -> Tree:
    """Return all files and links of the folder, without git's own data. Raises GitFailure and OSError.

    `since` is a moment in nanoseconds. It is compared with the change time, which no program can set (inode(7)).
    """
    sizes: dict[bytes, int] = {}
    touched: set[bytes] = set()
    odd: list[str] = []
    longest = MAX_PATH_BYTES - len(os.fsencode(work_folder.root))

    def goes_into(path: bytes) -> bool:
        return os.path.basename(path) != b".git" and len(path) < longest

    for path, status in walk(work_folder.root, goes_into):
        name, display_path = os.path.basename(path), os.fsdecode(path)
        is_kept = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
        if name == b".git":
            if not _is_as_made(work_folder, path):
                odd.append(f"the data of the repository in {os.path.dirname(display_path) or 'its top folder'}")
        elif stat.S_ISDIR(status.st_mode):
            if not goes_into(path):
                odd.append(f"{display_path[:100]}..., which is too deep")
        elif is_kept:
            sizes[path] = status.st_size
            if status.st_ctime_ns >= since:
                touched.add(path)
        elif name in _READ_BY_GIT:
            raise GitFailure(f"{display_path} is neither file nor folder, and git would wait for it")
        else:
            odd.append(f"{display_path}, which is neither file, folder nor link")
    return Tree(sizes=sizes, touched=frozenset(touched), odd=tuple(_first_named(odd)))


def _first_named(odd: Collection[str]) -> Iterator[str]:
    yield from [*odd][:MAX_NAMED]
    if len(odd) > MAX_NAMED:
        yield f"and {len(odd) - MAX_NAMED} more"


def _is_as_made(work_folder: WorkFolder, path: bytes) -> bool:
    """Return whether a `.git` in the folder is unchanged since the folder was made."""
    if path == b".git" and work_folder.kind == "worktree":
        # This file names the folder of the worktree's data. It is never followed.
        return read_small(os.path.join(work_folder.root, ".git"), 10_000) == b"gitdir: %b\n" % os.fsencode(
            work_folder.git_dir
        )
    return path in work_folder.inner and work_folder.inner[path] == fingerprint(work_folder.root, path)
