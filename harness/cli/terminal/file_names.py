"""Which files a person may mean below a folder: as git lists them, else as ignore files leave them. Reads no content.

`git ls-files` reads the index, the folders and the ignore files (git-ls-files(1)); it runs no hook, no filter and no
pager. What else a repository's configuration could make it run is switched off by variables, which come before every
file: `core.fsmonitor` names a program, and a missing object of a sparse index could be fetched by another
(git-config(1)). Its variables come from `child_environment`, and it is never taken from the folder that is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from harness.git_settings import OFFLINE, OFFLINE_VARIABLES, UNASKED, as_variables
from harness.small_files import read_small

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_NAMES = 300_000
"""Some 100 MB of memory; a monorepo of more is searched in what comes first."""
MOST_BYTES = 64_000_000
"""Of what git lists: 300,000 names of 200 bytes."""
MOST_SECONDS = 20.0
"""For git, and for walking: nobody waits for a completion that long."""
MOST_IGNORE_BYTES = 1_000_000
"""Of one ignore file; a longer one is not looked at."""
IGNORE_FILES = (".gitignore", ".ignore")
NEVER_ENTERED = frozenset(
    ".git .hg .svn .jj node_modules __pycache__ .venv .tox .nox .mypy_cache .ruff_cache .pytest_cache".split()
)
"""Folders in which, without git to ask, nobody means a file."""
_GIT_SETTINGS = (*UNASKED, OFFLINE, ("core.untrackedCache", "false"), ("submodule.recurse", "false"))

TRACKED = ("--cached",)
UNTRACKED = ("--others", "--exclude-standard")


def git_names(root: str, which: tuple[str, ...], environment: Mapping[str, str]) -> list[str] | None:
    """Return what git lists below `root` (absolute), relative to it; None where it lists nothing that can be relied on.

    At most MOST_NAMES of them. It gets MOST_SECONDS and has no terminal that it could ask on.
    """
    import subprocess
    import threading

    from harness.tools.environment import child_environment

    variables = child_environment(environment)
    git = _program("git", variables["PATH"], root)
    if git is None:
        return None
    try:
        process = subprocess.Popen(
            [git, "--no-pager", "ls-files", "-z", *which],
            cwd=root,
            env={**variables, **OFFLINE_VARIABLES, **as_variables(_GIT_SETTINGS)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    late = threading.Timer(MOST_SECONDS, process.kill)
    late.daemon = True
    late.start()
    with process:
        data = process.stdout.read(MOST_BYTES) if process.stdout else b""
        if len(data) == MOST_BYTES:
            process.kill()
    late.cancel()
    if process.returncode != 0 and len(data) < MOST_BYTES:
        return None
    names = os.fsdecode(data).split("\0")
    names.pop()  # what is behind the last end: nothing, or a name that was cut
    return names[:MOST_NAMES]


def _program(name: str, path: str, root: str) -> str | None:
    """Return where a program lies that is none of the folder `root`."""
    below = f"{os.path.realpath(root).rstrip('/')}/"
    for folder in path.split(":"):
        found = os.path.realpath(os.path.join(folder, name))
        if not f"{found}/".startswith(below) and os.path.isfile(found) and os.access(found, os.X_OK):
            return os.path.join(folder, name)
    return None


def walked_names(root: str, *, seconds: float = MOST_SECONDS) -> list[str]:
    """Return the files below `root` that its ignore files leave, relative to it; links are named and not followed.

    At most MOST_NAMES, and what was found within `seconds`.
    """
    import time

    end = time.monotonic() + seconds
    names: list[str] = []
    waiting: list[tuple[str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [("", ())]
    while waiting and len(names) < MOST_NAMES and time.monotonic() < end:
        folder, specs = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            continue
        specs += tuple(_specs(folder, entries))
        for entry in entries:
            name = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NEVER_ENTERED and not _ignored(f"{name}/", specs):
                    waiting.append((f"{name}/", specs))
            elif not _ignored(name, specs):
                names.append(name)
    return names[:MOST_NAMES]


def _specs(folder: str, entries: list[os.DirEntry[str]]) -> Iterator[tuple[str, GitIgnoreSpec]]:
    """Yield what the ignore files of one folder say, with the folder that they speak of."""
    for entry in entries:
        if entry.name not in IGNORE_FILES:
            continue
        data = read_small(entry.path, MOST_IGNORE_BYTES)
        if data:
            from pathspec import GitIgnoreSpec

            yield folder, GitIgnoreSpec.from_lines(filter(_is_pattern, data.decode("utf-8", "replace").splitlines()))


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _ignored(name: str, specs: tuple[tuple[str, GitIgnoreSpec], ...]) -> bool:
    """Say whether the nearest ignore file that speaks of a name leaves it out (gitignore(5))."""
    for folder, spec in reversed(specs):
        found = spec.check_file(name[len(folder) :]).include
        if found is not None:
            return found
    return False
