"""Mirrors: bare repositories in the state folder, one for each address and each bundle, that the worktrees of tasks share."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from harness.digest import digest_of
from harness.errors import UsageError
from harness.safe_files import name_beside, replace_file, sync_path
from harness.session.state import State
from harness.session.work_folders.git_runner import Git, GitFailure, GitTimeout
from harness.session.work_folders.packed import take_copy
from harness.session.work_folders.transport import LET_PASS, FetchingGit, local_path
from harness.session.work_folders.work_folder import locked, removed
from harness.text.visible import visible_line

MIRRORS = "mirrors"
"""The folder of all mirrors in the state folder."""
_COMMITS = "refs/worktree/commits"
"""References to the commits that are complete in the mirror.

References below `refs/worktree` belong to the mirror alone (gitrepository-layout(5)): `git log --all` in a task's worktree
does not show the base commits of other tasks, except of those that are running.
"""
_LEFT_SECONDS = 24 * 3600
"""Age in seconds after which a partial pack is certainly left over from a killed git."""


def mirror_of(address: str, commit: str, environment: Mapping[str, str], tell: Callable[[str], None]) -> str:
    """Return the mirror of the repository at `address`, with `commit` (a full ID) and its whole history in it.

    A missing commit is fetched by its ID, or else with all branches and tags. Simultaneous callers fetch it once.
    `tell` gets a message about a fetch. Raises UsageError if it cannot be fetched.
    """
    local = local_path(address)
    if local is not None and not os.path.isdir(local):
        raise UsageError(f"repo: no such folder: {local}")
    place = local or address
    path = _path(f"{digest_of(os.fsencode(place))}{'-sha256' if len(commit) == 64 else ''}", environment)
    if _has(path, commit, environment):
        return path
    with _locked(path):
        if not os.path.isdir(path):
            with _new(path) as draft:
                _init(draft, commit, environment)
        if _has(path, commit, environment):
            return path
        if _lacks(path, commit, environment):  # otherwise it was fetched with another commit
            _forget_parts(path)
            tell(f"fetching {visible_line(place, 300)}")
            _fetch(path, place, commit, environment)
        _note(path, commit)
    return path


def mirror_of_bundle(bundle: str, sha256: str, commit: str, environment: Mapping[str, str]) -> str:
    """Return the mirror of the file `bundle` (git-bundle(1)). Its digest is checked before git reads it.

    Raises UsageError for a file with another digest, an incomplete bundle, and one without the commit.
    """
    path = _path(f"bundle-{sha256}", environment)
    if _has(path, commit, environment):
        return path
    with _locked(path):
        if not os.path.isdir(path):
            with _new(path) as draft:
                _init(draft, commit, environment)
                _unbundle(draft, bundle, sha256, environment)
        if problem := _lacks(path, commit, environment):
            raise UsageError(f"the bundle {bundle}: {problem}")
        _note(path, commit)
    return path


def _path(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a mirror, links followed, as git records it."""
    return os.path.join(os.path.realpath(State.of(environment).state), MIRRORS, f"{name}.git")


