"""What a run changed in its fresh folder, as patches that git applies; nothing of the folder's own git data is believed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping

from harness.actions import JsonValue
from harness.cli.tasks.fresh import INDEX, OBJECTS, Fresh, git_for
from harness.cli.tasks.git import Git, GitFailure
from harness.errors import UsageError
from harness.record import Record

CHANGES, IGNORED = "changes.patch", "ignored.patch"
MAX_NEW_BYTES = 256 << 20
"""Of new files that are not ignored: with more the folder is kept in the place of a patch."""
MAX_IGNORED_BYTES = 64 << 20
MAX_IGNORED_FILES = 10_000
"""Of new files that the repository ignores (build products, mostly)."""
MAX_NAMED = 20
_GITLINK = b"160000"


class Patch(Record):
    """A file that holds changes."""

    file: str
    files: int
    bytes: int
    sha256: str

    @property
    def as_json(self) -> dict[str, JsonValue]:
        """The same, for a result."""
        return {"file": self.file, "files": self.files, "bytes": self.bytes, "sha256": self.sha256}


class Changes(Record):
    """What was changed, and what of that is in no patch."""

    patch: Patch | None = None
    ignored: Patch | None = None
    """Changes of new files that the repository ignores; None where there are none."""
    lost: tuple[str, ...] = ()
    """Why the folder must be kept: what no patch holds, a line each."""


class _Tree(Record):
    """What was found in the folder."""

    paths: frozenset[bytes]
    """Files and links, from the root."""
    sizes: Mapping[bytes, int]
    odd: tuple[str, ...]
    """What a patch cannot hold."""


def take_changes(fresh: Fresh, attempt: str, out: str, environment: Mapping[str, str]) -> Changes:
    """Write what differs from the base to CHANGES in the folder `out`, and new files that are ignored to IGNORED.

    Both are on disk when this returns. A file that could not be read, or data of a repository inside, is named in `lost`;
    modes beyond "executable", times and empty folders are nothing that git keeps.
    """
    try:
        return _Taking(fresh, attempt, out, environment).changes()
    except (GitFailure, UsageError) as error:
        return Changes(lost=(f"no patch could be made: {error}",))
    except OSError as error:
        return Changes(lost=(f"no patch could be made: {error}",))


class _Taking:
    """One taking of the changes, with an index and objects of its own: the repository's are not touched."""

    def __init__(self, fresh: Fresh, attempt: str, out: str, environment: Mapping[str, str]) -> None:
        self._fresh = fresh
        self._out = out
        self._git: Git = git_for(fresh, environment)
        self._lost: list[str] = []
        own = os.path.join(attempt, OBJECTS)
        os.makedirs(own, mode=0o700, exist_ok=True)
        self._variables = {
            "GIT_INDEX_FILE": os.path.join(attempt, INDEX),
            "GIT_OBJECT_DIRECTORY": own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(fresh.objects),
        }

    def changes(self) -> Changes:
        """Compare, and write the patches. Raises GitFailure and OSError."""
        tree = _found(self._fresh.root)
        self._lost += tree.odd
        entries = [entry.partition(b"\t") for entry in self._run("ls-files", "-z", "--stage").split(b"\0") if entry]
        links = {path for told, _, path in entries if told.startswith(_GITLINK)}
        tracked = {path for _, _, path in entries} - links
        gone = (tracked - tree.paths) | {path for path in links if not os.path.isdir(self._absolute(path))}
        new = tree.paths - tracked
        ignored = self._ignored(new)
        self._limit(tree, new - ignored)
        self._run("update-index", "-z", "--force-remove", "--stdin", given=_listed(gone))
        self._add(tree.paths - ignored)
        changed = self._written()
        patch = self._patch(CHANGES, self._fresh.base, changed)
        beside = self._ignored_patch(tree, ignored, changed) if ignored else None
        kept = {path for path in self._run("ls-files", "-z").split(b"\0") if path}
        missed = tree.paths - kept - (ignored if beside is None else set())
        self._lose("git does not keep", missed)
        return Changes(patch=patch, ignored=beside, lost=tuple(self._lost))

    def _ignored_patch(self, tree: _Tree, ignored: Collection[bytes], changed: str) -> Patch | None:
        size = sum(tree.sizes[path] for path in ignored)
        if size > MAX_IGNORED_BYTES or len(ignored) > MAX_IGNORED_FILES:
            self._lost.append(f"{len(ignored)} new files that the repository ignores ({size:,} bytes) are in no patch")
            return None
        self._add(ignored)
        return self._patch(IGNORED, changed, self._written())

    def _ignored(self, new: Collection[bytes]) -> set[bytes]:
        """Return which of these paths the repository ignores, as its .gitignore files stand now."""
        # `./` in front: a name that begins with `:` would be read as more than a name. No index: it would be asked about
        # submodules.
        given = _listed(b"./" + path for path in new)
        variables = {**self._variables, "GIT_INDEX_FILE": os.devnull + ".none"}
        told = self._run("check-ignore", "-z", "--stdin", given=given, variables=variables, fine=(0, 1)) if new else b""
        return {path.removeprefix(b"./") for path in told.split(b"\0") if path}

    def _limit(self, tree: _Tree, new: Iterable[bytes]) -> None:
        size = sum(tree.sizes[path] for path in new)
        if size > MAX_NEW_BYTES:
            raise GitFailure(f"the new files have {size:,} bytes")

    def _add(self, paths: Collection[bytes]) -> None:
        options = ("-z", "--add", "--remove", "--replace", "--stdin")
        self._run("update-index", *options, given=_listed(paths))

    def _written(self) -> str:
        return self._run("write-tree").decode().strip()

    def _patch(self, name: str, before: str, after: str) -> Patch:
        """Write one patch beside its place and move it there."""
        path = os.path.join(self._out, name)
        made = f"{path}.{os.urandom(4).hex()}.tmp"
        descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "r+b") as file:
                self._run("diff-tree", "-r", "-p", *_FORM, before, after, into=file.fileno())
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
                file.seek(0)
                digest = _sha256(file)
            os.replace(made, path)
        except BaseException:
            os.unlink(made)
            raise
        names = self._run("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        return Patch(file=name, files=names.count(b"\0"), bytes=size, sha256=digest)

    def _lose(self, what: str, paths: Collection[bytes]) -> None:
        named = [os.fsdecode(path) for path in sorted(paths)[:MAX_NAMED]]
        more = f" and {len(paths) - len(named)} more" if len(paths) > len(named) else ""
        if named:
            self._lost.append(f"{what}: {', '.join(named)}{more}")

    def _absolute(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self._fresh.root), path)

    def _run(
        self,
        command: str,
        *arguments: str,
        given: bytes = b"",
        variables: Mapping[str, str] | None = None,
        into: int | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        places = [f"--git-dir={self._fresh.git_dir}", f"--work-tree={self._fresh.root}"]
        return self._git.run(
            [*places, command, *arguments], given=given, variables=variables or self._variables, into=into, fine=fine
        )


# Whole, exact and without programs (git-diff-tree(1)); the two prefixes are what `git apply` takes off.
_FORM = (
    "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
    "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--unified=3", "--diff-algorithm=myers",
)  # fmt: skip


def _found(root: str) -> _Tree:
    """Return every file and link below a root, but for its own `.git`. Raises OSError for what cannot be read."""
    paths: set[bytes] = set()
    sizes: dict[bytes, int] = {}
    odd: list[str] = []
    start = os.fsencode(root)
    waiting = [b""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(start, below)) as entries:
            for entry in entries:
                path = os.path.join(below, entry.name)
                if entry.name == b".git":
                    if below:
                        odd.append(f"the data of the repository in {os.fsdecode(below)}")
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                else:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        paths.add(path)
                        sizes[path] = status.st_size
                    else:
                        odd.append(f"{os.fsdecode(path)}, which is neither file, folder nor link")
    return _Tree(paths=frozenset(paths), sizes=sizes, odd=tuple(odd[:MAX_NAMED]))


def _listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def _quoted(path: str) -> str:
    """Return a path for a list that `:` divides (git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES)."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _sha256(file: object) -> str:
    import hashlib

    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
