"""The names of the files below a folder, for Tab. They are gathered while a person types, never at the start.

It names files and reads none. What is asked for first waits a moment for the names; later questions are answered at
once, from names that are gathered again in the background when they are some seconds old.
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
"""Some 100 MB of memory; a monorepo of more is searched in what comes first."""
MOST_BYTES = 64_000_000
"""Maximum size of git's list: 300,000 names of 200 bytes."""
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
    names.pop()  # what is behind the last end: nothing, or a name that was cut
    return names[:MOST_NAMES]


def walked_names(root: str, *, seconds: float = MOST_SECONDS) -> list[str]:
    """Return the files below `root`, relative to it; links are named and not followed.

    At most MOST_NAMES, and what was found within `seconds`.
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
"""More than a menu shows; who types on gets others."""
LONGEST_QUESTION = 200
"""Maximum number of characters of a question; further ones do not count."""
REST_SECONDS = 0.15
"""Seconds that a question waits for untracked files after git's list of tracked ones."""


class FileIndex:
    """The files below one folder. Every method may be called from any thread."""

    first_seconds = 1.5
    """Seconds that a question waits for the first names; later ones are there for the next question."""
    fresh_seconds = 5.0
    """Names that are older are gathered again when they are asked for."""
    rest_share = 20.0
    """Names that took a second to gather are gathered again after that many seconds at the earliest."""

    def __init__(self, root: str, environment: Mapping[str, str]) -> None:
        """Take the folder, absolute. Nothing is looked at before the first question."""
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
        """Return the names that fit what was typed, the best first; at most MOST_MATCHES. See `NameIndex.matches`."""
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
        """Yield the names: of the first time what git tracks alone, which is quick, and then all of them."""
        tracked = git_names(self._root, TRACKED, self._environment)
        if tracked is None:
            yield NameIndex(walked_names(self._root))
            return
        if not self._first_event.is_set():
            yield NameIndex(tracked)
        untracked = git_names(self._root, UNTRACKED, self._environment) or []
        yield NameIndex(tracked + [name for name in untracked if NEVER_ENTERED.isdisjoint(name.split("/")[:-1])])


class NameIndex:
    """Names of files, the shorter first, ready to be searched."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take names relative to one folder. Names that are not UTF-8 are left out, since a prompt cannot hold them."""
        texts = sorted(name for name in names if name.isascii() or name.encode(errors="ignore").decode() == name)
        self._names = sorted(texts, key=len)
        self._paths = [name.lower() for name in self._names]

    def matches(self, question: str) -> Sequence[str]:
        """Return the names that match `question` in any case: at most MOST_MATCHES.

        First those whose base name begins with it (with a `/` in it: whose path does, then a part of it), then those
        that contain it, then those that have its characters in this order; in each group the shorter first, then by
        name.
        """
        query = question[:LONGEST_QUESTION].lower()
        is_path = "/" in query
        inside = [(name, path) for name, path in zip(self._names, self._paths, strict=True) if query in path]
        # Each step goes to the next place of a character and never back (`*+`): the time is linear in the name.
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
