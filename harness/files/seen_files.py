"""Files that run without being named in a call, such as those of a script tool: their content as the user last saw it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from harness.actions import Access, Place
from harness.digest import digest_of
from harness.errors import ToolError
from harness.files.diffs import compare
from harness.files.workspace import Workspace
from harness.record import Record

MAX_KEPT_BYTES = 1_000_000
"""Maximum size of a file whose change is shown as a diff, in bytes. A larger one is only named."""
MAX_READ_BYTES = 50_000_000
"""Maximum size of a file to read, in bytes. Of a larger one, inode, size and times are compared: any change alters one."""
MAX_SHOWN_LINES = 200


class SeenFile(Record):
    """A file as it is at one moment."""

    real: str
    """The resolved path."""
    sha256: str
    """Digest of the content. Empty unless it is a readable regular file."""
    data: bytes | None
    """Content of the file. `None` if it is too large to keep."""


class SeenFiles:
    """Files of a workspace that programs run by name, with their content since the session began."""

    def __init__(self, names: Sequence[str], workspace: Workspace) -> None:
        """Record the state of the files with these names. A name outside the workspace is ignored.

        A relative name counts even if it is a link to a file outside.
        """
        self._workspace = workspace
        self._noted = {name: self._look(name) for name in names if self._is_inside(name)}

    def now(self) -> dict[str, SeenFile]:
        """Return the present state of the files."""
        return {name: self._look(name) for name in self._noted}

    def changed(self, now: dict[str, SeenFile]) -> list[str]:
        """Return the names of the files that changed since the user last saw them."""
        return [name for name, file in now.items() if file != self._noted[name]]

    def differences(self, now: dict[str, SeenFile]) -> list[str]:
        """Return the changes as lines for the user."""
        lines: list[str] = []
        for name in self.changed(now):
            old, new = self._noted[name].data, now[name].data
            state = "is new" if not self._noted[name].sha256 else "has changed" if now[name].sha256 else "is gone"
            lines.append(f"{name} {state} since it was last seen:")
            if old is None or new is None:
                lines.append("[it is too large for its difference to be shown]")
            else:
                lines.append(compare(old, new).text(MAX_SHOWN_LINES))
        return lines

    def saw(self, now: dict[str, SeenFile]) -> None:
        """Record that the user has seen these files."""
        self._noted |= now

    def _is_inside(self, name: str) -> bool:
        try:
            path = self._workspace.resolve(name, Access.READ)
        except ToolError:
            return False
        return path.place is Place.INSIDE or not path.names[0].startswith("/")

    def _look(self, name: str) -> SeenFile:
        real = self._workspace.resolve(name, Access.READ).real
        nothing = SeenFile(real=real, sha256="", data=b"")
        try:
            status = os.stat(real)
            if not stat.S_ISREG(status.st_mode):
                return nothing
            if status.st_size > MAX_READ_BYTES:
                times = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
                return SeenFile(real=real, sha256=digest_of(times.encode()), data=None)
            with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                data = file.read(status.st_size + 1)
        except OSError:
            return nothing
        return SeenFile(real=real, sha256=digest_of(data), data=data if len(data) <= MAX_KEPT_BYTES else None)
