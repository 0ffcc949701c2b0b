"""The names of the files below a folder, for completion. They are gathered at the first query, not at the start.

No file is read. The first query waits a moment for the names. Later queries return at once; names that are some seconds
old are then gathered again in the background.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from harness.process.environment import (
    OFFLINE,
    OFFLINE_VARIABLES,
    UNASKED,
    as_variables,
    child_environment,
    program_outside,
)

MOST_NAMES = 300_000
"""Maximum number of names, about 100 MB of memory. In a larger repository, only the first names are searched."""
MOST_BYTES = 64_000_000
"""Maximum size of git's list, in bytes: about 300,000 names of 200 bytes."""
MOST_SECONDS = 20.0
"""Time limit for git and for walking, in seconds: a completion is not worth more."""
NEVER_ENTERED = frozenset(
    ".git .hg .svn .jj node_modules __pycache__ .venv .tox .nox .mypy_cache .ruff_cache .pytest_cache".split()
)
"""Folders whose untracked files are not offered."""
_GIT_SETTINGS = (*UNASKED, OFFLINE, ("core.untrackedCache", "false"), ("submodule.recurse", "false"))

TRACKED = ("--cached",)
UNTRACKED = ("--others", "--exclude-standard")


def git_names(root: str, which: tuple[str, ...], environment: Mapping[str, str]) -> list[str] | None:
    """Return the files that git lists below `root` (absolute), relative to it; `None` if the list is unreliable.

    At most MOST_NAMES of them. Git has MOST_SECONDS and no terminal to ask on.
    """
    import subprocess

    variables = child_environment(environment)
    git = program_outside(root, "git", variables)
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
    names.pop()  # the text after the last NUL: empty, or a cut name
    return names[:MOST_NAMES]


def walked_names(root: str, *, seconds: float = MOST_SECONDS) -> list[str]:
    """Return the files below `root`, relative to it. Links are listed and not followed.

    Stops after MOST_NAMES names, or after `seconds`.
    """
    end = time.monotonic() + seconds
    names: list[str] = []
    waiting = [""]
    while waiting and len(names) < MOST_NAMES and time.monotonic() < end:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                names.append(f"{folder}{entry.name}")
            elif entry.name not in NEVER_ENTERED:
                waiting.append(f"{folder}{entry.name}/")
    return names[:MOST_NAMES]


MOST_MATCHES = 50
"""Maximum number of matches, more than a menu shows. Further typing finds others."""
LONGEST_QUESTION = 200
"""Maximum number of characters of a query. Further ones are ignored."""
REST_SECONDS = 0.15
"""Seconds that a query waits for untracked files once it has the tracked ones."""


WALK_SECONDS = 0.2
"""Seconds of the short walk whose names are offered until all are gathered."""


class FileIndex:
    """The files below one folder. Every method may be called from any thread."""

    first_seconds = 1.5
    """Maximum seconds that a query waits for the first names. Names that arrive later appear in the next query."""
    fresh_seconds = 5.0
    """Age of names, in seconds, after which a query gathers them again."""
    rest_share = 20.0
    """Minimum age of names before they are gathered again, as a multiple of the time that gathering took."""

    def __init__(self, root: str, environment: Mapping[str, str]) -> None:
        """Use the folder `root` (absolute). It is not examined before the first query."""
        self._root = root
        self._environment = environment
        self._lock = threading.Lock()
        self._first_event = threading.Event()
        self._all = threading.Event()
        self._names = NameIndex(())
        self._gathering = False
        self._end_time = -math.inf
        """Time at which the names were complete."""
        self._took = 0.0

    def matches(self, question: str) -> Sequence[str]:
        """Return the names that match the typed text, best first: at most MOST_MATCHES. See `NameIndex.matches`."""
        self._gather_if_old()
        self._first_event.wait(self.first_seconds)
        self._all.wait(REST_SECONDS)
        names = self._names.matches(question)
        if not names and not self._all.is_set():
            self._all.wait(self.first_seconds)
            names = self._names.matches(question)
        return names

    def _gather_if_old(self) -> None:
        with self._lock:
            age = time.monotonic() - self._end_time
            if self._gathering or age < max(self.fresh_seconds, self.rest_share * self._took):
                return
            self._gathering = True
        threading.Thread(target=self._gather, name="file names", daemon=True).start()

    def _gather(self) -> None:
        started = time.monotonic()
        try:
            for names in self._gathered():
                self._names = names
                self._first_event.set()
        finally:
            with self._lock:
                self._end_time = time.monotonic()
                self._took = self._end_time - started
                self._gathering = False
            self._first_event.set()
            self._all.set()

    def _gathered(self) -> Iterator[NameIndex]:
        """Yield indexes of the names. The first time, yield a quick one first: the tracked files, or those of a short walk."""
        tracked = git_names(self._root, TRACKED, self._environment)
        if not self._first_event.is_set():
            yield NameIndex(tracked or walked_names(self._root, seconds=WALK_SECONDS))
        if tracked is None:
            yield NameIndex(walked_names(self._root))
            return
        untracked = git_names(self._root, UNTRACKED, self._environment) or []
        yield NameIndex(tracked + [name for name in untracked if NEVER_ENTERED.isdisjoint(name.split("/")[:-1])])


class NameIndex:
    """Names of files for searching, shorter names first."""

    def __init__(self, names: Iterable[str]) -> None:
        """Use names relative to one folder. Names that are not UTF-8 are dropped, because a prompt cannot contain them."""
        texts = sorted(name for name in names if name.isascii() or name.encode(errors="ignore").decode() == name)
        self._names = sorted(texts, key=len)
        self._paths = [name.lower() for name in self._names]

    def matches(self, question: str) -> Sequence[str]:
        """Return the names that match `question`, ignoring case: at most MOST_MATCHES.

        First come names whose base name begins with `question`. If it contains a `/`, these are names whose path begins
        with it, then names with a parent folder after which it matches. Next come names that contain it, then names
        that contain its characters in order. In each group, shorter names come first, then alphabetical order.
        """
        query = question[:LONGEST_QUESTION].lower()
        is_path = "/" in query
        inside = [(name, path) for name, path in zip(self._names, self._paths, strict=True) if query in path]
        # Possessive steps (`*+`) never go back, so the time is linear in the length of the name.
        in_order = re.compile("".join(f"[^{re.escape(char)}]*+{re.escape(char)}" for char in query)).match
        kinds = (
            (name for name, path in inside if path.startswith(query, 0 if is_path else path.rfind("/") + 1)),
            (name for name, path in inside if is_path and f"/{query}" in path),
            (name for name, _ in inside),
            (name for name, path in zip(self._names, self._paths, strict=True) if in_order(path)),
        )
        matches: dict[str, None] = {}
        for name in chain.from_iterable(kinds):
            matches[name] = None
            if len(matches) == MOST_MATCHES:
                break
        return tuple(matches)