def _has(path: str, commit: str, environment: Mapping[str, str]) -> bool:
    """Return whether a mirror exists and has the complete commit."""
    if not os.path.isfile(os.path.join(path, _COMMITS, commit)):
        return False
    try:
        Git(environment, folder=path).run([f"--git-dir={path}", "cat-file", "-e", f"{_COMMITS}/{commit}^{{commit}}"])
    except GitFailure:
        return False
    return True


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold the lock of a mirror. Raises UsageError if that fails, or if the block cannot write the mirror."""
    with locked(f"{path}.lock"):
        try:
            yield
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None


@contextmanager
def _new(path: str) -> Iterator[str]:
    """Yield a temporary folder for a new mirror. Renamed to `path` when complete, so a kill leaves no partial mirror."""
    folder, name = os.path.split(path)
    for file_name in os.listdir(folder):
        if file_name.startswith(f"{name}.") and file_name.endswith(".tmp"):
            removed(os.path.join(folder, file_name))  # left by a killed process, since we hold the lock
    draft = name_beside(path)
    try:
        os.mkdir(draft, 0o700)
        yield draft
        os.rename(draft, path)
        sync_path(folder)
    finally:
        removed(draft)


def _init(path: str, commit: str, environment: Mapping[str, str]) -> None:
    """Make an empty bare repository with the object format of `commit`. Its configuration has no server and no program."""
    form = "sha256" if len(commit) == 64 else "sha1"
    words = ["init", "--quiet", "--bare", "--template=", f"--object-format={form}", path]
    Git(environment, folder="/").run(words, variables={"GIT_DEFAULT_REF_FORMAT": "files"})


def _fetch(path: str, place: str, commit: str, environment: Mapping[str, str]) -> None:
    """Fetch a commit with its history from a repository. Raises UsageError.

    INVARIANT: git writes only objects, no references, so a kill leaves no lock file that blocks the next fetch.
    """
    git = FetchingGit(environment, folder=path)
    fetch = [
        f"--git-dir={path}", "fetch", "--quiet", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head",
        "--no-auto-maintenance",
    ]  # fmt: skip
    label = f"repo: {visible_line(place, 300)}"
    try:
        git.run([*fetch, "--", place, commit])
    except GitTimeout as error:
        raise UsageError(f"{label}: {error}") from None
    except GitFailure as refused:
        if not _lacks(path, commit, environment):
            return  # git failed at another task's worktree that was just being added
        try:
            refs = git.run(["ls-remote", "--heads", "--tags", "--", place])
            tips = dict.fromkeys(re.findall(rb"^([0-9a-f]{40,64})\t.*(?<!\^\{\})$", refs, re.MULTILINE))
            if tips:
                git.run([*fetch, "--stdin", "--", place], stdin=b"".join(tip + b"\n" for tip in tips))
        except GitFailure as error:
            raise UsageError(f"{label} cannot be fetched: {error}") from None
        if not tips:
            raise UsageError(f"{label} has no branches or tags, and refuses the commit: {refused}") from None
    if problem := _lacks(path, commit, environment):
        raise UsageError(f"{label}: {problem}")


def _lacks(path: str, commit: str, environment: Mapping[str, str]) -> str:
    """Return the reason why a commit is missing or incomplete, or an empty string.

    After a kill, a part of its history may be missing.
    """
    git, git_dir = Git(environment, folder=path), f"--git-dir={path}"
    try:
        kind = git.run([git_dir, "cat-file", "-t", commit]).decode().strip()
    except GitFailure:
        return f"missing commit {commit}"
    if kind != "commit":
        return f"{commit} is a {kind}, not a commit"
    try:
        # Without the other worktrees: one that is being added, or was when git was killed, has no commit yet.
        git.run([git_dir, "rev-list", "--single-worktree", "--quiet", "--objects", commit, "--not", "--all"])
    except GitFailure as error:
        return f"the history of {commit} is not whole: {error}"
    return ""


def _note(path: str, commit: str) -> None:
    """Record a complete commit as a loose reference, atomically and without git's lock files."""
    folder = os.path.join(path, _COMMITS)
    os.makedirs(folder, exist_ok=True)
    replace_file(os.path.join(folder, commit), (f"{commit}\n".encode(),))
    sync_path(folder)


def _unbundle(path: str, bundle: str, sha256: str, environment: Mapping[str, str]) -> None:
    """Unpack a bundle into a new mirror, and check its objects. Raises UsageError."""
    git, copy = Git(environment, folder=path), os.path.join(path, "bundle")
    take_copy(bundle, sha256, copy)
    checks = [word for name in LET_PASS for word in ("-c", f"fsck.{name}=ignore")]
    git_dir = f"--git-dir={path}"
    try:
        git.run([git_dir, "bundle", "verify", "--quiet", copy])
        git.run([git_dir, "bundle", "unbundle", copy])
        # Git checks fetched objects, but not those of a bundle (before git 2.46).
        git.run([*checks, git_dir, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"])
    except GitFailure as error:
        raise UsageError(f"the bundle {bundle} cannot be used: {error}") from None
    os.unlink(copy)


def _forget_parts(path: str) -> None:
    """Remove partial packs that killed fetches left."""
    folder = os.path.join(path, "objects", "pack")
    try:
        with os.scandir(folder) as entries:
            old = [
                entry.path
                for entry in entries
                if entry.name.startswith("tmp_")
                and entry.stat(follow_symlinks=False).st_mtime < time.time() - _LEFT_SECONDS
            ]
    except OSError:
        return
    for part in old:
        removed(part)
