"""The program of a hook: its path, the files that its arguments name, and their digest."""

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
"""Folders of the system, with the interpreters. Write access to them allows more than changing a hook."""


class HookProgram:
    """The program of one hook. Created once per session."""

    def __init__(self, hook: HookDeclaration, workspace: str, environment: Mapping[str, str]) -> None:
        """Find the program by PATH of `environment` (from `child_environment`). A missing one fails at each run.

        INVARIANT: no call of the model may change the programs that decide on calls. Raises UsageError for a hook in
        the workspace. `files` are protected from writing in any case.
        """
        first, *words = hook.command
        if first.startswith("~/"):
            first = os.path.join(environment.get("HOME", "~"), first[2:])
        self._first_word = first
        is_path = "/" in first
        first = os.path.join(workspace, first) if is_path else program_outside(workspace, first, environment) or ""
        self.argv = (first, *words)
        self.folder = workspace if hook.form.workspace_variable else "/"
        """Working directory of the program: the workspace if the form expects it, else `/`.

        An interpreter that starts in `/` cannot load files that the model wrote to the workspace.
        """
        self._words = [os.path.join(self.folder, word) for word in words]
        self._parts = [first, *self._named_files()]
        """The program, and the files that its arguments name, such as the script of an interpreter."""
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
        """The files that no call may write: the paths as written and with links resolved."""
        names = (name for part in self._parts if part for name in (part, os.path.realpath(part)))
        return tuple(dict.fromkeys(name for name in names if not name.startswith(_OF_THE_SYSTEM)))

    def problem(self) -> str:
        """Return the reason why the program cannot start, or an empty string."""
        first = self.argv[0]
        if new := next((name for name in self._named_files() if name not in self._parts), None):
            return f"its command names {new}, which did not exist when the session began"
        if not first:
            return f"{self._first_word} was not found in PATH outside of the workspace"
        if not os.path.exists(first):
            return f"{first} does not exist"
        if not os.path.isfile(first):
            return f"{first} is not a file"
        return "" if os.access(first, os.X_OK) else f"{first} is not executable"

    def digest(self) -> str | None:
        """Return the SHA-256 of the file, or `None` if any file cannot be read.

        For several files, it is the SHA-256 of their digests, one per line.
        """
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
