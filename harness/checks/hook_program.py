"""The program of a hook: its path, its files as far as its words name them, and their digest."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.checks.hook_declaration import HookDeclaration
from harness.digest import digest_of
from harness.errors import UsageError
from harness.process.environment import leads_through, program_outside
from harness.safe_files import read_small

MOST_BYTES = 64 << 20
"""Maximum size of a file whose digest is computed."""
_OF_THE_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/nix/store/")
"""Folders of interpreters. A program that can write there can do more than change a hook."""


class HookProgram:
    """The program of one hook. Made once a session."""

    def __init__(self, hook: HookDeclaration, workspace: str, environment: Mapping[str, str]) -> None:
        """Find it by PATH in the output of `child_environment`. A missing program fails on each run.

        INVARIANT: no call of the model may change the programs that decide on calls. Raises UsageError for a hook in
        the workspace; `files` are protected from writing in any case.
        """
        first, *words = hook.command
        if first.startswith("~/"):
            first = os.path.join(environment.get("HOME", "~"), first[2:])
        self._first_word = first
        is_path = "/" in first
        first = os.path.join(workspace, first) if is_path else program_outside(workspace, first, environment) or ""
        self.argv = (first, *words)
        self.folder = workspace if hook.form.workspace_variable else "/"
        """Working folder of the program. Some forms expect the workspace; in `/` no interpreter finds files of the model."""
        self._words = [os.path.join(self.folder, word) for word in words]
        self._parts = [first, *self._named_files()]
        """The program, and files among its words: of an interpreter its script, it may be."""
        inside = next((part for part in self._parts if part and leads_through(part, workspace)), None)
        if inside is not None:
            origin = "" if hook.origin is None else f"{hook.origin}: "
            raise UsageError(
                f"{origin}[[hook]] command: {os.path.relpath(inside, workspace)} is in the workspace, where calls can "
                "change it; move it elsewhere"
            )
        self._digests: dict[tuple[str, int, int, int], str] = {}

    def _named_files(self) -> list[str]:
        names = (name for word in self._words for name in (word, os.path.join(word, "__main__.py")))
        return [file for file in names if os.path.isfile(file)]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that no call may write, as they are named and where their links lead."""
        names = (name for part in self._parts if part for name in (part, os.path.realpath(part)))
        return tuple(dict.fromkeys(name for name in names if not name.startswith(_OF_THE_SYSTEM)))

    def problem(self) -> str:
        """Return the reason why it cannot be started, or an empty string."""
        first = self.argv[0]
        if new := next((name for name in self._named_files() if name not in self._parts), None):
            return f"{new} did not exist when the session began"
        if not first:
            return f"{self._first_word} was not found in PATH outside of the workspace"
        if not os.path.exists(first):
            return f"{first} does not exist"
        if not os.path.isfile(first):
            return f"{first} is not a file"
        return "" if os.access(first, os.X_OK) else f"{first} is not executable"

    def digest(self) -> str | None:
        """Return the SHA-256 of its file; of several files, that of their digests, line by line. None: not to be had."""
        digests = [self._digest(part) for part in self._parts]
        if None in digests:
            return None
        return digests[0] if len(digests) == 1 else digest_of("\n".join(map(str, digests)).encode())

    def _digest(self, path: str) -> str | None:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        key = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._digests:
            data = read_small(path, MOST_BYTES)
            if data is None:
                return None
            self._digests[key] = digest_of(data)
        return self._digests[key]
